"""Filling the search index from what is stored, where it lacks something.

The index itself notes a filling until it has ended, so that the next start resumes one that was
interrupted.
"""

from collections.abc import Generator, Iterator
from functools import partial
from itertools import islice
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.background import pause
from evennia_ai.errors import StoreError
from evennia_ai.history.live import ARCHIVE
from evennia_ai.history.tool_traits import ToolTraits
from evennia_ai.protocol import Assistant
from evennia_ai.rag_memory.search import Memory
from evennia_ai.rag_memory.turns import is_indexed, turn_of_entry, turn_of_message, turns_of
from evennia_ai.recall.values import Turn

# Archive segments whose messages may have been folded just before a crash, unindexed.
NEWEST_SEGMENTS = 2
# Turns put in at a time, and the pause behind them, in which searches have their turn.
BATCH, PAUSE_S = 100, 0.05
# The same where somebody waits for the index.
SHORT_PAUSE_S = 0.005


def memory_of(script: Assistant) -> Memory:
    """An assistant's memory, which learns at each search what was changed by hand.

    Args:
        script: The assistant's script.
    """
    return Memory(
        script.scope,
        script.mind.recall,
        lambda: script.mind.memories,
        script.log_error,
        lambda: script.now(),
        importance_of=lambda ids: script.obj.journal.importance_of(ids),
        profiles=lambda query: script.obj.entities.profiles_for(query),
        refresh=lambda: (script.history.messages(), script.obj.journal.count()),
        on_new_index=lambda: restore_lost(script),
        traits=lambda: script.tools.traits,
    )


def mend_index(script: Assistant) -> "Deferred[Any]":
    """Index what a crash left out; if older talk is missing too, everything, in batches.

    Returns:
        A Deferred that fires with how many turns were indexed, once all of them are.
    """
    entries = script.obj.journal.recent()
    done = script.memory.catch_up(
        lambda: _newest(script, entries),
        gone=[entry.id for entry in entries if entry.withdrawn],
    )
    done.addCallback(lambda added: _restored_if_lost(script, added))
    return done.addErrback(_survived, script)


def restore_lost(script: Assistant) -> "Deferred[Any]":
    """Fill the index that replaces a lost one; fires when that has ended."""
    return restore_index(script).addErrback(_survived, script)


def _survived(failure: Any, script: Assistant) -> None:
    script.log_error("search index", failure.value)


def _newest(script: Assistant, entries: Any) -> list[Turn]:
    history = script.history
    segments = map(history.segment, history.store.keys(ARCHIVE)[-NEWEST_SEGMENTS:])
    folded = [message for segment in segments if segment for message in segment.messages]
    return turns_of([*folded, *history.messages()], entries, script.now(), script.tools.traits)


@inlineCallbacks
def _restored_if_lost(
    script: Assistant, added: int | None
) -> Generator["Deferred[Any]", Any, int | None]:
    missing = yield missing_oldest(script)
    if not missing:
        return added
    restored: int = yield restore_index(script)
    return (added or 0) + restored


def missing_oldest(script: Assistant) -> "Deferred[int | None]":
    """Fires with how many of the oldest turns the index lacks; None if it cannot be read.

    `restore_index` adds them last: if they are there, everything is. At least 1 if a filling was
    interrupted.
    """
    first = script.history.store.keys(ARCHIVE)[:1]
    segments = [segment for segment in map(script.history.segment, first) if segment]
    messages = [message for segment in segments for message in segment.messages]
    oldest = turns_of(messages, script.obj.journal.oldest(), script.now(), script.tools.traits)
    return script.memory.missing([turn.id for turn in oldest])


@inlineCallbacks
def restore_index(script: Assistant, reactor: Any = None) -> Generator["Deferred[Any]", Any, int]:
    """Index everything that is stored and not indexed, in batches.

    It may be interrupted and run again. While it runs, a second call does nothing.

    Args:
        script: The assistant's script.
        reactor: Where to pause; Twisted's by default.

    Returns:
        A Deferred that fires with how many turns were indexed.
    """
    if script.memory.restoring:
        return 0
    script.log("the search index is incomplete; restoring it in the background")
    added = yield _filled(script, reactor, PAUSE_S)
    return added or 0


@inlineCallbacks
def rebuild_index(script: Assistant, reactor: Any = None) -> Generator["Deferred[Any]", Any, int]:
    """Empty the index and fill it with what is stored, in batches.

    Others can search between the batches; the next start resumes what was interrupted. Call it
    under the turn lock.

    Args:
        script: The assistant's script.
        reactor: Where to pause; Twisted's by default.

    Returns:
        A Deferred that fires with how many turns were indexed, or fails with `StoreError` if the
        index cannot be written or is being filled already.
    """
    if script.memory.restoring:
        raise StoreError("The search index is being filled already; try again later.")
    added = yield _filled(script, reactor, SHORT_PAUSE_S, empty=True)
    if added is None:
        raise StoreError("The search index cannot be written; see the log, then try again.")
    return int(added)


@inlineCallbacks
def _filled(
    script: Assistant, reactor: Any, pause_s: float, empty: bool = False
) -> Generator["Deferred[Any]", Any, int | None]:
    """Fill the index, from the start again if another takes its place; None if that fails."""
    memory, added, began = script.memory, 0, None
    with memory.restore():
        while began != memory.replaced:
            began = memory.replaced
            put = yield _filled_once(script, reactor, pause_s, empty)
            if put is None:
                script.log("the search index cannot be written and stays incomplete", warning=True)
                return None
            added += put
    script.log(f"search index restored: {added} items added")
    return added


@inlineCallbacks
def _filled_once(
    script: Assistant, reactor: Any, pause_s: float, empty: bool
) -> Generator["Deferred[Any]", Any, int | None]:
    memory, began = script.memory, script.memory.replaced
    added = 0
    if (yield memory.set_filling(True)) is None or (empty and (yield memory.clear()) is None):
        return None
    memory.begin_reading()  # only now: what was changed before may have been taken out as well
    for turns in _batches(script):
        put = yield memory.catch_up(partial(memory.still_valid, turns))
        if put is None:
            return None
        added += int(put)
        yield pause(reactor, pause_s)
        if script.pk is None or memory.replaced != began:
            return added  # deleted meanwhile, or to be done again
    if (yield memory.set_filling(False)) is None:
        return None
    return added


def _batches(script: Assistant) -> Iterator[list[Turn]]:
    """Everything stored, the oldest messages last; read as it is asked for."""
    stored = _stored(script)
    while some := list(islice(stored, BATCH)):
        if turns := [turn for turn in some if turn]:
            yield turns


def _stored(script: Assistant) -> Iterator[Turn | None]:
    history, now, traits = script.history, script.now(), script.tools.traits
    yield from (turn_of_message(message, traits) for message in history.messages())
    keys = history.store.keys(ARCHIVE)
    yield from _archived(history, keys[1:], traits)
    for entry in script.obj.journal.all():
        yield turn_of_entry(entry) if is_indexed(entry, now) else None
    yield from _archived(history, keys[:1], traits)


def _archived(history: Any, keys: Any, traits: ToolTraits) -> Iterator[Turn | None]:
    for key in keys:
        segment = history.segment(key)
        for message in segment.messages if segment else ():
            yield turn_of_message(message, traits)
