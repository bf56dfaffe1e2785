"""Keeping the search index complete: adding what is stored, removing what is not.

The oldest is indexed last: if that is missing, the next start resumes the filling.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, takewhile

from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.interfaces import IReactorTime

from evennia_ai.background import Steps, pause
from evennia_ai.errors import StoreError
from evennia_ai.history.archive import ARCHIVE
from evennia_ai.history.messages import Message
from evennia_ai.protocol import Assistant, Character
from evennia_ai.rag_memory.episodic_index import turn_of_message
from evennia_ai.rag_memory.quarantine import Quarantine
from evennia_ai.rag_memory.search import Memory
from evennia_ai.recall.values import Turn

# Reads a batch as it is stored now.
Read = Callable[[], list[Turn]]
# Turns indexed at a time, and the pause after each batch, in which searches can run.
BATCH, PAUSE_S = 100, 0.05
# The same where somebody waits for the index.
SHORT_PAUSE_S = 0.005


def memory_of(script: Assistant) -> Memory:
    """An assistant's memory."""
    return Memory(
        script.scope,
        script.mind.recall,
        lambda: script.mind.memories,
        script.log_error,
        script.now,
        entities=lambda: script.obj.entities,
        notes=lambda: script.ledger.entries(),
        on_new_index=lambda: mend_index(script, whole=True),
        traits=lambda: script.tools.traits,
        may_embed=lambda texts: script.spend.may_embed(texts),
        quarantine=Quarantine(script),
        work=script.mind.work,
    )


@inlineCallbacks
def mend_index(script: Assistant, whole: bool = False) -> Steps[None]:
    """As `sync_index`, in the background: an error is logged."""
    try:
        yield sync_index(script, whole)
    except Exception as error:  # noqa: BLE001 - the assistant works without the index
        script.log_error("search index", error)


@inlineCallbacks
def rebuild_index(script: Assistant, reactor: IReactorTime | None = None) -> Steps[int]:
    """Empty the index and fill it with what is stored, in batches; fires with how many turns.

    The next start resumes an interrupted run. Call it under the turn lock. Fails with `StoreError`
    if the index cannot be written or is being filled.
    """
    script.runtime.lock.holder()
    if script.memory.syncing:
        raise StoreError("The search index is being filled already; try again later.")
    added = yield script.memory.clear()
    if added is not None:
        added = yield sync_index(script, True, reactor, SHORT_PAUSE_S)
    if added is None:
        raise StoreError("The search index cannot be written; see the log, then try again.")
    return int(added)


@inlineCallbacks
def sync_index(
    script: Assistant,
    whole: bool = False,
    reactor: IReactorTime | None = None,
    pause_s: float = PAUSE_S,
) -> Steps[int | None]:
    """Index what is stored and not indexed, from the newest on; fires with how many turns.

    It ends at a batch that the index holds already, unless an earlier run did not end or the
    `whole` is to be looked at. None if the index failed. A second call meanwhile does nothing.
    """
    memory, added, began = script.memory, 0, None
    if memory.syncing:
        return 0
    memory.syncing = True
    try:
        # A crash may have come between a withdrawal and this.
        yield memory.forget(e.id for e in script.obj.journal.recent() if e.withdrawn)
        while began != memory.recall.replaced and script.pk is not None:
            whole = whole or began is not None  # another index took its place meanwhile
            began = memory.recall.replaced
            put = yield _synced(script, whole, reactor, pause_s)
            if put is None:
                script.log("the search index cannot be written and stays incomplete", warning=True)
                return None
            added += put
    finally:
        memory.syncing = False
    if added:
        script.log(f"search index restored: {added} items added")
    return added


@inlineCallbacks
def _synced(
    script: Assistant, whole: bool, reactor: IReactorTime | None, pause_s: float
) -> Steps[int | None]:
    memory, added, began = script.memory, 0, script.memory.recall.replaced
    if (missing := (yield missing_oldest(script))) is None:
        return None
    for batches in (_messages(script), _entries(script)):
        for read in batches:
            if not (whole or missing):
                ids = [turn.id for turn in read()]
                if ids and not (yield memory.missing(ids)):
                    break
            # Read again: somebody may have been forgotten meanwhile.
            put = yield memory.add(read())
            if put is None:
                return None
            added += int(put)
            yield pause(reactor, pause_s)
            if script.pk is None or memory.recall.replaced != began:
                return added  # deleted meanwhile, or to be done again
    return added


def _messages(script: Assistant) -> Iterator[Read]:
    """Batches of what was said, the live first, then the archive from the newest segment on."""
    history, traits = script.history, script.tools.traits

    def read(key: str, start: int) -> Sequence[Message]:
        segment = history.segment(key) if key else None
        messages = (segment.messages if segment else ()) if key else history.messages()
        end = max(0, len(messages) - start)
        return messages[max(0, end - BATCH) : end]

    def turns(key: str, start: int) -> list[Turn]:
        return [turn for each in read(key, start) if (turn := turn_of_message(each, traits))]

    def batches(key: str) -> Iterator[Read]:
        starts = takewhile(lambda start: read(key, start), count(step=BATCH))
        return (partial(turns, key, start) for start in starts)

    yield from batches("")
    # Only now: a compaction may have archived live messages meanwhile.
    for key in reversed(history.store.keys(ARCHIVE)):
        yield from batches(key)


def _entries(script: Assistant) -> Iterator[Read]:
    """Batches of the journal, the newest entries first."""
    journal, now = script.obj.journal, script.now()

    def turns(key: str) -> list[Turn]:
        entries = journal.page(key).entries
        return [entry.turn for entry in entries if entry.is_indexed(now)]

    # Listed only when the messages are done, the newest first: a page that is turned is not missed.
    for key in reversed(journal.pages()):
        if journal.page(key).entries:
            yield partial(turns, key)


def missing_oldest(script: Assistant) -> Deferred[int | None]:
    """Fires with how many of the oldest turns, indexed last, are missing; None if unreadable."""
    now, traits, history = script.now(), script.tools.traits, script.history
    segment = next(history.segments(), None)
    said = (turn_of_message(each, traits) for each in (segment.messages if segment else ()))
    journal = script.obj.journal
    entries = (each for each in journal.page(journal.pages()[0]).entries if each.is_indexed(now))
    return script.memory.missing(
        [*(turn.id for turn in said if turn), *(entry.id for entry in entries)]
    )


def withdraw_entry(script: Assistant, character: Character, entry_id: str) -> None:
    """Withdraw a journal entry, and note that searches still find it; `forget_entry` does all."""
    with character.journal.store.transaction():
        character.journal.withdraw([entry_id])
        character.entities.forget_sources([entry_id])
        outbox = dict.fromkeys((*script.state.outbox, entry_id))
        script.state.outbox = list(outbox)


@inlineCallbacks
def forget_entry(script: Assistant, character: Character, entry_id: str) -> Steps[int]:
    """Withdraw a journal entry: it stays stored, but is no longer searched or consolidated.

    Fires with how many memories left semantic memory. If that store or the index fails, it fails
    with `StoreError`, but the entry is withdrawn and the next night removes its traces. It can be
    repeated.
    """
    withdraw_entry(script, character, entry_id)
    unindexed = yield script.memory.forget([entry_id])
    gone = yield script.mind.memories.delete(script.scope, [entry_id])
    if unindexed is not None:
        script.state.outbox = [each for each in script.state.outbox if each != entry_id]
    else:
        raise StoreError(
            f"Journal entry `{entry_id}` is withdrawn, but the search index cannot be written, so "
            "searches may still find it. Type `aimemory/forget` again later."
        )
    return int(gone)
