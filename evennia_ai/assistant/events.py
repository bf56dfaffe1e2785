"""Heard events: what makes the assistant think, and for whom."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from evennia_ai.history.audience import is_private
from evennia_ai.history.messages import SPEECH, Message

_ARTICLES = ("a", "an", "the")


@dataclass(frozen=True)
class Group:
    """The events of one audience, oldest first."""

    audience: str
    events: tuple[Message, ...]

    def triggers(self, greet_arrivals: bool) -> tuple[Message, ...]:
        """The events that call for a turn: speech of others, arrivals where they are greeted."""
        wanted = (*SPEECH, "arrive") if greet_arrivals else SPEECH
        return tuple(event for event in self.events if event.channel in wanted)


def by_audience(events: Iterable[Message]) -> tuple[Group, ...]:
    """Events in groups of one audience each, in order of the audiences' first event."""
    groups: dict[str, list[Message]] = {}
    for event in events:
        groups.setdefault(event.audience, []).append(event)
    return tuple(Group(audience, tuple(items)) for audience, items in groups.items())


def names(text: str, name: str) -> bool:
    """Whether a text names somebody, by the whole name or its first word that is no article."""
    words = name.lower().split()
    first = next((word for word in words if word not in _ARTICLES), "")
    wanted = {" ".join(words), first} - {""}
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text.lower()) for word in wanted)


def addressed(events: Sequence[Message], name: str, listeners: int) -> bool:
    """Whether somebody speaks to the assistant.

    True for a whisper or page, for speech that names it, and for speech if there are no other
    `listeners` (the speaker not counted).
    """
    for event in events:
        channel = event.channel
        if channel in ("whisper", "page") or is_private(event.audience):
            return True
        if channel in ("say", "pose") and names(event.content, name):
            return True
        if channel == "say" and listeners == 0:
            return True
    return False


def resolved(events: Iterable[Message], here: Iterable[str]) -> list[Message]:
    """Events with each ``move`` turned into an arrival or a departure.

    A game announces both while the mover stands in the room. A moment later, those who are `here`
    (stable ids) have arrived, and the others have left.
    """
    present = set(here)
    return [
        replace(event, channel="arrive" if event.speaker_id in present else "leave")
        if event.channel == "move"
        else event
        for event in events
    ]
