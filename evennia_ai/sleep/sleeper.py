"""What the night and compactions use of an assistant."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from evennia_ai.background import TurnLock
from evennia_ai.history.stored import Stored
from evennia_ai.life import Calls, Surroundings, Thinker, Tools
from evennia_ai.options import AssistantConfig
from evennia_ai.rag_memory.entities import Profile
from evennia_ai.rag_memory.entity_store import Character
from evennia_ai.rag_memory.memory import LifeMemory, Outbox, Remembers
from evennia_ai.sleep.compaction.plan import STALE


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


@dataclass
class SummaryWork:
    """Compactions and other work on summaries: what runs beside the ticks, and what waits."""

    running: tuple[Deferred[Any], str] | None = None  # and what fired it
    # Called when somebody speaks to a sleeper that waits for a compaction.
    on_call: Callable[[], Any] | None = None
    is_requested: bool = False  # whether the assistant asked for a compaction
    # How many automatic compactions failed in a row, and when the next may be tried.
    waits: tuple[int, float] = (0, 0.0)
    # The same of stale summaries that are made again.
    remake_waits: tuple[int, float] = (0, 0.0)
    # For which configuration and limit it was checked whether there is room to talk.
    room_for: tuple[AssistantConfig, int] | None = None

    @property
    def is_compacting(self) -> bool:
        """Whether a compaction runs."""
        return self.running is not None and self.running[1] != STALE

    def run(self, function: Callable[[], Any], trigger: str) -> None:
        """Run something beside the ticks, where nothing runs; `stop` cancels it."""
        running: Deferred[Any] = Deferred()
        running.addCallback(lambda _: function())

        def done(result: object) -> object:
            if self.running is not None and self.running[0] is running:
                self.running = None
            return result

        running.addBoth(done)
        self.running = running, trigger
        running.callback(None)
        if self.running is None:
            running.cancel()  # it was stopped while it began

    def stop(self) -> bool:
        """Cancel what runs; returns whether there was something."""
        running, self.running = self.running, None
        if running is not None:
            running[0].addErrback(_trap_cancelled)
            running[0].cancel()
        return running is not None


def _trap_cancelled(failure: Failure) -> Failure | None:
    return None if isinstance(failure.value, CancelledError) else failure


class Live(Protocol):
    """What is kept in memory of it."""

    lock: TurnLock
    summaries: SummaryWork

    def is_called(self) -> bool:
        """Whether somebody speaks to it."""


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
    def runtime(self) -> Live:
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
