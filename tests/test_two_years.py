"""Two years in the life of one file: born under the first schema, it ends as sound and as small as a fresh one."""

from __future__ import annotations

import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from builders import Clock, make_source, open_desk, write_source

from evidencedesk import Desk, ToyEmbedder, bm25, parse_document, schema

OLD_FILE = Path(__file__).parent / "old_files" / "0001.db"
WORDS = [
    "bike",
    "bell",
    "brake",
    "chain",
    "helmet",
    "refund",
    "delivery",
    "invoice",
    "repair",
    "battery",
    "৩০",
    "দিন",
    "ফেরত",
    "বাইক",
    "RD2-24",
]


def test_two_years(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some 300 updates, withdrawals, prunes, another embedder, two upgrades and a restored backup."""
    rng = random.Random(24)
    clock = Clock(datetime(2026, 1, 1, tzinfo=UTC))
    path, folder = tmp_path / "desk.db", tmp_path / "docs"
    shutil.copy(OLD_FILE, path)
    Desk.upgrade(path)  # the first upgrade

    def body() -> str:
        parts = (" ".join(rng.choices(WORDS, k=12)) for _ in range(rng.randint(1, 4)))
        return "\n\n".join(f"## Part {n}\n\n{text}." for n, text in enumerate(parts))

    newest = dict.fromkeys((f"policy-{n}" for n in range(20)), 0)
    for month in range(24):
        with open_desk(path, embedder="auto", clock=clock) as desk:
            for _ in range(12):
                clock.advance(days=2)
                family = rng.choice(sorted(newest))
                if rng.random() < 0.6 or newest[family] == 0:
                    newest[family] += 1
                start = (clock.now + timedelta(days=rng.randint(0, 20))).date() if rng.random() < 0.3 else None
                options = {"doc_id": family, "version": newest[family], "effective_from": start}
                desk.update_document(make_source(body(), heading=None, **options))
            for n in range(10):
                if rng.random() < 0.2:
                    write_source(folder, f"{n}.md", body(), heading=None, doc_id=f"note-{n}", version=month + 1)
                elif rng.random() < 0.1:
                    (folder / f"{n}.md").unlink(missing_ok=True)
            folder.mkdir(exist_ok=True)
            desk.ingest(folder, prune=True, prune_limit=0.5)
            if month % 6 == 3:
                family = rng.choice([name for name, version in newest.items() if version])
                desk.withdraw(f"{family}-v{newest[family]}", reason="by the regulator")
            if month == 8:
                desk.reembed(ToyEmbedder(96))
            if month == 12:
                desk.backup(tmp_path / "backup.db")
            if month == 20:
                desk.compact()
            assert desk.check().problems == ()
        if month == 12:
            # The disk is lost, and the backup put into its place.
            for lost in tmp_path.glob("desk.db*"):
                lost.unlink()
            (tmp_path / "backup.db").rename(path)
        if month == 16:
            migrations = tmp_path / "migrations"
            shutil.copytree(schema.migrations_folder(), migrations)
            (migrations / "versions" / "9999_test.py").write_text(
                f"from alembic import op\nrevision = '9999'\ndown_revision = {schema.HEAD!r}\n\n"
                "def upgrade():\n    op.execute('CREATE TABLE later (x)')\n    op.execute('DROP TABLE later')\n"
            )
            monkeypatch.setattr(schema, "migrations_folder", lambda: tmp_path / "migrations")
            monkeypatch.setattr(schema, "REVISIONS", (*schema.REVISIONS, "9999"))
            monkeypatch.setattr(schema, "HEAD", "9999")
            assert Desk.upgrade(path) is not None  # the second upgrade

    with open_desk(path, embedder="auto", clock=clock) as desk, desk.store.read() as snapshot:
        assert bm25.kept_statistics(snapshot.connection) == bm25.rebuilt_statistics(snapshot.connection)
        assert len(desk.documents(status="superseded")) > 50
        desk.compact()
        assert desk.check().problems == ()
        with open_desk(tmp_path / "fresh.db", embedder=ToyEmbedder(96), clock=clock) as fresh:
            for summary in desk.documents():
                with desk.engine.connect() as sql:
                    query = "SELECT source, path FROM documents WHERE doc_id = ?"
                    source, name = sql.exec_driver_sql(query, (summary.doc_id,)).one()
                fresh.update_document(parse_document(source, name))
            fresh.compact()
    assert path.stat().st_size <= 1.3 * (tmp_path / "fresh.db").stat().st_size
