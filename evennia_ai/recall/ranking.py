"""From features to scores: linear models whose weights ship as JSON.

One is for talk where a turn answers the last; one for a crowd, where many talk at once and of one
another.

`scripts/train_recall.py` learns them; the file says from what and how well they did on talks
they had not seen.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evennia_ai.recall.features import Candidates

WEIGHTS = Path(__file__).resolve().parent / "weights.json"


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A weighted sum of features.

    Args:
        names: The features, in order.
        weights: One a feature.
        bias: Added to the sum, so that a sum above 0 is more likely an answer than not.
    """

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
    def from_dict(cls, data: dict[str, Any]) -> "LinearModel":
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
