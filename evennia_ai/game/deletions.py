"""Derived data of deleted assistants: a queue of deletions that survives a crash.

The search index and semantic memory are files beside the game's database, and no transaction
spans them all. So an assistant's scope is queued here before its body is deleted.
"""

from collections.abc import Generator
from typing import Any

from evennia.server.models import ServerConfig
from evennia.utils import logger
from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai import services
from evennia_ai.errors import AssistantError
from evennia_ai.game.identity import find
from evennia_ai.rag_memory.search import Memory

KEY = "evennia_ai_owed_deletions"


def queued_scopes() -> list[str]:
    """The scopes whose derived data must be deleted."""
    return str(ServerConfig.objects.conf(KEY, default="")).split()


def enqueue(scope: str) -> None:
    """Queue the deletion of an assistant's derived data."""
    _save([*(other for other in queued_scopes() if other != scope), scope])


def dequeue(scope: str) -> None:
    """Take a scope off the queue."""
    _save([other for other in queued_scopes() if other != scope])


def _save(scopes: list[str]) -> None:
    # A text, because Evennia returns lists as objects that are tied to their row.
    ServerConfig.objects.conf(KEY, " ".join(scopes), delete=not scopes)


def delete_later(scope: str) -> None:
    """Delete a script's derived data once the script is gone, unless that is queued already."""
    from twisted.internet import reactor  # as late as possible: importing it installs one

    if scope not in queued_scopes():
        enqueue(scope)
        reactor.callLater(0, delete_queued)


@inlineCallbacks
def delete_derived(scope: str) -> Generator["Deferred[Any]", Any, None]:
    """Delete a deleted assistant's search index and semantic memory; what fails stays queued."""
    mind = services.mind()
    memory = Memory(scope, mind.recall, lambda: mind.memories, lambda what, e: _log(scope, e))
    cleared = yield memory.clear()
    try:
        ids = yield mind.memories.ids(scope)
        yield mind.memories.delete(scope, ids)
    except AssistantError as error:
        _log(scope, error)
        return
    if cleared is not None:
        dequeue(scope)


@inlineCallbacks
def delete_queued() -> Generator["Deferred[Any]", Any, None]:
    """Delete what earlier deletions left; fires when everything was tried."""
    for scope in queued_scopes():
        if find(scope) is None:
            yield delete_derived(scope)
        else:
            dequeue(scope)  # the body stayed


def _log(scope: str, error: BaseException) -> None:
    logger.log_err(
        f"[ai] memories of the deleted assistant {scope} are left over and are deleted at the "
        f"next start: {type(error).__name__}: {error}"
    )
