"""Real vectors for `--embeddings` and `--asked`: e5 over the sentences and the questions of the public sets.

    python -m benchmarks.speed.embed FOLDER [--data EVALDATA] [--limit 10000]

writes FOLDER/vectors.npy and FOLDER/questions.npy. Sentences are cut at 110 characters, since e5 takes about 1.5 ms of
processor a token, and drawn at random with a seed; they are English and Bangla.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.quality import read_cases
from benchmarks.speed.measure import tell
from evidencedesk import E5Embedder
from evidencedesk.documents import find_sources, read_document
from evidencedesk.text import sentences

FEWEST_CHARS, MOST_CHARS = 26, 110
AT_ONCE = 64


def texts_of(data: Path) -> Iterator[str]:
    """Sentences of all documents of all sets, the same text once."""
    seen: set[str] = set()
    for corpus in sorted(data.glob("*/corpus")):
        for path in find_sources(corpus)[0]:
            source = read_document(corpus, path)
            for line in source.source.splitlines():
                for span in sentences(line):
                    text = line[span.start : span.end].strip()[:MOST_CHARS]
                    if len(text) >= FEWEST_CHARS and text not in seen:
                        seen.add(text)
                        yield text


def main() -> int:
    beside = Path(__file__).resolve().parents[3] / "shared" / "evaldata"
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.embed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("EVIDENCEDESK_EVALDATA") or beside))
    parser.add_argument("--limit", type=int, default=10_000, help="sentences")
    parser.add_argument("--questions", type=int, default=500)
    given = parser.parse_args()
    chance = random.Random(1)
    texts = sorted(texts_of(given.data))
    asked = sorted({case.question for path in given.data.glob("*/cases.jsonl") for case in read_cases(path)})
    if not texts or not asked:
        parser.error(f"no sets with corpus and cases.jsonl in {given.data}")
    chance.shuffle(texts)
    chance.shuffle(asked)
    embedder, made = E5Embedder(), []
    texts = texts[: given.limit]
    for start in range(0, len(texts), AT_ONCE):
        made.append(embedder.embed_documents(texts[start : start + AT_ONCE]))
        if start % (10 * AT_ONCE) == 0:
            tell(f"{start} of {len(texts)}")
    given.folder.mkdir(parents=True, exist_ok=True)
    np.save(given.folder / "vectors.npy", np.concatenate(made).astype(np.float32))
    questions = embedder.embed_queries(asked[: given.questions])
    np.save(given.folder / "questions.npy", np.asarray(questions, dtype=np.float32))
    return 0


if __name__ == "__main__":
    sys.exit(main())
