"""The mind's process: an `InlineMind` that answers requests over connections.

It imports neither Django nor Evennia. It ends when it is told to, when the game is gone, or when
no Server has come for a while.
"""

import json
import logging
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, cast

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.protocol import ServerFactory
from twisted.internet.task import LoopingCall
from twisted.logger import ILogObserver, Logger, STDLibLogObserver, globalLogBeginner
from twisted.python.failure import Failure

from evennia_ai.errors import AssistantError, StoreError
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.mind.codec import MAX_FRAME, error_dict, frame, unframed
from evennia_ai.mind.folder import MindFolder
from evennia_ai.mind.frames import Frames
from evennia_ai.mind.inline import InlineMind, make_mind
from evennia_ai.mind.link import PAID
from evennia_ai.mind.values import MindSettings, memory_mb
from evennia_ai.mind.work import find

_log = Logger("evennia_ai.mind")

CALLS = frozenset(
    {
        "warm_up",
        "model.complete",
        "model.probe",
        "model.listed",
        "model.facts",
        *(
            f"memories.{name}"
            for name in (
                "add",
                "search",
                "ids",
                "delete",
                "status",
            )
        ),
        *(
            f"recall.{name}"
            for name in (
                "add",
                "remove",
                "clear",
                "set_filling",
                "missing",
                "count",
                "search",
            )
        ),
    }
)
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
    do: str
    key: str
    owner: "Frames | None"
    running: "Deferred[Any] | None" = None
    told: dict[str, Any] | None = None
    since: float = 0.0  # when its owner went
    is_adopted: bool = False  # whether a later Server made it again

    @property
    def is_paid(self) -> bool:
        """Whether its answer is kept until a Server has got it: somebody pays for it."""
        return self.do in PAID

    def is_again(self, do: str, key: str) -> bool:
        """Whether a later Server makes this request again, and it did not fail."""
        failed = self.told is not None and "value" not in self.told
        return self.owner is None and not failed and (self.do, self.key) == (do, key)


class Desk:
    """Takes requests from connections and answers them.

    Args:
        mind: Does the work.
        clock: Monotonic seconds.
        end: Ends the process.
    """

    def __init__(
        self,
        mind: InlineMind,
        end: Callable[[], object],
        clock: Callable[[], float] = time.monotonic,
    ):
        self.mind, self._end, self._clock = mind, end, clock
        self.calls: dict[str, Call] = {}
        self.connections: set[Frames] = set()

    def joined(self, frames: Frames) -> None:
        """A Server has proved itself."""
        self.connections.add(frames)
        frames.received = lambda data: self.received(frames, data)
        frames.lost = lambda: self.left(frames)

    def left(self, frames: Frames) -> None:
        """A Server is gone; its calls go on for a while."""
        self.connections.discard(frames)
        for call in self.calls.values():
            if call.owner is frames:
                call.owner, call.since = None, self._clock()

    def tidy(self) -> None:
        """Drop what nobody has fetched."""
        until = self._clock() - KEEP_S
        for call in [c for c in self.calls.values() if c.owner is None and c.since < until]:
            self._drop(call.number)

    def received(self, frames: Frames, data: bytes) -> None:
        """Take a frame; what cannot be read ends the connection."""
        try:
            said = unframed(data)
            if "do" in said:
                self._asked(frames, str(said["id"]), str(said["do"]), said)
            elif "cancel" in said:
                self._drop(str(said["cancel"]))
            elif "got" in said:
                self.calls.pop(str(said["got"]), None)
            elif "ping" in said:
                frames.send(frame({"memory_mb": memory_mb()}))
            elif "end" in said:
                self._end()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            _log.error("a frame cannot be read: {kind}", kind=type(error).__name__)
            frames.abort()

    def _asked(self, frames: Frames, number: str, do: str, said: dict[str, Any]) -> None:
        key = str(said.get("key", ""))
        known = self.calls.pop(number, None) or self._orphan(do, key)
        if known is not None:
            known.is_adopted = known.is_adopted or known.number != number
            self.calls.pop(known.number, None)
            known.number, known.owner = number, frames
            self.calls[number] = known
            if known.running is None:
                self._send(known)
            return
        self.calls[number] = call = Call(number, do, key, frames)
        call.running = running = maybeDeferred(self._run, do, said["args"])
        running.addBoth(lambda result: self._done(call, result))

    def _orphan(self, do: str, key: str) -> Call | None:
        """The call of an earlier Server that is made again."""
        if not key:
            return None
        return next((call for call in self.calls.values() if call.is_again(do, key)), None)

    def _run(self, do: str, args: list[Any]) -> Any:
        if do == "work":
            name, plain, named = args
            return self.mind.work(find(name), *plain, **named)
        if do not in CALLS:
            raise AssistantError(f"`{do}` is not a request of the mind")
        part, _, method = do.rpartition(".")
        target = getattr(self.mind, part) if part else self.mind
        return getattr(target, method)(*args)

    def _done(self, call: Call, result: Any) -> None:
        call.running = None
        if self.calls.get(call.number) is not call:
            return  # it was cancelled
        is_failed = isinstance(result, Failure)
        told = error_dict(result.value) if is_failed else {"value": result}
        if is_failed and not isinstance(result.value, AssistantError):
            _log.failure("{do} failed", result, do=call.do)
        if call.owner is None and not call.is_paid:
            del self.calls[call.number]
            return
        call.told = {**told, "replaced": self.mind.recall.replaced}
        if call.owner is not None:
            self._send(call)

    def _send(self, call: Call) -> None:
        """Send an answer. One that costs money is kept until the Server has got it."""
        told = dict(call.told or {})
        if call.is_adopted and isinstance(reply := told.get("value"), ModelReply):
            told["value"] = replace(reply, made_before=True)
        data = _answer({"id": call.number, **told})
        call.owner.send(data)  # type: ignore[union-attr]
        if not call.is_paid:
            self.calls.pop(call.number, None)

    def _drop(self, number: str) -> None:
        call = self.calls.pop(number, None)
        if call is not None and call.running is not None:
            call.running.cancel()


def _answer(told: dict[str, Any]) -> bytes:
    try:
        data = frame(told)
        if len(data) <= MAX_FRAME:
            return data
        error = StoreError("the answer is too large to be sent")
    except (TypeError, ValueError, RecursionError) as wrong:
        error = StoreError(f"the answer cannot be sent: {wrong}")
    return frame({"id": told["id"], **error_dict(error)})


class Life:
    """When the process ends.

    Args:
        folder: Where it meets Servers.
        portal: The file with Portal's process id.
        desk: Who is connected.
    """

    def __init__(
        self,
        folder: MindFolder,
        portal: Path,
        desk: Desk,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._folder, self._portal, self._desk, self._clock = folder, portal, desk, clock
        self._seen = clock()

    def is_over(self) -> bool:
        """Whether nobody needs the process any more."""
        self._desk.tidy()
        now = self._clock()
        if self._desk.connections:
            self._seen = now
            return False
        alone_s = now - self._seen
        limit_s = ALONE_S if self._has_portal() and self._folder.exists() else GAME_GONE_S
        return alone_s > limit_s

    def _has_portal(self) -> bool:
        try:
            os.kill(int(self._portal.read_text(encoding="ascii")), 0)
        except (OSError, ValueError):
            return False
        return True


def main() -> None:
    """Serve the game whose folder is the argument, until it is over."""
    told = json.loads(sys.stdin.buffer.read())
    sys.stdin.close()
    _begin_log(Path(told["log"]))
    folder = MindFolder(Path(sys.argv[1]), told["unix"])
    folder.prepare()
    if not folder.lock():
        _log.info("another process serves this game")
        return
    from twisted.internet import reactor

    names = ("data_dir", "model", "values", "game_dir", "log_dir")
    mind = make_mind(MindSettings(*(told[name] for name in names)))
    facts = {
        "pid": os.getpid(),
        "memory_mb": memory_mb(),
        "boot": secrets.token_hex(8),
        "settings": told["digest"],
        "billed_embedder": getattr(mind.memories, "billed_embedder", ""),
    }
    desk = Desk(mind, lambda: _end(mind))
    factory = _Factory(told["secret"], facts, desk)
    folder.listen(reactor, factory)
    _log.info("process {pid} serves the game", pid=os.getpid())
    life = Life(folder, Path(told["portal"]), desk)

    def look() -> None:
        if life.is_over():
            _end(mind)

    LoopingCall(look).start(1.0)
    reactor.run()  # type: ignore[attr-defined]


def _begin_log(path: Path) -> None:
    """Write the log, and what is printed, to a file that does not grow for ever."""
    writer = RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8")
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO, handlers=[writer])
    for noisy in ("httpx", "LiteLLM", "mem0"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    observer = cast(ILogObserver, STDLibLogObserver("evennia_ai.mind"))
    globalLogBeginner.beginLoggingTo([observer])


def _end(mind: InlineMind) -> None:
    """Close files and stop; whatever hangs does not hold the process."""
    from twisted.internet import reactor

    _log.info("the process ends")
    last = threading.Timer(_END_S, os._exit, (0,))
    last.daemon = True
    last.start()

    def stop(_: object) -> None:
        reactor.stop()  # type: ignore[attr-defined]

    mind.close().addBoth(stop)


class _Factory(ServerFactory):
    """Makes this side's end of each connection."""

    noisy = False

    def __init__(self, secret: str, facts: dict[str, Any], desk: Desk):
        self._secret, self._facts, self._desk = secret, facts, desk

    def buildProtocol(self, address: object) -> Frames:
        """An end that joins the desk once the other side has proved itself."""
        from twisted.internet import reactor

        frames = Frames(self._secret, True, self._facts, reactor)
        frames.proved = lambda facts: self._desk.joined(frames)
        return frames
