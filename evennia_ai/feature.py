"""What a feature is: one thing an assistant can do that a game may lack, in one object.

The core knows no feature by name. It takes those that the setting ``EVENNIA_AI_FEATURES`` lists, by
dotted names, and calls them by the methods of `Feature`. What a feature stores of an assistant is
in ``life.records(name, kind)``: sealed, shown to nobody, and forgotten by the feature alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from twisted.internet.defer import Deferred

from evennia_ai.conf import Report, setting, usable
from evennia_ai.history.messages import Message
from evennia_ai.kinds import Values
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.options import bring_options
from evennia_ai.turns.assistant import FEATURES, Assistant
from evennia_ai.turns.tools import BUILTIN_TOOLS
from evennia_ai.turns.tools.base import Tool


class Leaving(Protocol):
    """What goes, as `forget` asks of it; `privacy.closure.Forgetting` says how it is found."""

    @property
    def gone(self) -> Collection[str]:
        """Ids of messages, entries and notes."""

    def holds_own(self, text: str) -> bool:
        """Whether a text repeats words of those who are forgotten."""


class Feature(ABC):
    """A thing an assistant can do. One object serves all assistants; `life` is the one meant."""

    name: ClassVar[str]
    # Each of its fields is an `option`; their names begin with its own.
    options: ClassVar[type[Values] | None] = None
    tools: ClassVar[Sequence[type[Tool]]] = ()
    # Dotted names of its command classes: they import Evennia, which services do not.
    commands: ClassVar[Sequence[str]] = ()

    def lines(
        self, life: Assistant, turn: TurnRequest, present: Mapping[str, str]
    ) -> Iterable[str]:
        """What is on the assistant's mind, a line of the prompt each.

        Only what the turn's audience may know: ``life.seen(turn.audience, trusted=True)`` tells.
        `present` has the names of those who are here, by their stable ids.
        """
        return ()

    def heard(self, life: Assistant, lines: Sequence[Message]) -> None:  # noqa: B027
        """Lines were heard and stored; arrivals are some, with the channel ``arrive``."""

    def given(self, life: Assistant, giver: Any, what: str, audience: str) -> None:  # noqa: B027
        """A player gave it a thing, which all of an audience saw."""

    def due(self, life: Assistant) -> Deferred[str] | str:
        """Do what is due now; called at each tick, awake and asleep.

        Returns, or fires with, a word for what the tick did; empty where the tick is to go on.
        """
        return ""

    @abstractmethod
    def forget(self, life: Assistant, people: Collection[str], plan: Leaving) -> None:
        """Drop what is of people (stable ids), or rests on what goes; again after a crash.

        ``plan.gone`` has the ids of messages, entries and notes that go, ``plan.holds_own`` says
        of a text whether it repeats their words.
        """

    @abstractmethod
    def export(
        self, life: Assistant, people: Collection[str], may_know: Callable[[str], bool]
    ) -> Iterable[Any]:
        """What it keeps of people, as plain data; `may_know` says of an audience if they may."""


def unknown_features(life: Assistant, known: Iterable[Feature]) -> list[str]:
    """Names of features that left something with an assistant, and that are not `known`."""
    left = {name.removeprefix(FEATURES) for name in life.store.categories(FEATURES)}
    return sorted(left - {feature.name for feature in known})


def listed_features(report: Report = None, more: Iterable[str] = ()) -> tuple[Feature, ...]:
    """The features that ``EVENNIA_AI_FEATURES`` lists, and `more`; unusable ones are reported."""

    def is_feature(found: Any) -> bool:
        is_named = issubclass(found, Feature) and bool(found().name)
        if is_named and found.options:
            bring_options(found.options)
        return is_named

    paths = dict.fromkeys((*setting("FEATURES"), *more))
    kind = "`evennia_ai.feature.Feature` with a name"
    return tuple(feature() for feature in usable("FEATURES", paths, is_feature, kind, report))


def feature_commands(report: Report = None) -> tuple[type, ...]:
    """The commands of the listed features; unusable ones are reported."""
    paths = [path for feature in listed_features() for path in feature.commands]
    return tuple(usable("FEATURES", paths, callable, "command", report))


def usable_tools(features: Iterable[Feature], report: Report = None) -> tuple[type, ...]:
    """The package's tools, those of features, and the game's own, by ``EVENNIA_AI_TOOLS``.

    Unusable ones are reported.
    """

    def is_tool(found: Any) -> bool:
        is_class = isinstance(found, type) and issubclass(found, Tool) and found.name
        return bool(is_class and found().schema())

    kind = "`evennia_ai.turns.tools.Tool` with a name"
    own = usable("TOOLS", setting("TOOLS"), is_tool, kind, report)
    brought = (tool for feature in features for tool in feature.tools)
    return tuple({tool.name: tool for tool in (*BUILTIN_TOOLS, *brought, *own)}.values())
