"""One assistant's memory: what of its life is in the search index, and how that is searched.

The recall index and semantic memory are searched together. The index is derived data that can be
rebuilt from Attributes at any time; all its work runs on the daemon thread that owns it
(`RecallJobs`). Old entries of low importance leave retrieval, so that they do not crowd out what
matters. They never leave the journal.

The index is filled from the newest on. A mark in it says that this once came to its end: without
the mark, the next start goes through all that is stored.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from twisted.internet.defer import (
    CancelledError,
    Deferred,
    inlineCallbacks,
    maybeDeferred,
    succeed,
)

from evennia_ai.background import Steps, Worker, in_time, pause
from evennia_ai.errors import StoreError
from evennia_ai.history.archive import ARCHIVE
from evennia_ai.history.audience import viewer
from evennia_ai.history.live import HistoryHandler
from evennia_ai.history.messages import SPEECH, Message, ToolTraits, seconds, tool_calls
from evennia_ai.life import Desk, Tools
from evennia_ai.llm_interaction.tool_calls import spoken_text
from evennia_ai.rag_memory.backend import MemoryBackend
from evennia_ai.rag_memory.entities import found_observations
from evennia_ai.rag_memory.finder import DEEP, once, ranked
from evennia_ai.rag_memory.journal import JournalEntry
from evennia_ai.rag_memory.ledger import found_notes
from evennia_ai.rag_memory.seen import Quarantine, Remembering
from evennia_ai.recall.values import Hit, Query, Turn

if TYPE_CHECKING:
    from evennia_ai.recall.index import RecallIndex

# Summaries of summaries would only bring recalled text up again.
INDEXED_ROLES = ("user", "assistant")
# Seconds of silence after which a conversation is over: who comes back to a tavern starts again.
MAX_AGE_S = 3600.0


def turn_of_message(message: Message, traits: ToolTraits) -> Turn | None:
    """A message as a turn for the index, or None if nobody said it and no tool gave it out."""
    if message.metadata.get("context") not in (None, "awake", "unasked"):
        return None
    if message.role == "tool":
        text, audience = message.content, message.audience
        is_news = message.name not in traits.tells_nothing_new
        if not text or not is_news or text.startswith('{"error":'):
            return None  # an error, a confirmation, or itself recalled
        return Turn(message.id, "", text, message.created_at, None, audience, "tool")
    text = said_in(message, traits)
    if message.role not in INDEXED_ROLES or not text:
        return None
    speaker, at = message.speaker_name, message.created_at
    return Turn(message.id, speaker, text, at, at[:10], message.audience)


def said_in(message: Message, traits: ToolTraits) -> str:
    """What a message says to others: its content, or what its tool calls say, a line each.

    Content beside tool calls is thought, not said, unless the only call keeps silent.
    """
    calls = [call.get("function") or {} for call in tool_calls(message)]
    if any(call.get("name") not in traits.silent for call in calls):
        spoken = (spoken_text(call) for call in calls if call.get("name") in traits.speaks)
        return "\n".join(text for text in spoken if text)
    if message.channel in SPEECH:
        return message.content
    return ""


def prune_low_importance_entries(entries: Iterable[JournalEntry], now: float) -> dict[str, Any]:
    """Decide which entries leave retrieval at `now`, seconds since the epoch.

    Returns ``{"pruned", "kept", "pruned_ids"}``: how many leave and stay, the ids of the former.
    """
    everything = list(entries)
    pruned = [entry.id for entry in everything if entry.is_worn(now)]
    return {"pruned": len(pruned), "kept": len(everything) - len(pruned), "pruned_ids": pruned}


def clear_stale_conversations(newest_first: Iterable[Message], now: float) -> dict[str, int]:
    """Count the conversations that are over: those in which nobody spoke for `MAX_AGE_S`.

    Returns ``{"cleared", "kept"}``: partners whose conversation is over, and goes on.
    """
    last: dict[str, float] = {}
    for message in newest_first:
        if message.role == "user" and message.channel in SPEECH and message.speaker_id:
            last.setdefault(message.speaker_id, seconds(message.created_at))
    kept = sum(now - at <= MAX_AGE_S for at in last.values())
    return {"cleared": len(last) - kept, "kept": kept}


T = TypeVar("T")
D = TypeVar("D")
# The id of the mark that all is in the index.
WHOLE = "whole"
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

    def count(self, scope: str, ids: Collection[str] | None = None) -> Deferred[int]:
        """Fires with how many turns are indexed, or of these ids, after what was done before."""
        return self._later(lambda index: index.count(scope, ids))

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


class Memory:
    """What the recall index holds of one scope.

    Args:
        scope: Whose it is.
        recall: The index of all.
        report: Called with what failed and the error, where work goes on without it.
    """

    def __init__(
        self, scope: str, recall: RecallJobs, report: Callable[[str, BaseException], None]
    ):
        self.scope, self.recall, self.report = scope, recall, report
        self._known_replaced, self._is_failing = recall.replaced, False

    def on_new_index(self) -> None:
        """Called when another index has replaced the one used before.

        Also when one that could not be written can be again.
        """

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

    def clear(self) -> Deferred[int | None]:
        """Remove all turns; fires with how many there were, None if that failed."""
        self._watched(self.recall.remove(self._mark, [WHOLE]), None)
        return self._watched(self.recall.clear(self.scope), None)

    def is_whole(self) -> Deferred[int | None]:
        """Fires with whether all that was stored once came into the index; None if it failed."""
        return self._watched(self.recall.count(self._mark), None)

    @property
    def _mark(self) -> str:
        """The scope of the mark."""
        return f"{WHOLE} {self.scope}"

    def count(self, ids: Collection[str] | None = None) -> Deferred[int | None]:
        """Fires with how many turns are indexed, or of these ids; None if the index failed."""
        return self._watched(self.recall.count(self.scope, ids), None)

    def found(self, query: Query, others: Sequence[Hit] = ()) -> Deferred[Sequence[Hit]]:
        """Fires with what the index finds, in places among `others`; those alone if it failed."""
        return self._in_time(self.recall.search(self.scope, query, others), others)

    def _in_time(
        self, done: Deferred[T], default: D, what: str = "recall index"
    ) -> Deferred[T | D]:
        return self._watched(in_time(done, SEARCH_TIMEOUT_S), default, what)

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


# Turns indexed at a time, and the pause after each batch, in which searches can run.
BATCH, PAUSE_S = 100, 0.05
# The same where somebody waits for the index.
SHORT_PAUSE_S = 0.005


class Outbox(Protocol):
    """Where the ids are noted that must still leave index and semantic memory."""

    outbox: list[str]


class Stores(Desk, Protocol):
    """What computes, and what keeps memories."""

    memories: MemoryBackend
    recall: RecallJobs


class Remembers(Remembering, Protocol):
    """An assistant, as its memory fills itself and is searched."""

    scope: str
    pk: int | None
    log: Callable[..., None]
    log_error: Callable[[str, BaseException], None]

    @property
    def state(self) -> Outbox:
        """What is stored of it."""

    @property
    def tools(self) -> Tools:
        """What it can do."""

    @property
    def mind(self) -> Stores:
        """What computes and keeps for it."""

    def may_embed(self, texts: Iterable[str]) -> bool:
        """Whether texts, for which a model may be billed, may be embedded now."""


class LifeMemory(Memory):
    """An assistant's memory, which its tools and its prompt use, with what it is made from."""

    pause = staticmethod(pause)

    def __init__(self, life: Remembers):
        super().__init__(life.scope, life.mind.recall, life.log_error)
        self._life, self.quarantine = life, Quarantine(life)
        self.syncing = False  # whether the index is being made complete

    def on_new_index(self) -> None:
        """Fill it, in the background."""
        self.mend(whole=True)

    def remember_messages(self, messages: Iterable[Message]) -> Deferred[int | None]:
        """Index what was said; fires with how many turns were indexed."""
        traits = self._life.tools.traits
        return self.add(turn for each in messages if (turn := turn_of_message(each, traits)))

    def remember_entry(self, entry: JournalEntry) -> Deferred[int | None]:
        """Index a journal entry as it is now; take it out if it takes no part in retrieval."""
        if entry.is_indexed(self._life.now()):
            return self.add([entry.turn])
        return self.forget([entry.id])

    @inlineCallbacks
    def search(self, query: Query) -> Steps[list[Hit]]:
        """Fires with what matches in words or in meaning, best first, without failing sources."""
        query = replace(query, audience=viewer(query.audience))  # None would search everything
        life, text, audience = self._life, query.text, query.audience
        others = [*found_notes(self.quarantine.notes(life.ledger.entries()), text, audience)]
        if life.may_embed([text]):
            memories = life.mind.memories.search  # the back end may be a game's own
            found = maybeDeferred(memories, self.scope, text, query.limit, audience)
            others += yield self._in_time(found.addCallback(list), [], "memory back end")
        profiles = life.entities.called(text, audience) if query.observations else ()
        if profiles:
            observed = life.mind.work(found_observations, profiles, text, audience)
            others += yield self._in_time(observed, [])
        others, hits = [*self.quarantine.hits(others)], list[Hit]()
        for most in (query.limit, DEEP):  # there may be many that are not used, all ahead of others
            all_hits = yield self.found(replace(query, limit=most), others)
            hits = [*self.quarantine.hits(all_hits)]
            if len(hits) == len(all_hits):
                break
        return hits[: query.limit]

    @property
    def _exists(self) -> bool:
        """Whether the assistant is not deleted."""
        return self._life.pk is not None

    @inlineCallbacks
    def mend(self, whole: bool = False) -> Steps[None]:
        """As `sync`, in the background: an error is logged."""
        try:
            yield self.sync(whole)
        except Exception as error:  # noqa: BLE001 - the assistant works without the index
            self.report("search index", error)

    @inlineCallbacks
    def rebuild(self) -> Steps[int]:
        """Empty the index and fill it with what is stored, in batches; fires with how many turns.

        The next start resumes an interrupted run. Fails with `StoreError`
        if the index cannot be written or is being filled.
        """
        if self.syncing:
            raise StoreError("The search index is being filled already; try again later.")
        added = yield self.clear()
        if added is not None:
            added = yield self.sync(True, SHORT_PAUSE_S)
        if added is None:
            raise StoreError("The search index cannot be written; see the log, then try again.")
        return int(added)

    @inlineCallbacks
    def sync(self, whole: bool = False, pause_s: float = PAUSE_S) -> Steps[int | None]:
        """Index what is stored and not indexed, from the newest on; fires with how many turns.

        It ends at a batch that the index holds already, unless an earlier run did not end or the
        `whole` is to be looked at. None if the index failed. A second call meanwhile does nothing.
        """
        added = 0
        if self.syncing:
            return 0
        self.syncing = True
        try:
            # A crash may have come between a withdrawal and this.
            yield self.forget(e.id for e in self._life.journal.recent() if e.withdrawn)
            while self._exists:
                began = self.recall.replaced
                count = yield self._fill(whole, pause_s)
                if count is None:
                    why = "the search index cannot be written and stays incomplete"
                    self._life.log(why, warning=True)
                    return None
                added += count
                if self.recall.replaced == began:
                    break
                whole = True  # another index took its place meanwhile
        finally:
            self.syncing = False
        if added:
            self._life.log(f"search index restored: {added} items added")
        return added

    @inlineCallbacks
    def _fill(self, whole: bool, pause_s: float) -> Steps[int | None]:
        """Go once through what is stored; fires with how many turns were added; None: it failed."""
        added, life = 0, self._life

        def written() -> Iterator[list[Turn]]:
            # Listed only when the messages are done, the newest first: a page that is turned is
            # not missed.
            for key in reversed(life.journal.pages()):
                entries = life.journal.page(key).entries
                yield [entry.turn for entry in entries if entry.is_indexed(life.now())]

        if (is_whole := (yield self.is_whole())) is None:
            return None
        said = _messages(life.history, life.tools.traits)
        for batches in (said, written()):
            for turns in filter(None, batches):
                count = yield self.add(turns)
                if count is None:
                    return None
                added += int(count)
                yield self.pause(seconds=pause_s)
                if not self._exists:  # deleted meanwhile
                    return added
                if not count and is_whole and not whole:
                    break
        whole_mark = [Turn(WHOLE, "", "", None)]
        marked = yield self._watched(self.recall.add(self._mark, whole_mark), None)
        if marked is None:
            return None
        return added

    def withdraw_entry(self, entry_id: str) -> None:
        """Withdraw an entry, and note that searches still find it; `forget_entry` does all."""
        life, state = self._life, self._life.state
        with life.journal.store.transaction():
            life.journal.withdraw([entry_id])
            life.entities.forget_sources([entry_id])
            state.outbox = list(dict.fromkeys((*state.outbox, entry_id)))

    @inlineCallbacks
    def forget_entry(self, entry_id: str) -> Steps[None]:
        """Withdraw a journal entry: it stays stored, but is no longer searched or consolidated.

        If a store fails, it fails with `StoreError`, but the entry is withdrawn, and the next night
        removes its traces. It can be repeated.
        """
        self.withdraw_entry(entry_id)
        yield self.clear_outbox()

    @inlineCallbacks
    def empty_outbox(self) -> Steps[None]:
        """As `clear_outbox`; what fails is only logged, as what was done stands."""
        try:
            yield self.clear_outbox()
        except Exception as error:  # noqa: BLE001
            self.report("publishing", error)

    @inlineCallbacks
    def clear_outbox(self) -> Steps[None]:
        """Take what was withdrawn or forgotten out of the recall index and of semantic memory.

        It is noted in the outbox in one transaction with its withdrawal. What fails stays noted: it
        is tried again after the next withdrawal, in the next night and at the next start. Fails
        with `StoreError` if either holds it still.
        """
        state = self._life.state
        while self._exists and (gone := state.outbox):  # or deleted meanwhile
            yield self.forget(gone)
            if (yield self.count(gone)) != 0:
                raise StoreError(
                    "The search index cannot be written and may still find what was taken back; "
                    "the next night tries it again."
                )
            memories = self._life.mind.memories
            yield memories.delete(self.scope, gone)
            if not (yield memories.ids(self.scope)).isdisjoint(gone):
                raise StoreError("Semantic memory could not be cleared of what is to go.")
            state.outbox = [each for each in state.outbox if each not in gone]


def _messages(history: HistoryHandler, traits: ToolTraits) -> Iterator[list[Turn]]:
    """Batches of what was said, the live first, then the archive from the newest segment on.

    Each is read when it is asked for: somebody may have been forgotten meanwhile.
    """

    def batches(read: Callable[[], Sequence[Message]]) -> Iterator[list[Turn]]:
        for stop in range(len(read()), 0, -BATCH):
            batch = read()[max(0, stop - BATCH) : stop]
            yield [turn for each in batch if (turn := turn_of_message(each, traits))]

    def archived(key: str) -> Sequence[Message]:
        segment = history.segment(key)
        if segment:
            return segment.messages
        return ()

    yield from batches(history.messages)
    # Only now: a compaction may have archived live messages meanwhile.
    for key in reversed(history.store.keys(ARCHIVE)):
        yield from batches(partial(archived, key))
