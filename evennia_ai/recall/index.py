"""The recall index: one SQLite file, and of each scope in use the records that a search reads.

In the file a turn has a row with its text, its stems in FTS5, and its record in a block, so that
the records of a hundred thousand turns are read in a fraction of a second. Turns are numbered in a
scope by their places, which are not given again.
"""

import json
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evennia_ai.errors import StoreError
from evennia_ai.history.audience import normalised, viewer, visible
from evennia_ai.language.words import storable
from evennia_ai.recall.embedding import Embedder, default_embedder
from evennia_ai.recall.ranking import Lexicon, LinearModel, ranked, stem_of, turn_words
from evennia_ai.recall.values import Hit, Turn, stored_moment
from evennia_ai.recall.view import Ints, Records, View, new_records, record_type

# Increased when what is stored changes meaning; a file of another version is emptied, as it can be
# rebuilt from what the game stores.
SCHEMA_VERSION = 4
# Turns of a transaction, and records of a block.
_BATCH, _BLOCK = 2_000, 64
# Beyond so many turns in memory, scopes that were not asked for long are read again; beyond so many
# words, all are. Audiences of a scope whose order is kept.
_MOST_TURNS, _MOST_WORDS, _MOST_VIEWS = 500_000, 200_000, 8
# A turn's number is that of its scope, shifted, and its place.
_SHIFT = 32
_PLACES = (1 << _SHIFT) - 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS scopes (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, size INTEGER NOT NULL DEFAULT 0,
    filling INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS turns (
    number INTEGER PRIMARY KEY, scope INTEGER NOT NULL, id TEXT NOT NULL, speaker TEXT NOT NULL,
    text TEXT NOT NULL, at, session TEXT, audience TEXT NOT NULL, kind TEXT NOT NULL,
    words TEXT NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS turns_by_id ON turns (scope, id);
CREATE TABLE IF NOT EXISTS blocks (number INTEGER PRIMARY KEY, records BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS names (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS unclean (number INTEGER PRIMARY KEY);
CREATE VIRTUAL TABLE IF NOT EXISTS said USING fts5(
    stems, content='', detail=none, columnsize=0, tokenize='ascii');
"""
_TABLES = ("said", "turns", "scopes", "blocks", "names", "unclean", "removed", "filling")
_NEW_SCOPE = "INSERT INTO scopes (name) VALUES (?) ON CONFLICT (name) DO NOTHING"
_UNCLEAN = "INSERT OR IGNORE INTO unclean VALUES (1)"
_LISTED = "(SELECT value FROM json_each(?))"
_TURN = "id, speaker, text, at, session, audience, kind"
# Suffix of a damaged file that was put aside, and suffixes of a database's files.
_ASIDE, _PARTS = ".damaged", ("", "-wal", "-shm")


class _Scope:
    """What is in memory of a scope: its records by place, and the words of turns looked at."""

    def __init__(self, number: int, records: Records):
        self.number, self.size, self._records = number, len(records), records
        self.views: dict[str | None, View] = {}
        self.words: dict[int, Ints] = {}

    def __len__(self) -> int:
        return self.size

    @property
    def records(self) -> Records:
        return self._records[: self.size]

    def put(self, place: int, records: Records) -> None:
        """Add records at a place."""
        self.size = place + len(records)
        if self.size > len(self._records):
            spare = np.zeros(self.size // 4 + len(records), records.dtype)
            self._records = np.concatenate([self._records[:place], records, spare])
        self._records[place : self.size] = records
        self.views.clear()

    def drop(self, places: Sequence[int]) -> None:
        """Take turns out."""
        self._records[list(places)] = np.zeros((), self._records.dtype)
        self.views.clear()
        for place in places:
            self.words.pop(place, None)


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
        self, path: Path | str, embedder: Embedder | None = None, model: LinearModel | None = None
    ):
        self._path, self._model = str(path), model
        self._embedder = embedder if embedder is not None else default_embedder()
        self._lock = threading.RLock()
        self._scopes: OrderedDict[int, _Scope] = OrderedDict()
        self._names: dict[str, int] = {}
        self._lexicon = Lexicon(self._embedder)
        self._type = record_type(self._embedder.dims)
        self.damaged = False
        try:
            self._db = self._opened()
        except sqlite3.DatabaseError as error:
            raise StoreError(
                f"The recall index `{self._path}` cannot be opened ({error}); delete the file and "
                "rebuild the index."
            ) from error
        self._changes = self._change_count()

    def _opened(self) -> sqlite3.Connection:
        self._db = db = sqlite3.connect(self._path, timeout=10, check_same_thread=False)
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "secure_delete=ON"):
            db.execute(f"PRAGMA {pragma}")
        version = SCHEMA_VERSION << 16 | self._type.itemsize
        older = db.execute("PRAGMA user_version").fetchone()[0] not in (0, version)
        for table in _TABLES if older else ():
            db.execute(f"DROP TABLE IF EXISTS {table}")
        db.executescript(_SCHEMA)
        if older:
            with db:
                db.execute(_UNCLEAN)
        db.execute(f"PRAGMA user_version={version}")
        if db.execute("SELECT 1 FROM unclean").fetchone():
            self._clean()
        return db

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        with self._lock:
            try:
                if self._changes != (changes := self._change_count()):
                    self._forget(changes)  # another connection has written to the file
                yield
            except BaseException as error:
                self._forget(-1)  # something may have been changed in part
                self.damaged = self.damaged or is_damage(error)
                raise

    def _change_count(self) -> int:
        return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def _forget(self, changes: int) -> None:
        self._scopes.clear()
        self._names.clear()
        self._changes = changes

    def add(self, scope: str, turns: Iterable[Turn]) -> int:
        """Add turns to a scope (an assistant's stable id); returns how many were new or changed.

        A known id replaces its old turn; of several with one id the last counts. Fields that are
        not text are converted by `str`. Each 2,000 turns are one transaction.
        """
        last = list({turn.id: turn for turn in map(_normal, turns)}.values())
        with self._at_work():
            return sum(self._add(scope, last[n : n + _BATCH]) for n in range(0, len(last), _BATCH))

    def _add(self, name: str, turns: Sequence[Turn]) -> int:
        number, size = self._scope_row(name)
        known = self._places_of(number, [turn.id for turn in turns])
        same = self._turns(number, known.values())
        fresh = [turn for turn in turns if same.get(known.get(turn.id, -1)) != turn]
        if not fresh:
            return 0
        vectors = self._embedder.embed([turn.text for turn in fresh])
        replaced = [known[turn.id] for turn in fresh if turn.id in known]
        with self._db:
            self._db.execute(_NEW_SCOPE, (name,))
            number, size = self._scope_row(name)
            self._remove(number, replaced)
            names = {name for t in fresh for name in (t.speaker, t.audience or "", t.kind)}
            records = new_records(fresh, vectors, self._numbers_of(names), self._type)
            self._insert(number, size, fresh)
            self._write(number, size, records)
            size += len(fresh)
            self._db.execute("UPDATE scopes SET size=? WHERE number=?", (size, number))
        if (held := self._scopes.get(number)) is not None:
            held.drop(replaced)
            held.put(size - len(fresh), records)
        if replaced:
            self._clean_up()
        return len(fresh)

    def _insert(self, scope: int, size: int, turns: Sequence[Turn]) -> None:
        first = (scope << _SHIFT) + size
        query = f"INSERT INTO turns (scope, number, {_TURN}, words) VALUES ({'?,' * 9}?)"
        for number, turn in enumerate(turns, first):
            said = turn_words(turn.text)
            self._db.execute(query, (scope, number, *astuple(turn), " ".join(said)))
            indexed = (number, _stems(said))
            self._db.execute("INSERT INTO said (rowid, stems) VALUES (?, ?)", indexed)

    def _numbers_of(self, names: Collection[str] = ()) -> Mapping[str, int]:
        """Numbers of speakers, audiences and kinds; new ones are stored."""
        if fresh := [(name,) for name in sorted(names) if name not in self._names]:
            self._db.executemany("INSERT OR IGNORE INTO names (name) VALUES (?)", fresh)
        if fresh or not self._names:
            self._names = dict(self._db.execute("SELECT name, number FROM names").fetchall())
        return self._names

    def _write(self, scope: int, place: int, records: Records) -> None:
        """Write records to the blocks they belong to."""
        while len(records):
            block, at = divmod(place, _BLOCK)
            some, records = records[: _BLOCK - at], records[_BLOCK - at :]
            number, width = scope << _SHIFT | block, self._type.itemsize
            query = "INSERT OR IGNORE INTO blocks VALUES (?, zeroblob(?))"
            self._db.execute(query, (number, _BLOCK * width))
            with self._db.blobopen("blocks", "records", number) as blob:
                blob.seek(at * width)
                blob.write(some.tobytes())
            place += len(some)

    def _remove(self, scope: int, places: Sequence[int]) -> None:
        """Remove turns, in a transaction after which `_clean` must follow."""
        if not places:
            return
        for place, *_, said in self._rows(scope, places):
            number = scope << _SHIFT | place
            query = "INSERT INTO said (said, rowid, stems) VALUES ('delete', ?, ?)"
            self._db.execute(query, (number, _stems(said.split())))
            self._db.execute("DELETE FROM turns WHERE number=?", (number,))
            self._write(scope, place, np.zeros(1, self._type))
        self._db.execute(_UNCLEAN)

    def _clean_up(self) -> None:
        """Leave no byte of removed turns, nor what was put aside, which may hold them too."""
        for part in _PARTS:
            Path(f"{self._path}{_ASIDE}{part}").unlink(missing_ok=True)
        if self._db.execute("SELECT 1 FROM unclean").fetchone():
            self._clean()

    def _clean(self) -> None:
        with self._db:
            # Merging all words leaves out those of removed turns; VACUUM all else.
            self._db.execute("INSERT INTO said (said) VALUES ('optimize')")
            self._db.execute(
                "DELETE FROM names WHERE name NOT IN (SELECT speaker FROM turns"
                " UNION SELECT audience FROM turns UNION SELECT kind FROM turns)"
            )
        self._names.clear()
        self._db.execute("VACUUM")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        with self._db:
            self._db.execute("DELETE FROM unclean")

    def remove(self, scope: str, ids: Iterable[str]) -> int:
        """Remove turns from all files, and a damaged file kept aside; returns how many."""
        wanted = [storable(str(each)) for each in ids]
        if not wanted:
            return 0
        with self._at_work():
            number, _ = self._scope_row(scope)
            places = list(self._places_of(number, wanted).values())
            with self._db:
                self._remove(number, places)
            if number in self._scopes:
                self._scopes[number].drop(places)
            self._clean_up()
            return len(places)

    def clear(self, scope: str, at_most: int | None = None) -> int:
        """Remove all turns of a scope, or `at_most` so many, as a hundred thousand take seconds.

        Returns how many: fewer than `at_most` if none is left, and only then no words stay in the
        file.
        """
        with self._at_work():
            number, _ = self._scope_row(scope)
            query = "SELECT number & ? FROM turns WHERE scope=? ORDER BY number LIMIT ?"
            limit = -1 if at_most is None else at_most
            found = self._db.execute(query, (_PLACES, number, limit)).fetchall()
            is_last = at_most is None or len(found) < at_most
            self._scopes.pop(number, None)
            with self._db:
                self._remove(number, [place for (place,) in found])
                if is_last:
                    low = number << _SHIFT
                    query = "DELETE FROM blocks WHERE number BETWEEN ? AND ?"
                    self._db.execute(query, (low, low | _PLACES))
                    self._db.execute("UPDATE scopes SET size=0 WHERE number=?", (number,))
            if is_last:
                self._clean_up()
            return len(found)

    def set_filling(self, scope: str, filling: bool) -> None:
        """Note in the file whether a scope is being filled, for a start after a crash."""
        with self._at_work(), self._db:
            self._db.execute(_NEW_SCOPE, (scope,))
            self._db.execute("UPDATE scopes SET filling=? WHERE name=?", (filling, scope))

    def is_filling(self, scope: str) -> bool:
        """Whether the filling of a scope began and has not ended."""
        with self._at_work():
            query = "SELECT 1 FROM scopes WHERE name=? AND filling"
            return self._db.execute(query, (scope,)).fetchone() is not None

    def count(self, scope: str) -> int:
        """How many turns a scope has."""
        with self._at_work():
            number, _ = self._scope_row(scope)
            query = "SELECT count(*) FROM turns WHERE scope=?"
            return int(self._db.execute(query, (number,)).fetchone()[0])

    def get(self, scope: str, ids: Iterable[str]) -> tuple[Turn, ...]:
        """Turns by id, in the order asked, without unknown ids."""
        wanted = [storable(str(each)) for each in ids]
        with self._at_work():
            number, _ = self._scope_row(scope)
            places = self._places_of(number, wanted)
            turns = self._turns(number, places.values())
        return tuple(turns[places[each]] for each in wanted if each in places)

    def search(
        self, scope: str, query: str, limit: int = 10, audience: str | None = None
    ) -> list[Hit]:
        """At most `limit` turns that answer a query, best first.

        What the audience may not know (see `history.audience.viewer` and `visible`) is neither
        found nor has any influence; None searches everything. The order depends only on the query
        and the turns. A query without a word to look for finds nothing.
        """
        with self._at_work():
            number, _ = self._scope_row(scope)
            if not number or limit <= 0:
                return []
            view = self._view(number, None if audience is None else viewer(audience))
            best = ranked(view, str(query), self._lexicon, self._model)[:limit]
            turns = self._turns(number, [place for place, *_ in best])
        return [_hit(turns[place], score, matches) for place, score, matches in best]

    def _view(self, number: int, seen_by: str | None) -> View:
        """What one audience sees of a scope, or everything for None."""
        if len(self._lexicon) > _MOST_WORDS:
            self._lexicon = Lexicon(self._embedder)
            self._scopes.clear()
        scope = self._scopes.get(number)
        if scope is None:
            scope = self._scopes[number] = _Scope(number, self._records(number))
            while len(self._scopes) > 1 and sum(map(len, self._scopes.values())) > _MOST_TURNS:
                self._scopes.popitem(last=False)
        self._scopes.move_to_end(number)
        if seen_by not in scope.views:
            if len(scope.views) >= _MOST_VIEWS:
                scope.views.clear()
            scope.views[seen_by] = self._new_view(scope, seen_by)
        return scope.views[seen_by]

    def _new_view(self, scope: _Scope, seen_by: str | None) -> View:
        numbers = self._numbers_of()
        names = [""] * (1 + max(numbers.values(), default=0))
        for name, number in numbers.items():
            names[number] = name
        shown = np.array([seen_by is None or visible(name, seen_by) for name in names])
        records = scope.records
        places = np.flatnonzero((records["kind"] > 0) & shown[records["audience"]])
        return View(
            records, places, names, partial(self._holders, scope), partial(self._words, scope)
        )

    def _records(self, number: int) -> Records:
        query, low = "SELECT size FROM scopes WHERE number=?", number << _SHIFT
        (size,) = self._db.execute(query, (number,)).fetchone()
        records = np.zeros(size + _BLOCK, self._type)
        query = "SELECT number & ?, records FROM blocks WHERE number BETWEEN ? AND ?"
        for block, held in self._db.execute(query, (_PLACES, low, low | _PLACES)):
            at = block * _BLOCK
            records[at : at + _BLOCK] = np.frombuffer(held, self._type)[: len(records) - at]
        return records[:size]

    def _holders(self, scope: _Scope, stem: str) -> Ints:
        """The places of a scope that hold a stem."""
        low = scope.number << _SHIFT
        # Numbers joined in SQLite: rows of one number each would take five times as long.
        query = "SELECT group_concat(rowid) FROM said WHERE said MATCH ? AND rowid BETWEEN ? AND ?"
        (text,) = self._db.execute(query, (f'"{stem}"', low, low | _PLACES)).fetchone()
        return np.fromstring(text or "", dtype=np.int64, sep=",") - low

    def _words(self, scope: _Scope, places: Ints) -> tuple[Ints, Ints]:
        """The numbers of the words at some places, one after the other, and how many each has."""
        held, asked = scope.words, places.tolist()
        missing = [place for place in asked if place not in held]
        for place, *_, said in self._rows(scope.number, missing):
            held[place] = np.array(self._lexicon.numbers(said.split()), dtype=np.int32)
        found = [held[place] for place in asked]
        return np.concatenate(found), np.array([len(each) for each in found])

    def _scope_row(self, name: str) -> tuple[int, int]:
        """Number and size of a scope; zeros if there is none of that name."""
        row = self._db.execute("SELECT number, size FROM scopes WHERE name=?", (name,)).fetchone()
        return row or (0, 0)

    def _places_of(self, scope: int, ids: Iterable[str]) -> dict[str, int]:
        """The places of turns by id; unknown ids are left out."""
        query = f"SELECT id, number & ? FROM turns WHERE scope=? AND id IN {_LISTED}"
        return dict(self._db.execute(query, (_PLACES, scope, json.dumps(list(ids)))).fetchall())

    def _turns(self, scope: int, places: Iterable[int]) -> dict[int, Turn]:
        """Turns by place."""
        return {place: Turn(*turn) for place, *turn, _ in self._rows(scope, places)}

    def _rows(self, scope: int, places: Iterable[int]) -> list[tuple[Any, ...]]:
        """Of some turns: place, what a `Turn` has, and words."""
        numbers = json.dumps([scope << _SHIFT | place for place in places])
        query = f"SELECT number & ?, {_TURN}, words FROM turns WHERE number IN {_LISTED}"
        return self._db.execute(query, (_PLACES, numbers)).fetchall()

    def close(self) -> None:
        """Close the file. Searching afterwards is an error."""
        with self._lock:
            self._scopes.clear()
            self._db.close()

    @staticmethod
    def set_aside(path: Path) -> None:
        """Rename a damaged file that is not open; it is deleted with the next removal of a turn."""
        for part in _PARTS:
            file = Path(f"{path}{part}")
            if file.exists():
                file.replace(f"{path}{_ASIDE}{part}")


def is_damage(error: BaseException | None) -> bool:
    """Whether an error says that a file is no sound database; not if it is busy, full or closed."""
    code = getattr(error, "sqlite_errorcode", None) or 0
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _normal(turn: Turn) -> Turn:
    """A turn as it is stored."""
    session = None if turn.session is None else _text(turn.session)
    texts = (_text(turn.id), _text(turn.speaker), _text(turn.text))
    return Turn(
        *texts, stored_moment(turn.at), session, normalised(turn.audience), _text(turn.kind)
    )


def _text(value: object) -> str:
    return "" if value is None else storable(str(value))


def _stems(said: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(map(stem_of, said)))


def _hit(turn: Turn, score: float, matches: bool) -> Hit:
    at, session = stored_moment(turn.at), None if turn.session is None else str(turn.session)
    audience = normalised(turn.audience)
    said = (turn.speaker, turn.text, at, turn.kind, session, audience)
    return Hit(turn.id, score, *said, matches)
