"""Kind I: numbers and denials in claims. What no other test proves whole."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from evidencedesk import check_support

# ---------------------------------------------------------------- BR-99 and BR-102: any numbers

BANGLA_DIGITS = str.maketrans("0123456789", "০১২৩৪৫৬৭৮৯")


def indian(number: int) -> str:
    head, tail = f"{number // 1000}", f"{number % 1000:03}"
    pairs = [head[max(0, at - 2) : at] for at in range(len(head), 0, -2)]
    return ",".join([*reversed(pairs), tail]) if number >= 1000 else str(number)


def spaced(number: int) -> str:
    """With a plain space only where no list of three-digit numbers could be meant: 12 345, but not 101 102."""
    grouped = f"{number:,}"
    return grouped.replace(",", "\N{NARROW NO-BREAK SPACE}" if len(grouped.split(",")[0]) == 3 else " ")


WAYS = {
    "plain": str, "comma": "{:,}".format, "space": spaced, "Indian": indian,
    "apostrophe": lambda n: f"{n:,}".replace(",", "'"), "cents": lambda n: f"{n:,}.00", "plus": "+{}".format,
}  # fmt: skip
ways = st.tuples(st.sampled_from(sorted(WAYS)), st.booleans())


def written(number: int, way: tuple[str, bool]) -> str:
    text = WAYS[way[0]](number)
    return text.translate(BANGLA_DIGITS) if way[1] else text


@settings(max_examples=150)
@given(st.integers(2, 10**7), ways, ways)
@example(1000, ("comma", False), ("cents", True))
def test_one_amount_supports_itself_however_either_side_writes_it(
    number: int, said: tuple[str, bool], stands: tuple[str, bool]
) -> None:
    """BR-99: grouped, spaced, with cents, in either digits."""
    evidence = f"The repair of a frame costs {written(number, stands)} taka."
    support = check_support(f"The repair of a frame costs {written(number, said)} taka.", evidence)
    assert (support.numbers_missing, support.verdict) == ((), "supported"), support.reason


@settings(max_examples=150)
@given(st.integers(2, 10**7), st.integers(2, 10**7) | st.sampled_from(["x10", "/10", "+1", "tail", "head"]), ways, ways)
@example(1000, 10000, ("plain", False), ("plain", False))
@example(1000, 100, ("comma", True), ("plain", False))
def test_another_amount_never_does_whatever_its_digits_share(
    number: int, other: int | str, said: tuple[str, bool], stands: tuple[str, bool]
) -> None:
    """BR-99, BR-102: ten times it, a piece of it, one more; all words agree and the number is named."""
    near = {"x10": number * 10, "/10": number // 10, "+1": number + 1, "tail": number % 1000, "head": number // 1000}
    claimed = near[other] if isinstance(other, str) else other
    assume(claimed not in (number, 0, 1))
    evidence = f"The repair of a frame costs {written(number, stands)} taka."
    support = check_support(f"The repair of a frame costs {written(claimed, said)} taka.", evidence)
    assert not support.ok
    assert any(signal.name == "number" for signal in support.signals)


@settings(max_examples=100)
@given(st.integers(2, 9999), st.integers(2, 9999), ways, ways)
def test_two_amounts_that_changed_places_are_never_supported(
    one: int, other: int, first: tuple[str, bool], second: tuple[str, bool]
) -> None:
    """BR-102: any pair; both numbers stand in the evidence, each with the other's thing."""
    assume(one != other)
    text = "A frame costs {} taka and a wheel costs {} taka."
    evidence = text.format(written(one, first), written(other, second))
    assert check_support(text.format(written(one, second), written(other, first)), evidence).ok
    assert not check_support(text.format(written(other, first), written(one, second)), evidence).ok
    assert not check_support(f"A frame costs {written(other, first)} taka.", evidence).ok


# ---------------------------------------------------------------- BR-103: opposites

STATES = """
enabled disabled, allowed forbidden, permitted prohibited, included excluded, required optional, accepted rejected, valid
invalid, available unavailable, possible impossible, mandatory voluntary, active inactive, public private, kept deleted,
approved denied, safe unsafe, locked unlocked, online offline, sold bought, supported unsupported, limited unlimited,
open closed, refundable nonrefundable, refundable non-refundable, transferable non-transferable, paid unpaid, free paid
"""
PLACES = [
    ("before", "after", "Show us the price {} you buy."), ("more", "less", "It costs {} than the old one."),
    ("at least", "at most", "You need {} 5 photos."), ("minimum", "maximum", "The {} order is 500 taka."),
    ("above", "below", "Orders {} 500 taka ship free."), ("inside", "outside", "Store the battery {} the house."),
    ("with", "without", "Bikes are sold {} a bell."), ("always", "never", "We {} charge a fee."),
    ("can", "cannot", "You {} return the bike."), ("including", "excluding", "The price is 500 taka {} tax."),
    ("all", "no", "We repair {} bikes."), ("except", "including", "We are open all days {} Friday."),
    ("higher", "lower", "The price online is {} than in the shop."), ("will", "will not", "We {} charge a fee."),
    ("still", "no longer", "We {} sell tyres."), ("Members", "Non-members", "{} can enter."),
    ("যায়", "যায় না", "বাইক ফেরত দেওয়া {}।"), ("আছে", "নেই", "দোকানে হেলমেট {}।"), ("আগে", "পরে", "কেনার {} দাম জানান।"),
    ("বেশি", "কম", "দাম আগের চেয়ে {}।"), ("খোলা", "বন্ধ", "শুক্রবার দোকান {}।"), ("সহ", "ছাড়া", "বাইক ঘণ্টা {} বিক্রি হয়।"),
    ("সর্বোচ্চ", "সর্বনিম্ন", "{} ৫টি ছবি দিন।"), ("হয়", "হয় না", "মাশুল নেওয়া {}।"), ("নতুন", "পুরনো", "{} বাইক ফেরত দেওয়া যায়।"),
    ("বাধ্যতামূলক", "ঐচ্ছিক", "ছবি দেওয়া {}।"), ("অনুমোদিত", "নিষিদ্ধ", "ফেরত {}।"),
]  # fmt: skip
PAIRS = [
    *[(*pair.split(), "A return of the old bike is {}.") for pair in STATES.replace("\n", " ").split(",")],
    *PLACES,
]


@pytest.mark.parametrize(("one", "other", "sentence"), PAIRS, ids=lambda value: value if value.isascii() else None)
def test_of_two_opposites_in_the_same_sentence_neither_supports_the_other(one: str, other: str, sentence: str) -> None:
    """BR-103: each way round; each supports itself."""
    for said, stands in ((one, other), (other, one)):
        assert not check_support(sentence.format(said), sentence.format(stands)).ok
        assert check_support(sentence.format(said), sentence.format(said)).ok


@pytest.mark.parametrize("joined", ["non-{}", "non‑{}", "non–{}", "non {}", "non{}", "Non-{}", "NON-{}"])
@pytest.mark.parametrize("word", ["refundable", "transferable", "members", "residents", "stackable", "EU"])
def test_a_word_with_non_before_it_is_denied_however_it_is_joined(joined: str, word: str) -> None:
    """BR-103: a prefix is a negation; both spellings of the denied word support each other."""
    denied = joined.format(word)
    assert not check_support(f"Vouchers are for {word} here.", f"Vouchers are for {denied} here.").ok
    assert not check_support(f"Vouchers are for {denied} here.", f"Vouchers are for {word} here.").ok
    assert check_support(f"Vouchers are for {denied} here.", f"Vouchers are for non-{word} here.").ok
