"""A scope in memory: arrays of its turns, its vocabulary, and what one audience sees of it.

Built lazily from the file and kept up to date as turns are added. Positions in a `ScopeView`
are in order of adding; positions in `VisibleTurns` are in order of conversation, and turns that
the audience may not see are not there at all: they are no neighbours, and no statistic knows
them.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evennia_ai.core.audience import visible
from evennia_ai.recall.store import Store
from evennia_ai.recall.text import TRAITS, stem, words

# A pause that ends a talk whose turns carry no session.
SESSION_GAP_S = 1_800.0
# Words of similar meaning are taken for related from this cosine on.
NEAR_MEANING = 0.4
_KEPT_WORDS = 2_000
# The mean of so many turns is taken for the mean of all.
_CENTRE_TURNS = 2_000
# How many audiences of one scope keep their arrays.
_KEPT_AUDIENCES = 8
_FIRST_ROWS = 1_024
# Multiplications a call to BLAS may take; from 2**18 on OpenBLAS wakes threads of its own, and on
# a busy machine waits for them many times longer than the product takes.
_BLOCK_WORK = 245_760

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


class Growing:
    """A numpy array that grows by doubling.

    Args:
        dtype: Element type.
        width: Columns, or 0 for one dimension.
    """

    def __init__(self, dtype: Any, width: int = 0):
        self._data = np.zeros((_FIRST_ROWS, width) if width else _FIRST_ROWS, dtype=dtype)
        self._size = 0

    def extend(self, values: Any) -> None:
        """Append rows."""
        end = self._size + len(values)
        if end > len(self._data):
            shape = (max(end, 2 * len(self._data)), *self._data.shape[1:])
            grown = np.zeros(shape, dtype=self._data.dtype)
            grown[: self._size] = self._data[: self._size]
            self._data = grown
        self._data[self._size : end] = values
        self._size = end

    @property
    def values(self) -> NDArray[Any]:
        """The rows so far; a view, valid until the next `extend`."""
        return self._data[: self._size]


class ExactVectors:
    """Quantised vectors whose cosines do not depend on what stands beside them.

    The products of whole numbers up to 127 sum to less than 2**24, which float32 holds exactly:
    whatever order a BLAS adds in, the result is the same. So a search answers the same after a
    rebuild, and as if turns hidden from the asker did not exist.

    Args:
        dims: Dimensions; 127 * 127 * dims must stay below 2**24, so at most 1,040.
    """

    def __init__(self, dims: int):
        self._numbers = Growing(np.int8, dims)
        self._norms = Growing(np.float32)
        self._buffer = np.zeros((_BLOCK_WORK // dims, dims), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._norms.values)

    def extend(self, numbers: NDArray[Any]) -> None:
        """Append vectors that `quantised` made, shape (n, dims)."""
        self._numbers.extend(numbers)
        self._norms.extend(_norms(numbers.astype(np.float32)))

    def mean(self, positions: Ints) -> Floats:
        """Mean of the unit vectors at some positions, shape (dims,)."""
        numbers = self._numbers.values[positions].astype(np.float32)
        return np.asarray((numbers / self._norms.values[positions][:, None]).mean(axis=0))

    def cosines(self, vectors: Floats, start: int = 0) -> Floats:
        """Cosine of each given vector (rows; any scale) with each one here from `start` on."""
        asked = quantised(vectors)
        products = self._products(asked, start)
        products /= self._norms.values[start:]
        products /= _norms(asked)[:, None]
        return products

    def _products(self, asked: Floats, start: int) -> Floats:
        """Products in blocks that stay in the cache and are too small for BLAS to share out."""
        here = self._numbers.values[start:]
        found = np.empty((len(asked), len(here)), dtype=np.float32)
        # A single row would be a matrix-vector product, which BLAS shares out much sooner.
        rows = asked if len(asked) > 1 else np.repeat(asked, 2, axis=0)
        step = len(self._buffer) // len(rows)
        for low in range(0, len(here), step):
            block = self._buffer[: min(step, len(here) - low)]
            block[:] = here[low : low + step]
            found[:, low : low + step] = (rows @ block.T)[: len(asked)]
        return found


def _norms(numbers: Floats) -> Floats:
    norms = np.sqrt((numbers * numbers).sum(axis=1))
    return np.where(norms > 0, norms, 1).astype(np.float32)


class Names:
    """Strings numbered in order of first use."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        """The number of a string, a new one if it is new."""
        known = self._numbers.get(name)
        if known is None:
            known = self._numbers[name] = len(self.all)
            self.all.append(name)
        return known


class Vocabulary:
    """Words that may stand in turns, their stems, and their vectors for near-synonyms.

    Args:
        embedder: Has `embed` and `dims`, as `StaticEmbedder`.
    """

    def __init__(self, embedder: Any):
        self._embedder = embedder
        self._names = Names()
        self._by_stem: dict[str, list[str]] = {}
        self._vectors = ExactVectors(embedder.dims)
        self._near: OrderedDict[str, tuple[int, list[tuple[float, int]]]] = OrderedDict()

    def add(self, new_words: Iterable[str]) -> None:
        """Take in words; known ones cost nothing."""
        for word in new_words:
            known = len(self._names.all)
            if self._names.number(word) == known:
                self._by_stem.setdefault(stem(word), []).append(word)

    def forms(self, word: str) -> Sequence[str]:
        """Words with the same stem."""
        return self.forms_of_stem(stem(word))

    def forms_of_stem(self, stemmed: str) -> Sequence[str]:
        """Words that have this stem."""
        return self._by_stem.get(stemmed, ())

    def near(self, word: str, vector: Floats) -> Iterator[tuple[str, float]]:
        """Known words of near meaning and their cosines, nearest first.

        Args:
            word: A word.
            vector: Its vector, shape (dims,).
        """
        self._embed_new_words()
        known_to, found = self._near.get(word, (0, []))
        size = len(self._vectors)
        if known_to < size:
            cosines = self._vectors.cosines(vector[None], known_to)[0]
            close = np.flatnonzero(cosines >= NEAR_MEANING)
            fresh = [(-float(cosines[n]), known_to + int(n)) for n in close]
            found = sorted(found + fresh)
            self._near[word] = (size, found)
        self._near.move_to_end(word)
        if len(self._near) > _KEPT_WORDS:
            self._near.popitem(last=False)
        return ((self._names.all[number], -minus) for minus, number in found)

    def _embed_new_words(self) -> None:
        missing = self._names.all[len(self._vectors) :]
        if missing:
            self._vectors.extend(quantised(self._embedder.embed(missing)))


class ScopeView:
    """All turns of one scope in memory.

    Args:
        store: The file.
        scope: The scope's number.
        embedder: Has `embed` and `dims`.
        vocabulary: Words of the file.
    """

    def __init__(self, store: Store, scope: int, embedder: Any, vocabulary: Vocabulary):
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
        self._postings: dict[str, Ints] = {}
        self._known_to: dict[str, int] = {}
        self._visible: OrderedDict[str | None, VisibleTurns] = OrderedDict()
        self.refresh()

    def refresh(self) -> None:
        """Take in the turns that were added to the file since the last time."""
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
        self._extend_traits(np.array([row[9] for row in rows], dtype=np.int64))
        self.vectors.extend(unpacked_vectors([row[10] for row in rows]))

    def _last_rowid(self) -> int:
        return int(self.rowids.values[-1]) if len(self.rowids.values) else 0

    def _extend_traits(self, packed: Ints) -> None:
        shifts = 2 * np.arange(len(TRAITS))
        self.traits.extend((packed[:, None] >> shifts & 3) / 3)
        self.lengths.extend(packed >> 2 * len(TRAITS))

    def seen_by(self, viewer: str | None) -> "VisibleTurns":
        """What one audience sees, or everything for None."""
        kept = self._visible.get(viewer)
        if kept is None:
            kept = self._visible[viewer] = VisibleTurns(self, self._allowed(viewer))
        self._visible.move_to_end(viewer)
        if len(self._visible) > _KEPT_AUDIENCES:
            self._visible.popitem(last=False)
        return kept

    def _allowed(self, viewer: str | None) -> Ints:
        if viewer is None:
            return np.arange(len(self.rowids.values))
        table = np.array([visible(audience, viewer) for audience in self.audiences.all], bool)
        if not len(table):
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(table[self.audience_numbers.values])

    def positions_of_word(self, word: str) -> Ints:
        """Positions of the turns that hold a word, ascending."""
        last = self._last_rowid()
        known_to = self._known_to.get(word, 0)
        if known_to < last:
            rowids = self._store.rowids_of_word(self._scope, word, known_to)
            fresh = np.searchsorted(self.rowids.values, np.array(rowids, dtype=np.int64))
            before = self._postings.get(word)
            joined = fresh if before is None else np.concatenate([before, fresh])
            self._postings[word] = joined
            self._known_to[word] = last
        return self._postings[word]


class VisibleTurns:
    """The turns of a scope that one audience may see, in order of conversation.

    Args:
        view: The scope.
        allowed: Positions in it, ascending.
    """

    def __init__(self, view: ScopeView, allowed: Ints):
        kinds = view.kind_numbers.values[allowed]
        # By kind, then by time, then in order of adding: journal entries do not part a talk.
        order = np.argsort(view.times.values[allowed], kind="stable")
        order = order[np.argsort(kinds[order], kind="stable")]
        self.view = view
        self._centre_kept: tuple[Floats, float, Floats] | None = None
        self.base = allowed[order]
        self.size = len(self.base)
        self._is_all = np.array_equal(self.base, np.arange(len(view.rowids.values)))
        self._local = np.full(len(view.rowids.values), -1, dtype=np.int64)
        self._local[self.base] = np.arange(self.size)
        self._postings: dict[str, Ints] = {}
        self.speaker_numbers = view.speaker_numbers.values[self.base]
        self.times = view.times.values[self.base]
        self.lengths = view.lengths.values[self.base]
        self.mean_length = float(self.lengths.mean()) if self.size else 1.0
        self.sessions = self._session_numbers(kinds[order])
        self.session_count = int(self.sessions[-1]) + 1 if self.size else 0
        self.session_starts = np.flatnonzero(np.diff(self.sessions, prepend=-1))
        self.places = np.arange(self.size) - self.session_starts[self.sessions]
        self.session_sizes = np.bincount(self.sessions, minlength=self.session_count)

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
        """Cosines once the direction common to all turns is taken out.

        What everybody says all the time draws all cosines together; without it they tell more
        (all-but-the-top, Mu and Viswanath, ICLR 2018). Computed from exact cosines, so that
        hidden turns have no influence on the rounding either.

        Args:
            vectors: As for `similarities`.
            cosines: What `similarities` gave for them.
        """
        centre, size, towards = self._centre()
        asked = quantised(vectors)
        asked_towards = (asked * centre).sum(axis=1)[:, None] / _norms(asked)[:, None]
        products = cosines - towards - asked_towards + size
        lengths = np.sqrt(np.maximum(1 - 2 * towards + size, 1e-6))
        asked_lengths = np.sqrt(np.maximum(1 - 2 * asked_towards + size, 1e-6))
        return np.asarray(products / lengths / asked_lengths, dtype=np.float32)

    def _centre(self) -> tuple[Floats, float, Floats]:
        """The mean vector, its squared length, its product with each turn's unit vector."""
        if self._centre_kept is None:
            mean = self.view.vectors.mean(self.base[:_CENTRE_TURNS])
            # As stored vectors are: whole numbers, with which products are exact.
            whole = quantised(mean[None])
            scale = float(np.abs(mean).max()) / 127
            length = float(_norms(whole)[0]) * scale
            towards = self.similarities(whole)[0] * np.float32(length)
            self._centre_kept = (whole[0] * np.float32(scale), length * length, towards)
        return self._centre_kept

    def positions_of_word(self, word: str) -> Ints:
        """Positions here of the turns that hold a word."""
        known = self._postings.get(word)
        if known is None:
            known = self.view.positions_of_word(word)
            if not self._is_all:
                local = self._local[known]
                known = local[local >= 0]
            self._postings[word] = known
        return known

    def similarities(self, vectors: Floats) -> Floats:
        """Cosine of each given vector (rows) with each turn here (columns)."""
        found = self.view.vectors.cosines(vectors)
        return found if self._is_all else np.asarray(found[:, self.base])

    def traits(self, positions: Ints) -> Floats:
        """Traits of turns, a row each, columns as `TRAITS`."""
        return np.asarray(self.view.traits.values[self.base[positions]])


def quantised(vectors: Floats) -> Floats:
    """Vectors scaled by their largest component to whole numbers in -127..127."""
    if not vectors.size:
        return vectors
    peaks = np.abs(vectors).max(axis=1, keepdims=True)
    return np.asarray(np.rint(vectors / np.where(peaks > 0, peaks, 1) * 127), dtype=np.float32)


def packed_vectors(vectors: Floats) -> list[bytes]:
    """Vectors as they are stored: quantised, a byte a dimension."""
    return [row.tobytes() for row in quantised(vectors).astype(np.int8)]


def unpacked_vectors(blobs: Sequence[bytes]) -> NDArray[np.int8]:
    """What `packed_vectors` made, as whole numbers."""
    return np.frombuffer(b"".join(blobs), dtype=np.int8).reshape(len(blobs), -1)


def words_of(texts: Iterable[str]) -> set[str]:
    """All words of some texts."""
    return {word for text in texts for word in words(text)}
