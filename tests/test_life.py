"""The life of a store, as laws: whatever comes in whatever order, the file equals one that was made in one go."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from builders import Clock, make_source, open_desk
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from evidencedesk import Desk, bm25
from evidencedesk.records import SourceDocument
from evidencedesk.versions import version_parts

START = datetime(2026, 1, 1, tzinfo=UTC)


def state_of(desk: Desk) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """What a reader can tell of a desk: each document's text, status and whether its validity is open."""
    return [
        (
            d.doc_id,
            d.status,
            "open" if d.valid_to is None else "ended",
            tuple(c.text for c in desk.document(d.doc_id).chunks),
        )
        for d in desk.documents()
    ]


@pytest.mark.parametrize("dated", [True, False])
def test_any_order_of_ingest_gives_the_same_current_document(dated: bool) -> None:
    """BR-86: 1.9 and 1.10, snapshots by month, a future version, one past its end."""
    sources = [
        make_source("One nine.", doc_id="a", version="1.9", effective_from="2024-01-01" if dated else None),
        make_source("One ten.", doc_id="a", version="1.10", effective_from="2024-06-01" if dated else None),
        make_source("Snapshot.", doc_id="a", version="2023-12", effective_from="2025-01-01" if dated else None),
        make_source("Future.", doc_id="a", version="2024-01", effective_from="2027-01-01"),
    ]
    for order in permutations(sources):
        with open_desk(sources=order) as desk:
            assert [d.doc_id for d in desk.documents(status="current")] == ["a-v2023.12"]
            assert [d.doc_id for d in desk.documents(status="scheduled")] == ["a-v2024.01"]
            if dated:
                assert [d.valid_to and d.valid_to.date().isoformat() for d in desk.history("a")] == [
                    "2024-06-01", "2025-01-01", "2027-01-01", None,
                ]  # fmt: skip
            assert desk.check().ok


def test_statistics_stay_exact_over_two_hundred_random_changes() -> None:
    """BR-35: equal to the last digit with a count from the postings, and with a desk made anew from the same texts."""
    rng = random.Random(7)
    clock = Clock(START)
    held: dict[str, SourceDocument] = {}
    with open_desk(clock=clock) as desk:
        for _ in range(200):
            family, version = rng.choice("abc"), rng.randint(1, 4)
            body = "\n\n".join(
                f"## Part {n}\n\n" + " ".join(rng.choices(["red", "blue", "bike", "bell", "৩০"], k=6))
                for n in range(rng.randint(1, 3))
            )
            start = (START + timedelta(days=rng.randint(-50, 50))).date().isoformat() if rng.random() < 0.5 else None
            source = make_source(body, heading=None, doc_id=f"{family}-v{version}", effective_from=start)
            desk.update_document(source)
            held[source.doc_id] = source
            clock.advance(hours=rng.randint(0, 12))
        desk.promote()
        with desk.store.read() as snapshot:
            kept = bm25.kept_statistics(snapshot.connection)
            assert kept == bm25.rebuilt_statistics(snapshot.connection)
        assert desk.check().ok
        current = {d.doc_id for d in desk.documents(status="current")}
        with (
            open_desk(sources=[held[name] for name in sorted(current)], clock=clock) as fresh,
            fresh.store.read() as snapshot,
        ):
            assert bm25.kept_statistics(snapshot.connection) == kept


def test_an_instant_that_changes_no_status_is_noted_once_it_has_passed() -> None:
    """The start of a version that was superseded before it: nothing stays due for ever after it."""
    clock = Clock(START)
    sources = [
        make_source("Late.", doc_id="a-v1", effective_from="2026-02-01"),
        make_source("Now.", doc_id="a-v2", effective_from="2025-01-01"),
    ]
    for act in (lambda desk: desk.promote(), lambda desk: desk.update_document(sources[1])):
        clock.now = START
        with open_desk(sources=sources, clock=clock) as desk, desk.store.read() as before:
            assert before.settings.next_change_at is not None
        with open_desk(sources=sources, clock=clock) as desk:
            clock.advance(days=60)
            act(desk)
            with desk.store.read() as snapshot:
                assert (snapshot.settings.next_change_at, snapshot.something_is_due) == (None, False)
            assert desk.check().ok


versions = st.sampled_from(["1", "2", "2.5", "10"])
dates = st.none() | st.integers(-20, 20).map(lambda n: (START + timedelta(days=n)).date().isoformat())


class LinesOfVersions(RuleBasedStateMachine):
    """Updates, corrections and time in any order; the model keeps only what was given last for each doc_id."""

    @initialize()
    def open(self) -> None:
        self.clock = Clock(START)
        self.context = open_desk(clock=self.clock)
        self.desk = self.context.__enter__()
        self.came_in: dict[tuple[str, str], datetime] = {}
        self.dated: dict[tuple[str, str], str | None] = {}

    @rule(lang=st.sampled_from(["en", "bn"]), version=versions, start=dates, word=st.sampled_from(["red", "blue"]))
    def update(self, lang: str, version: str, start: str | None, word: str) -> None:
        self.desk.update_document(
            make_source(f"Bikes are {word}.", doc_id="a", version=version, lang=lang, effective_from=start)
        )
        self.came_in.setdefault((lang, version), self.clock.now)
        self.dated[lang, version] = start

    @rule(days=st.integers(1, 15))
    def wait(self, days: int) -> None:
        self.clock.advance(days=days)

    @rule()
    def promote(self) -> None:
        self.desk.promote()

    @invariant()
    def the_highest_begun_version_answers(self) -> None:
        if not hasattr(self, "desk"):
            return
        for lang in ("en", "bn"):
            begun = [
                version
                for (of_lang, version), start in self.dated.items()
                if of_lang == lang
                and (
                    self.came_in[lang, version] if start is None else datetime.fromisoformat(start).replace(tzinfo=UTC)
                )
                <= self.clock.now
            ]
            expected = [max(begun, key=version_parts)] if begun else []
            hits = self.desk.search("bikes", lang=lang, mode="keyword")
            assert [hit.chunk.version for hit in hits] == expected
            assert [hit.chunk.status for hit in hits] == ["current" for _ in expected]
            assert [d.version for d in self.desk.documents(status="current", lang=lang)] == expected
            if expected:
                assert self.desk.document("a", lang=lang).version == expected[0]
            assert not [stale for stale in self.desk.staleness() if stale.problem == "outdated_but_current"]

    @invariant()
    def the_file_is_sound(self) -> None:
        if hasattr(self, "desk"):
            assert self.desk.check().problems == ()

    def teardown(self) -> None:
        if hasattr(self, "context"):
            self.context.__exit__(None, None, None)


LinesOfVersions.TestCase.settings = settings(
    max_examples=15, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLinesOfVersions = LinesOfVersions.TestCase
