"""What an assistant stores of itself: mode, signals, the queue of heard lines."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import is_not
from typing import Any, Generic, TypeVar

from evennia_ai.errors import ConfigError
from evennia_ai.history.messages import Message
from evennia_ai.history.records import as_dict
from evennia_ai.history.stored import Stored, as_plain, each_readable
from evennia_ai.protocol import Assistant
from evennia_ai.turns.errands import KEY as ERRANDS
from evennia_ai.turns.errands import Errands
from evennia_ai.turns.initiative import Used
from evennia_ai.turns.options import (
    OPTIONS,
    AssistantConfig,
    Configuration,
    Layer,
    Problem,
    check_option,
    configured,
)
from evennia_ai.turns.schema import AWAKE, SCRIPT, queued_events
from evennia_ai.turns.spend_book import OWN_LIMITS, lifts
from evennia_ai.turns.tools.waiting import KEY as WAITING
from evennia_ai.turns.tools.waiting import WaitingCalls

T = TypeVar("T")
_UNSET = object()
# Attributes that are loaded together with the options, in one query.
RUNTIME_KEYS = (*(key for _, key in SCRIPT), "conversation_history", "conversation_tail")


class Kept(Generic[T]):
    """An Attribute of the script as a value, read as `schema.SCRIPT` says, or as its class does.

    It is `empty` where nothing is stored that can be read, and written only where that changes it.
    """

    def __init__(self, key: str, empty: T):
        self._key, self._empty = key, empty

    def __get__(self, state: "StateHandler", owner: object) -> T:
        value, kind = state.store.get(self._key), type(self._empty)
        read = kind.if_readable if issubclass(kind, Stored) else SCRIPT[None, self._key]
        return (value is not None and read(value)) or self._empty  # type: ignore[return-value]

    def __set__(self, state: "StateHandler", value: T) -> None:
        if value != self.__get__(state, None):
            state.store.set(self._key, as_plain(value))


class StateHandler:
    """Reads and writes the script's runtime and configuration Attributes."""

    mode: Kept[str] = Kept("operating_mode", AWAKE)  # ``awake`` or ``sleep``
    phase = Kept[str | None]("sleep_phase", None)  # in sleep, of `schema.PHASES`; None awake
    dreamt = Kept("dreamt", False)  # whether the memory steps ran in this sleep
    # Whether automatic compaction waits for a manual one, after a rollback.
    hold = Kept("compaction_hold", False)
    signals = Kept[dict[str, Any]]("context_signals", {})  # context signals that are set
    followers = Kept[list[int]]("followers", [])  # keys of accounts that are told of compactions
    last_sleep = Kept[dict[str, Any]]("last_sleep", {})  # when the last cycle was and its report
    extracted = Kept[list[str]]("last_extraction", [])  # ids, since the last compaction
    # Summaries that are still to be made again, and whether facts were extracted from their lines.
    owed = Kept[dict[str, bool]]("summaries_owed", {})
    # Ids that rollbacks withdrew and that must still leave index and semantic memory.
    outbox = Kept[list[str]]("compaction_outbox", [])
    routine = Kept("routine_done", "")  # the entry of its routine that it did last
    routine_alert = Kept("routine_alert", "")  # the one that staff were told it cannot follow
    waiting = Kept(WAITING, WaitingCalls())  # calls of tools that wait for approval
    errands = Kept(ERRANDS, Errands())  # words that people left for others
    unasked = Kept("initiative_used", Used())  # when it spoke unasked of late

    def __init__(self, assistant: Assistant):
        self._assistant, self.store = assistant, assistant.store
        self._reported: set[tuple[str, str]] = set()
        self._stamps: tuple[object, ...] | None = None
        self._shared: tuple[Layer, ...] = ()
        self._config = AssistantConfig()
        self.problems: tuple[Problem, ...] = ()  # of the configuration, as it was last read
        # The source of each option that does not have its default.
        self.sources: Mapping[str, str] = {}
        self._pinned: AssistantConfig | None = None
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
        limits, layers = self._assistant.spend.limits, self._assistant.shared_options()
        stamps, before = (*self.store.stamps(OPTIONS), limits), self._stamps
        if before is None or layers != self._shared or any(map(is_not, before, stamps)):
            self._stamps, self._shared = stamps, layers
            result = self._read(layers, limits)
            self._config, self.problems, self.sources = (
                result.config,
                result.problems,
                result.sources,
            )
            for problem in self.problems:
                if (problem.name, problem.value) not in self._reported:
                    self._reported.add((problem.name, problem.value))
                    self._assistant.trouble(str(problem))
        return self._config

    def _read(self, layers: tuple[Layer, ...], limits: Mapping[str, float]) -> Configuration:
        values = {name: self.store.get(name, default=_UNSET) for name in OPTIONS}
        own = {name: value for name, value in values.items() if value is not _UNSET}
        result = configured(*layers, Layer("set here", own, self._assistant.allowed))
        caps = result.config.spend_caps
        bounds = {**configured(*layers).config.spend_caps, **limits}
        kept = {name: cap for name, cap in bounds.items() if lifts(cap, caps.get(name))}
        config = replace(result.config, spend_caps={**caps, **kept})
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
        queue = queued_events(self.store.get_own("event_queue"))
        return each_readable(queue, Message.from_dict, [])

    def save_queue(self, events: Sequence[Message]) -> None:
        """Save the events not yet in the history; nothing is written if there never were any."""
        if events or self.store.stamp("event_queue"):
            self.store.set("event_queue", [event.to_dict() for event in events])

    def configure(self, values: Mapping[str, object], unset: Collection[str] = ()) -> None:
        """Store options, as `check_option` returns them; those `unset` take their default."""
        with self.store.transaction():
            for name, value in values.items():
                self.store.set(name, value)
            for name in unset:
                self.store.delete(name)
            if "spend_caps" in values or "spend_caps" in unset:
                caps = as_dict(values.get("spend_caps"))
                self._assistant.spend.keep_limits({name: caps.get(name) for name in OWN_LIMITS})

    def configure_as(self, other: "StateHandler") -> None:
        """Take over the options that another assistant has set."""
        names = [name for name in OPTIONS if other.store.stamp(name) is not None]
        caps = other.config().spend_caps
        self.configure({name: other.store.get(name) for name in names})
        self._assistant.spend.keep_limits({name: caps.get(name) for name in OWN_LIMITS})

    def follow(self, account_pk: int) -> bool:
        """Follow, or stop following; returns whether the account follows now."""
        before = self.followers
        after = [pk for pk in before if pk != account_pk]
        follows = after == before
        self.followers = [*before, account_pk] if follows else after
        return follows
