"""The index's file: turns in one SQLite database.

A removed turn's row stays, emptied: SQLite then overwrites its bytes in place. Rows are added in
ascending order, so SQLite never moves them, and no copy of a row stays in an unused part of a page.
"""

import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evennia_ai.errors import StoreError

# A stored turn, ``(place, *COLUMNS)``; a new one is without its place, which counts from 1 on in
# its scope.
Row = tuple[Any, ...]
# Increased when what is stored per turn changes meaning; an older file is emptied, as it can be
# rebuilt from what the game stores.
SCHEMA_VERSION = 3
_CHUNK = 500
# Memory that arrays may take which are not mapped from files, if nobody says otherwise.
MEMORY_MB = 256

_SCHEMA = """
CREATE TABLE IF NOT EXISTS scopes (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, last INTEGER NOT NULL DEFAULT 0,
    stamp TEXT NOT NULL, written INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS turns (
    number INTEGER PRIMARY KEY, scope INTEGER NOT NULL, place INTEGER NOT NULL, id TEXT,
    speaker TEXT, text TEXT, at, time REAL, session TEXT, audience TEXT, kind TEXT,
    traits INTEGER, vector BLOB);
CREATE TABLE IF NOT EXISTS names (
    row INTEGER PRIMARY KEY, scope INTEGER NOT NULL, kind TEXT NOT NULL, number INTEGER NOT NULL,
    name TEXT);
CREATE TABLE IF NOT EXISTS removed (row INTEGER PRIMARY KEY, scope INTEGER, place INTEGER);
CREATE TABLE IF NOT EXISTS filling (scope INTEGER PRIMARY KEY);
CREATE UNIQUE INDEX IF NOT EXISTS turns_by_id ON turns (scope, id);
CREATE UNIQUE INDEX IF NOT EXISTS turns_by_place ON turns (scope, place);
CREATE UNIQUE INDEX IF NOT EXISTS names_by_number ON names (scope, kind, number);
CREATE INDEX IF NOT EXISTS removed_by_scope ON removed (scope);
"""
_DROP = "".join(
    f"DROP TABLE IF EXISTS {table};"
    for table in ("vocabulary", "words", "turns", "scopes", "filling", "names", "removed")
)
# Suffix of a damaged file that was put aside, and suffixes of a database's files.
_ASIDE, _PARTS = ".damaged", ("", "-wal", "-shm")
_NEW_SCOPE = "INSERT INTO scopes (name, stamp) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
COLUMNS = "id, speaker, text, at, time, session, audience, kind, traits, vector"
_EMPTIED = ", ".join(f"{column}=NULL" for column in COLUMNS.split(", "))


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
            if version not in (0, SCHEMA_VERSION):
                self._vacuum()
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
            self._make_scope(name)
            self._db.execute(note if filling else drop, (self.scope_number(name),))

    def is_filling(self, scope: int) -> bool:
        """Whether a scope is noted as being filled."""
        query = "SELECT 1 FROM filling WHERE scope=?"
        return self._db.execute(query, (scope,)).fetchone() is not None

    def _make_scope(self, name: str) -> None:
        self._db.execute(_NEW_SCOPE, (name, secrets.token_hex(8)))

    def rows_of_ids(self, scope: int, ids: Iterable[str]) -> dict[str, Row]:
        """Stored rows ``(place, id, speaker, …)`` by turn id; unknown ids are left out."""
        return {row[1]: row for row in self._rows_in("id", scope, list(ids))}

    def rows(self, scope: int, places: Sequence[int]) -> dict[int, Row]:
        """Stored rows ``(place, id, speaker, …)`` by place."""
        return {row[0]: row for row in self._rows_in("place", scope, places)}

    def _rows_in(self, column: str, scope: int, wanted: Sequence[int | str]) -> Iterator[Row]:
        for start in range(0, len(wanted), _CHUNK):
            chunk = wanted[start : start + _CHUNK]
            marks = ",".join("?" * len(chunk))
            query = f"SELECT place, {COLUMNS} FROM turns WHERE scope=? AND {column} IN ({marks})"
            yield from self._db.execute(query, (scope, *chunk))

    def replace(self, name: str, gone: Sequence[Row], rows: Sequence[Row]) -> int:
        """Remove and store rows of a scope, made if missing, all or nothing; returns its number."""
        with self._db:
            self._make_scope(name)
            query = "SELECT number, last FROM scopes WHERE name=?"
            number, last = self._db.execute(query, (name,)).fetchone()
            self._empty(number, gone)
            marks = ",".join("?" * 12)
            self._db.executemany(
                f"INSERT INTO turns (scope, place, {COLUMNS}) VALUES ({marks})",
                ((number, place, *row) for place, row in enumerate(rows, last + 1)),
            )
            self._db.execute("UPDATE scopes SET last=last+? WHERE number=?", (len(rows), number))
        return int(number)

    def remove(self, scope: int, gone: Sequence[Row]) -> None:
        """Remove rows of a scope; `finish_removal` ends it."""
        with self._db:
            self._empty(scope, gone)

    def _empty(self, scope: int, gone: Sequence[Row]) -> None:
        places = [(scope, row[0]) for row in gone]
        self._db.executemany(f"UPDATE turns SET {_EMPTIED} WHERE scope=? AND place=?", places)
        self._db.executemany("INSERT INTO removed (scope, place) VALUES (?, ?)", places)

    def removed(self, scope: int) -> list[int]:
        """Places of turns that were removed here but perhaps not yet from other files."""
        query = "SELECT place FROM removed WHERE scope=? ORDER BY place"
        return [row[0] for row in self._db.execute(query, (scope,))]

    def finish_removal(self, scope: int, unnamed: Mapping[str, Sequence[int]]) -> None:
        """Note that turns are removed everywhere, and forget the names that are no more in use.

        Then no byte of them is left in the file.
        """
        with self._db:
            self._db.execute("DELETE FROM removed WHERE scope=?", (scope,))
            self._db.executemany(
                "UPDATE names SET name=NULL WHERE scope=? AND kind=? AND number=?",
                ((scope, kind, number) for kind, each in unnamed.items() for number in each),
            )
        self.checkpoint()

    def checkpoint(self) -> None:
        """Leave nothing in the write-ahead log."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def written(self, scope: int) -> tuple[str, int]:
        """The name of a scope's folder of arrays, and how many turns are surely in it."""
        query = "SELECT stamp, written FROM scopes WHERE number=?"
        stamp, count = self._db.execute(query, (scope,)).fetchone()
        return str(stamp), int(count)

    def stamps(self) -> set[str]:
        """The names of all scopes' folders."""
        return {row[0] for row in self._db.execute("SELECT stamp FROM scopes")}

    def names(self, scope: int) -> dict[str, dict[int, str | None]]:
        """What is numbered in a scope's arrays, by kind and number; None if it was forgotten."""
        found: dict[str, dict[int, str | None]] = {}
        query = "SELECT kind, number, name FROM names WHERE scope=?"
        for kind, number, name in self._db.execute(query, (scope,)):
            found.setdefault(kind, {})[number] = name
        return found

    def set_written(
        self, scope: int, count: int, names: Iterable[tuple[str, int, str | None]]
    ) -> None:
        """Note that so many turns are in the folder, and what their numbers mean.

        Names are ``(kind, number, name)``; with a `count` of 0 those known before are forgotten.
        """
        deleted = 0
        with self._db:
            if not count:
                query = "DELETE FROM names WHERE scope=?"
                deleted = self._db.execute(query, (scope,)).rowcount
            self._db.executemany(
                "INSERT INTO names (scope, kind, number, name) VALUES (?, ?, ?, ?)",
                ((scope, *each) for each in names),
            )
            self._db.execute("UPDATE scopes SET written=? WHERE number=?", (count, scope))
        if deleted:
            self._vacuum()

    def clear(self, scope: int, at_most: int | None = None) -> int:
        """Delete rows of a scope; returns how many, which is less than `at_most` at the end."""
        limit = -1 if at_most is None else at_most
        query = "SELECT number FROM turns WHERE scope=? AND id IS NOT NULL ORDER BY place LIMIT ?"
        stamp = secrets.token_hex(8)
        with self._db:
            gone = self._db.execute(query, (scope, limit)).fetchall()
            self._db.executemany("DELETE FROM turns WHERE number=?", gone)
            is_last = at_most is None or len(gone) < at_most
            for table in ("names", "removed", *(["turns"] if is_last else [])):
                self._db.execute(f"DELETE FROM {table} WHERE scope=?", (scope,))
            last = "last" if not is_last else "0"
            update = f"UPDATE scopes SET written=0, stamp=?, last={last} WHERE number=?"
            self._db.execute(update, (stamp, scope))
        if is_last:
            self._vacuum()
        return len(gone)

    def _vacuum(self) -> None:
        # Deleting rows moves others; copies stay in unused parts of pages, also with
        # `secure_delete`.
        self._db.execute("VACUUM")
        self.checkpoint()

    def delete_aside(self) -> None:
        """Delete a damaged file that was put aside: it may hold what is to be removed."""
        for part in _PARTS:
            Path(f"{self.path}{_ASIDE}{part}").unlink(missing_ok=True)

    def scope_rows(self, scope: int, after: int = 0, up_to: int | None = None) -> Iterator[Row]:
        """Rows ``(place, id, …)`` of a scope whose place is above `after`, in order."""
        query = (
            f"SELECT place, {COLUMNS} FROM turns WHERE scope=? AND place>? AND place<=? "
            "AND id IS NOT NULL ORDER BY place"
        )
        last = self.last(scope) if up_to is None else up_to
        return self._db.execute(query, (scope, after, last))

    def last(self, scope: int) -> int:
        """The place of a scope's newest turn; 0 if it never had one."""
        query = "SELECT last FROM scopes WHERE number=?"
        row = self._db.execute(query, (scope,)).fetchone()
        return int(row[0]) if row else 0

    def count(self, scope: int) -> int:
        """How many turns a scope has."""
        query = "SELECT count(*) FROM turns WHERE scope=? AND id IS NOT NULL"
        return int(self._db.execute(query, (scope,)).fetchone()[0])

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
