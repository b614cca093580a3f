"""What an attacker may try who controls a document, a question, a model, an endpoint or the file; docs/security.md."""

from __future__ import annotations

import ast
import base64
import json
import logging
import os
import re
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from builders import make_source, markdown, open_desk, write_source

import evidencedesk
from evidencedesk import Desk, OpenAIClient, RecordedReplies, documents
from evidencedesk.documents import find_sources, parse_document, read_document
from evidencedesk.embeddings.endpoint import OpenAIEmbedder
from evidencedesk.errors import FrontMatterError, ModelError, NotFound, UnreadableSource
from evidencedesk.records import ModelRequest

PACKAGE = Path(evidencedesk.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# ---------------------------------------------------------------- SQL

_SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|PRAGMA|CREATE|DROP|VACUUM|WHERE|FROM)\b")

# What is put into a statement's text besides constants, `?` and whole numbers; each with the reason why no text of a
# document, a question or a caller can be in it.
ASSEMBLED = {
    ("bm25/counting.py", "joined"): "a constant of the same function",
    ("bm25/segments.py", "columns"): "names of columns, a constant of the same function",
    ("bm25/segments.py", "table"): "one of three names in the loop above",
    ("bm25/state.py", "column"): "valid_from or valid_to, from the loop around it",
    ("bm25/writing.py", "mine"): "a subquery, a constant of the same function",
    ("bm25/writing.py", "table"): "one of the names in the loop above",
    ("schema.py", "name"): "names of files in migrations/views, which come with the package",
    ("schema.py", "file.stem"): "the same, compared with the file's statement and not run",
    ("schema.py", "file.name"): "the same, in an error's sentence",
    ("store/answers.py", "columns"): "constants of the callers in the module",
    ("store/answers.py", "view"): "the statement of a view that comes with the package",
    ("store/answers.py", "where"): "constants of the callers in the module, with named parameters",
    ("store/answers.py", "order"): "constants of the callers in the module",
    ("store/snapshot.py", "name"): "integrity_check or foreign_key_check, from inspection",
    ("vectors/search.py", "listed"): "whole numbers joined by commas",
    ("vectors/truth.py", "listed"): "whole numbers joined by commas",
}


def is_harmless(part: ast.expr) -> bool:
    """A constant's name, a number, or question marks."""
    written = ast.unparse(part)
    return bool(
        re.fullmatch(r"[A-Z][A-Z0-9_.]*|_[A-Z][A-Z0-9_]*", written)
        or re.fullmatch(r"int\(.*\)", written)
        or re.fullmatch(r"_places\(\w+\)|', '\.join\('\?' \* len\([\w.]+\)\)", written)
    )


def test_nothing_but_constants_and_placeholders_is_put_into_sql() -> None:
    """A new statement that is assembled from anything else needs its reason in ASSEMBLED; one that is gone loses it."""
    found = set()
    for module in MODULES:
        place = module.relative_to(PACKAGE).as_posix()
        for joined in (
            node for node in ast.walk(ast.parse(module.read_text("utf-8"))) if isinstance(node, ast.JoinedStr)
        ):
            written = "".join(part.value for part in joined.values if isinstance(part, ast.Constant))
            if not _SQL.search(written):
                continue
            for part in joined.values:
                if isinstance(part, ast.FormattedValue) and not is_harmless(part.value):
                    found.add((place, ast.unparse(part.value)))
    assert found == ASSEMBLED.keys()


def test_no_sql_is_glued_together_in_another_way() -> None:
    """`+` and `%` on a statement are not there at all; `format` only fills in question marks."""
    formatted = []
    for module in MODULES:
        source = module.read_text("utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
                sides = [side.value for side in (node.left, node.right) if isinstance(side, ast.Constant)]
                assert not any(isinstance(side, str) and _SQL.match(side) for side in sides), (module.name, node.lineno)
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("query.format", "statement.format"):
                formatted.append(ast.unparse(node.args[0]))
    assert set(formatted) == {"', '.join('?' * len(some))"}


HOSTILE = [
    "'; DROP TABLE documents; --",
    '" OR 1=1 --',
    "a' UNION SELECT source FROM documents --",
    "%",
    "_",
    "\x00",
    ":now",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_only_a_text_wherever_it_is_given(text: str) -> None:
    with open_desk(sources=[make_source("Bikes are red.")], embedder="toy") as desk:
        assert [hit.chunk.id for hit in desk.search(f"bikes {text}", k=5)] == ["shop-v1:c0"]
        for options in ({"lang": text}, {"family": text}):
            assert list(desk.search("bikes", **options)) == []
        for look in (desk.document, desk.chunk, desk.history, lambda name: desk.withdraw(name, reason=name)):
            with pytest.raises(NotFound):
                look(text)
        desk.ask(text, record=True)
        desk.verify(f"Bikes are red. [{text}]")
        desk.update_document(make_source(f"Lamps {text.replace(chr(0), '')}", doc_id="lamp-v1", path=text))
        desk.withdraw("lamp-v1", reason=text)
        assert len(desk.documents()) == 2
        assert desk.check().ok


# ---------------------------------------------------------------- code


def test_no_module_runs_text_or_unpickles_it() -> None:
    forbidden = {
        "eval",
        "exec",
        "compile",
        "__import__",
        "pickle",
        "marshal",
        "shelve",
        "dill",
        "subprocess",
        "popen",
        "system",
    }
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name.partition(".")[0] for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [(node.module or "").partition(".")[0]]
            elif isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                # `re.compile` makes a pattern.
                names = [] if called == "re.compile" else [called.rpartition(".")[2]]
                if called == "np.load":
                    names = ["pickle"]
            assert not forbidden.intersection(names), (module.name, node.lineno)


def test_yaml_is_composed_by_the_safe_loader_only() -> None:
    used = [
        (module.name, ast.unparse(node))
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("yaml.") and "error" not in ast.unparse(node)
    ]  # fmt: skip
    assert [call for _, call in used if "Error" not in call] == ["yaml.compose(block, Loader=_Loader)"]
    assert issubclass(documents._Loader, documents.yaml.SafeLoader)


# ---------------------------------------------------------------- a document


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "front",
    [
        BOMB,
        "a: &a [*a]",
        "a: !!python/object/apply:os.system ['true']",
        "a: !!python/name:os.system",
        "? [a]\n: b",
        "[" * 20_000,
        "a: " + "{b: " * 3000,
        "x: " + "y" * documents.MAX_FRONT_MATTER_CHARS,
        "\n".join(f"k{n}: v" for n in range(documents.MAX_FRONT_MATTER_VALUES)),
    ],
    ids=["aliases", "itself", "call", "name", "key", "brackets", "braces", "long", "many"],
)
def test_metadata_that_would_grow_or_run_is_refused(front: str) -> None:
    with pytest.raises(FrontMatterError):
        parse_document(f"---\n{front}\n---\nText.\n", "a.md")


def test_a_folder_without_end_and_a_file_without_end_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the folder comes in."""
    write_source(tmp_path / "docs", "good.md", "Bikes are red.", doc_id="good-v1")
    here = Path.cwd()
    try:
        os.chdir(tmp_path / "docs")
        for _ in range(1100):  # deeper than Python's recursion goes
            os.mkdir("d")  # noqa: PTH102 - only relative steps reach so deep
            os.chdir("d")
        Path("deep.md").write_text(markdown("Deep.", doc_id="deep-v1"))
    finally:
        os.chdir(here)
    monkeypatch.setattr(documents, "MAX_FILE_BYTES", 5000)
    write_source(tmp_path / "docs", "large.md", "Words. " * 1000, doc_id="large-v1")
    found, skipped = find_sources(tmp_path / "docs")
    assert found == ["good.md", "large.md"]
    assert [entry.reason for entry in skipped] == ["more than 100 folders deep"]
    with open_desk() as desk:
        report = desk.ingest(tmp_path / "docs")
        assert (report.added, [failed.path for failed in report.failed]) == (("good-v1",), ["large.md"])
        assert "larger than" in report.failed[0].error
    with pytest.raises(UnreadableSource, match="folders deep"):
        read_document(tmp_path / "docs", "/".join(["d"] * 101 + ["deep.md"]))


def test_the_name_of_a_document_opens_nothing(tmp_path: Path) -> None:
    """BR-114: nor does its metadata; the folder next to it keeps its secret."""
    (tmp_path / "secret.md").write_text("The password is tulip.")
    write_source(tmp_path / "docs", "a.md", "Bikes.", doc_id="a-v1", source="../secret.md", path="../secret.md")
    (tmp_path / "docs" / "link.md").symlink_to(tmp_path / "secret.md")
    with open_desk() as desk:
        report = desk.ingest(tmp_path / "docs")
        assert [entry.path for entry in report.skipped] == ["link.md"]
        assert list(desk.search("password tulip", k=5)) == []
        for name in ("../secret", "../secret.md", str(tmp_path / "secret.md")):
            with pytest.raises(NotFound):
                desk.document(name)


# ---------------------------------------------------------------- a model and its endpoint

KEY = "sk-proj-0123456789abcdefghijklmn"


PASSWORD = "correct-horse-battery"


def assert_no_secret(text: str) -> None:
    basic = base64.b64encode(f"user:{PASSWORD}".encode()).decode()
    assert [secret for secret in (KEY, PASSWORD, basic) if secret in text] == []


@pytest.fixture
def echoing() -> Iterator[ThreadingHTTPServer]:
    """An endpoint that repeats the key that it was sent, in a reply or in an error of the status in the model's name."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            key, status = self.headers["Authorization"], int(asked["model"])
            claims = [{"text": f"Bikes are red and {key}.", "sources": [1]}]
            reply = json.dumps({"abstained": False, "claims": claims})
            message = {"role": "assistant", "content": reply}
            good = {"id": "1", "object": "chat.completion", "created": 1, "model": "m",
                    "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}  # fmt: skip
            body = json.dumps(good if status == 200 else {"error": {"message": f"no: {key}", "code": key}}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("login", [False, True], ids=["key", "login"])
@pytest.mark.parametrize("status", [200, 400, 401, 404, 422, 500])
def test_a_key_is_in_no_error_log_record_or_file(
    echoing: ThreadingHTTPServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, status: int, login: bool
) -> None:
    """Even where the endpoint repeats it: not in the answer, its traceback, what is logged, or what is recorded."""
    pytest.importorskip("openai")
    login = f"user:{PASSWORD}@" if login else ""
    url = f"http://{login}127.0.0.1:{echoing.server_port}/v1?key={KEY}"
    client = OpenAIClient(str(status), base_url=url, api_key=KEY, max_retries=0)
    caplog.set_level(logging.DEBUG, logger="evidencedesk")
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source("Bikes are red.")]) as desk:
        answer = desk.ask("Are bikes red?", llm=client, record=True)
        recorded = desk.answers()
        assert_no_secret(f"{answer!r} {recorded!r} {client!r} {vars(client)}")
        request = ModelRequest("q", (), "s", "p", {})
        try:
            replied = client.complete(request)
        except ModelError as error:
            shown = "".join(traceback.format_exception(error))
            logging.getLogger("evidencedesk").exception("failed")
        else:
            shown = replied
        assert answer.reason == ("unsupported_claim" if status == 200 else "model_failed")
        assert_no_secret(shown)
        desk.compact()
    assert_no_secret("".join(record.getMessage() + str(record.exc_text) for record in caplog.records))
    assert_no_secret(b"".join(file.read_bytes() for file in tmp_path.iterdir()).decode("latin-1"))


def test_a_key_is_in_no_error_of_an_embedder(echoing: ThreadingHTTPServer) -> None:
    pytest.importorskip("openai")
    url = f"http://127.0.0.1:{echoing.server_port}/v1"
    embedder = OpenAIEmbedder("401", base_url=url, api_key=KEY, max_retries=0)
    with pytest.raises(evidencedesk.EvidenceDeskError) as caught:
        embedder.embed_documents(["Bikes."])
    assert_no_secret("".join(traceback.format_exception(caught.value)) + repr(embedder))


@pytest.mark.parametrize("line", ["[" * 100_000, '{"question": "q", "reply": ' + "[" * 100_000])
def test_replies_nested_without_end_are_a_value_error(tmp_path: Path, line: str) -> None:
    (tmp_path / "replies.jsonl").write_text(line)
    with pytest.raises(ValueError, match=r"replies.jsonl, line 1"):
        RecordedReplies.from_jsonl(tmp_path / "replies.jsonl")


# ---------------------------------------------------------------- the file


def test_a_view_or_trigger_that_someone_put_into_the_file_only_computes(tmp_path: Path) -> None:
    """Loading extensions is locked, and the schema may call no function that was not made for it."""
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source("Bikes are red.")], embedder="toy") as desk, desk.engine.connect() as sql:
        raw = sql.connection.driver_connection
        assert raw.execute("PRAGMA trusted_schema").fetchone()[0] == 0
        raw.execute("DROP VIEW current_chunks")
        raw.execute("CREATE VIEW current_chunks AS SELECT load_extension('x') AS chunk_id")
        with pytest.raises(Exception, match=r"not authorized|unsafe use|prohibited"):
            raw.execute("SELECT * FROM current_chunks").fetchall()


def test_a_desk_that_is_only_read_never_changes(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source("Bikes are red.")]):
        pass
    before = path.read_bytes()
    with Desk.open(path, embedder="none", read_only=True) as desk:
        desk.search("bikes")
        desk.ask("Which colour have bikes?")
        desk.check()
    assert path.read_bytes() == before
