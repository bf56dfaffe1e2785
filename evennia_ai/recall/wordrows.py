"""Which turns hold the words of a query: sparse rows, one a word."""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from evennia_ai.recall.vectors import Floats, Ints
from evennia_ai.recall.view import VisibleTurns
from evennia_ai.recall.vocabulary import members

# At most so many words of near meaning count for a word of the query.
SYNONYMS = 16
# What a thing counts where its kind is asked for.
KIND = 0.7

Mark = tuple[Ints, float]
Row = tuple[Ints, Floats]


class WordRows:
    """For each word of a query the turns that count: their positions, and how much, 0 to 1.

    `scratch` has a number for each turn, all of them zero between calls.
    """

    def __init__(self, rows: Sequence[Row | Mark], scratch: Floats):
        self.rows = tuple(rows)
        self._scratch = scratch

    def __len__(self) -> int:
        return len(self.rows)

    def counts(self) -> Floats:
        """In how many turns each word counts, shape (words,)."""
        return np.array([len(at) for at, _ in self.rows], dtype=np.float32)

    def at(self, positions: Ints) -> Floats:
        """The values at these positions, shape (words, *positions.shape)."""
        found = np.zeros((len(self.rows), *positions.shape), dtype=np.float32)
        for number, (at, values) in enumerate(self.rows):
            self._scratch[at] = values
            found[number] = self._scratch[positions]
            self._scratch[at] = 0
        return found

    def totals(self, weights: Floats) -> Floats:
        """Weighted sum over words for every turn, shape (size,)."""
        sums = np.zeros(len(self._scratch), dtype=np.float32)
        for weight, (at, values) in zip(weights, self.rows, strict=True):
            sums[at] += weight * values
        return sums

    def part_counts(self, parts: NDArray[np.int32]) -> Ints:
        """In how many parts of talks each word counts, shape (words,)."""
        held = (parts[at] for at, _ in self.rows)  # ascending
        return np.array([np.count_nonzero(np.diff(each, prepend=-1)) for each in held], dtype=int)


def word_rows(
    turns: VisibleTurns, content: Sequence[str], vectors: Floats, also_names: Collection[str] = ()
) -> tuple[WordRows, WordRows, WordRows]:
    """Rows of a query's words, three times, each a superset of the one before.

    Turns with the word in any form; also those with words of near meaning; also those with members
    of the kind it names. Words of `also_names` count only where they name somebody.
    """
    scratch = turns.scratch
    exact, near, kind = [], [], []
    for word, vector in zip(content, vectors, strict=True):
        is_name = word in also_names
        forms = [word] if is_name else turns.view.vocabulary.forms(word)
        own = [(at, 1.0) for at in turns.positions_of(forms, is_name)]
        close = own if is_name else own + list(_near(turns, word, vector))
        exact.append(_row(own, scratch))
        near.append(_row(close, scratch))
        of_kind = () if is_name else members(word)
        form_lists = (turns.view.vocabulary.forms_of_stem(each) for each in of_kind)
        also = turns.positions_of([form for forms in form_lists for form in forms])
        kind.append(_row(close + [(at, KIND) for at in also], scratch) if also else near[-1])
    return WordRows(exact, scratch), WordRows(near, scratch), WordRows(kind, scratch)


def _near(turns: VisibleTurns, word: str, vector: Floats) -> Iterator[Mark]:
    marked, near = 0, turns.view.vocabulary.near(word, vector)
    while some := list(islice(near, SYNONYMS)):
        for (_, cosine), at in zip(some, turns.positions_of([w for w, _ in some]), strict=True):
            if len(at) and marked < SYNONYMS:
                yield at, (cosine - 0.3) / 0.7
                marked += 1
        if marked == SYNONYMS:
            return


def _row(marks: Sequence[Mark], scratch: Floats) -> Row:
    """Marks as one row, the highest value of a position. `scratch` is zero before and after."""
    marks = [mark for mark in marks if len(mark[0])]
    if len(marks) == 1:
        at, value = marks[0]
        return at, np.full(len(at), value, dtype=np.float32)
    # From the lowest value up, so that the highest is what stays.
    for at, value in sorted(marks, key=itemgetter(1)):
        scratch[at] = value
    positions = np.flatnonzero(scratch != 0)
    values = scratch[positions]
    scratch[positions] = 0
    return positions, values
