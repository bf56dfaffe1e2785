"""Waiting for a Deferred in a plain test, by turning the reactor by hand.

No test fails because its machine is slow: what ends a wait is an event, and the limit is far beyond
what any of them takes.
"""

import functools
import threading
import time
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred

LIMIT_S = 240.0


def started_reactor() -> Any:
    """The global reactor, started once without signal handlers.

    Its thread pool gets daemon threads: nobody runs the shutdown that would end the others.
    """
    from twisted.internet import reactor

    if not reactor._started:
        reactor.getThreadPool().threadFactory = functools.partial(threading.Thread, daemon=True)
        reactor.startRunning(installSignalHandlers=False)
    return reactor


def pump_until(condition: Callable[[], Any], timeout_s: float = LIMIT_S) -> None:
    """Turn the reactor until `condition()` is true; raises `TimeoutError` after `timeout_s`."""
    reactor = started_reactor()
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing came within {timeout_s} s")
        reactor.iterate(0.005)


def alone(function: Callable[..., Any], script: Any, *args: Any, **options: Any) -> Deferred[Any]:
    """Call ``function(script, ...)`` under the assistant's turn lock; fires with its result."""
    return script.run_exclusive(functools.partial(function, script, *args, **options))


def wait_for(deferred: Deferred[Any], timeout_s: float = LIMIT_S) -> Any:
    """The Deferred's result, or what it failed with, raised.

    Args:
        deferred: What to wait for; it is consumed.
        timeout_s: After so many seconds it is cancelled and `TimeoutError` raised.
    """
    outcome: list[Any] = []
    failures: list[Any] = []
    deferred.addCallbacks(outcome.append, failures.append)
    try:
        pump_until(lambda: outcome or failures, timeout_s)
    except TimeoutError:
        deferred.cancel()
        raise
    if failures:
        failures[0].raiseException()
    return outcome[0]
