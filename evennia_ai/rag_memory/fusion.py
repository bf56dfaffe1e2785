"""Putting ranked lists together."""

from collections.abc import Sequence
from typing import Any

# Cormack, Clarke and Büttcher (SIGIR 2009) found 60 a robust constant for reciprocal ranks.
RANK_CONSTANT = 60


def fused(
    rankings: Sequence[Sequence[dict[str, Any]]], constant: int = RANK_CONSTANT
) -> list[dict[str, Any]]:
    """Several rankings as one, by the sum of reciprocal ranks.

    Args:
        rankings: Lists of hits with an `id`, each best first.
        constant: The larger, the less the first places count.

    Returns:
        Each hit once, best first; of hits with one id the first seen is kept. Equal sums keep
        the order in which they were seen.
    """
    scores: dict[str, float] = {}
    hits: dict[str, dict[str, Any]] = {}
    for ranking in rankings:
        for place, hit in enumerate(ranking):
            scores[hit["id"]] = scores.get(hit["id"], 0.0) + 1.0 / (constant + place + 1)
            hits.setdefault(hit["id"], hit)
    return sorted(hits.values(), key=lambda hit: -scores[hit["id"]])
