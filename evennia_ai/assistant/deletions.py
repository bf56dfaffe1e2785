"""Derived data of deleted assistants that are still to be deleted, remembered across a crash.

The index and semantic memory are files beside the game's database: no transaction spans them
all. So it is noted which assistant is being deleted, before its body goes.
"""

from collections.abc import Generator
from typing import Any

from evennia.server.models import ServerConfig
from evennia.utils import logger
from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai import services
from evennia_ai.assistant.identity import find
from evennia_ai.errors import AssistantError
from evennia_ai.rag_memory.search import Memory

KEY = "evennia_ai_owed_deletions"


def owed() -> list[str]:
    """The scopes of which derived data are to be deleted."""
    return str(ServerConfig.objects.conf(KEY, default="")).split()


def owe(scope: str) -> None:
    """Note that an assistant's derived data are to be deleted, once its script is gone."""
    _note([*(other for other in owed() if other != scope), scope])


def settle(scope: str) -> None:
    """Note that nothing of a scope is left to delete."""
    _note([other for other in owed() if other != scope])


def let_go(scope: str) -> None:
    """Owe what a script leaves that is being deleted, and delete it once the script is gone.

    Nothing is done where it is owed already: whoever noted that sees to it.
    """
    from twisted.internet import reactor  # as late as possible: importing it installs one

    if scope not in owed():
        owe(scope)
        reactor.callLater(0, pay_owed)


def _note(scopes: list[str]) -> None:
    # A text, as Evennia gives lists back as objects that are tied to their row.
    ServerConfig.objects.conf(KEY, " ".join(scopes), delete=not scopes)


@inlineCallbacks
def delete_derived(scope: str) -> Generator["Deferred[Any]", Any, bool]:
    """Delete what is in the index and in semantic memory of an assistant that is gone.

    Returns:
        A Deferred that fires with whether nothing is left; else it stays owed.
    """
    mind = services.mind()
    memory = Memory(scope, mind.recall, lambda: mind.memories, lambda what, e: _log(scope, e))
    cleared = yield memory.clear()
    try:
        ids = yield mind.memories.ids(scope)
        yield mind.memories.delete(scope, ids)
    except AssistantError as error:
        _log(scope, error)
        return False
    if cleared is None:
        return False
    settle(scope)
    return True


@inlineCallbacks
def pay_owed() -> Generator["Deferred[Any]", Any, None]:
    """Delete what earlier deletions left; fires when all was tried."""
    for scope in owed():
        if find(scope) is None:
            yield delete_derived(scope)
        else:
            settle(scope)  # the body stayed


def _log(scope: str, error: BaseException) -> None:
    logger.log_err(
        f"[ai] memories of the deleted assistant {scope} are left over and go at the next start: "
        f"{type(error).__name__}: {error}"
    )
