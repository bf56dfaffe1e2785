"""A scope in memory: arrays of its turns, its vocabulary, and what one audience sees of it.

Built lazily from the file and updated as turns are added. Positions in a `ScopeView` are in order
of adding, in `VisibleTurns` in order of conversation. Turns hidden from the audience are missing
there: they are no neighbours and enter no statistic.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evennia_ai.history.audience import visible
from evennia_ai.recall.embedding import Embedder
from evennia_ai.recall.query import Speakers
from evennia_ai.recall.store import Store
from evennia_ai.recall.vectors import (
    TRAITS,
    ExactVectors,
    Floats,
    Growing,
    Ints,
    norms_of,
    quantised,
    unpacked_traits,
    unpacked_vectors,
)
from evennia_ai.recall.vocabulary import Names, TurnWords, Vocabulary

# A pause that ends a talk whose turns carry no session.
SESSION_GAP_S = 1_800.0
# The mean of this many turns stands for the mean of all.
_CENTRE_TURNS = 2_000
# Least mean centred cosine of successive turns in coherent talk, and how many pairs are compared.
# Talk with fewer pairs counts as coherent.
_COHERENT = 0.07
_FEWEST_PAIRS = 100
_MOST_PAIRS = 500
# How many audiences of one scope keep their arrays.
_KEPT_AUDIENCES = 8


class ScopeView:
    """All turns of a scope (by its number in the store) in memory; `vocabulary` is the file's."""

    def __init__(self, store: Store, scope: int, embedder: Embedder, vocabulary: Vocabulary):
        self._store = store
        self._scope = scope
        self.vocabulary = vocabulary
        self.speakers, self._sessions, self.audiences = Names(), Names(), Names()
        self._kinds = Names()
        self.rowids = Growing(np.int64)
        self.times = Growing(np.float64)
        self.speaker_numbers = Growing(np.int32)
        self.session_numbers = Growing(np.int32)
        self.audience_numbers = Growing(np.int32)
        self.kind_numbers = Growing(np.uint8)
        self.traits = Growing(np.float32, len(TRAITS))
        self.lengths = Growing(np.float32)
        self.vectors = ExactVectors(embedder.dims)
        # Removed turns keep their places, that the others may keep theirs.
        self._held = Growing(np.bool_)
        self._turn_words = TurnWords(vocabulary)
        self._postings: dict[tuple[str, bool], Ints] = {}
        self._known_to: dict[tuple[str, bool], int] = {}
        self._visible: OrderedDict[str | None, VisibleTurns] = OrderedDict()
        self.refresh()

    def refresh(self) -> None:
        """Read the turns added to the file since the last time."""
        rows = list(self._store.scope_rows(self._scope, self._last_rowid()))
        if not rows:
            return
        self._visible.clear()
        self.rowids.extend([row[0] for row in rows])
        self.speaker_numbers.extend([self.speakers.number(row[2]) for row in rows])
        self.times.extend([row[5] for row in rows])
        self.session_numbers.extend(
            [-1 if row[6] is None else self._sessions.number(row[6]) for row in rows]
        )
        self.audience_numbers.extend([self.audiences.number(row[7]) for row in rows])
        self.kind_numbers.extend([self._kinds.number(row[8]) for row in rows])
        traits, lengths = unpacked_traits(np.array([row[9] for row in rows], dtype=np.int64))
        self.traits.extend(traits)
        self.lengths.extend(lengths)
        self.vectors.extend(unpacked_vectors([row[10] for row in rows]))
        self._held.extend([True] * len(rows))

    def remove(self, rowids: Sequence[int]) -> bool:
        """Take turns out; returns whether so few are left that the scope should be read again."""
        if rowids:
            self._visible.clear()
            self._held.values[np.isin(self.rowids.values, rowids)] = False
        return bool(2 * np.count_nonzero(self._held.values) < len(self._held.values))

    def nearness(self, positions: Ints, vectors: Floats) -> Floats:
        """As `TurnWords.nearness`; the first call reads all turns' words into memory."""
        self._turn_words.extend(self._texts(len(self._turn_words)))
        return self._turn_words.nearness(positions, vectors)

    def _texts(self, start: int) -> Iterator[str]:
        """Texts of the turns from `start` on, in order of adding; removed ones are empty."""
        missing = self.rowids.values[start:].tolist()
        if not missing:
            return iter(())
        rows = self._store.scope_rows(self._scope, missing[0] - 1)
        texts = {row[0]: row[3] for row in rows}
        return (texts.get(rowid, "") for rowid in missing)

    def _last_rowid(self) -> int:
        return int(self.rowids.values[-1]) if len(self.rowids.values) else 0

    def seen_by(self, viewer: str | None) -> "VisibleTurns":
        """What one audience sees, or everything for None."""
        kept = self._visible.get(viewer)
        if kept is None:
            shown = [viewer is None or visible(each, viewer) for each in self.audiences.all]
            may_see = np.array(shown, bool)[self.audience_numbers.values]
            allowed = np.flatnonzero(self._held.values & may_see)
            kept = self._visible[viewer] = VisibleTurns(self, allowed)
        self._visible.move_to_end(viewer)
        if len(self._visible) > _KEPT_AUDIENCES:
            self._visible.popitem(last=False)
        return kept

    def positions_of_word(self, word: str, as_name: bool = False) -> Ints:
        """Ascending positions of the turns that hold a word; `as_name`: as somebody's name."""
        last, key = self._last_rowid(), (word, as_name)
        known_to = self._known_to.get(key, 0)
        if known_to < last:
            find = self._store.rowids_of_name if as_name else self._store.rowids_of_word
            rowids = find(self._scope, word, known_to)
            fresh = np.searchsorted(self.rowids.values, np.array(rowids, dtype=np.int64))
            before = self._postings.get(key)
            joined = fresh if before is None else np.concatenate([before, fresh])
            self._postings[key] = joined
            self._known_to[key] = last
        return self._postings[key]


class VisibleTurns:
    """The turns of a scope that one audience sees (at `allowed` positions), as they were said."""

    def __init__(self, view: ScopeView, allowed: Ints):
        kinds = view.kind_numbers.values[allowed]
        # By kind, then by time, then in order of adding: journal entries do not part a talk.
        order = np.argsort(view.times.values[allowed], kind="stable")
        order = order[np.argsort(kinds[order], kind="stable")]
        self.view = view
        self.base = allowed[order]
        self.size = len(self.base)
        self._is_all = np.array_equal(self.base, np.arange(len(view.rowids.values)))
        self._local = np.full(len(view.rowids.values), -1, dtype=np.int64)
        self._local[self.base] = np.arange(self.size)
        self._postings: dict[tuple[str, bool], Ints] = {}
        self.speaker_numbers = view.speaker_numbers.values[self.base]
        self.times = view.times.values[self.base]
        self.lengths = view.lengths.values[self.base]
        self.mean_length = float(self.lengths.mean()) if self.size else 1.0
        self.sessions = self._session_numbers(kinds[order])
        self.session_count = int(self.sessions[-1]) + 1 if self.size else 0
        self.session_starts = np.flatnonzero(np.diff(self.sessions, prepend=-1))
        self.places = np.arange(self.size) - self.session_starts[self.sessions]
        self.session_sizes = np.bincount(self.sessions, minlength=self.session_count)
        names = view.speakers.all
        self.speakers = Speakers(names[n] for n in np.unique(self.speaker_numbers).tolist())

    @cached_property
    def in_crowd(self) -> bool:
        """Whether neighbouring turns are hardly more alike than any two: many talk at once.

        In talk of two or three people on one subject after the other, centred cosines of successive
        turns are 0.15 and more on average.
        """
        together = np.flatnonzero(self.sessions[1:] == self.sessions[:-1])
        if len(together) < _FEWEST_PAIRS:
            return False
        first = together[np.linspace(0, len(together) - 1, _MOST_PAIRS).astype(np.int64)]
        _, size, towards = self._centre
        here, there = towards[first], towards[first + 1]
        plain = self.view.vectors.pairwise(self.base[first], self.base[first + 1])
        lengths = (1 - 2 * here + size) * (1 - 2 * there + size)
        cosines = (plain - here - there + size) / np.sqrt(np.maximum(lengths, 1e-12))
        return float(cosines.mean()) < _COHERENT

    def _session_numbers(self, kinds: NDArray[np.uint8]) -> Ints:
        """Consecutive numbers of talks; a turn that is no message is a talk of its own."""
        named = self.view.session_numbers.values[self.base]
        same_name = (named[1:] == named[:-1]) & (named[1:] >= 0)
        unnamed = (named[1:] < 0) & (named[:-1] < 0)
        close = unnamed & (np.diff(self.times) <= SESSION_GAP_S)
        goes_on = (same_name | close) & (kinds[1:] == kinds[:-1])
        first = np.zeros(min(1, self.size), dtype=bool)
        return np.cumsum(np.concatenate([first, ~goes_on]))

    def centred(self, vectors: Floats, cosines: Floats) -> Floats:
        """Cosines without the direction common to all turns.

        What everybody says all the time makes all turns alike (all-but-the-top, Mu and Viswanath,
        ICLR 2018). `cosines` are the exact ones of `similarities`, so hidden turns do not even
        influence the rounding.
        """
        centre, size, towards = self._centre
        asked = quantised(vectors)
        asked_towards = (asked * centre).sum(axis=1)[:, None] / norms_of(asked)[:, None]
        products = cosines - towards - asked_towards + size
        lengths = np.sqrt(np.maximum(1 - 2 * towards + size, 1e-6))
        asked_lengths = np.sqrt(np.maximum(1 - 2 * asked_towards + size, 1e-6))
        return np.asarray(products / lengths / asked_lengths, dtype=np.float32)

    def likeness(self, positions: Ints) -> Floats:
        """Centred cosines of a few turns with one another, shape (n, n)."""
        _, size, towards = self._centre
        near = towards[positions]
        lengths = np.sqrt(np.maximum(1 - 2 * near + size, 1e-6))
        products = self.view.vectors.between(self.base[positions]) - near - near[:, None] + size
        return np.asarray(products / lengths / lengths[:, None], dtype=np.float32)

    @cached_property
    def _centre(self) -> tuple[Floats, float, Floats]:
        """The mean vector, its squared length, its product with each turn's unit vector."""
        mean = self.view.vectors.mean(self.base[:_CENTRE_TURNS])
        # As stored vectors are: whole numbers, with which products are exact.
        whole = quantised(mean[None])
        scale = float(np.abs(mean).max()) / 127
        length = float(norms_of(whole)[0]) * scale
        towards = self.similarities(whole)[0] * np.float32(length)
        return whole[0] * np.float32(scale), length * length, towards

    def positions_of_word(self, word: str, as_name: bool = False) -> Ints:
        """Positions here of the turns that hold a word, as for `ScopeView`."""
        key = (word, as_name)
        known = self._postings.get(key)
        if known is None:
            known = self.view.positions_of_word(word, as_name)
            if not self._is_all:
                local = self._local[known]
                known = local[local >= 0]
            self._postings[key] = known
        return known

    def similarities(self, vectors: Floats) -> Floats:
        """Cosine of each given vector (rows) with each turn here (columns)."""
        found = self.view.vectors.cosines(vectors)
        return found if self._is_all else np.asarray(found[:, self.base])

    def nearness(self, positions: Ints, vectors: Floats) -> Floats:
        """How near the nearest word of some turns comes to each vector, shape (vectors, turns)."""
        return self.view.nearness(self.base[positions], vectors)

    def traits(self, positions: Ints) -> Floats:
        """Traits of turns, a row each, columns as `TRAITS`."""
        return np.asarray(self.view.traits.values[self.base[positions]])
