"""Daemon threads for work that must not run on the reactor, each answered by a Deferred.

A blocking call in Twisted's own thread pool makes `evennia reload` wait for it and lose the
game. Daemon threads do not: the old process ends at once, and what was in flight is cancelled.
Only an import under way is waited for: Python freezes daemon threads together with the locks of
what they import, and then imports modules itself.
"""

import asyncio
import atexit
import itertools
import queue
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import FrameType
from typing import Any, ParamSpec, TypeVar, cast

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import cooperate, deferLater

P = ParamSpec("P")
T = TypeVar("T")
# What an `@inlineCallbacks` function returns before it is decorated: its Deferred fires with T.
Steps = Generator[Deferred[Any], Any, T]

# How long the end of the process waits for imports.
IMPORT_GRACE_S = 5.0

_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
# Steps of long work. One begins in a turn of the reactor, so that players come in between.
_steps: deque[Deferred[None]] = deque()


def _default_reactor() -> ReactorBase:
    from twisted.internet import reactor

    return cast(ReactorBase, reactor)


def _begin() -> None:
    """Begin a step, and plan the next one for another turn of the reactor."""
    step = _steps.popleft()
    if _steps:
        _default_reactor().callLater(0, _begin)
    if not step.called:  # cancelled
        step.callback(None)


def pause(reactor: IReactorTime | None = None, seconds: float = 0.0) -> Deferred[None]:
    """Give everything else on the reactor a turn; fires after at least `seconds`.

    Of the steps that go on at once only one does in a turn of the reactor.
    """
    if reactor is not None or seconds:
        return deferLater(reactor or cast(IReactorTime, _default_reactor()), seconds)
    step: Deferred[None] = Deferred()
    _steps.append(step)
    if len(_steps) == 1:
        _default_reactor().callLater(0, _begin)
    return step


def in_time(
    running: Deferred[T], timeout_s: float, reactor: IReactorTime | None = None
) -> Deferred[T]:
    """Cancel a Deferred that has not fired after `timeout_s`; it fails with `TimeoutError`."""
    return running.addTimeout(timeout_s, reactor or cast(IReactorTime, _default_reactor()))


def _spawn(name: str, target: Callable[[], object]) -> None:
    """Start a daemon thread whose imports the end of the process waits for."""
    thread = threading.Thread(target=target, name=name, daemon=True)
    atexit.unregister(wait_for_imports)  # it is registered once
    atexit.register(wait_for_imports)
    _threads.add(thread)
    thread.start()


def wait_for_imports(grace_s: float = IMPORT_GRACE_S) -> bool:
    """Wait until no thread of the package imports; returns whether none does."""
    deadline = time.monotonic() + grace_s
    while True:
        frames = sys._current_frames()
        if not any(_imports(frames.get(thread.ident or 0)) for thread in list(_threads)):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)


def _imports(frame: FrameType | None) -> bool:
    """Whether a frame or one that called it belongs to Python's import system."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


class Worker:
    """One or more daemon threads that run plain functions; results go to the reactor.

    Functions begin in the order in which they were submitted, those of `submit_later` when no
    other waits.
    """

    def __init__(self, name: str, threads: int = 1):
        self.name = name
        self._jobs: queue.PriorityQueue[tuple[bool, int, Callable[[], None]]]
        self._jobs = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._most, self._alive = threads, 0

    def submit(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """Run a function on a thread; fires on the reactor thread with its result.

        Cancelling the Deferred drops the result and skips a job that has not begun.
        """
        return self._submit(False, function, *args, **kwargs)

    def submit_later(
        self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> Deferred[T]:
        """As `submit`, but behind all that is submitted before the function begins."""
        return self._submit(True, function, *args, **kwargs)

    def _submit(
        self, is_later: bool, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> Deferred[T]:
        deferred: Deferred[T] = Deferred()
        reactor = _default_reactor()

        def job() -> None:
            if deferred.called:
                return
            try:
                outcome: T | BaseException = function(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - handed to the waiting Deferred
                outcome = error
            _deliver(reactor, deferred, outcome)

        with self._lock:
            if self._alive < self._most:
                self._alive += 1
                _spawn(self.name, self._run)
        self._jobs.put((is_later, next(self._numbers), job))
        return deferred

    def _run(self) -> None:
        while True:
            _, _, job = self._jobs.get()
            job()


def _deliver(reactor: ReactorBase, deferred: Deferred[T], result: T | BaseException) -> None:
    """Fire `deferred` on the reactor thread, unless it has been cancelled."""

    def fire() -> None:
        if deferred.called:
            return
        if isinstance(result, BaseException):
            deferred.errback(result)
        else:
            deferred.callback(result)

    reactor.callFromThread(fire)


class _DaemonExecutor(ThreadPoolExecutor):
    """A daemon thread for each job: those of the standard pool delay the end of the process.

    asyncio insists on a `ThreadPoolExecutor` as a loop's default executor.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function on a thread of its own; see `concurrent.futures.Executor.submit`."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - handed to the waiting future
                future.set_exception(error)
            else:
                future.set_result(result)

        future.set_running_or_notify_cancel()
        _spawn("evennia-ai-helper", run)
        return future


class AsyncioThread:
    """One daemon thread with an asyncio loop, for any number of calls at a time."""

    def __init__(self, name: str):
        self.name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Deferred[T]:
        """Run a coroutine on the loop; fires on the reactor thread with its result.

        Cancelling the Deferred cancels the coroutine.
        """
        reactor = _default_reactor()
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.SelectorEventLoop()
                self._loop.set_default_executor(_DaemonExecutor())
                _spawn(self.name, self._loop.run_forever)
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        deferred: Deferred[T] = Deferred(lambda _: cast(None, future.cancel()))

        def finish(done: Future[T]) -> None:
            if done.cancelled():
                _deliver(reactor, deferred, CancelledError())
            else:
                _deliver(reactor, deferred, done.exception() or done.result())

        future.add_done_callback(finish)
        return deferred

    def notify(self, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Call a function on the reactor thread, soon. For use from coroutines."""
        _default_reactor().callFromThread(function, *args, **kwargs)


class TurnLock:
    """Lets one thing run at a time; whatever comes of it, the lock is free again."""

    def __init__(self) -> None:
        self.running: Deferred[Any] | None = None  # what holds the lock, if anything does
        self.is_exclusive = False  # whether that is something other than a tick
        self._worked_s = 0.0
        self._since: float | None = None

    @property
    def worked_s(self) -> float:
        """Seconds for which something has held the lock, since the start."""
        if self._since is None:
            return self._worked_s
        return self._worked_s + time.monotonic() - self._since

    def run(self, function: Callable[[], Any], exclusive: bool = False) -> "Deferred[Any]":
        """Run something under the lock, which must be free; fires with its result.

        The lock is free again before anything else learns of the result.
        """
        running: Deferred[Any] = Deferred()
        running.addCallback(lambda _: function())

        def freed(result: T) -> T:
            self._worked_s = self.worked_s
            self.running, self._since, self.is_exclusive = None, None, False
            return result

        running.addBoth(freed)
        self.running, self.is_exclusive = running, exclusive
        self._since = time.monotonic()
        running.callback(None)
        return running

    def run_here(self, function: Callable[[], Any]) -> "Deferred[Any]":
        """Run something at once, under the lock: the caller's, or its own if the lock is free."""
        if self.running is not None:
            return maybeDeferred(function)
        return self.run(function, exclusive=True)

    def holder(self) -> "Deferred[Any]":
        """What holds the lock; raises `RuntimeError` if nothing does.

        Functions that need the lock begin with it, so that a call without the lock is found.
        """
        if self.running is None:
            raise RuntimeError("This needs the turn lock; call it by `run_exclusive`.")
        return self.running

    def run_steps(self, steps: Iterator[None]) -> "Deferred[Any]":
        """Run the steps of what holds the lock, a few at a time; fires when all are done."""
        self.holder()
        return cooperate(steps).whenDone()

    def run_next(self, function: Callable[[], Any]) -> "Deferred[Any]":
        """Run something once what holds the lock now is done; fires with its result.

        Ticks are skipped until the value or Deferred that `function` returns is there. It must
        not ask for the lock itself. If the Deferred is cancelled before, it does not begin.
        """
        outcome: Deferred[Any] = Deferred()

        def begin(result: Any = None) -> Any:
            if outcome.called:
                return result
            if self.running is not None:
                self.running.addBoth(begin)
            else:
                done = self.run(function, exclusive=True)
                done.addCallbacks(outcome.callback, outcome.errback)
            return result

        begin()
        return outcome
