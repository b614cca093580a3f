"""Real vectors for `--embeddings` and `--asked`: e5 over the sentences and the questions of the public sets.

    python -m benchmarks.speed.embed FOLDER [--data EVALDATA] [--limit 10000]

writes FOLDER/vectors.npy and FOLDER/questions.npy. Sentences are cut at 110 characters, since e5 takes about 1.5 ms of
processor a token, and drawn at random with a seed; they are English and Bangla.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.common import QuestionSet, command, no_data, question_set, read_cases
from benchmarks.speed.measure import tell
from evidencedesk import E5Embedder
from evidencedesk.documents import find_sources, read_document
from evidencedesk.text import sentences

SETS = ("ver_policies", "en_squad2", "bn_tydi", "en_covidqa")
FEWEST_CHARS, MOST_CHARS = 26, 110
AT_ONCE = 64


def texts_of(sets: Sequence[QuestionSet]) -> Iterator[str]:
    """Sentences of all documents of the sets, the same text once."""
    seen: set[str] = set()
    for some in sets:
        for path in find_sources(some.corpus)[0]:
            for line in read_document(some.corpus, path).source.splitlines():
                for span in sentences(line):
                    text = line[span.start : span.end].strip()[:MOST_CHARS]
                    if len(text) >= FEWEST_CHARS and text not in seen:
                        seen.add(text)
                        yield text


def main() -> int:
    parser = command("speed.embed", __doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int, default=10_000, help="sentences")
    parser.add_argument("--questions", type=int, default=500)
    given = parser.parse_args()
    sets = [question_set(name, given.data) for name in SETS]
    if absent := [some.name for some in sets if not some.cases.is_file()]:
        no_data(parser, f"{given.data} has no {', '.join(absent)}", "the sets")
    chance = random.Random(1)
    texts = sorted(texts_of(sets))
    asked = sorted({case.question for some in sets for case in read_cases(some.cases)})
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
