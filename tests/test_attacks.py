"""Attacks on the check of claims, made from documents, and what a check makes of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidencedesk import Desk
from evidencedesk.citations.support import RuleChecker
from evidencedesk.evaluation.attacks import CONTROLS, KINDS, Attack, block_rates, make_attacks, off_corpus_questions
from evidencedesk.evaluation.metrics import Rate
from evidencedesk.evaluation.rewriting import reworded, with_another_number, with_another_polarity
from evidencedesk.records import Chunk, Document, Location, Status, Support
from evidencedesk.text import normalise, numbers

CHECKOUT = Path(__file__).resolve().parents[1]
RETURNS = "You can return a new bike within 30 days of delivery."


def make_document(
    *texts: str,
    family: str = "returns",
    version: str = "v1",
    lang: str = "en",
    title: str = "Returns policy",
    status: Status = "current",
) -> Document:
    doc_id = f"{family}-{version}" if lang == "en" else f"{family}-{version}-{lang}"
    chunks = tuple(
        Chunk(
            f"{doc_id}:c{n}", doc_id, version, lang, status, text, f"{title}\n{text}",
            Location(f"{doc_id}.md", title, n + 1, n + 1), family,
        )
        for n, text in enumerate(texts)
    )  # fmt: skip
    return Document(doc_id, family, version, lang, title, status, datetime(2025, 1, 1, tzinfo=UTC), None, chunks)


SHIPPING = make_document(
    "Orders of 5,000 taka or more ship free in Bangladesh. The courier phones you the evening before.",
    family="shipping",
    title="Shipping and delivery",
)


def claims(documents: Sequence[Document], kind: str) -> list[str]:
    return [attack.claim for attack in make_attacks(documents) if attack.kind == kind]


def read_corpus(folder: Path) -> list[Document]:
    with Desk.open(":memory:", embedder="none") as desk:
        desk.ingest(folder)
        return [desk.document(summary.doc_id) for summary in desk.documents()]


@pytest.fixture(scope="module")
def shop() -> list[Document]:
    return read_corpus(CHECKOUT / "corpus")


# ---------------------------------------------------------------- another number


@pytest.mark.parametrize(
    ("sentence", "among"),
    [
        ("Returns take 30 days.", {"Returns take 60 days.", "Returns take 15 days.", "Returns take 90 days."}),
        ("ফেরতের সময় ৩০ দিন।", {"ফেরতের সময় ৬০ দিন।", "ফেরতের সময় ১৫ দিন।", "ফেরতের সময় ৯০ দিন।"}),
        ("It costs 5,000 taka.", {"It costs 10,000 taka.", "It costs 2,500 taka.", "It costs 15,000 taka."}),
        ("It costs 2.50 dollars.", {"It costs 5.00 dollars.", "It costs 1.25 dollars.", "It costs 7.50 dollars.", "It costs 3.50 dollars."}),
        ("We keep 80% of it.", {"We keep 40% of it."}),
        ("We began in 1999.", {"We began in 2000.", "We began in 2002.", "We began in 1997."}),
        ("It takes 3 to 4 days.", {"It takes 2 to 4 days.", "It takes 1.5 to 4 days.", "It takes 3 to 8 days.", "It takes 3 to 5 days."}),
    ],
)  # fmt: skip
def test_another_number_is_plausible_and_written_as_the_first(sentence, among):
    assert with_another_number(sentence, sentence) in among


def test_another_number_is_none_that_the_evidence_holds_nor_one_in_another_unit():
    # 60 and 15 stand there, and 90 does as 90 days
    assert with_another_number("Returns take 30 days.", "Returns take 30 days, not 60, 15 or 90.") is None
    # twice 12 hours is the day that the evidence speaks of
    assert with_another_number("It takes 12 hours.", "It takes 12 hours, and 1 day at most.") not in (
        "It takes 24 hours.",
        "It takes 12 hours.",
    )


def test_words_before_a_unit_of_time_are_numbers_too():
    claim = with_another_number(
        "The frame is covered for five years.", "The frame is covered for five years, a tyre for two."
    )
    assert claim is not None
    assert claim.removeprefix("The frame is covered for ").removesuffix(" years.") in {
        "three", "four", "six", "seven", "eight", "nine", "ten",
    }  # fmt: skip


@pytest.mark.parametrize("sentence", ["No number stands here.", "Ride model RD2-24 no more.", "It is so [4]."])
def test_codes_and_footnotes_are_no_numbers(sentence):
    assert with_another_number(sentence, sentence) is None


@given(st.integers(1, 999_999), st.sampled_from(["0123456789", "০১২৩৪৫৬৭৮৯"]))
def test_the_digits_stay_in_their_script_and_the_number_is_always_another(value, digits):
    sentence = f"It is {''.join(digits[int(d)] for d in str(value))} here."
    claim = with_another_number(sentence, sentence)
    if claim is not None:
        assert {number.value for number in numbers(claim)}.isdisjoint({value})
        assert all(char in digits for char in claim if char.isdigit())


# ---------------------------------------------------------------- no for yes


@pytest.mark.parametrize(
    ("sentence", "claim"),
    [
        (RETURNS, "You cannot return a new bike within 30 days of delivery."),
        ("The repair is free.", "The repair is not free."),
        ("Frames with a crack are affected.", "Frames with a crack are not affected."),
        ("We keep support chats for 90 days.", "We do not keep support chats for 90 days."),
        ("We do not match auctions.", "We match auctions."),
        ("You cannot return a custom bike.", "You can return a custom bike."),
        ("You can't return a custom bike.", "You can return a custom bike."),
        ("We won’t sell your data.", "We will sell your data."),
        ("Tyres are not covered.", "Tyres are covered."),
        ("টাকা বিকাশে পাঠানো হবে।", "টাকা বিকাশে পাঠানো হবে না।"),
        ("টাকা বিকাশে পাঠানো হবে না।", "টাকা বিকাশে পাঠানো হবে।"),
        ("সারা দেশে ডেলিভারি ফ্রি।", "সারা দেশে ডেলিভারি ফ্রি নয়।"),
        ("ঢাকায় আমাদের দোকান আছে।", "ঢাকায় আমাদের দোকান নেই।"),
        ("সেতুটি গত বছর তৈরি হয়েছে।", "সেতুটি গত বছর তৈরি হয়নি।"),
        ("তিনি বইটি অনুবাদ করেছিলেন।", "তিনি বইটি অনুবাদ করেননি।"),
        ("তিনি সেরা পুরস্কারটি পেয়েছেন।", "তিনি সেরা পুরস্কারটি পাননি।"),
    ],
)
def test_a_claim_says_no_for_yes_and_yes_for_no(sentence, claim):
    assert normalise(with_another_polarity(sentence)) == normalise(claim)


@pytest.mark.parametrize(
    "sentence",
    [
        "If you can wait, ship it later.",  # not the main clause
        "You get information we may hold.",  # nor a clause without which
        "It is not free and is not fast.",  # two
        "You can only return a new bike.",  # what would be denied, the return or the only?
        "We are not only cheap.",
        "Returned bikes arrive tomorrow.",  # no verb that is known
        "শুধু নতুন বাইক ফেরত নেওয়া হয়।",
        "নতুন বাইক ছাড়া ফেরত নেওয়া হয় না।",
        "আগ্রাবাদের বড় শোরুম।",
    ],
)
def test_where_no_rule_is_safe_a_sentence_is_left_alone(sentence):
    assert with_another_polarity(sentence) is None


# ---------------------------------------------------------------- the same in other words


@pytest.mark.parametrize(
    ("sentence", "claim"),
    [
        ("We don't sell data.", "We do not sell data."),
        ("Don’t charge a wet battery.", "Do not charge a wet battery."),
        ("Tyres are not covered.", "Tyres aren't covered."),
        ("Orders of 5,000 taka ship free.", "Orders of 5000 taka ship free."),
        ("We keep 5% as a fee.", "We keep 5 percent as a fee."),
        ("It takes 5 working days.", "It takes five working days."),
        ("However, the frame is covered.", "The frame is covered."),
        ("সময় ৩০ দিন।", "সময় 30 দিন।"),
        ("চার্জ ৫,০০০ টাকা।", "চার্জ 5000 টাকা।"),
    ],
)
def test_a_sentence_written_another_way_means_the_same(sentence, claim):
    assert reworded(sentence) == claim


def test_a_sentence_that_can_be_written_one_way_only_is_left_alone():
    assert reworded("The frame is covered.") is None
    assert reworded("We are not only cheap.") is None


# ---------------------------------------------------------------- attacks of documents


def test_each_attack_carries_its_claim_its_chunk_and_the_sentence_it_came_from():
    document = make_document(RETURNS)
    assert make_attacks([document], per_kind=1)[1] == Attack(
        "negation", "You cannot return a new bike within 30 days of delivery.", "returns-v1:c0", RETURNS, RETURNS
    )


def test_a_subject_is_swapped_for_another_documents_title_name_code_or_title_noun():
    battery = make_document(
        "The battery is guaranteed for two years. Code E21 means that the cell is hot. Our E-bike batteries policy is short.",
        family="battery",
        title="E-bike batteries policy",
    )
    recall = make_document("Stop riding model RD2-24 at once, in Patenga too.", family="recall", title="Recalls")
    swapped = claims([battery, recall, SHIPPING], "subject")
    assert {claim for claim in swapped if claim.startswith("The ")} <= {
        "The recall is guaranteed for two years.",
        "The delivery is guaranteed for two years.",
    }
    assert "Code RD2-24 means that the cell is hot." in swapped
    assert "Stop riding model RD2-24 at once, in Bangladesh too." in swapped
    assert {"Our Recalls is short.", "Our Shipping and delivery is short."} & set(swapped)
    assert "Orders of 5,000 taka or more ship free in Patenga." in swapped


def test_a_subject_is_never_one_that_the_evidence_speaks_of():
    twin = make_document("Bikes go back to Agrabad in thirty days.", family="twin", title="Returns policy")
    document = make_document("Bikes of the Agrabad shop go back soon.", title="Returns policy")
    assert claims([twin, document], "subject") == []


def test_an_outdated_sentence_holds_what_the_version_in_force_does_not():
    former = make_document(
        "You can return a new bike within 14 days of delivery. We never take a custom bike back. Bikes are checked by hand.",
        version="v1",
        status="superseded",
    )
    now = make_document("Bikes are checked by hand at the shop.", RETURNS, version="v2")
    outdated = [attack for attack in make_attacks([former, now]) if attack.kind == "outdated"]
    assert {(attack.claim, attack.chunk_id) for attack in outdated} == {
        ("You can return a new bike within 14 days of delivery.", "returns-v2:c1"),
        ("We never take a custom bike back.", "returns-v2:c0"),
    }


def test_without_a_version_in_force_nothing_is_outdated():
    former = make_document("You can return a new bike within 14 days of delivery.", status="superseded")
    assert make_attacks([former]) == []


def test_another_documents_sentence_is_cited_to_the_chunk_that_shares_most_and_does_not_say_it():
    twin = make_document(RETURNS, "A new bike is checked on delivery.", family="bikes", title="Bikes")
    attacks = make_attacks([make_document(RETURNS), twin])
    cited = {attack.chunk_id for attack in attacks if attack.kind == "other_document" and attack.claim == RETURNS}
    assert "bikes-v1:c0" not in cited
    assert cited <= {"bikes-v1:c1", "returns-v1:c0"}


def test_headings_lists_tables_pointers_and_sentences_about_it_make_no_claims():
    document = make_document(
        "# Returns of bikes and parts\n\n- Bikes, parts and clothes\n\n| fee | 5% |\n\n"
        "It takes five working days to arrive. For more details, please see our shipping policy."
        " Is every bike checked by hand?\n\n1. Every bike is checked by hand."
    )
    assert claims([document], "verbatim") == ["Every bike is checked by hand."]


def test_a_sentence_is_quoted_whole_after_its_list_mark():
    document = make_document("- Bikes sold from 2019- 2021 are covered by the old warranty.")
    assert claims([document], "verbatim") == ["Bikes sold from 2019- 2021 are covered by the old warranty."]


def test_the_same_documents_give_the_same_attacks_in_whatever_order_they_come(shop):
    assert make_attacks(shop, seed=3) == make_attacks(shop[::-1], seed=3)


def test_another_seed_and_a_smaller_number_take_others_and_fewer(shop):
    few, others = make_attacks(shop, per_kind=3), make_attacks(shop, per_kind=3, seed=1)
    assert few != others
    assert [attack.kind for attack in few] == [kind for kind in KINDS for _ in range(3)]
    assert set(few) <= set(make_attacks(shop, per_kind=10))


@pytest.mark.parametrize("per_kind", [0, -1, True, 2.5])
def test_a_number_of_attacks_below_one_is_refused(shop, per_kind):
    with pytest.raises(ValueError, match="per_kind must be"):
        make_attacks(shop, per_kind=per_kind)


def test_no_attack_is_what_its_evidence_says_and_every_control_is(shop):
    attacks = make_attacks(shop)
    assert {attack.kind for attack in attacks} == set(KINDS)
    for attack in attacks:
        evidence = " ".join(attack.evidence.split())
        if attack.kind in CONTROLS:
            assert attack.sentence in evidence
        else:
            assert attack.claim not in evidence


def test_attacks_come_in_both_languages(shop):
    attacks = make_attacks(shop)
    for kind in ("number", "negation", "verbatim", "reworded", "other_document"):
        assert {attack.chunk_id.split(":")[0].endswith("-bn") for attack in attacks if attack.kind == kind} == {
            True,
            False,
        }


# ---------------------------------------------------------------- what a check makes of them


class Saying:
    """A check that says the same of everything, or raises."""

    name = "saying"

    def __init__(self, verdict: str | None) -> None:
        self.verdict = verdict

    def check(self, claim: str, evidences: Sequence[str]) -> Sequence[Support]:
        if self.verdict is None:
            raise RuntimeError("the model is away")
        return [Support((), 1.0, True, self.verdict, "") for _ in evidences]


ONE_OF_EACH = [Attack(kind, "c", "d:c0", "e", "s") for kind in ("number", "negation", "verbatim")]


def test_a_check_that_passes_everything_blocks_no_attack():
    report = block_rates(ONE_OF_EACH, Saying("supported"))
    assert [report.blocked[kind] for kind in ("number", "negation", "verbatim")] == [Rate(0, 1)] * 3
    assert [judged.attack.kind for judged in report.passed] == ["number", "negation"]
    assert report.turned_away == report.failed == ()


@pytest.mark.parametrize("verdict", ["unsupported", "contradicted", "unchecked"])
def test_a_check_that_blocks_everything_is_seen_by_the_controls(verdict):
    report = block_rates(ONE_OF_EACH, Saying(verdict))
    assert [report.blocked[kind] for kind in ("number", "negation", "verbatim")] == [Rate(1, 1)] * 3
    assert [judged.attack.kind for judged in report.turned_away] == ["verbatim"]
    assert report.passed == ()


def test_kinds_without_attacks_do_not_apply():
    """BR-110"""
    assert block_rates(ONE_OF_EACH, Saying("supported")).blocked["outdated"].value is None


def test_a_check_that_raises_counts_against_itself_and_leaves_no_denominator():
    """BR-109"""
    report = block_rates(ONE_OF_EACH, Saying(None))
    assert [report.blocked[kind] for kind in ("number", "negation", "verbatim")] == [Rate(0, 1), Rate(0, 1), Rate(1, 1)]
    assert [judged.error for judged in report.failed] == ["RuntimeError: the model is away"] * 3


def test_a_check_that_gives_no_verdict_has_failed():
    class Silent(Saying):
        def check(self, claim: str, evidences: Sequence[str]) -> Sequence[Support]:
            return []

    assert len(block_rates(ONE_OF_EACH, Silent("supported")).failed) == 3


def test_the_rules_block_nearly_every_attack_on_the_shops_documents_and_let_the_true_ones_through(shop):
    report = block_rates(make_attacks(shop), RuleChecker())
    for kind in KINDS:
        wrong = report.blocked[kind].value if kind in CONTROLS else 1 - report.blocked[kind].value
        assert wrong <= 0.1, (kind, report.passed, report.turned_away)


@pytest.mark.evaldata
@pytest.mark.parametrize("name", ["ver_policies", "bn_tydi"])
def test_the_rules_hold_against_public_documents(name):
    data = Path(os.environ.get("EVIDENCEDESK_EVALDATA") or CHECKOUT.parent / "shared" / "evaldata")
    if not (data / name / "corpus").is_dir():
        pytest.skip(f"no {name} beside the checkout")
    report = block_rates(make_attacks(read_corpus(data / name / "corpus"), per_kind=60), RuleChecker())
    attacks = sum((report.blocked[kind] for kind in KINDS if kind not in CONTROLS), Rate(0, 0))
    controls = sum((report.blocked[kind] for kind in CONTROLS), Rate(0, 0))
    assert attacks.of > 150
    assert attacks.value >= 0.9
    assert controls.value <= 0.05


# ---------------------------------------------------------------- questions that nothing answers


def test_off_corpus_questions_are_asked_in_both_languages(shop):
    questions = off_corpus_questions(shop)
    bangla = [question for question in questions if not question.isascii()]
    assert len(bangla) >= 10
    assert len(questions) - len(bangla) >= 10


def test_an_off_corpus_question_is_left_out_where_a_document_of_any_status_holds_its_words():
    document = make_document("Our violins have new strings.", status="superseded")
    everything = off_corpus_questions([])
    assert set(everything) - set(off_corpus_questions([document])) == {"How many strings does a violin have?"}
