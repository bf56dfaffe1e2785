"""What a tool is, which arguments it takes, and what it gets to work with."""

import itertools
import json
import re
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from pydantic import Field, TypeAdapter, ValidationError

from evennia_ai.errors import BoundError, ToolError
from evennia_ai.history.audience import PUBLIC, is_private
from evennia_ai.history.messages import SPEECH, ToolTraits
from evennia_ai.history.stored import as_dict
from evennia_ai.kinds import NO_FLAG
from evennia_ai.language.words import message_in, parted, storable
from evennia_ai.life import Named, Told
from evennia_ai.llm_interaction.reply import clean_reply, fault
from evennia_ai.llm_interaction.tool_calls import loaded
from evennia_ai.rag_memory.entity_store import Character
from evennia_ai.rag_memory.seen import Seen
from evennia_ai.recall.values import Hit
from evennia_ai.turns.assistant import Assistant
from evennia_ai.turns.runtime import HOUR_S, IDLE_S, Proposal
from evennia_ai.turns.surroundings import Game
from evennia_ai.turns.waiting import WaitingCall

LINES = "lines"
# So many of the newest lines are looked at for who has spoken in between.
NEWER_LINES = 20
# What stands in a stored call instead of a text that the game's moderation refused.
NOT_SAID = "[not said: the game's moderation refused it]"
# Acts in one turn that others notice, besides words: enough to fetch and hand over two things.
MOST_ACTS = 4
# Notes that what one person says may cause in an hour; people tell less that is worth keeping.
NOTES_PER_HOUR = 20
# Failures of a tool in a row, after which it is withdrawn for the turn.
WITHDRAW_AFTER = 3
# Lines and poses in one turn.
MOST_LINES = 2
_NOBODY_SEEN = "whoever asks"
ENOUGH = f"{BoundError.SAYS}: "


@dataclass(frozen=True)
class Parameter(ABC):
    """One argument of a tool."""

    says: str = ""  # what it is, for the model; empty where its name says it
    required: bool = True
    in_talk: bool = True  # whether prompts of talk name it; those of an extraction always do

    @property
    @abstractmethod
    def shape(self) -> Mapping[str, Any]:
        """Its JSON Schema, without what it says."""

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        return {**self.shape, **({"description": self.says} if self.says else {})}

    @abstractmethod
    def value(self, raw: object) -> Any:
        """The argument in the form the tool takes; raises `ValueError` if it is not of its kind."""


@dataclass(frozen=True)
class Text(Parameter):
    """A text of at most `limit` characters."""

    limit: int = 4000

    shape = MappingProxyType({"type": "string"})

    def value(self, raw: object) -> str:
        """The text, stripped."""
        if not isinstance(raw, str) or (self.required and not raw.strip()):
            raise ValueError("a text")
        if len(raw) > self.limit:
            raise ValueError(f"a text of at most {self.limit:,} characters")
        return storable(raw.strip())


@dataclass(frozen=True)
class Name(Text):
    """What a thing, a person or an exit is called; the tool gets the stable id of that object.

    `place` is where it may be: ``here`` (in the room or carried), ``lying`` in the room or in a
    container, ``carried``, ``lying or carried``, among the ``people`` here, or an ``exit``.
    """

    limit: int = 120
    place: str = "here"


@dataclass(frozen=True)
class Scale(Parameter):
    """A whole number between two bounds."""

    low: int = 1
    high: int = 10

    @property
    def shape(self) -> Mapping[str, Any]:
        """A whole number in its bounds."""
        return {"type": "integer", "minimum": self.low, "maximum": self.high}

    def value(self, raw: object) -> int:
        """The number; texts that hold one are taken."""
        number = TypeAdapter(Annotated[int, Field(ge=self.low, le=self.high), NO_FLAG])
        try:
            return number.validate_python(raw)
        except ValidationError as error:
            raise ValueError(f"a whole number from {self.low:,} to {self.high:,}") from error


@dataclass(frozen=True)
class Numbers(Parameter):
    """Some whole numbers; a text that holds them is taken, too."""

    shape = MappingProxyType({"type": "array", "items": {"type": "integer"}})

    def value(self, raw: object) -> tuple[int, ...]:
        """The numbers, whatever stands between them."""
        return tuple(int(number) for number in re.findall(r"\d{1,9}", str(raw)))


_CITED = Numbers("Numbers of the lines it rests on.", required=False)


def function_schema(name: str, says: str, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """A tool in the form of the chat API's `tools`."""
    required = [key for key, parameter in parameters.items() if parameter.required]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {key: parameter.schema() for key, parameter in parameters.items()},
    }
    if required:
        schema["required"] = required
    return {
        "type": "function",
        "function": {"name": name, "description": says, "parameters": schema},
    }


def read_arguments(raw: object, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """The checked arguments of a tool call, from JSON text or a dict as the model sent them.

    Raises:
        ToolError: If they are no JSON object, or one is missing or of the wrong kind. The text
            tells the model what to do. Surplus ones are ignored.
    """
    if isinstance(raw, str):
        try:
            raw = json.loads(raw.strip() or "{}")
        except (ValueError, RecursionError) as error:
            raise ToolError(f"the arguments are no valid JSON ({str(error)[:80]})") from error
    if raw is None:
        raw = {}
    if not isinstance(raw, dict):
        raise ToolError("the arguments must be one JSON object")
    values = {}
    for key, parameter in parameters.items():
        if raw.get(key) is None:
            if parameter.required:
                raise ToolError(f"missing argument `{key}`: {parameter.says}".rstrip(": "))
            continue
        try:
            values[key] = parameter.value(raw[key])
        except ValueError as error:
            raise ToolError(f"argument `{key}` must be {error}") from error
    return values


@dataclass
class ToolContext:
    """What a tool gets."""

    script: Assistant
    tools: "ToolRegistry"
    audience: str = PUBLIC  # whom this turn is for, and what comes of it
    asker: str | None = None  # stable id of the one who asked, None if nobody did
    channel: str = "say"  # how they spoke: say, whisper, page, pose
    spoken: list[str] = field(default_factory=list)  # in this turn so far
    source_message_ids: tuple[str, ...] = ()  # of the messages the turn answers
    retrieved: tuple[Hit, ...] = ()  # memories that the turn has shown
    found: dict[str, float] = field(default_factory=dict)  # scores of what its searches have shown
    opened: list[str] = field(default_factory=list)  # ids of the memories it has read in full
    failures: Counter[str] = field(default_factory=Counter)  # of each tool, in a row
    refusals: list[str] = field(default_factory=list)  # why calls were refused in this turn
    acts: int = 0  # others noticed in this turn, besides words, and tries at them
    has_acted: bool = False  # whether one of them was done
    confirmed: Proposal | None = None  # the act that the one who asks has said yes to
    proposal: Proposal | None = None  # the act that they are asked about at the end of the turn
    approved: WaitingCall | None = None  # what staff have approved, if this is it
    unasked: bool = False  # whether nobody asked for this turn
    deadline: float = float("inf")  # of the turn, seconds since the epoch

    def left_s(self) -> float:
        """Seconds left of the turn, at least one."""
        return max(1.0, self.deadline - self.script.now())

    @property
    def withdrawn(self) -> tuple[str, ...]:
        """The tools that failed too often to be offered again in this turn."""
        return tuple(name for name, times in self.failures.items() if times >= WITHDRAW_AFTER)

    @property
    def character(self) -> Character:
        """Its body."""
        return self.script.obj

    @property
    def seen(self) -> Seen:
        """What the turn's audience may know of the assistant's life."""
        return self.script.seen(self.audience, trusted=True)

    @property
    def game(self) -> Game:
        """The game, to act in for the one who asked."""
        return self.script.game.asked_by(self.asker)

    def fault(self, text: str) -> str:
        """Why a reply of this turn is no answer (`reply.fault`); empty for one."""
        said = self.script.runtime.said
        own = (
            line for of, asker, line in reversed(said) if (of, asker) == (self.audience, self.asker)
        )
        answered = self.seen.by_ids(self.source_message_ids)
        others = [str(person["key"]) for person in self.game.present()]
        heard = [*(line.content for line in answered), *self.refusals]
        return fault(text, next(own, ""), heard, others, self.character.key)

    def check_speech(self, text: str) -> None:
        """Raise `ToolError` if a line may not be said.

        Because this turn has spoken enough, because the one who asked has left, or because it is
        no answer.
        """
        self.check_listener()
        if why := self.fault(clean_reply(text, [self.character.key])):
            raise ToolError(why)

    def check_listener(self) -> None:
        """Raise `ToolError` if this turn has spoken enough, or who asked has left."""
        if len(self.spoken) >= MOST_LINES:
            raise BoundError(f"{ENOUGH}you have spoken {MOST_LINES} times in this turn; call noop")
        if self.asker and self.channel != "page" and self.asker not in self.game.here():
            raise ToolError("the one who asked has left; call noop")
        if self.unasked and (self.script.runtime.is_called() or not self.game.company(IDLE_S)):
            raise ToolError("nobody here waits for a word of yours now; call noop")
        if self.asker in self.script.runtime.forgotten:
            raise ToolError("the one who asked wants to be forgotten; call noop")

    def own_lines(self, posed: bool = True) -> list[str]:
        """What the one who asks said in this turn, oldest first, also what they `posed`.

        A pose may hold names that the game writes into it.
        """
        channels = {*SPEECH}
        if not posed:
            channels.discard("pose")
        answered = self.seen.by_ids(self.source_message_ids)
        return [m.content for m in answered if m.speaker_id == self.asker and m.channel in channels]

    def typed(self, text: str, limit: int, to: str = "") -> str:
        """What the one who asks typed in this turn around some words in a row.

        It is their sentence, or for somebody what `message_in` gives; empty if there is none.
        `ToolError` if that is longer than a limit.
        """
        told = " ".join(message_in(*parted(self.own_lines(posed=False), text), to).split())
        if len(told) > limit:
            raise ToolError(
                f"the words around it belong to it, and as they typed it, it has {len(told)} "
                f"characters; at most {limit} can be kept: ask them for a shorter one"
            )
        return told

    def asker_name(self) -> str:
        """The name of the one who asked, as far as it is known."""
        if self.asker and (person := self.game.identify(self.asker)):
            return person.name
        lines = self.seen.by_ids(self.source_message_ids)  # by a page, from anywhere
        names = (line.speaker_name for line in lines if line.speaker_id == self.asker)
        return next(filter(None, names), _NOBODY_SEEN)

    def check_note(self) -> None:
        """Count one note; `BoundError` once this asker has caused enough of them in an hour."""
        runtime, asker, now = self.script.runtime, self.asker, self.script.now()
        if not asker:
            return
        times = runtime.notes.setdefault(asker, deque(maxlen=NOTES_PER_HOUR))
        if len(times) < NOTES_PER_HOUR or now - times[0] >= HOUR_S:
            times.append(now)
            return
        raise BoundError("you will remember this as talk; acknowledge it as you do otherwise")

    @property
    def is_secret(self) -> bool:
        """Whether others are here than those whom a private turn is for."""
        return is_private(self.audience) and not self.game.only_present(self.audience)

    def speak(self, text: str) -> Told:
        """Say a line to the turn's audience, the way it spoke; `ToolError` if that cannot be.

        It says whom it is for where somebody else has spoken in between. Returns what the game
        tells the body of it.
        """
        is_aloud = self.audience == PUBLIC and self.channel == "say"
        to = None
        if is_aloud and self.asker and self.is_interrupted():
            to = self.asker
        told: Told = self.game.speak(text, self.audience, self.channel, self.asker, to)
        self.note_speech(text)
        return told

    def is_interrupted(self) -> bool:
        """Whether somebody else has spoken here since the newest line that this turn answers."""
        newest = max(self.source_message_ids, default="")
        heard = (m for m in self.seen.newest() if m.id > newest)
        later = [*itertools.islice(heard, NEWER_LINES), *self.script.runtime.passed()]
        return any(
            m.role == "user" and m.channel in SPEECH and m.speaker_id not in ("", self.asker)
            for m in later
        )

    def note_speech(self, text: str) -> None:
        """Remember a line that was spoken."""
        self.spoken.append(text)
        self.script.runtime.said.append((self.audience, self.asker, text))


class Tool(ABC):
    """One thing the assistant can do. Subclasses set the names and implement `run`."""

    name: ClassVar[str] = ""  # as the model calls it
    parameters: ClassVar[Mapping[str, Parameter]] = {}  # what it takes, by argument name
    lock: ClassVar[str] = "tool:all()"  # of Evennia: for the assistant and for the one who asked
    # Whether it does more than speak, and others than the turn's audience would notice. Refused in
    # private.
    public_act: ClassVar[bool] = False
    obeyed: ClassVar[bool] = False  # whether it is done only for those whom the assistant obeys
    ends_turn: ClassVar[bool] = False  # whether the turn is over after it
    # Whether a reply of such calls alone ends the turn where they succeed and the one who asked
    # notices something of it: nothing new is left to tell the model.
    concludes: ClassVar[bool] = False
    # When a prompt offers it: always, or to an ``obeyed`` asker, to one ``met`` on an earlier day,
    # to whoever has ``asked``, where there are ``things`` to give or ``older`` talk, where memory
    # is nearly ``full``, or when nobody asks and what was lived through is gone over (``sleep``).
    # What a ``reply`` says and poses by itself is never offered; models that know such calls all
    # the same may make them.
    serves: ClassVar[str] = ""
    # Traits the rest of the package asks for; `ToolTraits` says what each means.
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

    @property
    def is_act(self) -> bool:
        """Whether it needs somebody who asks for it by name: it does more than speak or know."""
        return self.public_act or self.obeyed

    def schema(self, more: Mapping[str, Parameter] = MappingProxyType({})) -> dict[str, Any]:
        """The tool in the form of the chat API's `tools`; its text is the class's first line.

        `more` are parameters besides its own, of an extraction.
        """
        says = (self.__doc__ or self.name).strip().split("\n", 1)[0]
        own = {key: each for key, each in self.parameters.items() if each.in_talk or more}
        return function_schema(self.name, says, {**own, **more})


class _NoTool(Tool):
    """Stands for a tool that is not there."""

    def run(self, ctx: ToolContext) -> Any:
        """It cannot be used."""
        raise ToolError("there is no such tool")


NO_TOOL = _NoTool()


@dataclass(frozen=True)
class ToolCall:
    """A call of a reply, read once: what it calls and with which arguments."""

    raw: Mapping[str, Any]  # in the chat format, as it is stored
    name: str
    tool: Tool
    # Checked, or as they came where they have a fault; behind the check of a call ids of objects.
    arguments: Mapping[str, Any]
    fault: str = ""  # why they cannot be used
    objects: Mapping[str, Named] = field(default_factory=dict)  # those that arguments name

    @property
    def sense(self) -> str:
        """What it says, the same for two calls that say the same."""
        is_read = self.tool is not NO_TOOL and not self.fault
        said = self.arguments if is_read else self.raw["function"].get("arguments")
        return " ".join(json.dumps([self.name, said], sort_keys=True, default=str).split())


class ToolRegistry:
    """The tools of one assistant, by name, with their traits.

    `levels` returns ``{tool name: off, dry run, confirm or on}`` now. `ending` names those that end
    a turn.
    """

    def __init__(self, tools: Iterable[type[Tool]], levels: Callable[[], Mapping[str, str]] = dict):
        self._levels = levels
        self.tools: dict[str, Tool] = {tool.name: tool() for tool in tools}
        self.traits = ToolTraits.of(self.tools)
        self.ending = frozenset(name for name, tool in self.tools.items() if tool.ends_turn)

    def level(self, name: str) -> str:
        """``off``, ``dry run``, ``confirm`` or ``on``; a tool that does nothing is off or on."""
        level = str(self._levels().get(name, "on"))
        if level != "off" and name in self.traits.silent:
            return "on"
        return level

    def offered(self, extracting: bool = False) -> list[Tool]:
        """The tools a prompt offers, or those for extraction, in a fixed order for provider caches.

        In a private turn too: acts others would notice are refused only when they are called.
        """
        levels = self._levels()
        usable = (tool for name, tool in self.tools.items() if levels.get(name) != "off")
        return [tool for tool in usable if tool.extracts or not extracting]

    def read(self, calls: Iterable[Mapping[str, Any]]) -> list[ToolCall]:
        """The calls of a reply, without those that say the same as an earlier one."""
        distinct: dict[str, ToolCall] = {}
        for raw in calls:
            function = raw["function"]
            name = str(function.get("name") or "")
            tool, sent, fault = self.tools.get(name, NO_TOOL), function.get("arguments"), ""
            try:
                arguments = read_arguments(sent, tool.parameters)
            except ToolError as error:
                arguments, fault = as_dict(loaded(sent)), str(error)
            call = ToolCall(raw, name, tool, arguments, fault)
            distinct.setdefault(call.sense, call)
        return list(distinct.values())

    def note_schemas(self) -> list[dict[str, Any]]:
        """The tools of an extraction in the API's form; those that note something cite lines."""
        return [
            tool.schema() if tool.ends_turn else tool.schema({LINES: _CITED})
            for tool in self.offered(extracting=True)
        ]

    def read_note(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """The checked arguments of an extraction's call; raises `ToolError` for a bad one."""
        function = call["function"]
        tool = self.tools.get(str(function.get("name") or ""))
        if tool is None or tool not in self.offered(extracting=True):
            raise ToolError(f"there is no tool `{function.get('name')}` here")
        return read_arguments(function.get("arguments"), {**tool.parameters, LINES: _CITED})
