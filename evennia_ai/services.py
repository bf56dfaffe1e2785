"""What all assistants of a game share: the mind, and a thread for the game's own files.

The mind is made at first use and closed when the server stops. `use` puts another one, or other
parts, in its place: for tests and for games that bring their own.
"""

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from twisted.internet.defer import CancelledError, Deferred, DeferredList, fail, succeed
from twisted.logger import Logger

from evennia_ai import conf
from evennia_ai.assistant.figures import Figures
from evennia_ai.assistant.moderation import Moderator
from evennia_ai.background import Worker
from evennia_ai.errors import ConfigError, StoreError
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.tokens import counter_for, counter_name
from evennia_ai.protocol import MemoryBackend, Mind, ModelBackend
from evennia_ai.rag_memory.recall_jobs import RecallJobs
from evennia_ai.recall.store import is_damage, set_aside

if TYPE_CHECKING:
    from evennia_ai.recall import RecallIndex

P = ParamSpec("P")
T = TypeVar("T")
_log = Logger("evennia_ai")


class IndexFile:
    """The recall index in a file, opened at first use, on the thread that owns it.

    It is opened again if its file was deleted. A damaged one is renamed and replaced by an empty
    one, which the assistants fill from what they have stored.
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
                    set_aside(self._path)
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
        from evennia_ai.recall import RecallIndex  # it loads NumPy: not on the reactor thread

        try:
            return RecallIndex(self._path)
        except StoreError as error:
            if not is_damage(error.__cause__):
                raise
        set_aside(self._path)
        return RecallIndex(self._path)

    def _is_gone(self) -> bool:
        """Whether the open file is no longer the one under its name."""
        try:
            return self._path.stat().st_ino != self._inode
        except FileNotFoundError:
            return True


class InlineMind:
    """`protocol.Mind` inside the server: daemon threads; `desk` is the one for work on texts."""

    def __init__(
        self, model: ModelBackend, memories: MemoryBackend, recall: RecallJobs, desk: Worker
    ):
        self.model, self.memories = model, memories
        self.recall, self.work = recall, desk.submit
        self.down: set[str] = set()

    def warm_up(self, model: str) -> "Deferred[None]":
        """Load the model library, the index and the token vocabularies."""

        def load() -> None:
            self.recall.open_index()
            counter_name(model)
            for name in (model, "gpt-4", "gpt-4o"):  # an assistant may use another model
                counter_for(name)

        def log_failures(results: Iterable[tuple[bool, Any]]) -> None:
            for good, failure in results:
                if not good and not failure.check(CancelledError):
                    _log.error("warming up: {why}", why=failure.getErrorMessage())

        waiting = [self.model.warm_up(), self.recall.worker.submit(load)]
        return DeferredList(waiting, consumeErrors=True).addCallback(log_failures)

    def close(self) -> "Deferred[None]":
        """Cancel calls and release files."""
        self.model.cancel_all()
        waiting = [self.memories.close()]
        if isinstance(self.recall.open_index, IndexFile):
            waiting.append(self.recall.worker.submit(self.recall.open_index.close))
        return DeferredList(waiting, consumeErrors=True).addCallback(lambda _: None)


class UnusableBackend:
    """A `protocol.MemoryBackend` whose every call fails with the reason; searches go on without."""

    def __init__(self, reason: str = "There is no memory back end."):
        self._reason = reason

    @classmethod
    def from_settings(cls, *args: Any) -> "UnusableBackend":
        """One without a known reason."""
        return cls()

    def _refused(self, *args: Any, **options: Any) -> "Deferred[Any]":
        return fail(StoreError(self._reason))

    add = add_extracted = extraction_prompt = search = _refused
    ids = sources = source_of = delete = _refused

    def status(self) -> "Deferred[dict[str, Any]]":
        """Fires with the reason."""
        return succeed({"ok": False, "detail": self._reason, "count": 0, "path": ""})

    def close(self) -> "Deferred[None]":
        """Nothing to release."""
        return succeed(None)


def memory_backend(worker: Worker | None = None) -> MemoryBackend:
    """The memory back end of the settings, or one that says why it cannot be used."""
    try:
        return conf.memory_backend(worker)
    except ConfigError as error:
        _log.error("{why}", why=str(error))
        return UnusableBackend(str(error))


_made: dict[str, Any] = {}


def mind() -> Mind:
    """The game's mind."""
    if "mind" not in _made:
        client = ModelClient(
            api_base=conf.setting("LLM_API_BASE"),
            api_key=conf.setting("LLM_API_KEY"),
            home_model=conf.model_name(),
            local_models=conf.local_models(),
        )
        _made["mind"] = InlineMind(
            client,
            memory_backend(),
            RecallJobs(Worker("evennia-ai-recall"), IndexFile(conf.data_dir() / "recall.sqlite3")),
            Worker("evennia-ai-work"),
        )
    made: Mind = _made["mind"]
    return made


def moderator() -> Moderator | None:
    """What asks the function of ``EVENNIA_AI_MODERATE``; None if the game has none."""
    path = conf.setting("MODERATE")
    if path is None:
        return None
    key = f"moderator {path}"
    if key not in _made:
        _made[key] = Moderator(conf.moderate_function)
    made: Moderator = _made[key]
    return made


def use(**parts: object) -> None:
    """Put parts in place: the whole `mind`, `ready`, or what `InlineMind` takes, by its names."""
    for name, part in parts.items():
        if name in ("mind", "ready"):
            _made[name] = part
        else:
            setattr(mind(), name, part)


def reset() -> None:
    """Forget everything, without closing it."""
    _made.clear()


def kept(name: str, make: Callable[[], T]) -> T:
    """What assistants share under a name, made at first use."""
    if name not in _made:
        _made[name] = make()
    found: T = _made[name]
    return found


def ready() -> bool:
    """Whether everything slow is loaded and assistants are repaired: ticks may think."""
    return bool(_made.get("ready"))


def on_disk(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "Deferred[T]":
    """Read or write a file of the game on a daemon thread, in order; fires with the result."""
    if "disk" not in _made:
        _made["disk"] = Worker("evennia-ai-disk")
    disk: Worker = _made["disk"]
    return disk.submit(function, *args, **kwargs)


def figures() -> Figures:
    """The history of figures that the staff's charts show."""

    def make() -> Figures:
        from twisted.internet import reactor

        later = reactor.callLater  # type: ignore[attr-defined]
        return Figures(conf.data_dir() / "figures.sqlite3", on_disk, later)

    return kept("figures", make)


def warm_up() -> "Deferred[None]":
    """Load what is slow on background threads; fires when it is there."""
    if (judge := moderator()) is not None:
        judge.warm_up()
    return succeed(None) if ready() else mind().warm_up(conf.model_name())


def close() -> "Deferred[None]":
    """Cancel calls and release files; fires when that is done."""
    return _made.pop("mind").close() if "mind" in _made else succeed(None)
