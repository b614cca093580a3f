"""JSON that people and models wrote is read strictly: nothing is passed over in silence."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidencedesk import strict_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(VALUES)
def test_what_is_json_is_read_as_python_reads_it(value: object) -> None:
    assert strict_json.loads(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1, "b": 2, "a": 1}', "the key 'a' stands twice in one object"),
        ('{"a": {"b": 1, "b": 1}}', "the key 'b' stands twice"),
        ("[NaN]", "NaN is no number that JSON can hold"),
        ("[-Infinity]", "-Infinity is no number"),
        ("1e400", "1e400 is no number"),
        ("[" * 200_000, "it is nested too deeply"),
        ("9" * 5000, "Exceeds the limit"),
    ],
)
def test_what_python_lets_pass_or_chokes_on_is_a_value_error(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        strict_json.loads(text)


def test_what_is_no_json_names_the_place() -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        strict_json.loads('{"a": }')
    assert caught.value.colno == 7


def test_lines_are_numbered_as_an_editor_does_and_end_at_newlines_alone() -> None:
    """BR-111: blank lines are passed over but counted; JSON text may hold U+2028 and U+0085."""
    assert list(strict_json.lines('1\r\n\n \t\n"a\u2028b\x85"\n')) == [(1, "1\r"), (4, '"a\u2028b\x85"')]
    assert list(strict_json.lines("")) == []
