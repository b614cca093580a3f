"""What each leg of the search finds."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from evidencedesk.evaluation.html.elements import Markup, data_table, details, element, written
from evidencedesk.evaluation.html.words import bar, bounds, n_of, share
from evidencedesk.evaluation.metrics import Rate
from evidencedesk.evaluation.report import EVERY_TAG, EvaluationReport, RetrievalRow


def recall_section(evaluation: EvaluationReport) -> Markup:
    """By tag and leg."""
    k, rows = evaluation.k, evaluation.retrieval
    tags = list(dict.fromkeys(row.tag for row in rows if row.recall_at_1.of))
    nothing = [tag for tag in dict.fromkeys(row.tag for row in rows) if tag not in tags]

    def card(title: str, rate_of: Callable[[RetrievalRow], Rate]) -> Markup:
        groups = []
        for tag in tags:
            tagged = [row for row in rows if row.tag == tag]
            name = "All questions" if tag == EVERY_TAG else tag
            heading = element("th", written(name), element("span", f" {rate_of(tagged[0]).of}", class_="muted"),
                              colspan="4", scope="rowgroup")  # fmt: skip
            lines = [
                element(
                    "tr", element("th", row.mode, scope="row"), element("td", bar(rate_of(row))),
                    element("td", n_of(rate_of(row)), class_="number"),
                    element("td", bounds(rate_of(row).interval), class_="number muted"),
                )
                for row in tagged
            ]  # fmt: skip
            groups.append(element("tbody", element("tr", heading), lines))
        headings = [element("th", text, scope="col") for text in ("leg", "share", "found", "95 %")]
        table = element("table", element("caption", title), element("thead", element("tr", headings)), groups)
        return element("div", table, class_="card recall")

    depths = {1: "recall_at_1", 3: "recall_at_3", k: "recall_at_k"}
    cards = [card(f"recall@{depth}", attrgetter(field)) for depth, field in sorted(depths.items())]
    full = data_table(
        "Every figure", ("tag", "leg", "recall@1", "recall@3", f"recall@{k}", "MRR", f"nDCG@{k}"),
        (
            (written(row.tag), row.mode, *(share(rate) for rate in (
                row.recall_at_1, row.recall_at_3, row.recall_at_k, row.mrr, row.ndcg_at_k)))
            for row in rows
        ),
    )  # fmt: skip
    left_out = element("p", "Nothing is to be found for: ", written(", ".join(nothing)), ".") if nothing else None
    explained = (
        "Share of the expected documents among the first 1, 3 and k that each leg ranks, by tag. The bar is the share, "
        "the line over it its interval."
    )
    return element(
        "div", element("p", explained), element("div", cards, class_="grid three"), left_out,
        details("MRR and nDCG, and all figures as one table", full),
    )  # fmt: skip
