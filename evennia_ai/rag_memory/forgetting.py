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
    """Withdraw a journal entry: it stays stored, but is no longer searched or consolidated.

    Returns:
        A Deferred that fires with how many memories left semantic memory. It fails with
        `StoreError` if that store or the search index fails; the entry is withdrawn all the same,
        and the next night removes its traces. It can be repeated at any time.
    """
    character.journal.withdraw([entry_id])
    character.entities.forget_sources([entry_id])
    unindexed = yield script.memory.forget([entry_id])
    known = yield script.mind.memories.sources(script.scope)
    gone = 0
    if entry_id in known:
        gone = yield script.mind.memories.delete(script.scope, [known[entry_id]])
    if unindexed is None:
        raise StoreError(
            f"Journal entry `{entry_id}` is withdrawn, but the search index cannot be written, so "
            "searches may still find it. Type `aimemory/forget` again later."
        )
    return int(gone)
