"""What asks a model: an assistant as services know it, by what they use of it.

Each folder says in a protocol what it needs besides: `rag_memory.seen.Remembering`,
`sleep.sleeper.Sleeper`, `turns.surroundings.Game`. `turns.tick.Living` is all of them.
Everything is called on the reactor thread. What returns a Deferred does its work elsewhere.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from twisted.internet.defer import Deferred

from evennia_ai.history.messages import Message, Speaker, ToolTraits
from evennia_ai.llm_interaction.budget import Limits, PromptLog
from evennia_ai.llm_interaction.values import ModelReply, ModelRequest, TurnRequest
from evennia_ai.options import AssistantConfig

# What the game tells the body alone while it speaks, at once or at the end of its command.
Told = tuple[str, ...] | Deferred[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Named:
    """Something or somebody in the game, as the argument of a call names it."""

    id: str  # stable id
    names: tuple[str, ...]  # its name and aliases
    kind: str = "thing"  # or ``person``, ``exit``, ``place``, ``assistant``


class Body(Protocol):
    """The assistant's body."""

    key: str


class Surroundings(Protocol):
    """The game around the body, as a prompt tells it."""

    def asked_by(self, asker: str | None) -> "Surroundings":
        """The same in a turn for somebody, by stable id."""

    def place(self) -> dict[str, Any]:
        """The room, with its ``id`` and its ``key``."""

    def things(self) -> dict[str, str]:
        """What lies there, by stable id."""

    def carried(self) -> tuple[str, ...]:
        """What the body carries."""

    def has_things(self) -> bool:
        """Whether something can be taken or given."""

    def present(self) -> tuple[dict[str, Any], ...]:
        """Who is here."""

    def obeys(self) -> bool:
        """Whether it obeys the one who asks."""

    def time(self, now: float) -> str:
        """The game's time in words."""


class Offered(Protocol):
    """A tool; `turns.tools.base.Tool` says what each means."""

    name: ClassVar[str]
    serves: ClassVar[str]
    silent: ClassVar[bool]
    speaks: ClassVar[bool]
    to_one: ClassVar[bool]

    def schema(self) -> dict[str, Any]:
        """It in the form of the chat API."""


class Tools(Protocol):
    """The tools of a prompt."""

    traits: ToolTraits

    @property
    def tools(self) -> Iterable[str]:
        """The names of all."""

    def offered(self) -> Sequence[Offered]:
        """Those that are not off."""


class Pinned(Protocol):
    """A note of the ledger."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def kind(self) -> str:
        """Its kind."""

    @property
    def at(self) -> str:
        """When it was written."""

    @property
    def by(self) -> Speaker:
        """Who wrote it."""

    @property
    def text(self) -> str:
        """What it says."""


class Known(Protocol):
    """What is known of somebody or something."""

    @property
    def name(self) -> str:
        """Its name."""

    def facts(self, audience: str, limit: int) -> list[str]:
        """What an audience may know, in sentences."""


class View(Protocol):
    """The read gate, as a prompt looks through it."""

    def messages(self) -> list[Message]:
        """The live messages."""

    def newest(self) -> Iterator[Message]:
        """The same, newest first."""

    def by_ids(self, ids: Iterable[str]) -> list[Message]:
        """Messages by their ids."""

    def as_if_never_compacted(
        self, live: Sequence[Message], room_tokens: int
    ) -> tuple[list[Message], int]:
        """Archived messages together with live ones, and how many had no room."""

    def has_summaries(self) -> bool:
        """Whether summaries stand for what could be seen."""

    def pinned(self) -> Sequence[Pinned]:
        """The approved notes."""

    def profile(self, entity_id: str) -> Known | None:
        """What is known of one, by stable id."""


class Names(Protocol):
    """Everybody and everything it knows."""

    def everybody(self) -> list[str]:
        """All names."""


class Calls(Protocol):
    """The way to a model."""

    def complete(self, request: ModelRequest) -> Deferred[ModelReply]:
        """Ask a model within the caps."""


class Desk(Protocol):
    """What computes."""

    def work(self, function: Callable[..., Any], /, *given: Any) -> Deferred[Any]:
        """Call a function that only computes, on a thread."""


class Thinker(Protocol):
    """An assistant that asks a model."""

    model_name: str
    count: Callable[[str], int]
    now: Callable[[], float]
    audit: Callable[..., None]
    spent: Callable[..., None]

    @property
    def obj(self) -> Body:
        """Its body."""

    @property
    def game(self) -> Surroundings:
        """What is around it."""

    @property
    def tools(self) -> Tools:
        """What it can do."""

    @property
    def entities(self) -> Names:
        """Whom it knows."""

    @property
    def spend(self) -> Calls:
        """The way to its model."""

    @property
    def mind(self) -> Desk:
        """What computes for it."""

    @property
    def config(self) -> AssistantConfig:
        """Its options now."""

    @property
    def prompts(self) -> PromptLog:
        """Its newest requests."""

    def limits(self, model: str = "") -> Limits:
        """What holds for requests to a model, its own by default."""

    def usage(self) -> float:
        """The share of its room that is taken."""

    def over_spend(self) -> bool:
        """Whether a cap lets no call be made for itself."""

    def seen(self, audience: str, trusted: bool = False) -> View:
        """What a viewer may see of its life."""

    def on_mind(self, turn: TurnRequest, present: Mapping[str, str]) -> list[str]:
        """What its features add to a prompt, a line each."""
