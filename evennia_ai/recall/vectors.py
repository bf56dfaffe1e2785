"""Vectors and traits of turns: cosines are exact, both are stored packed."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evennia_ai.recall.growing import Growing

# Multiplications a call to BLAS may take; from 2**18 on OpenBLAS wakes threads of its own, and on
# a busy machine waits for them many times longer than the product takes.
_BLOCK_WORK = 245_760
# Rows whose signs are compared at a time, that they stay in the processor's cache.
_SIGN_ROWS = 16_384

Ints = NDArray[np.signedinteger[Any]]
Floats = NDArray[np.floating[Any]]
Flags = NDArray[np.bool_]

TRAITS = ("asks", "ends_asking", "time", "number", "self", "name", "quote")
_WORD = re.compile(r"[^\W_]+")
_TIME = re.compile(
    r"\b(yesterday|today|tonight|tomorrow|last|next|ago|week|weekend|month|year|monday|tuesday"
    r"|wednesday|thursday|friday|saturday|sunday|morning|recently|since|19\d\d|20\d\d|january"
    r"|february|march|april|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\b(\d+|one|two|three|four|five|six|seven|eight|nine|ten|once|twice|dozen|hundred|first"
    r"|second|third|few|couple)\b",
    re.IGNORECASE,
)
_SELF = re.compile(r"\b(i|my|we|our|mine)\b", re.IGNORECASE)
# A capital that no sentence begins with.
_NAME = re.compile(r"(?<=[a-z,'’] )[\"“']?[A-Z][a-z]+")
_QUOTE = re.compile(r'["“”]')


class ExactVectors:
    """Quantised vectors whose cosines do not depend on what stands beside them.

    Products of whole numbers up to 127 sum to less than 2**24, which float32 holds exactly, in
    whatever order BLAS adds. So a rebuild, or turns hidden from the asker, change no result. 127 *
    127 * dims < 2**24 allows 1,040 dimensions.
    """

    def __init__(self, dims: int):
        self.numbers = Growing(np.int8, dims)
        self.norms = Growing(np.float32)
        self._buffer = np.zeros((_BLOCK_WORK // dims, dims), dtype=np.float32)

    def __len__(self) -> int:
        return len(self.norms)

    def extend(self, numbers: NDArray[Any]) -> None:
        """Append vectors that `quantised` made, shape (n, dims)."""
        self.numbers.extend(numbers)
        self.norms.extend(norms_of(numbers.astype(np.float32)))

    def mean(self, positions: Ints) -> Floats:
        """Mean of the unit vectors at some positions, shape (dims,)."""
        numbers = self.numbers.values[positions].astype(np.float32)
        return np.asarray((numbers / self.norms.values[positions][:, None]).mean(axis=0))

    def cosines(self, vectors: Floats, at: Ints | slice = slice(None)) -> Floats:
        """Cosine of each vector (rows; any scale) with each one here, or with those at `at`.

        Multiplied in blocks that fit the cache and are too small for BLAS to use threads.
        """
        asked, here = quantised(vectors), self.numbers.values[at]
        found = np.empty((len(asked), len(here)), dtype=np.float32)
        # A single row would be a matrix-vector product, which BLAS shares out much sooner.
        rows = asked if len(asked) > 1 else np.repeat(asked, 2, axis=0)
        step = len(self._buffer) // len(rows)
        for low in range(0, len(here), step):
            block = self._buffer[: min(step, len(here) - low)]
            block[:] = here[low : low + step]
            found[:, low : low + step] = (rows @ block.T)[: len(asked)]
        found /= self.norms.values[at]
        found /= norms_of(asked)[:, None]
        return found

    def between(self, positions: Ints) -> Floats:
        """Cosines of a few vectors with one another, shape (n, n)."""
        numbers = self.numbers.values[positions].astype(np.float32)
        norms = self.norms.values[positions]
        return np.asarray(numbers @ numbers.T / norms / norms[:, None])

    def pairwise(self, ones: Ints, others: Ints) -> Floats:
        """Cosine of each of `ones` with the one of `others` at the same place, shape (n,)."""
        products = self.numbers.values[ones].astype(np.float32) * self.numbers.values[others]
        norms = self.norms.values[ones] * self.norms.values[others]
        return np.asarray(products.sum(axis=1) / norms)


def norms_of(numbers: Floats) -> Floats:
    """Lengths of vectors (rows); 1 for one that is all zero."""
    norms = np.sqrt((numbers * numbers).sum(axis=1))
    return np.where(norms > 0, norms, 1).astype(np.float32)


def quantised(vectors: Floats) -> Floats:
    """Vectors scaled by their largest component to whole numbers in -127..127."""
    if not vectors.size:
        return vectors
    peaks = np.abs(vectors).max(axis=1, keepdims=True)
    return np.asarray(np.rint(vectors / np.where(peaks > 0, peaks, 1) * 127), dtype=np.float32)


def signs_of(numbers: NDArray[Any]) -> NDArray[np.uint64]:
    """The signs of vectors (rows) as bits, shape (n, words of 64 bits)."""
    bits = np.packbits(numbers > 0, axis=1)
    padded = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64)


def likely_cosines(
    signs: Sequence[NDArray[np.uint64]], asked: Floats, dims: int
) -> NDArray[np.float32]:
    """Cosines of all vectors with the nearest of those asked, estimated by their signs, shape (n,).

    `signs` are the columns of `signs_of`. The share of signs in which two vectors differ is the
    angle between them divided by pi, on average over directions (SimHash, Charikar, STOC 2002).
    """
    rows, size = signs_of(quantised(asked)), len(signs[0])
    found = np.empty(size, dtype=np.float32)
    cosines = np.cos(np.pi * np.arange(dims + 1) / dims).astype(np.float32)
    for low in range(0, size, _SIGN_ROWS):
        part = slice(low, low + _SIGN_ROWS)
        nearest = None
        for row in rows:
            differing = np.zeros(len(found[part]), dtype=np.uint16)
            for column, bits in zip(signs, row, strict=True):
                differing += np.bitwise_count(column[part] ^ bits)
            nearest = differing if nearest is None else np.minimum(nearest, differing)
        found[part] = cosines[nearest]
    return found


def packed_vectors(vectors: Floats) -> list[bytes]:
    """Vectors as they are stored: quantised, one byte a dimension."""
    return [row.tobytes() for row in quantised(vectors).astype(np.int8)]


def unpacked_vectors(blobs: Sequence[bytes]) -> NDArray[np.int8]:
    """Read `packed_vectors`, as whole numbers."""
    return np.frombuffer(b"".join(blobs), dtype=np.int8).reshape(len(blobs), -1)


def traits(text: str) -> tuple[float, ...]:
    """The `TRAITS` of a text, each between 0 and 1."""
    return (
        float("?" in text),
        float(text.rstrip().endswith("?")),
        float(bool(_TIME.search(text))),
        float(bool(_NUMBER.search(text))),
        min(3, len(_SELF.findall(text))) / 3,
        min(3, len(_NAME.findall(text))) / 3,
        float(bool(_QUOTE.search(text))),
    )


def packed_traits(text: str) -> int:
    """Traits and length of a text in one int: two bits a trait, the word count above them."""
    packed = min(len(_WORD.findall(text)), 65_535)
    for value in reversed(traits(text)):
        packed = packed << 2 | round(value * 3)
    return packed


def unpacked_traits(packed: Ints) -> Floats:
    """Traits from `packed_traits`, a row a text."""
    shifts = 2 * np.arange(len(TRAITS))
    return np.asarray((packed[:, None] >> shifts & 3) / np.float32(3), dtype=np.float32)


def unpacked_lengths(packed: Ints) -> Floats:
    """Word counts from `packed_traits`."""
    return np.asarray(packed >> 2 * len(TRAITS), dtype=np.float32)
