"""A scope in arrays: its turns, their words, and what one audience sees of them.

Positions in a `ScopeView` are in order of adding, in `VisibleTurns` in order of conversation. Turns
hidden from the audience are missing there: they are no neighbours and enter no statistic.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evennia_ai.history.audience import visible
from evennia_ai.language.names import names_among
from evennia_ai.language.words import STOP_WORDS, words
from evennia_ai.recall.embedding import Embedder
from evennia_ai.recall.growing import Growing
from evennia_ai.recall.query import Speakers
from evennia_ai.recall.store import Row
from evennia_ai.recall.turnwords import TurnWords
from evennia_ai.recall.vectors import (
    norms_of,
    ExactVectors,
    Floats,
    Ints,
    likely_cosines,
    quantised,
    signs_of,
    unpacked_traits,
    unpacked_vectors,
)
from evennia_ai.recall.vocabulary import Names, Vocabulary

# A pause that ends a talk whose turns carry no session.
SESSION_GAP_S = 1_800.0
# What is said of a whole talk is said of so many of its turns at most, of a longer one in parts.
LONGEST_PART = 128
# The mean of this many turns stands for the mean of all.
_CENTRE_TURNS = 2_000
# Least mean centred cosine of successive turns in coherent talk, and how many pairs are compared.
# Talk with fewer pairs counts as coherent.
_COHERENT = 0.07
_FEWEST_PAIRS = 100
_MOST_PAIRS = 500
# How many turns may come or go before what an audience sees is sorted again as a whole.
_FEW = 32
# Before a word that means somebody, as `will` may.
_AS_NAME = "@"
# What has names and is numbered for each scope.
WORD, SPEAKER, AUDIENCE, KIND = "word", "speaker", "audience", "kind"


class ScopeView:
    """All turns of a scope; `vocabulary` may be shared with others.

    Turns are at the positions of their places in the file, from 0 on; one that was removed is not
    `held`.
    """

    def __init__(self, embedder: Embedder, vocabulary: Vocabulary):
        self._embedder = embedder
        self.vocabulary = vocabulary
        self.names = {kind: Names() for kind in (WORD, SPEAKER, AUDIENCE, KIND)}
        self._names_written = dict.fromkeys(self.names, 1)
        self.folder: Path | None = None
        self.times = Growing(np.float64)
        self._sessions = Growing(np.int64)
        self._numbers = {kind: Growing(np.int32) for kind in (SPEAKER, AUDIENCE, KIND)}
        self._traits = Growing(np.int64)
        self._held = Growing(np.bool_)
        self.vectors = ExactVectors(embedder.dims)
        self._signs = [Growing(np.uint64) for _ in range(-(-embedder.dims // 64))]
        self._words = TurnWords()
        # By number in `names[WORD]`: the number in `vocabulary`, and whether it says something.
        self._in_vocabulary, self._telling = Growing(np.int64), Growing(np.bool_)
        self._visible: OrderedDict[str | None, VisibleTurns] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def _columns(self) -> Mapping[str, Growing]:
        """All arrays with a row a turn, and the words of turns, by the name of their file."""
        return {
            "times": self.times,
            "sessions": self._sessions,
            **self._numbers,
            "traits": self._traits,
            "held": self._held,
            "vectors": self.vectors.numbers,
            "norms": self.vectors.norms,
            **{f"signs-{number}": column for number, column in enumerate(self._signs)},
            "numbers": self._words.numbers,
            "ends": self._words.ends,
        }

    def write_to(self, folder: Path) -> None:
        """Write the arrays to the disk, and keep them there; `OSError` if it is full."""
        for name, column in self._columns.items():
            column.write_to(folder / name)
        self._words.use(folder, len(self))
        self.folder = folder

    def read_from(self, folder: Path, turns: int, names: Mapping[str, Mapping[int, str]]) -> None:
        """Take the first turns from a folder, and what is numbered by number.

        `OSError` or `ValueError` if it does not hold them all.
        """
        columns = dict(self._columns)
        numbers = columns.pop("numbers")
        for name, column in columns.items():
            column.read_from(folder / name, turns)
        numbers.read_from(folder / "numbers", int(self._words.ends.values[-1]))
        for kind, known in names.items():
            self.names[kind].restore(known)
            self._names_written[kind] = len(self.names[kind].all)
        self._words.use(folder, turns)
        self.folder = folder

    def unwritten_names(self) -> list[tuple[str, int, str | None]]:
        """Kind, number and name of what was not returned before."""
        found = []
        for kind, names in self.names.items():
            start = self._names_written[kind]
            found += [(kind, n, name) for n, name in enumerate(names.all[start:], start)]
            self._names_written[kind] = len(names.all)
        return found

    @property
    def memory(self) -> int:
        """Bytes in memory, roughly."""
        columns = sum(column.memory for column in self._columns.values()) + self._words.memory
        seen = sum(turns.memory for turns in self._visible.values())
        return columns + seen + 200 * len(self.names[WORD].all)

    def extend(self, rows: Sequence[Row], last: int) -> None:
        """Append rows by their places, ascending; `last` is the place of the last turn, from 1 on.

        Places without a row are turns that were removed.
        """
        known = len(self)
        if last <= known:
            return
        at = np.array([row[0] for row in rows], dtype=np.int64) - 1 - known
        fresh = {name: column.grow(last - known) for name, column in self._row_columns().items()}
        fresh["times"][at] = [row[5] for row in rows]
        fresh["sessions"][at] = [_session(row[6]) for row in rows]
        for kind, column in ((SPEAKER, 2), (AUDIENCE, 7), (KIND, 8)):
            fresh[kind][at] = [self.names[kind].number(row[column]) for row in rows]
        fresh["traits"][at] = [row[9] for row in rows]
        fresh["held"][at] = True
        whole = np.zeros((last - known, self._embedder.dims), dtype=np.int8)
        if rows:
            whole[at] = unpacked_vectors([row[10] for row in rows])
        self.vectors.extend(whole)
        for column, bits in zip(self._signs, signs_of(whole).T, strict=True):
            column.extend(bits)
        said: list[Sequence[int]] = [()] * (last - known)
        for place, row in zip(at.tolist(), rows, strict=True):
            said[place] = [self.names[WORD].number(word) for word in _words(row[3])]
        self._words.extend(said)
        self._show(known + at)

    def _row_columns(self) -> Mapping[str, Growing]:
        plain = {"times": self.times, "sessions": self._sessions, "traits": self._traits}
        return {**plain, **self._numbers, "held": self._held}

    def remove(self, positions: Ints) -> Mapping[str, list[int]]:
        """Take turns out; returns the numbers of what no other turn has any more, by kind."""
        positions = positions[positions < len(self)]
        gone = {WORD: self._words.remove(positions)}
        named = {kind: column.values[positions] for kind, column in self._numbers.items()}
        held = self._held.values
        held[positions] = False
        for kind, numbers in named.items():
            kept = self._numbers[kind].values
            gone[kind] = [n for n in set(numbers.tolist()) if not (held & (kept == n)).any()]
        for name, column in self._columns.items():
            if name not in ("numbers", "ends"):
                column.values[positions] = 0
        for kind, numbers in gone.items():
            self.names[kind].forget(numbers)
        for viewer in list(self._visible):
            self._visible[viewer] = self._visible[viewer].without(positions)
        return gone

    def unnamed(self) -> Mapping[str, list[int]]:
        """The numbers of what no turn has, by kind; they are forgotten."""
        held = {WORD: set(self._words.held())}
        for kind, column in self._numbers.items():
            held[kind] = set(np.unique(column.values[self._held.values]).tolist())
        gone = {kind: sorted(names.numbers() - held[kind]) for kind, names in self.names.items()}
        for kind, numbers in gone.items():
            self.names[kind].forget(numbers)
        return gone

    def seen_by(self, viewer: str | None) -> "VisibleTurns":
        """What one audience sees, or everything for None."""
        self._learn_words()
        if viewer not in self._visible:
            self._visible[viewer] = VisibleTurns.sorted(self, self._allowed(viewer))
        self._visible.move_to_end(viewer)
        return self._visible[viewer]

    def _shows(self, viewer: str | None) -> NDArray[np.bool_]:
        """By number of an audience, whether a viewer sees its turns."""
        known = self.names[AUDIENCE].all
        return np.array([viewer is None or visible(each or "", viewer) for each in known], bool)

    def _allowed(self, viewer: str | None) -> Ints:
        if not len(self):
            return np.zeros(0, dtype=np.int64)
        may_see = self._shows(viewer)[self._numbers[AUDIENCE].values]
        return np.flatnonzero(self._held.values & may_see)

    def _show(self, positions: Ints) -> None:
        """Let audiences see new turns."""
        for viewer, turns in list(self._visible.items()):
            if len(positions) > _FEW:
                del self._visible[viewer]
            else:
                may_see = self._shows(viewer)[self._numbers[AUDIENCE].values[positions]]
                self._visible[viewer] = turns.with_more(positions[may_see])

    def forget_oldest_view(self) -> bool:
        """Leave out the audience whose last search is longest ago; whether one was left out."""
        if self._visible:
            self._visible.popitem(last=False)
        return bool(self._visible)

    def order_key(self, position: int) -> tuple[int, float]:
        """By kind, then by time; so journal entries do not part a talk."""
        return int(self._numbers[KIND].values[position]), float(self.times.values[position])

    def in_order(self, positions: Ints) -> Ints:
        """Positions by `order_key`, then in order of adding."""
        order = np.argsort(self.times.values[positions], kind="stable")
        kinds = self._numbers[KIND].values[positions]
        return positions[order[np.argsort(kinds[order], kind="stable")]]

    def goes_on(self, before: Ints, positions: Ints) -> NDArray[np.bool_]:
        """Whether turns belong to the same talk as those before them.

        A turn that is no message is a talk of its own.
        """
        kinds, sessions = self._numbers[KIND].values, self._sessions.values
        one, other = sessions[before], sessions[positions]
        close = self.times.values[positions] - self.times.values[before] <= SESSION_GAP_S
        same = (one == other) & ((one != 0) | close)
        return np.asarray(same & (kinds[before] == kinds[positions]))

    def positions_of_word(self, word: str, as_name: bool = False) -> Ints:
        """Ascending positions of the turns that hold a word; `as_name`: as somebody's name."""
        number = self.names[WORD].known(_AS_NAME + word if as_name else word)
        return np.zeros(0, dtype=np.int64) if number is None else self._words.of(number)

    def nearness(self, positions: Ints, vectors: Floats) -> Floats:
        """How near the nearest word of some turns comes to each vector, at least 0.

        `wordrows` counts only a word's nearest others. In a crowd, where many lines are about the
        same people, the farther ones tell what a line is about. Words that say nothing do not
        count. Shape (vectors, turns).
        """
        numbers, sizes = self._words.at(positions)
        telling = self._telling.values[numbers]
        owners = np.repeat(np.arange(len(positions)), sizes)[telling]
        found = np.zeros((len(vectors), len(positions)), dtype=np.float32)
        if not found.size or not len(owners):
            return found
        used, where = np.unique(numbers[telling], return_inverse=True)
        cosines = self.vocabulary.cosines(vectors, self._in_vocabulary.values[used])[:, where]
        firsts = np.flatnonzero(np.diff(owners, prepend=-1))
        found[:, owners[firsts]] = np.maximum.reduceat(cosines, firsts, axis=1)
        return np.maximum(found, 0)

    def _learn_words(self) -> None:
        known = len(self._telling)
        fresh = [word or "" for word in self.names[WORD].all[known:]]
        plain = [word if word and not word.startswith(_AS_NAME) else "" for word in fresh]
        self._in_vocabulary.extend(self.vocabulary.numbers(plain))
        self._telling.extend([bool(word) and word not in STOP_WORDS for word in plain])

    def traits(self, positions: Ints) -> Floats:
        """Traits of turns, a row each, columns as `TRAITS`."""
        return unpacked_traits(self._traits.values[positions])[0]

    def lengths(self, positions: Ints) -> Floats:
        """How many words turns have."""
        return unpacked_traits(self._traits.values[positions])[1]

    def speaker_numbers(self, positions: Ints) -> NDArray[np.int32]:
        """Numbers of those who said some turns."""
        return np.asarray(self._numbers[SPEAKER].values[positions])

    def likely_cosines(self, vectors: Floats) -> Floats:
        """Estimated cosine of each turn with the nearest of some vectors, shape (turns,)."""
        columns = [column.values for column in self._signs]
        return likely_cosines(columns, vectors, self._embedder.dims)


class VisibleTurns:
    """The turns of a scope that one audience sees, as they were said.

    Attributes:
            base: Their positions in the `ScopeView`, shape (size,).
            sessions: Of which talk each is a part, consecutive numbers.
            parts: The same with talks of more than `LONGEST_PART` turns cut into parts.
    """

    def __init__(self, view: ScopeView, base: Ints, begins: NDArray[np.bool_]):
        self.view, self.base, self.size = view, base, len(base)
        self._begins = begins
        self.sessions = np.cumsum(begins, dtype=np.int32) - np.int32(1)
        self._starts = np.flatnonzero(begins)
        self.parts, self.part_starts = self._cut_parts()
        self.scratch = np.zeros(self.size, dtype=np.float32)
        self._local: NDArray[np.int32] | None = None
        if not np.array_equal(base, np.arange(len(view))):
            self._local = np.full(len(view), -1, dtype=np.int32)
            self._local[base] = np.arange(self.size, dtype=np.int32)

    @classmethod
    def sorted(cls, view: ScopeView, allowed: Ints) -> "VisibleTurns":
        """The turns at some positions."""
        base = view.in_order(allowed)
        return cls(view, base, _begins(view, base))

    def with_more(self, positions: Ints) -> "VisibleTurns":
        """The same with a few new turns."""
        if not len(positions):
            return self._again()
        base, begins = self.base, self._begins
        for position in positions.tolist():
            at = bisect_right(base, self.view.order_key(position), key=self.view.order_key)
            base = np.insert(base, at, position)
            begins = np.insert(begins, at, True)
            near = base[max(0, at - 1) : at + 2]
            begins[max(0, at - 1) + 1 : at + 2] = ~self.view.goes_on(near[:-1], near[1:])
            begins[0] = True
        return VisibleTurns(self.view, base, begins)

    def without(self, positions: Ints) -> "VisibleTurns":
        """The same without some turns."""
        kept = ~np.isin(self.base, positions)
        base = self.base[kept]
        return VisibleTurns(self.view, base, _begins(self.view, base))

    def _again(self) -> "VisibleTurns":
        return VisibleTurns(self.view, self.base, self._begins)

    def _cut_parts(self) -> tuple[NDArray[np.int32], Ints]:
        sizes = np.diff(self._starts, append=self.size)
        if not self.size or sizes.max() <= LONGEST_PART:
            return self.sessions, self._starts
        begins = self._begins | (self.places(np.arange(self.size)) % LONGEST_PART == 0)
        return np.cumsum(begins, dtype=np.int32) - np.int32(1), np.flatnonzero(begins)

    @property
    def memory(self) -> int:
        """Bytes of the arrays."""
        local = 0 if self._local is None else self._local.nbytes
        own = self.base.nbytes + self._begins.nbytes + self.sessions.nbytes + self._starts.nbytes
        return own + local + self.scratch.nbytes

    @cached_property
    def mean_length(self) -> float:
        """Mean number of words of a turn; 1 if there is none."""
        return float(self.view.lengths(self.base).mean(dtype=np.float64)) if self.size else 1.0

    @cached_property
    def speakers(self) -> Speakers:
        """Who speaks."""
        numbers = np.flatnonzero(np.bincount(self.view.speaker_numbers(self.base)))
        names = self.view.names[SPEAKER].all
        return Speakers(names[number] or "" for number in numbers.tolist())

    def numbers_of(self, speakers: Iterable[str]) -> list[int]:
        """The numbers of speakers; -1 for one that is unknown."""
        known = map(self.view.names[SPEAKER].known, speakers)
        return [-1 if number is None else number for number in known]

    def places(self, positions: Ints) -> Ints:
        """How many turns of the same talk come before each of some turns."""
        return np.asarray(positions - self._starts[self.sessions[positions]])

    def times(self, positions: Ints) -> NDArray[np.float64]:
        """When some turns were said, in seconds."""
        return np.asarray(self.view.times.values[self.base[positions]])

    def lengths(self, positions: Ints) -> Floats:
        """How many words some turns have."""
        return self.view.lengths(self.base[positions])

    def speaker_numbers(self, positions: Ints) -> NDArray[np.int32]:
        """Numbers of those who said some turns."""
        return self.view.speaker_numbers(self.base[positions])

    def of_parts(self, positions: Ints) -> Ints:
        """Ascending positions of all turns in the same parts of talks as some turns."""
        chosen = np.unique(self.parts[positions])
        starts = self.part_starts[chosen]
        sizes = np.append(self.part_starts, self.size)[chosen + 1] - starts
        firsts = np.cumsum(sizes) - sizes
        return np.asarray(np.arange(int(sizes.sum())) + np.repeat(starts - firsts, sizes))

    @cached_property
    def in_crowd(self) -> bool:
        """Whether neighbouring turns are hardly more alike than any two: many talk at once.

        In talk of two or three people on one subject after the other, centred cosines of successive
        turns are 0.15 and more on average.
        """
        together = np.flatnonzero(~self._begins[1:])
        if len(together) < _FEWEST_PAIRS:
            return False
        first = together[np.linspace(0, len(together) - 1, _MOST_PAIRS).astype(np.int64)]
        here, there = self._towards(first), self._towards(first + 1)
        size = self._centre[1]
        plain = self.view.vectors.pairwise(self.base[first], self.base[first + 1])
        lengths = (1 - 2 * here + size) * (1 - 2 * there + size)
        cosines = (plain - here - there + size) / np.sqrt(np.maximum(lengths, 1e-12))
        return float(cosines.mean()) < _COHERENT

    def cosines(self, vectors: Floats, positions: Ints) -> tuple[Floats, Floats]:
        """Cosine of each given vector (rows) with some turns (columns), and the same centred.

        Centred means without the direction common to all turns: what everybody says all the time
        makes all turns alike (all-but-the-top, Mu and Viswanath, ICLR 2018). The cosines are exact,
        so hidden turns do not even influence the rounding.
        """
        centre, size = self._centre
        plain = self.similarities(vectors, positions)
        towards = self._towards(positions)
        asked = quantised(vectors)
        asked_towards = (asked * centre).sum(axis=1)[:, None] / norms_of(asked)[:, None]
        products = plain - towards - asked_towards + size
        lengths = np.sqrt(np.maximum(1 - 2 * towards + size, 1e-6))
        asked_lengths = np.sqrt(np.maximum(1 - 2 * asked_towards + size, 1e-6))
        return plain, np.asarray(products / lengths / asked_lengths, dtype=np.float32)

    def likeness(self, positions: Ints) -> Floats:
        """Centred cosines of a few turns with one another, shape (n, n)."""
        size, near = self._centre[1], self._towards(positions)
        lengths = np.sqrt(np.maximum(1 - 2 * near + size, 1e-6))
        products = self.view.vectors.between(self.base[positions]) - near - near[:, None] + size
        return np.asarray(products / lengths / lengths[:, None], dtype=np.float32)

    @cached_property
    def _centre(self) -> tuple[Floats, float]:
        """The mean vector of whole numbers and its squared length."""
        mean = self.view.vectors.mean(self.base[:_CENTRE_TURNS])
        # As stored vectors are: whole numbers, with which products are exact.
        whole = quantised(mean[None])
        scale = float(np.abs(mean).max()) / 127
        length = float(norms_of(whole)[0]) * scale
        return whole[0] * np.float32(scale), length * length

    def _towards(self, positions: Ints) -> Floats:
        """The products of the mean vector with the unit vectors of some turns."""
        centre, size = self._centre
        return self.similarities(centre[None], positions)[0] * np.float32(np.sqrt(size))

    def positions_of_word(self, word: str, as_name: bool = False) -> Ints:
        """Positions here of the turns that hold a word, as for `ScopeView`."""
        known = self.view.positions_of_word(word, as_name)
        if self._local is None:
            return known
        local = self._local[known]
        return local[local >= 0].astype(np.int64)

    def similarities(self, vectors: Floats, positions: Ints) -> Floats:
        """Cosine of each given vector (rows) with some turns here (columns)."""
        return self.view.vectors.cosines(vectors, self.base[positions])

    def likely_nearest(self, vectors: Floats) -> Floats:
        """Estimated cosine of each turn with the nearest of some vectors, shape (size,)."""
        found = self.view.likely_cosines(vectors)
        return found if self._local is None else np.asarray(found[self.base])

    def nearness(self, positions: Ints, vectors: Floats) -> Floats:
        """As `ScopeView.nearness`."""
        return self.view.nearness(self.base[positions], vectors)

    def traits(self, positions: Ints) -> Floats:
        """Traits of turns, a row each, columns as `TRAITS`."""
        return self.view.traits(self.base[positions])


def _begins(view: ScopeView, base: Ints) -> NDArray[np.bool_]:
    """Which turns begin a talk."""
    first = np.ones(min(1, len(base)), dtype=bool)
    return np.concatenate([first, ~view.goes_on(base[:-1], base[1:])])


def _session(name: str | None) -> int:
    """A number for the name of a session; 0 for none."""
    if name is None:
        return 0
    digest = blake2b(name.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) or 1


def _words(text: str) -> Collection[str]:
    """The words of a turn, each once, and those that mean somebody."""
    named: Iterable[str] = (_AS_NAME + name for name in sorted(names_among(text)))
    return dict.fromkeys([*words(text), *named])
