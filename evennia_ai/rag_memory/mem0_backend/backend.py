"""The semantic store as the rest of the package sees it: Deferreds in front of one thread."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from twisted.internet.defer import Deferred, TimeoutError, inlineCallbacks
from twisted.python.failure import Failure

from evennia_ai.background import Steps, Worker, in_time
from evennia_ai.errors import StoreError
from evennia_ai.rag_memory.mem0_backend.engine import Engine
from evennia_ai.recall.embedding import Embedder

T = TypeVar("T")

# Items stored by one job of the thread, so that a search never waits for a whole night's add.
ADD_BATCH = 25
# One call of a store on another machine; a batch is stored in a few seconds.
STORE_TIMEOUT_S = 120.0
# Cosines for the packaged embedder and for others. Among the ten memories nearest to each of
# LoCoMo's questions, all evidence shares a word with the question; questions about things never
# mentioned bring up memories with cosines up to 0.6, most below 0.5.
NEAR, NEAR_MEMORY = 0.5, 0.3

# Mem0's embedders that nobody is billed for, and its default one.
LOCAL_EMBEDDERS = ("ollama", "huggingface", "lmstudio", "fastembed", "langchain")
OPENAI_EMBEDDER = "text-embedding-3-small"


class Mem0Backend:
    """`protocol.MemoryBackend` in Mem0, with an embedded Qdrant on disk by default.

    Deferreds fire on the reactor thread; a failure is a `StoreError` of one sentence. Nothing is
    imported or opened before the first call.

    Args:
        directory: Folder of all files, a game's ``server/ai_memory``; made when missing.
        config: Keys of a Mem0 configuration that replace ours, as ``vector_store``,
            ``embedder``, ``llm``, ``history_db_path``; None for the embedded defaults.
        embedder: The package's static embedder by default. Unused if `config` names one.
        worker: The thread to work on; one of its own by default.

    Attributes:
            near: Score from which on a memory counts that shares no word with a query.
            billed_embedder: The model that embeds texts, if a provider bills it; else empty.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        config: Mapping[str, Any] | None = None,
        embedder: Embedder | None = None,
        worker: Worker | None = None,
    ):
        self._engine = Engine(directory, config, embedder)
        own = embedder is None and "embedder" not in (config or {})
        self.near = NEAR if own else NEAR_MEMORY
        self.billed_embedder = _billed((config or {}).get("embedder"))
        self._worker = worker

    @classmethod
    def from_settings(
        cls, directory: Path, setting: Callable[[str], Any], worker: Worker | None = None
    ) -> "Mem0Backend":
        """In ``mem0`` under the folder for derived data, as ``EVENNIA_AI_MEM0_CONFIG`` says."""
        return cls(directory / "mem0", setting("MEM0_CONFIG"), worker=worker)

    @inlineCallbacks
    def add(self, scope: str, items: Sequence[Mapping[str, Any]]) -> Steps[list[str]]:
        """Store items, a batch at a time; after a crash or an error add the same items again.

        `metadata` may hold any JSON values; ``audience`` is public by default, ``type`` is
        ``memory``. Items with an empty text or `source_id` are refused.
        """
        items, ids = list(items), list[str]()
        for start in range(0, len(items), ADD_BATCH):
            ids += yield self._run(self._engine.add, scope, items[start : start + ADD_BATCH])
        return ids

    def extraction_prompt(
        self, scope: str, item: Mapping[str, Any]
    ) -> Deferred[list[dict[str, str]] | None]:
        """Fires with the messages that ask a model for memories of a text; None if it is stored."""
        return self._run(self._engine.extraction_prompt, scope, item)

    def add_extracted(self, scope: str, item: Mapping[str, Any], answer: str) -> Deferred[str]:
        """Store what a model's answer holds, or the text itself if it is empty or unreadable."""
        return self._run(self._engine.add_extracted, scope, item, answer)

    def search(
        self, scope: str, query: str, limit: int = 10, audience: str | None = None
    ) -> Deferred[list[dict[str, Any]]]:
        """Fires with the `limit` nearest memories, best first; scores are Mem0's, in (0, 1].

        An empty query finds nothing; the audience None is public.
        """
        return self._run(self._engine.search, scope, query, limit, audience)

    def ids(self, scope: str) -> Deferred[set[str]]:
        """Fires with the ids of all memories of a scope."""
        return self._run(self._engine.ids, scope)

    def sources(self, scope: str) -> Deferred[dict[str, str]]:
        """Fires with the memory id of each `source_id` stored for a scope."""
        return self._run(self._engine.sources, scope)

    def source_of(self, scope: str, memory_id: str) -> Deferred[str | None]:
        """Fires with the `source_id` of one memory of a scope, or None if there is none."""
        return self._run(self._engine.source_of, scope, memory_id)

    def delete(self, scope: str, memory_ids: Iterable[str]) -> Deferred[int]:
        """Delete memories of a scope with every copy of their text in Mem0's files.

        Damaged stores that were moved aside are deleted too, as they may hold the same text.
        """
        return self._run(self._engine.delete, scope, list(memory_ids))

    @inlineCallbacks
    def status(self) -> Steps[dict[str, Any]]:
        """Fires with ``{"ok", "detail", "count", "path"}``; `count` is over all scopes."""
        try:
            found: dict[str, Any] = yield self._run(self._engine.status)
        except StoreError as error:
            return {"ok": False, "detail": str(error), "count": 0, "path": self._engine.path}
        return found

    def close(self) -> Deferred[None]:
        """Release files and locks; the store cannot be used again."""
        return self._run(self._engine.close)

    def _run(self, function: Callable[..., T], *args: Any) -> Deferred[T]:
        if self._worker is None:
            self._worker = Worker("evennia-ai-memory")
        done = self._worker.submit(function, *args)
        return in_time(done, STORE_TIMEOUT_S).addErrback(_too_slow)


def _billed(embedder: object) -> str:
    """LiteLLM's name of a configured embedder; empty if it runs on the owner's own machine."""
    if not isinstance(embedder, Mapping) or embedder.get("provider") in LOCAL_EMBEDDERS:
        return ""
    provider, config = embedder.get("provider", "openai"), embedder.get("config") or {}
    model = config.get("model") or OPENAI_EMBEDDER
    return model if provider == "openai" else f"{provider}/{model}"


def _too_slow(failure: Failure) -> NoReturn:
    failure.trap(TimeoutError)  # type: ignore[no-untyped-call]
    raise StoreError(
        f"Semantic memory did not answer in {STORE_TIMEOUT_S:.0f} s: check whether its server, "
        "named in `EVENNIA_AI_MEM0_CONFIG`, is up."
    )
