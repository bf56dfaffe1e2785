"""The Server's way to the mind's process: it starts it, watches it, asks it, and asks again."""

import hashlib
import itertools
import os
import secrets
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, fail, inlineCallbacks
from twisted.internet.endpoints import UNIXClientEndpoint, connectProtocol
from twisted.internet.error import ConnectError, ConnectionLost
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from evennia_ai.background import Steps, in_time, pause
from evennia_ai.errors import AssistantError, ConfigError, ModelError, StoreError
from evennia_ai.mind.mind import MindStatus
from evennia_ai.mind.wire import Wire, dumps, socket_path

_log = Logger("evennia_ai")

# Pauses between attempts to reach a process, and between two starts after it died, in seconds.
_LOOK_S, _PAUSES_S = 0.1, (0.0, 1.0, 2.0, 5.0, 15.0, 30.0)
# Seconds after which a process that was reached counts as one that had no trouble starting.
_STEADY_S = 10.0
# Seconds within which one that is reached must say what it is.
_GREETING_S = 20.0
# How long a process is waited for, in seconds, before all requests that wait for one fail; they do
# not wait for the end of a pause that is longer than this.
START_S, _LONGEST_PAUSE_S = 60.0, 5.0
# Seconds between two looks whether it is alive; one that misses so many in a row is killed.
PING_S, MOST_MISSED = 10.0, 6
# How often a request is sent: one that kills the process must not do so for ever. Likewise one that
# somebody pays for.
_MOST_TRIES, _MOST_PAID = 3, 2
# Requests that somebody pays for: their answers are kept until they are fetched.
PAID = frozenset({"model.complete", "model.probe", "model.trial"})
GONE = "the mind's process ended; see `server/logs/mind.log`"


@dataclass(eq=False)
class Request:
    """A request that waits for its answer."""

    name: str
    data: bytes
    deferred: "Deferred[Any]"
    tries: int = 0


class Link:
    """Requests to the mind's process of a game. All methods are for the reactor thread.

    Args:
        folder: Where to meet it.
        settings: What a process is told when it starts; one with other settings is replaced.
        log: Its log.

    Attributes:
        facts: What the process told of itself.
        restarts: How often it was replaced by another one.
        trouble: Why it cannot be reached; empty if it can.
        ping_s: Seconds between two looks whether it is alive.
    """

    def __init__(self, folder: Path, settings: bytes, log: Path):
        self._folder, self._settings, self._log = folder, settings, log
        self._digest = hashlib.sha256(settings).hexdigest()
        self.facts: dict[str, Any] = {}
        self.restarts, self.trouble, self.ping_s = 0, "", PING_S
        self._requests: dict[str, Request] = {}
        self._mark, self._numbers = secrets.token_hex(6), itertools.count(1)
        self._wire: Wire | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_left = self._is_reaching = False
        self._starts, self._missed = 0, 0
        self._started_at = self._reached_at = self._lost_at = 0.0

    def status(self) -> MindStatus:
        """How the process is."""
        facts = self.facts if self._wire is not None else {}
        pid, memory_mb = facts.get("pid", 0), facts.get("memory_mb", 0)
        waiting = len(self._requests)
        return MindStatus("process", pid, memory_mb, waiting, self.restarts, self.trouble)

    def ask(self, name: str, *args: object, key: str = "") -> "Deferred[Any]":
        """Ask the process; fires with its answer. Cancelling the Deferred cancels the request.

        `key` marks a request that a later Server makes again: it then gets this one's answer.
        Fails with what failed there, with `StoreError` if there is no process or the request is
        too large, and a model's call with `ModelError`.
        """
        if self._is_left:
            return fail(_failure(name, "the Server stops"))
        number = f"{self._mark}-{next(self._numbers)}"
        if key and f"{name} {key}" not in self._requests:
            number = f"{name} {key}"
        try:
            data = dumps(("ask", number, name, args))
        except (TypeError, ValueError) as error:
            return fail(_failure(name, f"the request cannot be sent: {error}", retryable=False))
        request = Request(name, data, Deferred(lambda _: self._cancel(number)))
        self._requests[number] = request
        if self._wire is None:
            self._reach()
        else:
            self._send(request)
        return request.deferred

    def cancel_paid(self) -> int:
        """Cancel the requests that somebody pays for; returns how many there were."""
        paid = [request for request in self._requests.values() if request.name in PAID]
        for request in paid:
            request.deferred.cancel()
        return len(paid)

    def leave(self) -> None:
        """Go without cancelling anything: another Server will come. What is asked now fails."""
        self._is_left = True
        self._requests.clear()
        if self._wire is not None:
            self._wire.close()

    def end(self) -> None:
        """End the process, and leave."""
        self._tell("end")
        self.leave()

    def _tell(self, *message: str) -> None:
        if self._wire is not None:
            self._wire.send(dumps(message))

    def _cancel(self, number: str) -> None:
        if self._requests.pop(number, None) is not None:
            self._tell("drop", number)

    def _send(self, request: Request) -> None:
        request.tries += 1
        self._wire.send(request.data)  # type: ignore[union-attr]

    # --- reaching a process ---

    def _reach(self) -> None:
        if not self._is_reaching and not self._is_left:
            self._is_reaching, self._lost_at = True, time.monotonic()
            self._reaching().addErrback(lambda failure: _log.failure("the mind", failure))

    @inlineCallbacks
    def _reaching(self) -> Steps[None]:
        """Connect to a process, starting one if there is none; ends when one is reached."""
        try:
            while not self._is_left and self._wire is None:
                if time.monotonic() - self._lost_at > START_S:
                    self._fail_all(self.trouble or "the mind's process does not start")
                    self._lost_at = time.monotonic()
                try:
                    wire, facts = yield self._connect()
                except (ConnectError, ConnectionLost, TimeoutError):
                    self._start_again()
                except (OSError, ConfigError) as error:
                    self._fault(str(error))
                else:
                    self._greet(wire, facts)
                if self._wire is None:
                    yield pause(seconds=_LOOK_S)
        finally:
            self._is_reaching = False

    @inlineCallbacks
    def _connect(self) -> Steps[tuple[Wire, dict[str, Any]]]:
        """Fires with a connection and what the process tells of itself."""
        from twisted.internet import reactor

        first: Deferred[dict[str, Any]] = Deferred()
        wire = Wire(
            lambda _, message: first.callback(message[2]),
            lambda _: None if first.called else first.errback(ConnectionLost()),
        )
        path = socket_path(self._folder)
        endpoint = UNIXClientEndpoint(reactor, path)  # type: ignore[no-untyped-call]
        yield connectProtocol(endpoint, wire)  # type: ignore[no-untyped-call]
        wire.send(dumps(("ping",)))
        try:
            facts = yield in_time(first, _GREETING_S)
        except TimeoutError:
            wire.transport.abortConnection()
            raise
        return wire, facts

    def _start_again(self) -> None:
        """Start a process, unless one is starting or one has died too often just now."""
        if self._is_left:
            return
        now, ended = time.monotonic(), self._process
        if ended is not None:
            if ended.poll() is None:
                return
            self._fault(GONE)
            left_s = self._started_at + _PAUSES_S[min(self._starts, len(_PAUSES_S) - 1)] - now
            if left_s > _LONGEST_PAUSE_S:  # it keeps ending: whoever asks is told at once
                self._fail_all(GONE)
            if left_s > 0:
                return
        self._starts, self._started_at = self._starts + 1, now
        try:
            self._process = self._spawn()
        except OSError as error:
            self._fault(f"the mind's process cannot be started: {error}")

    def _spawn(self) -> "subprocess.Popen[bytes]":
        """Start a process and tell it, on its standard input, its settings.

        They hold keys, which stand in no argument and in no file.
        """
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with open(self._log, "ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "evennia_ai.mind.process", str(self._folder.resolve())],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        assert process.stdin is not None
        process.stdin.write(self._settings)  # less than a pipe holds, so this does not wait
        process.stdin.close()
        return process

    def _greet(self, wire: Wire, facts: dict[str, Any]) -> None:
        """A process is there: send what waits."""
        if self._is_left or facts["digest"] != self._digest:
            if not self._is_left:
                wire.send(dumps(("end",)))
            wire.close()
            return
        is_new = facts["boot"] != self.facts.get("boot", "")
        self.restarts += bool(is_new and self.facts)
        self.facts, self.trouble = facts, ""
        self._wire, self._missed, self._reached_at = wire, 0, time.monotonic()
        watch = LoopingCall(self._look)
        wire.received, wire.lost = self._received, lambda _: self._lost(watch)
        for number, request in list(self._requests.items()):
            most = _MOST_PAID if request.name in PAID else _MOST_TRIES
            if request.tries >= most and is_new:
                often = f"{request.tries} times"
                self._fail(number, f"the mind's process ended {often} over this request")
            else:
                self._send(request)
        watch.start(self.ping_s, now=False)

    def _look(self) -> None:
        """Kill a process that does not answer."""
        if self._missed >= MOST_MISSED:  # counted, as this process may have been stopped, too
            _log.error("the mind's process {pid} does not answer; it is killed", **self.facts)
            os.kill(self.facts["pid"], signal.SIGKILL)
        self._missed += 1
        self._tell("ping")

    def _lost(self, watch: LoopingCall) -> None:
        watch.stop()
        self._wire = None
        if time.monotonic() - self._reached_at > _STEADY_S:
            self._starts = 0
        self._reach()

    def _fault(self, why: str) -> None:
        if why != self.trouble:
            _log.error("{why}", why=why)
        self.trouble = why

    # --- answers ---

    def _received(self, wire: Wire, message: Any) -> None:
        number, value, facts = message
        self._missed = 0
        self.facts |= facts
        # Each goes on in a turn of the reactor of its own, as many may come at once.
        pause().addCallback(lambda _: self._answered(number, value))

    def _answered(self, number: str, value: Any) -> None:
        request = self._requests.pop(number, None)
        if request is None:
            return
        if request.name in PAID:
            self._tell("got", number)
        if isinstance(value, AssistantError):
            request.deferred.errback(value)
        else:
            request.deferred.callback(value)

    def _fail(self, number: str, why: str) -> None:
        request = self._requests.pop(number)
        request.deferred.errback(_failure(request.name, why))

    def _fail_all(self, why: str) -> None:
        for number in list(self._requests):
            self._fail(number, why)


def _failure(name: str, why: str, retryable: bool = True) -> AssistantError:
    if name.startswith("model."):
        return ModelError(why, retryable=retryable, kind="connection")
    return StoreError(why)
