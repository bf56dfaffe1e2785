"""From features to scores and an order.

Scores come from linear models with weights in JSON: one for talk where each turn answers the last,
one for a crowd. `scripts/train_recall.py` learns them; the file names the training data and the
results on unseen talks.

A question in the present tense asks for what holds now. So of the best ten turns, those that say
the same of the same person swap places: the newest gets the best of their places. Turns below the
best ten never move up, as they would push out other answers.

Among few, turns say the same if they hold the same words of the query, in any of the three
readings, with one missing at most, about the same person; a shared name is not enough. In a crowd,
where many tell the same in different words, shared words and likeness in meaning count together.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evennia_ai.recall.features import Candidates
from evennia_ai.recall.query import ParsedQuery
from evennia_ai.recall.vectors import Floats, Ints
from evennia_ai.recall.view import SESSION_GAP_S

WEIGHTS = Path(__file__).resolve().parent / "weights.json"
# How many best turns are compared, and how much lower a score (in log-odds) may be to count as
# saying the same: among few, and in a crowd.
LOOKED_AT = 10
MARGIN = 2.5
CROWD_MARGIN = 4.5
# In a crowd: least sum of the share of the query's words in common and the centred cosine.
IN_COMMON = 0.5


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A weighted sum of features; with `bias`, above 0 is more likely an answer than not."""

    names: tuple[str, ...]
    weights: NDArray[np.float64]
    bias: float = 0.0

    def scores(self, candidates: Candidates) -> NDArray[np.float64]:
        """Scores of candidates, float64 of shape (n,); higher is better."""
        # Row by row: the rounding of a BLAS product would depend on how many candidates there are.
        sums = (self.weights[:, None] * candidates.matrix(self.names)).sum(axis=0)
        # Rounded, so that equal turns tie and the earlier one comes first.
        return np.asarray(np.round(sums + self.bias, 6))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "LinearModel":
        """A model from ``{"bias": number, "weights": {feature: number}}``."""
        weights = data["weights"]
        values = np.array(list(weights.values()), dtype=np.float64)
        return cls(tuple(weights), values, float(data.get("bias", 0.0)))


@cache
def default_model(crowd: bool = False) -> LinearModel:
    """The shipped model for talk of few, or for a crowd."""
    data = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return LinearModel.from_dict(data["crowd"] if crowd else data)


def probability(score: float) -> float:
    """A score squeezed into 0..1."""
    return float(1 / (1 + np.exp(-np.clip(score, -30, 30))))


def latest_first(
    order: Ints,
    scores: NDArray[np.float64],
    candidates: Candidates,
    query: ParsedQuery,
    alike: Floats | None = None,
) -> Ints:
    """The order of candidates (best first) with newer turns before older ones that say the same.

    In a crowd, `alike` holds how alike the turns of `best_places` are: cosines of shape (m, m). It
    is None among few.
    """
    looked_at = best_places(order, candidates)
    best = order[looked_at].tolist()
    if alike is None:
        groups = _groups(best, scores, candidates, query) if query.asks_now else []
    else:
        # Of those who are merely named, any two things told are alike.
        may = query.may_ask_now and _beyond_names(query)
        groups = _groups_in_crowd(best, scores, candidates, query, alike) if may else []
    found = order.copy()
    for group in groups:
        places = looked_at[group]
        found[places] = _newest_first(order[places], candidates.times)
    return found


def best_places(order: Ints, candidates: Candidates) -> Ints:
    """Places, at most `LOOKED_AT`, of the best turns that are not the query asked before."""
    return np.flatnonzero(~candidates.repeats[order])[:LOOKED_AT]


def _groups(
    best: Sequence[int], scores: NDArray[np.float64], candidates: Candidates, query: ParsedQuery
) -> list[list[int]]:
    """Places in `best` of turns that say the same, two or more in a group."""
    needed, telling = max(1, len(query.content) - 1), _beyond_names(query)
    groups: dict[int, list[int]] = {}
    for place, at in enumerate(best):
        key = int(candidates.matched[at])
        if key.bit_count() < needed or not key & telling or not candidates.tells[at]:
            continue
        group = groups.setdefault(key, [place])
        if group[0] != place and scores[best[group[0]]] - scores[at] <= MARGIN:
            group.append(place)
    return [group for group in groups.values() if len(group) > 1]


def _groups_in_crowd(
    best: Sequence[int],
    scores: NDArray[np.float64],
    candidates: Candidates,
    query: ParsedQuery,
    alike: Floats,
) -> list[list[int]]:
    """The same in a crowd; all names in the query must stand in each turn."""
    telling = _beyond_names(query)
    names = (1 << len(query.content)) - 1 - telling
    groups: list[list[int]] = []
    for place, at in enumerate(best):
        key = int(candidates.matched[at])
        if not candidates.tells[at] or names & ~key:
            continue
        for group in groups:
            first = best[group[0]]
            known = int(candidates.matched[first]) & telling
            common = _share(key & known, known, candidates.rarity) + alike[group[0], place]
            if common >= IN_COMMON and scores[first] - scores[at] <= CROWD_MARGIN:
                group.append(place)
                break
        else:
            groups.append([place])
    return [group for group in groups if len(group) > 1]


def _share(part: int, whole: int, rarity: Floats) -> float:
    """The share, by rarity, that some words have of others; both as bits."""
    bits = np.arange(len(rarity))
    total = float(rarity[(whole >> bits & 1) > 0].sum())
    return float(rarity[(part >> bits & 1) > 0].sum()) / total if total else 0.0


def _beyond_names(query: ParsedQuery) -> int:
    """Bits of the query's words that are not written as names, as in `Candidates.matched`."""
    return sum(1 << n for n, proper in enumerate(query.proper) if not proper)


def _newest_first(members: Ints, times: NDArray[np.float64]) -> Ints:
    """Members by talk, newest first; within a talk they keep their order."""
    moments = times[members]
    rank = np.argsort(moments, kind="stable")
    talks = np.zeros(len(members), dtype=np.int64)
    talks[rank] = np.cumsum(np.diff(moments[rank], prepend=moments[rank[0]]) > SESSION_GAP_S)
    return members[np.argsort(-talks, kind="stable")]
