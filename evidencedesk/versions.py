"""Versions, the marks at the end of a doc_id, and the rule that says which document of a line is in force."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from evidencedesk.records import Status

_VERSION = re.compile(r"[vV]?(\d+(?:[.\-]\d+)*)")
_VERSION_MARK = re.compile(r"-v(\d+(?:\.\d+)*)$")
_DATE_TIME = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2})?)?")
_SORT_WIDTH = 12


def version_parts(version: str) -> tuple[int, ...]:
    """The numbers of a version, for comparison: `v3` and `3` give (3,), `1.10` gives (1, 10), `2024-01` (2024, 1).

    Trailing zeros say nothing: `1.0` equals `1`. Decimal digits of any script count. ValueError when the text
    is not numbers joined by dots or hyphens, or a number has more than twelve digits.
    """
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        raise ValueError(
            f"version must be numbers joined by dots or hyphens, such as v3, 1.10 or 2024-01, not {version!r}"
        )
    digits = re.split(r"[.\-]", match.group(1))
    if any(len(part) > _SORT_WIDTH for part in digits):
        raise ValueError(f"a number of a version has at most {_SORT_WIDTH} digits: {version!r}")
    parts = [int(part) for part in digits]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def version_sort_key(version: str) -> str:
    """Text that sorts, in SQL too, as the versions do: each number padded with zeros to twelve digits."""
    return ".".join(f"{part:0{_SORT_WIDTH}d}" for part in version_parts(version))


def _mark_text(version: str) -> str:
    digits = _VERSION.fullmatch(version.strip())
    if digits is None:
        raise ValueError(f"not a version: {version!r}")
    return ".".join(str(int(part)) if not part.isascii() else part for part in re.split(r"[.\-]", digits.group(1)))


@dataclass(frozen=True, slots=True)
class Marks:
    """A doc_id taken apart."""

    base: str
    """What is left without the marks: the family, unless the front matter names another."""
    version: str | None
    """The digits of the version mark `-v<digits[.digits]>`, if there is one."""
    has_lang: bool


def split_marks(doc_id: str, lang: str) -> Marks:
    """Take the version mark and the language mark, in either order, off the end of a doc_id.

    The language mark is exactly the document's own `lang` (in any letter case, as tags are), so `refund-hey` in
    English has none.
    """
    base, version, has_lang = doc_id, None, False
    for _ in range(2):
        match = _VERSION_MARK.search(base)
        if version is None and match and match.start() > 0:
            base, version = base[: match.start()], match.group(1)
        elif not has_lang and base.lower().endswith(f"-{lang.lower()}") and len(base) > len(lang) + 1:
            base, has_lang = base[: -len(lang) - 1], True
    return Marks(base, version, has_lang)


def full_doc_id(doc_id: str, version: str, lang: str) -> str:
    """The doc_id with its version mark: as given when it has one, else the mark is added, and behind it the language.

    English and undetermined (`und`) texts get no language mark. ValueError when a mark contradicts `version`.
    """
    marks = split_marks(doc_id, lang)
    if marks.version is None:
        suffix = "" if lang in ("en", "und") and not marks.has_lang else f"-{lang}"
        return f"{marks.base}-v{_mark_text(version)}{suffix}"
    if version_parts(marks.version) != version_parts(version):
        raise ValueError(f"doc_id {doc_id!r} says version {marks.version}, but version is {version!r}; make them agree")
    return doc_id


def parse_instant(text: str, *, end_of_day: bool = False) -> datetime:
    """An ISO date or date-time as an aware UTC instant; without an offset it is UTC.

    A plain date is its first instant, or with `end_of_day` its last. ValueError for anything else, a date that
    does not exist included.
    """
    ascii_text = "".join(str(int(c)) if c.isdecimal() else c for c in text.strip())
    if not _DATE_TIME.fullmatch(ascii_text):
        raise ValueError(f"not an ISO date such as 2024-01-15: {text!r}")
    try:
        if len(ascii_text) == 10:
            edge = time.max if end_of_day else time.min
            return datetime.combine(date.fromisoformat(ascii_text), edge, UTC)
        instant = datetime.fromisoformat(ascii_text)
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"not a date that exists: {text!r} ({error})") from error


@dataclass(frozen=True, slots=True)
class VersionFacts:
    """What the rule needs to know of one document of a line."""

    doc_id: str
    sort_key: str
    came_in: datetime
    effective_from: datetime | None = None
    effective_to: datetime | None = None
    withdrawn_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """What the rule makes of one document: its status and its half-open validity."""

    doc_id: str
    sort_key: str
    status: Status
    valid_from: datetime
    valid_to: datetime | None


def settle(line: Sequence[VersionFacts], now: datetime) -> list[Standing]:
    """The standing of every document of one line at `now`, in the order of versions; does not depend on arrival.

    A document is valid from its effective_from (else from when it came in) until the first instant at which a
    higher version starts, its own effective_to passes or it is withdrawn, whichever is first. So validities of
    a line never overlap, and the one in force is the one whose validity holds the instant. A version that was
    withdrawn before it began never replaced anything. A document that is here has come in: a clock that has
    stepped back since does not undo that.
    """
    now = max([now, *(facts.came_in for facts in line if facts.effective_from is None)])
    standings: list[Standing] = []
    next_start: datetime | None = None  # the earliest start of any higher version
    for facts in sorted(line, key=lambda f: f.sort_key, reverse=True):
        start = facts.effective_from or facts.came_in
        if facts.effective_from is None and facts.effective_to is not None:
            start = min(start, facts.effective_to)
        ends = [end for end in (next_start, facts.effective_to, facts.withdrawn_at) if end is not None]
        end = max(start, min(ends)) if ends else None
        standings.append(
            Standing(facts.doc_id, facts.sort_key, _status(facts, start, end, next_start, now), start, end)
        )
        if facts.withdrawn_at is None or facts.withdrawn_at > start:
            next_start = start if next_start is None else min(next_start, start)
    return standings[::-1]


def _status(
    facts: VersionFacts, start: datetime, end: datetime | None, next_start: datetime | None, now: datetime
) -> Status:
    if facts.withdrawn_at is not None:  # even by a clock that is ahead of this one
        return "withdrawn"
    if next_start is not None and next_start <= now:
        return "superseded"
    if facts.effective_to is not None and facts.effective_to <= now:
        return "expired"
    if start > now:
        # A start behind a higher version's own: it will never be in force, and is superseded when that one begins.
        return "scheduled"
    return "current"
