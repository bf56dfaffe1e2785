"""What a database is asked for a query: words with weights, so few rows that it answers in time.

A rare word is asked for by itself. A common one would bring tens of thousands of rows, so it is
asked for together with another word of the query, or with whom the query names; by itself it
brings only some of its rows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np

from evennia_ai.language.words import STOP_WORDS
from evennia_ai.recall.query import ParsedQuery
from evennia_ai.recall.vectors import Floats
from evennia_ai.recall.vocabulary import Vocabulary, members
from evennia_ai.recall.wordrows import KIND, SYNONYMS

# Most rows that a word may bring by itself, and all words of a query together.
MOST_ROWS, ALL_ROWS = 4_000, 16_000
# Longest word or name as it is stored.
LONGEST = 200
# Before a speaker's name among the words of a turn.
SPEAKER = "@"


@dataclass(frozen=True)
class Wanted:
    """A `tsquery`, what a row that fulfils it is worth, and how many rows it may bring."""

    tsquery: str
    weight: float
    most: int = MOST_ROWS


@dataclass(frozen=True)
class _Word:
    """One word of the query: its forms, words of near meaning with their worth, members."""

    forms: tuple[str, ...]
    near: tuple[tuple[str, float], ...]
    kind: tuple[str, ...]

    @property
    def all(self) -> Iterable[str]:
        return (*self.forms, *(word for word, _ in self.near), *self.kind)


def lexeme(word: str) -> str:
    """A word as PostgreSQL reads it in a `tsquery` or a `tsvector`."""
    escaped = word[:LONGEST].replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def speaker_word(name: str) -> str:
    """What stands among the words of a turn for who said it."""
    return SPEAKER + name[: LONGEST - 1]


def wanted_of(
    query: ParsedQuery,
    vectors: Floats,
    vocabulary: Vocabulary,
    total: int,
    counted: Callable[[Sequence[str]], Mapping[str, int]],
) -> tuple[list[Wanted], Floats]:
    """What to ask for a query, and how rare each of its words is.

    Args:
        query: The query.
        vectors: Of its content words, a row each.
        vocabulary: Words that somebody said.
        total: How many turns the asker may see.
        counted: Tells in how many of them words stand; words in none are left out.
    """
    found = [
        _read(word, vector, word in query.also_names, vocabulary)
        for word, vector in zip(query.content, vectors, strict=True)
    ]
    people = [speaker_word(name) for name in query.asked]
    asked = dict.fromkeys([*people, *(each for word in found for each in word.all)])
    counts = counted(list(asked))
    sums = [sum(counts.get(form, 0) for form in word.forms) for word in found]
    held = np.minimum(np.array(sums, dtype=np.float32), total)
    rarity = np.log1p((total - held + 0.5) / (held + 0.5))
    return _asked(found, people, counts, rarity.tolist()), rarity


def _read(word: str, vector: Floats, is_name: bool, vocabulary: Vocabulary) -> _Word:
    if is_name:
        return _Word((word,), (), ())
    forms = tuple(dict.fromkeys([word, *vocabulary.forms(word)]))
    near = vocabulary.near(word, vector)
    kind = {form for each in members(word) for form in vocabulary.forms_of_stem(each)}
    return _Word(
        forms,
        tuple((form, (cosine - 0.3) / 0.7) for form, cosine in near if form not in forms),
        tuple(sorted(kind.difference(forms, STOP_WORDS))),
    )


def _asked(
    found: Sequence[_Word],
    people: Sequence[str],
    counts: Mapping[str, int],
    rarity: Sequence[float],
) -> list[Wanted]:
    single: list[tuple[int, Wanted]] = []
    common: list[tuple[str, float]] = []
    whole: list[tuple[str, float]] = [(lexeme(name), 0.5) for name in people if name in counts]
    for word, weight in zip(found, rarity, strict=True):
        exact = [form for form in word.forms if form in counts]
        if exact:
            tsquery, rows = _any(exact), sum(counts[form] for form in exact)
            whole.append((tsquery, weight))
            if rows <= MOST_ROWS:
                single.append((rows, Wanted(tsquery, weight)))
            else:
                common.append((tsquery, weight))
        near = list(islice(((w, worth) for w, worth in word.near if w in counts), SYNONYMS))
        single += [
            (counts[each], Wanted(lexeme(each), weight * worth))
            for each, worth in (*near, *((kind, KIND) for kind in word.kind if kind in counts))
            if counts[each] <= MOST_ROWS
        ]
    chosen, left = [], ALL_ROWS
    for rows, wanted in sorted(single, key=lambda pair: -pair[1].weight / (1 + pair[0])):
        if rows <= left:
            chosen.append(wanted)
            left -= rows
    pairs = [
        Wanted(f"({one}) & ({other})", weight + more)
        for (one, weight), (other, more) in combinations(whole, 2)
        if (one, weight) in common or (other, more) in common
    ]
    least = max(MOST_ROWS // 4, left // max(1, len(common)))
    rest = whole if not found else common
    return [*chosen, *pairs, *(Wanted(tsquery, weight, least) for tsquery, weight in rest)]


def _any(some: Sequence[str]) -> str:
    return " | ".join(map(lexeme, some))
