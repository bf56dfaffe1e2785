"""The index's file: turns, their words (FTS5) and their vectors, in one SQLite database."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evennia_ai.errors import StoreError
from evennia_ai.language.names import names_among

# A stored turn, ``(rowid, *COLUMNS)``; a new one is without its rowid.
Row = tuple[Any, ...]
# Increased when what is stored per turn changes meaning; an older file is emptied, as it can be
# rebuilt from what the game stores.
SCHEMA_VERSION = 2
# A turn's rowid is its scope's number times this plus its own, so that a scope is one range.
SCOPE_SPAN = 1 << 40
_CHUNK = 500

_SCHEMA = """
CREATE TABLE IF NOT EXISTS scopes (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, last INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS turns (
    rowid INTEGER PRIMARY KEY, scope INTEGER NOT NULL, id TEXT NOT NULL, speaker TEXT NOT NULL,
    text TEXT NOT NULL, at, time REAL NOT NULL, session TEXT, audience TEXT NOT NULL,
    kind TEXT NOT NULL, traits INTEGER NOT NULL, vector BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS filling (scope INTEGER PRIMARY KEY);
CREATE UNIQUE INDEX IF NOT EXISTS turns_by_id ON turns (scope, id);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(
    text, content='turns', content_rowid='rowid', detail=none, tokenize='unicode61');
CREATE VIRTUAL TABLE IF NOT EXISTS vocabulary USING fts5vocab('words', 'row');
"""
_DROP = """
DROP TABLE IF EXISTS vocabulary; DROP TABLE IF EXISTS words; DROP TABLE IF EXISTS turns;
DROP TABLE IF EXISTS scopes; DROP TABLE IF EXISTS filling;
"""
# Suffix of a damaged file that was put aside, and suffixes of a database's files.
_ASIDE, _PARTS = ".damaged", ("", "-wal", "-shm")
_NEW_SCOPE = "INSERT INTO scopes (name) VALUES (?) ON CONFLICT (name) DO NOTHING"
COLUMNS = "id, speaker, text, at, time, session, audience, kind, traits, vector"


class Store:
    """One SQLite file. Not thread-safe by itself: `RecallIndex` holds a lock around it."""

    def __init__(self, path: Path | str):
        self.path = str(path)
        try:
            self._db = sqlite3.connect(self.path, timeout=10, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("PRAGMA secure_delete=ON")
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            with self._db:
                if version not in (0, SCHEMA_VERSION):
                    self._db.executescript(_DROP)
                self._db.executescript(_SCHEMA)
                self._db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        except sqlite3.DatabaseError as error:
            raise StoreError(
                f"The recall index `{self.path}` cannot be opened ({error}); delete the file and "
                "rebuild the index."
            ) from error

    def change_count(self) -> int:
        """A number that changes when another connection has written to the file."""
        return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def scope_number(self, name: str) -> int:
        """The number of a scope; 0 if there is none of that name."""
        row = self._db.execute("SELECT number FROM scopes WHERE name=?", (name,)).fetchone()
        return int(row[0]) if row else 0

    def set_filling(self, name: str, filling: bool) -> None:
        """Note whether a scope is being filled; a missing scope is made."""
        note, drop = "INSERT OR IGNORE INTO filling VALUES (?)", "DELETE FROM filling WHERE scope=?"
        with self._db:
            self._db.execute(_NEW_SCOPE, (name,))
            self._db.execute(note if filling else drop, (self.scope_number(name),))

    def is_filling(self, scope: int) -> bool:
        """Whether a scope is noted as being filled."""
        query = "SELECT 1 FROM filling WHERE scope=?"
        return self._db.execute(query, (scope,)).fetchone() is not None

    def rows_of_ids(self, scope: int, ids: Iterable[str]) -> dict[str, Row]:
        """Stored rows ``(rowid, id, speaker, …)`` by turn id; unknown ids are left out."""
        return {row[1]: row for row in self._rows_in("scope=? AND id", (scope,), list(ids))}

    def rows(self, rowids: Sequence[int]) -> dict[int, Row]:
        """Stored rows ``(rowid, id, speaker, …)`` by rowid."""
        return {row[0]: row for row in self._rows_in("rowid", (), rowids)}

    def _rows_in(self, column: str, before: Row, wanted: Sequence[int | str]) -> Iterator[Row]:
        for start in range(0, len(wanted), _CHUNK):
            chunk = wanted[start : start + _CHUNK]
            marks = ",".join("?" * len(chunk))
            query = f"SELECT rowid, {COLUMNS} FROM turns WHERE {column} IN ({marks})"
            yield from self._db.execute(query, (*before, *chunk))

    def replace(self, name: str, gone: Sequence[Row], rows: Sequence[Row]) -> int:
        """Delete and store rows of a scope, made if missing, all or nothing; returns its number."""
        with self._db:
            self._db.execute(_NEW_SCOPE, (name,))
            self._delete(gone)
            query = "SELECT number, last FROM scopes WHERE name=?"
            number, last = self._db.execute(query, (name,)).fetchone()
            numbered = list(enumerate(rows, number * SCOPE_SPAN + last + 1))
            marks = ",".join("?" * 12)
            self._db.executemany(
                f"INSERT INTO turns (rowid, scope, {COLUMNS}) VALUES ({marks})",
                ((rowid, number, *row) for rowid, row in numbered),
            )
            self._db.executemany(
                "INSERT INTO words (rowid, text) VALUES (?, ?)",
                ((rowid, row[2]) for rowid, row in numbered),
            )
            self._db.execute("UPDATE scopes SET last=last+? WHERE number=?", (len(rows), number))
            if gone:
                self._tidy()
        if gone:
            self._checkpoint()
            self.delete_aside()
        return int(number)

    def delete(self, rows: Sequence[Row], tidy: bool = True) -> None:
        """Delete rows from the file; without `tidy` their words stay until a later removal."""
        with self._db:
            self._delete(rows)
            if tidy:
                self._tidy()
        if tidy:
            self._checkpoint()

    def _delete(self, rows: Sequence[Row]) -> None:
        self._db.executemany(
            "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)",
            ((row[0], row[3]) for row in rows),
        )
        self._db.executemany("DELETE FROM turns WHERE rowid=?", ((row[0],) for row in rows))

    def _tidy(self) -> None:
        # A deleted row's words stay in older segments of the FTS index until they merge.
        self._db.execute("INSERT INTO words (words) VALUES ('optimize')")

    def _checkpoint(self) -> None:
        # Copies of rows that SQLite has moved may stay in the unused parts of pages, also with
        # `secure_delete`.
        self._db.execute("VACUUM")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def delete_aside(self) -> None:
        """Delete a damaged file that was put aside: it may hold what is to be removed."""
        for part in _PARTS:
            Path(f"{self.path}{_ASIDE}{part}").unlink(missing_ok=True)

    def scope_rows(self, scope: int, after: int = 0, at_most: int | None = None) -> Iterator[Row]:
        """Rows ``(rowid, id, …)`` of a scope whose rowid is above `after`, in order."""
        low, high = _range(scope)
        query = f"SELECT rowid, {COLUMNS} FROM turns WHERE rowid > ? AND rowid < ? ORDER BY rowid"
        limit = -1 if at_most is None else at_most
        return self._db.execute(f"{query} LIMIT ?", (max(low, after), high, limit))

    def count(self, scope: int) -> int:
        """How many turns a scope has."""
        query = "SELECT count(*) FROM turns WHERE rowid > ? AND rowid < ?"
        return int(self._db.execute(query, _range(scope)).fetchone()[0])

    def vocabulary(self) -> list[str]:
        """All words of all scopes, as FTS5 keeps them."""
        return [row[0] for row in self._db.execute("SELECT term FROM vocabulary")]

    def rowids_of_word(self, scope: int, word: str, after: int = 0) -> list[int]:
        """Rowids above `after` of a scope's turns that hold a word, ascending."""
        low, high = _range(scope)
        query = "SELECT rowid FROM words WHERE words MATCH ? AND rowid > ? AND rowid < ?"
        phrase = '"' + word.replace('"', "") + '"'
        try:
            return [row[0] for row in self._db.execute(query, (phrase, max(low, after), high))]
        except sqlite3.OperationalError:
            # FTS5 would split this word further, and keeps no positions to find it by.
            return []

    def rowids_of_name(self, scope: int, name: str, after: int = 0) -> list[int]:
        """As `rowids_of_word`, only turns where a word like `will` means somebody."""
        low, high = _range(scope)
        query = (
            "SELECT rowid, text FROM turns WHERE rowid IN (SELECT rowid FROM words WHERE words"
            " MATCH ? AND rowid > ? AND rowid < ?) AND instr(text, ?) ORDER BY rowid"
        )
        rows = self._db.execute(query, (f'"{name}"', max(low, after), high, name.title()))
        return [rowid for rowid, text in rows if name in names_among(text)]

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def is_damage(error: BaseException | None) -> bool:
    """Whether an error says that a file is no sound database; not if it is busy, full or closed."""
    code = getattr(error, "sqlite_errorcode", None) or 0
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def set_aside(path: Path) -> None:
    """Rename a damaged file that is not open; it is deleted with the next removal of a turn."""
    for part in _PARTS:
        file = Path(f"{path}{part}")
        if file.exists():
            file.replace(f"{path}{_ASIDE}{part}")


def _range(scope: int) -> tuple[int, int]:
    return scope * SCOPE_SPAN, (scope + 1) * SCOPE_SPAN
