"""The features of each candidate turn, by which it is ranked.

Each is scale-free (a share, a cosine, a flag), so that weights learned on talks of hundreds of
turns hold for a hundred thousand.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evennia_ai.language.names import ALSO_NAMES
from evennia_ai.recall.embedding import Embedder
from evennia_ai.recall.query import ParsedQuery
from evennia_ai.recall.vectors import TRAITS, Flags, Floats, Ints
from evennia_ai.recall.view import VisibleTurns
from evennia_ai.recall.wordrows import WordRows, word_rows

# Up to `WHOLE` turns, all of a scope are candidates; of a larger one, the best `CANDIDATES`.
WHOLE = 700
CANDIDATES = 400
# In scopes larger than `EXACT` turns, cosines are estimated first, and computed for so many of the
# turns that then look best.
EXACT, POOL = 20_000, 4_000
# To find the best of very many values: one of so many is looked at first, if that makes enough.
_SAMPLED, _FEWEST_SAMPLED = 64, 100
# How much of a word's weight its neighbours lend, by distance in turns.
_LENT = {0: 1.0, -1: 0.8, 1: 0.8, -2: 0.55, 2: 0.55, -3: 0.3, 3: 0.3}
_OFFSETS = tuple(_LENT)
_LENT_ROWS = np.array(list(_LENT.values()), dtype=np.float32)[:, None]
# A question lends its words to the answer: the turn itself, the one before, the one before that.
_BEFORE = [_OFFSETS.index(offset) for offset in (0, -1, -2)]
_BEFORE_ROWS = np.array([1.0, 0.9, 0.7], dtype=np.float32)[:, None]
# Beyond the years 1 to 9999 no calendar is asked about.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_WORD_ROWS = ("exact", "near", "kind")
# BM25's usual k1 = 1.2; b = 0.6, as turns differ in length less than documents do.
_K1, _B = 1.2, 0.6
# The query's vector and that of its words weighed by rarity, plain and centred.
_VECTORS = ("meaning", "gist", "meaning_centred", "gist_centred")


@dataclass(frozen=True, slots=True)
class Candidates:
    """Turns looked at and what is known of them; all arrays of shape (n,) but `rarity`.

    Args:
        positions: Their places in the `VisibleTurns`.
        matched: Which words of the query each holds: bit n for the nth.
        tells: Whether each tells, rather than asks, of somebody the query names, or of anything
            if it names nobody who speaks here.
        times: When each was said, in seconds.
        rarity: How rare each of the query's words is, shape (words,).
        about: Whether each is by somebody the query names or holds such a name.
        repeats: In a crowd, whether each asks with at most one of the query's words missing.
    """

    positions: Ints
    features: dict[str, Floats]
    matched: Ints
    tells: Flags
    times: NDArray[np.float64]
    rarity: Floats
    about: Flags
    repeats: Flags

    @property
    def matches(self) -> Flags:
        """Whether each holds a word of the query, of any form or kind, or somebody it names."""
        return np.asarray((self.matched != 0) | self.about)

    def matrix(self, names: tuple[str, ...]) -> Floats:
        """The named features as rows, shape (len(names), n)."""
        return np.array([self.features[name] for name in names], dtype=np.float32)


class Reader:
    """Computes the candidates of one query among the turns the asker may see."""

    def __init__(self, turns: VisibleTurns, query: ParsedQuery, embedder: Embedder):
        self.turns = turns
        self.query = query
        # One call for all: it costs more than what is embedded.
        vectors = np.asarray(embedder.embed([query.text, *query.content]), dtype=np.float32)
        whole, words = vectors[0], vectors[1:]
        self._words = words
        rows = word_rows(turns, query.content, words, query.also_names)
        self._rows = dict(zip(_WORD_ROWS, rows, strict=True))
        found = self._rows["exact"].counts()
        self._rarity = np.log1p((turns.size - found + 0.5) / (found + 0.5))
        gist = _weighed(self._rarity, words)
        both = np.stack([whole, gist])
        known = np.arange(turns.size if turns.size <= EXACT else 0)
        cosines = np.concatenate(turns.cosines(both, known))
        self._positions = self._worth_a_look(both, cosines)
        # Turns in the same talks, with those near in order, which may belong to another.
        wanted = self._positions + np.array(_OFFSETS)[:, None]
        self._places = np.clip(wanted, 0, max(0, turns.size - 1))
        self._looked_at = turns.of_parts(self._places.ravel())
        # Of each word and each of these turns how much it counts; where `_places` are among them.
        self._tables = {name: each.at(self._looked_at) for name, each in self._rows.items()}
        self._near = self._looked_at.searchsorted(self._places)
        self._cosines = (
            cosines[:, self._looked_at]
            if len(known)
            else np.concatenate(turns.cosines(both, self._looked_at))
        )
        # Around each candidate, shape (len(_OFFSETS), candidates): positions, and whether they
        # belong to the same talk.
        sessions = turns.sessions
        same_session = sessions[self._places] == sessions[self._positions]
        self._same_talk = (self._places == wanted) & same_session
        # Numbers of the speakers the query names, and whether each candidate is by one of them.
        self._asked = turns.numbers_of(query.asked)
        parts = turns.parts[self._looked_at]
        self._part_starts = np.flatnonzero(np.diff(parts, prepend=-1))
        # The part of each candidate's talk, by its place in `_part_starts`.
        self._part_of = parts[self._part_starts].searchsorted(turns.parts[self._positions])
        self._spoke: Flags = np.isin(turns.speaker_numbers(self._positions), self._asked)

    def candidates(self) -> Candidates:
        """The turns worth a closer look and their features."""
        positions = self._positions
        features: dict[str, Floats] = {}
        for name, rows in self._rows.items():
            features.update(self._word_features(name, rows))
        for name, cosines in zip(_VECTORS, self._cosines, strict=True):
            features.update(self._vector_features(name, cosines))
        features.update(self._speaker_features())
        features.update(self._utterance_features())
        features.update(self._date_features())
        if self.turns.in_crowd:
            features.update(self._subject_features(features))
            features.update(self._soft_features(features))
        holds = self._tables["kind"][:, self._near[0]] > 0
        bits = np.left_shift(1, np.arange(len(holds), dtype=np.int64))
        most = holds.sum(axis=0) >= max(1, len(holds) - 1)
        states, named = features["is_ends_asking"] == 0, features["named"] > 0
        of_self = features["spoke"] * features["is_self"] > 0
        return Candidates(
            positions,
            features,
            matched=np.asarray((holds * bits[:, None]).sum(axis=0)),
            tells=np.asarray(states & (of_self | named) if self.query.asked else states),
            times=self.turns.times(positions),
            rarity=self._rarity,
            about=self._spoke | named,
            repeats=np.asarray(most & ~states & self.turns.in_crowd),
        )

    def _worth_a_look(self, vectors: Floats, cosines: Floats) -> Ints:
        """Ascending positions of the turns that look best; `cosines` of all turns or of none."""
        size = self.turns.size
        if size <= WHOLE:
            return np.arange(size)
        total = float(self._rarity.sum()) or 1.0
        lent = self._rows["near"].totals(self._rarity / total)
        base = lent.copy()
        for step in (1, 2):
            lent[step:] += base[:-step] * np.float32(0.4 / step)
            lent[:-step] += base[step:] * np.float32(0.4 / step)
        if size <= EXACT:
            rough = lent + 0.7 * cosines[:2].max(axis=0)
            return _best(rough, CANDIDATES)
        pool = _best(lent + np.float32(0.7) * self.turns.likely_nearest(vectors), POOL)
        rough = lent[pool] + 0.7 * self.turns.similarities(vectors, pool).max(axis=0)
        return np.asarray(pool[_best(rough, CANDIDATES)])

    def _word_features(self, name: str, rows: WordRows) -> dict[str, Floats]:
        rarity = self._rarity / (float(self._rarity.sum()) or 1.0)
        table = self._tables[name]
        around = table[:, self._near] * self._same_talk
        weighed = _weighed(rarity, around)
        here = around[:, 0]
        window = (around * _LENT_ROWS).max(axis=1)
        before = (around[:, _BEFORE] * _BEFORE_ROWS).max(axis=1)
        cover = weighed[0]
        lengths = self.turns.lengths(self._positions) / (self.turns.mean_length or 1.0)
        saturation = (_K1 + 1) / (1 + _K1 * (1 - _B + _B * lengths))
        count, at = len(self.turns.part_starts), self._part_of
        sums = np.add.reduceat(table, self._part_starts, axis=1)
        held = sums > 0
        rare = np.log1p(count / (0.5 + rows.part_counts(self.turns.parts)))
        raw = {
            "bm25": cover * saturation,
            "cover": cover,
            "window": _weighed(rarity, window),
            "before": _weighed(rarity, before),
            "best": (rarity[:, None] * here).max(axis=0, initial=0),
            "share": (here > 0.5).sum(axis=0) / max(1, len(rows)),
            **{f"{step:+d}": weighed[_OFFSETS.index(step)] for step in (-2, -1, 1, 2)},
            "session": _weighed(rare, sums / (sums + _K1))[at] / (float(rare.sum()) or 1.0),
            "session_cover": _weighed(rarity, held.astype(np.float32))[at],
        }
        return _with_relative(name, raw)

    def _vector_features(self, name: str, cosines: Floats) -> dict[str, Floats]:
        around = cosines[self._near] * self._same_talk
        raw = {f"{offset:+d}": around[_OFFSETS.index(offset)] for offset in (-2, -1, 1, 2)}
        raw["here"] = around[0]
        raw["window"] = raw["here"] + 0.5 * (raw["-1"] + raw["+1"]) + 0.25 * (raw["-2"] + raw["+2"])
        starts, at = self._part_starts, self._part_of
        sizes = np.diff(starts, append=len(cosines))
        raw["session"] = (np.add.reduceat(cosines, starts) / sizes)[at]
        raw["session_peak"] = np.maximum.reduceat(cosines, starts)[at]
        return _with_relative(name, raw)

    def _speaker_features(self) -> dict[str, Floats]:
        positions, spoke = self._positions, self._spoke.astype(np.float32)
        asked = self._asked
        first = self.turns.speaker_numbers(positions) == (asked[0] if asked else -1)
        one, several = float(len(asked) == 1), float(len(asked) > 1)
        # Which turns hold the name of somebody the query names.
        asked_as = sorted(self.query.name_words & ALSO_NAMES)
        holding = self.turns.positions_of(sorted(self.query.name_words - ALSO_NAMES))
        holding += self.turns.positions_of(asked_as, as_names=True)
        naming = [(at, 1.0) for at in holding]
        named = WordRows(naming, self.turns.scratch).at(positions).max(axis=0, initial=0)
        asks = self.turns.traits(positions)[:, TRAITS.index("ends_asking")]
        return {
            "spoke": spoke * one,
            "spoke_no_question": spoke * one * (1 - asks),
            "spoke_as_first": first * several,
            "spoke_as_doer": first * several * (not self.query.together),
            "named": named,
            "named_by_other": named * (1 - spoke),
        }

    def _subject_features(self, features: dict[str, Floats]) -> dict[str, Floats]:
        """Whether a turn is about those the query names: speakers, and any other name."""
        proper = self._tables["exact"][np.array(self.query.proper, dtype=bool)]
        words = max(1, len(proper))
        around = proper[:, self._near] * self._same_talk
        holds = around[:, 0].sum(axis=0) / words
        of_self = features["spoke"] * features["is_self"]
        asked = float(len(self.query.asked) == 1)
        return {
            "self_of_asked": of_self,
            "about_asked": np.maximum(of_self > 0, features["named"]) * asked,
            "self_of_other": features["is_self"] * (1 - features["spoke"]) * asked,
            "proper": holds,
            "proper_window": (around * _LENT_ROWS).max(axis=1).sum(axis=0) / words,
            "self_without_proper": features["is_self"] * float(len(proper) > 0) * (1 - holds),
        }

    def _soft_features(self, features: dict[str, Floats]) -> dict[str, Floats]:
        """How near a turn's words come to the query's; a name is near only to itself."""
        proper = np.array(self.query.proper, dtype=bool)
        near = self.turns.nearness(self._positions, self._words)
        near[proper] = self._tables["exact"][proper][:, self._near[0]]
        whole = self._rarity / (float(self._rarity.sum()) or 1.0)
        topic = self._rarity * ~proper
        topic /= float(topic.sum()) or 1.0
        raw = {
            "here": _weighed(whole, near),
            "topic": _weighed(topic, near),
            "topic_square": _weighed(topic, near * near),
            "topic_best": (near * ~proper[:, None]).max(axis=0, initial=0),
        }
        found = _with_relative("soft", raw)
        about = np.maximum(features["about_asked"], features["proper"])
        found["soft_topic_about"] = found["soft_topic"] * about
        found["soft_topic_square_about"] = found["soft_topic_square_rel"] * about
        return found

    def _utterance_features(self) -> dict[str, Floats]:
        positions = self._positions
        traits = self.turns.traits(positions)
        found = {f"is_{name}": traits[:, number] for number, name in enumerate(TRAITS)}
        for wanted in ("time", "number", "name"):
            found[f"wants_{wanted}"] = found[f"is_{wanted}"] * (wanted in self.query.wants)
        found["wants_place"] = found["is_name"] * ("place" in self.query.wants)
        places = self.turns.places(positions)
        found["opens"] = (places == 0).astype(np.float32)
        found["opening"] = (places <= 2).astype(np.float32)
        found["opening_when"] = found["opening"] * ("time" in self.query.wants)
        found["place"] = np.minimum(places, 10) / 10
        found["length"] = np.log1p(self.turns.lengths(positions))
        previous = _OFFSETS.index(-1)
        before = self.turns.traits(self._places[previous])[:, TRAITS.index("ends_asking")]
        found["answers"] = before * self._same_talk[previous]
        return found

    def _date_features(self) -> dict[str, Floats]:
        """How the days of turns match the dates the query names."""
        names = ("month", "month_after", "day", "fortnight")
        found = {name: np.zeros(len(self._positions), dtype=np.float32) for name in names}
        if not self.query.months:
            return found
        numbers = np.floor(self.turns.times(self._positions) / 86_400)
        known = np.flatnonzero((numbers >= _FIRST_DAY) & (numbers <= _LAST_DAY))
        days = numbers[known].astype("datetime64[D]")
        month = days.astype("datetime64[M]").astype(np.int64) % 12 + 1
        year = days.astype("datetime64[Y]").astype(np.int64) + 1970
        right_year = np.isin(year, self.query.years) | (not self.query.years)
        away = np.full(len(days), 999)
        for each in np.unique(year).tolist():
            at = year == each
            for wanted in self.query.dates(each):
                off = np.abs((days[at] - np.datetime64(wanted)).astype(np.int64))
                away[at] = np.minimum(away[at], off)
        found["month"][known] = np.isin(month, self.query.months) & right_year
        found["month_after"][known] = np.isin((month - 2) % 12 + 1, self.query.months) & right_year
        found["day"][known] = away <= 3
        found["fortnight"][known] = away <= 14
        return found


def _best(values: Floats, count: int) -> Ints:
    """Ascending places of the highest values."""
    some = values[::_SAMPLED]
    likely = 2 * count // _SAMPLED
    if likely > _FEWEST_SAMPLED:
        # The lowest of the highest in a sample shows which values are surely no candidates.
        places = np.flatnonzero(values > np.partition(some, -likely)[-likely])
        if len(places) >= count:
            return np.sort(places[np.argpartition(-values[places], count - 1)[:count]])
    return np.sort(np.argpartition(-values, count - 1)[:count])


def _weighed(weights: Floats, rows: Floats) -> Floats:
    """Weighted sum of rows. Not a BLAS product, whose rounding depends on the rows' length."""
    return np.asarray((weights.reshape(-1, *[1] * (rows.ndim - 1)) * rows).sum(axis=0))


def _with_relative(name: str, raw: dict[str, Floats]) -> dict[str, Floats]:
    """Each feature as it is, and relative to the best candidate of the query."""
    rows = np.array(list(raw.values()), dtype=np.float32)
    peaks = rows.max(axis=1, initial=0)
    relative = rows / np.where(peaks > 1e-6, peaks, np.inf)[:, None]
    found = {}
    for key, values, shares in zip(raw, rows, relative, strict=True):
        found[f"{name}_{key}"] = values
        found[f"{name}_{key}_rel"] = shares
    return found
