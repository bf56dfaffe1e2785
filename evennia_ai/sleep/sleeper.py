"""What the night and compactions use of an assistant."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from twisted.internet.defer import Deferred

from evennia_ai.background import TurnLock
from evennia_ai.history.stored import Stored
from evennia_ai.life import Calls, Surroundings, Thinker, Tools
from evennia_ai.options import AssistantConfig
from evennia_ai.rag_memory.entities import Profile
from evennia_ai.rag_memory.entity_store import Character
from evennia_ai.rag_memory.memory import LifeMemory, Outbox, Remembers


@dataclass(frozen=True, slots=True)
class SleepReport(Stored):
    """When the last sleep cycle was, and what its steps did, by their names."""

    at: float = 0.0  # seconds since the epoch
    steps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Nightly(Outbox, Protocol):
    """What is stored of nights and compactions, as `turns.assistant.StateHandler` says."""

    mode: str
    hold: bool
    signals: dict[str, Any]
    extracted: list[str]
    stale: list[str]
    remade: list[float]
    nights: dict[str, Any]
    last_sleep: SleepReport


class Behind(Protocol):
    """What runs, and what waits; `turns.runtime.Runtime` says what each is."""

    lock: TurnLock
    behind: tuple[Deferred[Any], str] | None
    on_call: Callable[[], Any] | None
    compaction_requested: bool
    compaction_waits: tuple[int, float]
    stale_waits: tuple[int, float]
    room_for: tuple[AssistantConfig, int] | None

    def is_called(self) -> bool:
        """Whether somebody speaks to it."""

    def run_behind(self, function: Callable[[], Any], trigger: str) -> None:
        """Run something beside the ticks."""

    def stop_behind(self) -> bool:
        """Cancel it."""


class NoteTools(Tools, Protocol):
    """The tools, as an extraction uses them."""

    ending: frozenset[str]

    def note_schemas(self) -> list[dict[str, Any]]:
        """Those that it offers."""

    def read_note(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """The checked arguments of a call."""


class Place(Surroundings, Protocol):
    """The game, where somebody is named in it."""

    def identify(self, name: str) -> Profile | None:
        """Who or what a name means here."""


class OwnCalls(Calls, Protocol):
    """The calls that an assistant makes for itself."""

    def own_wait_s(self) -> float:
        """Seconds until the next one may be made."""


class Sleeper(Remembers, Thinker, Protocol):
    """An assistant, as sleep and compactions know it."""

    key: str
    enabled: bool
    ready: bool
    extracts_memories: bool
    compact_preserve_token_share: float
    breathe: Callable[[], Deferred[None]]
    pose: Callable[[str], None]
    trouble: Callable[[str], None]
    alert: Callable[[str], None]

    @property
    def obj(self) -> Character:
        """Its body."""

    @property
    def memory(self) -> LifeMemory:
        """What it remembers."""

    @property
    def state(self) -> Nightly:
        """What is stored of it."""

    @property
    def runtime(self) -> Behind:
        """What it holds in memory."""

    @property
    def tools(self) -> NoteTools:
        """What it can do."""

    @property
    def spend(self) -> OwnCalls:
        """The way to its model."""

    @property
    def game(self) -> Place:
        """What is around it."""

    def usage(self, history_tokens: int | None = None) -> float:
        """The share of its room that is taken, or would be."""

    def between_turns(self, function: Callable[[], Any]) -> Deferred[Any]:
        """Run something short while no turn runs."""

    def survived(self, what: str, function: Callable[[], Any], otherwise: Any) -> Any:
        """What a function returns; an error is logged."""

    def at_commit_step(self, name: str) -> None:
        """Called before each step of a commit."""
