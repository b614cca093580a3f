"""Fitting a coding to the file's own vectors, and proving on them that it finds what an exact scan finds.

The error of an estimate, in units of scale * |q - c|, hardly depends on the data, but "hardly" is measured here and
not believed: some vectors of the file ask, others are searched, the search is the one that the desk runs, and its
answers are compared with the exact ones. The coding that reaches the promised recall is kept; where none does (vectors
that lie in a few dimensions, or thousands that are almost the same), there is none, and the exact scan goes on.
"""

from __future__ import annotations

import secrets
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evidencedesk.vectors.codes import PLANES, Codes, Coding, encode, encode_question
from evidencedesk.vectors.scan import hamming, nearest_places

RECALL = 0.99
"""Promised recall@10."""
SAMPLE = 40_000
"""Vectors that are searched in the self-check, evenly spread over the file."""
_AIM = 0.995
"""What the self-check must reach: a sample says it to within a quarter of a per cent."""
_QUESTIONS = 200
_K = 10
_COMPARED = 64
_TRIALS = ((0.993, 0.998), (0.996, 0.999), (0.999, 1.0))
"""How many of the errors the slack covers, and how many of the ten nearest the kept share holds.

The first bounds the loss in a file that is denser than the sample: a neighbour at the edge of the ten is lost when its
error exceeds the slack.
"""
_LEAST_SHARE = 0.01
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
    codes = encode(coding, sample)
    asking = np.linspace(0, len(sample) - 1, min(_QUESTIONS, len(sample)), dtype=np.intp)
    exact = (sample[asking] @ sample.T).astype(np.float64)
    # A question is a vector of the file, and what it finds first, itself, says nothing.
    exact[np.arange(len(asking)), asking] = -np.inf
    errors, ranks = _measured(coding, codes, sample[asking], exact)
    best = replace(coding, recall=0.0, tuned_on=count)
    for of_errors, of_ranks in _TRIALS:
        slack = max(0.0, float(np.quantile(errors, of_errors)))
        ranked = _QUESTIONS_ARE_FARTHER * float(np.quantile(ranks, of_ranks)) / len(sample)
        share = min(1.0, max(_LEAST_SHARE, ranked))
        trial = replace(best, slack=slack, kept_share=share)
        recall = _recall(trial, codes, sample, asking, exact)
        if recall > best.recall:
            best = replace(trial, recall=recall)
        if recall >= _AIM:
            break
    return best


def _measured(
    coding: Coding, codes: Codes, questions: NDArray[np.float32], exact: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Errors of estimates for each question, and the ranks of its ten nearest by the signs alone.

    The errors are those of any vectors, not of near ones, where they are a little smaller (by sqrt(1 - cosine^2)): so
    the slack holds for questions that lie near nothing.
    """
    errors, ranks = [], []
    spread = np.linspace(0, len(codes) - 1, min(_COMPARED, len(codes)), dtype=np.intp)
    some = codes.take(spread)
    for number, vector in enumerate(questions):
        question = encode_question(coding, vector)
        best = np.argpartition(-exact[number], _K)[:_K]
        signs = hamming(codes.words, question.planes[PLANES - 1])
        ranks.append(np.searchsorted(np.sort(signs), signs[best], side="right").astype(np.float64))
        weighted = sum(hamming(some.words, question.planes[n]).astype(np.float64) * 2**n for n in range(PLANES))
        products = question.step * ((2**PLANES - 1) / 2 * coding.width - weighted)
        estimates = question.constant + some.offsets + some.scales * products
        errors.append((exact[number][spread] - estimates) / np.maximum(some.scales * question.distance, 1e-12))
    every = np.concatenate(errors)
    return every[np.isfinite(every)], np.concatenate(ranks)


def _recall(
    coding: Coding, codes: Codes, sample: NDArray[np.float32], asking: NDArray[np.intp], exact: NDArray[np.float64]
) -> float:
    """Share of the ten nearest that the search finds."""
    found = 0.0
    outside = np.zeros(len(codes), np.uint16)
    for place, row in zip(asking.tolist(), exact, strict=True):
        outside[place] = np.iinfo(np.uint16).max
        question = encode_question(coding, sample[place])
        _, cosines = nearest_places(codes, coding, question, _K, row.__getitem__, outside)
        outside[place] = 0
        # By cosine, not by place: of vectors that tie either is right.
        floor = np.partition(row, len(row) - _K)[len(row) - _K]
        found += min(_K, int((cosines >= floor).sum())) / _K
    return found / len(asking)
