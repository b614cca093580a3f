"""Posting lists as compact blobs. Pure: arrays in, bytes out, and back.

A segment numbers its chunks from 0, at most 65,536 of them, so a number is two bytes and nearly every tf one. A list
is written the shorter way: sparse (numbers and frequencies) or dense (a frequency for every chunk, 0 where the term
does not stand, and no numbers), which is shorter from a third of the chunks on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SEGMENT_CHUNKS = 65_536
"""The most chunks of a segment: their numbers fit into two bytes."""
_ESCAPE = 255
"""In place of a tf that one byte cannot hold; the real ones follow, four bytes each."""


class DamagedPostings(ValueError):
    """Packed bytes that cannot be what was written; `problem` says what about them."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"the keyword index is damaged ({problem}); `evidencedesk check` says what to do")
        self.problem = problem


class PackedList(NamedTuple):
    """The postings of one term in one segment, as its row holds them."""

    term_key: int
    best_frequency: int
    shortest_length: int
    numbers: bytes | None
    frequencies: bytes


class PostingArrays(NamedTuple):
    """Postings side by side, one position a posting."""

    term_keys: NDArray[np.int64]
    numbers: NDArray[np.int64]
    """Of the chunks in their segment."""
    frequencies: NDArray[np.int64]


def pack(postings: PostingArrays, lengths: NDArray[np.int64]) -> Iterator[PackedList]:
    """The lists of a segment, by term. `postings` may come in any order; `lengths`: terms in each of its chunks."""
    order = np.argsort(postings.term_keys * SEGMENT_CHUNKS + postings.numbers)
    term_keys, numbers, frequencies = (column[order] for column in postings)
    if not len(term_keys):
        return
    starts = np.flatnonzero(np.diff(term_keys, prepend=-1))
    ends = np.append(starts[1:], len(term_keys))
    best = np.maximum.reduceat(frequencies, starts)
    shortest = np.minimum.reduceat(lengths[numbers], starts)
    small_numbers, small = numbers.astype("<u2").tobytes(), np.minimum(frequencies, _ESCAPE).astype("u1").tobytes()
    for term_key, start, end, best_frequency, shortest_length in zip(
        term_keys[starts].tolist(), starts.tolist(), ends.tolist(), best.tolist(), shortest.tolist(), strict=True
    ):
        packed_numbers: bytes | None = small_numbers[2 * start : 2 * end]
        packed = small[start:end]
        if 3 * (end - start) > len(lengths):
            dense = np.zeros(len(lengths), dtype=np.uint8)
            dense[numbers[start:end]] = np.frombuffer(packed, dtype=np.uint8)
            packed_numbers, packed = None, dense.tobytes()
        if best_frequency >= _ESCAPE:
            some = frequencies[start:end]
            packed += some[some >= _ESCAPE].astype("<u4").tobytes()
        yield PackedList(term_key, best_frequency, shortest_length, packed_numbers, packed)


def unpack(lists: Sequence[PackedList], chunk_count: int) -> PostingArrays:
    """All postings of lists of one segment, in any order; DamagedPostings for bytes that cannot be."""
    # Nearly all lists are sparse and without an escape: those are read in one go.
    plain = [found for found in lists if found.numbers is not None and 2 * len(found.frequencies) == len(found.numbers)]
    counts = [len(found.frequencies) for found in plain]
    parts = [
        PostingArrays(
            np.repeat(np.array([found.term_key for found in plain], dtype=np.int64), counts),
            np.frombuffer(b"".join(found.numbers or b"" for found in plain), dtype="<u2").astype(np.int64),
            np.frombuffer(b"".join(found.frequencies for found in plain), dtype=np.uint8).astype(np.int64),
        )
    ]
    if (parts[0].frequencies == _ESCAPE).any():
        raise DamagedPostings("a tf that one byte cannot hold is missing")
    for found in lists:
        if found.numbers is None or 2 * len(found.frequencies) != len(found.numbers):
            numbers, frequencies = unpack_list(found.numbers, found.frequencies, chunk_count)
            term_keys = np.full(len(numbers), found.term_key, dtype=np.int64)
            parts.append(PostingArrays(term_keys, numbers.astype(np.int64), frequencies.astype(np.int64)))
    postings = PostingArrays(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    if len(postings.numbers) and int(postings.numbers.max()) >= chunk_count:
        raise DamagedPostings(f"a chunk number beyond the {chunk_count} of the segment")
    if not postings.frequencies.all():
        raise DamagedPostings("a posting with a tf of 0")
    return postings


def unpack_list(
    numbers: bytes | None, frequencies: bytes, chunk_count: int
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.unsignedinteger]]:
    """(numbers, frequencies) of one list, sparse whatever it was; DamagedPostings for bytes that cannot be."""
    if numbers is None:
        every = unpack_frequencies(frequencies, chunk_count)
        places = np.flatnonzero(every).astype(np.uint16)
        return places, every[places]
    if len(numbers) % 2:
        raise DamagedPostings("half a chunk number")
    found = np.frombuffer(numbers, dtype="<u2")
    return found, unpack_frequencies(frequencies, len(found))


def unpack_frequencies(blob: bytes, count: int) -> NDArray[np.unsignedinteger]:
    """`count` frequencies: u1, or u4 where one byte does not hold them all."""
    if len(blob) < count:
        raise DamagedPostings(f"{len(blob)} bytes for {count} frequencies")
    small = np.frombuffer(blob, dtype=np.uint8, count=count)
    if len(blob) == count and not (count and int(small.max()) == _ESCAPE):
        return small
    large = small == _ESCAPE
    if len(blob) != count + 4 * int(np.count_nonzero(large)):
        raise DamagedPostings(f"{len(blob)} bytes for {count} frequencies")
    every = small.astype(np.uint32)
    every[large] = np.frombuffer(blob, dtype="<u4", offset=count)
    return every


def pack_rows(counts: Sequence[tuple[int, int]]) -> tuple[bytes, bytes]:
    """(term numbers, tf) of one chunk, given as pairs: what a chunk that is not packed yet holds."""
    table = np.array(counts, dtype=np.int64).reshape(-1, 2)
    return pack_keys(table[:, 0]), pack_keys(table[:, 1])


def unpack_rows(term_keys: Sequence[bytes | None], frequencies: Sequence[bytes | None]) -> PostingArrays:
    """The postings of chunks that are not packed, numbered from 0; None: the chunk's row is gone.

    Where the two blobs of a chunk do not belong together it gets no postings: `check` finds that.
    """
    pairs = [
        (terms, found) if terms and found and len(terms) == len(found) and not len(terms) % 4 else (b"", b"")
        for terms, found in zip(term_keys, frequencies, strict=True)
    ]
    numbers = np.repeat(np.arange(len(pairs)), [len(terms) // 4 for terms, _ in pairs])
    every = (np.frombuffer(b"".join(blobs), dtype="<u4").astype(np.int64) for blobs in zip(*pairs, strict=True))
    keys, counts = every if pairs else (numbers, numbers)
    return PostingArrays(keys, numbers, counts)


def pack_keys(keys: NDArray[np.int64]) -> bytes:
    """Whole numbers as u4; ValueError for one that four bytes cannot hold."""
    if len(keys) and not 0 <= int(keys.min()) <= int(keys.max()) < 1 << 32:
        raise ValueError("a key that four bytes cannot hold")
    return keys.astype("<u4").tobytes()


def unpack_keys(blob: bytes, count: int) -> NDArray[np.int64]:
    """`count` whole numbers that `pack_keys` wrote."""
    if len(blob) != 4 * count:
        raise DamagedPostings(f"{len(blob)} bytes for {count} keys")
    return np.frombuffer(blob, dtype="<u4").astype(np.int64)


def pack_marks(marks: NDArray[np.bool_]) -> bytes:
    """A bit each, the lowest of the first byte first."""
    return np.packbits(marks, bitorder="little").tobytes()


def unpack_marks(blob: bytes, count: int) -> NDArray[np.bool_]:
    """`count` marks that `pack_marks` wrote; a copy that may be changed."""
    if len(blob) != (count + 7) // 8:
        raise DamagedPostings(f"{len(blob)} bytes for {count} marks")
    return np.unpackbits(np.frombuffer(blob, dtype=np.uint8), count=count, bitorder="little").astype(np.bool_)
