"""Mem0 itself: opened, queried and repaired, by plain blocking calls from one thread."""

import json
import os
import pickle
import shutil
import sqlite3
import traceback
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evennia_ai.errors import StoreError
from evennia_ai.history.audience import PUBLIC, STAFF, normalised, viewer, visible
from evennia_ai.language.words import storable
from evennia_ai.rag_memory.mem0_backend import files, setup
from evennia_ai.recall.embedding import Embedder

# More than any assistant will ever have; Mem0 lists the first 20 by default.
EVERYTHING = 1_000_000
# Sources looked up by one filter: long enough to save calls, short enough for any store.
LOOKUP_BATCH = 100
# Factor by which more memories are fetched where some may be hidden, again until enough are found.
OVERFETCH = 4
# What a damaged file makes Qdrant's reader raise.
_DAMAGE = (
    sqlite3.DatabaseError,
    pickle.UnpicklingError,
    json.JSONDecodeError,
    UnicodeDecodeError,
    EOFError,
    KeyError,
    AttributeError,
    IndexError,
    ImportError,
    TypeError,
    ValueError,
)


class Engine:
    """Mem0 with its files, for one thread only, which also imports it.

    Arguments and public methods are those of `Mem0Backend`.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        config: Mapping[str, Any] | None = None,
        embedder: Embedder | None = None,
    ):
        self._directory = Path(directory).absolute()
        self.path = str(self._directory)
        self._overrides = dict(config or {})
        self._embedder = embedder
        self._memory: Any = None
        self._closed = False
        self._notes: list[str] = []
        self._files: dict[Path, int] = {}  # of the open store, with their inodes

    def add(self, scope: str, items: Sequence[Mapping[str, Any]]) -> list[str]:
        """Store items."""
        checked = [_checked(item) for item in items]
        with self._opened("add to"):
            known = self._known(scope, [source for source, _, _ in checked])
            for source_id, text, metadata in checked:
                if source_id not in known:
                    known[source_id] = self._store(scope, text, metadata)
            return [known[source_id] for source_id, _, _ in checked]

    def extraction_prompt(self, scope: str, item: Mapping[str, Any]) -> list[dict[str, str]] | None:
        """What Mem0 asks a model."""
        source_id, text, metadata = _checked(item)
        with self._opened("read"):
            if self._known(scope, [source_id]):
                return None
            llm = setup.CapturingLlm()
            try:
                self._infer(llm, scope, text, metadata)
            except Exception:
                if llm.asked is None:
                    raise
            return llm.asked

    def add_extracted(self, scope: str, item: Mapping[str, Any], answer: str) -> str:
        """Store what a model extracted."""
        source_id, text, metadata = _checked(item)
        with self._opened("add to"):
            known = self._known(scope, [source_id])
            if source_id in known:
                return known[source_id]
            made = self._infer(setup.CapturingLlm(answer=answer), scope, text, metadata)
            return str(made[0]["id"]) if made else self._store(scope, text, metadata)

    def search(
        self, scope: str, query: str, limit: int, audience: str | None
    ) -> list[dict[str, Any]]:
        """Find memories, fetching more until there are enough that the audience may see."""
        shown_to, filters = viewer(audience), {"agent_id": _agent(scope)}
        if shown_to == PUBLIC:
            filters["audience"] = PUBLIC
        wanted = limit if shown_to in (PUBLIC, STAFF) else limit * OVERFETCH
        if not query.strip() or limit <= 0:
            return []
        with self._opened("search") as memory:
            while True:
                options = {"filters": filters, "top_k": wanted, "threshold": 0.0}
                found = memory.search(query, **options)["results"]
                # A score of nothing is a text with no known word: near to nothing, not everything.
                shown = [
                    item
                    for item in map(_as_memory, found)
                    if item["score"] > 0
                    and visible(item["metadata"].get("audience", STAFF), shown_to)
                ]
                if len(shown) >= limit or len(found) < wanted:
                    return shown[:limit]
                wanted *= OVERFETCH

    def ids(self, scope: str) -> set[str]:
        """The ids of all memories of a scope."""
        with self._opened("list"):
            return {str(found["id"]) for found in self._listed(scope)}

    def sources(self, scope: str) -> dict[str, str]:
        """The memory id of each source of a scope."""
        with self._opened("list"):
            return _by_source(self._listed(scope))

    def source_of(self, scope: str, memory_id: str) -> str | None:
        """The source of one memory of a scope; None if there is no such memory."""
        with self._opened("read"):
            found = self._held(memory_id, scope)
            return next(iter(_by_source([found])), None) if found else None

    def delete(self, scope: str, memory_ids: Iterable[str]) -> int:
        """Delete memories, those made from the same sources, and every copy of their text."""
        with self._opened("delete from"):
            found = [one for each in memory_ids if (one := self._held(each, scope))]
            siblings = self._from_sources(scope, sorted(_by_source(found)))
            held = list(dict.fromkeys(str(one["id"]) for one in (*found, *siblings)))
            if held:
                self._erase(scope, held)
            if files.drop_damaged(self._directory):
                self._notes.append("Damaged copies were deleted with what was to be forgotten.")
            return len(held)

    def status(self) -> dict[str, Any]:
        """Whether it works; raises `StoreError` where the store cannot be opened."""
        with self._opened("count") as memory:
            count = _count(memory)
        detail = " ".join(self._notes) or f"{count} memories."
        return {"ok": True, "detail": detail, "count": count, "path": self.path}

    def close(self) -> None:
        """Release files and locks for good."""
        self._closed = True
        memory, self._memory = self._memory, None
        if memory is not None:
            _close(memory)

    def _store(self, scope: str, text: str, metadata: dict[str, Any]) -> str:
        added = self._memory.add(text, agent_id=_agent(scope), metadata=metadata, infer=False)
        return str(added["results"][0]["id"])

    def _infer(
        self, model: "setup.CapturingLlm", scope: str, text: str, metadata: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Have Mem0 extract memories of a text with `model`; returns the memories made.

        Its prompt shows what it stored near the text under the same run; hence a run for each
        audience.
        """
        run, theirs = quote(metadata["audience"], safe=""), self._memory.llm
        self._memory.llm = model
        try:
            with setup.quiet():
                added = self._memory.add(
                    text, agent_id=_agent(scope), run_id=run, metadata=metadata, infer=True
                )
        finally:
            self._memory.llm = theirs
        return list(added["results"])

    def _listed(self, scope: str, **filters: Any) -> list[dict[str, Any]]:
        wanted = {"agent_id": _agent(scope), **filters}
        found = self._memory.get_all(filters=wanted, top_k=EVERYTHING, show_expired=True)
        return list(found["results"])

    def _from_sources(self, scope: str, sources: Sequence[str]) -> Iterator[dict[str, Any]]:
        for start in range(0, len(sources), LOOKUP_BATCH):
            batch = list(sources[start : start + LOOKUP_BATCH])
            yield from self._listed(scope, source_id={"in": batch})

    def _known(self, scope: str, sources: Sequence[str]) -> dict[str, str]:
        return _by_source(self._from_sources(scope, sources))

    def _held(self, memory_id: str, scope: str) -> Mapping[str, Any] | None:
        try:
            uuid.UUID(memory_id)  # what Mem0 makes; some stores fail on anything else
        except ValueError:
            return None
        found: Mapping[str, Any] | None = self._memory.get(memory_id)
        return found if found and found.get("agent_id") == _agent(scope) else None

    def _erase(self, scope: str, memory_ids: Sequence[str]) -> None:
        """Delete memories so that a crash at any point leaves nothing that a retry misses.

        History rows go first, and again at the end, as Mem0 writes one for each deletion.
        """
        history = Path(self._memory.config.history_db_path)
        agent = _agent(scope).replace("%", "%25").replace("&", "%26").replace("=", "%3D")
        session = f"agent_id={agent}"  # escaped as Mem0 does
        files.forget_rows(history, memory_ids, session)
        for memory_id in memory_ids:
            self._memory.delete(memory_id)
        files.forget_rows(history, memory_ids, session)
        files.scrub(_databases(self._memory))

    @contextmanager
    def _opened(self, doing: str) -> Iterator[Any]:
        """The open memory; any failure becomes a `StoreError` of one sentence."""
        if self._closed:
            raise StoreError(f"The memory store at `{self.path}` is closed.")
        try:
            yield self._open()
        except StoreError:
            raise
        except Exception as error:
            # Their frames may hold a half-opened Qdrant, and with it its lock.
            cause: BaseException | None = error
            while cause is not None:
                traceback.clear_frames(cause.__traceback__)
                cause = cause.__cause__ or cause.__context__
            raise StoreError(
                f"Could not {doing} the memory store at `{self.path}`: {setup.first_line(error)}"
            ) from error

    def _open(self) -> Any:
        if self._memory is not None and files.inodes(self._files) != self._files:
            memory, self._memory = self._memory, None
            _close(memory)
            self._notes.append("The store's files were deleted; an empty store took their place.")
            raise StoreError(
                f"Files of the memory store at `{self.path}` were deleted while it was open; an "
                "empty store takes their place. Type `aimemory/rebuild <assistant>` to fill it."
            )
        if self._memory is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            mem0 = setup.import_mem0(self._directory)
            dims = self._dims()
            config = setup.memory_config(self._directory, self._overrides, dims)
            history = Path(config.history_db_path)
            if not files.is_sound_database(history):
                moved = files.move_aside(history)
                self._notes.append(f"`{history.name}` was damaged and is now `{moved.name}`.")

            def build() -> Any:
                memory = mem0.Memory(config)
                if isinstance(memory.embedding_model, setup.EmbedderAdapter):
                    memory.embedding_model.embedder = self._embedder
                return memory

            self._memory = self._sized(build, dims)
            files.forget_leftovers(history)
            self._files = files.inodes([history, *_databases(self._memory)])
        return self._memory

    def _dims(self) -> int:
        """Length of the vectors: our embedder's, or what the owner's configuration says."""
        if owners := self._overrides.get("embedder"):
            return int((owners.get("config") or {}).get("embedding_dims") or setup.MEM0_DIMS)
        if self._embedder is None:
            from evennia_ai.recall.embedding import default_embedder

            self._embedder = default_embedder()
        return int(self._embedder.dims)

    def _sized(self, build: Callable[[], Any], dims: int) -> Any:
        """A built memory whose vectors have the embedder's length."""
        if self._overrides.get("vector_store"):
            return build()
        folder = self._directory / "qdrant"
        if files.is_locked(folder):
            raise StoreError(
                f"The memory store at `{folder}` is in use by another process; only one game at"
                " a time can open it. Stop the other one, or set `EVENNIA_AI_MEM0_CONFIG` to a"
                " server."
            )
        try:
            memory = build()
        except sqlite3.OperationalError:
            raise  # busy, full or unreadable: says nothing about what is in the file
        except _DAMAGE:
            memory = self._start_over(build, folder, "was damaged")
        described = memory.vector_store.client.get_collection(memory.collection_name)
        found = getattr(described.config.params.vectors, "size", None)  # not every store tells
        if found in (dims, None):
            return memory
        _close(memory)
        return self._start_over(build, folder, f"holds vectors of {found} numbers, not {dims}")

    def _start_over(self, build: Callable[[], Any], folder: Path, why: str) -> Any:
        """Move aside an unusable store and build an empty one."""
        moved = files.move_aside(folder)
        try:
            memory = build()
        except Exception:
            # The folder was not the cause; put it back as it was.
            shutil.rmtree(folder, ignore_errors=True)
            os.rename(moved, folder)
            raise
        self._notes.append(
            f"The store {why}; it is now `{moved.name}`, and an empty one took its place, which"
            " the next night's sleep fills from the journal."
        )
        return memory


def _agent(scope: str) -> str:
    """A scope as Mem0 takes it: it refuses spaces and trims, so two names could become one."""
    if not scope:
        raise StoreError("A memory needs a `scope`, the id of the assistant it belongs to.")
    return quote(scope, safe="")


def _checked(item: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
    source_id, text = (
        str(item.get("source_id") or ""),
        storable(str(item.get("text") or "")).strip(),
    )
    if not source_id or not text:
        raise StoreError(f"A memory needs a `source_id` and a `text`; got `{source_id}`.")
    extra = dict(item.get("metadata") or {})
    extra["audience"] = normalised(extra.get("audience"))
    return source_id, text, {"type": "memory", **extra, "source_id": source_id}


def _by_source(found: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    pairs = ((item.get("metadata") or {}, item["id"]) for item in found)
    return {str(data["source_id"]): str(id_) for data, id_ in pairs if data.get("source_id")}


def _as_memory(found: Mapping[str, Any]) -> dict[str, Any]:
    metadata, score = dict(found.get("metadata") or {}), float(found.get("score") or 0.0)
    return {"id": str(found["id"]), "text": found["memory"], "metadata": metadata, "score": score}


def _databases(memory: Any) -> list[Path]:
    """The SQLite files of a Qdrant that runs in this process; empty for every other store."""
    if not getattr(memory.vector_store, "is_local", False):
        return []
    return sorted(Path(memory.config.vector_store.config.path).rglob("*.sqlite"))


def _count(memory: Any) -> int:
    client: Any = getattr(memory.vector_store, "client", None)
    if hasattr(client, "count"):
        return int(client.count(memory.collection_name).count)
    listed = memory.vector_store.list(filters=None, top_k=EVERYTHING)
    rows = listed[0] if listed and isinstance(listed[0], list) else listed
    return len(rows or ())


def _close(memory: Any) -> None:
    """Close what Mem0's own `close` leaves open: Qdrant's client and its lock."""
    client: Any = getattr(memory.vector_store, "client", None)
    if hasattr(client, "close"):
        client.close()
    memory.close()
