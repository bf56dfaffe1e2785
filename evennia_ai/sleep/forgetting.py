"""Taking a journal entry out of everything that finds it again; the journal keeps it, marked."""

from collections.abc import Generator
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks


@inlineCallbacks
def forget_entry(
    script: Any, character: Any, entry_id: str
) -> Generator["Deferred[Any]", Any, int]:
    """Withdraw a journal entry: not deleted, but neither searched nor consolidated any more.

    Args:
        script: The assistant's script.
        character: Its body.
        entry_id: Id of the entry.

    Returns:
        A Deferred that fires with how many memories left semantic memory. It fails with
        `StoreError` if that store fails; the entry is withdrawn then all the same, and the next
        night deletes its memory.
    """
    character.journal.withdraw([entry_id])
    character.entities.forget_sources([entry_id])
    yield script.memory.forget([entry_id])
    known = yield script.semantic.sources(script.scope)
    if entry_id not in known:
        return 0
    gone: int = yield script.semantic.delete(script.scope, [known[entry_id]])
    return gone
