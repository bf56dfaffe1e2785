"""The words of turns and queries: their stems, their vectors, and what is near to them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import regex

from evennia_ai.language.script import akin, folded
from evennia_ai.language.tables import DEFAULT
from evennia_ai.language.words import ALSO_NAMES, STOP_WORDS, names_among, stem, words
from evennia_ai.recall.embedding import StaticEmbedder
from evennia_ai.recall.query import ParsedQuery
from evennia_ai.recall.view import Floats, Ints, norms_of, quantised

_KINDS = Path(__file__).resolve().parent / "kinds.json"
# Least cosine of words that count as related, how many count for a word of the query at most, and
# what a thing counts where its kind is asked for.
_NEAR, _SYNONYMS, _KIND = 0.4, 16, 0.7
# What another form of a word counts, and letters with which forms of one begin.
_KIN, _ALIKE = 0.8, 2
# Before a word that means somebody, as `will` may.
_AS_NAME = "§"
_SIGN = regex.compile(r"[\p{Han}\p{Hangul}]|[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*")


def turn_words(text: str) -> list[str]:
    """The words of a turn, each once, and those that mean somebody, marked.

    Where words have no spaces, each sign is one, too: among pairs of signs `船` would not be found.
    """
    named = (_AS_NAME + name for name in sorted(names_among(text)))
    signs = () if text.isascii() else _SIGN.findall(folded(text))
    return list(dict.fromkeys([*words(text), *signs, *named]))


def asked_words(query: ParsedQuery) -> list[str]:
    """The words of a query's `content` as `turn_words` has them."""
    return [_AS_NAME + word if word in query.also_names else word for word in query.content]


def stem_of(word: str) -> str:
    """The stem by which a word of `turn_words` is looked for."""
    return word if word.startswith(_AS_NAME) else stem(word)


@cache
def members() -> Mapping[str, frozenset[str]]:
    """Stems of the members of each kind, by the stem of the kind's name.

    `kinds.json` is a small hand-made lexicon of everyday and tavern life, so that `pet` finds the
    raven: static vectors put it near `crow`, but far from a question about animals.
    """
    kinds: dict[str, set[str]] = {}
    for names, things in json.loads(_KINDS.read_text(encoding="utf-8")).items():
        for name in names.split():
            kinds.setdefault(stem(name), set()).update(map(stem, things.split()))
    return {name: frozenset(stems) for name, stems in kinds.items()}


class Lexicon:
    """Words numbered in order of first use, with the numbers of their stems and their vectors."""

    def __init__(self, embedder: StaticEmbedder):
        self.embedder = embedder
        self._numbers: dict[str, int] = {}
        self._beginnings: dict[str, list[str]] = {}
        self._stem_numbers: dict[str, int] = {}
        self._stems, self._tells = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
        self._vectors = np.zeros((0, embedder.dims), dtype=np.int8)
        self._norms = np.zeros(0, dtype=np.float32)

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, some_words: Sequence[str]) -> Ints:
        """Numbers of words; unknown ones are added."""
        known = self._numbers
        numbers = [known.setdefault(word, len(known)) for word in some_words]
        if len(known) > len(self._stems):
            fresh = list(known)[len(self._stems) :]
            vectors = quantised(self.embedder.embed(fresh))
            self._vectors = np.concatenate([self._vectors, vectors.astype(np.int8)])
            self._norms = np.append(self._norms, norms_of(vectors))
            self._stems = np.append(self._stems, self._numbers_of(map(stem_of, fresh)))
            tells = [not (word in STOP_WORDS or word.startswith(_AS_NAME)) for word in fresh]
            self._tells = np.append(self._tells, tells)
            for word in fresh:
                self._beginnings.setdefault(word[:_ALIKE], []).append(word)
        return np.array(numbers, dtype=np.int64)

    def _numbers_of(self, stems: Iterable[str]) -> Ints:
        known = self._stem_numbers
        return np.array([known.setdefault(each, len(known)) for each in stems], dtype=np.int64)

    def held(
        self, query: ParsedQuery, vectors: Floats, used: Ints
    ) -> tuple[Floats, Floats, Floats]:
        """How much each word of a query (rows) counts in some words by number (columns), 0 to 1.

        `vectors` are those of the query's words. The first result is whether it is the word in any
        form; the second, how near it comes: in meaning, as one of the kind that the word names, or
        as a form of it; the third, how like it is, however far, where a name is only like itself.
        """
        stems, asked = self._stems[used], self._numbers_of(map(stem_of, asked_words(query)))
        exact = (stems == asked[:, None]).astype(np.float32)
        if query.language != DEFAULT:
            near = exact.copy()
            for row, word in enumerate(query.content):
                for number, share in self._forms_of(word, query.language):
                    at = used == number
                    near[row, at] = np.maximum(near[row, at], share)
            return np.maximum(exact, near == 1), near, near
        # Whole numbers that float32 holds exactly: what stands beside a turn changes no result.
        mine, others = quantised(vectors), self._vectors[used].astype(np.float32)
        cosines = np.einsum("qd,wd->qw", mine, others) / norms_of(mine)[:, None]
        cosines /= self._norms[used]
        near = np.where(cosines >= _NEAR, (cosines - 0.3) / 0.7, 0)
        if len(used) > _SYNONYMS:
            near[near < np.partition(near, -_SYNONYMS, axis=1)[:, [-_SYNONYMS]]] = 0
        for row, word in enumerate(query.content):
            if word in query.also_names:
                near[row] = 0
            elif kind := members().get(stem(word)):
                is_one = np.isin(stems, self._numbers_of(sorted(kind)))
                near[row, is_one] = np.maximum(near[row, is_one], _KIND)
        like = np.where(self._tells[used], np.maximum(cosines, 0), 0)
        like = np.where(np.array(query.proper, dtype=bool)[:, None], exact, like)
        return exact, np.maximum(near, exact), like

    def _forms_of(self, word: str, language: str) -> Iterator[tuple[int, float]]:
        """Numbers of words that are forms of another, and how near each comes to it, 0 to 1."""
        own = stem(word, language)
        for other in self._beginnings.get(word[:_ALIKE], ()):
            if stem(other, language) == own:
                yield self._numbers[other], 1.0
            elif akin(other, word):
                yield self._numbers[other], _KIN

    def names(self, query: ParsedQuery) -> Ints:
        """Numbers of the words by which those are named whom a query names."""
        marked = [_AS_NAME * (name in ALSO_NAMES) + name for name in sorted(query.name_words)]
        return self.numbers(marked)
