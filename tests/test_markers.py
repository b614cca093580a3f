"""Citation marks in an answer's text: which sentence cites what. Read or reported as malformed, never passed over."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evidencedesk.citations import MarkedClaim, Reference, references, split_claims
from evidencedesk.text import Span

BIKES = "Bikes can be returned"
LABEL = "Returns policy (Returning a bike, lines 11-12) [kc-returns-v3:c0]"


def pointed(claim: MarkedClaim) -> list[int | str | None]:
    """What a claim cites: numbers, chunk ids, and None for a malformed reference."""
    return [r.number if r.number is not None else r.chunk_id for r in claim.references]


def read(text: str, **known: object) -> list[tuple[str, list[int | str | None]]]:
    return [(claim.text, pointed(claim)) for claim in split_claims(text, **known)]


@pytest.mark.parametrize(
    ("mark", "cited"),
    [
        ("[1]", [1]),
        ("[1, 2]", [1, 2]),
        ("[1,2]", [1, 2]),
        ("[1;2]", [1, 2]),
        ("[1 and 2]", [1, 2]),
        ("[১ ও ২]", [1, 2]),
        ("[1][2]", [1, 2]),
        ("[1], [2] and [3]", [1, 2, 3]),
        ("[[4]]", [4]),
        ("[[1], [2]]", [1, 2]),
        ("[^3]", [3]),
        ("[^1][^2]", [1, 2]),
        ("【1】", [1]),
        ("［１］", [1]),
        ("〔২〕", [2]),
        ("(1)", [1]),
        ("(1, 2)", [1, 2]),
        ("(1) (2)", [1, 2]),
        ("（1）", [1]),
        ("[1-3]", [1, 2, 3]),
        ("[1–2]", [1, 2]),
        ("[ 1 ]", [1]),
        ("[১]", [1]),
        ("[１]", [1]),
        ("[১-৩]", [1, 2, 3]),
        ("[ID:১২]", [12]),
        ("[source: 2]", [2]),
        ("[Source 2]", [2]),
        ("[Document 3]", [3]),
        ("[doc #3]", [3]),
        ("[cite: 1, 2]", [1, 2]),
        ("[সূত্র: ২]", [2]),
        ("(source 2)", [2]),
        ("(see [1])", [1]),
        ("([1], [2])", [1, 2]),
        ("(Source: [1])", [1]),
        ("<sup>[1]</sup>", [1]),
        (r"\[1\]", [1]),
        ("[1](https://example.org/a_(b))", [1]),
        ("[[1]](#s1), [[2]](#s2)", [1, 2]),
        ("[kc-returns-v3:c0]", ["kc-returns-v3:c0"]),
        ("[KC.shop/returns-v1.10:c12]", ["KC.shop/returns-v1.10:c12"]),
        ("[source: kc-returns-v3:c0]", ["kc-returns-v3:c0"]),
        ("[kc-returns-v3:c0, kc-recalls-v1:c1]", ["kc-returns-v3:c0", "kc-recalls-v1:c1"]),
        ("[kc-returns-v3:c0; 2]", ["kc-returns-v3:c0", 2]),
        ("(kc-returns-v3:c0)", ["kc-returns-v3:c0"]),
        ("`[kc-returns-v3:c0]`", ["kc-returns-v3:c0"]),
        ("`kc-returns-v3:c0`", ["kc-returns-v3:c0"]),
        ("kc-returns-v3:c0", ["kc-returns-v3:c0"]),
        ("**kc-returns-v3:c0**", ["kc-returns-v3:c0"]),
        ("**[1]**", [1]),
        ("[notes/my file (v2) [draft]-v1:c3]", ["notes/my file (v2) [draft]-v1:c3"]),
        ("[রিটার্ন নীতি-v3-bn:c০]", ["রিটার্ন নীতি-v3-bn:c0"]),
        ("[0]", [0]),
        ("[99]", [99]),
    ],
)
def test_every_form_that_models_write_is_read_and_leaves_the_sentence(mark, cited):
    """BR-89, BR-90, BR-92: brackets of every kind, digits of every script, ids with dots, slashes, spaces, brackets."""
    assert read(f"{BIKES} {mark}.") == [(f"{BIKES}.", cited)]


@pytest.mark.parametrize(
    ("mark", "written"),
    [
        ("[3-1]", ["3-1"]),
        ("[1-1000000]", ["1-1000000"]),
        ("[9999999999]", ["9999999999"]),
        ("[1a]", ["1a"]),
        ("[-1]", ["-1"]),
        ("[1.5]", ["1.5"]),
        ("[1, p. 4]", ["1", "p. 4"]),
        ("[^note]", ["^note"]),
        ("[?]", ["?"]),
        ("[c0]", ["c0"]),
        ("[4:0†source]", ["4:0†source"]),
        ("[kc-returns-v3]", ["kc-returns-v3"]),
        ("[kc-returns-v3-bn]", ["kc-returns-v3-bn"]),
        ("[kc-returns-v3#c0]", ["kc-returns-v3#c0"]),
        ("[doc-x#3]", ["doc-x#3"]),
        ("[source: a.md#2]", ["a.md#2"]),
        ("[returns.md]", ["returns.md"]),
        ("[https://example.org/returns]", ["https://example.org/returns"]),
        ("[Source: Returns policy]", ["Returns policy"]),
        ("(Source: the annual report)", ["the annual report"]),
    ],
)
def test_what_was_meant_as_a_mark_and_leads_nowhere_is_malformed(mark, written):
    """BR-90, BR-92: reported, also when it is the only mark of the answer; never repaired, never passed over."""
    (claim,) = split_claims(f"{BIKES} {mark}.")
    assert claim.text == f"{BIKES}."
    assert [reference.written for reference in claim.references] == written
    assert Reference(written[-1]) in claim.references


@pytest.mark.parametrize(
    "prose",
    [
        "[sic]", "[RD2-24 only]", "[30 days]", "[3 or 4]", "[citation needed]", "[note: see below]", "[e-bike]", "[ɡaɪˈænə]",
        "[text](https://example.org)", "![bike](bike.png)", "[the rules](#rules)", "[x]", "[]", "[ ]",
        "(2024)", "(30 days)", "(a)", "(v2)", "(ID: 12)", "(see below)", "(100)", "thirty (30)", "ত্রিশ (৩০)",
        "under section (2)", "f(1)", "`a[1]`", "`[1]`", "``x[1]``", "10:30", "[2024-01-15]",
    ],
)  # fmt: skip
def test_ordinary_brackets_are_prose_and_stay_in_the_sentence(prose):
    assert read(f"{BIKES} {prose}.") == [(f"{BIKES} {prose}.", [])]


def test_round_numbers_that_count_or_stand_inside_a_clause_are_prose():
    assert read("You need (1) a receipt and (2) the bike.") == [("You need (1) a receipt and (2) the bike.", [])]
    assert read("(1) Bring the bike.\n(2) Bring the receipt (1).") == [
        ("(1) Bring the bike.", []),
        ("(2) Bring the receipt.", [1]),
    ]


def test_a_task_box_is_no_mark_and_a_mark_in_a_list_is():
    assert read("- [ ] Bring the bike [1]\n- [x] Bring the receipt [2]") == [
        ("- [ ] Bring the bike", [1]),
        ("- [x] Bring the receipt", [2]),
    ]


def test_code_holds_no_marks():
    code = "```\nprices[1]\nids[kc-returns-v3:c0]\n```"
    assert read(f"{code}\n\nBikes are red [2].") == [(code, []), ("Bikes are red.", [2])]
    assert read("Bikes are red [2].\n~~~\nprices[1]") == [("Bikes are red.", [2]), ("~~~\nprices[1]", [])]


@pytest.mark.parametrize(
    "text",
    [
        "Bikes are red [1]. Helmets are blue [2].",
        "Bikes are red. [1] Helmets are blue. [2]",
        "Bikes are red.[1] Helmets are blue.[2]",
        "Bikes are red.\n[1]\n\nHelmets are blue.\n[2]",
        "[1] Bikes are red.\n[2] Helmets are blue.",
        "[1]: Bikes are red.\n\n[2]: Helmets are blue.",
        "Bikes [1] are red. Helmets are [2] blue.",
        "Bikes are red.[1]Helmets are blue.[2]",
    ],
)
def test_a_mark_belongs_to_its_sentence_or_the_one_before_or_the_one_that_it_leads(text):
    assert read(text) == [("Bikes are red.", [1]), ("Helmets are blue.", [2])]


def test_bangla_sentences_end_at_the_danda_and_keep_their_marks():
    assert read("বাইক লাল।[১] হেলমেট নীল [২]। দাম কম। [৩]") == [("বাইক লাল।", [1]), ("হেলমেট নীল।", [2]), ("দাম কম।", [3])]


def test_a_span_holds_the_sentence_and_its_marks():
    text = "Bikes are red. [1] Helmets are blue [2]."
    assert [text[slice(*claim.span)] for claim in split_claims(text)] == ["Bikes are red. [1]", "Helmets are blue [2]."]


def test_a_reference_keeps_how_it_was_written():
    assert split_claims("Bikes [১] are red [নীতি-v1:c০].") == (
        MarkedClaim(
            "Bikes are red.",
            Span(0, 31),
            (Reference("১", number=1), Reference("নীতি-v1:c০", chunk_id="নীতি-v1:c0")),
        ),
    )


def test_an_answering_word_belongs_to_the_sentence_behind_it():
    assert read("Yes. Bikes are red [1].") == [("Yes. Bikes are red.", [1])]
    assert read("হ্যাঁ। বাইক লাল [১]।") == [("হ্যাঁ। বাইক লাল।", [1])]
    assert read("Yes [1].") == [("Yes.", [1])]
    assert read("Yes, within 30 days. Bikes are red [1].") == [("Yes, within 30 days.", []), ("Bikes are red.", [1])]


def test_a_known_label_is_one_mark_wherever_it_stands():
    known = {"labels": {LABEL: "kc-returns-v3:c0"}}
    assert read(f"Bikes are red. {LABEL} Helmets are blue.", **known) == [
        ("Bikes are red.", ["kc-returns-v3:c0"]),
        ("Helmets are blue.", []),
    ]
    assert read(f"Bikes are red ({LABEL}).", **known) == [("Bikes are red.", ["kc-returns-v3:c0"])]


def test_of_an_unknown_label_place_and_id_are_the_mark_and_the_title_is_still_checked():
    assert read("Bikes are red (Colours (all), line 3) [kc-shop-v1:c0].") == [("Bikes are red.", ["kc-shop-v1:c0"])]
    assert read(f"Bikes are red. {LABEL}") == [("Bikes are red.", []), ("Returns policy", ["kc-returns-v3:c0"])]


def test_a_mark_that_a_passage_holds_is_its_own_footnote_and_stays():
    """BR-117: what a document writes is no citation of the answer's."""
    known = {"passages": ["১৯২৪ সালে তৈরি।[11] তারপর [12]"]}
    assert read("১৯২৪ সালে তৈরি।[11] এখন নেই [3]।", **known) == [("১৯২৪ সালে তৈরি।[11]", []), ("এখন নেই।", [3])]


def test_prose_that_begins_with_sources_is_prose():
    """BR-94: nothing is cut off."""
    text = "Sources of this data are old. Sources: we counted bikes ourselves. There are 5 [1]."
    assert read(text) == [
        ("Sources of this data are old.", []),
        ("Sources: we counted bikes ourselves.", []),
        ("There are 5.", [1]),
    ]
    assert read("Bikes are red [1].\n\nSources\n\nare hard to find.")[1:] == [
        ("Sources", []),
        ("are hard to find.", []),
    ]


@pytest.mark.parametrize(
    "header",
    ["## Sources", "Sources:", "**Sources:**", "__References__:", "References:", "SOURCES", "### Works cited ###",
     "সূত্র:", "সূত্রঃ", "## তথ্যসূত্র", "উৎস:", "Citations："],
)  # fmt: skip
def test_a_real_header_with_entries_is_a_list_and_no_claim(header):
    """BR-94: English and Bangla headers."""
    text = f"Bikes are red. Helmets are blue [2].\n\n{header}\n\n1. [1] Colours, 2024.\n- [kc-shop-v1:c0] Shop\n\nMore follows."
    assert read(text) == [
        ("Bikes are red.", [1, "kc-shop-v1:c0"]),
        ("Helmets are blue.", [2]),
        ("More follows.", []),
    ]


def test_references_of_a_list_go_to_the_last_sentence_when_every_one_has_marks_so_that_none_is_lost():
    assert read("Bikes are red [1]. Helmets are blue [2].\n\nSources:\n[1] A\n[2] B\n[9] C") == [
        ("Bikes are red.", [1]),
        ("Helmets are blue.", [2, 9]),
    ]


@pytest.mark.parametrize(
    "line", ["Sources: [1], [2]", "**Sources:** 1, 2", "- Source: [1][2]", "সূত্র: [১], [২]", "References: (1), (2)."]
)
def test_a_line_of_sources_belongs_to_the_sentences_without_marks(line):
    """BR-90: `Sources: [1], [2]` at the end does not count as uncited."""
    assert read(f"Bikes are red. Helmets are blue [3].\n{line}") == [
        ("Bikes are red.", [1, 2]),
        ("Helmets are blue.", [3]),
    ]


def test_a_source_named_inside_the_text_belongs_to_the_sentence_before_it():
    assert read("Bikes are red. Source: [1] Helmets are blue. (Sources: [2], [3])") == [
        ("Bikes are red.", [1]),
        ("Helmets are blue.", [2, 3]),
    ]


def test_an_entry_without_a_readable_reference_is_malformed():
    assert split_claims("Bikes are red.\n\nSources:\n- Returns policy\n2. Colours")[0].references == (
        Reference("Returns policy"),
        Reference("2", number=2),
    )


def test_lines_behind_a_list_that_end_as_sentences_are_claims():
    text = "Bikes are red.\n\nSources:\n- [1] Colours\n  second line\nHelmets are blue [2].\nSources: [3]"
    assert read(text) == [("Bikes are red.", [1]), ("Helmets are blue.", [2, 3])]


def test_footnote_definitions_are_a_list():
    assert read("Bikes are red.[^1]\n\n[^1]: Colours, kc-shop-v1:c0\n[2]: https://example.org") == [
        ("Bikes are red.", [1, "kc-shop-v1:c0", 2])
    ]


def test_two_lists_each_serve_the_sentences_above_them():
    assert read("Bikes are red.\nSources: [1]\n\nHelmets are blue.\nSources: [2]") == [
        ("Bikes are red.", [1]),
        ("Helmets are blue.", [2]),
    ]


def test_a_text_of_marks_alone_is_one_claim_without_text():
    assert read("[1] [2]") == [("", [1, 2])]
    assert read("Sources: [1]") == [("", [1])]
    assert read(" \n") == read("") == read("...") == []


@pytest.mark.parametrize(
    ("source", "cited"),
    [
        (1, (Reference("1", number=1),)),
        ("1", (Reference("1", number=1),)),
        (" [1] ", (Reference("1", number=1),)),
        ("(1)", (Reference("1", number=1),)),
        ("১", (Reference("১", number=1),)),
        ("passage 2", (Reference("2", number=2),)),
        ("1-2", (Reference("1", number=1), Reference("2", number=2))),
        ("[1, 2]", (Reference("1", number=1), Reference("2", number=2))),
        ("kc-returns-v3:c0", (Reference("kc-returns-v3:c0", chunk_id="kc-returns-v3:c0"),)),
        ("[kc-returns-v3:c0]", (Reference("kc-returns-v3:c0", chunk_id="kc-returns-v3:c0"),)),
        ("notes, my [draft]-v1:c3", (Reference("notes, my [draft]-v1:c3", chunk_id="notes, my [draft]-v1:c3"),)),
        (LABEL, (Reference("kc-returns-v3:c0", chunk_id="kc-returns-v3:c0"),)),
        (0, (Reference("0", number=0),)),
        (-1, (Reference("-1"),)),
        ("", (Reference(""),)),
        ("Returns policy", (Reference("Returns policy"),)),
        ("kc-returns-v3", (Reference("kc-returns-v3"),)),
        ("1.5", (Reference("1.5"),)),
    ],
)
def test_one_entry_of_a_list_of_sources_always_gives_a_reference(source, cited):
    """BR-92."""
    assert references(source) == cited


def test_a_number_of_thousands_of_digits_is_malformed():
    (reference,) = references(10**5000)
    assert reference.number is None


def test_a_decomposed_id_is_the_same_chunk():
    (claim,) = split_claims("Bikes [cafe\u0301-v1:c0].")
    assert claim.references[0].chunk_id == "caf\u00e9-v1:c0"


_pieces = st.sampled_from(
    ["[1]", "[kc-returns-v3:c0]", "(1)", "[", "]", "(", ")", "`", "```", "\n", "\n\n", ". ", "। ", "Sources:", "## References",
     "- ", "[^1]:", "\\[", "Bikes are red", "বাইক লাল", "[sic]", "Yes.", "\x00", " ", "১", "-v1:c0", "<sup>", "](http://a.b)"]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(_pieces, max_size=30).map("".join)))
@example("\x00[1]\x00")
@example("Sources:\n[1")
def test_any_text_gives_sentences_in_order_that_do_not_overlap(text):
    claims = split_claims(text)
    bounds = [bound for claim in claims for bound in claim.span]
    assert bounds == sorted(bounds)
    assert all(0 <= bound <= len(text) for bound in bounds)
    for claim in claims:
        assert claim.text == claim.text.strip()
        letters = [char for char in claim.text if char.isalnum()]
        source = iter(text[slice(*claim.span)])
        assert all(char in source for char in letters), "a claim says nothing that its span does not"
    assert references(text)


@given(
    st.lists(st.sampled_from(["Bikes are red.", "Helmets cost 5 taka.", "দাম কম।"]), min_size=1, max_size=6), st.data()
)
def test_marks_never_change_what_a_text_claims(said, data):
    """A sentence's words are the same with marks as without."""
    marked = [sentence + data.draw(st.sampled_from(["", " [1]", "[2, 3]", " [kc-returns-v3:c0]"])) for sentence in said]
    assert [claim.text for claim in split_claims(" ".join(marked))] == said
