"""Whether a text supports a claim: what words alone say, what each signal finds, and what must never pass."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidencedesk.citations.amounts import amounts, compare
from evidencedesk.citations.reading import read
from evidencedesk.citations.support import (
    LIKENESS_SCALES,
    LikenessScale,
    RuleChecker,
    Similarity,
    SupportChecker,
    check_support,
)
from evidencedesk.embeddings import CallableEmbedder, ToyEmbedder
from evidencedesk.errors import EmbedderError
from evidencedesk.text import analyse, key_words, numbers, sentences

CHECKOUT = Path(__file__).resolve().parent.parent
CORPUS = CHECKOUT / "corpus"
EVALDATA = Path(os.environ.get("EVIDENCEDESK_EVALDATA") or CHECKOUT.parent / "shared" / "evaldata")
RETURNS = (
    "You can return a new, unridden bike within 30 days of delivery.\n"
    "Bring it to our Agrabad store with the invoice; a full refund follows after a short check."
)
RETURNS_BN = (
    "একবারও চালানো হয়নি এমন নতুন বাইক ডেলিভারি পাওয়ার ৩০ দিনের মধ্যে ফেরত দিতে পারবেন।\n"
    "রসিদসহ বাইকটি আমাদের আগ্রাবাদ শোরুমে নিয়ে আসুন; দেখে নেওয়ার পর পুরো টাকা ফেরত পাবেন।"
)
REFUNDS = (
    "Refunds go to the card or bKash account you paid with. If you paid in cash, we send the money by bKash."
    " It reaches you within 5 working days of the check."
)
REFUNDS_BN = "নগদে কিনে থাকলে টাকা বিকাশে পাঠানো হবে। বাইক দেখে নেওয়ার পর ৫ কর্মদিবসের মধ্যেই টাকা পেয়ে যাবেন।"
CHARGES = (
    "Orders of 5,000 taka or more ship free anywhere in Bangladesh.\n"
    "Below that we charge 80 taka in Chattogram and 150 taka in other districts."
)
WARRANTY = "The frame is covered for five years, an e-bike battery for two and every other part for one."
PAYMENTS = "We keep orders and invoices for six years for our tax records.\nYour card number and your bKash PIN never reach us."
SERVICING = (
    "The first service of a bike bought from us is free during its first three months.\n"
    "Every later service costs 800 taka, parts not included."
)
CHARGES_BN = "৫,০০০ টাকা বা তার বেশি কেনাকাটায় দেশের যেকোনো জায়গায় ডেলিভারি ফ্রি।\nএর কম হলে চট্টগ্রামে চার্জ ৮০ টাকা, অন্য জেলায় ১৫০ টাকা।"
NOT_COVERED = (
    "Tyres, chains and brake pads wear out in normal use and are not covered.\nNeither is damage from a crash."
)


def verdict(claim: str, evidence: str) -> str:
    return check_support(claim, evidence).verdict


def signals(claim: str, evidence: str) -> set[tuple[str, str]]:
    """Name and effect of the signals that do not speak for the claim."""
    found = check_support(claim, evidence).signals
    return {(signal.name, signal.effect) for signal in found if signal.effect != "supports"}


def relation(claim: str, evidence: str) -> str:
    """How the one amount of the claim stands to the one of the evidence."""
    (one,), (other,) = (amounts(text, analyse(text), numbers(text)) for text in (claim, evidence))
    return compare(one, other)


# ---------------------------------------------------------------- words alone


@pytest.mark.parametrize(
    ("claim", "missing", "share", "words_ok"),
    [
        ("You can return a new, unridden bike within 30 days of delivery.", (), 1.0, True),
        ("You can return a new, unridden bike within 60 days of delivery.", ("60",), 1.0, False),
        ("Orders above 500 ship free.", ("500",), 0.0, False),
        ("A bike can be sent back for a full refund up to a month after it arrives.", (), 0.444, False),
        ("You can return a used bike within 30 days of delivery.", (), 0.833, True),
        ("You cannot return a bike within 30 days of delivery.", (), 0.833, True),
        ("You can return a bike within 60 days of delivery.", ("60",), 1.0, False),
    ],
)
def test_words_alone_give_the_published_table(
    claim: str, missing: tuple[str, ...], share: float, words_ok: bool
) -> None:
    support = check_support(claim, RETURNS)
    assert (support.numbers_missing, support.share, support.words_ok) == (missing, share, words_ok)


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("You can return a new, unridden bike within 30 days of delivery.", "supported"),
        ("A bike can be sent back for a full refund up to a month after it arrives.", "supported"),
        ("You can return a used bike within 30 days of delivery.", "contradicted"),
        ("You cannot return a bike within 30 days of delivery.", "contradicted"),
        ("You can return a bike within 60 days of delivery.", "contradicted"),
        ("Orders above 500 ship free.", "unsupported"),
    ],
)
def test_the_verdict_accepts_the_fair_paraphrase_and_turns_away_what_words_let_pass(claim: str, expected: str) -> None:
    assert verdict(claim, RETURNS) == expected


def test_key_words_and_numbers_are_those_of_the_text_analysis() -> None:
    assert read(RETURNS).key_words == tuple(key_words(RETURNS))
    assert read(CHARGES).numbers == tuple(numbers(CHARGES))


def test_missing_numbers_are_named_as_the_claim_writes_them_and_footnotes_are_none() -> None:
    assert check_support("১,০০০ টাকা ও ৭ দিন।", "1000 টাকা।").numbers_missing == ("৭",)
    assert check_support("Returns take 30 days. [2]", RETURNS).numbers_missing == ()


# ---------------------------------------------------------------- amounts


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,000", "1000"),
        ("1 000", "১,০০০"),
        ("1'000", "1000.00"),
        ("+1000", "1000"),
        ("thirty days", "30 days"),
        ("৩০ দিন", "ত্রিশ দিন"),
        ("one hundred and fifty taka", "150 taka"),
        ("a dozen", "12"),
        ("half a dozen", "6"),
        ("$890M", "$890,000,000"),
        ("890 million", "890,000,000"),
        ("30%", "thirty per cent"),
        ("30%", "0.3"),
        ("half", "50%"),
        ("1/2", "half"),
        ("a month", "30 days"),
        ("এক মাস", "৩০ দিন"),
        ("two years", "24 months"),
        ("a week", "7 days"),
        ("24 hours", "a day"),
        ("1 kg", "1000 grams"),
        ("2 km", "2000 metres"),
        ("five business days", "5 working days"),
        ("5-7 days", "between five and seven days"),
        ("5 to 7 days", "5–7 days"),
        ("50 percent to 60 percent", "50% to 60%"),
        ("5 days to 7 days", "between five and seven days"),
        ("7th", "seventh"),
        ("1st", "first"),
        ("within 30 days", "up to a month"),
        ("no later than 30 days", "within 30 days"),
        ("at least 5", "5 or more"),
        ("5+", "at least 5"),
        ("more than 500 taka", "over 500 taka"),
        ("30 days", "within 30 days"),
        ("about 30", "30"),
        ("after 30 days", "30 days after"),
        ("1924", "1924–2004"),
        ("৫,০০০ টাকা বা তার বেশি", "5000 taka or more"),
    ],
)
def test_equal_amounts_however_they_are_written(one: str, other: str) -> None:
    """BR-99, BR-101."""
    assert relation(one, other) == "same"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1000", "10000"),
        ("100", "1000"),
        ("within 60 days", "within 30 days"),
        ("60 days", "within 30 days"),
        ("500 taka", "5,000 taka or more"),
        ("3 months", "30 days"),
        ("8 days", "5-7 days"),
        ("within 30 days", "after 30 days"),
        ("40%", "0.3"),
        ("more than 5", "5"),
    ],
)
def test_amounts_that_exclude_each_other(one: str, other: str) -> None:
    """BR-99: 100 is not found inside 1000."""
    assert relation(one, other) == "other"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("at least 5", "5"),
        ("5", "at least 5"),
        ("up to 5", "5"),
        ("more than 5", "at least 5"),
        ("6 days", "5-7 days"),
        ("5 days", "5-7 days"),
        ("30", "about 30"),
        ("four weeks", "a month"),
        ("20 days", "within 30 days"),
        ("2019", "2019-20"),
        ("30 days", "30"),
    ],
)
def test_what_can_be_compared_and_is_not_on_the_list_is_left_open(one: str, other: str) -> None:
    """BR-101: not checked, never supported."""
    assert relation(one, other) == "open"


def test_a_working_day_is_another_unit_than_a_day() -> None:
    assert relation("5 days", "5 working days") == "unit"
    assert relation("30", "30%") == "unit"
    assert relation("30 taka", "30 days") == "unit"


@pytest.mark.parametrize("text", ["one of the best", "no one", "50 taka a day", "এটি নতুন নয়।", "once a week"])
def test_what_is_no_amount_of_its_own(text: str) -> None:
    assert [a for a in amounts(text, analyse(text), numbers(text)) if a.low == 1 or a.low == Decimal(9)] == []


def test_a_list_shares_the_unit_of_its_first_amount() -> None:
    found = [(int(a.low), a.unit) for a in amounts(WARRANTY, analyse(WARRANTY), numbers(WARRANTY))]
    assert found == [(5, "year"), (2, "year"), (1, "year")]


def test_a_number_word_behind_the_stop_of_a_figure_is_an_amount_of_its_own() -> None:
    text = "He was born in 1914. Three years later he moved."
    assert [int(a.low) for a in amounts(text, analyse(text), numbers(text))] == [1914, 3]


def test_a_change_from_one_amount_to_another_is_no_range() -> None:
    assert verdict("The fee is now 60 taka.", "The fee rose from 50 taka to 60 taka.") != "contradicted"
    text = "The fee rose from 50 taka to 60 taka."
    assert [(int(a.low), int(a.high)) for a in amounts(text, analyse(text), numbers(text))] == [(50, 50), (60, 60)]


def test_the_wrong_number_is_named_however_many_words_agree() -> None:
    """BR-102."""
    support = check_support("The legal age is 62.", "The legal age is 64.")
    assert (support.share, support.verdict, support.numbers_missing) == (1.0, "unsupported", ("62",))
    assert '"62"' in support.reason


def test_a_number_counts_in_the_sentence_that_the_claim_is_about() -> None:
    """BR-102: the right number from another sentence."""
    evidence = "The shop opens at 9 taka parking. A helmet costs 900 taka. The repair of a chain costs 300 taka."
    assert verdict("The repair of a chain costs 300 taka.", evidence) == "supported"
    assert verdict("The repair of a chain costs 900 taka.", evidence) == "contradicted"
    assert verdict("The repair costs 900 taka.", evidence) == "contradicted"
    staff = "The shop has 12 mechanics.\nIt was painted red.\nBikes are sold with a bell."
    assert ("number", "lacks") in signals("Bikes are sold with 12 bells.", staff)


@pytest.mark.parametrize(
    "claim",
    [
        "We charge 150 taka in Chattogram and 80 taka in other districts.",
        "Delivery in Chattogram costs 150 taka.",
        "In other districts we charge 80 taka.",
    ],
)
def test_two_amounts_that_changed_places_contradict(claim: str) -> None:
    """BR-102: a swapped pair."""
    assert verdict(claim, CHARGES) != "supported"
    assert ("number", "contradicts") in signals(claim, CHARGES)


def test_amounts_stay_with_what_they_are_about() -> None:
    assert verdict("An e-bike battery is covered for 24 months.", WARRANTY) == "supported"
    assert verdict("The battery is covered for five years.", WARRANTY) == "contradicted"
    assert verdict("চট্টগ্রামে চার্জ ৮০ টাকা।", "এর কম হলে চট্টগ্রামে চার্জ ৮০ টাকা, অন্য জেলায় ১৫০ টাকা।") == "supported"
    assert verdict("চট্টগ্রামে চার্জ ১৫০ টাকা।", "এর কম হলে চট্টগ্রামে চার্জ ৮০ টাকা, অন্য জেলায় ১৫০ টাকা।") == "contradicted"


def test_codes_dates_and_times_have_to_be_the_same() -> None:
    evidence = "Stop riding model RD2-24, because its brake hose can leak. It was recalled on 2024-01-15 at 10:30."
    assert verdict("Stop riding model RD2-24.", evidence) == "supported"
    assert verdict("Stop riding model RD2–24.", evidence) == "supported"
    assert signals("Stop riding model RD2-25.", evidence) == {("code", "lacks")}
    assert ("code", "lacks") in signals("It was recalled on 2024-01-16.", evidence)
    assert ("code", "lacks") in signals("It was recalled in Q3.", evidence)


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("Write to privacy@basecamp.com for a copy.", "Write to privacy@37signals.com for a copy."),
        ("Write to help@shop.example for a copy.", "Write to privacy@shop.example for a copy."),
        ("The form is at https://shop.example/returns today.", "The form is at https://shop.example/refunds today."),
        ("The form is at shop.example/returns today.", "The form is at shop.test/returns today."),
        ("Set max_size before the first run.", "Set min_size before the first run."),
    ],
)
def test_addresses_and_other_codes_without_a_digit_have_to_be_the_same_too(claim: str, evidence: str) -> None:
    assert ("code", "lacks") in signals(claim, evidence)
    assert verdict(evidence.replace(" the ", " a "), evidence) == "supported"


def test_an_address_is_the_same_without_scheme_www_and_last_stroke() -> None:
    assert verdict("The form is at www.shop.example/returns.", "See the form at https://shop.example/returns/.") == (
        "supported"
    )


def test_initials_and_sentences_without_a_space_between_are_no_codes() -> None:
    assert verdict("The shop ships to the U.S. from Dhaka.", "We ship to the US from the shop in Dhaka.") == "supported"
    assert read("Bikes are red.They are new.").sentences[0].codes == ()


# ---------------------------------------------------------------- whom and what it is about


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        (
            "Under the Uighurs, the practice of medicine spread to other parts of the empire.",
            "Under the Mongols, the practice of medicine spread to other parts of the empire. Uzbek doctors came.",
        ),
        (
            "The Royal Geographical Society of Muslim had great influence and funded travellers.",
            "The Royal Geographical Society of London had great influence and funded travellers.",
        ),
        (
            "During the Sinback dynasty, the Emperor Kublai Khan invited the Duke to return to Qufu.",
            "During the Yuan dynasty, the Emperor Kublai Khan invited the Duke to return to Qufu.",
        ),
        (
            "In World War II, Charles de Reflection and the Free French used the colonies as bases.",
            "In World War II, Charles de Gaulle and the Free French used the colonies as bases.",
        ),
        (
            "The Mongols and Tangut were given certain advantages in the dynasty.",
            "The Mongols and Semuren were given certain advantages in the dynasty.",
        ),
        ("The Harvard Cuba of Art is a large building.", "The Harvard Museum of Art is a large building."),
        ("রাধাগোবিন্দ চন্দ্র (हिन्दी) ভারতের সরকারী ভাষা।", "হিন্দি ভাষা (हिन्दी) ভারতের সরকারী ভাষা।"),
        (
            "আলচি বিহার বাংলাদেশের একটি সরকারী পর্যায়ে পরিচালিত উচ্চ শিক্ষা প্রতিষ্ঠান।",
            "মাওলানা ভাসানী বিজ্ঞান ও প্রযুক্তি বিশ্ববিদ্যালয় বাংলাদেশের একটি সরকারী পর্যায়ে পরিচালিত উচ্চ শিক্ষা প্রতিষ্ঠান।",
        ),
        (
            "শাসন শেষে ব্রিটিশ মাক্স মুলার স্বাধীনতা লাভ করে এবং গায়ানা নাম নেয়।",
            "শাসন শেষে ব্রিটিশ গায়ানা স্বাধীনতা লাভ করে এবং গায়ানা নাম নেয়।",
        ),
    ],
)
def test_a_sentence_about_somebody_else_in_the_same_words_is_not_supported(claim: str, evidence: str) -> None:
    """Bangla has no capitals: there the place in the sentence tells."""
    assert verdict(claim, evidence) == "unsupported"


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("Sean Penn wrote the screenplay for The Canyons.", "Penn also wrote the screenplay for the film The Canyons."),
        ("In 1986, Tatum O'Neal got married.", "In 1986, O'Neal married the tennis player John McEnroe."),
        ("Ernest Medina was tried for the My Lai Massacre.", "He was tried in 1971 for the My Lai Massacre."),
        ("Due Date was shot in Montana.", "The film was only shot in Montana."),
        ("Tim Roth is an English actor.", "Timothy Simon Roth is an English actor and director."),
        ("Error E21 means that the battery is hot.", "Code E21 on the display means that the battery is hot."),
        ("Customers can return a new bike within 30 days.", "A new, unridden bike can be returned within 30 days."),
    ],
)
def test_a_subject_that_the_evidence_means_without_naming_it_in_full_is_accepted(claim: str, evidence: str) -> None:
    """Titles stand above a chunk, not in it."""
    assert verdict(claim, evidence) == "supported"


# ---------------------------------------------------------------- negation, opposites, qualifiers, conditions


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("Tyres are covered.", NOT_COVERED),
        ("The account can be closed online.", "The account cannot be closed online."),
        ("We never charge a fee.", "We charge a fee."),
        ("The shop no longer sells tyres.", "The shop sells tyres."),
        ("Bikes are sold without a bell.", "Bikes are sold with a bell."),
        ("Two-step login is disabled by default.", "Two-step login is enabled by default."),
        ("Refunds are allowed.", "Refunds are forbidden."),
        ("Show us the price after you buy.", "Show us the price before you buy."),
        ("Charge the battery outdoors.", "Charge the battery indoors."),
        ("The delivery price includes tax.", "The delivery price excludes tax."),
        ("A card can be turned into cash.", "A card cannot be turned into cash."),
        ("বাইক ফেরত দেওয়া যায় না।", "বাইক ফেরত দেওয়া যায়।"),
        ("দোকানে হেলমেট নেই।", "দোকানে হেলমেট আছে।"),
        ("এটি নতুন বাইক নয়।", "এটি নতুন বাইক।"),
        ("টাকা ফেরত দেওয়া হয়নি।", "টাকা ফেরত দেওয়া হয়।"),
        ("আগের দিন ফোন করা হবে।", "পরের দিন ফোন করা হবে।"),
        ("পুরনো বাইক ৩০ দিনের মধ্যে ফেরত দিতে পারবেন।", RETURNS_BN),
        ("নতুন বাইক ৩০ দিনের মধ্যে ফেরত দিতে পারবেন না।", RETURNS_BN),
    ],
)
def test_the_opposite_in_the_same_words_is_never_supported(claim: str, evidence: str) -> None:
    """BR-103; BR-47 and BR-48 for Bangla."""
    assert verdict(claim, evidence) in ("contradicted", "unsupported")


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("You decided HEY was for you and cancelled.", "You decided HEY wasn’t for you and cancelled."),
        ("Others may access and employ the API.", "Others may not access and employ the API."),
        (
            "The drug itself is immunogenic, but may be given with an immunogenic compound.",
            "The drug itself is not immunogenic, but may be given with an immunogenic compound.",
        ),
        ("Members tend to vote against such instructions.", "Members do not tend to vote against such instructions."),
        ("Members do not tend to vote against such instructions.", "Members tend to vote against such instructions."),
    ],
)
def test_the_same_words_with_a_negation_more_or_less_are_not_supported(claim: str, evidence: str) -> None:
    """BR-103: also where the negation reaches no word that decides."""
    assert any(name == "negation" for name, _ in signals(claim, evidence))
    assert not check_support(claim, evidence).ok


def test_neither_nor_is_one_negation() -> None:
    assert verdict("We neither sell nor rent your data.", "We do not sell or rent your data.") == "supported"
    assert verdict("We do not sell or rent your data.", "We neither sell nor rent your data.") == "supported"
    assert verdict("We rent your data.", "We neither sell nor rent your data.") == "contradicted"


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("Tyres are not covered.", NOT_COVERED),
        ("Refunds are not allowed.", "Refunds are not allowed for auctions."),
        ("You need no invoice for the repair.", "The repair needs no invoice and no appointment."),
        ("A custom build can be returned only if it is faulty.", "We take a custom build back only if it has a fault."),
        ("Gift cards expire three years after purchase.", "Gift cards expire three years after they are bought."),
        ("Orders of at least 5000 taka are shipped free of charge.", CHARGES),
        ("The refund arrives within five business days after the check.", REFUNDS),
        ("You have thirty days to give a new bike back.", RETURNS),
        ("নতুন বাইক ডেলিভারির এক মাসের মধ্যে ফেরত দেওয়া যায়।", RETURNS_BN),
        ("নতুন বাইক ডেলিভারির 30 দিনের মধ্যে ফেরত দেওয়া যায়।", RETURNS_BN),
    ],
)
def test_fair_paraphrases_pass_without_a_model(claim: str, evidence: str) -> None:
    """BR-48, BR-54 for Bangla: the true claim is supported, whatever its digits."""
    assert check_support(claim, evidence).reason.startswith("The evidence says so")


@pytest.mark.parametrize(
    ("claim", "name"),
    [
        ("You can return only a new bike within 30 days of delivery.", "qualifier"),
        ("You can always return a new bike within 30 days of delivery.", "qualifier"),
        ("You must return a new bike within 30 days of delivery.", "qualifier"),
        ("You can return a new bike within 30 days of delivery to Sylhet.", "name"),
    ],
)
def test_what_the_evidence_does_not_say_is_lacking(claim: str, name: str) -> None:
    assert (name, "lacks") in signals(claim, RETURNS)


def test_the_month_of_may_is_no_auxiliary_verb() -> None:
    assert verdict("The sale ends in May.", "The sale ends in December.") == "unsupported"


def test_one_word_in_the_place_of_another_is_shown_with_both() -> None:
    (signal,) = (
        signal
        for signal in check_support(
            "The courier phones you the morning before the delivery day.",
            "The courier phones you the evening before the delivery day.",
        ).signals
        if signal.name == "replaced"
    )
    assert signal.detail == 'Where the claim says "morning", the evidence says "evening".'


def test_conditions_and_doubts_that_the_claim_drops_leave_it_undecided() -> None:
    assert verdict("We take a custom build back.", "We take a custom build back only if it has a fault.") == "unchecked"
    assert verdict("ফরমায়েশি বাইক ফেরত নেওয়া হয়।", "ফরমায়েশি বাইক ফেরত নেওয়া হয় শুধু ত্রুটি থাকলে।") == "unchecked"
    assert verdict("The amount changes.", "We value the bike again, and the amount may change.") == "unchecked"


def test_what_the_evidence_only_supposes_is_not_said() -> None:
    assert verdict("Refunds are paid in cash.", REFUNDS) == "unsupported"
    assert verdict("If you paid in cash, the money is sent by bKash.", REFUNDS) == "supported"


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("We store your bKash PIN.", PAYMENTS),
        ("We keep your card number.", PAYMENTS),
        ("We have your card number.", PAYMENTS),
        ("We keep your card number.", "Your card number, like your bKash PIN, never reaches us. We keep invoices."),
        ("You can return a bike.", "You can return a bike that has not been ridden."),
    ],
)
def test_what_the_evidence_denies_of_a_thing_is_not_turned_into_something_said_of_it(claim: str, evidence: str) -> None:
    """BR-103: every word that counts stands there, and the denial is left out."""
    assert signals(claim, evidence) == {("negation", "unchecked")}


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("We keep invoices for six years.", PAYMENTS),
        ("Your bKash PIN never reaches us.", PAYMENTS),
        ("We keep orders for six years.", "We keep orders for six years and never sell them."),
        ("The shop is open daily.", "The shop is open daily and helmets are not sold."),
    ],
)
def test_a_denial_of_something_else_takes_nothing_away(claim: str, evidence: str) -> None:
    assert verdict(claim, evidence) == "supported"


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("Every later service is free.", SERVICING),
        ("Later services are at no charge.", SERVICING),
        ("Every later service is free.", "Every later service costs 800 taka."),
        ("Delivery is free.", "Pickup is free, delivery costs 80 taka."),
        ("A helmet is free.", "A helmet costs 800 taka. Delivery is free."),
        ("পরের প্রতিটি সার্ভিস ফ্রি।", "পরের প্রতিটি সার্ভিসে ৮০০ টাকা লাগে।"),
    ],
)
def test_what_has_a_price_in_the_evidence_is_not_free(claim: str, evidence: str) -> None:
    assert ("free", "contradicts") in signals(claim, evidence)
    assert verdict(claim, evidence) == "contradicted"


def test_what_is_free_has_to_be_said_to_be_so() -> None:
    assert verdict("বাইকের সার্ভিস বিনামূল্যে।", "বাইকের সার্ভিস এখানে হয়।") == "unsupported"
    assert signals("We repair bikes here for free.", "We repair bikes here. Delivery is free.") == {("free", "lacks")}


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("The first service is free during the first three months.", SERVICING),
        ("Repairs are free.", "We repair bikes here. It is free."),
        ("Repairs are free of charge.", "Repairs are at no charge to you."),
        ("Repairs are free.", "Repairs cost nothing here."),
        ("Pickup is free.", "Pickup is free, delivery costs 80 taka."),
        ("ডেলিভারি বিনামূল্যে।", "ডেলিভারি ফ্রি।"),
        ("Products are free of lead.", "Products free of lead are safe for children."),
    ],
)
def test_what_the_evidence_calls_free_in_any_words_is_free(claim: str, evidence: str) -> None:
    assert verdict(claim, evidence) == "supported"


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("Delivery is free.", CHARGES),
        ("Orders ship free anywhere in Bangladesh.", CHARGES),
        ("চট্টগ্রামে ডেলিভারি ফ্রি।", CHARGES_BN),
        ("You can return a new bike.", RETURNS),
        ("We charge 50 taka a day for storing a bike.", "After 30 days we charge 50 taka a day for storing a bike."),
    ],
)
def test_a_limit_that_the_claim_drops_leaves_it_undecided(claim: str, evidence: str) -> None:
    assert signals(claim, evidence) == {("condition", "unchecked")}


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("Orders of 5,000 taka or more ship free.", CHARGES),
        ("ফ্রি ডেলিভারি ৫,০০০ টাকা বা তার বেশি কেনাকাটায়।", CHARGES_BN),
        ("Refunds go to the card you paid with.", REFUNDS),
        ("Bring the invoice to our store.", RETURNS),
        ("The frame is covered for five years.", WARRANTY),
    ],
)
def test_a_claim_that_keeps_the_limit_or_drops_a_mere_detail_is_supported(claim: str, evidence: str) -> None:
    assert verdict(claim, evidence) == "supported"


# ---------------------------------------------------------------- what is not a claim; other languages


@pytest.mark.parametrize("claim", ["", "  \n", "Yes.", "?!", "[1]", "Do you sell bikes?", "এটা কি ফেরত নেওয়া যায়?"])
def test_what_says_nothing_that_can_be_checked_is_unchecked(claim: str) -> None:
    assert verdict(claim, RETURNS) == "unchecked"


def test_a_claim_is_as_good_as_its_worst_sentence() -> None:
    assert verdict("Yes. Bring the invoice to our store.", RETURNS) == "supported"
    assert verdict("Bring the invoice to our store. You can return a bike within 60 days.", RETURNS) == "contradicted"


def test_empty_evidence_supports_nothing() -> None:
    assert verdict("Bikes are red.", "") == "unsupported"


def test_across_languages_numbers_decide_against_and_nothing_decides_for() -> None:
    assert verdict("You can return a new, unridden bike within 30 days of delivery.", RETURNS_BN) == "unchecked"
    assert verdict("You can return a new, unridden bike within 60 days of delivery.", RETURNS_BN) == "unsupported"
    assert verdict("টাকা ৫ কর্মদিবসের মধ্যে পাবেন।", REFUNDS) == "unchecked"


def make_similarity(cosine: float) -> Similarity:
    """Every sentence is this alike."""
    return Similarity(lambda _, others: [cosine] * len(others), LikenessScale(paraphrase=0.9, translation=0.8))


@pytest.mark.parametrize(
    ("claim", "cosine", "expected"),
    [
        ("You can return a new, unridden bike within 30 days of delivery.", 0.85, "supported"),
        ("You can return a new, unridden bike within 30 days of delivery.", 0.75, "unchecked"),
        ("You can return a new, unridden bike within 60 days of delivery.", 0.99, "contradicted"),
        ("You can return a used bike within 30 days of delivery.", 0.99, "contradicted"),
        ("You cannot return a bike within 30 days of delivery.", 0.99, "unchecked"),
    ],
)
def test_a_similarity_lets_a_translation_pass_when_numbers_and_denials_agree(
    claim: str, cosine: float, expected: str
) -> None:
    assert check_support(claim, RETURNS_BN.split("\n")[0], similarity=make_similarity(cosine)).verdict == expected


@pytest.mark.parametrize("years", ["৫", "২", "১"])
def test_across_languages_a_number_beside_others_of_its_kind_proves_nothing(years: str) -> None:
    """BR-102: five years is right of the frame only, and no word here can be compared."""
    support = check_support(f"ই-বাইকের ব্যাটারির ওয়ারেন্টি {years} বছর।", WARRANTY, similarity=make_similarity(0.99))
    assert support.verdict == "unchecked"
    one = check_support("ব্যাটারির ওয়ারেন্টি ২ বছর।", "We cover a battery for two years.", similarity=make_similarity(0.99))
    assert one.verdict == "supported"


def test_across_languages_a_limit_that_the_claim_drops_leaves_it_undecided() -> None:
    support = check_support("ডেলিভারি ফ্রি।", CHARGES.split("\n")[0], similarity=make_similarity(0.99))
    assert support.verdict == "unchecked"
    kept = "৫,০০০ টাকা বা তার বেশি কেনাকাটায় ডেলিভারি ফ্রি।"
    assert check_support(kept, CHARGES.split("\n")[0], similarity=make_similarity(0.99)).ok


def test_across_languages_what_has_a_price_is_not_free() -> None:
    priced = check_support("পরের সার্ভিস ফ্রি।", "Every later service costs 800 taka.", similarity=make_similarity(0.99))
    assert not priced.ok


def test_a_similarity_makes_up_for_words_and_for_nothing_else() -> None:
    evidence = "Gift vouchers run out three years after you get hold of them."
    claim = "Presents on paper lapse three years after issue."
    assert verdict(claim, evidence) == "unsupported"
    assert check_support(claim, evidence, similarity=make_similarity(0.95)).verdict == "supported"
    assert check_support(claim, evidence, similarity=make_similarity(0.85)).verdict == "unsupported"
    four = claim.replace("three", "four")
    assert check_support(four, evidence, similarity=make_similarity(0.99)).verdict != "supported"


# ---------------------------------------------------------------- the checker


def test_the_rule_checker_judges_each_evidence_alone() -> None:
    checker: SupportChecker = RuleChecker()
    claim = "You can return a new, unridden bike within 30 days of delivery."
    found = checker.check(claim, [RETURNS, "We sell helmets.", "You can return a bike."])
    assert [support.verdict for support in found] == ["supported", "unsupported", "unsupported"]
    assert found[0] == check_support(claim, RETURNS)
    assert RuleChecker().check(claim, []) == []


def test_the_rule_checker_embeds_in_one_batch_and_only_where_it_could_help() -> None:
    calls: list[list[str]] = []

    def embed(texts: Sequence[str]) -> np.ndarray:
        calls.append(list(texts))
        return np.ones((len(texts), 3))

    embedder = CallableEmbedder(embed, name="ones", dimension=3)
    checker = RuleChecker(embedder, scale=LikenessScale(paraphrase=0.9, translation=0.9))
    (support,) = checker.check("The money reaches you within 5 working days.", [REFUNDS_BN.split("।")[1] + "।"])
    assert [len(call) for call in calls] == [2]
    assert support.verdict == "supported"
    checker.check("Bring the invoice to our store.", [RETURNS])
    checker.check("You can return a bike within 60 days.", [RETURNS])
    assert len(calls) == 1


def test_an_embedder_without_a_known_scale_is_left_out() -> None:
    claim = "The money reaches you within 5 working days."
    assert RuleChecker(ToyEmbedder()).check(claim, [REFUNDS_BN]) == RuleChecker().check(claim, [REFUNDS_BN])
    assert "e5 multilingual-e5-small" in LIKENESS_SCALES


def test_an_embedder_that_fails_raises_its_own_error() -> None:
    def fail(texts: Sequence[str]) -> np.ndarray:
        raise RuntimeError("out of memory")

    checker = RuleChecker(
        CallableEmbedder(fail, name="broken", dimension=3), scale=LikenessScale(paraphrase=0.9, translation=0.9)
    )
    with pytest.raises(EmbedderError):
        checker.check("The money reaches you within 5 working days.", [REFUNDS_BN])


# ---------------------------------------------------------------- laws


def corpus_sentences() -> list[tuple[str, str, bool]]:
    """Each sentence of the corpus, its section, and whether it is Bangla."""
    found = []
    for path in sorted(CORPUS.glob("*.md")):
        body = path.read_text(encoding="utf-8").split("---", 2)[2]
        for section in re.split(r"^#+ .*$", body, flags=re.MULTILINE):
            found += [(section[start:end], section, path.stem.endswith("-bn")) for start, end in sentences(section)]
    return found


def test_every_corpus_sentence_supports_itself() -> None:
    found = corpus_sentences()
    assert len(found) > 70
    refused = [s for s, section, _ in found for text in (s, section) if not check_support(s, text).ok]
    assert refused == []


def retyped(sentence: str) -> str:
    """Other white space, quotes and dashes, and no list mark."""
    plain = re.sub(r"\A(?:[-*+•]|\d{1,3}[.)।])\s+", "", sentence)
    return "  ".join(plain.split()).translate({0x2019: "'", 0x201C: '"', 0x201D: '"', 0x2013: "-", 0x2014: "-"})


def refused_quotations(text: str, every: int = 1) -> list[str]:
    """Sentences of a text that it does not support, those left out that ask or hold no word."""
    quoted = [text[start:end] for start, end in sentences(text)[::every]]
    return [
        form
        for sentence in quoted
        for form in (sentence, retyped(sentence))
        if (support := check_support(form, text)).verdict != "supported"
        and not (support.verdict == "unchecked" and not support.signals and ("?" in form or len(form) < 8))
    ]


def test_a_sentence_that_stands_in_the_evidence_is_supported() -> None:
    appointed = "He wrote a book in 1914. Three years later in 1917, he was appointed to Wilson's inquiry in 1917."
    assert refused_quotations(appointed) == []
    assert {s.name for s in check_support("Three years  later in 1917, he was appointed to Wilson’s inquiry in 1917",
                                          appointed).signals} == {"verbatim"}  # fmt: skip
    for path in CORPUS.glob("*.md"):
        assert refused_quotations(path.read_text(encoding="utf-8").split("---", 2)[2]) == []


@pytest.mark.evaldata
@pytest.mark.parametrize(("name", "every"), [("ver_policies", 9), ("en_squad2", 5), ("bn_tydi", 2)])
def test_a_sentence_of_public_documents_is_supported_by_its_document(name: str, every: int) -> None:
    folder = EVALDATA / name / "corpus"
    if not folder.is_dir():
        pytest.skip(f"no {name} beside the checkout")
    for path in sorted(folder.glob("*.md"))[::every]:
        assert refused_quotations(path.read_text(encoding="utf-8").split("---", 2)[2], every=3) == []


PROSE = """
the bike is not new’s costs 30 days, “ok” after 1917 Three within – ফেরত না নয় ৩০ RD2-24 if may
"""
words_of_prose = st.sampled_from(PROSE.split())
statements = st.lists(words_of_prose, min_size=3, max_size=25).map(lambda words: f"Bikes {' '.join(words)}.")


@settings(max_examples=200, deadline=None)
@given(statements, st.lists(statements, max_size=3), st.lists(statements, max_size=3))
def test_any_statement_is_supported_where_it_stands(sentence: str, before: list[str], behind: list[str]) -> None:
    evidence = "\n".join([*before, sentence, *behind])
    assert check_support(sentence, evidence).verdict == "supported"
    assert check_support(retyped(sentence), evidence).verdict == "supported"


def test_a_part_of_a_sentence_is_no_quotation_of_it() -> None:
    evidence = "It is not true that bikes can be returned after 90 days. We know that."
    assert all(signal.name != "verbatim" for signal in check_support("Bikes can be returned.", evidence).signals)
    assert not check_support("bikes can be returned after 90 days.", evidence).ok


def test_a_corpus_sentence_with_a_negation_more_is_never_supported() -> None:
    """BR-103: wherever the negation is put in."""
    passed = []
    for sentence, section, is_bangla in corpus_sentences():
        for gap in re.finditer(r"(?<=\w)(?=[.,;।]*(?:\s|$))", sentence):
            claim = f"{sentence[: gap.start()]} {'না' if is_bangla else 'not'}{sentence[gap.start() :]}"
            if check_support(claim, section).ok:
                passed.append(claim)
    assert passed == []


def test_a_corpus_sentence_with_another_number_is_never_supported() -> None:
    """BR-102."""
    passed = []
    for sentence, section, _ in corpus_sentences():
        for number in numbers(sentence):
            for value in (number.value + 1, number.value * 2, number.value * 10):
                claim = f"{sentence[: number.start]}{int(value)}{sentence[number.end :]}"
                if check_support(claim, section).ok:
                    passed.append(claim)
    assert passed == []


FRAGMENTS = """
not no 5 30 ৩০ days দিন within at least - – ( ) [1] % $ ৳ . । , half a month না নেই হয়নি only if RD2-24 2019-20 ½ 1/2
1,000 The It used new back send five hundred million between and ?
"""
texts = st.text(max_size=120) | st.lists(st.sampled_from([*FRAGMENTS.split(), "\n\n"]), max_size=40).map(" ".join)


@settings(max_examples=300, deadline=None)
@given(texts, texts)
def test_any_text_is_judged_and_spans_lie_inside(claim: str, evidence: str) -> None:
    support = check_support(claim, evidence)
    assert 0 <= support.share <= 1
    for signal in support.signals:
        for span, text in ((signal.claim_span, claim), (signal.evidence_span, evidence)):
            assert span is None or 0 <= span[0] < span[1] <= len(text)
    assert support.evidence_span is None or 0 <= support.evidence_span[0] < support.evidence_span[1] <= len(evidence)
    if support.ok:
        assert support.signals
        assert {signal.effect for signal in support.signals} == {"supports"}


@pytest.mark.parametrize(
    "unit", ["1 ", "five ", "not word ", "{} days, ", "A. ", "(", "0.", "send back ", "between 5 and "]
)
def test_long_texts_of_any_kind_are_read_to_the_end(unit: str) -> None:
    """Reading is linear in the text, and a sentence too long to be one claim is not held against anything."""
    text = "".join(unit.format(at) for at in range(10_000 // len(unit)))
    assert check_support(text, text).verdict in ("supported", "unchecked", "unsupported", "contradicted")
    assert not check_support("You can return a bike within 30 days.", text).ok
