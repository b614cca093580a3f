"""One bit a dimension: codes of unit vectors from which a cosine can be estimated. Pure numpy, no database.

RaBitQ (Gao and Long, "RaBitQ: Quantizing High-Dimensional Vectors with a Theoretical Error Bound for Approximate
Nearest Neighbor Search", SIGMOD 2024). Real embeddings share a large mean, so a vector o is first centred:
r = o - c. R is the rotation, y = R r, and the code holds the signs of y. With z = R (q - c) for a question q,

    <o, q> = <c, q> + <r, c> + <r, q - c>,      <r, q - c> is estimated by  |r|^2 / |y|_1 * sum_i sign(y_i) z_i

which is the paper's unbiased estimate <x, q> / <x, o> with its factors multiplied out. A code so needs two floats
beside its bits: offset = <r, c> and scale = |r|^2 / |y|_1. The error is about scale * |q - c| times a standard
deviation that does not depend on the data; `Coding.slack` is how many of these units are allowed for.

The question is rounded to 4 bits, symmetrically: z_i = step * sum_j 2^j (bit_ij - 1/2), j = 0..3. Then

    sum_i sign(y_i) z_i = step * (7.5 * width - sum_j 2^j * hamming(code, plane_j))

and plane 3, the highest bits, is the signs of z: its Hamming distance alone is the coarsest estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidencedesk.vectors.rotation import code_width, rotation

PLANES = 4
SAMPLE = 40_000
"""Vectors on which a coding is fitted and checked, evenly spread over the file."""
DEPTH = 20
"""The kept share holds so many nearest of the sample: the ten of a search in which half of the file is in force."""
NOT_A_UNIT = 1e-3
"""Squared lengths farther from 1 than that are damage."""


class DamagedCodes(ValueError):
    """Stored bytes that cannot be what was written; `problem` says what about them."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"the vector codes are damaged ({problem}); `evidencedesk check` says what to do")
        self.problem = problem


def read_array(data: bytes, kind: np.dtype[Any] | str) -> NDArray[Any]:
    """Stored bytes as an array; DamagedCodes when they are not whole entries of that kind."""
    size = np.dtype(kind).itemsize
    if len(data) % size:
        raise DamagedCodes(f"{len(data)} bytes for entries of {size}")
    return np.frombuffer(data, kind)


@dataclass(frozen=True, slots=True)
class Coding:
    """How the vectors of one embedder are coded, and how the codes are searched. Fitted on the file's own vectors."""

    coding_id: str
    """Random, another one after every fit that changes the centre: codes of two fits do not mix."""
    centre: NDArray[np.float32]
    """Shape (dimension,)."""
    slack: float
    """Allowance for the estimate's error, in units of scale * |q - c|."""
    kept_share: float
    """Share of the codes, those nearest by the signs alone, that are estimated in 4 bits; 1: all of them. For searches
    no deeper than DEPTH in the sample; for deeper ones all codes are estimated."""
    recall: float
    """The lowest recall@k in the self-check."""
    fitted_on: int
    """Vectors in the file when the centre was fitted."""
    tuned_on: int
    """Vectors in the file when slack, kept share and recall were."""
    coded_through: int
    """Vectors with keys up to this one are coded in the file."""

    @property
    def width(self) -> int:
        """Bits of a code."""
        return code_width(len(self.centre))


@dataclass(frozen=True, slots=True)
class Codes:
    """Codes of n vectors. Word by word, so that a scan runs along memory."""

    words: NDArray[np.uint64]
    """Shape (width / 64, n): the signs."""
    offsets: NDArray[np.float32]
    """Shape (n,); minus infinity for what is no unit vector and must not be found."""
    scales: NDArray[np.float32]
    """Shape (n,)."""

    def __len__(self) -> int:
        return len(self.offsets)

    def take(self, places: NDArray[np.intp]) -> Codes:
        """Those at the given places."""
        # Row by row: taken from a part of a larger array at once, numpy would copy all of it first.
        words = np.empty((len(self.words), len(places)), np.uint64)
        for number, row in enumerate(self.words):
            np.take(row, places, out=words[number], mode="clip")
        return Codes(words, self.offsets[places], self.scales[places])

    def to_bytes(self) -> bytes:
        """Words, offsets, scales, little endian."""
        return b"".join(
            np.ascontiguousarray(part, dtype=kind).tobytes()
            for part, kind in ((self.words, "<u8"), (self.offsets, "<f4"), (self.scales, "<f4"))
        )

    @classmethod
    def from_bytes(cls, data: bytes, width: int, count: int) -> Codes:
        """What `to_bytes` gave. DamagedCodes when the data has another length."""
        size = width // 8 * count
        if len(data) != size + 8 * count:
            raise DamagedCodes(f"{len(data)} bytes for {count} codes of {width} bits")
        words = np.frombuffer(data, "<u8", width // 64 * count).reshape(width // 64, count)
        floats = np.frombuffer(data, "<f4", 2 * count, size)
        return cls(words, floats[:count], floats[count:])


@dataclass(frozen=True, slots=True)
class CodedQuestion:
    """A question as a scan needs it."""

    planes: NDArray[np.uint64]
    """Shape (4, width / 64); the last is the signs."""
    step: float
    constant: float
    """<c, q>: what the estimates of all vectors share."""
    distance: float
    """|q - c|."""


def encode(coding: Coding, vectors: NDArray[np.float32]) -> Codes:
    """Codes of unit vectors, shape (n, dimension). A row that is not of length 1 gets one that is never found."""
    residuals = vectors - coding.centre
    rotated = residuals @ rotation(vectors.shape[1]).T
    bits = rotated > 0
    lengths = np.abs(rotated, out=rotated).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        scales = np.where(lengths > 0, np.einsum("ij,ij->i", residuals, residuals) / lengths, np.float32(0))
    sound = np.abs(np.einsum("ij,ij->i", vectors, vectors) - 1) < NOT_A_UNIT
    offsets = np.where(sound, residuals @ coding.centre, np.float32(-np.inf))
    return Codes(_packed(bits), offsets, np.where(sound, scales, np.float32(0)))


def encode_question(coding: Coding, question: NDArray[np.float32]) -> CodedQuestion:
    """The planes of a unit vector, shape (dimension,)."""
    residual = (question - coding.centre).astype(np.float32)
    rotated = rotation(len(question)) @ residual
    most = max(float(np.abs(rotated).max()), 1e-12)
    step = 2 * most / (2**PLANES - 1)
    levels = np.clip(np.floor((rotated + most) / step + 0.5), 0, 2**PLANES - 1).astype(np.uint8)
    planes = np.stack([(levels >> plane) & 1 for plane in range(PLANES)]).astype(bool)
    constant = float(coding.centre.astype(np.float64) @ question.astype(np.float64))
    return CodedQuestion(np.ascontiguousarray(_packed(planes).T), step, constant, float(np.linalg.norm(residual)))


def _packed(bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Rows of bits, shape (n, width), as words, shape (width / 64, n)."""
    octets = np.packbits(bits, axis=1, bitorder="little")
    return np.ascontiguousarray(octets.view("<u8").T.astype(np.uint64, copy=False))
