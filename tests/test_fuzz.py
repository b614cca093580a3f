"""Any text, however broken, ends in a result or in a typed error; and the findings of the long runs."""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks import fuzz
from benchmarks.fuzz_inputs import FRAGMENTS, KEYS, SPECIAL, Inputs, samples
from evidencedesk import citations
from evidencedesk.citations.reading import read

PURE = ("front matter", "markdown", "bytes", "words", "versions", "as_of", "markers", "support", "handed in",
        "handed in, json", "reply", "request")  # fmt: skip
WITH_A_FILE = ("cases", "recorded replies", "query", "filters", "question", "model", "verify", "document")


@pytest.fixture(scope="module")
def targets() -> Iterator[dict[str, fuzz.Target]]:
    with fuzz.targets() as every:
        yield every


def texts(*kinds: str) -> st.SearchStrategy[str]:
    """Fragments of the kinds, special characters and any others, one behind the other."""
    fragments = [fragment for kind in kinds for fragment in FRAGMENTS[kind]]
    return st.lists(st.sampled_from(fragments) | st.sampled_from(SPECIAL) | st.text(max_size=4), max_size=30).map(
        "".join
    )


def feed(target: fuzz.Target, given_text: str) -> None:
    try:
        target.feed(given_text)
    except target.typed:
        return


def test_every_target_is_named_here(targets: dict[str, fuzz.Target]) -> None:
    assert {*PURE, *WITH_A_FILE} == targets.keys()


@pytest.mark.parametrize("name", PURE)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_text_ends_in_a_result_or_a_typed_error(
    targets: dict[str, fuzz.Target], name: str, data: st.DataObject
) -> None:
    feed(targets[name], data.draw(texts(*targets[name].kinds)))


@pytest.mark.parametrize("name", WITH_A_FILE)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_text_that_meets_a_file_ends_so_too(
    targets: dict[str, fuzz.Target], name: str, data: st.DataObject
) -> None:
    feed(targets[name], data.draw(texts(*targets[name].kinds)))


@given(st.dictionaries(st.sampled_from(KEYS), texts("front matter", "instants", "names"), min_size=1))
@settings(max_examples=60)
def test_front_matter_of_known_keys_with_any_values(values: dict[str, str]) -> None:
    target = fuzz.Target((), fuzz.feed_front_matter, (fuzz.SourceError,), 1)
    feed(target, "\n".join(f"{key}: {value}" for key, value in values.items()))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
                    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | st.sampled_from(
                        ["abstained", "claims", "text", "sources"]), inner, max_size=4), max_leaves=12))  # fmt: skip
@settings(max_examples=60)
def test_a_reply_of_any_json_is_read_or_refused(value: object) -> None:
    feed(fuzz.Target((), fuzz.feed_reply, (fuzz.BadOutput,), 1), json.dumps(value))


@given(st.text(string.digits + "-:TZ+. ", max_size=30))
def test_an_instant_of_any_figures_is_read_or_a_value_error(given_text: str) -> None:
    feed(fuzz.Target((), fuzz.feed_as_of, (ValueError,), 1), given_text)


# ---------------------------------------------------------------- the harness itself


def test_an_input_can_be_made_again_from_its_number() -> None:
    inputs = Inputs(("markers", "words"), samples())
    made = [inputs.text(Random(f"1/markers/{number}")) for number in range(50)]
    assert made == [inputs.text(Random(f"1/markers/{number}")) for number in range(50)]
    assert len(set(made)) > 45


def test_the_harness_finds_a_crash_a_broken_law_and_an_input_without_end() -> None:
    def crash(text: str) -> None:
        if "[" in text:
            raise KeyError(text)

    def never_ends(text: str) -> None:
        while "[" in text:
            pass

    inputs = Inputs(("markers",), samples())
    fuzz.signal.signal(fuzz.signal.SIGPROF, fuzz._stop)
    tally = fuzz.run("t", fuzz.Target(("markers",), crash, (ValueError,), 1), inputs, range(30), 1, 5.0)
    assert [finding.given for finding in tally.findings] == ["["]
    assert tally.findings[0].what.startswith("KeyError")
    typed = fuzz.run("t", fuzz.Target(("markers",), crash, (LookupError,), 1), inputs, range(30), 1, 5.0)
    assert (typed.findings, typed.typed.keys()) == ([], {"KeyError"})
    slow = fuzz.run("t", fuzz.Target(("markers",), never_ends, (), 1), inputs, range(3), 1, 0.05)
    assert slow.findings[0].what == "takes more than 0.05 s"
    with pytest.raises(fuzz.Broken, match="a law"):
        fuzz.require(holds_true=False, law="a law")


# ---------------------------------------------------------------- findings
# Of such a length that what takes time with its square does not end.


@pytest.mark.parametrize("stop", [".", "।", ". "])
def test_a_text_of_stops_without_end_reads_as_one_of_few(stop: str) -> None:
    """What once took time with the square of the number of full stops."""
    text = f"Bikes are red{stop * 50_000}x"
    assert read(text).quoted(text) is not None
    assert read("Bikes are red. !").ends >= {14, 16}


def test_a_long_source_without_a_space_is_one_malformed_reference() -> None:
    """What once tried each beginning with each end."""
    ids = "[kc-returns-v3:c0]" * 50_000
    assert len(citations.references(f"x{ids}y z")) == 50_000
    assert citations.references("a-v1" * 100_000 + " b")[0].chunk_id is None
