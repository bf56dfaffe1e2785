"""The words of turns and queries: what a query asks for, stems, vectors, and what is near."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import regex

from evennia_ai.language.script import akin, folded
from evennia_ai.language.tables import DEFAULT, language_of, tables
from evennia_ai.language.words import (
    ALSO_NAMES,
    MAX_QUERY_CHARACTERS,
    STOP_WORDS,
    content_words,
    names_among,
    stem,
    storable,
    words,
)
from evennia_ai.recall.embedding import StaticEmbedder
from evennia_ai.recall.view import Floats, Ints, norms_of, quantised

MAX_WORDS = 24
_MONTHS = "january february march april may june july august september october november december"
# `may` and `mar` are words too.
_MONTH_NUMBERS = {
    name[:cut]: number
    for number, name in enumerate(_MONTHS.split(), 1)
    for cut in (3, len(name))
    if name[:cut] not in ("may", "mar")
}
# A short form has at least so many letters, of a name of at least so many.
_SHORT, _FULL = 3, 5
_WANTS_TIME = re.compile(
    r"^(when|what (date|day|month|year|time)|which (month|year|day))\b|how long"
)
_WANTS_NAME = re.compile(r"^who\b|\bname|\bwhich\b|\bcalled\b")
_MAY = re.compile(r"\b(in|of|on|\d+(st|nd|rd|th)?) may\b|\bmay,? \d")
_TOGETHER = re.compile(r"\b(both|and|shared?|common|together)\b")
_AUXILIARIES = words("did does do has have had is was will would can could")
# The present tense asks for what holds; one of these asks for what was.
_NOW = re.compile(r"\b(is|are|does|do|has|have|lives?|s|'s|’s|now|current\w*|these days)\b")
_PAST = re.compile(
    r"\b(did|was|were|had|first|once|before|ago|last|used|original\w*|always|ever|times"
    r"|(19|20)\d\d)\b"
)
# Where a thing was put asks about now.
_PUT = re.compile(
    r"^where (did|has|have)\b.*\b(hid|hide|hidden|put|stash\w*|leave|left|keep|kept|store\w*"
    r"|bury|buried|tuck\w*)\b"
)
# A capital that no query begins with.
_NAME = re.compile(r"(?<=\s)[\"'“‘]?([A-Z]\w+)")
_YEAR = re.compile(r"^(19|20)\d\d$")
_DAY = re.compile(r"^([0-3]?\d)(st|nd|rd|th)?$")
_name_parts = lru_cache(maxsize=16_384)(lambda name: tuple(words(name)))
_KINDS = Path(__file__).resolve().parent / "kinds.json"
# Least cosine of words that count as related, how many count for a word of the query at most, and
# what a thing counts where its kind is asked for.
_NEAR, _SYNONYMS, _KIND = 0.4, 16, 0.7
# What another form of a word counts, and letters with which forms of one begin.
_KIN, _ALIKE = 0.8, 2
# Before a word that means somebody, as `will` may.
_AS_NAME = "§"
_SIGN = regex.compile(r"[\p{Han}\p{Hangul}]|[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*")


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query."""

    text: str  # the query, cut to `MAX_QUERY_CHARACTERS`
    # Its words in order, each once, without stop words and speakers' names.
    content: tuple[str, ...]
    asked: tuple[str, ...]  # names of the speakers in it; who does something comes first
    proper: tuple[bool, ...]  # which words of `content` are written as names
    # Words of `content` that name somebody here and are stop words elsewhere.
    also_names: frozenset[str]
    # Folded words of the speakers' names, and their short forms in the query.
    name_words: frozenset[str]
    together: bool  # whether it asks about several speakers together
    months: tuple[int, ...]
    years: tuple[int, ...]
    days: tuple[int, ...]
    wants_time: bool
    wants_name: bool
    asks_now: bool  # whether it asks, in the present tense, how things are
    # Whether it may ask so: it has no word of the past, or asks where something was put.
    may_ask_now: bool
    language: str = DEFAULT  # the code of the language it is in


def parsed_query(text: str, speakers: Iterable[str] = ()) -> ParsedQuery:
    """Parse a query; `speakers` are those who speak, as far as the asker may know."""
    cut = storable(text[:MAX_QUERY_CHARACTERS]).strip()
    lower, tokens = cut.lower(), words(cut)
    names = {
        name: own
        for name in speakers
        if (own := _name_parts(name)) and any(_is_called(token, own[0]) for token in tokens)
    }
    asked = _in_order_of_doing(tokens, names)
    parts = {part for name in asked for part in names[name]}
    meant = {token for token in tokens if any(_is_called(token, part) for part in parts)}
    also_names = names_among(cut) - meant
    unwanted = (STOP_WORDS - also_names) | meant
    language = language_of(cut) or DEFAULT
    told = tokens if language == DEFAULT else content_words(cut, tables()[language])
    content = [token for token in dict.fromkeys(told) if token not in unwanted][:MAX_WORDS]
    capitals = {word for name in _NAME.findall(cut) for word in words(name)}
    months = [_MONTH_NUMBERS[token] for token in tokens if token in _MONTH_NUMBERS]
    months += [5] if _MAY.search(lower) else []
    days = (_DAY.match(token) for token in tokens) if months else ()
    may_ask_now = bool(_PUT.search(lower)) or not (_PAST.search(lower) or months)
    return ParsedQuery(
        text=cut,
        content=tuple(content),
        asked=asked,
        proper=tuple(word in capitals for word in content),
        also_names=also_names,
        name_words=frozenset(parts | meant),
        together=len(asked) > 1 and bool(_TOGETHER.search(lower)),
        months=tuple(months),
        years=tuple(int(token) for token in tokens if _YEAR.match(token)),
        days=tuple(int(day[1]) for day in days if day and 1 <= int(day[1]) <= 31),
        wants_time=bool(_WANTS_TIME.search(lower)),
        wants_name=bool(_WANTS_NAME.search(lower)),
        asks_now=may_ask_now and bool(_NOW.search(lower)) and "when" not in tokens,
        may_ask_now=may_ask_now,
        language=language,
    )


def _is_called(token: str, part: str) -> bool:
    """Whether a word is a name or its short form: `mel` for `melanie`, not `me`."""
    short = len(token) >= _SHORT and len(part) >= _FULL and part.startswith(token)
    return token == part or short


def _in_order_of_doing(tokens: list[str], names: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Names in their order in the text, but first the one after an auxiliary: `did Alice`."""

    def place(name: str) -> tuple[bool, int, str]:
        at = [n for n, token in enumerate(tokens) if _is_called(token, names[name][0])]
        does = any(n and tokens[n - 1] in _AUXILIARIES for n in at)
        return not does, at[0], name

    return tuple(sorted(names, key=place))


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
