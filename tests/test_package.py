"""What is installed works with no file outside of the package, and with every SQLite library there is."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from builders import make_source, open_desk

CHECKOUT = Path(__file__).parent.parent
USE = """
import sys, evidencedesk
from evidencedesk.schema import migrations_folder
desk = evidencedesk.Desk.open(sys.argv[1], embedder="toy")
desk.update_document(evidencedesk.parse_document("---\\ndoc_id: a-v1\\n---\\nBikes are red.\\n", "a.md"))
print([desk.search("red bikes", mode=mode)[0].chunk.id for mode in ("keyword", "vector", "hybrid")])
print(evidencedesk.__file__, migrations_folder(), desk.check().ok, sep="\\n")
"""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(CHECKOUT)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("pattern", ["*.whl", "*.tar.gz"])
def test_an_installed_package_finds_its_migrations(distributions: Path, tmp_path: Path, pattern: str) -> None:
    """BR-27: from the wheel and from the sdist, in a place with spaces, a per cent sign and Bangla letters."""
    (distribution,) = distributions.glob(pattern)
    place = tmp_path / "a place 100% বাংলা"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(place), str(distribution)], check=True, capture_output=True)
    empty = tmp_path / "empty"
    empty.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", USE, "desk.db"], cwd=empty, env={**os.environ, "PYTHONPATH": str(place)},
        capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found, module, migrations, ok = done.stdout.splitlines()
    assert found == "['a-v1:c0', 'a-v1:c0', 'a-v1:c0']"
    assert Path(module).is_relative_to(place)
    assert Path(migrations).is_relative_to(place)
    assert ok == "True"


@pytest.mark.parametrize("driver", ["pysqlite3", "sqlean", "sqlite3"])
def test_every_sqlite_library_gives_the_same_hits(tmp_path: Path, driver: str) -> None:
    """BR-12 and BR-01: older libraries, and those that cannot load an extension, included."""
    if importlib.util.find_spec(driver) is None:
        pytest.skip(f"{driver} is not installed")
    path = tmp_path / "desk.db"
    sources = [
        make_source(f"Bikes number {n} are red.", doc_id=f"shop-{n}-v1", lang=lang)
        for n in range(9)
        for lang in ("en", "de")
    ]
    with open_desk(path, sources[::2], embedder="toy") as desk:
        expected = [desk.search("red bikes 7", mode=mode, k=5, lang="en") for mode in ("keyword", "vector", "hybrid")]
    code = (
        "import sys, evidencedesk\n"
        "desk = evidencedesk.Desk.open(sys.argv[1], read_only=True)\n"
        "for mode in ('keyword', 'vector', 'hybrid'):\n"
        "    print([(hit.chunk.id, hit.score) for hit in desk.search('red bikes 7', mode=mode, k=5, lang='en')])\n"
        "print(desk.check().facts['sqlite'], desk.check().ok)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], env={**os.environ, "EVIDENCEDESK_SQLITE_DRIVER": driver},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *hits, facts = done.stdout.splitlines()
    assert hits == [str([(hit.chunk.id, hit.score) for hit in found]) for found in expected]
    assert facts.endswith(f"through {driver} True")
