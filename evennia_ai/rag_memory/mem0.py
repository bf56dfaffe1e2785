"""Semantic memory in Mem0: the only module that talks to it.

By default Mem0 2.2 wants an OpenAI key, keeps files in the home folder and under ``/tmp``, sends
telemetry at import, and keeps each text once more in a history of its own, also when it is deleted.
Here it works offline, in one folder of the game, with a history that is emptied at once.
"""

import logging
import os
import re
import shutil
import sqlite3
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from twisted.internet.defer import Deferred, TimeoutError, inlineCallbacks

from evennia_ai.background import Steps, Worker, in_time
from evennia_ai.errors import StoreError
from evennia_ai.history.audience import PUBLIC, STAFF, normalised, viewer, visible
from evennia_ai.language.words import storable, telling_words
from evennia_ai.recall.embedding import StaticEmbedder
from evennia_ai.recall.values import Hit, Turn

T = TypeVar("T")

COLLECTION = "evennia_ai"
# The file of the embedded Qdrant, under its folder.
POINTS = Path("collection", COLLECTION, "storage.sqlite")
# In place of an embedder that is ours and a model that nothing asks; it is not called.
UNUSED = {"provider": "openai", "config": {"api_key": "none"}}
# Items stored by one job of the thread, so that a search never waits for a whole night's add.
ADD_BATCH = 25
# More than any assistant will ever have; Mem0 lists the first 20 by default.
EVERYTHING = 1_000_000
# Factor by which more memories are fetched where some may be hidden, again until enough are found.
OVERFETCH = 4
# One call of a store on another machine; a batch is stored in a few seconds.
STORE_TIMEOUT_S = 120.0
# Cosines from which on a memory counts that shares no word with the query, of the packaged embedder
# and of others. For things never mentioned the former finds cosines up to 0.6, most below 0.5.
NEAR, NEAR_OTHERS = 0.5, 0.3
# The vector length of Mem0's default embedder (OpenAI's small model), and its name.
OPENAI_DIMS, OPENAI_EMBEDDER = 1536, "text-embedding-3-small"
# Mem0's embedders that nobody is billed for.
LOCAL_EMBEDDERS = ("ollama", "huggingface", "lmstudio", "fastembed", "langchain")


class Mem0Backend:
    """`MemoryBackend` in Mem0, with an embedded Qdrant on disk by default.

    Deferreds fire on the reactor thread; a failure is a `StoreError` of one sentence, after which
    the next call opens the store anew. Nothing is imported or opened before the first call.

    Args:
        directory: Folder of all files; made when missing.
        config: A Mem0 configuration's ``vector_store`` and ``embedder``, where they replace ours.
        embedder: The package's static embedder by default. Unused if `config` names one.

    Attributes:
            billed_embedder: The model that embeds texts, if a provider bills it; else empty.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        config: Mapping[str, Any] | None = None,
        embedder: StaticEmbedder | None = None,
    ):
        self._directory = Path(directory).absolute()
        self._config = dict(config or {})
        self._embedder = None if self._config.get("embedder") else embedder
        self._worker = Worker("evennia-ai-memory")
        self._folder = None if self._config.get("vector_store") else self._directory / "qdrant"
        own = embedder is None and not self._config.get("embedder")
        self._near = NEAR if own else NEAR_OTHERS
        self.billed_embedder = _billed(self._config.get("embedder"))
        self._memory: Any = None
        self._note, self._closed = "", False

    @classmethod
    def from_settings(cls, directory: Path, setting: Callable[[str], Any]) -> "Mem0Backend":
        """In ``mem0`` under the folder for derived data, as ``EVENNIA_AI_MEM0_CONFIG`` says."""
        config = {k: v for k, v in (setting("MEM0_CONFIG") or {}).items() if k != "infer"}
        return cls(directory / "mem0", config)

    @inlineCallbacks
    def add(self, scope: str, turns: Sequence[Turn]) -> Steps[None]:
        """Store turns, a batch at a time; one with a known id replaces the old one.

        The text of the old one leaves the file with the next deletion.
        """
        turns = list(turns)
        for start in range(0, len(turns), ADD_BATCH):
            yield self._run(self._add, scope, turns[start : start + ADD_BATCH])

    def search(
        self, scope: str, query: str, limit: int = 10, audience: str | None = None
    ) -> "Deferred[list[Hit]]":
        """Fires with the nearest memories, best first, with cosines as scores.

        Only such as share a word with the query or are very near; the audience None is public.
        """
        return self._run(self._search, scope, query, limit, viewer(audience))

    def ids(self, scope: str) -> "Deferred[set[str]]":
        """Fires with the ids of all turns stored for a scope."""
        return self._run(lambda: {row["metadata"]["source_id"] for row in self._rows(scope)})

    def delete(self, scope: str, ids: Iterable[str]) -> "Deferred[int]":
        """Delete turns with every copy of their text; fires with how many there were."""
        return self._run(self._delete, scope, list(ids))

    @inlineCallbacks
    def status(self) -> Steps[dict[str, Any]]:
        """Fires with ``{"ok", "detail", "path"}``."""
        ok, detail = True, ""
        try:
            yield self._run(self._open)
        except StoreError as error:
            ok, detail = False, str(error)
        return {"ok": ok, "detail": detail or self._note or "open", "path": str(self._directory)}

    def close(self) -> "Deferred[None]":
        """Release files and locks; the store cannot be used again."""
        self._closed = True
        return self._worker.submit(self._shut)

    @inlineCallbacks
    def _run(self, function: Callable[..., T], *args: Any) -> Steps[T]:
        done = self._worker.submit(self._tried, function, *args)
        try:
            result: T = yield in_time(done, STORE_TIMEOUT_S)
        except TimeoutError as error:
            raise StoreError(
                f"Semantic memory did not answer in {STORE_TIMEOUT_S:.0f} s: check whether its "
                "server, named in `EVENNIA_AI_MEM0_CONFIG`, is up."
            ) from error
        return result

    # From here on everything runs on the worker's thread.

    def _tried(self, function: Callable[..., T], *args: Any) -> T:
        try:
            return function(*args)
        except StoreError:
            raise
        except Exception as error:
            self._shut()
            raise StoreError(
                f"The memory store at `{self._directory}` failed: {first_line(error)}"
            ) from error

    def _add(self, scope: str, turns: Sequence[Turn]) -> None:
        memory = self._open()
        last = {turn.id: turn for turn in turns}
        rows = {row["metadata"]["source_id"]: row for row in self._rows(scope, list(last))}
        for turn in last.values():
            text, row = storable(turn.text).strip(), rows.get(turn.id)
            if not (turn.id and text):
                raise StoreError("A memory needs an id and a text.")
            meta = {
                "source_id": turn.id,
                "at": str(turn.at or ""),
                "type": turn.kind,
                "audience": normalised(turn.audience),
            }
            if row:
                if row["memory"] == text and row["metadata"].items() >= meta.items():
                    continue  # stored already as it is now
                self._delete_row(row)
            memory.add(text, agent_id=_agent(scope), metadata=meta, infer=False)
        self._drop_history()

    def _search(self, scope: str, query: str, limit: int, shown_to: str) -> list[Hit]:
        memory, filters = self._open(), {"agent_id": _agent(scope)}
        if shown_to == PUBLIC:
            filters["audience"] = PUBLIC
        if not query.strip() or limit <= 0:
            return []
        most = limit
        while True:
            rows = memory.search(query, filters=filters, top_k=most, threshold=0.0)["results"]
            hits = [hit for hit in map(_hit, rows) if visible(hit.audience, shown_to)]
            if len(hits) >= limit or len(rows) < most:
                break
            most *= OVERFETCH
        words = telling_words(query)
        near = (hit for hit in hits if hit.score >= self._near or words & telling_words(hit.text))
        return [hit for hit in near if hit.score > 0][:limit]

    def _rows(self, scope: str, ids: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Mem0's results for some turns by their ids, or for all in a scope."""
        filters: dict[str, Any] = {"agent_id": _agent(scope)}
        if ids is not None:
            filters["source_id"] = {"in": ids}
        found = self._open().get_all(filters=filters, top_k=EVERYTHING, show_expired=True)
        return list(found["results"])

    def _delete(self, scope: str, ids: Sequence[str]) -> int:
        """Delete turns, also what a process that was killed left of them in the embedded store."""
        count = 0
        for start in range(0, len(ids), ADD_BATCH):
            for row in self._rows(scope, ids[start : start + ADD_BATCH]):
                self._delete_row(row)
                count += 1
        self._drop_history()
        self._rewrite()
        return count

    def _delete_row(self, row: Mapping[str, Any]) -> None:
        for file in self._files():
            file.execute("PRAGMA user_version = 1")  # until it is rewritten
        self._open().delete(str(row["id"]))

    def _rewrite(self) -> None:
        """Rewrite the embedded store's file without what was deleted, if anything was.

        SQLite's `secure_delete` would leave what it copied when it split a page.
        """
        for file in self._files():
            if file.execute("PRAGMA user_version").fetchone()[0]:
                file.execute("VACUUM")
                file.execute("PRAGMA user_version = 0")

    def _files(self) -> list[sqlite3.Connection]:
        """The databases of the embedded store; none of a store on another machine."""
        if not self._folder:
            return []
        client = self._open().vector_store.client
        return [each.storage.storage for each in client._client.collections.values()]

    def _drop_history(self) -> None:
        """Empty Mem0's own history, in memory, which keeps each text once more."""
        history = self._open().db.connection
        for table in ("history", "messages"):
            history.execute(f"DELETE FROM {table}")
        history.commit()

    def _open(self) -> Any:
        if self._closed:
            raise StoreError(f"The memory store at `{self._directory}` is closed.")
        if self._memory is not None and self._folder and not (self._folder / POINTS).exists():
            raise self._lost("was deleted")
        if self._memory is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            mem0 = import_mem0(self._directory)
            if owners := self._config.get("embedder"):
                dims = int((owners.get("config") or {}).get("embedding_dims") or OPENAI_DIMS)
            else:
                from evennia_ai.recall.embedding import default_embedder

                self._embedder = self._embedder or default_embedder()
                dims = int(self._embedder.dims)
            client = self._client(dims) if self._folder else None
            try:
                self._memory = mem0.Memory(self._memory_config(dims, client))
            except BaseException:
                if client is not None:
                    client.close()
                raise
            if self._embedder is not None:
                self._memory.embedding_model = Adapter(self._embedder)
        return self._memory

    def _client(self, dims: int) -> Any:
        """The embedded Qdrant. One that is damaged or of another embedder makes room."""
        from qdrant_client import QdrantClient

        try:
            client = QdrantClient(path=str(self._folder))
        except (OSError, RuntimeError, sqlite3.OperationalError):
            raise  # in use by another process, full or unreadable: says nothing of what it holds
        except Exception as error:
            raise self._lost(f"was damaged ({first_line(error)})") from error
        if client.collection_exists(COLLECTION):
            vectors = client.get_collection(COLLECTION).config.params.vectors
            if (size := getattr(vectors, "size", dims)) != dims:
                client.close()
                raise self._lost(f"held vectors of {size} numbers, not {dims}")
        return client

    def _lost(self, why: str) -> StoreError:
        """Clear what is left of the embedded store: the journal has it all. Returns the error."""
        self._shut()
        shutil.rmtree(self._folder or "", ignore_errors=True)
        self._note = (
            f"The memory store at `{self._folder}` {why}; an empty one takes its place. "
            "`aimemory/rebuild` fills it from the journal."
        )
        return StoreError(self._note)

    def _shut(self) -> None:
        """Close what Mem0's own `close` leaves open: Qdrant's client and its lock."""
        memory, self._memory = self._memory, None
        with suppress(Exception):  # it may be broken or have nothing to close, and is done with
            memory.vector_store.client.close()

    def _memory_config(self, dims: int, client: Any) -> Any:
        from mem0.configs.base import MemoryConfig
        from mem0.vector_stores.configs import VectorStoreConfig

        try:
            store = dict(self._config.get("vector_store") or {"config": {"client": client}})
            config = {"collection_name": COLLECTION, **(store.get("config") or {})}
            provider = store.get("provider", "qdrant")
            try:
                sized = {"embedding_model_dims": dims, **config}
                vector_store = VectorStoreConfig(provider=provider, config=sized)
            except ValueError:  # some stores refuse to be told the length of their vectors
                vector_store = VectorStoreConfig(provider=provider, config=config)
            parts = {
                "embedder": UNUSED,
                **self._config,
                "vector_store": vector_store,
                "llm": UNUSED,
                "history_db_path": ":memory:",
            }
            return MemoryConfig(**parts)
        except (ValueError, TypeError) as error:
            raise StoreError(
                f"`EVENNIA_AI_MEM0_CONFIG` is not a valid Mem0 configuration: {first_line(error)}"
            ) from error


class Adapter:
    """An embedder as Mem0 calls it."""

    def __init__(self, embedder: StaticEmbedder):
        self.embedder = embedder

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """The vector of one text."""
        return [float(number) for number in self.embedder.embed([text])[0]]


def import_mem0(directory: Path) -> Any:
    """Import Mem0 with telemetry off and its own files under `directory`, or `StoreError`."""
    os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(directory))
    # Warnings about optional packages (spaCy, fastembed) that this product does without.
    logging.getLogger("mem0").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message="Payload indexes have no effect")
    try:
        import mem0
    except ImportError as error:
        raise StoreError(
            f"The package `mem0ai` cannot be imported ({error}); install it with"
            " `pip install mem0ai` and restart."
        ) from error
    return mem0


def first_line(error: BaseException) -> str:
    """An error in one line: its class and the beginning of its text, addresses masked."""
    text = re.sub(r"://[^@/\s]+@", "://***@", " ".join(str(error).split())[:200])
    if text:
        return f"{type(error).__name__}: {text}"
    return type(error).__name__


def _billed(embedder: object) -> str:
    """LiteLLM's name of a configured embedder; empty if it runs on the owner's own machine."""
    if not isinstance(embedder, Mapping) or embedder.get("provider") in LOCAL_EMBEDDERS:
        return ""
    provider, config = embedder.get("provider", "openai"), embedder.get("config") or {}
    model = config.get("model") or OPENAI_EMBEDDER
    if provider == "openai":
        return model
    return f"{provider}/{model}"


def _agent(scope: str) -> str:
    """A scope as Mem0 takes it: it refuses spaces and trims, so two names could become one."""
    if not scope:
        raise StoreError("A memory needs a `scope`, the id of the assistant it belongs to.")
    return quote(scope, safe="")


def _hit(row: Mapping[str, Any]) -> Hit:
    """A result of Mem0's; one without an audience is for staff only."""
    meta, score = row["metadata"], float(row.get("score") or 0.0)
    audience = normalised(meta.get("audience") or STAFF)
    at, text = str(meta.get("at", "")), str(row["memory"])
    return Hit(meta["source_id"], score, "", text, at, "memory", None, audience)
