"""What an assistant stores of itself: mode, signals, the queue of heard lines.

An odd value in one of these Attributes counts as nothing stored, and is put aside
(`history.stored`) before something else is written in its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from operator import is_not
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from evennia_ai.errors import ConfigError
from evennia_ai.history.messages import Message
from evennia_ai.history.stored import (
    Reader,
    Unreadable,
    as_dict,
    as_plain,
    each_readable,
    reader_of,
)
from evennia_ai.options import (
    OPTIONS,
    OWN_LIMITS,
    AssistantConfig,
    Configuration,
    Layer,
    check_option,
    configured,
)
from evennia_ai.rag_memory.seen import KEY as QUARANTINE
from evennia_ai.rag_memory.seen import Quarantined
from evennia_ai.sleep.sleeper import SleepReport
from evennia_ai.turns.initiative import Used
from evennia_ai.turns.spend_book import lifts
from evennia_ai.turns.tools.waiting import KEY as WAITING
from evennia_ai.turns.tools.waiting import WaitingCalls

if TYPE_CHECKING:
    from evennia_ai.turns.assistant import Assistant

T = TypeVar("T")
_UNSET = object()
# The shape of what assistants store. A release that changes it counts up, and brings what older
# ones stored up to date.
VERSION = 1
VERSION_KEY = "schema_version"
AWAKE, SLEEP = "awake", "sleep"
# Where the queue of heard lines is kept: its first page, and the category of the others.
QUEUE, MORE_QUEUE = "event_queue", "ai_queue"
# Lines on a page of the queue: one more line writes its page, not the whole queue.
QUEUE_PAGE = 16
Place = tuple[str | None, str]


def _queue_place(number: int) -> tuple[str, str | None]:
    return (f"{number:06d}", MORE_QUEUE) if number else (QUEUE, None)


# What the Attributes of the script hold that this package writes and others may change.
_KINDS: Mapping[str, Any] = {
    "enabled": bool,
    "dreamt": bool,
    "compaction_hold": bool,
    "operating_mode": Literal["awake", "sleep"],
    "sleep_phase": Literal["sleeping", "dreaming", "waking"],
    "summaries_stale": list[str],
    "summaries_remade": list[float],
    "conversation_begun": str,
    "context_signals": dict[str, Any],
    "routine_done": str,
    "routine_alert": str,
    "compaction_outbox": list[str],
    "nights_done": dict[str, Any],
    QUEUE: list[dict[str, Any]],
    WAITING: WaitingCalls,
    "initiative_used": Used,
    QUARANTINE: Quarantined,
    "greeted": dict[str, Any],
    "last_extraction": list[str],
    "last_compaction": dict[str, Any],
    "last_sleep": SleepReport,
}
SCRIPT: Mapping[Place, Reader] = {(None, key): reader_of(kind) for key, kind in _KINDS.items()}
# What is read as a whole, and put aside where it cannot be.
BODY: Mapping[Place, Reader] = {(None, "journal"): reader_of(dict[str, Any])}
# Attributes that are loaded together with the options, in one query.
RUNTIME_KEYS = (*_KINDS, "conversation_history", "conversation_tail")


def is_sound(read: Reader, value: object) -> bool:
    """Whether a stored value can be used; None counts as nothing stored."""
    try:
        if value is not None:
            read(value)
    except Unreadable:
        return False
    return True


class Kept(Generic[T]):
    """An Attribute of the script as a value.

    It is `empty` where nothing is stored that can be read, and written only where that changes it.
    """

    def __init__(self, key: str, empty: T):
        self._key, self._empty = key, empty

    def __get__(self, state: StateHandler, owner: object) -> T:
        value = state.store.get(self._key)
        try:
            return self._empty if value is None else SCRIPT[None, self._key](value)
        except Unreadable:
            return self._empty

    def __set__(self, state: StateHandler, value: T) -> None:
        if value != self.__get__(state, None):
            state.store.set(self._key, as_plain(value))


class StateHandler:
    """Reads and writes the script's runtime and configuration Attributes."""

    mode: Kept[str] = Kept("operating_mode", AWAKE)  # ``awake`` or ``sleep``
    phase = Kept[str | None]("sleep_phase", None)  # in sleep; None awake
    dreamt = Kept("dreamt", False)  # whether the memory steps ran in this sleep
    # Whether automatic compaction waits for a manual one, after a rollback.
    hold = Kept("compaction_hold", False)
    signals = Kept[dict[str, Any]]("context_signals", {})  # context signals that are set
    last_sleep = Kept("last_sleep", SleepReport())
    extracted = Kept[list[str]]("last_extraction", [])  # ids, since the last compaction
    # Ids of summaries that were emptied, as something was forgotten, to be made again.
    stale = Kept[list[str]]("summaries_stale", [])
    # When such were made again in the last day, seconds since the epoch.
    remade = Kept[list[float]]("summaries_remade", [])
    # Ids that rollbacks withdrew and that must still leave index and semantic memory.
    outbox = Kept[list[str]]("compaction_outbox", [])
    # How far the nights have come, by step: a page of the journal, or seconds since the epoch.
    nights = Kept[dict[str, Any]]("nights_done", {})
    routine = Kept("routine_done", "")  # the entry of its routine that it did last
    routine_alert = Kept("routine_alert", "")  # the one that staff were told it cannot follow
    waiting = Kept(WAITING, WaitingCalls())  # calls of tools that wait for approval
    unasked = Kept("initiative_used", Used())  # when it spoke unasked of late

    def __init__(self, assistant: Assistant):
        self._assistant, self.store = assistant, assistant.store
        self._reported: set[tuple[str, str]] = set()
        self._stamps: tuple[object, ...] | None = None
        self._shared: tuple[Layer, ...] = ()
        self.configuration = Configuration()  # as it was last read
        self._pinned: AssistantConfig | None = None
        self._queue: dict[int, list[Message]] | None = None  # the saved queue, by pages
        self.store.preload((*OPTIONS, *RUNTIME_KEYS))

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Read the configuration only once during synchronous work."""
        before = self._pinned
        self._pinned = self.config()
        try:
            yield
        finally:
            self._pinned = before

    def config(self) -> AssistantConfig:
        """The configuration now; read again when an Attribute was changed."""
        if self._pinned is not None:
            return self._pinned
        assistant = self._assistant
        limits = assistant.shared_spend.limits_of(assistant.scope)
        layers = assistant.shared_options()
        stamps, before = (*self.store.stamps(OPTIONS), limits), self._stamps
        if before is None or layers != self._shared or any(map(is_not, before, stamps)):
            self._stamps, self._shared = stamps, layers
            self.configuration = self._read(layers, limits)
            for problem in self.configuration.problems:
                if (problem.name, problem.value) not in self._reported:
                    self._reported.add((problem.name, problem.value))
                    self._assistant.trouble(str(problem))
        return self.configuration.config

    def _read(self, layers: tuple[Layer, ...], limits: Mapping[str, float]) -> Configuration:
        values = {name: self.store.get(name, default=_UNSET) for name in OPTIONS}
        own = {name: value for name, value in values.items() if value is not _UNSET}
        result = configured(*layers, Layer("set here", own, self._assistant.allowed))
        caps = result.config.spend_caps
        bounds = {**configured(*layers).config.spend_caps, **limits}
        kept = {name: cap for name, cap in bounds.items() if lifts(cap, caps.get(name))}
        config = result.config.model_copy(update={"spend_caps": {**caps, **kept}})
        return replace(result, config=config)

    def own(self, name: str) -> Any:
        """An option as it is stored for this assistant, in a form that can be used; else None."""
        try:
            return check_option(name, self.store.get(name))
        except ConfigError:
            return None

    def set_mode(self, mode: str, phase: str | None = None) -> None:
        """Change mode and phase together."""
        with self.store.transaction():
            self.mode, self.phase = mode, phase
            if mode == AWAKE:
                self.dreamt = False

    def load_queue(self) -> list[Message]:
        """Events that were heard but not yet in the history when they were last saved.

        One put in by hand is no event: it could be an order in the name of somebody else.
        """
        return [event for page in self._load_queue().values() for event in page]

    def _load_queue(self) -> dict[int, list[Message]]:
        """The stored pages of the queue by number, the first under `QUEUE`."""
        numbers = (int(key) for key in self.store.keys(MORE_QUEUE) if key.isdigit())
        pages = {}
        for number in (0, *sorted(numbers)):
            items = self.store.get_own(*_queue_place(number))
            pages[number] = each_readable(items, Message.from_dict, [])
        return pages

    def save_queue(self, events: Sequence[Message]) -> None:
        """Save the events not yet in the history: the pages on which something changed."""
        before = self._queue if self._queue is not None else self._load_queue()
        waiting, pages = {event.id: event for event in events}, dict[int, list[Message]]()
        for number, page in before.items():
            pages[number] = [waiting.pop(e.id) for e in page if e.id in waiting]
        last = max((number for number, page in pages.items() if page), default=0)
        for event in waiting.values():
            if len(pages.setdefault(last, [])) >= QUEUE_PAGE:
                last += 1
            pages.setdefault(last, []).append(event)
        self._queue = None  # what is stored, if a transaction around this is rolled back
        with self.store.transaction():
            for number, page in pages.items():
                key, category = _queue_place(number)
                if category and not page:
                    self.store.delete(key, category)
                elif page != before.get(number, []):
                    self.store.set(key, as_plain(page), category)
        left = {number: page for number, page in pages.items() if page or not number}
        self.store.on_commit(partial(setattr, self, "_queue", left))

    def configure(self, values: Mapping[str, object], unset: Collection[str] = ()) -> None:
        """Store options, as `check_option` returns them; those `unset` take their default."""
        with self.store.transaction():
            for name, value in values.items():
                self.store.set(name, value)
            for name in unset:
                self.store.delete(name)
            if "spend_caps" in values or "spend_caps" in unset:
                self._keep_limits(as_dict(values.get("spend_caps")))

    def configure_as(self, other: StateHandler) -> None:
        """Take over the options that another assistant has set."""
        names = [name for name in OPTIONS if other.store.stamp(name) is not None]
        self.configure({name: other.store.get(name) for name in names})
        self._keep_limits(other.config().spend_caps)

    def _keep_limits(self, caps: Mapping[str, float | None]) -> None:
        """Keep caps where Evennia's commands do not reach them."""
        limits = {name: caps.get(name) for name in OWN_LIMITS}
        self._assistant.shared_spend.keep_limits(self._assistant.scope, limits)
