"""JSON that people and models wrote, read strictly: what Python's own reader lets pass in silence is an error. Pure."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any


def loads(text: str) -> Any:
    """Read one JSON value.

    ValueError (JSONDecodeError for what is no JSON at all) also for a key that stands twice in one object, a number
    that JSON cannot hold (NaN, 1e400), and for nesting without end.
    """
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_float=_finite, parse_constant=_finite)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def lines(text: str) -> Iterator[tuple[int, str]]:
    """Give the lines of a JSONL text that are not blank, each with its number from 1.

    Only a line feed ends one: JSON text may hold U+2028, at which `splitlines` would cut.
    """
    return ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    counts = Counter(key for key, _ in pairs)
    if twice := [key for key, count in counts.items() if count > 1]:
        raise ValueError(f"the key {', '.join(map(repr, twice))} stands twice in one object")
    return dict(pairs)


def _finite(number: str) -> float:
    if math.isfinite(value := float(number)):
        return value
    raise ValueError(f"{number} is no number that JSON can hold")
