"""What a tool is, and what it gets to work with."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from evennia_ai.history.audience import PUBLIC
from evennia_ai.protocol import Assistant, Character, GamePort
from evennia_ai.tools.parameters import Parameter, function_schema


@dataclass
class ToolContext:
    """What a tool gets."""

    script: Assistant
    character: Character  # its body
    audience: str = PUBLIC  # whom this turn is for, and what comes of it
    asker: str | None = None  # stable id of the one who asked, None if nobody did
    channel: str = "say"  # how they spoke: say, whisper, page, pose
    spoken: list[str] = field(default_factory=list)  # in this turn so far
    source_message_ids: tuple[str, ...] = ()  # of the messages the turn answers
    retrieved: tuple[str, ...] = ()  # lines of memories that the turn's prompt shows
    askers: tuple[str, ...] = ()  # stable ids of all whom the turn answers
    found: set[str] = field(default_factory=set)  # ids of what this turn's searches have shown
    whole_history: bool = False  # whether the turn looks back at all, not at what was just said

    @property
    def game(self) -> GamePort:
        """The game, to act in."""
        return self.script.game


class Tool(ABC):
    """One thing the assistant can do. Subclasses set the names and implement `run`.

    Attributes:
        name: As the model calls it.
        parameters: What it takes, by argument name.
        lock: Evennia lock string, checked for the assistant and for the one who asked.
        public_act: Whether others than the turn's audience would notice. Refused in private.
        ends_turn: Whether the turn is over after it.
        speaks, to_one, silent, recalls, tells_nothing_new, extracts: Traits the rest of the
            package asks for; `ToolTraits` says what each means.
    """

    name: ClassVar[str] = ""
    parameters: ClassVar[Mapping[str, Parameter]] = {}
    lock: ClassVar[str] = "tool:all()"
    public_act: ClassVar[bool] = False
    ends_turn: ClassVar[bool] = False
    speaks: ClassVar[bool] = False
    to_one: ClassVar[bool] = False
    silent: ClassVar[bool] = False
    recalls: ClassVar[bool] = False
    tells_nothing_new: ClassVar[bool] = False
    extracts: ClassVar[bool] = False

    @abstractmethod
    def run(self, ctx: ToolContext, *args: Any, **arguments: Any) -> Any:
        """Do it; subclasses name their arguments, which are checked before.

        Returns the result for the model, a text or a dict, or a Deferred of one. Raises `ToolError`
        if it cannot be done; its text goes to the model.
        """

    def schema(self) -> dict[str, Any]:
        """The tool in the form of the chat API's `tools`; its text is the class's first line."""
        says = (self.__doc__ or self.name).strip().split("\n", 1)[0]
        return function_schema(self.name, says, self.parameters)
