"""The turns of a scope in memory, a record a turn, and what one audience sees of them.

Turns hidden from an audience are missing in its `View`: they are no neighbours there and enter no
statistic.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evennia_ai.history.messages import seconds
from evennia_ai.language.script import is_asked
from evennia_ai.recall.values import Turn

Ints = NDArray[np.signedinteger[Any]]
Floats = NDArray[np.floating[Any]]
Flags = NDArray[np.bool_]
Records = NDArray[np.void]

# A pause that ends a talk whose turns carry no session.
SESSION_GAP_S = 1_800.0
# The mean of so many turns stands for the mean of all.
_CENTRE_TURNS = 2_000
_PART = 512
# Least mean centred cosine of successive turns in coherent talk, and how many pairs are compared.
# Talk with fewer pairs counts as coherent.
_COHERENT, _FEWEST_PAIRS, _MOST_PAIRS = 0.07, 100, 500


def record_type(dims: int) -> np.dtype[np.void]:
    """What a search reads of every turn; speaker, audience and kind are numbers of names.

    `asks` is 0 or 1.
    """
    numbers = [(name, "<i4") for name in ("speaker", "audience", "kind")]
    vector = [("norm", "<f4"), ("vector", "i1", (dims,))]
    return np.dtype([("time", "<f8"), ("session", "<i8"), *numbers, ("asks", "i1"), *vector])


def new_records(turns: Sequence[Turn], vectors: Floats, kind: np.dtype[np.void]) -> Records:
    """Records of turns, without the numbers of names."""
    # Scaled by their largest component to whole numbers in -127..127.
    peaks = np.abs(vectors).max(axis=1, initial=0, keepdims=True)
    whole = np.asarray(np.rint(vectors / np.where(peaks > 0, peaks, 1) * 127), dtype=np.float32)
    records = np.zeros(len(turns), kind)
    records["vector"], records["norm"] = whole, norms_of(whole)
    for record, turn in zip(records, turns, strict=True):
        record["time"] = seconds(turn.at)
        if turn.session is not None:  # a number for its name; 0 for none
            digest = blake2b(str(turn.session).encode("utf-8", "replace"), digest_size=8).digest()
            record["session"] = int.from_bytes(digest, "big", signed=True) or 1
        record["asks"] = is_asked(turn.text)
    return records


class View:
    """What one audience sees of a scope, in the order in which it was said.

    Messages come first, then what is of other kinds, so that journal entries do not part a talk.
    Positions are places in this order.

    Args:
        numbers: The ascending numbers by which the index knows the scope's turns.
        records: Their records.
        shown: Which of them are seen.
        names: Speakers, audiences and kinds.
        holders: Gives the numbers of the scope's turns that hold a stem.
    """

    def __init__(
        self,
        numbers: Ints,
        records: Records,
        shown: Flags,
        names: Sequence[str],
        holders: Callable[[str], Ints],
    ):
        self._numbers, self._records = numbers, records
        self._holders = holders
        rows = np.flatnonzero(shown)
        kinds = sorted(range(len(names)), key=lambda n: (names[n] != "message", names[n]))
        order = np.lexsort((records["time"][rows], np.argsort(kinds)[records["kind"][rows]]))
        self._rows, self.size = rows[order], len(rows)
        self._position_of = np.full(len(records), -1, dtype=np.int64)
        self._position_of[self._rows] = np.arange(self.size)
        speakers = np.flatnonzero(np.bincount(self.field("speaker"))).tolist()
        self.speakers = {number: names[number] for number in speakers}

    def field(self, name: str, positions: Ints | slice = slice(None)) -> Any:
        """One field of the records at some positions."""
        return self._records[name][self._rows[positions]]

    def numbers(self, positions: Ints) -> Ints:
        """The numbers of some turns."""
        return self._numbers[self._rows[positions]]

    def holding(self, stem: str) -> Ints:
        """Positions of the turns that hold a stem."""
        here = self._position_of[np.searchsorted(self._numbers, self._holders(stem))]
        return here[here >= 0]

    @cached_property
    def begins(self) -> Flags:
        """Where a talk begins; a turn that is no message belongs to the talk of its kind before."""
        kinds, sessions, times = (self.field(name) for name in ("kind", "session", "time"))
        goes_on = (kinds[1:] == kinds[:-1]) & (sessions[1:] == sessions[:-1])
        goes_on &= (sessions[1:] != 0) | (np.diff(times) <= SESSION_GAP_S)
        return np.concatenate([np.ones(min(1, self.size), dtype=bool), ~goes_on])

    @cached_property
    def talks(self) -> Ints:
        """The talk of each turn, consecutive numbers."""
        return np.cumsum(self.begins)

    @cached_property
    def in_crowd(self) -> bool:
        """Whether neighbouring turns are hardly more alike than any two: many talk at once.

        In talk of two or three people on one subject after the other, centred cosines of successive
        turns are 0.15 and more on average.
        """
        together = np.flatnonzero(~self.begins[1:])
        if len(together) < _FEWEST_PAIRS:
            return False
        first = together[np.linspace(0, len(together) - 1, _MOST_PAIRS).astype(np.int64)]
        cosines = (self._centred(first) * self._centred(first + 1)).sum(axis=1)
        return float(cosines.mean()) < _COHERENT

    def cosines(self, vector: Floats) -> Floats:
        """The cosine of a unit vector with each turn; a part at a time, as these fit a cache."""
        products = np.zeros(self.size, dtype=np.float32)
        for start in range(0, self.size, _PART):
            part = slice(start, start + _PART)
            rows = self.field("vector", part).astype(np.float32)
            products[part] = np.einsum("ij,j->i", rows, vector)
        return np.asarray(products / self.field("norm"))

    def centred_cosines(self, vector: Floats, positions: Ints) -> Floats:
        """The cosine of a unit vector with some turns, without the direction common to all.

        What everybody says all the time makes all turns alike (all-but-the-top, Mu and Viswanath,
        ICLR 2018).
        """
        asked = vector - self._centre
        cosines: Floats = (self._centred(positions) * (asked / norms_of(asked[None]))).sum(axis=1)
        return cosines

    def _centred(self, positions: Ints) -> Floats:
        rows = self._unit_vectors(positions) - self._centre
        return rows / norms_of(rows)[:, None]

    @cached_property
    def _centre(self) -> Floats:
        """The mean vector of the first turns."""
        mean: Floats = self._unit_vectors(slice(_CENTRE_TURNS)).mean(axis=0)
        return mean

    def _unit_vectors(self, positions: Ints | slice) -> Floats:
        norms = self.field("norm", positions)[:, None]
        return np.asarray(self.field("vector", positions) / norms, dtype=np.float32)


def norms_of(rows: Floats) -> Floats:
    """Lengths of vectors; 1 for one that is all zero."""
    norms = np.sqrt((rows * rows).sum(axis=1))
    return np.where(norms > 0, norms, 1).astype(np.float32)
