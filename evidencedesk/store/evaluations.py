"""Evaluations, case by case, and guards that were calibrated: what the file remembers of how far it can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

import sqlalchemy as sa

from evidencedesk.errors import CalibrationOutdated, NotFound
from evidencedesk.guard.calibrated import source
from evidencedesk.models import EmbedderRow, GuardFitRow, GuardWeightRow, RunCaseRow, RunRow, table_of
from evidencedesk.records import CalibratedGuard, EmbedderIdentity, GuardSignal
from evidencedesk.store.snapshot import Snapshot
from evidencedesk.store.transaction import Transaction, inserted_key

_embedders = table_of(EmbedderRow)
_fits = table_of(GuardFitRow)
_weights = table_of(GuardWeightRow)
_runs = table_of(RunRow)
_cases = table_of(RunCaseRow)


# ---------------------------------------------------------------- runs


@dataclass(frozen=True, slots=True)
class StoredCase:
    """One case of a run, as the file remembers it."""

    case_id: str
    question: str
    tags: str
    answerable: bool
    as_of: str | None
    outcome: str
    reason: str | None
    detail: str
    keyword_rank: int | None
    vector_rank: int | None
    hybrid_rank: int | None
    top_chunk_id: str | None
    top: float | None
    margin: float | None
    cited: str


def put_run(transaction: Transaction, run: Mapping[str, Any], cases: Sequence[StoredCase]) -> int:
    """Store a run (columns of `runs` by name) with its cases; gives its number. Writes."""
    key = inserted_key(transaction.connection.execute(sa.insert(RunRow).values(**run)))
    rows = [{"run_key": key, **{name: getattr(case, name) for name in StoredCase.__slots__}} for case in cases]
    if rows:
        transaction.connection.execute(sa.insert(RunCaseRow), rows)
    return key


def run_outcomes(snapshot: Snapshot, run_id: int) -> dict[str, str]:
    """The outcome of each case of a run, by case id. NotFound when there is no such run."""
    if snapshot.connection.scalar(sa.select(_runs.c.run_key).where(_runs.c.run_key == run_id)) is None:
        raise NotFound(kind="run", name=str(run_id))
    query = sa.select(_cases.c.case_id, _cases.c.outcome).where(_cases.c.run_key == run_id)
    return {row.case_id: row.outcome for row in snapshot.connection.execute(query)}


# ---------------------------------------------------------------- calibrated guards


def put_guard(
    transaction: Transaction, guard: CalibratedGuard, embedder: EmbedderIdentity | None, facts: Mapping[str, Any]
) -> int:
    """Store a calibrated guard for an embedder (None: keyword search); `facts` are further columns. Writes."""
    key = inserted_key(
        transaction.connection.execute(
            sa.insert(GuardFitRow).values(
                embedder_key=None if embedder is None else transaction.embedder_key(embedder),
                intercept=guard.intercept, threshold=guard.threshold, **facts,
            )
        )
    )  # fmt: skip
    rows = [
        {"fit_key": key, "signal": name, "mean": mean, "deviation": deviation, "weight": weight}
        for name, mean, deviation, weight in zip(
            guard.signals, guard.means, guard.deviations, guard.weights, strict=True
        )
    ]
    transaction.connection.execute(sa.insert(GuardWeightRow), rows)
    return key


def stored_guard(snapshot: Snapshot, embedder: EmbedderIdentity | None) -> CalibratedGuard | None:
    """The newest guard that was calibrated for that embedder (None: keyword search); None when none was.

    CalibrationOutdated when it weighs signals that are read no more.
    """
    query = sa.select(_fits).order_by(_fits.c.fit_key.desc()).limit(1)
    if embedder is None:
        query = query.where(_fits.c.embedder_key.is_(None))
    else:
        columns = {"name": embedder.name, "dimension": embedder.dimension, "fingerprint": embedder.fingerprint}
        theirs = sa.select(_embedders.c.embedder_key).filter_by(**columns).scalar_subquery()
        query = query.where(_fits.c.embedder_key == theirs)
    fit = snapshot.connection.execute(query).one_or_none()
    if fit is None:
        return None
    weights = snapshot.connection.execute(
        sa.select(_weights).where(_weights.c.fit_key == fit.fit_key).order_by(_weights.c.signal)
    ).all()
    if unread := {row.signal for row in weights}.difference(get_args(GuardSignal)):
        raise CalibrationOutdated(signals=", ".join(sorted(unread)))
    when: datetime = fit.fitted_at
    return CalibratedGuard(
        tuple(row.signal for row in weights),
        tuple(row.mean for row in weights),
        tuple(row.deviation for row in weights),
        tuple(row.weight for row in weights),
        fit.intercept,
        fit.threshold,
        "idf_share" if embedder is None else "cosine",
        f"{when:%Y-%m-%d}, {source(fit.case_count, fit.cases_hash, fit.max_wrong, fit.promise)}",
    )


def forget_guards(transaction: Transaction, embedder: EmbedderIdentity | None) -> int:
    """Delete what was calibrated for an embedder (None: keyword search), and give how many that were. Writes."""
    query = sa.delete(GuardFitRow)
    if embedder is None:
        return transaction.connection.execute(query.where(_fits.c.embedder_key.is_(None))).rowcount
    key = transaction.embedder_key(embedder)
    return transaction.connection.execute(query.where(_fits.c.embedder_key == key)).rowcount
