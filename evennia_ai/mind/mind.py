"""What computes or waits for the assistants, on daemon threads of the process that makes it.

Neither Django nor Evennia is imported here.
"""

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
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
# The functions that `work` may call in the mind's process: they compute, and only compute, on plain
# values. A function that is not listed runs on a thread of the Server.
WORK = frozenset(
    f"evennia_ai.{name}"
    for name in (
        "llm_interaction.budget.packed",
        "llm_interaction.facts.covered",
        "llm_interaction.facts.source_facts",
        "llm_interaction.summary.finished",
        "llm_interaction.tokens.count_tokens",
        "privacy.caches.clear_caches",
        "recall.embedding.dimensions",
    )
)


@dataclass(frozen=True)
class MindSettings:
    """What a mind must know of the game."""

    data_dir: str  # folder of derived data
    model: str  # the game's model
    # The package's settings that are set, by their names without ``EVENNIA_AI_``. They hold keys.
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class MindStatus:
    """How a mind is."""

    mode: str  # ``inline`` or ``process``
    pid: int  # the process it runs in; 0 if there is none
    memory_mb: int  # resident memory of that process when it last answered
    in_flight: int  # requests that wait for an answer
    restarts: int = 0  # how often the process was started again after it died
    trouble: str = ""  # what is wrong; empty if nothing is

    def __str__(self) -> str:
        where = "in the Server" if self.mode == "inline" else f"process {self.pid or 'not running'}"
        parts = [where, f"{self.memory_mb} MB" if self.pid else ""]
        parts.append(f"{self.in_flight} requests in flight")
        if self.restarts:
            parts.append(f"restarted {self.restarts} times")
        return ", ".join(filter(None, (*parts, self.trouble)))


def memory_mb() -> int:
    """Resident memory of this process in MB; 0 where the system does not show it."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def name_of(function: Callable[..., Any]) -> str | None:
    """The name of a function that may be called in the process; None for others."""
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
    return name if name in WORK else None


def find(name: str) -> Callable[..., Any]:
    """A listed function; raises `LookupError` for any other name."""
    if name not in WORK:
        raise LookupError(f"`{name}` is not a function of the mind")
    module, _, attribute = name.rpartition(".")
    function: Callable[..., Any] = getattr(import_module(module), attribute)
    return function


class IndexFile:
    """The recall index in a file, opened at first use, on the thread that owns it.

    It is opened again if its file was deleted. A damaged one is replaced by
    an empty one, which the assistants fill from what they have stored.
    """

    def __init__(self, path: Path):
        self._path, self._inode = path, 0
        self._lock = threading.Lock()
        self._index: RecallIndex | None = None

    def __call__(self) -> "RecallIndex":
        """The open index."""
        with self._lock:
            if self._index is not None and (self._index.damaged or self._is_gone()):
                self._index.close()
                if self._index.damaged:
                    self._delete_file()
                self._index = None
            if self._index is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._index = self._opened()
                self._inode = self._path.stat().st_ino
            return self._index

    def close(self) -> None:
        """Release the file."""
        with self._lock:
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

    def _is_gone(self) -> bool:
        """Whether the open file is no longer the one under its name."""
        try:
            return self._path.stat().st_ino != self._inode
        except FileNotFoundError:
            return True


class Mind:
    """All that computes or waits: models, long-term memory, long work on texts.

    `services.mind()` is the game's; `services.use` replaces it or a part of it. This one works on
    threads of this process, `RemoteMind` in a process beside it. Deferreds fire on the reactor
    thread. `work` calls a function that only computes, on the thread `desk`; `down` holds the names
    of the models whose last call for a turn failed.
    """

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

    def status(self) -> MindStatus:
        return MindStatus("inline", os.getpid(), memory_mb(), getattr(self.model, "in_flight", 0))


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


def memory_backend(path: str, directory: Path, setting: Callable[..., Any]) -> MemoryBackend:
    """A new memory back end by its dotted path; one that says why, where it cannot be used."""
    try:
        module, _, name = path.rpartition(".")
        backend: MemoryBackend = getattr(import_module(module), name).from_settings(
            directory, setting
        )
    except Exception as error:  # noqa: BLE001 - a game's own module may raise anything
        unusable = f"which cannot be used: {type(error).__name__}: {error}"
        why = f"`EVENNIA_AI_MEMORY_BACKEND` names `{path}`, {unusable}"
        _log.error("{why}", why=why)
        return cast(MemoryBackend, UnusableBackend(why))
    return backend


def make_mind(settings: MindSettings) -> Mind:
    """The mind of a game, on threads of this process."""
    directory, setting = Path(settings.data_dir), settings.values.get
    client = ModelClient(
        api_base=setting("LLM_API_BASE"),
        api_key=setting("LLM_API_KEY"),
        home_model=settings.model,
        profiles=directory / "profiles.json",
    )
    return Mind(
        client,
        memory_backend(setting("MEMORY_BACKEND", MEM0_BACKEND), directory, setting),
        RecallJobs(Worker("evennia-ai-recall"), IndexFile(directory / "recall.sqlite3")),
        Worker("evennia-ai-work"),
    )
