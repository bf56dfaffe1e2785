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
from evennia_ai.history.messages import new_id
from evennia_ai.llm_interaction.servers import Window
from evennia_ai.llm_interaction.tool_calls import ChatToolCall
from evennia_ai.llm_interaction.values import ModelFacts, ModelReply, ModelRequest
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
    if "noop" in request.called:
        return call("noop")
    return ""


class ScriptedModel:
    """A model whose answers are given beforehand; `requests` keeps every request.

    Args:
        answers: One for each call: a text, tool calls (see `call`), a `ModelReply`, or an
            exception to fail with.
        default: What answers when they are used up, or a function from the request to it; by
            default it chooses silence.
        window: The model's context window in tokens, None if unknown.
        calls_tools: Whether it is offered tools; None if it was not tried.
    """

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
        self._window, self.calls_tools = window, calls_tools

    def complete(self, request: ModelRequest) -> "Deferred[ModelReply]":
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else self.default
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, Exception):
            return fail(answer)
        if isinstance(answer, ModelReply):
            return succeed(answer)
        reply = ModelReply(content="", model=request.model, cost=0.0)
        if isinstance(answer, str):
            return succeed(replace(reply, content=answer))
        calls = tuple(cast(ChatToolCall, dict(call)) for call in answer)
        return succeed(replace(reply, tool_calls=calls))

    def trial(self, model: str) -> "Deferred[ModelReply]":
        return succeed(ModelReply(content="", model=model, attempts=0, cost=0.0))

    def cancel_all(self) -> int:
        return 0

    def warm_up(self) -> "Deferred[None]":
        return succeed(None)

    def facts(self, model: str) -> ModelFacts:
        window = Window(self._window, "the script") if self._window else None
        return ModelFacts(window, self.calls_tools)


class NoMemories:
    """A memory back end that keeps nothing."""

    def add(self, scope: str, turns: Sequence[Turn]) -> "Deferred[None]":
        return succeed(None)

    def search(self, scope: str, query: str, *args: Any, **options: Any) -> "Deferred[list[Hit]]":
        return succeed([])

    def ids(self, scope: str) -> "Deferred[set[str]]":
        return succeed(set())

    def delete(self, scope: str, ids: Iterable[str]) -> "Deferred[int]":
        return succeed(0)

    def status(self) -> "Deferred[dict[str, Any]]":
        return succeed({"ok": True, "detail": "keeps nothing", "path": ""})

    def close(self) -> "Deferred[None]":
        return succeed(None)


class InlineWorker(Worker):
    """A worker that does its jobs at once, on the caller's thread."""

    def __init__(self) -> None:
        super().__init__("inline")

    def submit(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        return execute(function, *args, **kwargs)

    submit_later = submit


def stand_in(answers: Iterable[Answer] = (), **options: Any) -> ScriptedModel:
    """Give the assistants of this process a scripted model and a search index in memory.

    There is no long-term memory then, and work is done at once, on the caller's thread.
    `services.reset()` takes all of it back. `answers` and `options` are those of `ScriptedModel`,
    which is returned.
    """
    from evennia_ai.recall.index import RecallIndex  # it loads numpy

    model, worker = ScriptedModel(answers, **options), InlineWorker()
    index = RecallIndex(":memory:")
    services.reset()
    recall = RecallJobs(worker, lambda: index)
    services.use(model=model, memories=NoMemories(), recall=recall, ready=True)
    services.kept("disk", lambda: worker)
    return model
