"""How fast, how right and how large: evidencedesk and what people would install in its place, on the same data.

python -m benchmarks.speed --n 10000 100000 1000000 --against all
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.speed import report
from benchmarks.speed.data import prepare
from benchmarks.speed.measure import measure, tell
from benchmarks.speed.systems import SYSTEMS, EvidenceDesk

PEERS = [name for name in SYSTEMS if name != EvidenceDesk.name]


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, nargs="+", default=[10_000], help="chunks")
    parser.add_argument("--against", nargs="*", default=[], choices=["all", *PEERS], help="other systems")
    parser.add_argument("--keep", type=Path, help="folder that keeps data and what is built for the next run")
    parser.add_argument("--questions", type=int, default=30, help="of each of three kinds")
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--cold", type=int, default=5, help="cold starts")
    parser.add_argument("--build-threads", type=int, default=1)
    parser.add_argument("--embeddings", type=Path, help="an .npy of real vectors, 384 wide, in place of clustered ones")
    parser.add_argument("--asked", type=Path, help="an .npy of the vectors of questions to them")
    parser.add_argument("--json", type=Path, help="write every figure there")
    return parser


def main() -> int:
    parser = options()
    given = parser.parse_args()
    if (given.embeddings is None) != (given.asked is None):
        parser.error("--embeddings and --asked come together")
    names = [EvidenceDesk.name, *(PEERS if "all" in given.against else dict.fromkeys(given.against))]
    runs, failed = [], False
    with tempfile.TemporaryDirectory() as temporary:
        for count in given.n:
            folder = (given.keep or Path(temporary)) / str(count)
            tell(f"{count} chunks in {folder}")
            data = prepare(folder / "data", count, given.questions, embeddings=given.embeddings, asked=given.asked)
            figures = measure(
                data, names, folder, build_threads=given.build_threads, updates=given.updates, cold_starts=given.cold
            )
            print("\n".join(report.show(data, figures)), flush=True)
            failed = failed or any(found.problem and not found.is_missing for found in figures)
            runs.append(report.as_json(data.count, figures))
    if given.json is not None:
        given.json.write_text(json.dumps(runs, indent=1))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
