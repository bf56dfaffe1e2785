"""Daemon threads for work that must not run on the reactor, each answered by a Deferred.

A blocking call in Twisted's own thread pool makes `evennia reload` wait for it and lose the
game. Daemon threads do not: the old process ends at once, and what was in flight is cancelled.

A daemon thread must not be importing when the process ends: Python freezes such threads together
with their locks, and then imports modules itself. `install_import_gate`, called at server start,
stops imports on these threads first.
"""

import asyncio
import atexit
import functools
import gc
import itertools
import queue
import socket
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from types import FrameType
from typing import Any, ParamSpec, TypeVar, cast

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall, deferLater

P = ParamSpec("P")
T = TypeVar("T")
# What an `@inlineCallbacks` function returns before it is decorated: its Deferred fires with T.
Steps = Generator[Deferred[Any], Any, T]

# Threads for work that asyncio libraries hand to a loop's executor. Most of it computes, and each
# computing thread can keep the reactor waiting 5 ms for Python's lock, so there are few.
_HELPER_THREADS = 2
# Threads for name look-ups. They wait without the lock; this many are enough for a burst.
_LOOKUP_THREADS = 16
# A helper thread ends after this long without work.
_IDLE_S = 30.0
# Seconds between two looks whether garbage can be collected.
COLLECT_EVERY_S = 10.0
# Looks after which it is collected in any case.
MOST_OVERDUE = 60
# Collections of the young generation for one of the middle one.
_MIDDLE = 3
# Collections of the middle generation after which there is cause for a full one.
_OFTEN = 30
# So many that Python itself never makes a full one.
_NEVER = 1_000_000
# How long the end of the process waits for one module's import to finish.
_IMPORT_GRACE_S = 5.0

_ours: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_ending = threading.Event()
_watched: weakref.WeakSet[ReactorBase] = weakref.WeakSet()
_steady: weakref.WeakSet[ReactorBase] = weakref.WeakSet()
_deliveries: "weakref.WeakKeyDictionary[ReactorBase, _Deliveries]" = weakref.WeakKeyDictionary()
_deliveries_lock = threading.Lock()


def _default_reactor() -> ReactorBase:
    from twisted.internet import reactor

    return cast(ReactorBase, reactor)


def pause(reactor: IReactorTime | None = None, seconds: float = 0.0) -> Deferred[None]:
    """Give everything else on the reactor a turn; fires after at least `seconds`."""
    return deferLater(reactor or cast(IReactorTime, _default_reactor()), seconds)


def breathe(reactor: ReactorBase | None = None) -> Deferred[None]:
    """As `pause`, between two steps of long work, of which only one is done in a reactor's turn."""
    reactor = reactor or _default_reactor()
    waiting: Deferred[None] = Deferred()

    def fire() -> None:
        if not waiting.called:
            waiting.callback(None)

    in_turn(fire, reactor)
    return waiting


def _spawn(
    name: str, target: Callable[P, object], *args: P.args, **_: P.kwargs
) -> threading.Thread:
    """Start a daemon thread that `end_imports` waits for."""
    thread = threading.Thread(target=target, name=name, args=args, daemon=True)
    _ours.add(thread)
    thread.start()
    return thread


def end_imports(grace_s: float = _IMPORT_GRACE_S) -> bool:
    """Stop imports on the package's threads, for good; returns whether none is still running.

    Runs when the reactor has stopped and when the process ends. An import stops at its next
    module, usually within milliseconds; `grace_s` is the longest wait.
    """
    _ending.set()
    deadline = time.monotonic() + grace_s
    while True:
        frames = sys._current_frames()
        if not any(_imports(frames.get(thread.ident or 0)) for thread in list(_ours)):
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


class _ImportGate:
    """A finder that finds nothing, and stops imports on our threads once the process ends."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if _ending.is_set() and threading.current_thread() in _ours:
            # No `ImportError`: libraries catch those and go on importing something else.
            raise SystemExit(f"`{name}` is not imported: the process ends")


def install_import_gate() -> None:
    """Let the end of this process stop imports on the package's threads. Idempotent."""
    if _ImportGate not in sys.meta_path:
        sys.meta_path.insert(0, _ImportGate)
        atexit.register(end_imports)


def install_steady_clock(reactor: ReactorBase | None = None) -> None:
    """Let a reactor's timers follow a clock that nobody sets. Idempotent.

    Twisted compares them with the time of day. When that is set back by an hour, whatever was
    planned waits an hour longer, even the next step of a turn.
    """
    reactor = reactor or _default_reactor()
    if reactor in _steady:
        return
    _steady.add(reactor)
    started = time.time() - time.monotonic()  # timers that are planned already stay due
    reactor.seconds = lambda: time.monotonic() + started


class QuietCollector:
    """Collects the oldest generation of garbage when nobody would notice.

    Python does it when enough is new, in mid-command, too. In a game of 100 assistants it takes a
    tenth of a second. The middle generation is collected more often, a few milliseconds each time
    instead of ten.

    Args:
        is_quiet: Whether a pause would disturb nobody now.
    """

    def __init__(self, is_quiet: Callable[[], bool]):
        self._is_quiet = is_quiet
        self._overdue = 0

    def start(self, reactor: IReactorTime) -> LoopingCall:
        """Turn off Python's own full collections, and look every `COLLECT_EVERY_S`.

        If looking fails, Python collects again as before.
        """
        young, middle, old = gc.get_threshold()
        gc.set_threshold(young, min(middle, _MIDDLE), _NEVER)
        loop = LoopingCall(self.look)
        loop.clock = reactor
        looking = loop.start(COLLECT_EVERY_S, now=False)
        looking.addErrback(lambda _: gc.set_threshold(young, middle, old))
        return loop

    def look(self) -> bool:
        """Collect, if there is cause to and it is quiet or overdue; returns whether it did."""
        if gc.get_count()[2] < _OFTEN:
            return False
        self._overdue += 1
        if self._overdue < MOST_OVERDUE and not self._is_quiet():
            return False
        self._overdue = 0
        gc.collect()
        return True


def _watch(reactor: ReactorBase) -> None:
    """Call `end_imports` when this reactor has stopped."""
    if reactor not in _watched:
        _watched.add(reactor)
        reactor.addSystemEventTrigger("after", "shutdown", end_imports)


class _Deliveries:
    """Results for a reactor thread, handed over one in each turn of the reactor.

    A result often starts some milliseconds of work, and results of many assistants arrive
    together. Twisted would run them all before it serves a connection or a timer again. What a
    command wrote is sent first: Twisted sends at the end of the next turn, after its timers.
    """

    def __init__(self, reactor: ReactorBase):
        self._reactor = weakref.ref(reactor)
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_planned = self._gave_way = False

    def put(self, fire: Callable[[], None]) -> None:
        """Call in a later turn, after what already waits. On the reactor thread."""
        self._waiting.append(fire)
        if not self._is_planned:
            self._plan()

    def _plan(self) -> None:
        self._is_planned = True
        self._reactor().callLater(0, self._next)  # type: ignore[union-attr]

    def _next(self) -> None:
        if not self._gave_way and self._has_to_send():
            self._gave_way = True  # once only: who does not read could be written to for ever
            self._plan()
            return
        fire = self._waiting.popleft()
        self._gave_way = self._is_planned = False
        if self._waiting:
            self._plan()
        fire()

    def _has_to_send(self) -> bool:
        try:
            return bool(self._reactor().getWriters())  # type: ignore[union-attr]
        except NotImplementedError:
            return False  # this reactor does not tell


def in_turn(function: Callable[[], None], reactor: ReactorBase | None = None) -> None:
    """Call a function that takes a result, in a turn of the reactor of its own, in order.

    On the reactor thread.
    """
    reactor = reactor or _default_reactor()
    with _deliveries_lock:
        deliveries = _deliveries.setdefault(reactor, _Deliveries(reactor))
    deliveries.put(function)


def _deliver(reactor: ReactorBase, deferred: Deferred[T], result: T | BaseException) -> None:
    """Fire `deferred` on the reactor thread, unless it has been cancelled."""

    def fire() -> None:
        if deferred.called:
            return
        if isinstance(result, BaseException):
            deferred.errback(result)
        else:
            deferred.callback(result)

    reactor.callFromThread(in_turn, fire, reactor)


def in_time(
    running: Deferred[T], timeout_s: float, reactor: IReactorTime | None = None
) -> Deferred[T]:
    """Cancel a Deferred that has not fired after `timeout_s`; it fails with `TimeoutError`."""
    if running.called:
        return running
    return running.addTimeout(timeout_s, reactor or cast(IReactorTime, _default_reactor()))


class Worker:
    """One daemon thread that runs plain functions; results go to the reactor.

    Functions run in the order in which they were submitted, those of `submit_later` when no other
    waits.
    """

    def __init__(self, name: str, reactor: ReactorBase | None = None):
        self.name = name
        self._reactor = reactor
        self._jobs: queue.PriorityQueue[tuple[bool, int, Callable[[], None]]]
        self._jobs = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def submit(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """Run a function on the thread; fires on the reactor thread with its result.

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
        reactor = self._reactor or _default_reactor()

        def job() -> None:
            if deferred.called:
                return
            try:
                outcome: T | BaseException = function(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - handed to the waiting Deferred
                outcome = error
            _deliver(reactor, deferred, outcome)

        _watch(reactor)
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = _spawn(self.name, self._run)
        self._jobs.put((is_later, next(self._numbers), job))
        return deferred

    def _run(self) -> None:
        while True:
            _, _, job = self._jobs.get()
            job()


class DaemonExecutor(ThreadPoolExecutor):
    """A thread pool that never delays the end of the process.

    The standard pool joins its threads at exit, so one name look-up that hangs keeps a
    reloading game's old process alive. asyncio insists on a `ThreadPoolExecutor` as a loop's
    default executor, so this class inherits from it, but runs daemon threads of its own.
    """

    def __init__(self, name: str, max_workers: int = _HELPER_THREADS, idle_s: float = _IDLE_S):
        super().__init__(max_workers=max_workers, thread_name_prefix=name)
        self._idle_s = idle_s
        self._name = name
        self._pending: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._threads_alive = 0
        self._unfinished = 0
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function on one of the threads; see `concurrent.futures.Executor.submit`."""
        future: Future[T] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - handed to the waiting future
                future.set_exception(error)
            else:
                future.set_result(result)

        with self._guard:
            if self._closed:
                raise RuntimeError("`DaemonExecutor` was shut down")
            self._unfinished += 1
            self._pending.put(job)
            if self._threads_alive < min(self._unfinished, self._max_workers):
                self._threads_alive += 1
                _spawn(self._name, self._serve)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Refuse new work; do not wait for running work."""
        with self._guard:
            self._closed = True

    def _serve(self) -> None:
        while True:
            try:
                job = self._pending.get(timeout=self._idle_s)
            except queue.Empty:
                with self._guard:  # work may have come this moment
                    if self._threads_alive > self._unfinished:
                        self._threads_alive -= 1
                        return
                continue
            job()
            with self._guard:
                self._unfinished -= 1


def _deferred(reactor: ReactorBase, future: Future[T]) -> Deferred[T]:
    """Fires on the reactor thread with a future's result; cancelling it cancels the future."""
    deferred: Deferred[T] = Deferred(lambda _: cast(None, future.cancel()))

    def finish(done: Future[T]) -> None:
        if done.cancelled():
            _deliver(reactor, deferred, CancelledError())
        else:
            _deliver(reactor, deferred, done.exception() or done.result())

    future.add_done_callback(finish)
    return deferred


class Pool:
    """Some daemon threads that run plain functions side by side; results go to the reactor."""

    def __init__(self, name: str, threads: int, reactor: ReactorBase | None = None):
        self._executor = DaemonExecutor(name, max_workers=threads)
        self._reactor = reactor

    def submit(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """Run a function on one of the threads; fires on the reactor thread with its result.

        Cancelling the Deferred drops the result and skips a job that has not begun.
        """
        reactor = self._reactor or _default_reactor()
        _watch(reactor)
        return _deferred(reactor, self._executor.submit(function, *args, **kwargs))


class _Loop(asyncio.SelectorEventLoop):
    """A loop whose threads never delay the end of the process.

    Names are looked up on separate threads: a name server that hangs must not stop the calls
    that need none.
    """

    def __init__(self, name: str):
        super().__init__()
        self.set_default_executor(DaemonExecutor(f"{name}-helper"))
        self._lookups = DaemonExecutor(f"{name}-lookup", max_workers=_LOOKUP_THREADS)

    async def getaddrinfo(
        self, host: bytes | str | None, port: bytes | str | int | None, **options: int
    ) -> Any:
        """As the standard loop's, see `socket.getaddrinfo`."""
        look_up = functools.partial(socket.getaddrinfo, host, port, **options)
        return await self.run_in_executor(self._lookups, look_up)


class AsyncioThread:
    """One daemon thread with an asyncio loop, for any number of calls at a time."""

    def __init__(self, name: str, reactor: ReactorBase | None = None):
        self.name = name
        self._reactor = reactor
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Deferred[T]:
        """Run a coroutine on the loop; fires on the reactor thread with its result.

        Cancelling the Deferred cancels the coroutine.
        """
        reactor = self._reactor or _default_reactor()
        _watch(reactor)
        with self._lock:
            if self._loop is None or not (self._thread and self._thread.is_alive()):
                self._loop = _Loop(self.name)
                self._thread = _spawn(self.name, self._run, self._loop)
        return _deferred(reactor, asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    def notify(self, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Call a function on the reactor thread, soon. For use from coroutines."""
        (self._reactor or _default_reactor()).callFromThread(function, *args, **kwargs)

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
