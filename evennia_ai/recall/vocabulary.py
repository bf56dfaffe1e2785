"""The words that may stand in turns: their stems, and those of near meaning."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from evennia_ai.language.words import stem, words
from evennia_ai.recall.vectors import ExactVectors, Floats, Ints, quantised

# Words of similar meaning are taken for related from this cosine on.
NEAR_MEANING = 0.4
_KEPT_WORDS = 2_000


class Names:
    """Strings numbered in order of first use."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        """The number of a string, a new one if it is new."""
        known = self._numbers.get(name)
        if known is None:
            known = self._numbers[name] = len(self.all)
            self.all.append(name)
        return known


class Vocabulary:
    """Words that may stand in turns, their stems, and their vectors for near-synonyms.

    Args:
        embedder: Has `embed` and `dims`, as `StaticEmbedder`.
    """

    def __init__(self, embedder: Any):
        self._embedder = embedder
        self._names = Names()
        self._by_stem: dict[str, list[str]] = {}
        self._vectors = ExactVectors(embedder.dims)
        self._near: OrderedDict[str, tuple[int, list[tuple[float, str]]]] = OrderedDict()

    def add(self, new_words: Iterable[str]) -> None:
        """Take in words; known ones cost nothing."""
        self.numbers(new_words)

    def numbers(self, some_words: Iterable[str]) -> list[int]:
        """Numbers of words, by which `cosines` knows them; unknown ones are taken in."""
        known, found = len(self._names.all), [self._names.number(word) for word in some_words]
        for word in self._names.all[known:]:
            self._by_stem.setdefault(stem(word), []).append(word)
        return found

    def cosines(self, vectors: Floats, numbers: Ints) -> Floats:
        """Cosine of each vector (rows) with each of the words of these numbers."""
        self._embed_new_words()
        return self._vectors.cosines_at(vectors, numbers)

    def forms(self, word: str) -> Sequence[str]:
        """Words with the same stem."""
        return self.forms_of_stem(stem(word))

    def forms_of_stem(self, stemmed: str) -> Sequence[str]:
        """Words that have this stem."""
        return self._by_stem.get(stemmed, ())

    def near(self, word: str, vector: Floats) -> Iterator[tuple[str, float]]:
        """Known words of near meaning and their cosines, nearest first, equally near ones by name.

        Args:
            word: A word.
            vector: Its vector, shape (dims,).
        """
        self._embed_new_words()
        known_to, found = self._near.get(word, (0, []))
        size = len(self._vectors)
        if known_to < size:
            cosines = self._vectors.cosines(vector[None], known_to)[0]
            close = np.flatnonzero(cosines >= NEAR_MEANING)
            fresh = [(-float(cosines[n]), self._names.all[known_to + int(n)]) for n in close]
            found = sorted(found + fresh)
            self._near[word] = (size, found)
        self._near.move_to_end(word)
        if len(self._near) > _KEPT_WORDS:
            self._near.popitem(last=False)
        return ((form, -minus) for minus, form in found)

    def _embed_new_words(self) -> None:
        missing = self._names.all[len(self._vectors) :]
        if missing:
            self._vectors.extend(quantised(self._embedder.embed(missing)))


def words_of(texts: Iterable[str]) -> set[str]:
    """All words of some texts."""
    return {word for text in texts for word in words(text)}
