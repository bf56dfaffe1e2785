"""The mind's process, as the Server sees it: it starts it, asks it, and asks again where it died.

`Link` is the way there; `RemoteMind` is a `Mind` that takes it.
"""

import hashlib
import itertools
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from twisted.internet.defer import Deferred, DeferredList, fail, inlineCallbacks, succeed
from twisted.internet.endpoints import UNIXClientEndpoint
from twisted.internet.error import ConnectError
from twisted.logger import Logger
from twisted.python.failure import Failure

from evennia_ai import __version__
from evennia_ai.background import Steps, Worker, pause
from evennia_ai.errors import AssistantError, ConfigError, ModelError, StoreError
from evennia_ai.llm_interaction.tokens import counter_for
from evennia_ai.llm_interaction.values import OFFLINE_MODEL, ModelFacts, ModelReply, ModelRequest
from evennia_ai.mind.mind import log_failures
from evennia_ai.mind.wire import Wire, dumps, is_work, socket_path, wires
from evennia_ai.rag_memory.backend import MemoryBackend
from evennia_ai.rag_memory.memory import RecallJobs

_log = Logger("evennia_ai")
P = ParamSpec("P")
T = TypeVar("T")

# Pauses between attempts to reach a process, and the shortest time between two starts, in seconds.
_LOOK_S, PAUSE_S = 0.1, 5.0
# How long a process may take to start, and then say nothing, before it is killed, in seconds.
START_S, HANG_S = 60.0, 60.0
# How long it is waited for once more, in seconds.
DOUBT_S = 3.0
# How many processes a request is sent to: one that kills them must not do so for ever.
_MOST_TRIES = 2
# The requests that somebody pays for: their answers are kept until the Server has got them.
KEPT = "model.complete"
GONE = "the mind's process ended; see `server/logs/mind.log`"


@dataclass(eq=False)
class Request:
    """A request that waits for its answer."""

    name: str
    data: bytes
    deferred: "Deferred[Any]"
    tries: int = 0


def _failure(name: str, why: str, retryable: bool = True) -> AssistantError:
    if name.startswith("model."):
        return ModelError(why, retryable=retryable, kind="connection")
    return StoreError(why)


def code_stamp(folder: Path = Path(__file__).parents[1]) -> str:
    """What marks the package's code as it is on the disk now: its version, its files' times."""
    files = sorted(folder.rglob("*.py"))
    changed = [(str(each), each.stat().st_mtime_ns) for each in files]
    return f"{__version__} {hashlib.sha256(repr(changed).encode()).hexdigest()}"


class _Part:
    """A part of the mind: each of its methods asks the process."""

    def __init__(self, mind: "RemoteMind", name: str):
        self._mind, self._name = mind, name

    def __getattr__(self, method: str) -> Callable[..., "Deferred[Any]"]:
        def ask(*args: object) -> "Deferred[Any]":
            return self._mind.ask(f"{self._name}.{method}", *args)

        return ask


class RemoteMemories(_Part):
    """`MemoryBackend` in the process."""

    @property
    def billed_embedder(self) -> str:
        return str(self._mind.facts.get("billed_embedder", ""))

    def status(self) -> "Deferred[dict[str, Any]]":

        def unusable(failure: Failure) -> dict[str, Any]:
            return {"ok": False, "detail": failure.getErrorMessage(), "path": ""}

        return self._mind.ask("memories.status").addErrback(unusable)


class RemoteRecall(_Part):
    """`RecallJobs` in the process."""

    @property
    def replaced(self) -> tuple[int, int]:
        """How often the process and its index were replaced; with it, what it was to index."""
        return self._mind.restarts, self._mind.facts.get("replaced", 0)


class RemoteModel(_Part):
    """`ModelClient` in the process.

    Windows and prices of the game's models are known once it is warm, of others a moment after
    they are asked for.
    """

    def complete(self, request: ModelRequest) -> "Deferred[ModelReply]":
        return self._mind.ask(KEPT, request, key=request.key)

    def facts(self, model: str) -> ModelFacts:
        """What the process said of a model with the newest answer of one."""
        self._mind.know(model)
        known: dict[str, ModelFacts] = self._mind.facts.get("models", {})
        return known.get(model, ModelFacts())


class RemoteMind:
    """`Mind` in a process of its own. All methods are for the reactor thread.

    Args:
        folder: Where to meet the process.
        settings: What it must know of the game; one with others is replaced.
        log: Its log.
        models: Models that assistants may use: what is known of them is fetched at the start, and
            the Server counts the short texts of prompts as they do.

    Attributes:
        facts: What the process told of itself.
        restarts: How often it was replaced by another one.
        trouble: Why it cannot be reached; empty if it can.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, Any], log: Path, models: Sequence[str] = ()
    ):
        told = {"settings": settings, "log": str(log), "code": code_stamp()}
        self._folder, self._log, self._models = folder, log, {*models}
        self._settings = json.dumps(told, sort_keys=True).encode()
        self._digest = hashlib.sha256(self._settings).hexdigest()
        self.facts: dict[str, Any] = {}
        self.restarts, self.trouble = 0, ""
        self.model = RemoteModel(self, "model")
        self.memories = cast(MemoryBackend, RemoteMemories(self, "memories"))
        self.recall = cast(RecallJobs, RemoteRecall(self, "recall"))
        self.down: set[str] = set()
        self._desk = Worker("evennia-ai-desk")
        self._requests: dict[str, Request] = {}
        self._mark, self._numbers = secrets.token_hex(6), itertools.count(1)
        self._wire: Wire | None = None
        self._is_greeted = self._is_left = self._is_doubted = False
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: Any = None
        self._started_at = float("-inf")
        self._reach()

    def status(self) -> str:
        """Where it works, for people."""
        parts = ["no process", f"{len(self._requests)} requests in flight"]
        if self._is_greeted:
            parts[0] = f"process {self.facts['pid']}"
        if self.restarts:
            parts.append(f"restarted {self.restarts} times")
        return ", ".join(filter(None, (*parts, self.trouble)))

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

        def cancel(_: object) -> None:
            if self._requests.pop(number, None) is not None:
                self._tell("drop", number)

        request = Request(name, data, Deferred(cancel))
        self._requests[number] = request
        if self._is_greeted:
            self._send(request)
        return request.deferred

    def know(self, *models: str) -> None:
        """Let `facts` hold what is known of models from now on."""
        if not self._models.issuperset(models):
            self._models.update(models)
            self._tell("hello", *self._models)

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

    def _send(self, request: Request) -> None:
        request.tries += 1
        self._wire.send(request.data)  # type: ignore[union-attr]

    def work(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "Deferred[T]":
        """Call a function that computes: a listed one in the process, any other on a thread."""
        if is_work(function) and not kwargs:
            return self.ask("work", function, *args)
        return self._desk.submit(function, *args, **kwargs)

    def warm_up(self, model: str) -> "Deferred[None]":
        """Start the process and let it load what is slow; load the vocabularies used here."""
        models = dict.fromkeys((model, *self._models, OFFLINE_MODEL))

        def count() -> None:
            for name in models:
                counter_for(name)

        self.know(*models)
        waiting = [self.ask("warm_up", model), self._desk.submit(count)]
        return DeferredList(waiting, consumeErrors=True).addCallback(log_failures)

    def close(self) -> "Deferred[None]":
        """Leave the process, which `end` ends."""
        self.leave()
        return succeed(None)

    # --- reaching a process ---

    @inlineCallbacks
    def _reach(self) -> Steps[None]:
        """Connect to the process, starting one if there is none."""
        from twisted.internet import reactor

        while self._wire is None and not self._is_left:
            try:
                path = socket_path(self._folder)
                endpoint = UNIXClientEndpoint(reactor, path)  # type: ignore[no-untyped-call]
                factory = wires(self._received, self._lost)
                self._wire = yield endpoint.connect(factory)  # type: ignore[no-untyped-call]
            except ConnectError:
                self._start()
            except (OSError, ConfigError) as error:
                self._fail_all(str(error))
            else:
                self._is_doubted = False
                self._watch = reactor.callLater(HANG_S, self._kill)  # type: ignore[attr-defined]
                self._tell("hello", *self._models)
                if self._is_left:
                    self.leave()
                return
            yield pause(seconds=_LOOK_S)

    def _start(self) -> None:
        """Start a process, unless one is starting or another was started just now."""
        age_s = time.monotonic() - self._started_at
        if self._is_left:
            return
        if self._process is not None:
            if self._process.poll() is None:
                if age_s > START_S:
                    self._process.kill()
                return
            # It failed before it could be reached. Where another serves the game it ends with 0.
            if self._process.returncode and self._process.pid != self.facts.get("pid"):
                self._fail_all(GONE)
            self._process = None
        if age_s > PAUSE_S:
            self._started_at = time.monotonic()
            try:
                self._process = self._spawn()
            except OSError as error:
                self._fail_all(f"the mind's process cannot be started: {error}")

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

    def _kill(self) -> None:
        """The process has said nothing for long: kill it.

        If this process was stopped, or busy, for so long, what that said is still to be read: it
        is looked at once more.
        """
        from twisted.internet import reactor

        if not self._is_doubted:
            self._is_doubted = True
            self._watch = reactor.callLater(DOUBT_S, self._kill)  # type: ignore[attr-defined]
            return
        _log.error("the mind's process does not answer; it is killed")
        with suppress(OSError, ValueError):
            os.kill(int((self._folder / "lock").read_text(encoding="ascii")), signal.SIGKILL)
        self._wire.transport.abortConnection()  # type: ignore[union-attr]

    def _lost(self, wire: Wire) -> None:
        self._wire, self._is_greeted = None, False
        if self._watch.active():
            self._watch.cancel()
        self._reach()

    def _received(self, wire: Wire, value: Any) -> None:
        """Take an answer, or a sign that the process lives."""
        number, answer, facts = value
        if facts["digest"] != self._digest:  # of other settings, or of other code
            self._tell("end")
            wire.close()
            return
        self._is_doubted = False
        self._watch.reset(HANG_S)
        former = self.facts.get("pid")
        self.facts |= facts
        if not self._is_greeted:
            self._is_greeted, self.trouble = True, ""
            is_new = facts["pid"] != former
            self.restarts += is_new and former is not None
            for waiting, request in list(self._requests.items()):
                if is_new and request.tries >= _MOST_TRIES:
                    often = f"{request.tries} times"
                    self._fail(waiting, f"the mind's process ended {often} over this request")
                else:
                    self._send(request)
        if number:
            # Each goes on in a turn of the reactor of its own, as many may come at once.
            pause().addCallback(lambda _: self._answered(number, answer))

    # --- answers ---

    def _answered(self, number: str, answer: Any) -> None:
        request = self._requests.pop(number, None)
        if request is None:
            return
        if request.name == KEPT:
            self._tell("got", number)
        if isinstance(answer, AssistantError):
            request.deferred.errback(answer)
        else:
            request.deferred.callback(answer)

    def _fail(self, number: str, why: str) -> None:
        request = self._requests.pop(number)
        request.deferred.errback(_failure(request.name, why))

    def _fail_all(self, why: str) -> None:
        if why != self.trouble:
            _log.error("{why}", why=why)
        self.trouble = why
        for number in list(self._requests):
            self._fail(number, why)
