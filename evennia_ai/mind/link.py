"""The Server's way to the mind's process: it starts it, watches it, asks it, and asks again."""

import itertools
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, fail
from twisted.internet.error import AlreadyCalled, AlreadyCancelled
from twisted.internet.protocol import ClientFactory
from twisted.logger import Logger

from evennia_ai.errors import AssistantError, ConfigError, ModelError, StoreError
from evennia_ai.mind.codec import MAX_FRAME, frame, read_error, unframed
from evennia_ai.mind.folder import MindFolder
from evennia_ai.mind.frames import Frames

_log = Logger("evennia_ai")

# Pauses between attempts to reach a process, and between two starts after it died, in seconds.
_LOOK_S, _PAUSES_S = 0.1, (0.0, 1.0, 2.0, 5.0, 15.0, 30.0)
# Seconds after which a process that was reached counts as one that had no trouble starting.
_STEADY_S = 10.0
# Seconds between two attempts at a folder that cannot be used, while nothing waits.
_IDLE_S = 60.0
# How long requests wait for a process, in seconds; they do not wait for the end of a pause that is
# longer than this.
START_S, _LONGEST_PAUSE_S = 60.0, 5.0
# Seconds between two looks whether it is alive; one that misses so many in a row is killed.
PING_S, MOST_MISSED = 10.0, 6
# How often a request is sent: one that kills the process must not do so for ever.
_MOST_TRIES = 3
# Likewise one that somebody pays for.
_MOST_PAID = 2
_CONNECT_S = 5.0
# Requests that somebody pays for: their answers are kept until they are fetched.
PAID = frozenset({"model.complete", "model.probe"})
GONE = "the mind's process ended; see `server/logs/mind.log`"


@dataclass(eq=False)
class Asked:
    """A request that waits for its answer; `since` is when it began to wait for a process."""

    do: str
    data: bytes
    deferred: "Deferred[Any]"
    tries: int = 0
    since: float = field(default_factory=time.monotonic)


class Link:
    """Requests to the mind's process of a game. All methods are for the reactor thread.

    Args:
        folder: Where to meet it.
        start: Starts a process; returns it.
        digest: Marks the settings; a process with other ones is replaced.
        reactor: The reactor.

    Attributes:
            facts: What the process told of itself when it was reached.
            restarts: How often it was started again.
            trouble: Why it cannot be reached; empty if it can.
            ping_s: Seconds between two looks whether it is alive.
            on_restart: Called when another process is reached than before.
    """

    def __init__(
        self,
        folder: MindFolder,
        start: Callable[[], "subprocess.Popen[bytes]"],
        digest: str,
        reactor: Any = None,
    ):
        if reactor is None:
            from twisted.internet import reactor
        self._folder, self._start, self._digest, self._reactor = folder, start, digest, reactor
        self.facts: dict[str, Any] = {}
        self.restarts, self.trouble, self.ping_s = 0, "", PING_S
        self.on_restart: Callable[[], object] = lambda: None
        self._asked: dict[str, Asked] = {}
        self._mark, self._numbers = secrets.token_hex(6), itertools.count(1)
        self._frames: Frames | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._boot, self._is_left, self._is_looking = "", False, False
        self._starts, self._missed = 0, 0
        self._started_at = self._reached_at = 0.0
        self._calls: set[Any] = set()

    @property
    def is_reached(self) -> bool:
        """Whether there is a connection."""
        return self._frames is not None

    @property
    def waiting(self) -> int:
        """Requests that wait for an answer."""
        return len(self._asked)

    def ask(self, do: str, *args: object, key: str = "") -> "Deferred[Any]":
        """Ask the process; fires with its answer. Cancelling the Deferred cancels the request.

        `key` marks a request that a later Server makes again: it then gets this one's answer.
        Fails with what failed there, with `StoreError` if there is no process or the request is
        too large, and a model's call with `ModelError`.
        """
        if self._is_left:
            return fail(_failure(do, "the Server stops"))
        number = f"{self._mark}-{next(self._numbers)}"
        try:
            data = frame({"id": number, "do": do, "args": args, **({"key": key} if key else {})})
        except (TypeError, ValueError, RecursionError) as error:
            return fail(_failure(do, f"the request cannot be sent: {error}", retryable=False))
        if len(data) > MAX_FRAME:
            size = f"{len(data) / 2**20:.0f} MB, more than {MAX_FRAME // 2**20} MB"
            return fail(_failure(do, f"the request is too large: {size}", retryable=False))
        deferred: Deferred[Any] = Deferred(lambda _: self._cancel(number))
        self._asked[number] = asked = Asked(do, data, deferred)
        if self._frames is not None:
            self._send(asked)
        else:
            self._look()
        return deferred

    def leave(self) -> None:
        """Go without cancelling anything: another Server will come. What is asked now fails."""
        self._is_left = True
        for call in list(self._calls):
            if call.active():
                call.cancel()
        if self._frames is not None:
            self._frames.close()
        self._asked.clear()

    def end(self) -> None:
        """End the process, and leave."""
        if self._frames is not None:
            self._frames.send(frame({"end": True}))
        self.leave()

    def kill(self) -> None:
        """End the process at once, as it does not answer."""
        if pid := self.facts.get("pid"):
            _log.error("the mind's process {pid} does not answer; it is killed", pid=pid)
            os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))

    def _cancel(self, number: str) -> None:
        if self._asked.pop(number, None) is not None and self._frames is not None:
            self._frames.send(frame({"cancel": number}))

    def _send(self, asked: Asked) -> None:
        asked.tries += 1
        self._frames.send(asked.data)  # type: ignore[union-attr]

    # --- reaching a process ---

    def _later(self, seconds: float, function: Callable[[], object]) -> None:
        def run() -> None:
            self._calls.discard(call)
            function()

        call = self._reactor.callLater(seconds, run)
        self._calls.add(call)

    def _look(self) -> None:
        """Reach a process, starting one if there is none. Ends when it is reached."""
        if not self._is_looking and not self._is_left:
            self._is_looking = True
            self._later(0, self._try)

    def _try(self) -> None:
        self._expire()
        if self._is_left or self._frames is not None:
            self._is_looking = False
            return
        try:
            self._folder.prepare()
            secret = self._folder.secret()
            factory = _Factory(lambda: Frames(secret, False, {}, self._reactor), self)
            if self._folder.connect(self._reactor, factory, _CONNECT_S) is None:
                self.unreached()
        except (OSError, ConfigError) as error:
            self._fault(str(error))
            self._later(_PAUSES_S[-1] if self._asked else _IDLE_S, self._try)

    def unreached(self) -> None:
        """Nobody answers at the place to meet: start a process if none is starting, look again."""
        if self._is_left:
            return
        now = time.monotonic()
        ended = self._process is None or self._process.poll() is not None
        pause_s = _PAUSES_S[min(self._starts, len(_PAUSES_S) - 1)] if self._process else 0.0
        left_s = self._started_at + pause_s - now
        if ended and self._process is not None:
            self._fault(GONE)
        if ended and left_s > _LONGEST_PAUSE_S:  # it keeps ending: whoever asks is told at once
            for number in list(self._asked):
                self._fail(number, GONE)
        if ended and left_s <= 0:
            if self._boot:
                self.restarts += 1
            self._starts, self._started_at = self._starts + 1, now
            try:
                self._process = self._start()
            except OSError as error:
                self._fault(f"the mind's process cannot be started: {error}")
        self._later(_LOOK_S, self._try)

    def reached(self, frames: Frames, facts: dict[str, Any]) -> None:
        """A process has proved itself: send what waits."""
        if self._is_left or facts["settings"] != self._digest:
            frames.send(frame({"end": True}))
            frames.close()
            if not self._is_left:
                self._later(_LOOK_S, self._try)
            return
        self._is_looking, self.trouble, self.facts = False, "", facts
        self._frames, self._missed, self._reached_at = frames, 0, time.monotonic()
        frames.received = self._received
        frames.lost = self._lost
        is_new, self._boot = facts["boot"] != self._boot, facts["boot"]
        was_there = is_new and bool(self.restarts)
        for number, asked in list(self._asked.items()):
            most = _MOST_PAID if asked.do in PAID else _MOST_TRIES
            if asked.tries >= most and is_new:
                self._fail(number, f"the mind's process ended {most} times over this request")
            else:
                self._send(asked)
        self._later(self.ping_s, lambda: self._ping(frames))
        if was_there:
            self.on_restart()

    def _ping(self, frames: Frames) -> None:
        if self._frames is not frames:
            return
        if self._missed >= MOST_MISSED:  # counted, as this process may have been stopped, too
            self.kill()
            return
        self._missed += 1
        frames.send(frame({"ping": True}))
        self._later(self.ping_s, lambda: self._ping(frames))

    def _lost(self) -> None:
        self._frames, now = None, time.monotonic()
        if now - self._reached_at > _STEADY_S:
            self._starts = 0
        for asked in self._asked.values():
            asked.since = now
        self._look()

    def _fault(self, why: str) -> None:
        if why != self.trouble:
            _log.error("{why}", why=why)
        self.trouble = why

    def _expire(self) -> None:
        """Fail what has waited too long for a process."""
        until = time.monotonic() - START_S
        for number, asked in list(self._asked.items()):
            if asked.since < until:
                self._fail(number, self.trouble or "the mind's process does not start")

    # --- answers ---

    def _received(self, data: bytes) -> None:
        self._missed = 0
        try:
            said = unframed(data)
            number = said.get("id", "")
            asked = self._asked.pop(number, None)
        except (ValueError, AttributeError) as error:
            _log.error("the mind's process sent what cannot be read: {why}", why=str(error))
            if self._frames is not None:
                self._frames.abort()
            return
        for name in ("replaced", "memory_mb"):
            if name in said:
                self.facts[name] = said[name]
        if asked is None:
            return
        if asked.do in PAID and self._frames is not None:
            self._frames.send(frame({"got": number}))
        try:
            if "error" in said:
                asked.deferred.errback(read_error(said))
            else:
                asked.deferred.callback(said["value"])
        except (AlreadyCalled, AlreadyCancelled):
            pass

    def _fail(self, number: str, why: str) -> None:
        asked = self._asked.pop(number)
        asked.deferred.errback(_failure(asked.do, why))


def _failure(do: str, why: str, retryable: bool = True) -> AssistantError:
    if do.startswith("model."):
        return ModelError(why, retryable=retryable, kind="connection")
    return StoreError(why)


class _Factory(ClientFactory):
    """One attempt to reach a process."""

    noisy = False

    def __init__(self, make: Callable[[], Frames], link: Link):
        self._make, self._link = make, link
        self._frames: Frames | None = None
        self._is_reached = False

    def buildProtocol(self, address: object) -> Frames:
        """The Server's end."""
        self._frames = frames = self._make()

        def proved(facts: dict[str, Any]) -> None:
            self._is_reached = True
            self._link.reached(frames, facts)

        frames.proved = proved
        return frames

    def clientConnectionFailed(self, connector: object, reason: object) -> None:
        """Nobody listens."""
        self._link.unreached()

    def clientConnectionLost(self, connector: object, reason: object) -> None:
        """It went before it proved itself."""
        if not self._is_reached:
            self._link.unreached()


def starter(folder: MindFolder, told: bytes, log: Path) -> Callable[[], "subprocess.Popen[bytes]"]:
    """Returns a function that starts a process and tells it, on its standard input, its settings.

    `told` holds keys; they stand in no argument and in no file.
    """

    def start() -> "subprocess.Popen[bytes]":
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "evennia_ai.mind", str(folder.path)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        assert process.stdin is not None
        process.stdin.write(told)  # less than a pipe holds, so this does not wait
        process.stdin.close()
        return process

    return start
