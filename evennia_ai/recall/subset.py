"""Ranks a few turns that a database has found, by the same features as a whole scope's.

The turns are the best by their words and vectors, each with its neighbours in the talk, so that
what a feature says of them is what it says among all. What it says of the neighbours, which are
ranked too, is less exact.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from evennia_ai.language.names import names_among
from evennia_ai.language.words import words
from evennia_ai.recall.embedding import Embedder
from evennia_ai.recall.features import Reader
from evennia_ai.recall.query import ParsedQuery
from evennia_ai.recall.ranking import (
    LinearModel,
    best_places,
    default_model,
    latest_first,
    probability,
)
from evennia_ai.recall.store import Row
from evennia_ai.recall.values import Hit
from evennia_ai.recall.view import ScopeView
from evennia_ai.recall.vocabulary import Vocabulary


class Rows:
    """Rows in memory, read as `view.ScopeView` reads a `store.Store`; sorted by their numbers."""

    def __init__(self, rows: Sequence[Row]):
        self._rows = rows
        self._texts = {row[0]: row[3] for row in rows}
        self._holders = defaultdict[str, list[int]](list)
        for number, text in self._texts.items():
            for word in dict.fromkeys(words(text)):
                self._holders[word].append(number)

    def scope_rows(self, scope: int, after: int = 0, at_most: int | None = None) -> Iterator[Row]:
        """Rows above a number, in order."""
        return (row for row in self._rows if row[0] > after)

    def rowids_of_word(self, scope: int, word: str, after: int = 0) -> list[int]:
        """Numbers of the rows that hold a word."""
        return [number for number in self._holders.get(word, ()) if number > after]

    def rowids_of_name(self, scope: int, name: str, after: int = 0) -> list[int]:
        """As `rowids_of_word`, only rows where a word like `will` means somebody."""
        found = self.rowids_of_word(scope, name, after)
        return [number for number in found if name in names_among(self._texts[number])]


def ranked(
    rows: Sequence[Row],
    query: ParsedQuery,
    limit: int,
    embedder: Embedder,
    vocabulary: Vocabulary,
    model: LinearModel | None = None,
) -> list[Hit]:
    """The best of some rows, as `RecallIndex.search` ranks them."""
    view = ScopeView(Rows(rows), 1, embedder, vocabulary)  # type: ignore[arg-type]
    turns = view.seen_by(None)
    candidates = Reader(turns, query, embedder).candidates()
    scores = (model or default_model(turns.in_crowd)).scores(candidates)
    order = np.argsort(-scores, kind="stable")
    alike = None
    if turns.in_crowd:
        best = order[best_places(order, candidates)]
        alike = turns.likeness(candidates.positions[best])
    best = latest_first(order, scores, candidates, query, alike)[:limit]
    by_number = {row[0]: row for row in rows}
    numbers = view.rowids.values[turns.base[candidates.positions[best]]].tolist()
    places = zip(numbers, scores[order].tolist(), candidates.matches[best].tolist(), strict=False)
    return [_hit(by_number[number], score, matches) for number, score, matches in places]


def _hit(row: Row, score: float, matches: bool) -> Hit:
    _, turn_id, speaker, text, at, _, session, audience, kind, *_ = row
    found = probability(score)
    return Hit(turn_id, found, speaker, text, at, kind, session, audience, bool(matches))
