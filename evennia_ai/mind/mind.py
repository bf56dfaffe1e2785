"""What computes or waits for the assistants, on daemon threads of the process that makes it.

Neither Django nor Evennia is imported here.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from twisted.internet.defer import CancelledError, Deferred, DeferredList, fail, succeed
from twisted.logger import Logger

from evennia_ai.background import Worker
from evennia_ai.errors import StoreError
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.tokens import counter_for
from evennia_ai.rag_memory.backend import MemoryBackend
from evennia_ai.rag_memory.memory import RecallJobs

if TYPE_CHECKING:
    from evennia_ai.recall import RecallIndex

_log = Logger("evennia_ai")
MEM0_BACKEND = "evennia_ai.rag_memory.mem0.Mem0Backend"


class IndexFile:
    """The recall index in a file, opened at first use, on the thread that owns it.

    It is opened again if its file was deleted. A damaged one is replaced by
    an empty one, which the assistants fill from what they have stored.
    """

    def __init__(self, path: Path):
        self._path, self._inode = path, 0
        self._index: RecallIndex | None = None

    def __call__(self) -> "RecallIndex":
        """The open index."""
        if self._index is not None and self._index.damaged:
            self.close()
            self._delete_file()
        elif self._inode != self._present_inode():
            self.close()
        if self._index is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._index = self._opened()
            self._inode = self._present_inode()
        return self._index

    def close(self) -> None:
        """Release the file."""
        if self._index is not None:
            self._index.close()
        self._index = None

    def _opened(self) -> "RecallIndex":
        # It loads NumPy: not on the reactor thread.
        from evennia_ai.recall.index import RecallIndex, is_damage

        try:
            return RecallIndex(self._path)
        except StoreError as error:
            if not is_damage(error.__cause__):
                raise
        self._delete_file()
        return RecallIndex(self._path)

    def _delete_file(self) -> None:
        for part in ("", "-wal", "-shm"):
            Path(f"{self._path}{part}").unlink(missing_ok=True)

    def _present_inode(self) -> int:
        """What marks the file that is there now; 0 if there is none."""
        try:
            return self._path.stat().st_ino
        except FileNotFoundError:
            return 0


class Mind:
    """All that computes or waits: models, long-term memory, long work on texts.

    `services.mind()` is the game's; `services.use` replaces it or a part of it. This one works on
    threads of this process, `RemoteMind` in a process beside it. Deferreds fire on the reactor
    thread. `work` calls a function that only computes, on the thread `desk`; `down` holds the names
    of the models whose last call for a turn failed; `trouble` says why the mind cannot be reached.
    """

    trouble = ""

    def __init__(
        self, model: ModelClient, memories: MemoryBackend, recall: RecallJobs, desk: Worker
    ):
        self.model, self.memories = model, memories
        self.recall, self.work = recall, desk.submit
        self.down: set[str] = set()

    def warm_up(self, model: str) -> "Deferred[None]":
        """Load what is slow; fires when it is loaded."""

        def load() -> None:
            self.recall.open_index()
            for name in (model, "gpt-4", "gpt-4o"):  # an assistant may use another model
                counter_for(name)

        waiting = [self.model.warm_up(), self.recall.worker.submit(load)]
        return DeferredList(waiting, consumeErrors=True).addCallback(log_failures)

    def close(self) -> "Deferred[None]":
        self.model.cancel_all()
        waiting = [self.memories.close()]
        if isinstance(self.recall.open_index, IndexFile):
            waiting.append(self.recall.worker.submit(self.recall.open_index.close))
        return DeferredList(waiting, consumeErrors=True).addCallback(lambda _: None)

    def leave(self) -> None:
        """Nothing goes on without the Server."""

    end = leave

    def status(self) -> str:
        """Where it works, for people."""
        return "on threads of this process"


def log_failures(results: Iterable[tuple[bool, Any]]) -> None:
    """Log what went wrong while a mind was warmed up."""
    for good, failure in results:
        if not good and not failure.check(CancelledError):
            _log.error("warming up: {why}", why=failure.getErrorMessage())


class UnusableBackend:
    """A `MemoryBackend` whose every call fails with the reason; searches go on without."""

    def __init__(self, reason: str):
        self._reason = reason

    def _refused(self, *args: Any, **options: Any) -> "Deferred[Any]":
        return fail(StoreError(self._reason))

    add = search = ids = delete = _refused

    def status(self) -> "Deferred[dict[str, Any]]":
        return succeed({"ok": False, "detail": self._reason, "path": ""})

    def close(self) -> "Deferred[None]":
        """Nothing to release."""
        return succeed(None)


def memory_backend(settings: Mapping[str, Any]) -> MemoryBackend:
    """A new memory back end of a game; one that says why, where it cannot be used."""
    path = str(settings.get("MEMORY_BACKEND", MEM0_BACKEND))
    try:
        module, _, name = path.rpartition(".")
        kind = getattr(import_module(module), name)
        backend: MemoryBackend = kind.from_settings(Path(settings["DATA_DIR"]), settings.get)
    except Exception as error:  # noqa: BLE001 - a game's own module may raise anything
        unusable = f"which cannot be used: {type(error).__name__}: {error}"
        why = f"`EVENNIA_AI_MEMORY_BACKEND` names `{path}`, {unusable}"
        _log.error("{why}", why=why)
        return cast(MemoryBackend, UnusableBackend(why))
    return backend


def make_mind(settings: Mapping[str, Any]) -> Mind:
    """The mind of a game, on threads of this process.

    Args:
        settings: The package's settings by their names without ``EVENNIA_AI_``, with `DATA_DIR`
            and `LLM_MODEL`.
    """
    directory = Path(settings["DATA_DIR"])
    client = ModelClient(
        api_base=settings.get("LLM_API_BASE"),
        api_key=settings.get("LLM_API_KEY"),
        home_model=settings["LLM_MODEL"],
        profiles=directory / "profiles.json",
    )
    return Mind(
        client,
        memory_backend(settings),
        RecallJobs(Worker("evennia-ai-recall"), IndexFile(directory / "recall.sqlite3")),
        Worker("evennia-ai-work"),
    )
