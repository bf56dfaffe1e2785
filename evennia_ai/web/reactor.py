"""From a thread of the web site to the reactor thread and back.

Evennia's web site runs on other threads, where Attributes must not be touched.
"""

import queue
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import maybeDeferred
from twisted.python import threadable
from twisted.python.failure import Failure

# A thread that waits forever would block a reload.
PATIENCE_S = 3.0


def on_reactor(function: Callable[[], Any], patience_s: float | None = None) -> Any:
    """A function's result, computed on the reactor thread; a Deferred's, once it fires.

    Args:
        function: What to call.
        patience_s: Longest wait in seconds; `PATIENCE_S` if None.

    Raises:
        queue.Empty: There was no result in time; the server may be stopping.
        Exception: What the function raised.
    """
    from twisted.internet import reactor

    answers: queue.Queue[Any] = queue.Queue()

    def answer() -> None:
        maybeDeferred(function).addBoth(answers.put)

    here = threadable.isInIOThread() or not reactor.running  # type: ignore[attr-defined]
    if here:
        answer()
    else:
        reactor.callFromThread(answer)  # type: ignore[attr-defined]
    wait_s = PATIENCE_S if patience_s is None else patience_s
    result = answers.get_nowait() if here else answers.get(timeout=wait_s)
    if isinstance(result, Failure):
        result.raiseException()
    return result
