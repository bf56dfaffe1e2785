"""What all assistants of a game share: the mind, and a thread for the game's own files.

The mind is made at first use and closed when the server stops. `use` puts another one, or other
parts, in its place: for tests and for games that bring their own.
"""

import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import CancelledError, Deferred, DeferredList, succeed
from twisted.logger import Logger

from evennia_ai import conf
from evennia_ai.background import Worker
from evennia_ai.errors import ConfigError, StoreError
from evennia_ai.history.messages import Message
from evennia_ai.history.pairs import ToolTraits
from evennia_ai.history.verification import Evidence, Violation, verify
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.pieces import packed
from evennia_ai.llm_interaction.summary import extract as extracted
from evennia_ai.llm_interaction.summary import shortened
from evennia_ai.llm_interaction.tokens import counter_for, counter_name
from evennia_ai.llm_interaction.values import ModelReply, ModelRequest, ProbeReport
from evennia_ai.protocol import MemoryBackend, Mind, ModelBackend
from evennia_ai.rag_memory.provenance import Grounds, grounds_of_history, grounds_of_turn
from evennia_ai.rag_memory.recall_jobs import RecallJobs
from evennia_ai.rag_memory.recalled import is_recalled
from evennia_ai.rag_memory.unusable_backend import UnusableBackend
from evennia_ai.recall.store import is_damage, set_aside
from evennia_ai.sleep.compaction.retention import Item, drift, missing
from evennia_ai.sleep.compaction.retention_gate import items_to_keep, with_appendix

if TYPE_CHECKING:
    from evennia_ai.recall import RecallIndex

_log = Logger("evennia_ai")


class IndexFile:
    """The recall index in a file, opened at first use, on the thread that owns it.

    It is opened again if its file was deleted. A damaged one is renamed and replaced by an empty
    one, which the assistants fill from what they have stored.

    Args:
        path: The file; its folder is made if need be.
    """

    def __init__(self, path: Path):
        self._path, self._inode = path, 0
        self._lock = threading.Lock()
        self._index: RecallIndex | None = None

    def __call__(self) -> "RecallIndex":
        """The open index."""
        with self._lock:
            if self._index is not None and self._is_useless(self._index):
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

    def _is_useless(self, index: "RecallIndex") -> bool:
        """Whether the open file is damaged or no longer the one under its name."""
        try:
            return index.damaged or self._path.stat().st_ino != self._inode
        except FileNotFoundError:
            return True


class InlineMind:
    """The mind inside the server: daemon threads beside the reactor. See `protocol.Mind`.

    Args:
        model: The model client, as `llm_interaction.client.ModelClient`.
        memories: Long-term memory.
        recall: The recall index.
        desk: The thread for work on texts.
        counters: Gives the token counter of a model.
    """

    def __init__(
        self,
        model: ModelBackend,
        memories: MemoryBackend,
        recall: RecallJobs,
        desk: Worker,
        counters: Callable[[str], Callable[[str], int]] = counter_for,
    ):
        self.model, self.memories = model, memories
        self.recall, self.desk = recall, desk
        self._counters = counters

    def complete(self, request: ModelRequest) -> "Deferred[ModelReply]":
        """Ask a model."""
        return self.model.complete(request)

    def probe(
        self, model: str, api: str = "chat", timeout_s: float = 20.0
    ) -> "Deferred[ProbeReport]":
        """Fires with whether a model can be reached."""
        return self.model.probe(model, api, timeout_s)

    def window(self, model: str) -> int | None:
        """A model's context window in tokens as far as it is known."""
        return self.model.window(model)

    def cancel_calls(self) -> int:
        """Cancel all model calls in flight."""
        return self.model.cancel_all()

    def count_tokens(self, text: str, model: str) -> "Deferred[int]":
        """Fires with the tokens of a text for a model."""
        return self.desk.submit(lambda: self._counters(model)(text))

    def packed_lines(
        self, lines: Sequence[str], room_tokens: int, model: str
    ) -> "Deferred[tuple[tuple[str, ...], ...]]":
        """Fires with the lines in runs that fit a request."""
        return self.desk.submit(lambda: packed(lines, room_tokens, self._counters(model)))

    def finished_summary(
        self,
        reply: ModelReply,
        source_tokens: int,
        cap_tokens: int,
        model: str,
        extract: bool = False,
    ) -> "Deferred[str]":
        """Fires with the summary in a reply, cut to its cap."""
        finish = extracted if extract else shortened
        return self.desk.submit(
            lambda: finish(reply, source_tokens, cap_tokens, self._counters(model))
        )

    def items_to_keep(
        self,
        messages: Sequence[Message],
        earlier: str,
        names: Sequence[str],
        own_name: str,
        traits: ToolTraits,
    ) -> "Deferred[tuple[Item, ...]]":
        """Fires with what a summary must keep."""
        return self.desk.submit(items_to_keep, messages, earlier, names, own_name, traits)

    def missing_items(
        self, items: Sequence[Item], texts: Sequence[str]
    ) -> "Deferred[tuple[Item, ...]]":
        """Fires with the items that stand in none of the texts."""
        return self.desk.submit(missing, items, *texts)

    def with_appendix(
        self,
        items: Sequence[Item],
        text: str,
        lost: tuple[Item, ...],
        elsewhere: Sequence[str],
        cap_tokens: int,
        model: str,
    ) -> "Deferred[tuple[str, tuple[Item, ...], tuple[Item, ...], tuple[Item, ...]]]":
        """Fires as `retention_gate.with_appendix` returns."""
        return self.desk.submit(
            lambda: with_appendix(items, text, lost, elsewhere, cap_tokens, self._counters(model))
        )

    def drift(self, older: Sequence[str], newer: str) -> "Deferred[float]":
        """Fires with the share of older texts' items that a newer one lacks."""
        return self.desk.submit(drift, older, newer)

    def is_recalled(
        self, text: str, memories: Sequence[str], heard: Sequence[str] | None
    ) -> "Deferred[bool]":
        """Fires with whether a text only repeats memories."""
        return self.desk.submit(is_recalled, text, memories, heard)

    def grounds_of_turn(
        self,
        note: str,
        messages: Sequence[Message],
        answered: Collection[str],
        retrieved: Sequence[str],
        traits: ToolTraits,
    ) -> "Deferred[Grounds]":
        """Fires with what a note rests on, of the messages a turn answers."""
        return self.desk.submit(grounds_of_turn, note, messages, answered, retrieved, traits)

    def grounds_of_history(
        self,
        note: str,
        messages: Sequence[Message],
        audience: str,
        retrieved: Sequence[str],
        traits: ToolTraits,
    ) -> "Deferred[Grounds]":
        """Fires with what a note rests on, of all that an audience may see."""
        return self.desk.submit(grounds_of_history, note, messages, audience, retrieved, traits)

    def verify(self, evidence: Evidence) -> "Deferred[tuple[Violation, ...]]":
        """Fires with the violations of a history's invariant."""
        return self.desk.submit(verify, evidence)

    def warm_up(self, model: str) -> "Deferred[None]":
        """Load the model library, the index and the token vocabularies."""

        def load() -> None:
            self.recall.open_index()
            counter_name(model)
            for name in (model, "gpt-4", "gpt-4o"):  # an assistant may use another model
                self._counters(name)

        waiting = [self.model.warm_up(), self.recall.worker.submit(load)]
        return DeferredList(waiting, consumeErrors=True).addCallback(_log_failures)

    def close(self) -> "Deferred[None]":
        """Cancel calls and release files."""
        self.cancel_calls()
        waiting = [self.memories.close()]
        if isinstance(self.recall.open_index, IndexFile):
            waiting.append(self.recall.worker.submit(self.recall.open_index.close))
        return DeferredList(waiting, consumeErrors=True).addCallback(lambda _: None)


def _log_failures(results: Any) -> None:
    for good, failure in results:
        if not good and not failure.check(CancelledError):
            _log.error("warming up: {why}", why=failure.getErrorMessage())


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
        )
        _made["mind"] = InlineMind(
            client,
            memory_backend(),
            RecallJobs(Worker("evennia-ai-recall"), IndexFile(conf.data_dir() / "recall.sqlite3")),
            Worker("evennia-ai-work"),
        )
    made: Mind = _made["mind"]
    return made


def use(**parts: Any) -> None:
    """Put parts in place: the whole `mind`, `ready`, or what `InlineMind` takes, by its names."""
    for name, part in parts.items():
        if name in ("mind", "ready"):
            _made[name] = part
        else:
            setattr(mind(), name, part)


def reset() -> None:
    """Forget everything, without closing it."""
    _made.clear()


def ready() -> bool:
    """Whether everything slow is loaded and assistants are repaired: ticks may think."""
    return bool(_made.get("ready"))


def on_disk(function: Callable[..., Any], *args: Any) -> "Deferred[Any]":
    """Read or write a file of the game on a daemon thread, in order; fires with the result."""
    if "disk" not in _made:
        _made["disk"] = Worker("evennia-ai-disk")
    disk: Worker = _made["disk"]
    return disk.submit(function, *args)


def warm_up() -> "Deferred[None]":
    """Load what is slow on background threads; fires when it is there."""
    return succeed(None) if ready() else mind().warm_up(conf.model_name())


def close() -> "Deferred[None]":
    """Cancel calls and release files; fires when that is done."""
    return _made.pop("mind").close() if "mind" in _made else succeed(None)
