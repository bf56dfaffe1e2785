"""Of several turns that say the same of the same one, the newest comes first.

Whoever asks in the present tense where somebody lives wants to know where they live now. Two turns
are taken to say the same if they hold the same words of the query, in any of the three readings
and all but one at most, about the same one, and were said at different times; to share a name
alone is not enough. The places that such a group has in the ranking stay; the newest takes the
best of them. All other turns keep theirs.
Turns below the best ten never come up in this way: they would push out what answers as well, as
where a question asks for several things.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evennia_ai.recall.features import Candidates
from evennia_ai.recall.query import Query
from evennia_ai.recall.text import words
from evennia_ai.recall.view import SESSION_GAP_S, Ints

# So many best turns are looked at, and so much lower a score (in units of log-odds) still counts
# as saying the same.
LOOKED_AT = 10
MARGIN = 2.5
# A capital that no query begins with.
_NAME = re.compile(r"(?<=\s)[\"'“‘]?([A-Z]\w+)")


def latest_first(
    order: Ints, scores: NDArray[np.float64], candidates: Candidates, query: Query
) -> Ints:
    """Put newer turns before older ones that say the same.

    Args:
        order: Candidates by score, best first, shape (n,).
        scores: Of each candidate, shape (n,).
        candidates: The candidates.
        query: What is asked.

    Returns:
        The candidates in their new order, shape (n,).
    """
    if not query.asks_now:
        return order
    found = order.copy()
    for places in _groups(order[:LOOKED_AT].tolist(), scores, candidates, query):
        found[places] = _newest_first(order[places], candidates.times)
    return found


def _groups(
    best: Sequence[int], scores: NDArray[np.float64], candidates: Candidates, query: Query
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


def _beyond_names(query: Query) -> int:
    """Bits of the query's words that are not written as names, as in `Candidates.matched`."""
    names = {word for name in _NAME.findall(query.text) for word in words(name)}
    return sum(1 << n for n, word in enumerate(query.content) if word not in names)


def _newest_first(members: Ints, times: NDArray[np.float64]) -> Ints:
    """Members by the talk they stem from, newest first; within a talk they keep their order."""
    moments = times[members]
    rank = np.argsort(moments, kind="stable")
    talks = np.zeros(len(members), dtype=np.int64)
    talks[rank] = np.cumsum(np.diff(moments[rank], prepend=moments[rank[0]]) > SESSION_GAP_S)
    return members[np.argsort(-talks, kind="stable")]
