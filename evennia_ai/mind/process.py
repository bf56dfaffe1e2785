"""The mind's process: a `Mind` that answers requests over connections. Its argument is a folder.

It imports neither Django nor Evennia. It ends when it is told to, when the game is gone, or when
no Server has come for a while.
"""

import hashlib
import json
import logging
import os
import secrets
import sys
import threading
import time
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, cast

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.protocol import Factory
from twisted.internet.task import LoopingCall
from twisted.logger import ILogObserver, Logger, STDLibLogObserver, globalLogBeginner
from twisted.python.failure import Failure

from evennia_ai.errors import AssistantError, StoreError
from evennia_ai.mind.link import PAID
from evennia_ai.mind.mind import Mind, MindSettings, find, make_mind, memory_mb
from evennia_ai.mind.wire import Wire, dumps, socket_path
from evennia_ai.processes import locked, pids

_log = Logger("evennia_ai.mind")

# How long the replies of models are kept for a Server that went, in seconds.
KEEP_S = 120.0
# How long the process stays without a Server: while Portal lives, and without Portal.
ALONE_S, GAME_GONE_S = 600.0, 5.0
# How long it may take to end.
_END_S = 5.0
# Bytes of its log before it is put aside.
LOG_BYTES = 1_000_000


@dataclass(eq=False)
class Call:
    """A request at work, or answered and not yet fetched."""

    number: str
    name: str
    owner: Wire | None
    running: "Deferred[Any] | None" = None
    answer: Any = None
    since: float = 0.0  # when its owner went


class Desk:
    """Takes requests from connections and answers them.

    Args:
        mind: Does the work.
        digest: Marks the settings.
    """

    def __init__(self, mind: Mind, digest: str):
        self.mind = mind
        self._calls: dict[str, Call] = {}
        self._wires: set[Wire] = set()
        self._seen = time.monotonic()
        self._facts = {"pid": os.getpid(), "boot": secrets.token_hex(8), "digest": digest}
        self._facts["billed_embedder"] = getattr(mind.memories, "billed_embedder", "")

    def left(self, wire: Wire) -> None:
        """A Server is gone; its calls go on for a while."""
        self._wires.discard(wire)
        for call in self._calls.values():
            if call.owner is wire:
                call.owner, call.since = None, time.monotonic()

    def look(self, folder: Path) -> None:
        """End if nobody needs the process any more; drop what nobody has fetched in time."""
        now = time.monotonic()
        for call in list(self._calls.values()):
            if call.owner is None and call.since < now - KEEP_S:
                self._drop(call.number)
        if self._wires:
            self._seen = now
        is_game_there = (folder / "socket").exists() and "portal" in pids(folder.parents[1])
        if now - self._seen > (ALONE_S if is_game_there else GAME_GONE_S):
            self.end()

    def end(self) -> None:
        """Close files and stop; whatever hangs does not hold the process."""
        from twisted.internet import reactor

        _log.info("the process ends")
        last = threading.Timer(_END_S, os._exit, (0,))
        last.daemon = True
        last.start()

        def stop(_: object) -> None:
            reactor.stop()  # type: ignore[attr-defined]

        self.mind.close().addBoth(stop)

    def received(self, wire: Wire, message: Any) -> None:
        """Take a message."""
        match message:
            case "ask", number, name, args:
                self._ask(wire, number, name, args)
            case "drop", number:
                self._drop(number)
            case "got", number:
                self._calls.pop(number, None)
            case ("ping",):
                self._wires.add(wire)
                wire.send(dumps(("", None, {**self._facts, "memory_mb": memory_mb()})))
            case ("end",):
                self.end()

    def _ask(self, wire: Wire, number: str, name: str, args: tuple[Any, ...]) -> None:
        """Make a call, or hand on one that an earlier Server made, unless it failed."""
        call = self._calls.get(number)
        if call is None or (call.owner is None and isinstance(call.answer, AssistantError)):
            self._calls[number] = call = Call(number, name, wire)
            call.running = running = maybeDeferred(self._run, name, args)
            running.addBoth(self._done, call)
            return
        call.owner = wire
        if call.running is None:
            self._send(call)

    def _run(self, name: str, args: tuple[Any, ...]) -> Any:
        if name == "work":
            function, plain, named = args
            return self.mind.work(find(function), *plain, **named)
        part, _, method = name.rpartition(".")
        if part not in ("", "model", "memories", "recall") or method.startswith("_"):
            raise AssistantError(f"`{name}` is not a request of the mind")
        return getattr(getattr(self.mind, part) if part else self.mind, method)(*args)

    def _done(self, result: Any, call: Call) -> None:
        call.running = None
        if self._calls.get(call.number) is not call:
            return  # it was cancelled
        if isinstance(result, Failure):
            error = result.value
            if not isinstance(error, AssistantError):
                _log.failure("{name} failed", result, name=call.name)
                error = AssistantError(f"{type(error).__name__}: {error}")
            result = error
        call.answer = result
        if call.owner is not None:
            self._send(call)
        elif call.name not in PAID:
            del self._calls[call.number]

    def _send(self, call: Call) -> None:
        """Send an answer. One that costs money is kept until the Server has got it."""
        answer, facts = call.answer, {"replaced": self.mind.recall.replaced}
        try:
            data = dumps((call.number, answer, facts))
        except (TypeError, ValueError) as wrong:
            error = StoreError(f"the answer cannot be sent: {wrong}")
            data = dumps((call.number, error, facts))
        call.owner.send(data)  # type: ignore[union-attr]
        if call.name not in PAID:
            del self._calls[call.number]

    def _drop(self, number: str) -> None:
        call = self._calls.pop(number, None)
        if call is not None and call.running is not None:
            call.running.cancel()


def main() -> None:
    """Serve the game whose folder is the argument, until it is over."""
    settings = sys.stdin.buffer.read()
    sys.stdin.close()
    told = json.loads(settings)
    del told["code"]  # after an upgrade the settings are others
    log = RotatingFileHandler(told.pop("log"), "a", LOG_BYTES, backupCount=1, encoding="utf-8")
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO, handlers=[log])
    for noisy in ("httpx", "LiteLLM", "mem0"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # With it, what is printed goes there too.
    observer = cast(ILogObserver, STDLibLogObserver("evennia_ai.mind"))
    globalLogBeginner.beginLoggingTo([observer])
    folder = Path(sys.argv[1])
    path = socket_path(folder)
    lock = locked(folder / "lock")
    if lock is None:
        _log.info("another process serves this game")
        return
    from twisted.internet import reactor

    desk = Desk(make_mind(MindSettings(**told)), hashlib.sha256(settings).hexdigest())
    servers = Factory.forProtocol(  # type: ignore[no-untyped-call]
        lambda: Wire(desk.received, desk.left)
    )
    servers.noisy = False
    Path(path).unlink(missing_ok=True)  # a crash may have left it behind
    reactor.listenUNIX(path, servers, mode=0o600)  # type: ignore[attr-defined]
    _log.info("process {pid} serves the game", pid=os.getpid())
    LoopingCall(desk.look, folder).start(1.0)
    reactor.run()  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
