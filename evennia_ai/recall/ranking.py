"""From the turns an audience sees to an order of those that answer a query.

36 features of each candidate go into a linear model, one for talk where each turn answers the
last, one for a crowd. `benchmarks/train_recall.py` learns their weights; `weights.json` names the
training data and the results on unseen talks. Each feature is scale-free (a share, a cosine, a
flag), so that weights learned on talks of hundreds of turns hold for a hundred thousand.

A question in the present tense asks for what holds now. So of the best ten turns, those that say
the same of the same person swap places: the newest gets the best of their places. Turns below the
best ten never move up, as they would push out other answers.

Among few, turns say the same if they hold the same words of the query, with one missing at most,
about the same person; a shared name is not enough. In a crowd, where many tell the same in
different words, shared words and likeness in meaning count together.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evennia_ai.language.names import ALSO_NAMES, names_among
from evennia_ai.language.script import akin
from evennia_ai.language.tables import DEFAULT
from evennia_ai.language.words import STOP_WORDS, stem, words
from evennia_ai.recall.embedding import Embedder
from evennia_ai.recall.query import ParsedQuery, parsed_query
from evennia_ai.recall.view import SESSION_GAP_S, Flags, Floats, Ints, View, norms_of, quantised

_FOLDER = Path(__file__).resolve().parent
WEIGHTS, _KINDS = _FOLDER / "weights.json", _FOLDER / "kinds.json"
# Up to `WHOLE` turns, all are candidates. Of more, the best `CANDIDATES` by words and cosines; the
# cosines of all but the `POOL` that look best are only estimated.
WHOLE, CANDIDATES, POOL = 700, 300, 1_500
# Least cosine of words that count as related, how many count for a word of the query at most, and
# what a thing counts where its kind is asked for.
_NEAR, _SYNONYMS, _KIND = 0.4, 16, 0.7
# What another form of a word counts, and letters with which forms of one begin.
_KIN, _ALIKE = 0.8, 2
# How much of a word's weight its neighbours lend, by distance in turns. A question lends its words
# to the answer: to the turn itself, from the one before, from the one before that.
_OFFSETS = (0, -1, 1, -2, 2)
_LENT = np.array([1.0, 0.8, 0.8, 0.55, 0.55], dtype=np.float32)
_BEFORE = np.array([1.0, 0.9, 0, 0.7, 0], dtype=np.float32)
_MEANT = np.array([1.0, 0.5, 0.5, 0.25, 0.25], dtype=np.float32)
# BM25's usual k1 = 1.2; b = 0.6, as turns differ in length less than documents do.
_K1, _B = 1.2, 0.6
# Beyond the years 1 to 9999 no calendar is asked about; in seconds.
_CALENDAR = (-719_162 * 86_400, 2_932_896 * 86_400)
# Before a word that means somebody, as `will` may.
_AS_NAME = "§"
# How many best turns are compared, and how much lower a score (in log-odds) may be to count as
# saying the same: among few, and in a crowd.
LOOKED_AT = 10
MARGIN = 2.5
CROWD_MARGIN = 4.5
# In a crowd: least sum of the share of the query's words in common and the centred cosine.
IN_COMMON = 0.5


def turn_words(text: str) -> list[str]:
    """The words of a turn, each once, and those that mean somebody, marked."""
    named = (_AS_NAME + name for name in sorted(names_among(text)))
    return list(dict.fromkeys([*words(text), *named]))


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
    """Words numbered in order of first use, with the numbers of their stems and their vectors.

    `tells` is False for stop words and marked names.
    """

    def __init__(self, embedder: Embedder):
        self.embedder = embedder
        self._numbers: dict[str, int] = {}
        self._stems: dict[str, int] = {}
        self._beginnings: dict[str, list[str]] = {}
        self.stems, self.tells = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
        self.vectors = np.zeros((0, embedder.dims), dtype=np.int8)
        self.norms = np.zeros(0, dtype=np.float32)

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, some_words: Sequence[str]) -> Ints:
        """Numbers of words; unknown ones are added."""
        known = self._numbers
        numbers = [known.setdefault(word, len(known)) for word in some_words]
        if fresh := list(known)[len(self.stems) :]:
            vectors = quantised(self.embedder.embed(fresh))
            self.vectors = np.concatenate([self.vectors, vectors.astype(np.int8)])
            self.norms = np.append(self.norms, norms_of(vectors))
            self.stems = np.append(self.stems, [self.stem_number(stem_of(w)) for w in fresh])
            tells = [not (w in STOP_WORDS or w.startswith(_AS_NAME)) for w in fresh]
            self.tells = np.append(self.tells, tells)
            for word in fresh:
                self._beginnings.setdefault(word[:_ALIKE], []).append(word)
        return np.array(numbers, dtype=np.int64)

    def forms_of(self, word: str, language: str) -> Iterator[tuple[int, float]]:
        """Numbers of words that are forms of another, and how near each comes to it, 0 to 1."""
        own = stem(word, language)
        for other in self._beginnings.get(word[:_ALIKE], ()):
            if stem(other, language) == own:
                yield self._numbers[other], 1.0
            elif akin(other, word):
                yield self._numbers[other], _KIN

    def stem_number(self, a_stem: str) -> int:
        """The number of a stem, as in `stems`."""
        return self._stems.setdefault(a_stem, len(self._stems))


@dataclass(frozen=True, slots=True)
class Candidates:
    """Turns looked at and what is known of them; all arrays of shape (n,) but `rarity`.

    Args:
        positions: Their places in the `View`.
        matched: Which words of the query each holds, or one near in meaning: bit n for the nth.
        exact: Whether each holds all words of the query, and tells.
        tells: Whether each tells, rather than asks, of somebody the query names, or of anything
            if it names nobody who speaks here.
        times: When each was said, in seconds.
        rarity: How rare each of the query's words is, shape (words,).
        about: Whether each is by somebody the query names or holds such a name.
        repeats: In a crowd, whether each asks with at most one of the query's words missing.
    """

    positions: Ints
    features: Mapping[str, Floats]
    matched: Ints
    exact: Flags
    tells: Flags
    times: NDArray[np.float64]
    rarity: Floats
    about: Flags
    repeats: Flags

    @property
    def matches(self) -> Flags:
        """Whether each holds a word of the query, or one near to it, or somebody it names."""
        return np.asarray((self.matched != 0) | self.about)


class Reader:
    """Reads the candidates of one query among the turns the asker may see."""

    def __init__(self, view: View, query: ParsedQuery, lexicon: Lexicon):
        self._view, self._query, self._lexicon = view, query, lexicon
        # One call for all: it costs more than what is embedded.
        self._vectors = np.asarray(lexicon.embedder.embed([query.text, *query.content]))
        asked = [_AS_NAME + word if word in query.also_names else word for word in query.content]
        self._asked_words = asked
        holders = [view.holding(stem_of(word)) for word in asked]
        counts = np.array([len(each) for each in holders], dtype=np.float32)
        self._rarity = np.log1p((view.size - counts + 0.5) / (counts + 0.5))
        self._weights = self._rarity / (float(self._rarity.sum()) or 1.0)
        self._positions = positions = self._worth_a_look(holders)
        # With those near in order, which may belong to another talk.
        wanted = positions + np.array(_OFFSETS)[:, None]
        around = np.clip(wanted, 0, max(0, view.size - 1))
        talks = view.talks
        self._same_talk = (around == wanted) & (talks[around] == talks[positions])
        self._looked_at, near = np.unique(around, return_inverse=True)
        self._near = near.reshape(around.shape)

    def _worth_a_look(self, holders: Sequence[Ints]) -> Ints:
        """Ascending positions of the turns that look best."""
        view, vector = self._view, self._vectors[0]
        if view.size <= WHOLE:
            return np.arange(view.size)
        held = np.zeros(view.size, dtype=np.float32)
        for weight, positions in zip(self._weights, holders, strict=True):
            held[positions] += weight
        lent = held.copy()
        for step in (1, 2):
            lent[step:] += held[:-step] * np.float32(0.4 / step)
            lent[:-step] += held[step:] * np.float32(0.4 / step)
        pool = _best(lent + np.float32(0.7) * view.likely_cosines(vector), POOL)
        return pool[_best(lent[pool] + 0.7 * view.cosines(vector, pool), CANDIDATES)]

    def candidates(self) -> Candidates:
        """The turns worth a closer look and their features."""
        view, query, positions = self._view, self._query, self._positions
        exact, near, soft, named = self._words_held()
        asks = view.field("asks", positions) > 0
        by_asked = [n for n, name in view.speakers.items() if name in query.asked]
        spoke = np.isin(view.field("speaker", positions), by_asked)
        exact_here, holds = exact[:, self._near[0]] > 0, near[:, self._near[0]] > 0
        bits = np.left_shift(1, np.arange(len(holds), dtype=np.int64))
        most = holds.sum(axis=0) >= max(1, len(holds) - 1)
        of_self = spoke & (view.field("self", positions) > 0)
        tells = ~asks & (of_self | named) if query.asked else ~asks
        return Candidates(
            positions,
            {
                **self._word_features("exact", exact, ("bm25", "before")),
                **self._word_features("near", near, ("cover", "bm25", "window", "before")),
                **self._meaning_features(),
                **self._utterance_features(spoke, named, asks),
                **_with_relative("soft", {"here": _weighed(self._weights, soft)}),
                **self._date_features(),
            },
            matched=np.asarray((holds * bits[:, None]).sum(axis=0)),
            exact=tells & (exact_here.all(axis=0) if len(exact) else False),
            tells=tells,
            times=view.field("time", positions),
            rarity=self._rarity,
            about=spoke | named,
            repeats=most & asks & view.in_crowd,
        )

    def _words_held(self) -> tuple[Floats, Floats, Floats, Flags]:
        """How much each word of the query counts in turns, 0 to 1.

        Returns:
            Of the turns looked at (columns): whether they hold the word in any form; how near a
            word of theirs comes to it. Of the candidates: how near a telling word comes, however
            far, where a name is near only to itself; whether they hold a name of somebody the query
            names.
        """
        query, lexicon = self._query, self._lexicon
        said = self._view.words(self._looked_at)
        sizes = np.array([len(each) for each in said])
        numbers = np.concatenate(said)
        own = lexicon.numbers(self._asked_words)
        names = [_AS_NAME * (n in ALSO_NAMES) + n for n in sorted(query.name_words)]
        counts = np.bincount(numbers)
        used, where = np.flatnonzero(counts), (np.cumsum(counts > 0) - 1)[numbers]
        named = np.isin(used, lexicon.numbers(names))[None]
        asked = quantised(self._vectors[1:])
        # Whole numbers that float32 holds exactly: what stands beside a turn changes no result.
        cosines = np.einsum("qd,wd->qw", asked, lexicon.vectors[used].astype(np.float32))
        cosines /= norms_of(asked)[:, None] * lexicon.norms[used]
        exact = (lexicon.stems[used] == lexicon.stems[own][:, None]).astype(np.float32)
        soft = np.where(lexicon.tells[used], np.maximum(cosines, 0), 0)
        soft = np.where(np.array(query.proper, dtype=bool)[:, None], exact, soft)
        near = np.where(cosines >= _NEAR, (cosines - 0.3) / 0.7, 0)
        if len(used) > _SYNONYMS:
            near[near < np.partition(near, -_SYNONYMS, axis=1)[:, [-_SYNONYMS]]] = 0
        for row, word in enumerate(query.content):
            stems = [lexicon.stem_number(each) for each in members().get(stem(word), ())]
            near[row, np.isin(lexicon.stems[used], stems) & (near[row] < _KIND)] = _KIND
        near[[word in query.also_names for word in query.content]] = 0
        if query.language != DEFAULT:
            near[:] = soft[:] = exact
            for row, word in enumerate(query.content):
                for number, share in lexicon.forms_of(word, query.language):
                    at = used == number
                    near[row, at] = np.maximum(near[row, at], share)
                    soft[row, at] = near[row, at]
                    exact[row, at] = np.maximum(exact[row, at], share == 1)
        starts, filled = np.cumsum(sizes) - sizes, sizes > 0

        def by_turn(values: Any) -> Any:
            best = np.zeros((len(values), len(sizes)), dtype=values.dtype)
            if filled.any():
                best[:, filled] = np.maximum.reduceat(values[:, where], starts[filled], axis=1)
            return best

        exact, near = by_turn(exact), by_turn(np.maximum(near, exact))
        here = self._near[0]
        return exact, near, by_turn(soft)[:, here], by_turn(named)[0, here]

    def _word_features(self, name: str, held: Floats, wanted: Sequence[str]) -> dict[str, Floats]:
        around = held[:, self._near] * self._same_talk
        lengths = self._view.field("length", self._positions) / self._view.mean_length
        saturation = (_K1 + 1) / (1 + _K1 * (1 - _B + _B * lengths))
        cover = _weighed(self._weights, around[:, 0])
        raw = {
            "cover": cover,
            "bm25": cover * saturation,
            "window": _weighed(self._weights, (around * _LENT[:, None]).max(axis=1)),
            "before": _weighed(self._weights, (around * _BEFORE[:, None]).max(axis=1)),
        }
        return _with_relative(name, {key: raw[key] for key in wanted})

    def _meaning_features(self) -> dict[str, Floats]:
        cosines = self._view.centred_cosines(self._vectors[0], self._looked_at)
        around = cosines[self._near] * self._same_talk
        return _with_relative("meaning", {"here": around[0], "window": _weighed(_MEANT, around)})

    def _utterance_features(self, spoke: Flags, named: Flags, asks: Flags) -> dict[str, Any]:
        view, query, positions = self._view, self._query, self._positions
        one = len(query.asked) == 1
        doer = [n for n, name in view.speakers.items() if name in query.asked[:1]]
        first = np.isin(view.field("speaker", positions), doer) & (len(query.asked) > 1)
        before = view.field("asks", np.maximum(positions - 1, 0)) * self._same_talk[1]
        is_self, is_name = (view.field(name, positions) / 3 for name in ("self", "name"))
        tells_time = view.field("tells_time", positions)
        return {
            "spoke": spoke & one,
            "spoke_no_question": spoke & one & ~asks,
            "spoke_as_first": first,
            "spoke_as_doer": first & (not query.together),
            "named": named,
            "named_by_other": named & ~spoke,
            "is_self": is_self,
            "is_name": is_name,
            "asks": asks,
            "wants_time": tells_time * ("time" in query.wants),
            "wants_name": is_name * ("name" in query.wants),
            "opens": view.begins[positions],
            "answers": before,
            "self_of_asked": spoke * one * is_self,
            "about_asked": ((spoke & (is_self > 0)) | named) & one,
            "self_of_other": is_self * (~spoke & one),
        }

    def _date_features(self) -> dict[str, Floats]:
        """Whether a turn was said in a month the query names, and within three days of a day."""
        query, n = self._query, len(self._positions)
        month, day = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        if query.months:
            times = np.clip(self._view.field("time", self._positions), *_CALENDAR)
            days = (times // 86_400).astype("datetime64[D]")
            months = days.astype("datetime64[M]").astype(np.int64)
            years = months // 12 + 1970
            right_year = np.isin(years, query.years) | (not query.years)
            month = np.isin(months % 12 + 1, query.months) & right_year
            for year in np.unique(years).tolist():
                for wanted in query.dates(year):
                    day |= np.abs((days - np.datetime64(wanted)).astype(np.int64)) <= 3
        return {"month": month.astype(np.float32), "day": day.astype(np.float32)}


def _best(values: Floats, count: int) -> Ints:
    """Ascending places of the highest values."""
    count = min(count, len(values))
    return np.sort(np.argpartition(-values, count - 1)[:count])


def _weighed(weights: Floats, rows: Floats) -> Floats:
    """Weighted sum of rows. Not a BLAS product, whose rounding depends on the rows' length."""
    return np.asarray((weights[:, None] * rows).sum(axis=0))


def _with_relative(name: str, raw: Mapping[str, Floats]) -> dict[str, Floats]:
    """Each feature as it is, and relative to the best candidate of the query."""
    features = {}
    for key, values in raw.items():
        peak = float(np.max(values))
        features[f"{name}_{key}"] = values
        features[f"{name}_{key}_rel"] = values / (peak if peak > 1e-6 else np.inf)
    return features


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
def default_model(crowd: bool = False) -> LinearModel:
    """The shipped model for talk of few, or for a crowd."""
    data = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    data = data["crowd"] if crowd else data
    return LinearModel(data["weights"], data["bias"])


def ranked(
    view: View, text: str, lexicon: Lexicon, model: LinearModel | None = None
) -> list[tuple[int, float, bool]]:
    """What answers a query, best first: numbers of turns, scores of 0 to 1, whether it matches.

    Nothing if the query has no word to look for.
    """
    query = parsed_query(text, view.speakers.values())
    if not view.size or not (query.content or query.asked):
        return []
    candidates = Reader(view, query, lexicon).candidates()
    scores = (model or default_model(view.in_crowd)).scores(candidates)
    order = np.argsort(-scores, kind="stable")
    alike = None
    if view.in_crowd:
        alike = view.likeness(candidates.positions[order[best_places(order, candidates)]])
    best = latest_first(order, scores, candidates, query, alike)
    # A turn moved to a better place gets the score of that place, so scores never rise.
    chances = 1 / (1 + np.exp(-np.clip(scores[order], -30, 30)))
    numbers = view.numbers(candidates.positions[best]).tolist()
    return list(zip(numbers, chances.tolist(), candidates.matches[best].tolist(), strict=True))


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
    # The query's words as bits: those that are names, and all others.
    names = sum(1 << n for n, proper in enumerate(query.proper) if proper)
    telling = (1 << len(query.content)) - 1 - names
    held = [int(candidates.matched[at]) for at in best]
    needed = max(1, len(query.content) - 1)
    # Of those who are merely named, any two things told are alike.
    if not (query.asks_now if alike is None else query.may_ask_now and telling):
        return order

    def counts(place: int) -> bool:
        words, tells = held[place], bool(candidates.tells[best[place]])
        if alike is not None:
            return tells and not names & ~words
        return tells and words.bit_count() >= needed and bool(words & telling)

    def says_the_same(first: int, place: int) -> bool:
        behind = scores[best[first]] - scores[best[place]]
        if alike is None:
            return held[first] == held[place] and bool(behind <= MARGIN)
        said = held[first] & telling
        common = _share(held[place] & said, said, candidates.rarity) + alike[first, place]
        return bool(common >= IN_COMMON and behind <= CROWD_MARGIN)

    groups: list[list[int]] = []
    for place in filter(counts, range(len(best))):
        group = next((group for group in groups if says_the_same(group[0], place)), None)
        if group is None:
            groups.append([place])
        else:
            group.append(place)
    found = order.copy()
    for group in groups:
        found[looked_at[group]] = _newest_first(order[looked_at[group]], candidates.times)
    return found


def best_places(order: Ints, candidates: Candidates) -> Ints:
    """Places, at most `LOOKED_AT`, of the best turns that are not the query asked before."""
    return np.flatnonzero(~candidates.repeats[order])[:LOOKED_AT]


def _share(part: int, whole: int, rarity: Floats) -> float:
    """The share, by rarity, that some words have of others; both as bits."""
    bits = np.arange(len(rarity))
    total = float(rarity[(whole >> bits & 1) > 0].sum())
    return float(rarity[(part >> bits & 1) > 0].sum()) / total if total else 0.0


def _newest_first(members: Ints, times: NDArray[np.float64]) -> Ints:
    """Members by talk, newest first; within a talk they keep their order."""
    moments = times[members]
    rank = np.argsort(moments, kind="stable")
    talks = np.zeros(len(members), dtype=np.int64)
    talks[rank] = np.cumsum(np.diff(moments[rank], prepend=moments[rank[0]]) > SESSION_GAP_S)
    return members[np.argsort(-talks, kind="stable")]
