"""The mind's process: a `Mind` that answers the Server's requests. Its argument is a folder.

It imports neither Django nor Evennia. It ends when it is told to, or when no Server has come for
a while.
"""

import fcntl
import hashlib
import json
import os
import sys
import time
from operator import attrgetter
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.python.log import startLogging
from twisted.python.logfile import LogFile

from evennia_ai.background import in_time
from evennia_ai.errors import AssistantError, StoreError
from evennia_ai.llm_interaction.values import ModelFacts
from evennia_ai.mind.mind import Mind, make_mind
from evennia_ai.mind.remote import KEPT
from evennia_ai.mind.wire import Wire, dumps, socket_path, wires

_log = Logger("evennia_ai.mind")

# How long, in seconds, replies of models are kept for a Server that went, and the process for one
# that comes.
KEEP_S = 120.0
# How often the Server is told that the process lives, in seconds.
BEAT_S = 1.0
# How long it may take to end.
_END_S = 5.0
# Bytes of its log before it is put aside.
LOG_BYTES = 1_000_000


class Desk:
    """Takes requests from the Server and answers them.

    Args:
        mind: Does the work.
        digest: Marks the settings.
    """

    def __init__(self, mind: Mind, digest: str):
        self.mind = mind
        self._wire: Wire | None = None
        self._alone_since = time.monotonic()
        self._running: dict[str, Deferred[Any]] = {}
        self._replies: dict[str, object] = {}  # of models, which the Server has not confirmed
        self._embedder = getattr(mind.memories, "billed_embedder", "")
        self._facts = {"pid": os.getpid(), "digest": digest, "billed_embedder": self._embedder}
        self._models: set[str] = set()  # what is known of them is told with answers of models

    def lost(self, wire: Wire) -> None:
        """A Server is gone; its calls go on."""
        if wire is self._wire:
            self._wire, self._alone_since = None, time.monotonic()

    def beat(self) -> None:
        """Tell the Server that the process lives; without a Server end after a while."""
        if self._wire is not None:
            self._send("", None)
        elif time.monotonic() - self._alone_since > KEEP_S:
            self.end()

    def end(self) -> None:
        """Close files and stop; whatever hangs does not hold the process."""
        _log.info("the process ends")
        in_time(self.mind.close(), _END_S).addBoth(lambda _: os._exit(0))

    def received(self, wire: Wire, value: Any) -> None:
        """Take a message."""
        match value:
            case "hello", *models:  # the newest Server gets all answers
                self._wire, self._models = wire, {*models, self._embedder} - {""}
                self._send("", None, models=self._known())
            case "ask", number, name, args:
                self._ask(number, name, args)
            case "drop", number:
                self._replies.pop(number, None)
                if (running := self._running.pop(number, None)) is not None:
                    running.cancel()
            case "got", number:
                self._replies.pop(number, None)
            case ("end",):
                self.end()

    def _ask(self, number: str, name: str, args: tuple[Any, ...]) -> None:
        """Make a call, unless an earlier Server made it."""
        if number in self._replies:
            self._send(number, self._replies[number])
        elif number not in self._running:
            running = maybeDeferred(lambda: attrgetter(name)(self.mind)(*args))
            self._running[number] = running
            running.addBoth(self._done, number, name)

    def _done(self, result: Any, number: str, name: str) -> None:
        if self._running.pop(number, None) is None:
            return  # it was cancelled
        if isinstance(result, Failure):
            error = result.value
            if not isinstance(error, AssistantError):
                _log.failure("{name} failed", result, name=name)
                error = AssistantError(f"{type(error).__name__}: {error}")
            result = error
        elif name == KEPT:
            from twisted.internet import reactor

            self._replies[number] = result
            reactor.callLater(KEEP_S, self._replies.pop, number, None)  # type: ignore[attr-defined]
        if name.startswith(("model.", "warm_up")):
            self._send(number, result, models=self._known())
        else:
            self._send(number, result)

    def _known(self) -> dict[str, ModelFacts]:
        return {model: self.mind.model.facts(model) for model in self._models}

    def _send(self, number: str, answer: object, **more: object) -> None:
        if self._wire is None:
            return
        facts = {**self._facts, "replaced": self.mind.recall.replaced, **more}
        try:
            data = dumps((number, answer, facts))
        except (TypeError, ValueError) as wrong:
            data = dumps((number, StoreError(f"the answer cannot be sent: {wrong}"), facts))
        self._wire.send(data)


def main() -> None:
    """Serve the game whose folder is the argument, until it is over."""
    from twisted.internet import reactor

    settings = sys.stdin.buffer.read()
    sys.stdin.close()
    told, folder = json.loads(settings), Path(sys.argv[1])
    log = Path(told["log"])
    # What is printed, and the warnings of libraries, go there too.
    startLogging(LogFile(log.name, str(log.parent), LOG_BYTES, maxRotatedFiles=1))  # type: ignore[no-untyped-call]
    lock = open(folder / "lock", "a", encoding="ascii")  # noqa: SIM115 - open as long as it runs
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        _log.info("another process serves this game")
        return
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    desk = Desk(make_mind(told["settings"]), hashlib.sha256(settings).hexdigest())
    path = socket_path(folder)
    Path(path).unlink(missing_ok=True)  # a crash may have left it behind
    reactor.listenUNIX(path, wires(desk.received, desk.lost), mode=0o600)  # type: ignore[attr-defined]
    _log.info("process {pid} serves the game", pid=os.getpid())
    LoopingCall(desk.beat).start(BEAT_S)
    reactor.run()  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
