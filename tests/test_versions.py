"""Versions, marks of a doc_id, and which document of a line is in force."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidencedesk.versions import (
    VersionFacts,
    full_doc_id,
    parse_instant,
    settle,
    split_marks,
    version_parts,
    version_sort_key,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def version(number: int, **facts: datetime) -> VersionFacts:
    return VersionFacts(
        f"doc-v{number}", version_sort_key(str(number)), facts.pop("came_in", day("2026-01-01")), **facts
    )


def statuses(*line: VersionFacts, now: datetime = NOW) -> dict[str, str]:
    return {standing.doc_id: standing.status for standing in settle(line, now)}


@pytest.mark.parametrize(
    ("lower", "higher"),
    [("1.9", "1.10"), ("2023-12", "2024-01"), ("v2", "v10"), ("3", "3.1"), ("v9", "2023-01")],
)
def test_versions_compare_by_their_numbers(lower: str, higher: str) -> None:
    """BR-86: never as text."""
    assert version_parts(lower) < version_parts(higher)
    assert version_sort_key(lower) < version_sort_key(higher)


@pytest.mark.parametrize(("left", "right"), [("v3", "3"), ("V3", "3"), ("3.0", "3"), ("৩", "3"), ("2024-01", "2024.1")])
def test_spellings_of_one_version_are_equal(left: str, right: str) -> None:
    assert version_sort_key(left) == version_sort_key(right)


@pytest.mark.parametrize("text", ["", "draft", "v", "1.x", "-1", "1..2", "9" * 13, "1 2"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="version"):
        version_parts(text)


@given(st.lists(st.lists(st.integers(0, 10**6), min_size=1, max_size=4), min_size=2, max_size=2))
def test_the_sort_key_orders_as_the_numbers_do(pair: list[list[int]]) -> None:
    left, right = (".".join(map(str, numbers)) for numbers in pair)
    assert (version_parts(left) < version_parts(right)) == (version_sort_key(left) < version_sort_key(right))


@pytest.mark.parametrize(
    ("doc_id", "lang", "base", "mark", "has_lang"),
    [
        ("kc-returns-v3", "en", "kc-returns", "3", False),
        ("kc-returns-v3-bn", "bn", "kc-returns", "3", True),
        ("kc-returns-bn-v3", "bn", "kc-returns", "3", True),
        ("kc-returns-v1.10", "en", "kc-returns", "1.10", False),
        ("kc-returns-v3-bn", "en", "kc-returns-v3-bn", None, False),
        ("refund-hey", "en", "refund-hey", None, False),
        ("report-12", "en", "report-12", None, False),
        ("x-v2-v3", "en", "x-v2", "3", False),
        ("a-v1-en-gb", "en-GB", "a", "1", True),
        ("a-v1-BN", "bn", "a", "1", True),
        ("-v2", "en", "-v2", None, False),
        ("bn", "bn", "bn", None, False),
    ],
)
def test_marks_at_the_end_of_a_doc_id(doc_id: str, lang: str, base: str, mark: str | None, has_lang: bool) -> None:
    """The version mark and the document's own language, in either order; nothing else is a mark."""
    marks = split_marks(doc_id, lang)
    assert (marks.base, marks.version, marks.has_lang) == (base, mark, has_lang)


@pytest.mark.parametrize(
    ("doc_id", "version", "lang", "full"),
    [
        ("privacy", "v19", "en", "privacy-v19"),
        ("privacy", "19", "und", "privacy-v19"),
        ("privacy", "v19", "bn", "privacy-v19-bn"),
        ("privacy-bn", "v19", "bn", "privacy-v19-bn"),
        ("privacy-en", "2", "en", "privacy-v2-en"),
        ("privacy", "2024-01", "en", "privacy-v2024.01"),
        ("kc-returns-v3-bn", "3", "bn", "kc-returns-v3-bn"),
        ("kc-returns-bn-v3", "3.0", "bn", "kc-returns-bn-v3"),
    ],
)
def test_a_doc_id_without_a_version_mark_gets_one(doc_id: str, version: str, lang: str, full: str) -> None:
    assert full_doc_id(doc_id, version, lang) == full
    assert full_doc_id(full, version, lang) == full


def test_a_mark_that_contradicts_the_version_is_an_error() -> None:
    with pytest.raises(ValueError, match="says version 2, but version is 'v3'"):
        full_doc_id("kc-returns-v2", "v3", "en")


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2024-01-15", datetime(2024, 1, 15, tzinfo=UTC)),
        ("২০২৪-০১-১৫", datetime(2024, 1, 15, tzinfo=UTC)),
        ("2024-01-15T10:00:00Z", datetime(2024, 1, 15, 10, tzinfo=UTC)),
        ("2024-01-15 10:00", datetime(2024, 1, 15, 10, tzinfo=UTC)),
        ("2024-01-15T10:00:00+06:00", datetime(2024, 1, 15, 4, tzinfo=UTC)),
    ],
)
def test_instants_are_utc(text: str, instant: datetime) -> None:
    assert parse_instant(text) == instant


def test_a_plain_date_at_the_end_of_its_day() -> None:
    assert parse_instant("2024-01-15", end_of_day=True) == datetime(2024, 1, 15, 23, 59, 59, 999999, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["2024-13-45", "15/01/2024", "2024", "yes", "null", "1e3", "0123", "", "2024-1-5", "0000-01-01"]
)
def test_what_is_no_date_is_refused(text: str) -> None:
    """BR-62: dates are named when they are wrong."""
    with pytest.raises(ValueError, match="date"):
        parse_instant(text)


def test_the_highest_begun_version_is_current_and_the_next_ends_the_one_before() -> None:
    line = settle([version(1, effective_from=day("2024-01-01")), version(2, effective_from=day("2025-01-01"))], NOW)
    assert [(s.status, s.valid_from, s.valid_to) for s in line] == [
        ("superseded", day("2024-01-01"), day("2025-01-01")),
        ("current", day("2025-01-01"), None),
    ]


def test_without_dates_a_version_is_valid_from_when_it_came_in() -> None:
    """Loading an older version later does not make it current, and it never was in force."""
    line = settle([version(1, came_in=day("2026-03-01")), version(2, came_in=day("2026-02-01"))], NOW)
    assert [(s.status, s.valid_from, s.valid_to) for s in line] == [
        ("superseded", day("2026-03-01"), day("2026-03-01")),
        ("current", day("2026-02-01"), None),
    ]


def test_a_future_version_is_scheduled_and_bounds_the_current_one() -> None:
    line = [version(1), version(2, effective_from=day("2026-07-01"))]
    assert statuses(*line) == {"doc-v1": "current", "doc-v2": "scheduled"}
    assert settle(line, NOW)[0].valid_to == day("2026-07-01")
    assert statuses(*line, now=day("2026-07-01")) == {"doc-v1": "superseded", "doc-v2": "current"}


def test_one_past_its_end_without_a_successor_is_expired_and_nothing_older_answers() -> None:
    line = [version(1), version(2, effective_from=day("2026-02-01"), effective_to=day("2026-05-01"))]
    assert statuses(*line) == {"doc-v1": "superseded", "doc-v2": "expired"}


def test_a_gap_between_two_versions_belongs_to_neither() -> None:
    line = [
        version(1, effective_from=day("2026-01-01"), effective_to=day("2026-02-01")),
        version(2, effective_from=day("2026-07-01")),
    ]
    assert statuses(*line) == {"doc-v1": "expired", "doc-v2": "scheduled"}


def test_withdrawing_brings_nothing_older_back() -> None:
    assert statuses(version(1), version(2, withdrawn_at=day("2026-05-01"))) == {
        "doc-v1": "superseded", "doc-v2": "withdrawn",
    }  # fmt: skip


def test_a_version_withdrawn_before_it_began_replaced_nothing() -> None:
    line = [version(1), version(2, effective_from=day("2026-05-15"), withdrawn_at=day("2026-05-01"))]
    assert statuses(*line) == {"doc-v1": "current", "doc-v2": "withdrawn"}


def test_a_withdrawal_by_a_clock_that_is_ahead_counts_at_once() -> None:
    assert statuses(version(1, withdrawn_at=day("2026-06-02"))) == {"doc-v1": "withdrawn"}


instants = st.integers(0, 30).map(lambda n: day("2026-01-01") + timedelta(days=n))


@st.composite
def lines(draw: st.DrawFn) -> list[VersionFacts]:
    facts = []
    for number in range(1, draw(st.integers(1, 5)) + 1):
        start = draw(st.none() | instants)
        end = draw(st.none() | instants)
        if start is not None and end is not None and end <= start:
            end = None
        gone = draw(st.none() | st.just(day("2026-01-01")) | st.just(day("2026-01-05")))  # never after `now` below
        facts.append(VersionFacts(f"doc-v{number}", version_sort_key(str(number)), draw(instants), start, end, gone))
    return facts


@given(lines(), instants.map(lambda at: max(at, day("2026-01-05"))))
def test_laws_of_a_line(line: list[VersionFacts], now: datetime) -> None:
    """Order never matters; validities never overlap; current is just the one whose validity holds the instant."""
    settled = settle(line, now)
    assert all(settle(list(order), now) == settled for order in list(permutations(line))[:6])
    current = [s.doc_id for s in settled if s.status == "current"]
    now = max([now, *(facts.came_in for facts in line if facts.effective_from is None)])
    holding = [s.doc_id for s in settled if s.valid_from <= now and (s.valid_to is None or now < s.valid_to)]
    assert current == holding
    assert len(holding) <= 1
    for at in (now + timedelta(days=d) for d in range(-30, 31, 7)):
        assert sum(s.valid_from <= at and (s.valid_to is None or at < s.valid_to) for s in settled) <= 1
