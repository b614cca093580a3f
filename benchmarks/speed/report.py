"""Figures to tables. Times are in milliseconds, p50 / p95; in brackets the p50 as a multiple of this product's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.common import circumstances
from benchmarks.speed.data import KINDS, SHARES, Data, scopes
from benchmarks.speed.measure import Figures, Sample
from benchmarks.speed.systems import EvidenceDesk

NOTHING = "-"
Rows = list[list[str]]


def machine() -> str:
    """The circumstances, and how many processes wanted a processor in the last minute."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return f"{circumstances()}, load {load:.1f}"


def show(data: Data, figures: Sequence[Figures]) -> Iterator[str]:
    """The tables of one size."""
    yield f"## {data.count:,} chunks\n\n{machine()}"
    for title, header, cells in tables(data):
        rows = [[found.name, *cells(found, figures)] for found in figures if found.build]
        # A system that has no figure in a table is not in it.
        rows = [row for row in rows if set(row[1:]) != {NOTHING}]
        if rows:
            yield f"\n### {title}\n\n" + table(["", *header], rows)
    names = [f"{f.name} ({', '.join(f'{n} {v}' for n, v in f.versions.items())})" for f in figures if f.versions]
    yield "\nVersions: " + "; ".join(names)
    for found in figures:
        if found.problem:
            yield f"{found.name}: {'not measured, ' if found.is_missing else 'FAILED, '}{found.problem}"


def table(header: Sequence[str], rows: Rows) -> str:
    """A Markdown table that can be read as it is."""
    every = [list(header), *rows]
    widths = [max(len(row[column]) for row in every) for column in range(len(header))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in every
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def chosen(found: Figures, mode: str, kind: str | None, lang: str = "") -> list[Sample]:
    return [s for s in found.samples if s.mode == mode and s.lang == lang and kind in (None, s.kind)]


def times(found: Figures, figures: Sequence[Figures], pick: Callable[[Figures], list[float]], digits: int = 2) -> str:
    """p50 / p95, with the multiple of this product's p50 where that was measured too."""
    values = pick(found)
    if not values:
        return NOTHING
    shown = f"{np.median(values):.{digits}f} / {np.quantile(values, 0.95):.{digits}f}"
    ours = next((pick(other) for other in figures if other.name == EvidenceDesk.name), [])
    if found.name == EvidenceDesk.name or not ours:
        return shown
    ratio = float(np.median(values) / np.median(ours))
    return f"{shown} ({ratio:.{2 if ratio < 1 else 1 if ratio < 10 else 0}f}x)"


def recall(samples: Sequence[Sample]) -> str:
    """The mean over the questions that have something to find."""
    shares = [s.right / s.wanted for s in samples if s.right is not None and s.wanted]
    return f"{np.mean(shares):.3f}" if shares else NOTHING


def keyword_cells(found: Figures, figures: Sequence[Figures]) -> list[str]:
    by_kind = [times(found, figures, lambda f, k=kind: [s.ms for s in chosen(f, "keyword", k)]) for kind in KINDS]
    filtered = [
        times(found, figures, lambda f, x=lang: [s.ms for s in chosen(f, "keyword", "mixed", x)]) for lang in SHARES
    ]
    return [*by_kind, recall(chosen(found, "keyword", None)), *filtered]


def vector_cells(found: Figures, figures: Sequence[Figures]) -> list[str]:
    cells = []
    for lang in ("", *SHARES):
        cells.append(times(found, figures, lambda f, x=lang: [s.ms for s in chosen(f, "vector", None, x)]))
        cells.append(recall(chosen(found, "vector", None, lang)))
    return cells


def hybrid_cells(found: Figures, figures: Sequence[Figures]) -> list[str]:
    scopes = [(None, ""), ("mixed", ""), *(("mixed", lang) for lang in SHARES)]
    return [
        times(found, figures, lambda f, k=kind, x=lang: [s.ms for s in chosen(f, "hybrid", k, x)])
        for kind, lang in scopes
    ]


def processor_cells(found: Figures, figures: Sequence[Figures]) -> list[str]:
    scopes = [*(("keyword", kind, "") for kind in KINDS), ("vector", None, ""), ("hybrid", None, "")]
    scopes += [("hybrid", "mixed", lang) for lang in SHARES]
    return [
        times(found, figures, lambda f, m=mode, k=kind, x=lang: [s.cpu_ms for s in chosen(f, m, k, x)])
        for mode, kind, lang in scopes
    ]


def ingest_cells(found: Figures, figures: Sequence[Figures]) -> list[str]:
    build, memory = found.build, found.memory
    return [
        f"{build['chunks_a_second']:,.0f}",
        f"{build['chunks_a_processor_second']:,.0f}",
        str(build["threads"]),
        megabytes(build, "peak_mb"),
        f"{build['size_mb']:.0f}",
        megabytes(memory, "resident_mb"),
        megabytes(memory, "anonymous_mb"),
    ]


def megabytes(values: dict[str, Any], name: str) -> str:
    return f"{values[name]:.0f}" if name in values else NOTHING


def life_cells(found: Figures, figures: Sequence[Figures]) -> list[str]:
    visible = f"{sum(u['is_visible'] for u in found.updates)} of {len(found.updates)}" if found.updates else NOTHING
    return [
        times(found, figures, lambda f: [u["ms"] for u in f.updates], 1),
        times(found, figures, lambda f: [u["cpu_ms"] for u in f.updates], 1),
        times(found, figures, lambda f: [u["search_ms"] for u in f.updates], 1),
        visible,
        times(found, figures, lambda f: [start["s"] for start in f.cold]),
        times(found, figures, lambda f: [start["cpu_s"] for start in f.cold]),
    ]


def tables(data: Data) -> list[tuple[str, list[str], Callable[[Figures, Sequence[Figures]], list[str]]]]:
    """Title, header and cells of each table; filters are named by the chunks they keep."""
    kept = {lang: f"{mask.sum():,} chunks" for lang, mask in scopes(data).items()}
    filters = [kept[lang] for lang in SHARES]
    return [
        ("Keyword, ms", [*KINDS, "as exact BM25", *(f"mixed in {some}" for some in filters)], keyword_cells),
        ("Vector, ms", [cell for some in kept.values() for cell in (f"in {some}", "recall@10")], vector_cells),
        ("Hybrid, ms", ["all", "mixed", *(f"mixed in {some}" for some in filters)], hybrid_cells),
        (
            "Processor time of all threads, ms",
            [*(f"keyword {kind}" for kind in KINDS), "vector", "hybrid", *(f"hybrid in {some}" for some in filters)],
            processor_cells,
        ),
        (
            "Ingest, size, memory",
            ["chunks/s", "a processor second", "threads", "peak MB", "file MB", "serving MB", "of it anonymous"],
            ingest_cells,
        ),
        (
            "Update of ten chunks, ms; cold process to first hybrid hit, s",
            ["update", "processor", "search after it", "found", "cold", "processor"],
            life_cells,
        ),
    ]


def as_json(count: int, figures: Sequence[Figures]) -> dict[str, Any]:
    return {"machine": machine(), "chunks": count, "systems": [asdict(found) for found in figures]}
