"""The recall index: one SQLite file, and of each scope in use the records that a search reads.

In the file a turn has a row with its text and its record, and one in FTS5 with its stems.
Its number is that of its scope, shifted, and its place there.
"""

import json
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evennia_ai.errors import StoreError
from evennia_ai.history.audience import normalised, viewer, visible
from evennia_ai.language.words import stem, storable
from evennia_ai.recall.embedding import StaticEmbedder, default_embedder
from evennia_ai.recall.lexicon import turn_words
from evennia_ai.recall.ranking import LinearModel, ranked
from evennia_ai.recall.values import Hit, Turn, stored_moment
from evennia_ai.recall.view import Ints, Records, View, new_records, record_type

# Increased when what is stored changes meaning; a file of another version is emptied, as it can be
# rebuilt from what the game stores.
SCHEMA_VERSION = 13
# Turns of a transaction; turns in memory beyond which all are read again.
_BATCH, _MOST_TURNS = 2_000, 500_000
_SHIFT = 32

_SCHEMA = """
CREATE TABLE IF NOT EXISTS scopes (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS turns (
    number INTEGER PRIMARY KEY, scope INTEGER NOT NULL, id TEXT NOT NULL, speaker TEXT NOT NULL,
    text TEXT NOT NULL, at, session TEXT, audience TEXT NOT NULL, kind TEXT NOT NULL,
    record BLOB NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS turns_by_id ON turns (scope, id);
CREATE TABLE IF NOT EXISTS unclean (number INTEGER PRIMARY KEY);
CREATE VIRTUAL TABLE IF NOT EXISTS said USING fts5(
    stems, detail=none, columnsize=0, tokenize='ascii');
CREATE VIRTUAL TABLE temp.stems USING fts5vocab('main', 'said', 'row');
"""
_LISTED = "(SELECT value FROM json_each(?))"
_TURN = "id, speaker, text, at, session, audience, kind"


@dataclass
class _Scope:
    """What is in memory of a scope: the numbers of its turns, ascending, and their records.

    `views` are those of audiences, until turns are added.
    """

    numbers: Ints
    records: Records
    views: dict[tuple[str | None, bool], View] = field(default_factory=dict)


class RecallIndex:
    """Everything said in a scope, found by words, meaning and place in the talk.

    Methods may be called from any thread and run one at a time. `StoreError` if the file cannot be
    opened; later trouble is an error of `sqlite3`.

    Args:
        path: The SQLite file, made if missing; ``:memory:`` for tests.
        embedder: The packaged static embedder by default.
        model: How features become a score; the shipped weights by default.

    Attributes:
            damaged: Whether a call failed because the file is damaged; it is unusable then.
    """

    def __init__(
        self,
        path: Path | str,
        embedder: StaticEmbedder | None = None,
        model: LinearModel | None = None,
    ):
        self._path, self._model = str(path), model
        self._embedder = embedder if embedder is not None else default_embedder()
        self._lock = threading.RLock()
        self._scopes: dict[int, _Scope] = {}
        self._names: dict[str, int] = {}  # of speakers, audiences and kinds
        self._type = record_type(self._embedder.dims)
        self.damaged = False
        try:
            self._db = self._opened()
        except sqlite3.DatabaseError as error:
            raise StoreError(
                f"The recall index `{self._path}` cannot be opened ({error}); delete the file and "
                "rebuild the index."
            ) from error

    def _opened(self) -> sqlite3.Connection:
        self._db = db = sqlite3.connect(self._path, timeout=10, check_same_thread=False)
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "secure_delete=ON"):
            db.execute(f"PRAGMA {pragma}")
        version = SCHEMA_VERSION << 16 | self._type.itemsize
        is_other = db.execute("PRAGMA user_version").fetchone()[0] not in (0, version)
        if is_other:
            tables = "SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'said_%'"
            for (table,) in db.execute(tables).fetchall():
                db.execute(f"DROP TABLE IF EXISTS {table}")
        db.executescript(_SCHEMA)
        db.execute(f"PRAGMA user_version={version}")
        if is_other:
            db.execute("INSERT OR IGNORE INTO unclean VALUES (1)")
        try:
            self._clean_up()
        except sqlite3.OperationalError as error:  # on a full disk it is done the next time
            if is_damage(error):
                raise
        return db

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except BaseException as error:
                self._scopes.clear()  # something may have been changed in part
                self.damaged = self.damaged or is_damage(error)
                raise

    def add(self, scope: str, turns: Iterable[Turn]) -> int:
        """Add turns to a scope (an assistant's stable id); returns how many were new or changed.

        A known id replaces its old turn, as `remove` does; of several with one id the last counts.
        Fields that are not text are converted by `str`. Each 2,000 turns are one transaction.
        """
        by_id: dict[str, Turn] = {}
        for turn in turns:
            said = (turn.id, turn.speaker, turn.text, turn.kind)
            turn_id, speaker, text, kind = (storable("" if n is None else str(n)) for n in said)
            session = None
            if turn.session is not None:
                session = storable(str(turn.session))
            at, audience = stored_moment(turn.at), normalised(turn.audience)
            by_id[turn_id] = Turn(turn_id, speaker, text, at, session, audience, kind)
        last = list(by_id.values())
        with self._at_work():
            return sum(self._add(scope, last[n : n + _BATCH]) for n in range(0, len(last), _BATCH))

    def _add(self, name: str, turns: Sequence[Turn]) -> int:
        scope = self._number_of(name)
        numbers = self._numbers_of(scope, [turn.id for turn in turns])
        same = self._turns(numbers.values())
        fresh = [turn for turn in turns if same.get(numbers.get(turn.id, -1)) != turn]
        if not fresh:
            return 0
        vectors = self._embedder.embed([turn.text for turn in fresh])
        records = new_records(fresh, vectors, self._type)
        replaced = [numbers[turn.id] for turn in fresh if turn.id in numbers]
        with self._db:
            if not scope:
                query = "INSERT INTO scopes (name) VALUES (?)"
                scope = int(self._db.execute(query, (name,)).lastrowid or 0)
            self._remove(scope, replaced)
            query = "SELECT max(number) FROM turns WHERE number BETWEEN ? AND ?"
            (last,) = self._db.execute(query, _span(scope)).fetchone()
            first = (scope << _SHIFT) + 1 if last is None else last + 1
            new_numbers = range(first, first + len(fresh))
            for number, turn, record in zip(new_numbers, fresh, records, strict=True):
                row = (number, scope, *astuple(turn), record.tobytes())
                query = f"INSERT INTO turns (number, scope, {_TURN}, record) VALUES ({'?,' * 9}?)"
                self._db.execute(query, row)
                stems = dict.fromkeys(map(stem, turn_words(turn.text)))
                query = "INSERT INTO said (rowid, stems) VALUES (?, ?)"
                self._db.execute(query, (number, " ".join(stems)))
        if (kept := self._scopes.get(scope)) is not None:
            self._name(records, [(turn.speaker, turn.audience, turn.kind) for turn in fresh])
            kept.numbers = np.append(kept.numbers, new_numbers)
            kept.records = np.concatenate([kept.records, records])
            kept.views.clear()
        return len(fresh)

    def _name(self, records: Records, names: Sequence[tuple[Any, ...]]) -> None:
        """Put the numbers of speaker, audience and kind into records."""
        known = self._names
        for place, name in enumerate(("speaker", "audience", "kind")):
            records[name] = [known.setdefault(row[place], len(known)) for row in names]

    def _remove(self, scope: int, numbers: Collection[int]) -> None:
        """Remove turns, in a transaction; `_clean_up` takes their stems out of the file."""
        if numbers:
            self._scopes.pop(scope, None)
            for table, key in (("said", "rowid"), ("turns", "number")):
                query = f"DELETE FROM {table} WHERE {key} IN {_LISTED}"
                self._db.execute(query, (json.dumps(list(numbers)),))
            self._db.execute("INSERT OR IGNORE INTO unclean VALUES (1)")

    def _clean_up(self) -> None:
        """Leave no byte of removed turns.

        Merging drops their stems, and the file is rewritten: `secure_delete` alone misses what
        SQLite copied when it split a page.
        """
        if not self._db.execute("SELECT 1 FROM unclean").fetchone():
            return
        with self._db:
            self._db.execute("INSERT INTO said (said) VALUES ('optimize')")
        self._db.execute("VACUUM")
        is_busy, *_ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:  # another process reads what stood there before
            raise sqlite3.OperationalError("the index is in use")
        with self._db:
            self._db.execute("DELETE FROM unclean")

    def remove(self, scope: str, ids: Iterable[str]) -> int:
        """Remove turns; returns how many. Single words of them stay in the file until `erase`."""
        wanted = [storable(str(each)) for each in ids]
        with self._at_work(), self._db:
            number = self._number_of(scope)
            numbers = self._numbers_of(number, wanted).values()
            self._remove(number, numbers)
        return len(numbers)

    def clear(self, scope: str) -> int:
        """Remove all turns of a scope, as `remove` and `erase`; returns how many."""
        query = "SELECT number FROM turns WHERE number BETWEEN ? AND ?"
        with self._at_work(), self._db:
            number = self._number_of(scope)
            numbers = [row[0] for row in self._db.execute(query, _span(number))]
            self._remove(number, numbers)
        self.erase()
        return len(numbers)

    def erase(self) -> None:
        """Leave no byte of what was removed in the file; takes about a second for 100,000 turns.

        A file that is opened or closed is erased if that is due.
        """
        with self._at_work():
            self._clean_up()

    def count(self, scope: str, ids: Iterable[str] | None = None) -> int:
        """How many turns a scope has, or how many of some ids it has."""
        with self._at_work():
            number = self._number_of(scope)
            if ids is not None:
                return len(self._numbers_of(number, [storable(str(each)) for each in ids]))
            query = "SELECT count(*) FROM turns WHERE number BETWEEN ? AND ?"
            return int(self._db.execute(query, _span(number)).fetchone()[0])

    def search(
        self,
        scope: str,
        query: str,
        limit: int = 10,
        audience: str | None = None,
        tools: bool = False,
    ) -> list[Hit]:
        """At most `limit` turns that answer a query, best first: outputs of `tools`, or all others.

        What the audience may not know (see `history.audience.viewer` and `visible`) is neither
        found nor has any influence; None searches everything. The order depends only on the query
        and the turns. A query without a word to look for finds nothing.
        """
        with self._at_work():
            number = self._number_of(scope)
            if not number or limit <= 0:
                return []
            view = self._view(number, None if audience is None else viewer(audience), tools)
            best = ranked(view, str(query), self._embedder, self._stems, self._model)[:limit]
            turns = self._turns([number for number, *_ in best])
        return [
            Hit(t.id, score, t.speaker, t.text, t.at, t.kind, t.session, t.audience, matches)  # type: ignore[arg-type]
            for t, score, matches in ((turns[n], score, matches) for n, score, matches in best)
        ]

    def _view(self, number: int, seen_by: str | None, tools: bool = False) -> View:
        """What one audience sees of a scope, or everybody for None."""
        scope = self._scopes.get(number) or self._read(number)
        if (seen_by, tools) not in scope.views:
            names, kind = list(self._names), self._names.get("tool", -1)
            shown = np.array([seen_by is None or visible(name, seen_by) for name in names], bool)
            mask = shown[scope.records["audience"]]
            mask &= (scope.records["kind"] == kind) == tools
            scope.views[seen_by, tools] = View(
                scope.numbers,
                scope.records,
                mask,
                names,
                lambda stem: self._holders(number, stem),
            )
        return scope.views[seen_by, tools]

    def _read(self, number: int) -> _Scope:
        if sum(len(scope.numbers) for scope in self._scopes.values()) > _MOST_TURNS:
            self._scopes.clear()
        query = (
            "SELECT number, speaker, audience, kind, record FROM turns"
            " WHERE number BETWEEN ? AND ? ORDER BY number"
        )
        rows = self._db.execute(query, _span(number)).fetchall()
        records = np.frombuffer(b"".join(row[4] for row in rows), self._type).copy()
        self._name(records, [row[1:4] for row in rows])
        numbers = np.array([row[0] for row in rows], dtype=np.int64)
        self._scopes[number] = _Scope(numbers, records)
        return self._scopes[number]

    def _holders(self, scope: int, stem: str) -> Ints:
        """The numbers of a scope's turns that hold a stem."""
        # Joined in SQLite: rows of one number each would take five times as long.
        query = "SELECT group_concat(rowid) FROM said WHERE said MATCH ? AND rowid BETWEEN ? AND ?"
        (text,) = self._db.execute(query, (f'"{stem}"', *_span(scope))).fetchone()
        return np.fromstring(text or "", dtype=np.int64, sep=",")

    def _stems(self, begin: str) -> list[str]:
        """The stems of all turns that begin with some letters."""
        query = "SELECT term FROM temp.stems WHERE term BETWEEN ? AND ?"
        return [stem for (stem,) in self._db.execute(query, (begin, f"{begin}\U0010ffff"))]

    def _number_of(self, name: str) -> int:
        """The number of a scope; 0 if there is none of that name."""
        row = self._db.execute("SELECT number FROM scopes WHERE name=?", (name,)).fetchone()
        if row:
            return int(row[0])
        return 0

    def _numbers_of(self, scope: int, ids: Collection[str]) -> dict[str, int]:
        """The numbers of turns by id; unknown ids are left out."""
        query = f"SELECT id, number FROM turns WHERE scope=? AND id IN {_LISTED}"
        return dict(self._db.execute(query, (scope, json.dumps(list(ids)))).fetchall())

    def _turns(self, numbers: Iterable[int]) -> dict[int, Turn]:
        """Turns by number."""
        query = f"SELECT number, {_TURN} FROM turns WHERE number IN {_LISTED}"
        rows = self._db.execute(query, (json.dumps(list(numbers)),))
        return {number: Turn(*turn) for number, *turn in rows}

    def close(self) -> None:
        """Close the file, erased if that is due. Searching afterwards is an error."""
        with self._lock:
            self._scopes.clear()
            with suppress(sqlite3.DatabaseError):  # then it is erased where it is opened again
                self._clean_up()
            self._db.close()


def is_damage(error: BaseException | None) -> bool:
    """Whether an error says that a file is no sound database; not if it is busy, full or closed."""
    code = getattr(error, "sqlite_errorcode", None) or 0
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _span(scope: int) -> tuple[int, int]:
    """The least and the largest number that a turn of a scope can have."""
    return scope << _SHIFT, (scope << _SHIFT) + (1 << _SHIFT) - 1
