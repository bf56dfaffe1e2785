"""Keeping the search index complete: adding what is stored, removing what is not.

The index file notes a filling from its start to its end, so that the next start resumes it.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.interfaces import IReactorTime

from evennia_ai.background import Steps, pause
from evennia_ai.errors import StoreError
from evennia_ai.history.archive import ARCHIVE
from evennia_ai.history.messages import Message
from evennia_ai.protocol import Assistant, Character
from evennia_ai.rag_memory.episodic_index import (
    is_indexed,
    turn_of_entry,
    turn_of_message,
    turns_of,
)
from evennia_ai.rag_memory.quarantine import Quarantine
from evennia_ai.rag_memory.search import Memory
from evennia_ai.recall.values import Turn

# Archive segments whose messages a compaction may have archived just before a crash, unindexed.
NEWEST_SEGMENTS = 2
# Turns indexed at a time, and the pause after each batch, in which searches can run.
BATCH, PAUSE_S = 100, 0.05
# The same where somebody waits for the index.
SHORT_PAUSE_S = 0.005


def memory_of(script: Assistant) -> Memory:
    """An assistant's memory, which indexes before each search what was changed by hand."""
    return Memory(
        script.scope,
        script.mind.recall,
        lambda: script.mind.memories,
        script.log_error,
        lambda: script.now(),
        importance_of=lambda ids: script.obj.journal.importance_of(ids),
        profiles=lambda query, viewer: script.obj.entities.profiles_for(query, viewer),
        refresh=lambda: (script.history.messages(), script.obj.journal.count()),
        on_new_index=lambda: restore_lost(script),
        traits=lambda: script.tools.traits,
        may_embed=lambda texts: script.spend.may_embed(texts),
        quarantine=Quarantine(script),
    )


@inlineCallbacks
def mend_index(script: Assistant) -> Steps[int | None]:
    """Index what a crash left out, or everything if older talk is missing; fires with how many."""
    try:
        entries = script.obj.journal.recent()
        keys = script.history.store.keys(ARCHIVE)[-NEWEST_SEGMENTS:]
        messages = [*_archived(script, keys), *script.history.messages()]
        newest = turns_of(messages, entries, script.now(), script.tools.traits)
        gone = [entry.id for entry in entries if entry.withdrawn]
        added: int | None = yield script.memory.catch_up(newest, gone)
        missing = yield missing_oldest(script)
        if not missing:
            return added
        restored: int = yield restore_index(script)
        return (added or 0) + restored
    except Exception as error:  # noqa: BLE001 - the assistant works without the index
        script.log_error("search index", error)
        return None


@inlineCallbacks
def restore_lost(script: Assistant) -> Steps[None]:
    """Fill the index that replaces a lost one."""
    try:
        yield restore_index(script)
    except Exception as error:  # noqa: BLE001 - the assistant works without the index
        script.log_error("search index", error)


def _archived(script: Assistant, keys: Iterable[str]) -> Iterator[Message]:
    for segment in filter(None, map(script.history.segment, keys)):
        yield from segment.messages


def missing_oldest(script: Assistant) -> Deferred[int | None]:
    """Fires with how many of the oldest turns, indexed last, are missing; None if unreadable."""
    messages = _archived(script, script.history.store.keys(ARCHIVE)[:1])
    oldest = turns_of(messages, script.obj.journal.oldest(), script.now(), script.tools.traits)
    return script.memory.missing([turn.id for turn in oldest])


@inlineCallbacks
def restore_index(script: Assistant, reactor: IReactorTime | None = None) -> Steps[int]:
    """Index everything that is stored and not indexed, in batches; fires with how many turns.

    It can be interrupted and run again; a second call meanwhile does nothing.
    """
    if script.memory.restoring:
        return 0
    script.log("the search index is incomplete; restoring it in the background")
    added = yield _filled(script, reactor, PAUSE_S)
    return added or 0


@inlineCallbacks
def rebuild_index(script: Assistant, reactor: IReactorTime | None = None) -> Steps[int]:
    """Empty the index and fill it with what is stored, in batches; fires with how many turns.

    The next start resumes an interrupted run. Call it under the turn lock. Fails with `StoreError`
    if the index cannot be written or is being filled.
    """
    if script.memory.restoring:
        raise StoreError("The search index is being filled already; try again later.")
    added = yield _filled(script, reactor, SHORT_PAUSE_S, empty=True)
    if added is None:
        raise StoreError("The search index cannot be written; see the log, then try again.")
    return int(added)


@inlineCallbacks
def _filled(
    script: Assistant, reactor: IReactorTime | None, pause_s: float, empty: bool = False
) -> Steps[int | None]:
    """Fill the index, again from the start if another takes its place; None if that fails."""
    memory, added, began = script.memory, 0, None
    with memory.restore():
        while began != memory.recall.replaced:
            began = memory.recall.replaced
            put = yield _filled_once(script, reactor, pause_s, empty)
            if put is None:
                script.log("the search index cannot be written and stays incomplete", warning=True)
                return None
            added += put
    script.log(f"search index restored: {added} items added")
    return added


@inlineCallbacks
def _filled_once(
    script: Assistant, reactor: IReactorTime | None, pause_s: float, empty: bool
) -> Steps[int | None]:
    memory, began = script.memory, script.memory.recall.replaced
    added = 0
    if (yield memory.set_filling(True)) is None or (empty and (yield memory.clear()) is None):
        return None
    memory.begin_reading()  # only now: what changed before may have been removed by `clear`
    stored = _stored(script)
    while some := list(islice(stored, BATCH)):
        turns = [turn for turn in some if turn]
        put = yield memory.catch_up(memory.still_valid(turns))
        if put is None:
            return None
        added += int(put)
        yield pause(reactor, pause_s)
        if script.pk is None or memory.recall.replaced != began:
            return added  # deleted meanwhile, or to be done again
    if (yield memory.set_filling(False)) is None:
        return None
    return added


def _stored(script: Assistant) -> Iterator[Turn | None]:
    """Everything stored, the oldest messages last; read as it is asked for."""
    history, now, traits = script.history, script.now(), script.tools.traits
    keys = history.store.keys(ARCHIVE)
    for message in chain(history.messages(), _archived(script, keys[1:])):
        yield turn_of_message(message, traits)
    for entry in script.obj.journal.all():
        yield turn_of_entry(entry) if is_indexed(entry, now) else None
    for message in _archived(script, keys[:1]):
        yield turn_of_message(message, traits)


@inlineCallbacks
def forget_entry(script: Assistant, character: Character, entry_id: str) -> Steps[int]:
    """Withdraw a journal entry: it stays stored, but is no longer searched or consolidated.

    Fires with how many memories left semantic memory. If that store or the index fails, it fails
    with `StoreError`, but the entry is withdrawn and the next night removes its traces. It can be
    repeated.
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
