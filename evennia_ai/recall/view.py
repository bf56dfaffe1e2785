"""A scope in arrays: its turns, their words, and what one audience sees of them.

Ints in a `ScopeView` are in order of adding, in `VisibleTurns` in order of conversation. Turns
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
    ExactVectors,
    Floats,
    Ints,
    likely_cosines,
    norms_of,
    quantised,
    signs_of,
    unpacked_lengths,
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

    def read_from(
        self, folder: Path, turns: int, names: Mapping[str, Mapping[int, str | None]]
    ) -> None:
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
        for signs, bits in zip(self._signs, signs_of(whole).T, strict=True):
            signs.extend(bits)
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
        for kind, column in self._numbers.items():
            some = set(named[kind].tolist())
            gone[kind] = [n for n in some if not (held & (column.values == n)).any()]
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
        """Leave out the audience whose last search is longest ago; not the only one."""
        if len(self._visible) < 2:
            return False
        self._visible.popitem(last=False)
        return True

    def order_key(self, position: int) -> tuple[int, float]:
        """Of messages first, then of what is of other kinds; then by time.

        So journal entries do not part a talk.
        """
        kind = self._kind_ranks[self._numbers[KIND].values[position]]
        return int(kind), float(self.times.values[position])

    def in_order(self, positions: Ints) -> Ints:
        """Positions by `order_key`, then in order of adding."""
        order = np.argsort(self.times.values[positions], kind="stable")
        kinds = self._kind_ranks[self._numbers[KIND].values[positions[order]]]
        return np.asarray(positions[order[np.argsort(kinds, kind="stable")]])

    @property
    def _kind_ranks(self) -> Ints:
        """The places of kinds, by their numbers."""
        known = [(name != "message", name or "") for name in self.names[KIND].all]
        ranks = np.zeros(len(known), dtype=np.int32)
        ranks[sorted(range(len(known)), key=known.__getitem__)] = np.arange(len(known))
        return ranks

    def goes_on(self, before: Ints, positions: Ints) -> NDArray[np.bool_]:
        """Whether turns belong to the same talk as those before them.

        A turn that is no message is a talk of its own.
        """
        kinds, sessions = self._numbers[KIND].values, self._sessions.values
        one, other = sessions[before], sessions[positions]
        close = self.times.values[positions] - self.times.values[before] <= SESSION_GAP_S
        same = (one == other) & ((one != 0) | close)
        return np.asarray(same & (kinds[before] == kinds[positions]))

    def positions_of(self, some_words: Sequence[str], as_names: bool = False) -> list[Ints]:
        """Ascending positions of the turns that hold each of some words.

        With `as_names`, of those where it means somebody.
        """
        names = self.names[WORD]
        numbers = [names.known(_AS_NAME + word if as_names else word) for word in some_words]
        return self._words.of([number or 0 for number in numbers])

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
        return unpacked_traits(self._traits.values[positions])

    def lengths(self, positions: Ints) -> Floats:
        """How many words turns have."""
        return unpacked_lengths(self._traits.values[positions])

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
    """

    def __init__(self, view: ScopeView, base: Ints, begins: NDArray[np.bool_]):
        self.view, self.base, self.size = view, base, len(base)
        self._begins = begins

    @classmethod
    def sorted(cls, view: ScopeView, allowed: Ints) -> "VisibleTurns":
        """The turns at some positions."""
        base = view.in_order(allowed).astype(np.int32)
        first = np.ones(min(1, len(base)), dtype=bool)
        return cls(view, base, np.concatenate([first, ~view.goes_on(base[:-1], base[1:])]))

    def with_more(self, positions: Ints) -> "VisibleTurns":
        """The same with a few new turns."""
        base, begins = self.base, self._begins
        for position in positions.tolist():
            at = bisect_right(base, self.view.order_key(position), key=self.view.order_key)
            base, begins = np.insert(base, at, position), np.insert(begins, at, True)
            _begin_again(self.view, base, begins, at)
            _begin_again(self.view, base, begins, at + 1)
        return VisibleTurns(self.view, base, begins)

    def without(self, positions: Ints) -> "VisibleTurns":
        """The same without some turns."""
        gone = np.flatnonzero(np.isin(self.base, positions))
        if len(gone) > _FEW:
            return VisibleTurns.sorted(self.view, np.sort(np.delete(self.base, gone)))
        base, begins = np.delete(self.base, gone), np.delete(self._begins, gone)
        for at in (gone - np.arange(len(gone))).tolist():
            _begin_again(self.view, base, begins, at)
        return VisibleTurns(self.view, base, begins)

    @cached_property
    def _local(self) -> NDArray[np.int32] | None:
        """Ints here by those in the `ScopeView`; None if they are the same."""
        if np.array_equal(self.base, np.arange(len(self.view), dtype=np.int32)):
            return None
        local = np.full(len(self.view), -1, dtype=np.int32)
        local[self.base] = np.arange(self.size, dtype=np.int32)
        return local

    @cached_property
    def scratch(self) -> Floats:
        """A number for each turn, zero between uses."""
        return np.zeros(self.size, dtype=np.float32)

    @cached_property
    def sessions(self) -> Ints:
        """Of which talk each turn is a part, consecutive numbers."""
        return np.cumsum(self._begins, dtype=np.int32) - np.int32(1)

    @cached_property
    def _starts(self) -> Ints:
        return np.flatnonzero(self._begins)

    @cached_property
    def _part_begins(self) -> NDArray[np.bool_]:
        """Where talks begin and, in those of more than `LONGEST_PART` turns, each part."""
        sizes = np.diff(self._starts, append=self.size)
        begins = self._begins.copy()
        for talk in np.flatnonzero(sizes > LONGEST_PART).tolist():
            start = int(self._starts[talk])
            begins[start : start + int(sizes[talk]) : LONGEST_PART] = True
        return begins

    @cached_property
    def parts(self) -> Ints:
        """As `sessions`, of parts of talks."""
        return np.cumsum(self._part_begins, dtype=np.int32) - np.int32(1)

    @cached_property
    def part_starts(self) -> Ints:
        """Where the parts begin."""
        return np.flatnonzero(self._part_begins)

    @property
    def memory(self) -> int:
        """Bytes of the arrays that a search makes."""
        arrays = vars(self).values()
        return sum(each.nbytes for each in arrays if isinstance(each, np.ndarray))

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
        found = self.similarities(np.concatenate([vectors, centre[None]]), positions)
        plain, towards = found[:-1], found[-1] * np.float32(np.sqrt(size))
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
        return np.asarray(self.similarities(centre[None], positions)[0] * np.float32(np.sqrt(size)))

    def positions_of(self, some_words: Sequence[str], as_names: bool = False) -> list[Ints]:
        """Ascending positions here of the turns that hold words, as for `ScopeView`."""
        found = self.view.positions_of(some_words, as_names)
        if self._local is None:
            return found
        return [self._here(known) for known in found]

    def _here(self, known: Ints) -> Ints:
        assert self._local is not None
        local = self._local[known]
        return np.sort(local[local >= 0], kind="stable").astype(np.int64)

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


def _begin_again(view: ScopeView, base: Ints, begins: NDArray[np.bool_], place: int) -> None:
    """Say anew whether a talk begins at a place, where something came or went before it."""
    if place < len(base):
        before = base[max(0, place - 1) : place]
        begins[place] = not (len(before) and view.goes_on(before, base[place : place + 1])[0])


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
