"""A cold process: open one system, search once, say what was found. `python -m benchmarks.speed.cold NAME FOLDER`.

The question comes on standard input as JSON, its vector in hexadecimal, so that nothing is imported that the system
itself does not import.
"""

import json
import sys
from array import array
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.speed.systems import SYSTEMS


class Question(NamedTuple):
    text: str
    vector: Any


def main() -> None:
    name, folder = sys.argv[1:]
    asked = json.loads(sys.stdin.readline())
    system = SYSTEMS[name](Path(folder))
    system.open()
    vector = array("f", bytes.fromhex(asked["vector"]))
    found = system.search("hybrid", Question(asked["text"], vector), "")
    print(json.dumps(system.rows(found)), flush=True)


if __name__ == "__main__":
    main()
