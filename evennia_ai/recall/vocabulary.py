"""The words of turns: stems, words of near meaning, and kinds.

`kinds.json` is a small hand-made lexicon of everyday and tavern life, so that `pet` finds the
raven: static vectors put it near `crow`, but far from a question about animals.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from evennia_ai.language.words import stem
from evennia_ai.recall.embedding import Embedder
from evennia_ai.recall.vectors import ExactVectors, Floats, Ints, quantised

# Least cosine of words that count as related.
NEAR_MEANING = 0.4
_KEPT_WORDS = 2_000
_KINDS = Path(__file__).resolve().parent / "kinds.json"


class Names:
    """Strings numbered in order of first use, from 1 on; None stands for one that was forgotten."""

    def __init__(self) -> None:
        self.all: list[str | None] = [None]
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        """The number of a string; a new string gets the next one."""
        known = self._numbers.get(name)
        if known is None:
            known = self._numbers[name] = len(self.all)
            self.all.append(name)
        return known

    def known(self, name: str) -> int | None:
        """The number of a string that has one."""
        return self._numbers.get(name)

    def numbers(self) -> set[int]:
        """All numbers of strings."""
        return set(self._numbers.values())

    def forget(self, numbers: Iterable[int]) -> None:
        """Forget strings; their numbers are not given again."""
        for number in numbers:
            if number < len(self.all) and (name := self.all[number]) is not None:
                del self._numbers[name]
                self.all[number] = None

    def restore(self, known: Mapping[int, str | None]) -> None:
        """Begin with these strings, and numbers of forgotten ones."""
        self.all = [known.get(number) for number in range(max(known, default=0) + 1)]
        self._numbers = {name: number for number, name in known.items() if name is not None}


class Vocabulary:
    """Words that may stand in turns, their stems, and their vectors for near-synonyms."""

    def __init__(self, embedder: Embedder):
        self._embedder = embedder
        self._words: list[str] = []
        self._numbers: dict[str, int] = {}
        self._by_stem: dict[str, list[str]] = {}
        self._vectors = ExactVectors(embedder.dims)
        self._near: OrderedDict[str, tuple[int, list[tuple[float, str]]]] = OrderedDict()

    def numbers(self, some_words: Iterable[str]) -> list[int]:
        """Numbers of words, as `cosines` takes them; unknown words are added."""
        found = []
        for word in some_words:
            number = self._numbers.get(word)
            if number is None:
                number = self._numbers[word] = len(self._words)
                self._words.append(word)
                self._by_stem.setdefault(stem(word), []).append(word)
            found.append(number)
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
            fresh = [(-float(cosines[n]), self._words[known_to + int(n)]) for n in close]
            found = sorted(found + fresh)
            self._near[word] = (size, found)
        self._near.move_to_end(word)
        if len(self._near) > _KEPT_WORDS:
            self._near.popitem(last=False)
        return ((form, -minus) for minus, form in found)

    def _embed_new_words(self) -> None:
        missing = self._words[len(self._vectors) :]
        if missing:
            self._vectors.extend(quantised(self._embedder.embed(missing)))


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
