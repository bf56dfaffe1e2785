"""What the game's database keeps of deleted rows, and how it is cleared.

A database only marks deleted rows as free; their bytes stay until something else is written over
them. Rewriting drops them: the file of a SQLite game, the tables that hold talk in a PostgreSQL
game. No rewriting reaches copies that others keep: backups, replicas, PostgreSQL's write-ahead log.
"""

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from evennia.comms.models import Msg
from evennia.server.models import ServerConfig
from evennia.typeclasses.attributes import Attribute
from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai import services

SQLITE = "The database file was rewritten without its free pages."
POSTGRESQL = (
    "The tables of the database were rewritten without deleted rows. Its log and its backups keep "
    "them for as long as its administrator keeps these."
)
ELSEWHERE = "The database keeps deleted rows until its administrator clears them."
# How long the database waits for the one that rewrites it, seconds.
_REWRITE_S = 600
_FILES = "SELECT relname, relfilenode FROM pg_class WHERE oid = ANY(%s::regclass[])"


@inlineCallbacks
def erase_free_pages() -> Generator["Deferred[Any]", Any, str]:
    """Rewrite the game's database, so that nothing of what was deleted is left in it.

    It runs on a thread; a statement of the game waits meanwhile, about a second for each 100 MB.
    Fires with a sentence that says what was done: nothing, if the database is of another kind, is
    in memory, or does not let the game's user rewrite it.
    """
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite" and Path(name).is_file():
        with _patient():
            yield services.on_disk(rewrite_file, Path(name))
        return SQLITE
    # A transaction of our own that is open would hold up the rewriting for ever.
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        is_done = yield services.on_disk(rewrite_tables, connection)
        return POSTGRESQL if is_done else ELSEWHERE
    return ELSEWHERE


@contextmanager
def _patient() -> Iterator[None]:
    """Let the game's own connection wait for the rewriting, instead of failing after seconds."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        [before] = cursor.fetchone()
        cursor.execute(f"PRAGMA busy_timeout = {_REWRITE_S * 1000}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {before}")


def rewrite_file(path: Path) -> None:
    """Rewrite a SQLite file without its free pages, and empty its log."""
    with closing(sqlite3.connect(path, timeout=_REWRITE_S, isolation_level=None)) as database:
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def rewrite_tables(of: BaseDatabaseWrapper) -> bool:
    """Rewrite the PostgreSQL tables that hold talk; whether all were, as only their owner may."""
    tables = [model._meta.db_table for model in (Attribute, Msg, ServerConfig)]
    own = of.copy()  # a connection belongs to the thread that uses it
    try:
        with own.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = '{_REWRITE_S}s'")
            cursor.execute(_FILES, [tables])
            before = dict(cursor.fetchall())
            for table in tables:
                cursor.execute(f"VACUUM (FULL, ANALYZE) {own.ops.quote_name(table)}")
            cursor.execute(_FILES, [tables])
            # A table that the user does not own is left out with a mere warning.
            return all(before[table] != file for table, file in cursor.fetchall())
    finally:
        own.close()
