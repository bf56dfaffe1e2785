"""The mind in its process, as the Server sees it."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from twisted.internet.defer import Deferred, DeferredList, succeed
from twisted.python.failure import Failure

from evennia_ai import __version__
from evennia_ai.background import Worker
from evennia_ai.llm_interaction.tokens import counter_for
from evennia_ai.llm_interaction.values import OFFLINE_MODEL, ModelFacts, ModelReply, ModelRequest
from evennia_ai.mind.link import KEPT, Link
from evennia_ai.mind.mind import log_failures
from evennia_ai.mind.wire import is_work
from evennia_ai.rag_memory.backend import MemoryBackend
from evennia_ai.rag_memory.memory import RecallJobs

P = ParamSpec("P")
T = TypeVar("T")


def code_stamp(folder: Path = Path(__file__).parents[1]) -> str:
    """What marks the package's code as it is on the disk now: its version, its files' times."""
    files = sorted(folder.rglob("*.py"))
    changed = [(str(each), each.stat().st_mtime_ns) for each in files]
    return f"{__version__} {hashlib.sha256(repr(changed).encode()).hexdigest()}"


class _Part:
    """A part of the mind: each of its methods asks the process."""

    def __init__(self, link: Link, name: str):
        self._link, self._name = link, name

    def __getattr__(self, method: str) -> Callable[..., "Deferred[Any]"]:
        def ask(*args: object) -> "Deferred[Any]":
            return self._link.ask(f"{self._name}.{method}", *args)

        return ask


class RemoteMemories(_Part):
    """`MemoryBackend` in the process."""

    @property
    def billed_embedder(self) -> str:
        return str(self._link.facts.get("billed_embedder", ""))

    def status(self) -> "Deferred[dict[str, Any]]":

        def unusable(failure: Failure) -> dict[str, Any]:
            return {"ok": False, "detail": failure.getErrorMessage(), "path": ""}

        return self._link.ask("memories.status").addErrback(unusable)


class RemoteRecall(_Part):
    """`RecallJobs` in the process."""

    @property
    def replaced(self) -> tuple[int, int]:
        """How often the process and its index were replaced; with it, what it was to index."""
        return self._link.restarts, self._link.facts.get("replaced", 0)


class RemoteModel(_Part):
    """`ModelClient` in the process.

    Windows and prices of the game's models are known once it is warm, of others a moment after
    they are asked for.
    """

    def complete(self, request: ModelRequest) -> "Deferred[ModelReply]":
        return self._link.ask(KEPT, request, key=request.key)

    def facts(self, model: str) -> ModelFacts:
        """What the process said of a model with the newest answer of one."""
        self._link.know(model)
        known: dict[str, ModelFacts] = self._link.facts.get("models", {})
        return known.get(model, ModelFacts())


class RemoteMind:
    """`Mind` in a process of its own.

    Args:
        folder: Where to meet the process.
        settings: What it must know of the game.
        log: Its log.
        models: Models that assistants may use: what is known of them is fetched at the start, and
            the Server counts the short texts of prompts as they do.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, Any], log: Path, models: Sequence[str] = ()
    ):
        told = {"settings": settings, "log": str(log), "code": code_stamp()}
        self.link = link = Link(folder, json.dumps(told, sort_keys=True).encode(), log)
        self.status, self.leave, self.end = link.__str__, link.leave, link.end
        self._desk, self._models = Worker("evennia-ai-desk"), models
        self.model = RemoteModel(link, "model")
        self.memories = cast(MemoryBackend, RemoteMemories(link, "memories"))
        self.recall = cast(RecallJobs, RemoteRecall(link, "recall"))
        self.down: set[str] = set()

    @property
    def trouble(self) -> str:
        return self.link.trouble

    def work(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "Deferred[T]":
        """Call a function that computes: a listed one in the process, any other on a thread."""
        if is_work(function) and not kwargs:
            return self.link.ask("work", function, *args)
        return self._desk.submit(function, *args, **kwargs)

    def warm_up(self, model: str) -> "Deferred[None]":
        """Start the process and let it load what is slow; load the vocabularies used here."""
        models = dict.fromkeys((model, *self._models, OFFLINE_MODEL))

        def count() -> None:
            for name in models:
                counter_for(name)

        self.link.know(*models)
        waiting = [self.link.ask("warm_up", model), self._desk.submit(count)]
        return DeferredList(waiting, consumeErrors=True).addCallback(log_failures)

    def close(self) -> "Deferred[None]":
        """Leave the process, which `end` ends."""
        self.link.leave()
        return succeed(None)
