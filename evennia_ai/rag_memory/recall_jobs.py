"""Work on the recall index, on the daemon thread that owns it."""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, TypeVar

from twisted.internet.defer import Deferred, gatherResults

from evennia_ai.background import Worker
from evennia_ai.rag_memory.ranking import DEEP, once, ranked
from evennia_ai.recall.values import Hit, Query, Turn

if TYPE_CHECKING:
    from evennia_ai.recall.index import RecallIndex

T = TypeVar("T")

# Most outputs of tools in a result.
OUTPUTS = 3


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
        """Remove turns, ahead of searches and again behind additions; fires with how many."""

        def drop(index: "RecallIndex") -> int:
            return index.remove(scope, ids)

        both = gatherResults(
            [self.worker.submit(self._done, drop), self._later(drop)], consumeErrors=True
        )
        return both.addCallbacks(sum, lambda failure: failure.value.subFailure)

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
