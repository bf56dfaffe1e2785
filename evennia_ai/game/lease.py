"""One assistant lives in one server at a time, where several share a PostgreSQL database.

Each server holds an advisory lock for each assistant that lives in it. The database frees it when
the server's connection ends, however that happens, so another server takes over within seconds. A
server in which an assistant does not live leaves its Attributes alone: it neither hears nor ticks.

A SQLite file belongs to one server, as Evennia holds Attributes in memory.
"""

from typing import TYPE_CHECKING
from zlib import crc32

from django.db import connection

from evennia_ai.game.evennia_internals import forget_cached

if TYPE_CHECKING:
    from evennia import DefaultScript

# The first number of the locks; the second is made of the assistant's scope.
LOCKS = 0x41_49
# How long a server waits before it asks for a lock again that another one holds.
RETRY_S = 1.0
ELSEWHERE = (
    "{name} lives in another server that shares this database, and neither hears nor answers in "
    "this one. This server takes over when that one has stopped."
)


class Residences:
    """Which assistants live in this process."""

    def __init__(self) -> None:
        self._session: object = None  # the connection that holds the locks
        self._held: set[str] = set()
        self._asked: dict[str, float] = {}

    def is_here(self, scope: str, now: float) -> bool:
        """Whether an assistant lives here, after taking its lock if that is free."""
        if connection.vendor != "postgresql":
            return True
        if connection.connection is None or connection.connection is not self._session:
            connection.ensure_connection()
            self._session, self._held = connection.connection, set()
        if scope not in self._held and not 0 <= now - self._asked.get(scope, -RETRY_S) < RETRY_S:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", lock_of(scope))
                if cursor.fetchone()[0]:
                    self._held.add(scope)
                    self._asked.pop(scope, None)
                else:
                    self._asked[scope] = now
        return scope in self._held

    def is_elsewhere(self, scope: str) -> bool:
        """Whether another server held the lock when this one last asked."""
        return scope in self._asked


def lock_of(scope: str) -> tuple[int, int]:
    """The two numbers of an assistant's lock."""
    return LOCKS, crc32(scope.encode()) - 2**31


_here = Residences()


def lives_here(script: "DefaultScript") -> bool:
    """Whether a script's assistant lives in this server; prepares it if it has just moved in."""
    was_elsewhere = is_elsewhere(script)
    is_here = _here.is_here(script.scope, script.now())
    if is_here and was_elsewhere:
        for stored in (script, script.obj):
            forget_cached(stored)  # another server has changed what this one has in memory
        script.moved_in()
    return is_here


def is_elsewhere(script: "DefaultScript") -> bool:
    """Whether a script's assistant lived in another server when this one last asked."""
    return _here.is_elsewhere(script.scope)


def reconnect() -> None:
    """Drop the game's connection if the database has closed it, so that the next use makes one."""
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()
