"""Daemon threads for work that must not run on the reactor, each answered by a Deferred.

A blocking call in Twisted's own thread pool makes `evennia reload` wait for it and lose the
game. Daemon threads do not: the old process ends at once, and what was in flight is cancelled.

One thing they must not be in the middle of is an import: Python freezes daemon threads when it
ends, with their locks, and then imports things itself. So imports on these threads are broken
off first, see `end_imports`.
"""

import asyncio
import atexit
import functools
import queue
import socket
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

# Threads for what asyncio libraries hand to a loop's executor. It is mostly computing, and each
# thread that computes can keep the reactor waiting 5 ms for Python's lock: few of them.
_HELPER_THREADS = 2
# Threads for name look-ups. They only wait, without the lock; enough for a burst.
_LOOKUP_THREADS = 16
# A helper thread without work for so long ends.
_IDLE_S = 30.0


# Longest the end of the process waits for one module's import to finish.
_IMPORT_GRACE_S = 5.0

_ours: "weakref.WeakSet[threading.Thread]" = weakref.WeakSet()
_ending = threading.Event()
_watched: "weakref.WeakSet[Any]" = weakref.WeakSet()
_deliveries: "weakref.WeakKeyDictionary[Any, _Deliveries]" = weakref.WeakKeyDictionary()
_deliveries_lock = threading.Lock()


def _default_reactor() -> Any:
    from twisted.internet import reactor

    return reactor


def pause(reactor: Any = None, seconds: float = 0.0) -> "Deferred[None]":
    """Let everything else on the reactor have its turn; fires after that time, or a little more.

    Args:
        reactor: The clock; Twisted's global one by default.
        seconds: How long at least.
    """
    return deferLater(reactor or _default_reactor(), seconds)


def _spawn(name: str, target: Callable[..., Any], *args: Any) -> threading.Thread:
    """A started daemon thread that `end_imports` knows of."""
    thread = threading.Thread(target=target, name=name, args=args, daemon=True)
    _ours.add(thread)
    thread.start()
    return thread


def end_imports(grace_s: float = _IMPORT_GRACE_S) -> bool:
    """Break off imports on the package's threads and wait until none is under way.

    Called when the reactor has stopped, and at the end of the process. From then on those
    threads import nothing more.

    Args:
        grace_s: Longest wait; a break comes at the next module, usually within milliseconds.

    Returns:
        Whether no thread is importing.
    """
    _ending.set()
    deadline = time.monotonic() + grace_s
    while importing := _any_importing():
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    return not importing


def _any_importing() -> bool:
    frames = sys._current_frames()
    return any(_imports(frames.get(thread.ident or 0)) for thread in list(_ours))


def _imports(frame: Any) -> bool:
    """Whether a frame or one that called it belongs to Python's import system."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


class _ImportGate:
    """A finder that finds nothing, and ends our threads' imports once the process ends."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if _ending.is_set() and threading.current_thread() in _ours:
            # No `ImportError`: libraries catch those and go on importing something else.
            raise SystemExit(f"`{name}` is not imported: the process ends")


sys.meta_path.insert(0, _ImportGate)  # type: ignore[arg-type]
atexit.register(end_imports)


def _watch(reactor: Any) -> None:
    """Have imports ended when this reactor has stopped."""
    if reactor not in _watched:
        _watched.add(reactor)
        reactor.addSystemEventTrigger("after", "shutdown", end_imports)


class _Deliveries:
    """Results for a reactor thread, handed over one in each turn of the reactor.

    A result often sets off some milliseconds of work, and those of many assistants come at once.
    Twisted would do all of them before it looks at a connection or a timer again; so everything
    else has its turn between two of them.
    """

    def __init__(self, reactor: Any):
        self._reactor = weakref.ref(reactor)
        self._waiting: deque[Callable[[], Any]] = deque()
        self._turn_taken = False

    def put(self, fire: Callable[[], Any]) -> None:
        """Call now, or behind what waits already. On the reactor thread."""
        self._waiting.append(fire)
        if not self._turn_taken:
            self._next()

    def _next(self) -> None:
        self._turn_taken = bool(self._waiting)
        if self._waiting:
            fire = self._waiting.popleft()
            self._reactor().callLater(0, self._next)  # type: ignore[union-attr]
            fire()


def _deliver(reactor: Any, deferred: Deferred[Any], result: Any, failed: bool) -> None:
    """Fire `deferred` on the reactor thread, unless it was cancelled meanwhile."""

    def fire() -> None:
        if deferred.called:
            return
        if failed:
            deferred.errback(result)
        else:
            deferred.callback(result)

    with _deliveries_lock:
        deliveries = _deliveries.setdefault(reactor, _Deliveries(reactor))
    reactor.callFromThread(deliveries.put, fire)


def in_time(running: Deferred[Any], timeout_s: float, reactor: Any = None) -> Deferred[Any]:
    """A Deferred that fails with Twisted's `TimeoutError` if it does not fire in time.

    Args:
        running: Cancelled when its time is over.
        timeout_s: Seconds it may take.
        reactor: The clock; Twisted's global one by default.
    """
    return (
        running if running.called else running.addTimeout(timeout_s, reactor or _default_reactor())
    )


class Worker:
    """One daemon thread that runs plain functions one after the other.

    Args:
        name: The thread's name.
        reactor: Where results are delivered; Twisted's global one by default.
    """

    def __init__(self, name: str, reactor: Any = None):
        self.name = name
        self._reactor = reactor
        self._jobs: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def submit(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Deferred[Any]:
        """Run a function on the thread.

        Returns:
            A Deferred that fires on the reactor thread with the function's result, or fails
            with what it raised. Cancelling it drops the result; a job that has not begun is
            skipped.
        """
        deferred: Deferred[Any] = Deferred()
        reactor = self._reactor or _default_reactor()
        _watch(reactor)
        self._start()
        self._jobs.put((reactor, deferred, function, args, kwargs))
        return deferred

    def waiting(self) -> int:
        """How many jobs have not begun, about."""
        return self._jobs.qsize()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = _spawn(self.name, self._run)

    def _run(self) -> None:
        while True:
            reactor, deferred, function, args, kwargs = self._jobs.get()
            if deferred.called:
                continue
            try:
                result = function(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - handed to the waiting Deferred
                _deliver(reactor, deferred, error, failed=True)
            else:
                _deliver(reactor, deferred, result, failed=False)


class DaemonExecutor(ThreadPoolExecutor):
    """A thread pool that never holds up the end of the process.

    The standard pool joins its threads at exit, so one name look-up that hangs keeps a
    reloading game's old process alive. asyncio takes only a `ThreadPoolExecutor` as a loop's
    default executor; this is one by name, with daemon threads of its own underneath.
    """

    def __init__(self, name: str, max_workers: int = _HELPER_THREADS, idle_s: float = _IDLE_S):
        super().__init__(max_workers=max_workers, thread_name_prefix=name)
        self._idle_s = idle_s
        self._pending: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._threads_alive = 0
        self._unfinished = 0
        self._closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Run a function on one of the threads; see `concurrent.futures.Executor.submit`."""
        future: Future[Any] = Future()
        with self._guard:
            if self._closed:
                raise RuntimeError("`DaemonExecutor` was shut down")
            self._unfinished += 1
            self._pending.put((future, fn, args, kwargs))
            if self._threads_alive < min(self._unfinished, self._max_workers):
                self._threads_alive += 1
                _spawn(self._thread_name_prefix, self._serve)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work. Running work is left to itself: nobody waits for it."""
        with self._guard:
            self._closed = True

    def _serve(self) -> None:
        while self._serve_one():
            pass

    def _serve_one(self) -> bool:
        """Do one piece of work; False when the thread should end."""
        try:
            job = self._pending.get(timeout=self._idle_s)
        except queue.Empty:
            return self._stay()
        self._do(*job)
        with self._guard:
            self._unfinished -= 1
        return True

    def _stay(self) -> bool:
        """Whether an idle thread is needed after all: work may have come this moment."""
        with self._guard:
            if self._threads_alive > self._unfinished:
                self._threads_alive -= 1
                return False
        return True

    @staticmethod
    def _do(future: "Future[Any]", fn: Callable[..., Any], args: Any, kwargs: Any) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = fn(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - handed to the waiting future
            future.set_exception(error)
        else:
            future.set_result(result)


class _Loop(asyncio.SelectorEventLoop):
    """A loop none of whose threads holds up the end of the process.

    Names are looked up on threads of their own: a name server that hangs must not stop the
    calls that need none.
    """

    def __init__(self, name: str):
        super().__init__()
        self.set_default_executor(DaemonExecutor(f"{name}-helper"))
        self._lookups = DaemonExecutor(f"{name}-lookup", max_workers=_LOOKUP_THREADS)

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        """As the standard loop's, see `socket.getaddrinfo`."""
        look_up = functools.partial(socket.getaddrinfo, host, port, **options)
        return await self.run_in_executor(self._lookups, look_up)


class AsyncioThread:
    """One daemon thread with an asyncio loop, for any number of calls at a time.

    Args:
        name: The thread's name.
        reactor: Where results are delivered; Twisted's global one by default.
    """

    def __init__(self, name: str, reactor: Any = None):
        self.name = name
        self._reactor = reactor
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._running: set[Future[Any]] = set()

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> Deferred[Any]:
        """Run a coroutine on the loop.

        Returns:
            A Deferred that fires on the reactor thread with its result, or fails with what it
            raised. Cancelling the Deferred cancels the coroutine.
        """
        reactor = self._reactor or _default_reactor()
        _watch(reactor)
        future = asyncio.run_coroutine_threadsafe(coroutine, self._ensure_loop())
        deferred: Deferred[Any] = Deferred(lambda _: future.cancel())
        with self._lock:
            self._running.add(future)
        future.add_done_callback(lambda done: self._finish(reactor, deferred, done))
        return deferred

    def notify(self, function: Callable[..., Any], *args: Any) -> None:
        """Call a function on the reactor thread, soon. For use from coroutines."""
        (self._reactor or _default_reactor()).callFromThread(function, *args)

    def cancel_all(self) -> int:
        """Cancel everything in flight; returns how many calls that were."""
        with self._lock:
            running = list(self._running)
        return sum(future.cancel() for future in running)

    def in_flight(self) -> int:
        """How many coroutines have not ended."""
        with self._lock:
            return len(self._running)

    def _finish(self, reactor: Any, deferred: Deferred[Any], done: "Future[Any]") -> None:
        with self._lock:
            self._running.discard(done)
        if done.cancelled():
            _deliver(reactor, deferred, CancelledError(), failed=True)
        elif (error := done.exception()) is not None:
            _deliver(reactor, deferred, error, failed=True)
        else:
            _deliver(reactor, deferred, done.result(), failed=False)

    def _ensure_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or not (self._thread and self._thread.is_alive()):
                self._loop = _Loop(self.name)
                self._thread = _spawn(self.name, self._run, self._loop)
            return self._loop

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
