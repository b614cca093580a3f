"""docs/cases.md is complete and true: every entry once, every test that it names there, and naming the entry."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
TABLE = CHECKOUT / "docs" / "cases.md"
ENTRIES = {
    "A": [1, 2, 3, 4, 5, 8, 10, 11, 12, 13, 15, 16, 18],
    "B": [19, 20, 22, 23, 25],
    "C": [27, 28, 29, 31],
    "D": [33, 34, 35, 36, 37, 38, 39, 42, 44, 45],
    "E": [47, 48, 49, 50, 52, 54],
    "F": [56, 57, 59, 60, 62, 63, 65, 66, 67, 68, 70],
    "G": [72, 73, 75, 77, 79, 80, 81, 83, 85, 86, 88],
    "H": [89, 90, 92, 94, 95, 96],
    "I": [99, 101, 102, 103],
    "J": [105, 107],
    "K": [109, 110, 111],
    "L": [113, 114, 117],
}
KNOWN = [f"BR-{number:02}" for numbers in ENTRIES.values() for number in numbers]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows() -> list[tuple[str, str, str, str, list[tuple[str, str]]]]:
    """Kind, entry, situation, behaviour, and the tests (path, name) of each row of the tables."""
    found, kind = [], ""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"## (\w)\. ", line):
            kind = heading[1]
        if line.startswith("| BR-"):
            entry, situation, behaviour, tests = (cell.strip() for cell in line.strip("|").split("|"))
            assert re.fullmatch(rf"(?:{NAMED.pattern}\s*)+", tests), f"{entry}: only tests stand in the last column"
            found.append((kind, entry, situation, behaviour, NAMED.findall(tests)))
    return found


@cache
def functions_of(path: Path) -> dict[str, str]:
    """The source of each test function of a module, decorators included, by name."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    return {
        function.name: "\n".join(lines[min(part.lineno for part in (function, *function.decorator_list)) - 1 : function.end_lineno])
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef) and function.name.startswith("test")
    }  # fmt: skip


def entries_in(text: str) -> set[str]:
    return set(re.findall(r"BR-\d+", text))


def test_every_entry_stands_once_under_its_kind_and_nothing_else_does() -> None:
    assert len(KNOWN) == 78
    listed = [(kind, entry) for kind, entry, *_ in rows()]
    assert listed == [(kind, f"BR-{number:02}") for kind, numbers in ENTRIES.items() for number in numbers]
    assert entries_in(TABLE.read_text(encoding="utf-8")) == set(KNOWN)
    assert all(situation and behaviour for _, _, situation, behaviour, _ in rows())


@pytest.mark.parametrize("entry", KNOWN)
def test_every_test_that_an_entry_names_is_there_and_names_the_entry(entry: str) -> None:
    ((_, _, _, _, named),) = [row for row in rows() if row[1] == entry]
    assert len(set(named)) == len(named)
    for path, name in named:
        written = functions_of(CHECKOUT / path).get(name)
        assert written is not None, f"{path} has no {name}"
        assert entry in entries_in(written), f"{path}::{name} does not name {entry}"


def test_the_tests_of_the_situations_are_all_listed_under_each_entry_that_they_name() -> None:
    listed = {(path, name, entry) for _, entry, _, _, named in rows() for path, name in named}
    for module in Path(__file__).parent.glob("test_kind_*.py"):
        path = module.relative_to(CHECKOUT).as_posix()
        for name, written in functions_of(module).items():
            entries = entries_in(written)
            assert entries, f"{path}::{name} names no entry"
            assert {(path, name, entry) for entry in entries} <= listed


def test_no_test_names_an_entry_that_there_is_not() -> None:
    for module in (CHECKOUT / "tests").rglob("*.py"):
        unknown = entries_in(module.read_text(encoding="utf-8")) - set(KNOWN)
        assert unknown == set(), module.name
