"""The lock that an assistant's turns, compactions and exports hold, one at a time."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred

T = TypeVar("T")


class TurnLock:
    """Lets one thing run at a time; whatever comes of it, the lock is free again.

    Attributes:
        running: What holds the lock, if anything does.
        is_exclusive: Whether that is something other than a tick.
    """

    def __init__(self) -> None:
        self.running: Deferred[Any] | None = None
        self.is_exclusive = False
        self._worked_s = 0.0
        self._since: float | None = None

    @property
    def worked_s(self) -> float:
        """Seconds for which something has held the lock, since the start."""
        return self._worked_s + (0.0 if self._since is None else time.monotonic() - self._since)

    def run(self, function: Callable[[], Any], exclusive: bool = False) -> "Deferred[Any]":
        """Run something under the lock, which must be free; fires with its result.

        The lock is free again before anything else learns of the result.
        """
        running: Deferred[Any] = Deferred()
        running.addCallback(lambda _: function())
        running.addBoth(self._freed)
        self.running, self.is_exclusive = running, exclusive
        self._since = time.monotonic()
        running.callback(None)
        return running

    def _freed(self, result: T) -> T:
        self._worked_s = self.worked_s
        self.running, self._since, self.is_exclusive = None, None, False
        return result

    def run_next(self, function: Callable[[], Any]) -> "Deferred[Any]":
        """Run something once what holds the lock now is done; fires with its result.

        Ticks are skipped until the value or Deferred that `function` returns is there. It must
        not ask for the lock itself. If the Deferred is cancelled before, it does not begin.
        """
        outcome: Deferred[Any] = Deferred()

        def begin() -> None:
            if outcome.called:
                return
            if self.running is not None:
                self.running.addBoth(begin_after)
                return
            done = self.run(function, exclusive=True)
            done.addCallbacks(outcome.callback, outcome.errback)

        def begin_after(result: T) -> T:
            begin()
            return result

        begin()
        return outcome
