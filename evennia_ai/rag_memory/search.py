"""One assistant's memory: the recall index and semantic memory, searched together.

The index is derived data that can be rebuilt from Attributes at any time. All its work runs on a
daemon thread.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks, succeed

from evennia_ai.background import Steps, in_time
from evennia_ai.history.audience import STAFF, normalised, viewer, visible
from evennia_ai.history.messages import Message
from evennia_ai.history.pairs import ToolTraits
from evennia_ai.language.words import telling_words
from evennia_ai.protocol import MEMORY_SUMMARY, NEAR_MEMORY, MemoryBackend, RecallBackend
from evennia_ai.rag_memory.episodic_index import is_pruned, turn_of_entry, turns_of
from evennia_ai.rag_memory.journal_entry import RECALLED, JournalEntry
from evennia_ai.rag_memory.profile import Profile
from evennia_ai.rag_memory.quarantine import Quarantine
from evennia_ai.rag_memory.ranking import depth, rank
from evennia_ai.recall.values import Hit, Query, Turn

T = TypeVar("T")
D = TypeVar("D")

# Turns taken out of the index in one piece of work.
CLEARED_AT_ONCE = 2_000
# A turn goes on without its memories rather than wait longer for a store, seconds.
SEARCH_TIMEOUT_S = 10.0


@dataclass(eq=False)
class Memory:
    """One assistant's memory, as its tools and its prompt use it.

    Args:
        scope: Whose it is.
        semantic: Returns the semantic store, or None.
        report: Called with what failed and the error, where work goes on without it.
        now: The clock, seconds since the epoch.
        importance_of: Returns the importance of journal entries by id, where it is known.
        profiles: Returns all profiles by id, with archived observations of those a query names.
        refresh: Called before a search, so that entries written by hand are indexed.
        quarantine: Whose words are not used.
        on_new_index: Called when another index has replaced the one used before.
        may_embed: Returns whether the store may embed texts now, for which a model may be billed.

    Attributes:
            restoring: Whether the index is being filled.
    """

    scope: str
    recall: RecallBackend
    semantic: Callable[[], MemoryBackend | None] = lambda: None
    report: Callable[[str, BaseException], None] = lambda what, error: None
    now: Callable[[], float] = time.time
    importance_of: Callable[[Collection[str]], Mapping[str, int]] = lambda ids: {}
    profiles: Callable[[str, str], Mapping[str, Profile]] = lambda query, viewer: {}
    refresh: Callable[[], object] = lambda: None
    on_new_index: Callable[[], object] = lambda: None
    traits: Callable[[], ToolTraits] = ToolTraits
    may_embed: Callable[[Iterable[str]], bool] = lambda texts: True
    quarantine: Quarantine = field(default_factory=Quarantine)

    def __post_init__(self) -> None:
        self._known_replaced = self.recall.replaced
        self.restoring = False
        # Ids forgotten or corrected while the index is being filled: copies read before are stale.
        self._outdated: set[str] = set()

    @contextmanager
    def restore(self) -> Iterator[None]:
        """Count the index as being filled within the `with` block."""
        self.restoring = True
        try:
            yield
        finally:
            self.restoring = False
            self._outdated.clear()

    def begin_reading(self) -> None:
        """Start reading, inside `restore`, what the index is filled from."""
        self._outdated.clear()

    def still_valid(self, turns: Iterable[Turn]) -> list[Turn]:
        """The turns neither forgotten nor changed since `begin_reading`."""
        return [turn for turn in turns if turn.id not in self._outdated]

    def _outdate(self, ids: Iterable[str]) -> None:
        if self.restoring:
            self._outdated.update(ids)

    def remember_messages(self, messages: Iterable[Message]) -> Deferred[int]:
        """Index what was said; fires with how many turns were indexed."""
        return self._add(turns_of(messages, (), self.now(), self.traits()))

    def remember_entry(self, entry: JournalEntry) -> Deferred[int]:
        """Index a journal entry, unless it only repeats memory."""
        return self._add([] if entry.source_type == RECALLED else [turn_of_entry(entry)])

    def forget(self, ids: Iterable[str]) -> Deferred[int | None]:
        """Take turns out of the index; fires with how many there were, None if that failed."""
        wanted = set(ids)
        self._outdate(wanted)
        if not wanted:
            return succeed(0)
        return self._watched(self.recall.remove(self.scope, wanted), None)

    def catch_up(self, turns: Collection[Turn], gone: Iterable[str] = ()) -> Deferred[int | None]:
        """Index the turns that are missing or differ from the index; remove those in `gone`.

        Memories made from turns that differed are deleted; the next night makes new ones. Fires
        with how many were indexed, None if the index failed.
        """
        unwanted = set(gone)
        self._outdate(unwanted)
        added = self._watched(self.recall.catch_up(self.scope, list(turns), unwanted), None)
        return added.addCallback(lambda done: done and self._without_memories(done[1], done[0]))

    def correct_entry(self, entry: JournalEntry) -> Deferred[int | None]:
        """Index a journal entry that was changed."""
        self._outdate([entry.id])
        if turns := turns_of((), [entry], self.now(), self.traits()):
            return self.catch_up(turns)
        taken_out = self.catch_up((), gone=[entry.id])
        return taken_out.addCallback(lambda n: self._without_memories([entry.id], n))

    @inlineCallbacks
    def _without_memories(self, sources: Sequence[str], count: int | None) -> Steps[int | None]:
        """Delete what semantic memory made from these sources; fires with `count`."""
        if not sources:
            return count
        try:
            store = self.semantic()
            if store is None:
                return count
            known = yield store.sources(self.scope)
            yield store.delete(self.scope, [known[each] for each in sources if each in known])
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a store may be a game's
            self.report("semantic memory", error)
        return count

    @inlineCallbacks
    def clear(self) -> Steps[int | None]:
        """Remove all turns in parts, so that other searches go on; fires with how many, or None."""
        total, cleared = 0, CLEARED_AT_ONCE
        while cleared >= CLEARED_AT_ONCE:
            part = self.recall.clear(self.scope, CLEARED_AT_ONCE)
            cleared = yield self._watched(part, None)
            if cleared is None:
                return None
            total += cleared
        return total

    def set_filling(self, filling: bool) -> Deferred[bool | None]:
        """Note in the index whether it is being filled; fires with True, None if that failed."""
        return self._watched(self.recall.set_filling(self.scope, filling), None)

    def missing(self, ids: Iterable[str]) -> Deferred[int | None]:
        """Fires with how many of these turns are not indexed; at least 1 during a filling."""
        return self._watched(self.recall.missing(self.scope, set(ids)), None)

    def count(self) -> Deferred[int | None]:
        """Fires with how many turns are indexed; None if the index failed."""
        return self._watched(self.recall.count(self.scope), None)

    @inlineCallbacks
    def search(self, query: Query) -> Steps[list[Hit]]:
        """Fires with what matches in words or in meaning, best first, without failing sources."""
        self.refresh()
        query = replace(query, audience=viewer(query.audience))  # None would search everything
        profiles = self.profiles(query.text, query.audience) if query.observations else {}

        found = self.recall.search(self.scope, query)
        indexed = yield self._watched(found, [], SEARCH_TIMEOUT_S)
        memories = yield self._memories(query)
        known = []
        if profiles:
            found = self.recall.observations(profiles, query)
            known = yield self._watched(found, [], SEARCH_TIMEOUT_S)
        entries = {hit.turn_id for hit in indexed if hit.kind == "journal"}
        weights = self.importance_of(entries) if entries else {}
        weighed = (
            replace(hit, importance=weights.get(hit.turn_id)) if hit.turn_id in entries else hit
            for hit in self.quarantine.hits([*indexed, *memories, *known])
        )
        now = self.now()
        # Entries may have left retrieval before the night removes them from the index.
        return rank([h for h in weighed if not is_pruned(h.importance, str(h.at), now)], query)

    @inlineCallbacks
    def _memories(self, query: Query) -> Steps[list[Hit]]:
        """What the memory back end finds: near in meaning, or with a word of the query."""
        try:
            backend = self.semantic()
            if backend is None or not self.may_embed([query.text]):
                return []
            found = backend.search(
                self.scope, query.text, limit=depth(query), audience=query.audience
            )
            memories = yield in_time(found, SEARCH_TIMEOUT_S)
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a turn goes on without; it may be a game's
            self.report("memory back end", error)
            return []
        near, wanted = getattr(backend, "near", NEAR_MEMORY), telling_words(query.text)
        hits = [_hit_of_memory(memory) for memory in memories]
        return [
            hit
            for hit in hits
            if visible(hit.audience, query.audience or STAFF)
            if hit.score >= near or wanted & telling_words(hit.text)
        ]

    def _add(self, turns: list[Turn]) -> Deferred[int]:
        return self._watched(self.recall.add(self.scope, turns), 0) if turns else succeed(0)

    @inlineCallbacks
    def _watched(
        self, done: Deferred[T], default: D, timeout_s: float | None = None
    ) -> Steps[T | D]:
        """Fires with the index's result, or with the default if that failed and was reported."""
        try:
            result: T = yield done if timeout_s is None else in_time(done, timeout_s)
        except CancelledError:  # a cancelled turn must not go on without its memories
            raise
        except Exception as error:  # noqa: BLE001 - a turn goes on without
            self.report("recall index", error)
            return default
        finally:
            if self.recall.replaced != self._known_replaced:
                self._known_replaced = self.recall.replaced
                self.on_new_index()
        return result


def _hit_of_memory(memory: Mapping[str, Any]) -> Hit:
    """A memory of the back end as a hit; one without an audience is for staff only."""
    meta = memory.get("metadata") or {}
    return Hit(
        turn_id=str(meta.get("source_id") or memory["id"]),
        score=float(memory.get("score") or 0.0),
        speaker="",
        text=memory["text"],
        at=meta.get("at") or "",
        kind="experience" if meta.get("type") == MEMORY_SUMMARY else "memory",
        audience=normalised(meta["audience"]) if meta.get("audience") else STAFF,
        importance=meta.get("importance"),
    )
