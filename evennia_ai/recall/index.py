"""The recall index: adding, removing and searching turns, from any thread."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from evennia_ai.errors import StoreError
from evennia_ai.history.audience import normalised, viewer
from evennia_ai.language.words import storable
from evennia_ai.recall.embedding import Embedder, default_embedder
from evennia_ai.recall.features import Reader
from evennia_ai.recall.folder import ArraysFolder
from evennia_ai.recall.query import parsed_query
from evennia_ai.recall.ranking import (
    LinearModel,
    best_places,
    default_model,
    latest_first,
    probability,
)
from evennia_ai.recall.store import MEMORY_MB, Row, Store, is_damage
from evennia_ai.recall.turnwords import SMALLEST
from evennia_ai.recall.values import Hit, Turn, seconds, stored_moment
from evennia_ai.recall.vectors import packed_traits, packed_vectors
from evennia_ai.recall.view import ScopeView
from evennia_ai.recall.vocabulary import Vocabulary

_BATCH = 2_000
# Turns read from the file at a time, and how many may be added before the arrays are written.
_READ, _MOST_UNWRITTEN = 20_000, 4 * SMALLEST


class RecallIndex:
    """Everything said in a scope, found by words, meaning and place in the talk.

    Methods may be called from any thread and run one at a time. Arrays of a scope's turns are
    mapped from files in `<path>.arrays`, which can be made anew from the database. `StoreError` if
    the file is no SQLite database or cannot be written.

    Args:
        path: The SQLite file, made if missing; ``:memory:`` for tests.
        embedder: The packaged static embedder by default.
        model: How features become a score; the shipped weights by default.
        memory_mb: Memory for arrays that are not mapped from files; scopes that were not asked for
            long are read again beyond it.

    Attributes:
            damaged: Whether a call failed because the file is damaged; it is unusable then.
    """

    def __init__(
        self,
        path: Path | str,
        embedder: Embedder | None = None,
        model: LinearModel | None = None,
        memory_mb: int = MEMORY_MB,
    ):
        self._embedder = embedder if embedder is not None else default_embedder()
        self._model = model
        self._most_memory = memory_mb * 1_000_000
        self._lock = threading.RLock()
        self._store = Store(path)
        self._folder = ArraysFolder(self._store.path)
        self._views: OrderedDict[int, ScopeView] = OrderedDict()
        self._memory: dict[int, int] = {}
        self._vocabulary = Vocabulary(self._embedder)
        self._seen_changes = self._store.change_count()
        self.damaged = False

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except BaseException as error:
                self._views.clear()  # one may have been changed in part
                self.damaged = self.damaged or is_damage(error)
                if isinstance(error, OSError):
                    raise StoreError(f"The recall index cannot be written: {error}") from error
                raise

    def add(self, scope: str, turns: Iterable[Turn]) -> int:
        """Add turns to a scope (an assistant's stable id); returns how many were new or changed.

        A known id replaces its old turn; of several with one id the last counts. Fields that are
        not text are converted by `str`. Each 2,000 turns are one transaction.
        """
        rows = list({row[0]: row for row in map(_row, turns)}.values())
        changed = 0
        with self._at_work():
            for start in range(0, len(rows), _BATCH):
                changed += self._add(scope, rows[start : start + _BATCH])
        return changed

    def _add(self, scope: str, rows: Sequence[Row]) -> int:
        self._notice_other_writers()
        number = self._store.scope_number(scope)
        old = self._store.rows_of_ids(number, [row[0] for row in rows])
        fresh = [row for row in rows if row[0] not in old or old[row[0]][1:-1] != row]
        if fresh:
            vectors = packed_vectors(self._embedder.embed([row[2] for row in fresh]))
            complete = [(*row, vector) for row, vector in zip(fresh, vectors, strict=True)]
            replaced = [old[row[0]] for row in fresh if row[0] in old]
            number = self._store.replace(scope, replaced, complete)
            if replaced:
                self._store.delete_aside()
            if replaced or number in self._views or self._unwritten(number) > _MOST_UNWRITTEN:
                self._view(number)
        return len(fresh)

    def _unwritten(self, number: int) -> int:
        return self._store.last(number) - self._store.written(number)[1]

    def remove(self, scope: str, ids: Iterable[str]) -> int:
        """Remove turns from all files, and a damaged file kept aside; returns how many."""
        wanted = {storable(str(each)) for each in ids}
        if not wanted:
            return 0
        with self._at_work():
            self._notice_other_writers()
            self._store.delete_aside()
            number = self._store.scope_number(scope)
            found = self._store.rows_of_ids(number, wanted)
            if found:
                self._store.remove(number, list(found.values()))
                self._view(number)
            return len(found)

    def clear(self, scope: str, at_most: int | None = None) -> int:
        """Remove all turns of a scope, or `at_most` so many, as a hundred thousand take seconds.

        Returns how many: fewer than `at_most` if none is left, and only then no words stay in the
        file.
        """
        with self._at_work():
            self._store.delete_aside()
            number = self._store.scope_number(scope)
            if not number:
                return 0
            self._views.pop(number, None)
            stamp, written = self._store.written(number)
            if written:
                self._folder.take(self._store.stamps())
            self._folder.delete(stamp)
            return self._store.clear(number, at_most)

    def set_filling(self, scope: str, filling: bool) -> None:
        """Note in the file whether a scope is being filled, for a start after a crash."""
        with self._at_work():
            self._store.set_filling(scope, filling)

    def is_filling(self, scope: str) -> bool:
        """Whether the filling of a scope began and has not ended."""
        with self._at_work():
            return self._store.is_filling(self._store.scope_number(scope))

    def count(self, scope: str) -> int:
        """How many turns a scope has."""
        with self._at_work():
            return self._store.count(self._store.scope_number(scope))

    def get(self, scope: str, ids: Iterable[str]) -> tuple[Turn, ...]:
        """Turns by id, in the order asked, without unknown ids."""
        wanted = [storable(str(each)) for each in ids]
        with self._at_work():
            found = self._store.rows_of_ids(self._store.scope_number(scope), set(wanted))
        return tuple(_turn(found[each]) for each in wanted if each in found)

    def search(
        self, scope: str, query: str, limit: int = 10, audience: str | None = None
    ) -> list[Hit]:
        """At most `limit` turns that answer a query, best first.

        What the audience may not know (see `history.audience.viewer` and `visible`) is neither
        found nor has any influence; None searches everything. The order depends only on the query
        and the turns. A query without a word to look for finds nothing.
        """
        with self._at_work():
            self._notice_other_writers()
            number = self._store.scope_number(scope)
            if not number or limit <= 0:
                return []
            found = self._ranked(number, str(query), int(limit), audience)
            rows = self._store.rows(number, [place for place, *_ in found])
            self._bound_memory(number)
        return [_hit(rows[place], score, matches) for place, score, matches in found]

    def _ranked(
        self, number: int, text: str, limit: int, audience: str | None
    ) -> list[tuple[int, float, bool]]:
        view = self._view(number)
        turns = view.seen_by(None if audience is None else viewer(audience))
        query = parsed_query(text, turns.speakers)
        if not turns.size or not (query.content or query.asked):
            return []
        candidates = Reader(turns, query, self._embedder).candidates()
        scores = (self._model or default_model(turns.in_crowd)).scores(candidates)
        order = np.argsort(-scores, kind="stable")
        alike = None
        if turns.in_crowd:
            best = order[best_places(order, candidates)]
            alike = turns.likeness(candidates.positions[best])
        best = latest_first(order, scores, candidates, query, alike)[:limit]
        places = turns.base[candidates.positions[best]] + 1
        # A turn moved to a better place gets the score of that place, so scores never rise.
        return [
            (int(place), probability(score), bool(matches))
            for place, score, matches in zip(
                places, scores[order], candidates.matches[best], strict=False
            )
        ]

    def _view(self, number: int) -> ScopeView:
        """A scope with all its turns, and without what was removed."""
        view = self._views.get(number)
        if view is None:
            view = self._opened(number)
        self._refresh(number, view)
        self._views[number] = view
        self._views.move_to_end(number)
        return view

    def _opened(self, number: int) -> ScopeView:
        """A scope as its arrays have it; an empty one if there are none, or another uses them."""
        view = ScopeView(self._embedder, self._vocabulary)
        stamp, written = self._store.written(number)
        if not written or not self._folder.take(self._store.stamps()):
            return view
        try:
            view.read_from(self._folder.of(stamp), written, self._store.names(number))
        except (OSError, ValueError):
            return ScopeView(self._embedder, self._vocabulary)
        if gone := self._store.removed(number):
            # Perhaps a crash came between, and it is no more known which names they had.
            known, rest = view.remove(np.array(gone) - 1), view.unnamed()
            view.write_to(self._folder.of(stamp))
            unnamed = {kind: [*known[kind], *rest[kind]] for kind in rest}
            self._store.finish_removal(number, unnamed)
        return view

    def _refresh(self, number: int, view: ScopeView) -> None:
        """Take in what was added and removed since the last time."""
        last = self._store.last(number)
        while len(view) < last:
            until = min(last, len(view) + _READ)
            view.extend(list(self._store.scope_rows(number, len(view), until)), until)
        if gone := self._store.removed(number):
            unnamed = view.remove(np.array(gone) - 1)
            if view.folder is not None:
                view.write_to(view.folder)
            stamp, written = self._store.written(number)
            if view.folder is not None or not written:
                self._store.finish_removal(number, unnamed)
            else:
                self._store.checkpoint()  # whose files these are removes it there
        self._write(number, view)

    def _write(self, number: int, view: ScopeView) -> None:
        """Write the arrays of a scope that has grown to files, from which they are mapped then."""
        stamp, written = self._store.written(number)
        done = written if view.folder is not None else 0
        if len(view) - done < SMALLEST or not self._folder.take(self._store.stamps()):
            return
        try:
            if view.folder is None:
                self._folder.delete(stamp)
                self._store.set_written(number, 0, ())
            view.write_to(self._folder.of(stamp))
        except OSError:
            return  # the disk is full: what is in memory stays there
        self._store.set_written(number, len(view), view.unwritten_names())

    def _bound_memory(self, number: int) -> None:
        """Forget scopes and audiences that were not asked for long, if they take too much."""
        self._memory[number] = self._views[number].memory
        while len(self._views) > 1 and self._memory_used() > self._most_memory:
            oldest, _ = self._views.popitem(last=False)
            self._memory.pop(oldest, None)
        view = self._views[number]
        while self._memory_used() > self._most_memory and view.forget_oldest_view():
            self._memory[number] = view.memory

    def _memory_used(self) -> int:
        return sum(self._memory.get(number, 0) for number in self._views)

    def _notice_other_writers(self) -> None:
        changes = self._store.change_count()
        if changes != self._seen_changes:
            self._seen_changes = changes
            self._views.clear()

    def close(self) -> None:
        """Close the file. Searching afterwards is an error."""
        with self._at_work():
            self._views.clear()
            self._folder.close()
            self._store.close()


def _row(turn: Turn) -> Row:
    text = _text(turn.text)
    return (
        _text(turn.id),
        _text(turn.speaker),
        text,
        stored_moment(turn.at),
        seconds(turn.at),
        None if turn.session is None else _text(turn.session),
        normalised(turn.audience),
        _text(turn.kind),
        packed_traits(text),
    )


def _text(value: object) -> str:
    return "" if value is None else storable(str(value))


def _turn(row: Row) -> Turn:
    _, turn_id, speaker, text, at, _, session, audience, kind, *_ = row
    return Turn(turn_id, speaker, text, at, session, audience, kind)


def _hit(row: Row, score: float, matches: bool) -> Hit:
    _, turn_id, speaker, text, at, _, session, audience, kind, *_ = row
    return Hit(turn_id, score, speaker, text, at, kind, session, audience, matches)
