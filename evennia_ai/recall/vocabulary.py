"""The words of turns: stems, words of near meaning, kinds, and which turn holds which.

`kinds.json` is a small hand-made lexicon of everyday and tavern life, so that `pet` finds the
raven: static vectors put it near `crow`, but far from a question about animals.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from evennia_ai.language.words import STOP_WORDS, stem, words
from evennia_ai.recall.embedding import Embedder
from evennia_ai.recall.vectors import ExactVectors, Floats, Growing, Ints, quantised

# Least cosine of words that count as related.
NEAR_MEANING = 0.4
_KEPT_WORDS = 2_000
_KINDS = Path(__file__).resolve().parent / "kinds.json"


class Names:
    """Strings numbered in order of first use."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        """The number of a string; a new string gets the next one."""
        known = self._numbers.get(name)
        if known is None:
            known = self._numbers[name] = len(self.all)
            self.all.append(name)
        return known


class Vocabulary:
    """Words that may stand in turns, their stems, and their vectors for near-synonyms."""

    def __init__(self, embedder: Embedder):
        self._embedder = embedder
        self._names = Names()
        self._by_stem: dict[str, list[str]] = {}
        self._vectors = ExactVectors(embedder.dims)
        self._near: OrderedDict[str, tuple[int, list[tuple[float, str]]]] = OrderedDict()

    def numbers(self, some_words: Iterable[str]) -> list[int]:
        """Numbers of words, as `cosines` takes them; unknown words are added."""
        known, found = len(self._names.all), [self._names.number(word) for word in some_words]
        for word in self._names.all[known:]:
            self._by_stem.setdefault(stem(word), []).append(word)
        return found

    def cosines(self, vectors: Floats, numbers: Ints) -> Floats:
        """Cosine of each vector (rows) with each of the words of these numbers."""
        self._embed_new_words()
        return self._vectors.cosines(vectors, numbers)

    def forms(self, word: str) -> Sequence[str]:
        """Words with the same stem."""
        return self.forms_of_stem(stem(word))

    def forms_of_stem(self, stemmed: str) -> Sequence[str]:
        """Words that have this stem."""
        return self._by_stem.get(stemmed, ())

    def near(self, word: str, vector: Floats) -> Iterator[tuple[str, float]]:
        """Known words near a word's vector with their cosines, nearest first, then by name."""
        self._embed_new_words()
        known_to, found = self._near.get(word, (0, []))
        size = len(self._vectors)
        if known_to < size:
            cosines = self._vectors.cosines(vector[None], slice(known_to, None))[0]
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


@cache
def members_by_kind() -> dict[str, frozenset[str]]:
    """Stems of the members of each kind, by the stem of the kind's name."""
    found: dict[str, set[str]] = {}
    for names, members in json.loads(_KINDS.read_text(encoding="utf-8")).items():
        stems = {stem(member) for member in members.split()}
        for name in names.split():
            found.setdefault(stem(name), set()).update(stems)
    return {name: frozenset(stems) for name, stems in found.items()}


def members(word: str) -> tuple[str, ...]:
    """Sorted stems of the members of the kind a word names; empty if it names none."""
    return tuple(sorted(members_by_kind().get(stem(word), ())))


class TurnWords:
    """The words of turns without stop words, each once, as numbers in a vocabulary.

    `wordrows` counts only a word's nearest others. In a crowd, where many lines are about the same
    people, the farther ones tell what a line is about.
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
        """How near each turn's nearest word comes to each vector: cosines, at least 0.

        `turns` are numbers in order of adding, shape (n,); the result has shape (vectors, n).
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
