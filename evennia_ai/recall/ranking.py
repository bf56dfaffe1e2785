"""From the turns an audience sees to an order of those that answer a query.

12 features of each candidate go into a linear model: one for talk where each turn answers the last,
one for a crowd, and others for queries that are statements. `benchmarks/train_recall.py` learns
their weights; `weights.json` names the training data. Each feature is scale-free (a share, a
cosine, a flag), so that weights learned on talks of hundreds of turns hold for a hundred thousand.

What bears on a statement rarely has its words, as on "I can't eat a thing" that somebody had a
tooth pulled. So what a turn itself means and the words that it holds decide there, alike. The
packaged vectors were learned from English; in other languages the words alone decide.

What names no date asks for what holds now. So of the best ten turns that tell, those that say the
same of the same person swap places: the newest gets the best of their places. Turns below the best
ten never move up, as they would push out other answers. Turns say the same if they hold the same
words of the query, with one missing at most.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evennia_ai.language.tables import DEFAULT
from evennia_ai.language.words import stem
from evennia_ai.recall.embedding import StaticEmbedder
from evennia_ai.recall.lexicon import ParsedQuery, forms_of, parsed_query
from evennia_ai.recall.view import SESSION_GAP_S, Flags, Floats, Ints, View

WEIGHTS = Path(__file__).resolve().parent / "weights.json"
# Up to `WHOLE` turns, all are candidates. Of more, the best `CANDIDATES` by words and cosines.
WHOLE, CANDIDATES = 700, 300
# How much of a word's weight its neighbours lend, by distance in turns. A question lends its words
# to the answer: to the turn itself, from the one before, from the one before that.
_OFFSETS = (0, -1, 1, -2, 2)
_HERE = np.array([1.0, 0, 0, 0, 0], dtype=np.float32)
_LENT = np.array([1.0, 0.8, 0.8, 0.55, 0.55], dtype=np.float32)
_BEFORE = np.array([1.0, 0.9, 0, 0.7, 0], dtype=np.float32)
_MEANT = np.array([1.0, 0.5, 0.5, 0.25, 0.25], dtype=np.float32)
# Beyond the years 1 to 9999 no calendar is asked about; in seconds.
_CALENDAR = (-719_162 * 86_400, 2_932_896 * 86_400)
# How many best turns that tell are compared, and how much lower a score (in log-odds) may be to
# count as saying the same.
LOOKED_AT, MARGIN = 10, 2.5


@dataclass(frozen=True, slots=True)
class Candidates:
    """Turns looked at and what is known of them; arrays of shape (n,) but for `held`."""

    positions: Ints  # their places in the `View`
    features: Mapping[str, Any]
    held: Flags  # which words of the query each holds in any form, shape (words, n)
    exact: Flags  # whether each holds all words of the query, and tells
    # Whether each tells, rather than asks, of somebody the query names, or of anything if it names
    # nobody who speaks here.
    tells: Flags
    times: NDArray[np.float64]  # when each was said, in seconds
    about: Flags  # whether each is by somebody the query names or holds such a name

    @property
    def matches(self) -> Flags:
        """Whether each holds a word of the query, or somebody it names."""
        return np.asarray(self.held.any(axis=0) | self.about)


class Reader:
    """Reads the candidates of one query among the turns the asker may see.

    `stored` gives the stems of all turns that begin with some letters.
    """

    def __init__(
        self,
        view: View,
        query: ParsedQuery,
        embedder: StaticEmbedder,
        stored: Callable[[str], Iterable[str]],
    ):
        self._view, self._query = view, query
        self._vector = np.asarray(embedder.embed([query.text])[0])
        # How much each word of the query (rows) counts in each turn, 0 to 1.
        self._held = np.zeros((len(query.content), view.size), dtype=np.float32)
        for row, word in zip(self._held, query.content, strict=True):
            for form, share in forms_of(word, query.language, stored).items():
                holders = view.holding(form)
                row[holders] = np.maximum(row[holders], share)
        counts = np.count_nonzero(self._held, axis=1).astype(np.float32)
        rarity = np.log1p((view.size - counts + 0.5) / (counts + 0.5))
        self._weights = rarity / (float(rarity.sum()) or 1.0)
        self._positions = positions = self._worth_a_look()
        # With those near in order, which may belong to another talk.
        wanted = positions + np.array(_OFFSETS)[:, None]
        self._around = around = np.clip(wanted, 0, max(0, view.size - 1))
        talks = view.talks
        self._same_talk = (around == wanted) & (talks[around] == talks[positions])

    def _worth_a_look(self) -> Ints:
        """Ascending positions of the turns that look best."""
        view, vector = self._view, self._vector
        if view.size <= WHOLE:
            return np.arange(view.size)
        held = _weighed(self._weights, self._held)
        if self._query.states:
            return _best(held + view.cosines(vector), CANDIDATES)
        lent = held.copy()
        for step in (1, 2):
            lent[step:] += held[:-step] * np.float32(0.4 / step)
            lent[:-step] += held[step:] * np.float32(0.4 / step)
        return _best(lent + np.float32(0.7) * view.cosines(vector), CANDIDATES)

    def candidates(self) -> Candidates:
        """The turns worth a closer look and their features."""
        view, query, positions = self._view, self._query, self._positions
        held = self._held[:, self._around] * self._same_talk
        named = np.zeros(view.size, dtype=bool)
        for name in query.name_words:
            named[view.holding(stem(name))] = True
        named = named[positions]
        looked_at, near = np.unique(self._around, return_inverse=True)
        cosines = view.centred_cosines(self._vector, looked_at)
        cosines = cosines[near.reshape(self._around.shape)] * self._same_talk
        asks = view.field("asks", positions) > 0
        spoke = self._said_by(query.asked)
        about = named | spoke
        one, several = len(query.asked) == 1, len(query.asked) > 1
        asked_before = view.field("asks", np.maximum(positions - 1, 0)) * self._same_talk[1]
        month, day = self._dates()
        features = {
            "words_here": self._shared(held, _HERE),
            "words_before": self._shared(held, _BEFORE),
            "words_window": self._shared(held, _LENT),
            "meaning_here": cosines[0],
            "meaning_window": _weighed(_MEANT, cosines),
            "spoke": spoke & one,
            "spoke_no_question": spoke & one & ~asks,
            "spoke_first": self._said_by(query.asked[:1]) & several,
            "named": named & one,
            "asks": asks,
            "answers": asked_before,
            "opens": view.begins[positions],
            "month": month,
            "day": day,
        }
        holds, tells = held[:, 0] > 0, ~asks & (about | (not query.asked))
        return Candidates(
            positions,
            features,
            holds,
            exact=tells & bool(query.content) & (held[:, 0] == 1).all(axis=0),
            tells=tells,
            times=view.field("time", positions),
            about=about,
        )

    def _said_by(self, names: Sequence[str]) -> Flags:
        by = [number for number, name in self._view.speakers.items() if name in names]
        return np.isin(self._view.field("speaker", self._positions), by)

    def _shared(self, held: Floats, lent: Floats) -> Floats:
        """The share of the query's words, by rarity, that candidates hold or are lent."""
        return _weighed(self._weights, (held * lent[:, None]).max(axis=1))

    def _dates(self) -> tuple[Flags, Flags]:
        """Whether a turn was said in a month the query names, and within three days of a day."""
        query, count = self._query, len(self._positions)
        in_month, near_day = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        if query.months:
            times = np.clip(self._view.field("time", self._positions), *_CALENDAR)
            for place, time in enumerate(times.tolist()):
                day = datetime.fromtimestamp(time, UTC)
                if day.month in query.months and (day.year in query.years or not query.years):
                    in_month[place] = True
                    near_day[place] = any(abs(day.day - each) <= 3 for each in query.days)
        return in_month, near_day


def _best(values: Floats, count: int) -> Ints:
    """Ascending places of so many of the highest values."""
    return np.sort(np.argpartition(-values, count - 1)[:count])


def _weighed(weights: Floats, rows: Floats) -> Floats:
    """Weighted sum of rows. Not a BLAS product, whose rounding depends on the rows' length."""
    return np.asarray((weights[:, None] * rows).sum(axis=0))


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A weighted sum of features; with `bias`, above 0 is more likely an answer than not."""

    weights: Mapping[str, float]
    bias: float = 0.0

    def scores(self, candidates: Candidates) -> NDArray[np.float64]:
        """Scores of candidates, float64 of shape (n,); higher is better."""
        sums = np.full(len(candidates.positions), self.bias)
        for name, weight in self.weights.items():
            sums += weight * candidates.features[name]
        # Rounded, so that equal turns tie and the earlier one comes first.
        sums = np.round(sums, 6)
        # What holds all words of the query is not ranked behind what has none.
        vague = np.where(candidates.matches, -np.inf, sums).max(initial=-np.inf)
        return np.where(candidates.exact, np.maximum(sums, vague + 1e-6), sums)


@cache
def default_model(kind: str = "") -> LinearModel:
    """The shipped model for talk of few, for ``crowd``, or for one of the kinds of statements.

    These are ``statement``, and ``statement by words``.
    """
    data = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    data = data[kind] if kind else data
    return LinearModel(data["weights"], data["bias"])


def ranked(
    view: View,
    text: str,
    embedder: StaticEmbedder,
    stored: Callable[[str], Iterable[str]],
    model: LinearModel | None = None,
) -> list[tuple[int, float, bool]]:
    """What answers a query, best first: numbers of turns, scores of 0 to 1, whether it matches.

    Nothing if the query has no word to look for. `stored` is as for `Reader`.
    """
    query = parsed_query(text, view.speakers.values())
    if not view.size or not (query.content or query.asked):
        return []
    candidates = Reader(view, query, embedder, stored).candidates()
    kind = ""
    if query.states and query.language == DEFAULT:
        kind = "statement"
    elif query.states:
        kind = "statement by words"
    elif view.in_crowd:
        kind = "crowd"
    scores = (model or default_model(kind)).scores(candidates)
    order = np.argsort(-scores, kind="stable")
    best = latest_first(order, scores, candidates, query)
    # A turn moved to a better place gets the score of that place, so scores never rise.
    chances = 1 / (1 + np.exp(-np.clip(scores[order], -30, 30)))
    numbers = view.numbers(candidates.positions[best]).tolist()
    return list(zip(numbers, chances.tolist(), candidates.matches[best].tolist(), strict=True))


def latest_first(
    order: Ints, scores: NDArray[np.float64], candidates: Candidates, query: ParsedQuery
) -> Ints:
    """The order of candidates (best first) with newer turns before older ones that say the same."""
    places = np.flatnonzero(candidates.tells[order])[:LOOKED_AT]
    best = order[places]
    held = candidates.held[:, best]
    enough = held.sum(axis=0) >= max(1, len(held) - 1)
    same = (held[:, :, None] == held[:, None]).all(axis=0)
    same &= scores[best][:, None] - scores[best] <= MARGIN
    # One that names no time may ask how things are.
    left = np.flatnonzero(enough & (not (query.months or query.years)))
    result = order.copy()
    while len(left):
        group = left[same[left[0], left]]
        # By talk, newest first; within a talk they keep their order.
        moments = candidates.times[best[group]]
        rank = np.argsort(moments, kind="stable")
        talks = np.zeros(len(group), dtype=np.int64)
        talks[rank] = np.cumsum(np.diff(moments[rank], prepend=moments[rank[0]]) > SESSION_GAP_S)
        result[places[group]] = best[group][np.argsort(-talks, kind="stable")]
        left = np.setdiff1d(left, group)
    return result
