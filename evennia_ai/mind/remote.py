"""The mind in a process of its own, as the Server sees it."""

import gc
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from twisted.internet.defer import CancelledError, Deferred, DeferredList, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure

from evennia_ai.background import Worker
from evennia_ai.errors import WindowError
from evennia_ai.llm_interaction.tokens import counter_for, counter_name
from evennia_ai.llm_interaction.values import ModelReply, ModelRequest, ProbeReport
from evennia_ai.mind.folder import MindFolder
from evennia_ai.mind.link import Link, starter
from evennia_ai.mind.values import MindSettings, MindStatus
from evennia_ai.mind.work import name_of
from evennia_ai.rag_memory.observations import found_observations
from evennia_ai.rag_memory.profile import Profile
from evennia_ai.recall.values import Hit, Query, Turn

P = ParamSpec("P")
T = TypeVar("T")
_log = Logger("evennia_ai")
_OFFLINE = "offline/"
# What a model's server says of it is asked for again after this long.
_FACTS_S = 5.0
_NOTHING_KNOWN = (None, "", None)


class RemoteModel:
    """`protocol.ModelBackend` in the process. Windows and prices are known once it is warm."""

    def __init__(self, link: Link):
        self._link = link
        self._calls: set[Deferred[Any]] = set()
        self._listed: Mapping[str, Sequence[Any]] = {}
        self._facts: dict[str, tuple[float, Sequence[Any]]] = {}

    def complete(self, request: ModelRequest) -> "Deferred[ModelReply]":
        """Ask a model; fails with `ModelError`. Cancelling the Deferred cancels the call."""
        asked = self._link.ask("model.complete", request, key=request.key)
        return self._kept(asked.addErrback(self._note_window))

    def probe(self, model: str) -> "Deferred[ProbeReport]":
        """Fires with whether a model can be reached."""
        return self._kept(self._link.ask("model.probe", model))

    def window(self, model: str) -> int | None:
        """A model's context window in tokens, None if unknown or the process is not warm."""
        window: int | None = self._facts_of(model)[0]
        return window if window is not None else self._known(model)[0]

    def window_source(self, model: str) -> str:
        """Where the figure of `window` comes from, in words; empty if it is unknown."""
        return str(self._facts_of(model)[1])

    def carries_tools(self, model: str) -> bool | None:
        """Whether the tools of a request reach a model; None if unknown."""
        carries: bool | None = self._facts_of(model)[2]
        return carries

    def _facts_of(self, model: str) -> Sequence[Any]:
        """What the process last said of a model; it is asked again every few seconds."""
        asked_at, facts = self._facts.get(model, (float("-inf"), _NOTHING_KNOWN))
        now = time.monotonic()
        if now - asked_at > _FACTS_S:
            self._facts[model] = now, facts
            self._ask_facts(model).addErrback(lambda _: None)  # asked again
        return facts

    def _ask_facts(self, model: str) -> "Deferred[None]":
        def note(facts: Sequence[Any]) -> None:
            self._facts[model] = time.monotonic(), facts

        return self._link.ask("model.facts", model).addCallback(note)

    def _note_window(self, failure: Failure) -> Any:
        """A prompt was too large: learn the window before anybody makes another one."""
        if not isinstance(failure.value, WindowError):
            return failure
        return self._ask_facts(failure.value.model).addBoth(lambda _: failure)

    def price(self, model: str) -> tuple[float, float] | None:
        """US dollars for a token of a prompt and of a reply, None if unknown."""
        if model.startswith(_OFFLINE):
            return 0.0, 0.0
        _, prompt, reply = self._known(model)
        return None if prompt is None else (float(prompt), float(reply or 0.0))

    def cancel_all(self) -> int:
        """Cancel all calls in flight; returns how many there were."""
        running = list(self._calls)
        for call in running:
            call.cancel()
        return len(running)

    def warm_up(self) -> "Deferred[None]":
        """Fetch windows and prices of the models that LiteLLM lists."""
        return self._link.ask("model.listed").addCallback(self._learn)

    def _learn(self, listed: Mapping[str, Sequence[Any]]) -> None:
        self._listed = {name: tuple(known) for name, known in listed.items()}

    def _known(self, model: str) -> Sequence[Any]:
        names = (model, model.partition("/")[2])
        return next((self._listed[n] for n in names if n in self._listed), (None, None, None))

    def _kept(self, call: "Deferred[T]") -> "Deferred[T]":
        self._calls.add(call)

        def end(result: T) -> T:
            self._calls.discard(call)
            return result

        return call.addBoth(end)


class RemoteMemories:
    """`protocol.MemoryBackend` in the process; each call is answered by the game's back end."""

    def __init__(self, link: Link):
        self._link = link

    @classmethod
    def from_settings(cls, *args: Any) -> "RemoteMemories":
        """Not how this one is made."""
        raise NotImplementedError("`RemoteMemories` belongs to a `RemoteMind`")

    @property
    def billed_embedder(self) -> str:
        """The model that embeds texts, if somebody is billed for it; else empty."""
        return str(self._link.facts.get("billed_embedder", ""))

    def add(self, scope: str, turns: Sequence[Turn]) -> "Deferred[None]":
        """Store turns."""
        return self._link.ask("memories.add", scope, list(turns))

    def search(
        self, scope: str, query: str, limit: int = 10, audience: str | None = None
    ) -> "Deferred[list[Hit]]":
        """Fires with memories, best first, only those `audience` may see."""
        return self._link.ask("memories.search", scope, query, limit, audience)

    def ids(self, scope: str) -> "Deferred[set[str]]":
        """Fires with the ids of all turns of a scope."""
        return self._link.ask("memories.ids", scope)

    def delete(self, scope: str, ids: Iterable[str]) -> "Deferred[int]":
        """Delete turns; fires with how many there were."""
        return self._link.ask("memories.delete", scope, list(ids))

    def status(self) -> "Deferred[dict[str, Any]]":
        """Fires with ``{"ok", "detail", "path"}``."""
        return self._link.ask("memories.status").addErrback(_unusable)

    def close(self) -> "Deferred[None]":
        """The process closes its files when it ends."""
        return succeed(None)


def _unusable(failure: Failure) -> dict[str, Any]:
    return {"ok": False, "detail": failure.getErrorMessage(), "path": ""}


class RemoteRecall:
    """`protocol.RecallBackend` in the process."""

    def __init__(self, link: Link, desk: Worker):
        self._link, self._desk = link, desk
        self._before = 0  # indexes replaced by earlier processes

    @property
    def replaced(self) -> int:
        """How often the index was replaced by another one."""
        return self._before + int(self._link.facts.get("replaced", 0))

    def another_process(self) -> None:
        """The process is another one; what it was still to index may be lost with the old one."""
        self._before += 1

    def add(self, scope: str, turns: Sequence[Turn]) -> "Deferred[int]":
        """Index turns; fires with how many were indexed."""
        return self._link.ask("recall.add", scope, list(turns))

    def remove(self, scope: str, ids: Collection[str]) -> "Deferred[int]":
        """Remove turns; fires with how many there were."""
        return self._link.ask("recall.remove", scope, list(ids))

    def clear(self, scope: str, at_most: int) -> "Deferred[int]":
        """Remove so many turns; fires with how many there were."""
        return self._link.ask("recall.clear", scope, at_most)

    def set_filling(self, scope: str, filling: bool) -> "Deferred[bool]":
        """Note in the index whether it is being filled; fires with whether it was until now."""
        return self._link.ask("recall.set_filling", scope, filling)

    def missing(self, scope: str, ids: Collection[str]) -> "Deferred[int]":
        """Fires with how many of these turns are not indexed."""
        return self._link.ask("recall.missing", scope, list(ids))

    def count(self, scope: str) -> "Deferred[int]":
        """Fires with how many turns are indexed."""
        return self._link.ask("recall.count", scope)

    def search(self, scope: str, query: Query, others: Sequence[Hit] = ()) -> "Deferred[list[Hit]]":
        """Fires with the result of a search, with hits of other sources in their places."""
        asked = replace(query, exclude=list(query.exclude))
        return self._link.ask("recall.search", scope, asked, list(others))

    def observations(self, profiles: Mapping[str, Profile], query: Query) -> "Deferred[list[Hit]]":
        """Fires with what profiles hold about those in a query, from a thread of the Server.

        Profiles are in the Server's memory; they would take longer to send than to read.
        """
        return self._desk.submit(found_observations, profiles, query.text, query.audience)


class RemoteMind:
    """`protocol.Mind` in a process of its own.

    Args:
        folder: Where to meet the process.
        settings: What it must know of the game.
        log: Its log.
        models: Models whose tokens the Server counts, for the short texts of prompts.
    """

    def __init__(
        self, folder: MindFolder, settings: MindSettings, log: Path, models: Sequence[str] = ()
    ):
        told = {**asdict(settings), "portal": str(folder.path.parent / "portal.pid")}
        told |= {"unix": folder.is_unix, "log": str(log)}
        text = json.dumps(told, sort_keys=True).encode()
        folder.prepare()
        secret = folder.secret()
        digest = hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()
        start = json.dumps({**told, "secret": secret, "digest": digest}).encode()
        self.link = Link(folder, starter(folder, start, log), digest)
        self._desk = Worker("evennia-ai-desk")
        self._models = models
        self.model, self.memories = RemoteModel(self.link), RemoteMemories(self.link)
        self.recall = RemoteRecall(self.link, self._desk)
        self.link.on_restart = self.recall.another_process
        self.down: set[str] = set()
        self._ends = False

    def work(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "Deferred[T]":
        """Call a function that computes: a listed one in the process, any other on a thread."""
        name = name_of(function)
        if name is None:
            return self._desk.submit(function, *args, **kwargs)
        return self.link.ask("work", name, list(args), kwargs)

    def warm_up(self, model: str) -> "Deferred[None]":
        """Start the process and let it load what is slow; load the vocabularies used here."""

        def count() -> None:
            counter_name(model)
            for name in (model, *self._models):
                counter_for(name)
            # As the import of LiteLLM does: a first full collection would stop the Server 0.1 s.
            gc.freeze()

        def log_failures(results: Iterable[tuple[bool, Any]]) -> None:
            for good, failure in results:
                if not good and not failure.check(CancelledError):
                    _log.error("warming up: {why}", why=failure.getErrorMessage())

        waiting = [self.link.ask("warm_up", model), self._desk.submit(count)]
        loaded = DeferredList([*waiting, self.model.warm_up()], consumeErrors=True)
        return loaded.addCallback(log_failures)

    def status(self) -> MindStatus:
        """How the process was when it last answered."""
        link, facts = self.link, self.link.facts if self.link.is_reached else {}
        pid, memory_mb = facts.get("pid", 0), facts.get("memory_mb", 0)
        trouble = link.trouble
        return MindStatus("process", pid, memory_mb, link.waiting, link.restarts, trouble)

    def leave(self) -> None:
        """The Server restarts: the process finishes calls to models, for the next Server."""
        self.link.leave()

    def end(self) -> None:
        """The game stops: `close` ends the process."""
        self._ends = True

    def close(self) -> "Deferred[None]":
        """Leave the process, or end it with the game."""
        if self._ends:
            self.link.end()
        else:
            self.link.leave()
        return succeed(None)
