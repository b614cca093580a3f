"""Fitting a coding to the file's own vectors, and proving on them that it finds what an exact scan finds.

The error of an estimate, in units of scale * |q - c|, hardly depends on the data, but "hardly" is measured here and
not believed: some vectors of the file ask, others are searched, the search is the one that the desk runs, and its
answers are compared with the exact ones. The coding that reaches the promised recall is kept; where none does, or only
one that reads most vectors anyway (thousands that are almost the same), there is none, and the exact scan goes on.
"""

from __future__ import annotations

import secrets
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evidencedesk.vectors.codes import DEPTH, PLANES, Codes, Coding, encode, encode_question
from evidencedesk.vectors.scan import hamming, nearest_places

RECALL = 0.99
"""Promised recall@k, at every k."""
_AIM = 0.995
"""What the self-check must reach: a sample says it to within a quarter of a per cent."""
_QUESTIONS = 200
_DEPTHS = (10, 100)
"""Each k of the self-check: what a search asks for by default, and each leg of a hybrid one."""
_COMPARED = 64
_TRIALS = ((0.993, 0.998), (0.996, 0.999), (0.999, 1.0))
"""How many of the errors the slack covers, and how many of the DEPTH nearest the kept share holds.

The first bounds the loss at every k, and in a file that is denser than the sample: a neighbour at the edge of the k
nearest is lost when its error exceeds the slack.
"""
_LEAST_SHARE = 0.01
_MOST_READ = 0.5
"""Share of the vectors that a search for the first of _DEPTHS may read: the exact scan reads all, in a row."""
_ROWS = 4096
_QUESTIONS_ARE_FARTHER = 2.0
"""The share is widened by this: a real question lies farther from the texts than these from one another, and there the
signs say less. Without it, 500 real questions to e5 had a recall@10 of 0.990 where the vectors themselves had 0.997.
"""


def new_coding(sample: NDArray[np.float32], count: int) -> Coding:
    """A coding with the centre of a sample, shape (n, dimension), of `count` vectors; not yet tuned."""
    centre = sample.mean(axis=0, dtype=np.float64).astype(np.float32)
    return Coding(secrets.token_hex(8), centre, 1.0, 1.0, 0.0, count, 0, 0)


def tuned(coding: Coding, sample: NDArray[np.float32], count: int) -> Coding:
    """The coding with slack, kept share and recall as the self-check on a sample of `count` vectors gives them.

    Where `recall` is below RECALL the codes must not be searched.
    """
    if len(sample) <= max(_DEPTHS):
        return replace(coding, recall=0.0, tuned_on=count)
    codes = encode(coding, sample)
    asking = np.linspace(0, len(sample) - 1, min(_QUESTIONS, len(sample)), dtype=np.intp)
    exact = _cosines(sample[asking], sample)
    # A question is a vector of the file, and what it finds first, itself, says nothing.
    exact[np.arange(len(asking)), asking] = -np.inf
    errors, ranks = _measured(coding, codes, sample[asking], exact)
    best = replace(coding, recall=0.0, tuned_on=count)
    for of_errors, of_ranks in _TRIALS:
        slack = max(0.0, float(np.quantile(errors, of_errors)))
        ranked = _QUESTIONS_ARE_FARTHER * float(np.quantile(ranks, of_ranks)) / len(sample)
        share = min(1.0, max(_LEAST_SHARE, ranked))
        trial = replace(best, slack=slack, kept_share=share)
        checks = [_checked(trial, codes, sample, asking, exact, k) for k in _DEPTHS]
        recall = min(recall for recall, _ in checks)
        if checks[0][1] > _MOST_READ:
            break
        if recall > best.recall:
            best = replace(trial, recall=recall)
        if recall >= _AIM:
            break
    return best


def _measured(
    coding: Coding, codes: Codes, questions: NDArray[np.float32], exact: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Errors of estimates for each question, and the ranks of its DEPTH nearest by the signs alone.

    The errors are those of any vectors, not of near ones, where they are a little smaller (by sqrt(1 - cosine^2)): so
    the slack holds for questions that lie near nothing.
    """
    errors, ranks = [], []
    spread = np.linspace(0, len(codes) - 1, min(_COMPARED, len(codes)), dtype=np.intp)
    some = codes.take(spread)
    for number, vector in enumerate(questions):
        question = encode_question(coding, vector)
        best = np.argpartition(-exact[number], DEPTH)[:DEPTH]
        signs = hamming(codes.words, question.planes[PLANES - 1])
        ranks.append(np.searchsorted(np.sort(signs), signs[best], side="right").astype(np.float64))
        weighted = sum(hamming(some.words, question.planes[n]).astype(np.float64) * 2**n for n in range(PLANES))
        products = question.step * ((2**PLANES - 1) / 2 * coding.width - weighted)
        estimates = question.constant + some.offsets + some.scales * products
        errors.append((exact[number][spread] - estimates) / np.maximum(some.scales * question.distance, 1e-12))
    every = np.concatenate(errors)
    return every[np.isfinite(every)], np.concatenate(ranks)


def _cosines(questions: NDArray[np.float32], sample: NDArray[np.float32]) -> NDArray[np.float64]:
    """In double precision, as a search has them: in single, vectors that are almost the same would tie."""
    asking = questions.astype(np.float64)
    blocks = range(0, len(sample), _ROWS)
    return np.concatenate([asking @ sample[start : start + _ROWS].T.astype(np.float64) for start in blocks], axis=1)


def _checked(
    coding: Coding,
    codes: Codes,
    sample: NDArray[np.float32],
    asking: NDArray[np.intp],
    exact: NDArray[np.float64],
    k: int,
) -> tuple[float, float]:
    """Share of the k nearest that the search finds, and of all vectors that it reads."""
    found, read = 0.0, 0
    outside = np.zeros(len(codes), np.uint16)
    for place, row in zip(asking.tolist(), exact, strict=True):
        outside[place] = np.iinfo(np.uint16).max
        question = encode_question(coding, sample[place])

        def fetch(places: NDArray[np.intp], row: NDArray[np.float64] = row) -> NDArray[np.float64]:
            nonlocal read
            read += len(places)
            return row[places]

        _, cosines = nearest_places(codes, coding, question, k, fetch, outside)
        outside[place] = 0
        # By cosine, not by place: of vectors that tie either is right.
        floor = np.partition(row, len(row) - k)[len(row) - k]
        found += min(k, int((cosines >= floor).sum())) / k
    return found / len(asking), read / len(asking) / len(codes)
