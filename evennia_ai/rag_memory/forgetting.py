"""Taking a journal entry out of everything that finds it again; the journal keeps it, marked."""

from collections.abc import Generator
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.errors import StoreError
from evennia_ai.protocol import Assistant, Character


@inlineCallbacks
def forget_entry(
    script: Assistant, character: Character, entry_id: str
) -> Generator["Deferred[Any]", Any, int]:
    """Withdraw a journal entry: not deleted, but neither searched nor consolidated any more.

    Args:
        script: The assistant's script.
        character: Its body.
        entry_id: Id of the entry.

    Returns:
        A Deferred that fires with how many memories left semantic memory. It fails with
        `StoreError` if that store or the search index fails; the entry is withdrawn then all
        the same, and the next night takes its traces away. It can be repeated at any time.
    """
    character.journal.withdraw([entry_id])
    character.entities.forget_sources([entry_id])
    unindexed = yield script.memory.forget([entry_id])
    gone = yield _forget_memory(script, entry_id)
    if unindexed is None:
        raise StoreError(
            f"Journal entry `{entry_id}` is withdrawn, but the search index cannot be written, so "
            "searches may still find it. Type `aimemory/forget` again later."
        )
    return int(gone)


@inlineCallbacks
def _forget_memory(script: Assistant, entry_id: str) -> Generator["Deferred[Any]", Any, int]:
    """Delete what semantic memory made of an entry; fires with how many memories that were."""
    known = yield script.mind.memories.sources(script.scope)
    if entry_id not in known:
        return 0
    gone: int = yield script.mind.memories.delete(script.scope, [known[entry_id]])
    return gone
