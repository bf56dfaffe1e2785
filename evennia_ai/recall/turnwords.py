"""Which words each turn holds, and how near they come to the words of a query.

The rows of `wordrows` know a word's nearest others; what is farther off counts there as nothing.
In a crowd, where much is said of the same people, that little tells what a line is about.
"""

from collections.abc import Iterable

import numpy as np

from evennia_ai.language.words import STOP_WORDS, words
from evennia_ai.recall.vectors import Floats, Growing, Ints
from evennia_ai.recall.vocabulary import Vocabulary


class TurnWords:
    """The words of turns, as numbers in a vocabulary, without stop words, each once.

    Args:
        vocabulary: Where the words have their vectors.
    """

    def __init__(self, vocabulary: Vocabulary):
        self._vocabulary = vocabulary
        self._numbers = Growing(np.int64)
        self._ends = Growing(np.int64)

    def __len__(self) -> int:
        return len(self._ends.values)

    def extend(self, texts: Iterable[str]) -> None:
        """Append turns."""
        end = int(self._ends.values[-1]) if len(self) else 0
        numbers: list[int] = []
        ends = []
        for text in texts:
            kept = dict.fromkeys(word for word in words(text) if word not in STOP_WORDS)
            numbers += self._vocabulary.numbers(kept)
            ends.append(end + len(numbers))
        self._numbers.extend(numbers)
        self._ends.extend(ends)

    def nearness(self, turns: Ints, vectors: Floats) -> Floats:
        """How near the nearest word of each turn comes to each vector.

        Args:
            turns: Numbers of turns in order of adding, shape (n,).
            vectors: Of words, shape (words, dims).

        Returns:
            Cosines, at least 0, shape (words, n).
        """
        ends = self._ends.values[turns]
        starts = np.where(turns > 0, self._ends.values[turns - 1], 0)
        sizes = ends - starts
        firsts = np.cumsum(sizes) - sizes
        at = np.arange(int(sizes.sum())) + np.repeat(starts - firsts, sizes)
        found = np.zeros((len(vectors), len(turns)), dtype=np.float32)
        if not found.size or not len(at):
            return found
        used, where = np.unique(self._numbers.values[at], return_inverse=True)
        cosines = self._vocabulary.cosines(vectors, used)[:, where]
        full = np.flatnonzero(sizes)
        found[:, full] = np.maximum.reduceat(cosines, firsts[full], axis=1)
        return np.maximum(found, 0)
