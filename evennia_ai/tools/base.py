"""What a tool is, and what it gets to work with."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from evennia_ai.errors import ToolError
from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.frames import own_words
from evennia_ai.language.words import plain
from evennia_ai.protocol import Assistant, Character, GamePort
from evennia_ai.tools.parameters import Parameter, function_schema

# What stands in a stored call instead of a text that the game's moderation refused.
NOT_SAID = "[not said: the game's moderation refused it]"
# Anybody says `Aye, that may be so.` twice; a longer line said again is a model in a loop.
REPEATABLE_CHARS = 40
# Acts in one turn that others notice, besides words: enough to fetch and hand over two things.
MOST_ACTS = 4


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
    retrieved: tuple[str, ...] = ()  # lines of memories that the turn has shown
    found: dict[str, float] = field(default_factory=dict)  # scores of what its searches have shown
    opened: list[str] = field(default_factory=list)  # ids of the memories it has read in full
    acts: int = 0  # others noticed in this turn, besides words
    whole_history: bool = False  # whether the turn looks back at all, not at what was just said

    @property
    def game(self) -> GamePort:
        """The game, to act in."""
        return self.script.game

    def names_here(self) -> list[str]:
        """The names of the people present."""
        return [str(person["key"]) for person in self.game.present()]

    def check_speech(self, text: str) -> None:
        """Raise `ToolError` if a line may not be said.

        Because this turn has spoken enough, because the line repeats one of the last to the same
        person (a model that repeats itself would go on with it), or because the one who asked has
        left, or because it goes on with the prompt instead of saying something.
        """
        self.check_listener()
        if own_words(text, self.names_here()) != text:
            raise ToolError("say your own words only, without ids and without lines of others")
        said = (self.audience, self.asker, plain(text))
        if len(text) > REPEATABLE_CHARS and said in self.script.runtime.said:
            raise ToolError("you have just said that; say something else or call noop")

    def check_listener(self) -> None:
        """Raise `ToolError` if this turn has spoken enough, or who asked has left."""
        most = self.script.config.max_says
        if len(self.spoken) >= most:
            raise ToolError(f"you have spoken {most} times in this turn; call noop")
        here = (person["id"] for person in self.game.present())
        if self.asker and self.channel != "page" and self.asker not in here:
            raise ToolError("the one who asked has left; call noop")

    def check_act(self) -> None:
        """Count one act others notice; `ToolError` once there were enough in this turn."""
        self.acts += 1
        if self.acts > MOST_ACTS:
            raise ToolError(f"you have done {MOST_ACTS} things in this turn; call noop")

    def check_note(self) -> None:
        """Count one note; `ToolError` once this asker has caused enough of them in an hour."""
        runtime = self.script.runtime
        if self.asker and not runtime.may_note(self.asker, self.script.now()):
            raise ToolError("you have noted enough of what this person said for now; call noop")

    def note_speech(self, text: str) -> None:
        """Remember a line that was spoken."""
        self.spoken.append(text)
        self.script.runtime.said.append((self.audience, self.asker, plain(text)))


class Tool(ABC):
    """One thing the assistant can do. Subclasses set the names and implement `run`.

    Attributes:
        name: As the model calls it.
        parameters: What it takes, by argument name.
        lock: Evennia lock string, checked for the assistant and for the one who asked.
        public_act: Whether others than the turn's audience would notice. Refused in private.
        obeyed: Whether it is done only for those whom the assistant obeys.
        ends_turn: Whether the turn is over after it.
        speaks, to_one, silent, recalls, tells_nothing_new, extracts: Traits the rest of the
            package asks for; `ToolTraits` says what each means.
    """

    name: ClassVar[str] = ""
    parameters: ClassVar[Mapping[str, Parameter]] = {}
    lock: ClassVar[str] = "tool:all()"
    public_act: ClassVar[bool] = False
    obeyed: ClassVar[bool] = False
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
