"""Stand-ins for tests of assistants: a scripted model and stores that live in memory.

::

    model = ScriptedModel(["Good evening.", call("add_journal_entry", content="...")])
    services.use(model=model, semantic=MemorySemanticStore(), ready=True)
"""

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed

from evennia_ai.errors import ModelError
from evennia_ai.history.audience import PUBLIC, visible
from evennia_ai.history.messages import new_id
from evennia_ai.llm_interaction.client import ModelReply, ModelRequest, ProbeReport

# Stands for a stored None, which must differ from nothing stored.
_STORED_NONE = object()

Answer = str | ModelReply | Exception | Sequence[Mapping[str, Any]]


def call(name: str, **arguments: Any) -> list[dict[str, Any]]:
    """A reply that calls one tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return [{"id": new_id("call_"), "type": "function", "function": function}]


class ScriptedModel:
    """A model whose answers are given beforehand; it keeps every request.

    Args:
        answers: One for each call: a text, tool calls (see `call`), a `ModelReply`, or an
            exception to fail with. When they are used up, `default` answers.
        default: A last answer, or a function from the request to one.
        window: The model's context window in tokens, None if unknown.
        held: Whether answers wait until `release` is called.
    """

    def __init__(
        self,
        answers: Iterable[Answer] = (),
        default: Answer | Callable[[ModelRequest], Answer] = "",
        window: int | None = None,
        held: bool = False,
    ):
        self.answers = list(answers)
        self.default = default
        self.requests: list[ModelRequest] = []
        self.held = held
        self._window = window
        self._waiting: list[tuple[Deferred[ModelReply], Answer, str]] = []

    def complete(self, request: ModelRequest) -> "Deferred[ModelReply]":
        """Answer a request."""
        self.requests.append(request)
        default = self.default
        answer = (
            self.answers.pop(0)
            if self.answers
            else (default(request) if callable(default) else default)
        )
        if not self.held:
            return _fired(answer, request.model)
        waiting: Deferred[ModelReply] = Deferred()
        self._waiting.append((waiting, answer, request.model))
        return waiting

    def probe(
        self, model: str, api: str = "chat", timeout_s: float = 20.0
    ) -> "Deferred[ProbeReport]":
        """Reached at once."""
        return succeed(ProbeReport(model, True, 0.0, "", "scripted", "closed"))

    def release(self) -> None:
        """Let the answers that are held go; later calls are answered at once again."""
        self.held = False
        waiting, self._waiting = self._waiting, []
        for deferred, answer, model in waiting:
            if not deferred.called:
                _fired(answer, model).chainDeferred(deferred)

    def cancel_all(self) -> int:
        """Cancel the calls that are held; returns how many."""
        waiting, self._waiting = self._waiting, []
        for deferred, *_ in waiting:
            deferred.cancel()
        return len(waiting)

    def warm_up(self) -> "Deferred[None]":
        """Ready at once."""
        return succeed(None)

    def window(self, model: str) -> int | None:
        """The window given at construction."""
        return self._window


def _fired(answer: Answer, model: str) -> "Deferred[ModelReply]":
    if isinstance(answer, Exception):
        return fail(answer)
    if isinstance(answer, ModelReply):
        return succeed(answer)
    if isinstance(answer, str):
        return succeed(ModelReply(content=answer, model=model, cost=0.0))
    return succeed(
        ModelReply(content="", tool_calls=tuple(dict(c) for c in answer), model=model, cost=0.0)
    )


def model_down() -> ModelError:
    """What a client fails with when no model answers."""
    return ModelError("no model answered", retryable=True, kind="connection")


class MemorySemanticStore:
    """Semantic memory in a dict, found by shared words; with the port of the real store."""

    def __init__(self) -> None:
        self.memories: dict[str, dict[str, dict[str, Any]]] = {}

    def add(self, scope: str, items: Sequence[Mapping[str, Any]]) -> "Deferred[list[str]]":
        """Store items; one whose source is stored already keeps its id."""
        kept = self.memories.setdefault(scope, {})
        ids = []
        for item in items:
            known = [k for k, m in kept.items() if m["metadata"]["source_id"] == item["source_id"]]
            memory_id = known[0] if known else new_id("v")
            meta = {**(item.get("metadata") or {}), "source_id": item["source_id"]}
            kept[memory_id] = {"id": memory_id, "text": item["text"], "metadata": meta}
            ids.append(memory_id)
        return succeed(ids)

    def extraction_prompt(
        self, scope: str, item: Mapping[str, Any]
    ) -> "Deferred[list[dict[str, str]] | None]":
        """The text itself; None if it is stored."""
        kept = self.memories.get(scope, {}).values()
        known = any(m["metadata"]["source_id"] == item["source_id"] for m in kept)
        return succeed(None if known else [{"role": "user", "content": item["text"]}])

    def add_extracted(self, scope: str, item: Mapping[str, Any], answer: str) -> "Deferred[str]":
        """One memory with the answer as its text, or the item's where it is empty."""
        added = self.add(scope, [{**item, "text": answer or item["text"]}])
        return added.addCallback(lambda ids: ids[0])

    def search(
        self, scope: str, query: str, limit: int = 10, audience: str | None = None
    ) -> "Deferred[list[dict[str, Any]]]":
        """Memories that share words with the query, most first."""
        words = set(query.lower().split())
        hits = []
        for memory in self.memories.get(scope, {}).values():
            score = len(words & set(memory["text"].lower().split()))
            owner = memory["metadata"].get("audience") or PUBLIC
            if score and visible(owner, audience or PUBLIC):
                hits.append({**memory, "score": float(score)})
        return succeed(sorted(hits, key=lambda hit: -hit["score"])[:limit])

    def ids(self, scope: str) -> "Deferred[set[str]]":
        """The ids of all memories of a scope."""
        return succeed(set(self.memories.get(scope, {})))

    def sources(self, scope: str) -> "Deferred[dict[str, str]]":
        """Memory ids by the id of their source."""
        kept = self.memories.get(scope, {})
        return succeed({m["metadata"]["source_id"]: k for k, m in kept.items()})

    def source_of(self, scope: str, memory_id: str) -> "Deferred[str | None]":
        """The source of one memory, or None."""
        kept = self.memories.get(scope, {}).get(memory_id)
        return succeed(kept["metadata"]["source_id"] if kept else None)

    def delete(self, scope: str, memory_ids: Iterable[str]) -> "Deferred[int]":
        """Delete memories."""
        kept = self.memories.get(scope, {})
        return succeed(sum(kept.pop(memory_id, None) is not None for memory_id in memory_ids))

    def status(self) -> "Deferred[dict[str, Any]]":
        """Always well."""
        count = sum(len(kept) for kept in self.memories.values())
        return succeed({"ok": True, "detail": "in memory", "count": count, "path": ""})

    def close(self) -> "Deferred[None]":
        """Nothing to release."""
        return succeed(None)


class MemoryStore:
    """Values by key and category in a dict, with the promises of `protocol.Store`."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str | None], Any] = {}
        self._waiting: list[Callable[[], Any]] | None = None

    def preload(self, keys: Iterable[str], category: str | None = None) -> None:
        """All values are in memory already."""

    def get(self, key: str, category: str | None = None, default: Any = None) -> Any:
        """A deep copy of a value, or the default."""
        return copy.deepcopy(self.values.get((key, category), default))

    def stamp(self, key: str, category: str | None = None) -> object:
        """The stored object itself."""
        at = (key, category)
        value = self.values.get(at)
        return _STORED_NONE if value is None and at in self.values else value

    def stamps(self, keys: Iterable[str], category: str | None = None) -> tuple[object, ...]:
        """The stamps of several keys of a category."""
        return tuple(self.stamp(key, category) for key in keys)

    def set(self, key: str, value: Any, category: str | None = None) -> None:
        """Store a deep copy."""
        self.values[(key, category)] = copy.deepcopy(value)

    def delete(self, key: str, category: str | None = None) -> None:
        """Remove a value."""
        self.values.pop((key, category), None)

    def keys(self, category: str) -> tuple[str, ...]:
        """All keys of a category, sorted."""
        return tuple(sorted(key for key, where in list(self.values) if where == category))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Take everything back if the body fails."""
        before, outer = dict(self.values), self._waiting
        mine: list[Callable[[], Any]] = []
        self._waiting = mine
        try:
            yield
        except BaseException:
            self.values = before
            mine.clear()
            raise
        finally:
            self._waiting = outer
        for callback in mine:
            self.on_commit(callback)

    def on_commit(self, callback: Callable[[], Any]) -> None:
        """Call once what was written so far is certain; never if it is taken back."""
        if self._waiting is None:
            callback()
        else:
            self._waiting.append(callback)
