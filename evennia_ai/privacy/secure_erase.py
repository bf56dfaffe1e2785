"""What the game's database keeps of deleted rows, and how it is cleared.

A database only marks deleted rows as free; their bytes stay until something else is written over
them. Rewriting drops them: the file of a SQLite game, the tables that hold talk in a PostgreSQL
game. No rewriting reaches copies that others keep: backups, replicas, PostgreSQL's write-ahead log.
"""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from django.db import connection
from evennia.comms.models import Msg
from evennia.server.models import ServerConfig
from evennia.typeclasses.attributes import Attribute
from twisted.internet.defer import inlineCallbacks

from evennia_ai import services
from evennia_ai.background import Steps
from evennia_ai.models import Event

SQLITE = "The database file was rewritten without its free pages."
POSTGRESQL = (
    "The tables of the database that its user owns were rewritten without deleted rows. Its log "
    "and its backups keep them for as long as its administrator keeps these."
)
ELSEWHERE = "The database keeps deleted rows until its administrator clears them."
# How long the database waits for the one that rewrites it, seconds.
_REWRITE_S = 600
_WAIT = f"PRAGMA busy_timeout = {_REWRITE_S * 1000}"
_TABLES = ", ".join(f'"{model._meta.db_table}"' for model in (Attribute, Msg, ServerConfig, Event))
_SQLITE = (_WAIT, "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
_POSTGRESQL = (f"SET lock_timeout = '{_REWRITE_S}s'", f"VACUUM (FULL, ANALYZE) {_TABLES}")


@inlineCallbacks
def erase_free_pages() -> Steps[str]:
    """Rewrite the game's database, so that nothing of what was deleted is left in it.

    It runs on a thread; a statement of the game waits meanwhile, about a second for each 100 MB.
    Fires with a sentence that says what was done: nothing, if the database is of another kind or in
    memory.
    """
    if connection.vendor == "sqlite" and Path(str(connection.settings_dict["NAME"])).is_file():
        # The game's own connection waits for it meanwhile, instead of failing after seconds.
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout")
            [before] = cursor.fetchone()
            cursor.execute(_WAIT)
        try:
            yield services.on_disk(_run, _SQLITE)
        finally:
            with connection.cursor() as cursor:
                cursor.execute(f"PRAGMA busy_timeout = {before}")
        return SQLITE
    # A transaction of our own that is open would hold up the rewriting for ever.
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        yield services.on_disk(_run, _POSTGRESQL)
        return POSTGRESQL
    return ELSEWHERE


def _run(statements: Sequence[str]) -> None:
    """Run statements on a connection of their own: one belongs to the thread that uses it."""
    with closing(connection.copy()) as own, own.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
