"""Work on the recall index, on the daemon thread that owns it."""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from twisted.internet.defer import Deferred

from evennia_ai.background import Worker
from evennia_ai.history.audience import normalised
from evennia_ai.rag_memory.observations import found_observations
from evennia_ai.rag_memory.profile import Profile
from evennia_ai.rag_memory.ranking import (
    depth,
    is_crowded,
    is_typed,
    outputs_worth_showing,
    shortlist,
)
from evennia_ai.recall.values import Hit, Query, Turn

if TYPE_CHECKING:
    from evennia_ai.recall.index import RecallIndex

T = TypeVar("T")

# Hits read of the index where the best may be crowded: for a typed query, to find a hit with all
# its words, and for one asked often, to find its answer among the questions.
DEEP = 400
# Least probability of a hit that has no word in or near the query. Of the evidence among the first
# ten hits, for LoCoMo's questions and for tavern talk, none lies below it, but most of what a word
# nobody ever said brings up.
NEAR_TURN = 0.003
# Suffix of the scope for tools' results, which are kept apart so that they do not influence the
# ranking of what was said; and how many of its hits are read.
TOOLS, TOOL_LOOK = " tools", 50
# Turns of a scope kept while the index cannot be written; beyond them the next start catches up.
MOST_PENDING = 5_000


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
        self._pending = defaultdict[str, deque[Turn]](lambda: deque(maxlen=MOST_PENDING))

    def add(self, scope: str, turns: Sequence[Turn]) -> Deferred[int]:
        """Index turns; what comes while the thread is busy goes into one batch.

        Searches come first: somebody waits for their answer, and excludes what was just said.
        """
        pending = self._pending[scope]
        pending.extend(turns)

        def flush(index: "RecallIndex") -> int:
            batch = [pending.popleft() for _ in range(len(pending))]
            try:
                return _put(index, scope, batch)
            except Exception:
                pending.extendleft(reversed(batch))  # for the next time
                raise

        return self._submit(flush, self.worker.submit_later)

    def catch_up(
        self, scope: str, turns: Sequence[Turn], gone: Collection[str] = ()
    ) -> Deferred[tuple[int, list[str]]]:
        """Index those of these turns that are missing or differ, and remove the `gone` ones.

        Fires with how many were indexed, and the ids of those that differed.
        """

        def add_missing(index: "RecallIndex") -> tuple[int, list[str]]:
            self._remove(index, scope, gone)
            known = _indexed(index, scope, [turn.id for turn in turns])
            missing = [turn for turn in turns if known.get(turn.id) != _content(turn)]
            put = _put(index, scope, missing)
            self._drop_pending(scope, {turn.id for turn in turns})  # older than these
            return put, [turn.id for turn in missing if turn.id in known]

        return self._submit(add_missing)

    def remove(self, scope: str, ids: Collection[str]) -> Deferred[int]:
        """Remove turns; fires with how many there were."""
        return self._submit(lambda index: self._remove(index, scope, ids))

    def clear(self, scope: str, at_most: int) -> Deferred[int]:
        """Remove so many turns; fires with how many there were."""

        def clear_part(index: "RecallIndex") -> int:
            self._pending[scope].clear()
            return sum(index.clear(part, at_most) for part in _parts(scope))

        return self._submit(clear_part)

    def set_filling(self, scope: str, filling: bool) -> Deferred[bool]:
        """Note in the index whether it is being filled; fires with True."""

        def note(index: "RecallIndex") -> bool:
            index.set_filling(scope, filling)
            return True

        return self._submit(note)

    def missing(self, scope: str, ids: Collection[str]) -> Deferred[int]:
        """Fires with how many of these turns are not indexed; at least 1 during a filling."""

        def count(index: "RecallIndex") -> int:
            missing = len(ids) - len(_indexed(index, scope, ids))
            return max(missing, index.is_filling(scope))

        return self._submit(count)

    def count(self, scope: str) -> Deferred[int]:
        """Fires with how many turns are indexed, after those that were added before."""
        return self._submit(
            lambda index: sum(index.count(part) for part in _parts(scope)),
            self.worker.submit_later,
        )

    def search(self, scope: str, query: Query) -> Deferred[list[Hit]]:
        """Fires with the index's hits; a typed or often asked query looks deeper."""

        def search(index: "RecallIndex") -> list[Hit]:
            def look(most: int) -> list[Hit]:
                hits = index.search(scope, query.text, limit=most, audience=query.audience)
                return [hit for hit in hits if hit.matches or hit.score >= NEAR_TURN]

            hits = look(DEEP if is_typed(query) else depth(query))
            if not is_typed(query) and is_crowded(hits, query):
                hits = look(max(depth(query), DEEP))
            found = shortlist(hits, query)
            if query.tools:
                outputs = index.search(
                    scope + TOOLS, query.text, limit=TOOL_LOOK, audience=query.audience
                )
                found += outputs_worth_showing([hit for hit in outputs if hit.matches], query)
            return found

        return self._submit(search)

    def observations(self, profiles: Mapping[str, Profile], query: Query) -> Deferred[list[Hit]]:
        """Fires with what profiles hold about those in a query."""
        return self.worker.submit(found_observations, profiles, query.text, query.audience)

    def _remove(self, index: "RecallIndex", scope: str, ids: Collection[str]) -> int:
        self._drop_pending(scope, ids)
        return sum(index.remove(part, ids) for part in _parts(scope))

    def _drop_pending(self, scope: str, ids: Collection[str]) -> None:
        pending = self._pending[scope]  # in place, as the reactor thread appends to it meanwhile
        for _ in range(len(pending)):
            turn = pending.popleft()
            if turn.id not in ids:
                pending.append(turn)

    def _submit(
        self,
        work: Callable[["RecallIndex"], T],
        submit: Callable[[Callable[[], T]], Deferred[T]] | None = None,
    ) -> Deferred[T]:
        def run() -> T:
            index = self._opened()
            try:
                return work(index)
            except Exception:
                if not index.damaged:
                    raise
            return work(self._opened())  # an empty one by now, unless a game put its own in place

        return (submit or self.worker.submit)(run)

    def _opened(self) -> "RecallIndex":
        """The index, on its thread; counted if it is another one than before."""
        index = self.open_index()
        if self._index is not None and self._index is not index:
            self.replaced += 1
        self._index = index
        return index


def _parts(scope: str) -> tuple[str, str]:
    return scope, scope + TOOLS


def _indexed(index: "RecallIndex", scope: str, ids: Collection[str]) -> dict[str, tuple[str, str]]:
    """Text and audience of those of these turns that are indexed, by id."""
    turns = (turn for part in _parts(scope) for turn in index.get(part, ids))
    return {turn.id: _content(turn) for turn in turns}


def _content(turn: Turn) -> tuple[str, str]:
    """What of a turn may be changed by hand: text and audience."""
    return turn.text, normalised(turn.audience)


def _put(index: "RecallIndex", scope: str, turns: Sequence[Turn]) -> int:
    index.add(scope, [turn for turn in turns if turn.kind != "tool"])
    index.add(scope + TOOLS, [turn for turn in turns if turn.kind == "tool"])
    return len(turns)
