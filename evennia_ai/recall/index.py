"""The recall index: adding, removing and searching turns, from any thread."""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from evennia_ai.history.audience import normalised, viewer
from evennia_ai.language.words import storable
from evennia_ai.recall.embedding import Embedder, default_embedder
from evennia_ai.recall.features import Reader
from evennia_ai.recall.query import parsed_query
from evennia_ai.recall.ranking import (
    LinearModel,
    best_places,
    default_model,
    latest_first,
    probability,
)
from evennia_ai.recall.store import Row, Store, is_damage
from evennia_ai.recall.values import Hit, Turn, seconds, stored_moment
from evennia_ai.recall.vectors import packed_traits, packed_vectors
from evennia_ai.recall.view import ScopeView
from evennia_ai.recall.vocabulary import Vocabulary, words_of

_BATCH = 2_000


class RecallIndex:
    """Everything said in a scope, found by words, meaning and place in the talk.

    Methods may be called from any thread and run one at a time. The first search of a scope reads
    it into memory, about a kilobyte a turn. `StoreError` if the file is no SQLite database or
    cannot be written.

    Args:
        path: The SQLite file, made if missing; ``:memory:`` for tests.
        embedder: The packaged static embedder by default.
        model: How features become a score; the shipped weights by default.

    Attributes:
            damaged: Whether a call failed because the file is damaged; it is unusable then.
    """

    def __init__(
        self, path: Path | str, embedder: Embedder | None = None, model: LinearModel | None = None
    ):
        self._embedder = embedder if embedder is not None else default_embedder()
        self._model = model
        self._lock = threading.RLock()
        self._store = Store(path)
        self._views: dict[int, ScopeView] = {}
        self._vocabulary: Vocabulary | None = None
        self._seen_changes = self._store.change_count()
        self.damaged = False

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.DatabaseError as error:
                self.damaged = self.damaged or is_damage(error)
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
            if self._vocabulary is not None:
                self._vocabulary.numbers(sorted(words_of(row[2] for row in fresh)))
            self._shrink(number, replaced)
            if number in self._views:
                self._views[number].refresh()
        return len(fresh)

    def _shrink(self, number: int, gone: Sequence[Row]) -> None:
        """Take turns out of their scope's arrays; words that no turn holds any more may stay."""
        view = self._views.get(number)
        if view is not None and view.remove([row[0] for row in gone]):
            del self._views[number]

    def remove(self, scope: str, ids: Iterable[str]) -> int:
        """Remove turns from the file, and a damaged file kept aside; returns how many."""
        wanted = {storable(str(each)) for each in ids}
        if not wanted:
            return 0
        with self._at_work():
            self._store.delete_aside()
            number = self._store.scope_number(scope)
            found = self._store.rows_of_ids(number, wanted)
            return self._drop(number, list(found.values())) if found else 0

    def clear(self, scope: str, at_most: int | None = None) -> int:
        """Remove all turns of a scope, or `at_most` so many, as a hundred thousand take seconds.

        Returns how many: fewer than `at_most` if none is left, and only then no words stay in the
        file.
        """
        with self._at_work():
            self._store.delete_aside()
            number = self._store.scope_number(scope)
            rows = list(self._store.scope_rows(number, at_most=at_most))
            return self._drop(number, rows, tidy=at_most is None or len(rows) < at_most)

    def _drop(self, number: int, rows: Sequence[Row], tidy: bool = True) -> int:
        self._store.delete(rows, tidy)
        self._shrink(number, rows)
        return len(rows)

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
            rows = self._store.rows([rowid for rowid, *_ in found])
        return [_hit(rows[rowid], score, matches) for rowid, score, matches in found]

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
        rowids = view.rowids.values[turns.base[candidates.positions[best]]]
        # A turn moved to a better place gets the score of that place, so scores never rise.
        return [
            (int(rowid), probability(score), bool(matches))
            for rowid, score, matches in zip(
                rowids, scores[order], candidates.matches[best], strict=False
            )
        ]

    def _view(self, number: int) -> ScopeView:
        if self._vocabulary is None:
            self._vocabulary = Vocabulary(self._embedder)
            self._vocabulary.numbers(self._store.vocabulary())
        if number not in self._views:
            self._views[number] = ScopeView(self._store, number, self._embedder, self._vocabulary)
        return self._views[number]

    def _notice_other_writers(self) -> None:
        changes = self._store.change_count()
        if changes != self._seen_changes:
            self._seen_changes = changes
            self._vocabulary = None
            self._views.clear()

    def close(self) -> None:
        """Close the file. Searching afterwards is an error."""
        with self._at_work():
            self._views.clear()
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
