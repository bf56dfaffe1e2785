"""Derived data of deleted assistants: a queue of deletions that survives a crash.

The search index and semantic memory are files beside the game's database, and no transaction
spans them all. So an assistant's scope is queued here before its body is deleted.
"""

from evennia.server.models import ServerConfig
from evennia.utils import logger
from twisted.internet.defer import inlineCallbacks

from evennia_ai import services
from evennia_ai.background import Steps
from evennia_ai.errors import AssistantError
from evennia_ai.game.seeing import find
from evennia_ai.rag_memory.finder import scope_of_texts
from evennia_ai.rag_memory.memory import Memory

KEY = "evennia_ai_owed_deletions"


def queued_scopes() -> list[str]:
    """The scopes whose derived data must be deleted."""
    return str(ServerConfig.objects.conf(KEY, default="")).split()


def enqueue(scope: str) -> None:
    """Queue the deletion of an assistant's derived data."""
    _save([*queued_scopes(), scope])


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
def delete_queued() -> Steps[None]:
    """Delete what belonged to deleted assistants; what fails stays queued."""
    for scope in queued_scopes():
        is_left = find(scope) is not None  # the body stayed
        errors = [] if is_left else (yield _delete(scope))
        for error in errors:
            logger.log_err(
                f"[ai] memories of the deleted assistant {scope} are left over and are deleted at "
                f"the next start: {type(error).__name__}: {error}"
            )
        if not errors:
            _save([other for other in queued_scopes() if other != scope])


@inlineCallbacks
def _delete(scope: str) -> Steps[list[BaseException]]:
    """Delete a search index and semantic memory; fires with what failed."""
    mind, errors = services.mind(), list[BaseException]()
    for indexed in (scope, scope_of_texts(scope)):
        memory = Memory(indexed, mind.recall, report=lambda _, error: errors.append(error))
        yield memory.clear()
    try:
        ids = yield mind.memories.ids(scope)
        yield mind.memories.delete(scope, ids)
    except AssistantError as error:
        errors.append(error)
    return errors
