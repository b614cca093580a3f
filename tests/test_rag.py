"""The way of an answer: each stage may say no, the model is called only when it may, and what it says is checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from builders import MOMENT, Clock, make_source, open_desk

from evidencedesk import CallableEmbedder, Desk, RecordedReplies, Thresholds
from evidencedesk.cli.printing import json_value
from evidencedesk.errors import CheckerError, DeskClosed, DeskFull, EmbedderUnavailable, ReadOnlyDesk
from evidencedesk.records import Answer, ModelRequest, Support

RETURNS = "You can return a new bike within 30 days of delivery."
QUESTION = "Within how many days can you return a new bike?"


def shop(**front: object) -> object:
    return make_source(RETURNS, **{"doc_id": "shop-v1", "heading": "Returns", **front})


def reply(text: str = RETURNS, *sources: object, abstained: bool = False) -> str:
    claims = [] if abstained else [{"text": text, "sources": list(sources) or [1]}]
    return json.dumps({"abstained": abstained, "claims": claims})


class Model:
    """A model that does something while it thinks, and gives a reply."""

    name = "thinker"

    def __init__(self, raw: object = None, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.raw = reply() if raw is None else raw
        self.meanwhile = meanwhile
        self.requests: list[ModelRequest] = []

    def complete(self, request: ModelRequest) -> str:
        self.requests.append(request)
        self.meanwhile()
        return self.raw  # type: ignore[return-value]


def outcome(answer: Answer) -> tuple[bool, str]:
    return answer.abstained, answer.reason


def test_an_answer_names_what_it_rests_on() -> None:
    model = Model()
    with open_desk(sources=[shop()], embedder="toy") as desk:
        answer = desk.ask(QUESTION, llm=model)
    assert (answer.text, *outcome(answer)) == (f"{RETURNS} [shop-v1:c0]", False, "ok")
    (citation,) = answer.citations
    assert (citation.verdict, citation.quote) == ("retrieved", RETURNS)
    assert citation.label == "Shop rules (Returns, line 8) [shop-v1:c0]"
    (claim,) = answer.claims
    assert (claim.text, claim.verdict) == (RETURNS, "supported")
    assert (answer.question, answer.model, answer.asked_at) == (QUESTION, "thinker", MOMENT)
    assert (answer.answer_id, answer.embedder) == (None, desk.settings.embedder)
    assert [passage.chunk.id for passage in model.requests[0].passages] == ["shop-v1:c0"]


@pytest.mark.parametrize("question", ["", " \n\t", "\u3000"])
@pytest.mark.parametrize("verb", ["ask", "assess"])
def test_a_blank_question_is_refused(question: str, verb: str) -> None:
    with open_desk(sources=[shop()]) as desk, pytest.raises(ValueError, match="empty question"):
        getattr(desk, verb)(question)


@pytest.mark.parametrize(
    ("sources", "question", "reason"),
    [
        ([], QUESTION, "no_result"),
        ([shop()], "Who painted the ceiling of the chapel in Rome?", "weak"),
        ([shop(), shop(doc_id="other-v1", title="Shop rules")], QUESTION, "ambiguous"),
        ([shop()], "?!", "no_result"),
    ],
)
def test_a_model_is_not_called_when_retrieval_says_no(sources: list, question: str, reason: str) -> None:
    model = Model()
    with open_desk(sources=sources, embedder="toy") as desk:
        answer = desk.ask(question, llm=model)
        assert desk.assess(question) == answer.assessment
    assert (answer.abstained, answer.reason, answer.model, model.requests) == (True, reason, "", [])
    assert (answer.text, answer.citations, answer.claims) == ("", (), ())
    assert answer.detail


def test_an_embedder_without_thresholds_does_not_answer() -> None:
    embedder = CallableEmbedder(lambda texts: [[1.0, len(text) / 1e6] for text in texts], name="mine", dimension=2)
    with open_desk(sources=[shop()], embedder=embedder) as desk:
        answer = desk.ask(QUESTION)
    assert outcome(answer) == (True, "uncalibrated")
    assert len(answer.hits) == 1


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (reply(abstained=True), "model_abstained"),
        ("I think so.", "bad_output"),
        ("", "bad_output"),
        (None, "ok"),
        (7, "model_failed"),
        (reply(RETURNS, 2), "unknown_citation"),
        (reply(RETURNS, "shop-v9:c0"), "unknown_citation"),
        (reply(RETURNS, "shop-v1"), "unknown_citation"),
        (reply(RETURNS.replace("30", "60")), "unsupported_claim"),
        (json.dumps({"abstained": False, "claims": [{"text": RETURNS, "sources": []}]}), "unsupported_claim"),
    ],
)
def test_every_way_in_which_a_model_goes_wrong_has_its_reason(raw: object, reason: str) -> None:
    with open_desk(sources=[shop()], embedder="toy") as desk:
        answer = desk.ask(QUESTION, llm=Model(raw))
    assert outcome(answer) == (reason != "ok", reason)
    assert (answer.text == "") == answer.abstained
    assert answer.detail


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), TimeoutError("60 s"), KeyError("choices")])
def test_whatever_a_hosts_model_raises_is_a_failed_model(error: Exception) -> None:
    def fail() -> None:
        raise error

    with open_desk(sources=[shop()], embedder="toy") as desk:
        answer = desk.ask(QUESTION, llm=Model(meanwhile=fail))
    assert outcome(answer) == (True, "model_failed")
    assert type(error).__name__ in answer.detail


def test_an_interrupt_is_no_failed_model() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with open_desk(sources=[shop()], embedder="toy") as desk, pytest.raises(KeyboardInterrupt):
        desk.ask(QUESTION, llm=Model(meanwhile=interrupt))


@pytest.mark.parametrize(
    "change",
    [
        lambda desk: desk.update_document(shop(doc_id="shop-v2", version="v2")),
        lambda desk: desk.update_document(make_source(RETURNS + " Or not.", doc_id="shop-v1", heading="Returns")),
        lambda desk: desk.withdraw("shop-v1", reason="a mistake"),
    ],
    ids=["superseded", "corrected", "withdrawn"],
)
def test_text_that_leaves_force_while_the_model_thinks_is_no_evidence(
    change: Callable[[Desk], object], tmp_path: Path
) -> None:
    """The file is not held while the model thinks: another connection writes to it meanwhile."""
    clock = Clock()
    with open_desk(tmp_path / "desk.db", [shop()], embedder="toy", clock=clock) as desk:

        def meanwhile() -> None:
            clock.advance(seconds=1)
            with open_desk(tmp_path / "desk.db", embedder="auto", clock=clock) as other:
                change(other)

        answer = desk.ask(QUESTION, llm=Model(meanwhile=meanwhile))
    assert outcome(answer) == (True, "unknown_citation")
    assert [citation.verdict for claim in answer.claims for citation in claim.citations] == ["superseded"]


def test_a_question_as_of_a_day_is_answered_from_that_days_text() -> None:
    clock = Clock()
    old = shop(effective_from="2024-01-01")
    new = make_source(
        RETURNS.replace("30", "45"), doc_id="shop-v2", version="v2", heading="Returns", effective_from="2025-01-01"
    )
    with open_desk(sources=[old, new], clock=clock, embedder="toy") as desk:
        past = desk.ask(QUESTION, as_of="2024-06-01", llm=Model(reply(RETURNS, "shop-v1:c0")))
        today = desk.ask(QUESTION, llm=Model(reply(RETURNS, "shop-v1:c0")))
        assert outcome(past) == (False, "ok")
        assert outcome(today) == (True, "unknown_citation")
        assert desk.verify(past.text).ok is False
        assert desk.verify(past.text, as_of="2024-06-01").ok is True
        assert desk.ask(QUESTION, as_of="2023-06-01").reason == "no_result"


def test_an_answer_about_a_past_day_verifies_as_of_that_day() -> None:
    clock = Clock()
    old, new = shop(effective_from="2024-01-01"), make_source("No.", doc_id="shop-v2", version="v2")
    with open_desk(sources=[old, new], clock=clock, embedder="toy") as desk:
        past = desk.ask(QUESTION, as_of="2024-06-01")
        assert [desk.verify(one).reason for one in (past, json_value(past))] == ["ok", "ok"]
        assert desk.verify(past, as_of="2026-06-01").reason == "unknown_citation"


def test_without_a_model_the_evidence_is_quoted() -> None:
    with open_desk(sources=[shop()], embedder="toy") as desk:
        answer = desk.ask(QUESTION)
    assert (answer.text, answer.model) == (f"{RETURNS} [shop-v1:c0]", "quoting")


def test_a_bangla_question_is_answered_in_bangla_where_that_text_is_in_force() -> None:
    """Though the embedder finds the English text nearer: the Bangla one of its family is brought in."""
    bangla = "নতুন বাইক ৩০ দিনের মধ্যে ফেরত দেওয়া যায়।"
    near = {RETURNS: [1.0, 0.0], "Another thing.": [0.9, 0.4], "More of it.": [0.9, 0.41], "And more.": [0.9, 0.42]}

    def embed(texts: list[str]) -> list[list[float]]:
        return [
            next((v for t, v in near.items() if t in text), [0.6, 0.6] if bangla in text else [1, 0.1])
            for text in texts
        ]

    embedder = CallableEmbedder(embed, name="mine", dimension=2)
    embedder.guard_thresholds = Thresholds(0.3, 0.0, "a test")  # type: ignore[attr-defined]
    sources = [
        shop(),
        make_source(bangla, doc_id="shop-v1-bn", lang="bn"),
        *(make_source(text, doc_id=f"d{n}-v1") for n, text in enumerate([*near][1:])),
    ]
    with open_desk(sources=sources, embedder=embedder) as desk:
        answer = desk.ask("নতুন বাইক কত দিনের মধ্যে ফেরত দেওয়া যায়?")
    assert answer.text == f"{bangla} [shop-v1-bn:c0]"


def test_a_recorded_answer_is_in_the_file_and_so_is_a_recorded_no() -> None:
    with open_desk(sources=[shop()], embedder="toy") as desk:
        assert desk.ask(QUESTION).answer_id is None
        answer = desk.ask(QUESTION, record=True)
        refusal = desk.ask("Who painted the ceiling of the chapel?", record=True)
        assert (answer.answer_id, refusal.answer_id) == (1, 2)
        no, yes = desk.answers()
        assert [answer.answer_id for answer in desk.answers(limit=1)] == [2]
    assert (yes.question, yes.text, yes.reason, yes.model) == (QUESTION, answer.text, "ok", "quoting")
    assert (no.reason, no.abstained, no.text, no.detail) == ("weak", True, "", refusal.detail)


def test_everything_that_decided_is_kept() -> None:
    with open_desk(sources=[shop()], embedder="toy") as desk:
        answer = desk.ask(QUESTION, record=True)
        with desk.store.read() as snapshot:
            ask = snapshot.connection.exec_driver_sql
            row = ask(
                "SELECT guard_state, guard_measure, top, margin, min_score, min_margin, embedder, checker FROM answers"
            )
            kept = tuple(row.one())
            hit = ask("SELECT rank, chunk_id, score, bm25, cosine, idf_share FROM answer_hits").one()
            claim = tuple(ask("SELECT claim_number, text, verdict FROM answer_claims").one())
    found, judged = answer.hits[0], answer.assessment
    assert judged is not None
    assert judged.values is not None
    embedder = str(desk.settings.embedder)
    values = judged.values
    assert kept == ("ok", "cosine", judged.top, judged.margin, values.min_score, values.min_margin, embedder, "rules")
    assert tuple(hit) == (1, "shop-v1:c0", found.score, found.bm25, found.cosine, found.idf_share)
    assert claim == (1, RETURNS, "supported")


def test_a_file_opened_for_reading_records_nothing_and_says_so_before_a_model_is_paid(tmp_path: Path) -> None:
    with open_desk(tmp_path / "desk.db", [shop()], embedder="toy"):
        pass
    model = Model()
    with Desk.open(tmp_path / "desk.db", read_only=True) as desk:
        assert desk.ask(QUESTION, llm=Model()).reason == "ok"
        with pytest.raises(ReadOnlyDesk):
            desk.ask(QUESTION, llm=model, record=True)
    assert model.requests == []


def test_what_utf8_cannot_hold_is_answered_and_recorded() -> None:
    with open_desk(sources=[shop()], embedder="toy") as desk:
        answer = desk.ask(QUESTION + " \ud800", record=True)
        assert desk.answers()[0].question == QUESTION + " ?"
    assert answer.reason == "ok"


def test_a_hosts_checker_judges_instead_of_the_rules() -> None:
    class Strict:
        name = "strict"

        def check(self, claim: str, evidences: list[str]) -> list[Support]:
            return [Support((), 1.0, True, "unsupported", "I do not believe it.") for _ in evidences]

    with open_desk(sources=[shop()], embedder="toy") as desk:
        answer = desk.ask(QUESTION, checker=Strict(), record=True)
        assert desk.verify(f"{RETURNS} [shop-v1:c0]", checker=Strict()).ok is False
    assert outcome(answer) == (True, "unsupported_claim")
    assert "I do not believe it." in answer.detail


def test_a_checker_that_fails_is_a_typed_error() -> None:
    class Broken:
        name = "broken"

        def check(self, claim: str, evidences: list[str]) -> list[Support]:
            raise RuntimeError("no GPU")

    with open_desk(sources=[shop()], embedder="toy") as desk, pytest.raises(CheckerError, match="no GPU"):
        desk.ask(QUESTION, checker=Broken())


def test_a_file_whose_embedder_is_not_here_does_not_answer(tmp_path: Path) -> None:
    embedder = CallableEmbedder(lambda texts: [[1.0, 0.0]] * len(texts), name="mine", dimension=2)
    with open_desk(tmp_path / "desk.db", [shop()], embedder=embedder):
        pass
    with Desk.open(tmp_path / "desk.db") as desk, pytest.raises(EmbedderUnavailable):
        desk.ask(QUESTION)


def test_a_desk_without_vectors_answers_by_its_words() -> None:
    with open_desk(sources=[shop()]) as desk:
        answer = desk.ask(QUESTION)
        refusal = desk.ask("Do helmets have a warranty of two years?")
    assert (answer.reason, answer.assessment and answer.assessment.measure) == ("ok", "idf_share")
    assert refusal.reason in ("weak", "no_result")


# ---------------------------------------------------------------- answers of others


@pytest.mark.parametrize(
    "handed_in",
    [
        f"{RETURNS} [shop-v1:c0]",
        {"text": f"{RETURNS} [shop-v1:c0]"},
        {"answer": f"{RETURNS} [1]", "sources": ["shop-v1:c0"]},
        {"answer": f"{RETURNS} [১]", "citations": [{"chunk_id": "shop-v1:c0"}]},
        {"claims": [{"text": RETURNS, "sources": ["shop-v1:c0"]}]},
        {"claims": [{"text": RETURNS, "citations": [{"chunk": {"id": "shop-v1:c0"}}]}], "more": 1},
    ],
)
def test_an_answer_of_any_system_can_be_verified(handed_in: object) -> None:
    with open_desk(sources=[shop()]) as desk:
        verification = desk.verify(handed_in)
    assert (verification.ok, verification.reason) == (True, "ok")
    assert [citation.verdict for citation in verification.claims[0].citations] == ["retrieved"]


@pytest.mark.parametrize(
    ("handed_in", "reason", "word"),
    [
        (f"{RETURNS.replace('30', '60')} [shop-v1:c0]", "unsupported_claim", "60"),
        (RETURNS, "unsupported_claim", "cites nothing"),
        (f"{RETURNS} [shop-v7:c0]", "unknown_citation", "does not exist"),
        ({"answer": f"{RETURNS} [2]", "sources": ["shop-v1:c0"]}, "unknown_citation", "'2'"),
        ({"answer": f"{RETURNS} [shop-v1:c0]", "sources": []}, "unknown_citation", "no passage that was given"),
    ],
)
def test_what_is_wrong_with_an_answer_is_named(handed_in: object, reason: str, word: str) -> None:
    with open_desk(sources=[shop()]) as desk:
        verification = desk.verify(handed_in)
    assert (verification.ok, verification.reason) == (False, reason)
    assert word in verification.detail


def test_a_number_means_nothing_where_no_sources_are_listed() -> None:
    with open_desk(sources=[shop()]) as desk:
        mixed = desk.verify(f"{RETURNS} [shop-v1:c0] {RETURNS} [1]")
        claims = desk.verify(
            {"claims": [{"text": RETURNS, "sources": ["shop-v1:c0"]}, {"text": RETURNS, "sources": ["1"]}]}
        )
    for verification in (mixed, claims):
        assert (verification.ok, verification.reason) == (False, "unknown_citation")
        assert "neither the number of a passage" in verification.detail


def test_an_answer_and_its_own_json_get_the_same_verdict() -> None:
    other = make_source("Helmets are sold.", doc_id="other-v1")
    with open_desk(sources=[shop(), other], embedder="toy") as desk:
        answer = desk.ask(QUESTION, llm=Model(reply(RETURNS, "shop-v1:c0")))
        as_json = json_value(answer)
        assert (desk.verify(answer).reason, desk.verify(as_json).reason) == ("ok", "ok")
        without = replace(answer, hits=replace(answer.hits, hits=answer.hits.hits[1:]))
        assert [desk.verify(one).reason for one in (without, json_value(without))] == ["unknown_citation"] * 2


def test_the_text_of_an_answer_can_be_verified_alone_though_the_document_has_marks_of_its_own() -> None:
    text = "You can return [7] a new bike within 30 days of delivery."
    with open_desk(sources=[make_source(text, doc_id="shop-v1", heading="Returns")], embedder="toy") as desk:
        answer = desk.ask(QUESTION)
        assert answer.text == f"{text} [shop-v1:c0]"
        assert desk.verify(answer.text).ok


def test_an_answer_of_ours_verifies_until_its_text_is_superseded() -> None:
    clock = Clock()
    with open_desk(sources=[shop()], clock=clock, embedder="toy") as desk:
        answer = desk.ask(QUESTION)
        assert desk.verify(answer).ok
        clock.advance(days=1)
        desk.update_document(make_source("Bikes stay sold.", doc_id="shop-v2", version="v2"))
        later = desk.verify(answer)
    assert (later.ok, later.reason) == (False, "unknown_citation")
    assert "not in force" in later.detail


@pytest.mark.parametrize(
    ("handed_in", "message"),
    [
        ({}, "needs text"),
        ({"question": "?"}, "this one has question"),
        ({"claims": []}, "no claims"),
        ({"claims": [{"words": "x"}]}, "claim 1 needs a text"),
        ({"text": "x", "sources": "shop-v1:c0"}, "must be a list"),
        ({"text": "x", "sources": [1]}, "must be a chunk id"),
        ("", "holds no text"),
        (7, "must be an Answer"),
    ],
)
def test_what_is_no_answer_is_refused(handed_in: object, message: str) -> None:
    with open_desk(sources=[shop()]) as desk, pytest.raises((ValueError, TypeError), match=message):
        desk.verify(handed_in)


def test_an_abstention_is_not_verified_and_is_no_error() -> None:
    with open_desk(sources=[shop()], embedder="toy") as desk:
        refusal = desk.ask("Who painted the ceiling of the chapel?")
        for handed_in in (refusal, json_value(refusal)):
            assert (desk.verify(handed_in).ok, desk.verify(handed_in).reason) == (False, "model_abstained")


def test_the_text_that_a_reader_sees_is_what_is_verified() -> None:
    with open_desk(sources=[shop()], embedder="toy") as desk:
        answer = desk.ask(QUESTION)
        altered = replace(answer, text=answer.text.replace("30", "900"))
        assert [desk.verify(one).ok for one in (answer, json_value(answer))] == [True, True]
        assert [desk.verify(one).ok for one in (altered, json_value(altered))] == [False, False]


@pytest.mark.parametrize(
    ("body", "question"),
    [
        ("| Item | Price |\n|---|---|\n| Pedal | 30 euro |\n| Bell | 7 euro |", "What is the price of a pedal?"),
        ("The storage fee is 5 euro (2). It is due at once.", "What is the storage fee?"),
        ("The tower is 300 m high[^3]. It is red.", "How high is the tower?"),
        ("The storage fee of [kc-x-v1:c0] is 5 euro. It is due at once.", "What is the storage fee?"),
    ],
)
def test_the_text_of_a_quotation_verifies_alone(body: str, question: str) -> None:
    with open_desk(sources=[make_source(body, doc_id="shop-v1")]) as desk:
        answer = desk.ask(question)
        assert answer.reason == "ok", answer.detail
        assert desk.verify(answer.text).ok, desk.verify(answer.text).detail


def test_a_long_question_is_a_question() -> None:
    with open_desk(sources=[shop()], embedder="toy") as desk:
        assert desk.ask((QUESTION + " ") * 500).reason in ("ok", "weak", "model_abstained")
        with pytest.raises(ValueError, match="budget_tokens"):
            desk.ask((QUESTION + " ") * 2000, llm=Model())


def test_what_does_not_bear_the_claim_is_no_source_of_the_answer() -> None:
    """BR-95: a model that cites everything is right, but only what bears the claim is given, and can go stale."""
    clock = Clock()
    other = make_source(
        "You can return a new helmet within many days, and a bike bell.",
        doc_id="other-v1",
        title="Helmets",
        heading="Returns",
    )
    with open_desk(sources=[shop(), other], embedder="none", clock=clock) as desk:
        answer = desk.ask(QUESTION, llm=Model(reply(RETURNS, "shop-v1:c0", "other-v1:c0")), record=True)
        assert (answer.reason, answer.text) == ("ok", f"{RETURNS} [shop-v1:c0]"), answer.detail
        assert [citation.chunk.id for citation in answer.claims[0].citations] == ["shop-v1:c0", "other-v1:c0"]
        clock.advance(days=1)
        assert desk.update_document(make_source("No.", doc_id="other-v2", version="v2")).stale_answers == 0


@pytest.mark.parametrize("cited", ["You can return it [kc-\ud800-v3:c0].", "You can return it [kc-\0-v3:c0]."])
def test_an_id_that_no_file_can_hold_is_no_error(cited: str) -> None:
    with open_desk(sources=[shop()]) as desk:
        assert desk.verify(cited).reason == "unknown_citation"


def test_an_answer_that_cannot_be_recorded_is_handed_back_with_the_error(tmp_path: Path) -> None:
    with open_desk(tmp_path / "desk.db", [shop()], embedder="toy") as desk:
        with desk.engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()

        def fill() -> None:
            with desk.engine.connect() as connection:
                connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

        with pytest.raises(DeskFull) as caught:
            desk.ask(QUESTION + " " * 500_000, llm=Model(meanwhile=fill), record=True, budget_tokens=10**6)
    assert caught.value.answer.reason == "ok"


@pytest.mark.parametrize("parameter", ["llm", "checker"])
def test_what_has_no_name_is_refused_before_a_model_is_called(parameter: str) -> None:
    with (
        open_desk(sources=[shop()], embedder="toy") as desk,
        pytest.raises(TypeError, match=f"{parameter} must have a name"),
    ):
        desk.ask(QUESTION, **{parameter: object()})


def test_a_closed_desk_verifies_nothing() -> None:
    with open_desk(sources=[shop()]) as desk:
        pass
    with pytest.raises(DeskClosed):
        desk.verify("Nothing is cited.")


def test_numbers_beyond_the_database_are_no_error() -> None:
    with open_desk(sources=[shop()]) as desk:
        assert (desk.answers(limit=2**70), desk.forget([2**70])) == ([], 0)


@pytest.mark.parametrize(
    "support",
    [
        Support((), 1.0, True, "supported", None),
        Support((), None, True, "supported", ""),
        Support((), 1.0, True, "supported", "", evidence_span="ab"),
        Support((), 1.0, True, "supported", "", evidence_span=(0, 1, 2)),
        Support((), 1.0, True, "maybe", ""),
        None,
    ],
)
def test_a_checker_that_gives_something_else_is_a_typed_error(support: object) -> None:
    class Odd:
        name = "odd"

        def check(self, claim: str, evidences: list[str]) -> list[object]:
            return [support for _ in evidences]

    with open_desk(sources=[shop()], embedder="toy") as desk, pytest.raises(CheckerError):
        desk.ask(QUESTION, checker=Odd(), record=True)


def test_recorded_replies_count_the_calls() -> None:
    replies = RecordedReplies({QUESTION: reply()})
    with open_desk(sources=[shop()], embedder="toy") as desk:
        desk.ask(QUESTION, llm=replies)
        desk.ask("Who painted the ceiling of the chapel?", llm=replies)
    assert replies.questions == [QUESTION]
