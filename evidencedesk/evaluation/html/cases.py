"""Every case: what came of it, why, and what was found for it."""

from __future__ import annotations

from collections import Counter

from evidencedesk.evaluation.html.elements import Content, Markup, details, element, fact_list, written
from evidencedesk.evaluation.html.words import OUTCOMES, badge
from evidencedesk.evaluation.report import CaseResult, EvaluationReport
from evidencedesk.records import Hit

_HIT_SCORES: dict[str, str] = {"hybrid": "fused score", "keyword": "BM25", "vector": "cosine"}


def cases_section(evaluation: EvaluationReport) -> Markup:
    """Those that went wrong first, and open."""
    order = list(OUTCOMES)
    cases = sorted(evaluation.cases, key=lambda case: order.index(case.outcome))
    counts = Counter(case.outcome for case in cases)
    summary = ", ".join(f"{OUTCOMES[outcome]} {counts[outcome]}" for outcome in order if counts[outcome])
    return element(
        "div",
        element("p", f"{summary}. Those that went wrong come first, and open."),
        [_case(case) for case in cases],
    )


def _case(case: CaseResult) -> Markup:
    reason = "failed" if case.reason is None else case.reason.replace("_", " ")
    summary = [
        badge(case.outcome), " ", written(case.question, class_="question"), " ",
        element("span", written(case.case_id), " · ", written(", ".join(case.tags) or "no tag"), f" · {reason}",
                class_="muted"),
    ]  # fmt: skip
    expected = ", ".join(case.expected) if case.answerable else "no answer: the documents do not say"
    ranks = ", ".join(f"{mode} {case.rank(mode) or 'not found'}" for mode in case.ranked)
    facts: list[tuple[str, Content]] = [
        ("Expected", written(expected)),
        ("Cited", written(", ".join(case.cited) or "nothing")),
    ]
    if case.as_of:
        facts.append(("Asked as of", case.as_of))
    if case.answerable and ranks:
        facts.append(("Rank of the expected", ranks))
    why = written(case.why, "p")
    hits: Content = element("p", "No passage was found.", class_="muted")
    if case.candidates:
        score = _HIT_SCORES[case.candidates.mode]
        hits = element("ol", [_hit(hit, case, score) for hit in case.candidates], class_="hits")
    return details(summary, why, fact_list(facts), hits, is_open=not case.ok, class_="case")


def _hit(hit: Hit, case: CaseResult, score: str) -> Markup:
    parts = [f"{score} {hit.score:.3f}"]
    if hit.rerank is not None:
        parts.append(f"reranked {hit.rerank:.3f}")
    if hit.cosine is not None and score != "cosine":
        parts.append(f"cosine {hit.cosine:.3f}")
    if score != "BM25":
        parts.append(f"BM25 {hit.bm25:.2f}")
    parts.append(f"idf share {hit.idf_share:.2f}")
    ranks = (("keyword", hit.keyword_rank), ("vector", hit.vector_rank))
    parts += [f"{leg} rank {rank}" for leg, rank in ranks if rank]
    mark = element("span", "expected", class_="badge good") if case.expects(hit.chunk) else None
    label = written(hit.label, lang=hit.chunk.lang)
    return element("li", label, " ", mark, element("div", " · ".join(parts), class_="muted"))
