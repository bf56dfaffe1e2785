"""For tests of a game: a model whose answers are given beforehand, and stores in memory.

In a test of Evennia's own kind, before an assistant is made::

    model = stand_in(["Good evening.", call("add_journal_entry", content="...")])
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar, cast

from twisted.internet.defer import Deferred, execute, fail, succeed

from evennia_ai import services
from evennia_ai.background import Worker
from evennia_ai.history.audience import PUBLIC, visible
from evennia_ai.history.messages import new_id
from evennia_ai.llm_interaction.dialects import read
from evennia_ai.llm_interaction.tool_calls import ChatToolCall, tool_call
from evennia_ai.llm_interaction.values import ModelFacts, ModelReply, ModelRequest
from evennia_ai.llm_interaction.windows import Window
from evennia_ai.rag_memory.memory import RecallJobs
from evennia_ai.recall.values import Hit, Turn

P = ParamSpec("P")
T = TypeVar("T")

Answer = str | ModelReply | Exception | Sequence[Mapping[str, Any]]


def call(name: str, **arguments: object) -> list[dict[str, Any]]:
    """A reply that calls one tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return [{"id": new_id("call_"), "type": "function", "function": function}]


def silence(request: ModelRequest) -> Answer:
    """What a model answers that chooses to say nothing: a call of `noop` in a talk."""
    return call("noop") if "noop" in request.called else ""


class ScriptedModel:
    """A model whose answers are given beforehand; `requests` keeps every request.

    Args:
        answers: One for each call: a text, tool calls (see `call`), a `ModelReply`, or an
            exception to fail with.
        default: What answers when they are used up, or a function from the request to it; by
            default it chooses silence.
        window: The model's context window in tokens, None if unknown.
        calls_tools: Whether it is offered tools; None if it was not tried.

    Attributes:
        held: Whether answers wait until `release` is called.
        price: US dollars for a token of a prompt and of a reply; None if unknown.
        own: Whether it runs on the game's own machine.
        tried: The names of models that were tried out.
    """

    held = own = False
    price: tuple[float, float] | None = None

    def __init__(
        self,
        answers: Iterable[Answer] = (),
        default: Answer | Callable[[ModelRequest], Answer] | None = None,
        window: int | None = None,
        calls_tools: bool | None = True,
    ):
        self.answers = list(answers)
        self.default = silence if default is None else default
        self.requests: list[ModelRequest] = []
        self.tried: list[str] = []
        self._window, self.calls_tools = window, calls_tools
        self._waiting: list[tuple[Deferred[ModelReply], Answer, ModelRequest]] = []

    def complete(self, request: ModelRequest) -> "Deferred[ModelReply]":
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else self.default
        if callable(answer):
            answer = answer(request)
        if not self.held:
            return _fired(answer, request)
        waiting: Deferred[ModelReply] = Deferred()
        self._waiting.append((waiting, answer, request))
        return waiting

    def probe(self, model: str) -> "Deferred[ModelReply]":
        reply = ModelReply(content="ready", model=model, prompt_tokens=16, cost=0.0)
        return succeed(replace(reply, completion_tokens=1))

    def trial(self, model: str) -> "Deferred[ModelReply]":
        self.tried.append(model)
        return succeed(ModelReply(content="", model=model, attempts=0, cost=0.0))

    def release(self) -> None:
        """Let the answers that are held go; later calls are answered at once again."""
        self.held = False
        waiting, self._waiting = self._waiting, []
        for deferred, answer, request in waiting:
            if not deferred.called:
                _fired(answer, request).chainDeferred(deferred)

    def cancel_all(self) -> int:
        waiting, self._waiting = self._waiting, []
        for deferred, *_ in waiting:
            deferred.cancel()
        return len(waiting)

    def warm_up(self) -> "Deferred[None]":
        return succeed(None)

    def facts(self, model: str) -> ModelFacts:
        window = Window(self._window, "the script") if self._window else None
        return ModelFacts(window, self.calls_tools, price=self.price, own=self.own)


def _fired(answer: Answer, request: ModelRequest) -> "Deferred[ModelReply]":
    if isinstance(answer, Exception):
        return fail(answer)
    if isinstance(answer, ModelReply):
        return succeed(as_read(answer, request))
    if isinstance(answer, str):
        reply = ModelReply(content=answer, model=request.model, cost=0.0)
        return succeed(as_read(reply, request))
    calls = tuple(cast(ChatToolCall, dict(call)) for call in answer)
    return succeed(ModelReply(content="", tool_calls=calls, model=request.model, cost=0.0))


def as_read(reply: ModelReply, request: ModelRequest) -> ModelReply:
    """A reply as the client reads it: without marks, with the calls that it writes as text."""
    answer = read(reply.content, request.called, request.reported)
    calls = tuple(tool_call(new_id("call_"), *each) for each in answer.calls)
    calls = reply.tool_calls or calls
    return replace(reply, content=answer.text, tool_calls=calls, thought=answer.thought)


def shared_words(turns: Iterable[Turn], query: str, audience: str | None) -> list[Hit]:
    """Turns that share words with a query, scored by how many, as far as an audience may see."""
    words, hits = set(query.lower().split()), []
    for turn in turns:
        score, owner = len(words & set(turn.text.lower().split())), turn.audience or PUBLIC
        if score and visible(owner, audience or PUBLIC):
            facts = (turn.id, float(score), turn.speaker, turn.text, str(turn.at), turn.kind)
            hits.append(Hit(*facts, audience=owner))
    return hits


class MemorySemanticStore:
    """Semantic memory in a dict, found by shared words; with the port of the real store."""

    def __init__(self) -> None:
        self.memories: dict[str, dict[str, Turn]] = {}

    def add(self, scope: str, turns: Sequence[Turn]) -> "Deferred[None]":
        self.memories.setdefault(scope, {}).update({turn.id: turn for turn in turns})
        return succeed(None)

    def search(
        self, scope: str, query: str, limit: int = 10, audience: str | None = None
    ) -> "Deferred[list[Hit]]":
        hits = shared_words(self.memories.get(scope, {}).values(), query, audience)
        best = sorted(hits, key=lambda hit: -hit.score)[:limit]
        return succeed([replace(hit, speaker="", kind="memory") for hit in best])

    def ids(self, scope: str) -> "Deferred[set[str]]":
        return succeed(set(self.memories.get(scope, {})))

    def delete(self, scope: str, ids: Iterable[str]) -> "Deferred[int]":
        held = self.memories.get(scope, {})
        return succeed(sum(held.pop(each, None) is not None for each in ids))

    def status(self) -> "Deferred[dict[str, Any]]":
        return succeed({"ok": True, "detail": "in memory", "path": ""})

    def close(self) -> "Deferred[None]":
        return succeed(None)


class InlineWorker(Worker):
    """A worker that does its jobs at once, on the caller's thread."""

    def __init__(self) -> None:
        super().__init__("inline")

    def submit(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        return execute(function, *args, **kwargs)

    submit_later = submit


class MemoryIndex:
    """A recall index in a dict; it finds what shares a word with the query."""

    damaged = False

    def __init__(self) -> None:
        self.turns: dict[str, Turn] = {}

    def add(self, scope: str, turns: Iterable[Turn]) -> int:
        new = {turn.id: turn for turn in turns}
        self.turns.update(new)
        return len(new)

    def remove(self, scope: str, ids: Iterable[str]) -> int:
        return sum(self.turns.pop(each, None) is not None for each in ids)

    def erase(self) -> None:
        """Nothing of what was removed is kept anyway."""

    def clear(self, scope: str) -> int:
        return self.remove(scope, list(self.turns))

    def get(self, scope: str, ids: Iterable[str]) -> tuple[Turn, ...]:
        return tuple(self.turns[each] for each in ids if each in self.turns)

    def count(self, scope: str) -> int:
        return len(self.turns)

    def search(
        self,
        scope: str,
        query: str,
        limit: int = 10,
        audience: str | None = None,
        tools: bool = False,
    ) -> tuple[Hit, ...]:
        turns = [turn for turn in self.turns.values() if (turn.kind == "tool") == tools]
        return tuple(shared_words(turns, query, audience)[-limit:])

    def close(self) -> None:
        """Nothing to release."""


def stand_in(answers: Iterable[Answer] = (), **options: Any) -> ScriptedModel:
    """Give the assistants of this process a scripted model and stores in memory.

    Work is then done at once, on the caller's thread. `services.reset()` takes all of it back.
    `answers` and `options` are those of `ScriptedModel`, which is returned.
    """
    model, worker = ScriptedModel(answers, **options), InlineWorker()
    index: Any = MemoryIndex()
    services.reset()
    recall = RecallJobs(worker, lambda: index)
    services.use(model=model, memories=MemorySemanticStore(), recall=recall, ready=True)
    services.kept("disk", lambda: worker)
    return model
