"""The search over codes: a cascade from a cheap look at all of them to exact cosines of a few. No database.

1. The Hamming distance to the question's signs, of every eligible code; the nearest `kept_share` go on, or all of them
   where the k nearest lie deeper than what that share was fitted for.
2. The other three planes of the question, for those: their estimated cosines.
3. Exact cosines, best estimates first, until no estimate that is left could, with the allowance for its error, still
   reach the k-th best exact one. So easy questions fetch few vectors and hard ones many, and each of the k nearest is
   lost only where its estimate errs by more than the allowance, which is as rare for the hundredth as for the first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evidencedesk.vectors.codes import DEPTH, PLANES, SAMPLE, CodedQuestion, Codes, Coding

BLOCK = 16_384
"""Codes looked at together: a column of words and what is counted of it stay in the processor's cache."""
_KEPT_FOR_EACH = 100
"""At least so many codes for each wanted hit get past the first look."""
_SEEN = 16_384
"""Distances from which the limit of the first look is guessed."""
_FIRST = 16
"""Vectors beyond k that are fetched before the first look at what is left."""
_BATCH = 200
"""Vectors that are fetched before the next look; then twice as many, up to _MOST at once, which bounds the memory."""
_MOST = 4096
_FAR = np.iinfo(np.uint16).max
_HAS_BITWISE_COUNT = hasattr(np, "bitwise_count")
"""numpy 2 has it."""

Fetch = Callable[[NDArray[np.intp]], NDArray[np.float64]]
"""Exact cosines of the vectors at the given places, in order; minus infinity for one that is not there."""

_BITS_OF = np.array([number.bit_count() for number in range(1 << 16)], dtype=np.uint8)


def _count_bits(values: NDArray[np.uint64], out: NDArray[np.uint8]) -> None:
    """The number of ones in each value."""
    if _HAS_BITWISE_COUNT:
        np.bitwise_count(values, out=out)
    else:
        np.sum(_BITS_OF[values.view(np.uint16)].reshape(-1, 4), axis=1, dtype=np.uint8, out=out)


def hamming(words: NDArray[np.uint64], plane: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Hamming distance of each code to the plane; words of shape (width / 64, n), plane (width / 64,); shape (n,)."""
    count = words.shape[1]
    distances = np.empty(count, np.uint16)
    differing, bits, three = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint8), np.empty(BLOCK, np.uint8)
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        size = stop - start
        total = distances[start:stop]
        total[:] = 0
        # Three words differ in at most 192 bits, which a byte holds: adding bytes is a quarter of the work.
        for first in range(0, len(plane), 3):
            for number, word in enumerate(range(first, min(first + 3, len(plane)))):
                np.bitwise_xor(words[word, start:stop], plane[word], out=differing[:size])
                if number == 0:
                    _count_bits(differing[:size], out=three[:size])
                else:
                    _count_bits(differing[:size], out=bits[:size])
                    np.add(three[:size], bits[:size], out=three[:size])
            np.add(total, three[:size], out=total)
    return distances


def nearest_places(
    codes: Codes,
    coding: Coding,
    question: CodedQuestion,
    k: int,
    fetch: Fetch,
    outside: NDArray[np.uint16] | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The places of codes whose vectors may be among the k nearest, and their exact cosines, best first.

    At least min(k, eligible) of them, more where they tie with the k-th. `outside`, shape (n,): 0 for eligible codes,
    65535 for the others, whose number and places change nothing about what is found.
    """
    signs = hamming(codes.words, question.planes[PLANES - 1])
    if outside is not None:
        np.bitwise_or(signs, outside, out=signs)
    eligible = len(codes) if outside is None else len(codes) - int(np.count_nonzero(outside))
    places = _kept(signs, _wanted(coding, k, eligible), eligible)
    kept = codes if len(places) == len(codes) else codes.take(places)
    weighted = signs[places].astype(np.uint32) << (PLANES - 1)
    for plane in range(PLANES - 1):
        weighted += hamming(kept.words, question.planes[plane]).astype(np.uint32) << plane
    products = question.step * ((2**PLANES - 1) / 2 * coding.width - weighted)
    estimates = (question.constant + kept.offsets + kept.scales * products).astype(np.float64)
    allowance = coding.slack * question.distance * kept.scales
    return _rescored(places, estimates, estimates + allowance, k, fetch)


def _wanted(coding: Coding, k: int, eligible: int) -> int:
    """How many codes get past the first look."""
    # The k nearest of what is eligible lie as deep in it as so many nearest of the sample lay there.
    depth = k * min(SAMPLE, coding.tuned_on) / max(1, eligible)
    return max(int(coding.kept_share * eligible), _KEPT_FOR_EACH * k) if depth <= DEPTH else eligible


def _kept(signs: NDArray[np.uint16], wanted: int, eligible: int) -> NDArray[np.intp]:
    """The places of the codes within the least distance that holds `wanted` of them, or of all that are eligible."""
    if 2 * wanted >= eligible:
        return np.flatnonzero(signs < _FAR)
    # Guessed from a part of them, then set right: to count how many lie at each distance takes longer.
    seen = signs[:: max(1, len(signs) // _SEEN)]
    within = np.cumsum(np.bincount(seen[seen < _FAR], minlength=1))
    limit = int(np.searchsorted(within, wanted / eligible * within[-1]))
    while limit and np.count_nonzero(signs < limit) >= wanted:
        limit -= 1
    while np.count_nonzero(signs <= limit) < wanted:
        limit += 1
    return np.flatnonzero(signs <= limit)


def _rescored(
    places: NDArray[np.intp], estimates: NDArray[np.float64], bounds: NDArray[np.float64], k: int, fetch: Fetch
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    chosen = _largest(estimates, k + _FIRST)
    found, exact = places[chosen], fetch(places[chosen])
    left = bounds.copy()
    left[chosen] = -np.inf
    batch = _BATCH
    while True:
        floor = float(np.partition(exact, len(exact) - k)[len(exact) - k]) if len(exact) >= k else -np.inf
        within = np.flatnonzero(left > floor)
        if not len(within):
            break
        chosen = within[_largest(left[within], batch)]
        found, exact = np.append(found, places[chosen]), np.append(exact, fetch(places[chosen]))
        left[chosen] = -np.inf
        batch = min(2 * batch, _MOST)
    order = np.argsort(-exact, kind="stable")
    order = order[exact[order] > -np.inf]
    if len(order) > k:
        order = order[exact[order] >= exact[order[k - 1]]]
    return found[order], exact[order]


def _largest(values: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """The places of the largest values, at most `count`, in no order."""
    if len(values) <= count:
        return np.arange(len(values))
    return np.argpartition(values, len(values) - count)[len(values) - count :]
