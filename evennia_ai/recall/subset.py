"""Ranks a few turns that a database has found, by the same features as a whole scope's.

The turns are the best by their words and vectors, each with its neighbours in the talk, so that
what a feature says of them is what it says among all. What it says of the neighbours, which are
ranked too, is less exact.
"""

from collections.abc import Sequence

import numpy as np

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


def ranked(
    rows: Sequence[Row],
    query: ParsedQuery,
    limit: int,
    embedder: Embedder,
    vocabulary: Vocabulary,
    model: LinearModel | None = None,
) -> list[Hit]:
    """The best of some rows, as `RecallIndex.search` ranks them."""
    view = ScopeView(embedder, vocabulary)
    view.extend([(place, *row[1:]) for place, row in enumerate(rows, 1)], len(rows))
    turns = view.seen_by(None)
    candidates = Reader(turns, query, embedder).candidates()
    scores = (model or default_model(turns.in_crowd)).scores(candidates)
    order = np.argsort(-scores, kind="stable")
    alike = None
    if turns.in_crowd:
        best = order[best_places(order, candidates)]
        alike = turns.likeness(candidates.positions[best])
    best = latest_first(order, scores, candidates, query, alike)[:limit]
    found = turns.base[candidates.positions[best]].tolist()
    places = zip(found, scores[order].tolist(), candidates.matches[best].tolist(), strict=False)
    return [_hit(rows[position], score, matches) for position, score, matches in places]


def _hit(row: Row, score: float, matches: bool) -> Hit:
    _, turn_id, speaker, text, at, _, session, audience, kind, *_ = row
    found = probability(score)
    return Hit(turn_id, found, speaker, text, at, kind, session, audience, bool(matches))
