"""Finding again what was heard, said or written: the recall index and semantic memory as one.

The index is derived data: what is added here can be rebuilt from Attributes at any time. All
its work runs on a daemon thread.
"""

import re
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks, succeed

from evennia_ai.background import Worker, in_time
from evennia_ai.history.audience import PUBLIC, STAFF, normalised, viewer, visible
from evennia_ai.history.messages import Message
from evennia_ai.history.tool_traits import ToolTraits
from evennia_ai.protocol import MEMORY_SUMMARY
from evennia_ai.rag_memory.crowding import (
    asks,
    behind_said,
    echoes_last,
    first_summaries,
    once,
    questions_last,
    repeats_last,
)
from evennia_ai.rag_memory.episodic_index import is_pruned
from evennia_ai.rag_memory.fusion import fused
from evennia_ai.rag_memory.injection import telling_words
from evennia_ai.rag_memory.journal_entry import RECALLED, JournalEntry
from evennia_ai.rag_memory.observation_search import found_observations
from evennia_ai.rag_memory.profile import Profile
from evennia_ai.rag_memory.turns import turn_of_entry, turn_of_message, turns_of

# How far down the index's ranking a look goes past what crowds: for a hit with every word of a
# typed query, and for the answer to what is asked often.
DEEP = 400
# Words of a query that counts as typed: not said by somebody, but looked for by these very words.
TYPED_WORDS = 8
# A hit of the index without a word that is in a query or near to one counts from this probability
# on. Of the evidence among the first ten for LoCoMo's questions 0.1 % lies below it, of tavern
# talk's none; most of what a word nobody ever said brings up lies below.
NEAR_TURN = 0.003
# The same of the score of a semantic store that does not say so itself.
NEAR_MEMORY = 0.3
# Behind the name of a scope: the part for what tools gave out. It stands apart, so that what was
# said is ranked as if it were alone. Of it so much is looked at, and so many stand in a result.
TOOLS, TOOL_LOOK, TOOL_HITS = " tools", 50, 3
# Turns kept while the index cannot be written; beyond them the next start catches up.
MOST_PENDING = 5_000
# Turns taken out of the index in one piece of work.
CLEARED_AT_ONCE = 2_000
# A turn goes on without its memories rather than wait longer for a store, seconds.
SEARCH_TIMEOUT_S = 10.0


class Memory:
    """One assistant's memory, as its tools and its prompt use it.

    Args:
        scope: Whose it is.
        worker: The daemon thread that owns the index.
        open_index: Makes or gives the `RecallIndex`; called on that thread.
        semantic: Gives the semantic store, or None.
        report: Called with an error that was survived.
        now: The clock, seconds since the epoch.
        importance_of: Gives the importance of those of these journal entries that may be out of
            retrieval before the night took them out of the index, by id.
        profiles: Gives the profiles of all entities, by id, those a query names in full.
        refresh: Called before a search, so that what was put in by hand is indexed.
        on_new_index: Called when another index stands in the place of the one used before.
        traits: Gives the traits of the assistant's tools.
    """

    def __init__(
        self,
        scope: str,
        worker: Worker,
        open_index: Callable[[], Any],
        semantic: Callable[[], Any] = lambda: None,
        report: Callable[[str, BaseException], None] = lambda what, error: None,
        now: Callable[[], float] = time.time,
        importance_of: Callable[[Collection[str]], Mapping[str, int]] = lambda ids: {},
        profiles: Callable[[str], Mapping[str, Profile]] = lambda query: {},
        refresh: Callable[[], Any] = lambda: None,
        on_new_index: Callable[[], Any] = lambda: None,
        traits: Callable[[], ToolTraits] = ToolTraits,
    ):
        self.scope = scope
        self._parts = (scope, scope + TOOLS)
        self._worker = worker
        self._open_index = open_index
        self._semantic = semantic
        self._report = report
        self._now = now
        self._importance_of = importance_of
        self._profiles = profiles
        self._refresh = refresh
        self._index: Any = None
        self._on_new_index = on_new_index
        self._traits = traits
        self._replaced = self._replaced_told = 0
        self._restoring = False
        # What was forgotten or corrected while the index is made whole: copies read before that
        # are stale.
        self._outdated: set[str] = set()
        self._pending: deque[dict[str, Any]] = deque(maxlen=MOST_PENDING)

    @property
    def replaced(self) -> int:
        """How often another index stood in the place of the one used before."""
        return self._replaced

    @property
    def restoring(self) -> bool:
        """Whether the index is being made whole."""
        return self._restoring

    @contextmanager
    def restore(self) -> Iterator[None]:
        """The time in which the index is made whole."""
        self._restoring = True
        try:
            yield
        finally:
            self._restoring = False
            self._outdated.clear()

    def begin_reading(self) -> None:
        """Begin to read, inside `restore`, what the index is made whole from."""
        self._outdated.clear()

    def still_valid(self, turns: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those of these turns that were not forgotten or changed since `begin_reading`.

        What was changed is in the index by itself, as it is now.
        """
        return [turn for turn in turns if turn["id"] not in self._outdated]

    def _outdate(self, ids: Iterable[str]) -> None:
        """Note that copies of these are stale, if any are held."""
        if self._restoring:
            self._outdated.update(ids)

    def remember_messages(self, messages: Iterable[Message]) -> "Deferred[int]":
        """Index what was said; fires with how many turns that were."""
        return self._add(turns_of(messages, (), self._now(), self._traits()))

    def remember_entry(self, entry: JournalEntry) -> "Deferred[int]":
        """Index a journal entry, unless it only repeats what memory held already."""
        recalled = entry.source_type == RECALLED
        return succeed(0) if recalled else self._add([turn_of_entry(entry)])

    def forget(self, ids: Iterable[str]) -> "Deferred[Any]":
        """Take turns out of the index; fires with how many there were, None if that failed."""
        wanted = set(ids)
        self._outdate(wanted)
        return self._run(lambda index: self._remove(index, wanted)) if wanted else succeed(0)

    def _drop_pending(self, ids: Collection[str]) -> None:
        for _ in range(len(self._pending)):
            turn = self._pending.popleft()
            if turn["id"] not in ids:
                self._pending.append(turn)

    def _remove(self, index: Any, ids: Collection[str]) -> int:
        self._drop_pending(ids)
        return sum(int(index.remove(part, list(ids))) for part in self._parts)

    def _indexed(self, index: Any, ids: Collection[str]) -> dict[str, tuple[str, str]]:
        """Text and audience of those of these turns that are indexed, by id."""
        turns = (turn for part in self._parts for turn in index.get(part, ids))
        return {turn.id: (turn.text, normalised(turn.audience)) for turn in turns}

    def catch_up(
        self, turns: Callable[[], Iterable[dict[str, Any]]], gone: Iterable[str] = ()
    ) -> "Deferred[Any]":
        """Index those of these turns that are missing or other than indexed, as after a crash.

        What semantic memory made of those that were other leaves it; the night makes it anew.

        Args:
            turns: Gives the turns; called now, on the reactor thread.
            gone: Ids of turns that are to be in the index no more.

        Returns:
            A Deferred that fires with how many were indexed; None if the index failed.
        """
        unwanted = set(gone)
        self._outdate(unwanted)
        wanted = list(turns())
        changed: list[str] = []

        def add_missing(index: Any) -> int:
            self._remove(index, unwanted)
            known = self._indexed(index, [turn["id"] for turn in wanted])
            missing = [turn for turn in wanted if known.get(turn["id"]) != _content(turn)]
            changed.extend(turn["id"] for turn in missing if turn["id"] in known)
            put = _put(index, self.scope, missing)
            self._drop_pending({turn["id"] for turn in wanted})  # older than these
            return put

        added = self._run(add_missing)
        return added.addCallback(lambda count: self._without_memories(changed, count))

    def correct_entry(self, entry: JournalEntry) -> "Deferred[Any]":
        """Index a journal entry as somebody changed it by hand."""
        self._outdate([entry.id])
        turns = turns_of((), [entry], self._now(), self._traits())
        if turns:
            return self.catch_up(lambda: turns)
        taken_out = self.catch_up(list, gone=[entry.id])
        return taken_out.addCallback(lambda n: self._without_memories([entry.id], n))

    def correct_messages(
        self, messages: Iterable[Message], gone: Collection[str] = ()
    ) -> "Deferred[Any]":
        """Index messages as somebody changed them by hand.

        Args:
            messages: They, as they are now; one that says nothing any more is taken out.
            gone: Ids of messages that were taken out.
        """
        traits = self._traits()
        found = {message.id: turn_of_message(message, traits) for message in messages}
        self._outdate(found)
        mute = [each for each, turn in found.items() if turn is None]
        turns = [turn for turn in found.values() if turn is not None]
        return self.catch_up(lambda: turns, gone=[*mute, *gone])

    @inlineCallbacks
    def _without_memories(
        self, sources: Sequence[str], count: int | None
    ) -> Generator["Deferred[Any]", Any, int | None]:
        """Delete what semantic memory made of these; fires with the count that was given."""
        store = self._semantic()
        if not sources or store is None:
            return count
        try:
            known = yield store.sources(self.scope)
            yield store.delete(self.scope, [known[each] for each in sources if each in known])
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a store may be a game's
            self._report("semantic memory", error)
        return count

    @inlineCallbacks
    def clear(self) -> Generator["Deferred[Any]", Any, int | None]:
        """Take all turns out of the index, a part at a time, so that others' searches go on.

        Returns:
            A Deferred that fires with how many there were; None if the index failed.
        """

        def clear_part(index: Any) -> int:
            self._pending.clear()
            return sum(int(index.clear(part, CLEARED_AT_ONCE)) for part in self._parts)

        total = 0
        while True:
            cleared = yield self._run(clear_part)
            if cleared is None:
                return None
            total += cleared
            if cleared < CLEARED_AT_ONCE:
                return total

    def set_filling(self, filling: bool) -> "Deferred[bool | None]":
        """Note in the index whether it is being filled; fires with True, None if that failed."""

        def note(index: Any) -> bool:
            index.set_filling(self.scope, filling)
            return True

        return self._run(note)

    def missing(self, ids: Iterable[str]) -> "Deferred[int | None]":
        """Fires with how many of these turns are not indexed; None if that cannot be known.

        At least 1 where a filling of the index has begun and not ended.
        """
        wanted = set(ids)

        def count(index: Any) -> int:
            lacking = len(wanted) - len(self._indexed(index, wanted))
            return max(lacking, int(index.is_filling(self.scope)))

        return self._run(count)

    def count(self) -> "Deferred[int | None]":
        """Fires with how many turns are indexed; None if that cannot be known."""
        return self._run(lambda index: sum(index.count(part) for part in self._parts))

    @inlineCallbacks
    def search(
        self,
        query: str,
        limit: int = 10,
        audience: str = PUBLIC,
        exclude: Sequence[str] = (),
        own_name: str = "",
        observations: bool = False,
        tools: bool = False,
    ) -> Generator["Deferred[Any]", Any, list[dict[str, Any]]]:
        """Find what matches, in words or in meaning.

        Args:
            query: What to look for.
            limit: Most results.
            audience: Who will be told; only what they may know is found.
            exclude: Ids left out, as the question itself.
            own_name: The assistant's name, where few of her own lines are wanted.
            observations: Whether to find, too, what is known of people, places and things.
            tools: Whether to find, too, what tools gave out, behind what was said.

        Returns:
            A Deferred that fires with ``{"id", "kind", "speaker", "at", "text", "audience",
            "score"}``, best first, those of journal entries also with ``importance`` (None where
            that is not known). If one of the two sources fails, the other's results come alone.
        """
        self._refresh()
        audience = viewer(audience)  # None would search the whole index
        skip = set(exclude)
        wanted = 2 * limit + len(skip)  # some are left out again as too many of a kind
        lexical, given = yield self._run(
            lambda index: (
                self._ranked(index, query, wanted, audience),
                self._given(index, query, audience, skip) if tools else [],
            ),
            default=([], []),
            timeout_s=SEARCH_TIMEOUT_S,
        )
        semantic = yield self._semantic_hits(query, wanted, audience)
        known = yield self._observations(query, audience) if observations else succeed([])
        merged = fused([lexical, semantic, known])
        fresh = self._lasting([hit for hit in merged if hit["id"] not in skip])
        said = echoes_last(first_summaries(_tidied(fresh)), own_name)[:limit]
        return behind_said(said, given, query)[:limit]

    def _given(
        self, index: Any, query: str, audience: str, skip: Collection[str]
    ) -> list[dict[str, Any]]:
        """What tools gave out that holds words of a query: the best few, each text once."""
        hits = index.search(self.scope + TOOLS, query, limit=TOOL_LOOK, audience=audience)
        found = [_as_dict(hit) for hit in hits if hit.matches and hit.turn_id not in skip]
        return _exact_first(once(found), _words(query))[:TOOL_HITS]

    def _observations(self, query: str, audience: str) -> "Deferred[list[dict[str, Any]]]":
        """Fires with what is known of those a query is about; read on the index's thread."""
        profiles = self._profiles(query)
        if not profiles:
            return succeed([])
        return self._run(
            lambda index: found_observations(profiles, query, audience),
            default=[],
            timeout_s=SEARCH_TIMEOUT_S,
        )

    def _lasting(self, hits: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Hits with their importance, without what is out of retrieval by now."""
        entries = {hit["id"] for hit in hits if hit["kind"] == "journal"}
        known = self._importance_of(entries) if entries else {}
        weighed = [
            {**hit, "importance": known.get(hit["id"])} if hit["id"] in entries else hit
            for hit in hits
        ]
        now = self._now()
        return [hit for hit in weighed if not is_pruned(hit.get("importance"), hit["at"], now)]

    def _ranked(self, index: Any, query: str, limit: int, audience: str) -> list[dict[str, Any]]:
        """The index's hits, each text once, few that only ask, exact ones of typed words first.

        The index ranks by what answers a question; who types the very words wants them.
        """
        words = _words(query)
        typed = 0 < len(words) <= TYPED_WORDS and not asks(query)

        def look(depth: int) -> list[dict[str, Any]]:
            hits = index.search(self.scope, query, limit=depth, audience=audience)
            return [_as_dict(hit) for hit in hits if hit.matches or hit.score >= NEAR_TURN]

        hits = _exact_first(look(DEEP), words) if typed else look(limit)
        if len(hits) >= limit and _is_crowded(hits[:limit]):
            return _tidied(hits if typed else look(max(limit, DEEP)))[:limit]
        return _tidied(hits[:limit])

    @inlineCallbacks
    def _semantic_hits(
        self, query: str, limit: int, audience: str
    ) -> Generator["Deferred[Any]", Any, list[dict[str, Any]]]:
        store = self._semantic()
        if store is None:
            return []
        try:
            found = store.search(self.scope, query, limit=limit, audience=audience)
            memories = yield in_time(found, SEARCH_TIMEOUT_S)
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a turn goes on without; a store may be a game's
            self._report("semantic search", error)
            return []
        near, wanted = getattr(store, "near", NEAR_MEMORY), telling_words(query)
        hits = [_as_hit(memory) for memory in memories if _visible(memory, audience)]
        return [h for h in hits if h["score"] >= near or wanted & telling_words(h["text"])]

    def _add(self, turns: list[dict[str, Any]]) -> "Deferred[int]":
        """Index turns; what comes while the thread is busy goes into one batch."""
        if not turns:
            return succeed(0)
        self._pending.extend(turns)
        return self._run(self._flush, default=0)

    def _flush(self, index: Any) -> int:
        turns = [self._pending.popleft() for _ in range(len(self._pending))]
        try:
            return _put(index, self.scope, turns) if turns else 0
        except Exception:
            self._pending.extendleft(reversed(turns))  # for the next time
            raise

    def _run(
        self, work: Callable[[Any], Any], default: Any = None, timeout_s: float | None = None
    ) -> "Deferred[Any]":
        """Do something with the index on its thread; fires with the result, or the default."""
        done = self._worker.submit(lambda: self._done(work)).addBoth(self._told)

        def survived(failure: Any) -> Any:
            # A cancelled turn ends here too; it must not go on without its memories.
            if failure.check(CancelledError):
                return failure
            self._report("recall index", failure.value)
            return default

        if timeout_s is not None:
            in_time(done, timeout_s)
        return done.addErrback(survived)

    def _done(self, work: Callable[[Any], Any]) -> Any:
        index = self._opened()
        try:
            return work(index)
        except Exception:
            if not index.damaged:
                raise
        return work(self._opened())  # an empty one by now, unless a game put its own in place

    def _opened(self) -> Any:
        """The index, on its thread; counted if it is another one than before."""
        index = self._open_index()
        if self._index is not None and self._index is not index:
            self._replaced += 1
        self._index = index
        return index

    def _told(self, result: Any) -> Any:
        """Pass a result on, on the reactor thread, after telling of another index."""
        if self._replaced != self._replaced_told:
            self._replaced_told = self._replaced
            self._on_new_index()
        return result


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _exact_first(hits: Sequence[dict[str, Any]], words: set[str]) -> list[dict[str, Any]]:
    """The hits, first those in which every word of a query stands and that do not just ask."""

    def exact(hit: dict[str, Any]) -> bool:
        text = f"{hit['speaker']} {hit['text']}"
        held = all(word in text.lower() for word in words) and words <= _words(text)
        return held and not asks(hit["text"])

    return sorted(hits, key=lambda hit: not exact(hit))


def _tidied(hits: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each text once, few questions and few of the same words first."""
    return questions_last(repeats_last(once(hits)))


def _is_crowded(hits: Sequence[dict[str, Any]]) -> bool:
    """Whether more than half of the hits only ask or repeat."""
    return 2 * sum(not asks(hit["text"]) for hit in once(hits)) < len(hits)


def _content(turn: Mapping[str, Any]) -> tuple[str, str]:
    """What of a turn may be changed by hand: text and audience."""
    return turn["text"], normalised(turn["audience"])


def _put(index: Any, scope: str, turns: Sequence[dict[str, Any]]) -> int:
    from evennia_ai.recall import Turn

    outputs = [Turn(**turn) for turn in turns if turn["kind"] == "tool"]
    index.add(scope, [Turn(**turn) for turn in turns if turn["kind"] != "tool"])
    if outputs:
        index.add(scope + TOOLS, outputs)
    return len(turns)


def _as_dict(hit: Any) -> dict[str, Any]:
    return {
        "id": hit.turn_id,
        "kind": hit.kind,
        "speaker": hit.speaker,
        "at": hit.at,
        "text": hit.text,
        "audience": hit.audience,
        "score": round(float(hit.score), 3),
    }


def _as_hit(memory: Mapping[str, Any]) -> dict[str, Any]:
    meta = memory.get("metadata") or {}
    return {
        "id": meta.get("source_id") or memory["id"],
        "kind": "experience" if meta.get("type") == MEMORY_SUMMARY else "memory",
        "speaker": "",
        "at": meta.get("at") or "",
        "text": memory["text"],
        "audience": _audience(memory),
        "score": round(float(memory.get("score") or 0.0), 3),
        "importance": meta.get("importance"),
    }


def _visible(memory: Mapping[str, Any], audience: str) -> bool:
    return visible(_audience(memory), audience)


def _audience(memory: Mapping[str, Any]) -> str:
    """Who may find a memory; one of which nobody knows for whom it is, staff only."""
    stored = (memory.get("metadata") or {}).get("audience")
    return normalised(stored) if stored else STAFF
