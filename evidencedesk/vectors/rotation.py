"""A random rotation that is made from a seed, so that a file needs to store none of it.

RaBitQ wants vectors rotated at random, so that each of their coordinates carries a like share of the direction. The
fast form of Kac's walk, as its authors' library has it, is a few rounds of random signs and a Walsh-Hadamard transform
over the first or the last power of two of coordinates; it works for any width. Here it is unrolled into one matrix.
"""

from __future__ import annotations

import functools
import hashlib

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 4
_SEED = "evidencedesk rotation 1"
"""Codes in files depend on it: another one would need another name for the coding."""


def code_width(dimension: int) -> int:
    """Bits in a code: the dimension in whole words of 64, at least 256, for fewer say too little."""
    return max(256, -(-dimension // 64) * 64)


@functools.lru_cache(maxsize=4)
def rotation(dimension: int) -> NDArray[np.float32]:
    """A matrix with orthonormal columns, shape (code_width(dimension), dimension); read-only."""
    width = code_width(dimension)
    signs = _random_signs(dimension, width)
    block = 1 << (width.bit_length() - 1)
    rotated = np.eye(width, dimension)
    for number in range(_ROUNDS):
        rotated *= signs[number][:, None]
        part = rotated[:block] if number % 2 == 0 else rotated[width - block :]
        _walsh_hadamard(part)
    found = rotated.astype(np.float32)
    found.setflags(write=False)
    return found


def _random_signs(dimension: int, width: int) -> NDArray[np.float64]:
    """+1 and -1, shape (rounds, width); from a hash, because numpy's generators may change with its versions."""
    stream = hashlib.shake_256(f"{_SEED} {dimension}".encode()).digest(_ROUNDS * width // 8)
    bits = np.unpackbits(np.frombuffer(stream, dtype=np.uint8))
    return bits.reshape(_ROUNDS, width).astype(np.float64) * 2 - 1


def _walsh_hadamard(rows: NDArray[np.float64]) -> None:
    """The orthonormal Walsh-Hadamard transform over the first axis, whose length is a power of two, in place."""
    count = len(rows)
    step = 1
    while step < count:
        pairs = rows.reshape(count // (2 * step), 2, step, -1)
        first, second = pairs[:, 0].copy(), pairs[:, 1].copy()
        pairs[:, 0], pairs[:, 1] = first + second, first - second
        step *= 2
    rows /= np.sqrt(count)
