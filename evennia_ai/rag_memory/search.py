"""One assistant's memory: the recall index and semantic memory, searched together.

The index is derived data that can be rebuilt from Attributes at any time. All its work runs on the
daemon thread that owns it (`RecallJobs`).
"""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from twisted.internet.defer import (
    CancelledError,
    Deferred,
    inlineCallbacks,
    maybeDeferred,
    succeed,
)

from evennia_ai.background import Steps, Worker, in_time
from evennia_ai.history.audience import viewer
from evennia_ai.history.messages import Message
from evennia_ai.history.pairs import ToolTraits
from evennia_ai.rag_memory.backend import MemoryBackend
from evennia_ai.rag_memory.entities import found_observations
from evennia_ai.rag_memory.episodic_index import turn_of_message
from evennia_ai.rag_memory.journal_entry import JournalEntry
from evennia_ai.rag_memory.ledger import Note, found_notes
from evennia_ai.rag_memory.profiles import EntityHandler
from evennia_ai.rag_memory.quarantine import Quarantine
from evennia_ai.rag_memory.ranking import DEEP, once, ranked
from evennia_ai.recall.values import Hit, Query, Turn

if TYPE_CHECKING:
    from evennia_ai.recall.index import RecallIndex

T = TypeVar("T")
D = TypeVar("D")

# Most outputs of tools in a result.
OUTPUTS = 3
# A turn goes on without its memories rather than wait longer for a store, seconds.
SEARCH_TIMEOUT_S = 10.0


class RecallJobs:
    """The recall index of all assistants, behind its thread.

    `open_index` is called on that thread; `replaced` counts how often it returned another index
    than before.
    """

    def __init__(self, worker: Worker, open_index: Callable[[], "RecallIndex"]):
        self.worker = worker
        self.open_index = open_index
        self.replaced = 0
        self._index: RecallIndex | None = None

    def add(self, scope: str, turns: Sequence[Turn]) -> Deferred[int]:
        """Fires with how many turns were new or changed."""
        return self._later(lambda index: index.add(scope, turns))

    def remove(self, scope: str, ids: Collection[str]) -> Deferred[int]:
        """Remove turns, behind what was added before; fires with how many."""
        return self._later(lambda index: index.remove(scope, ids))

    def erase(self) -> Deferred[None]:
        """Fires when the file holds no byte of what was removed before."""
        return self._later(lambda index: index.erase())

    def clear(self, scope: str) -> Deferred[int]:
        """Remove all turns; fires with how many there were."""
        return self._later(lambda index: index.clear(scope))

    def missing(self, scope: str, ids: Collection[str]) -> Deferred[int]:
        """Fires with how many of these turns are not indexed."""
        return self._later(lambda index: len(ids) - len(index.get(scope, ids)))

    def count(self, scope: str) -> Deferred[int]:
        """Fires with how many turns are indexed, after those that were added before."""
        return self._later(lambda index: index.count(scope))

    def search(self, scope: str, query: Query, others: Sequence[Hit] = ()) -> Deferred[list[Hit]]:
        """Fires with the result of a search, with hits of other sources in their places."""

        def search(index: "RecallIndex") -> list[Hit]:
            outputs: list[Hit] = []
            if query.tools:
                found = index.search(scope, query.text, DEEP, query.audience, tools=True)
                outputs = [hit for hit in once(found, query) if hit.matches][:OUTPUTS]
            hits = index.search(scope, query.text, DEEP, query.audience)
            return ranked(hits, [*others, *outputs], query)

        return self.worker.submit(self._done, search)

    def _later(self, work: Callable[["RecallIndex"], T]) -> Deferred[T]:
        """Do work, in the order of these calls; searches come first, as somebody waits for them."""
        return self.worker.submit_later(self._done, work)

    def _done(self, work: Callable[["RecallIndex"], T]) -> T:
        index = self._opened()
        try:
            return work(index)
        except Exception:
            if not index.damaged:
                raise
        return work(self._opened())  # an empty one by now, unless a game put its own in place

    def _opened(self) -> "RecallIndex":
        """The index, on its thread; counted if it is another one than before."""
        index = self.open_index()
        if self._index is not None and self._index is not index:
            self.replaced += 1
        self._index = index
        return index


@dataclass(eq=False)
class Memory:
    """One assistant's memory, as its tools and its prompt use it."""

    scope: str  # whose it is
    recall: RecallJobs
    # Returns the semantic store, or None.
    semantic: Callable[[], MemoryBackend | None] = lambda: None
    # Called with what failed and the error, where work goes on without it.
    report: Callable[[str, BaseException], None] = lambda what, error: None
    now: Callable[[], float] = time.time
    entities: Callable[[], EntityHandler | None] = lambda: None  # returns what is known of people
    notes: Callable[[], tuple[Note, ...]] = tuple  # returns the living notes of the ledger
    # Called when another index has replaced the one used before, or one that could not be written
    # can be again.
    on_new_index: Callable[[], object] = lambda: None
    traits: Callable[[], ToolTraits] = ToolTraits
    # Returns whether the store may embed texts now, for which a model may be billed.
    may_embed: Callable[[Iterable[str]], bool] = lambda texts: True
    quarantine: Quarantine = field(default_factory=Quarantine)
    work: Callable[..., Deferred[Any]] = maybeDeferred  # calls a function that only computes

    def __post_init__(self) -> None:
        self._known_replaced = self.recall.replaced
        self.syncing = self._is_failing = False  # `syncing`: the index is being made complete

    def remember_messages(self, messages: Iterable[Message]) -> Deferred[int | None]:
        """Index what was said; fires with how many turns were indexed."""
        traits = self.traits()
        return self.add(turn for each in messages if (turn := turn_of_message(each, traits)))

    @inlineCallbacks
    def add(self, turns: Iterable[Turn]) -> Steps[int | None]:
        """Index turns in place of those with the same ids.

        Fires with how many were new or changed, None if the index failed. After a failure the first
        success makes the index whole.
        """
        new, count = list(turns), 0
        if new:
            count = yield self._watched(self.recall.add(self.scope, new), None)
            was_failing, self._is_failing = self._is_failing, count is None
            if was_failing and not self._is_failing:
                self.on_new_index()
        return count

    def forget(self, ids: Iterable[str]) -> Deferred[int | None]:
        """Take turns out of the index; fires with how many there were, None if that failed."""
        unwanted = set(ids)
        if not unwanted:
            return succeed(0)
        return self._watched(self.recall.remove(self.scope, unwanted), None)

    def remember_entry(self, entry: JournalEntry) -> Deferred[int | None]:
        """Index a journal entry as it is now; take it out if it takes no part in retrieval."""
        if entry.is_indexed(self.now()):
            return self.add([entry.turn])
        return self.forget([entry.id])

    def clear(self) -> Deferred[int | None]:
        """Remove all turns; fires with how many there were, None if that failed."""
        return self._watched(self.recall.clear(self.scope), None)

    def missing(self, ids: Iterable[str]) -> Deferred[int | None]:
        """Fires with how many of these turns are not indexed."""
        return self._watched(self.recall.missing(self.scope, set(ids)), None)

    def count(self) -> Deferred[int | None]:
        """Fires with how many turns are indexed; None if the index failed."""
        return self._watched(self.recall.count(self.scope), None)

    @inlineCallbacks
    def search(self, query: Query) -> Steps[list[Hit]]:
        """Fires with what matches in words or in meaning, best first, without failing sources."""
        query = replace(query, audience=viewer(query.audience))  # None would search everything
        notes = found_notes(self.quarantine.notes(self.notes()), query.text, query.audience)
        others = [*notes, *(yield self._memories(query))]
        entities = self.entities() if query.observations else None
        if entities and (profiles := entities.telling(query.text)):
            observed = self.work(found_observations, profiles, query.text, query.audience)
            others += yield self._watched(in_time(observed, SEARCH_TIMEOUT_S), [])
        others, hits = [*self.quarantine.hits(others)], list[Hit]()
        for most in (query.limit, DEEP):  # there may be many that are not used, all ahead of others
            found = self.recall.search(self.scope, replace(query, limit=most), others)
            all_hits = yield self._watched(in_time(found, SEARCH_TIMEOUT_S), others)
            hits = [*self.quarantine.hits(all_hits)]
            if len(hits) == len(all_hits):
                break
        return hits[: query.limit]

    def _memories(self, query: Query) -> Deferred[list[Hit]]:
        """Fires with what semantic memory finds."""

        def found() -> Any:
            backend = self.semantic()
            if backend is None or not self.may_embed([query.text]):
                return []
            return backend.search(self.scope, query.text, query.limit, query.audience)

        # The back end may be a game's own.
        hits = in_time(maybeDeferred(found), SEARCH_TIMEOUT_S).addCallback(list)
        return self._watched(hits, [], "memory back end")

    @inlineCallbacks
    def _watched(self, done: Deferred[T], default: D, what: str = "recall index") -> Steps[T | D]:
        """Fires with a result, or with the default if getting it failed, which is reported."""
        try:
            result: T = yield done
            return result
        except CancelledError:  # a cancelled turn must not go on without its memories
            raise
        except Exception as error:  # noqa: BLE001 - a turn goes on without
            self.report(what, error)
            return default
        finally:
            if self.recall.replaced != self._known_replaced:
                self._known_replaced = self.recall.replaced
                self.on_new_index()
