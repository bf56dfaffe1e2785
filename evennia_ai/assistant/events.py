"""Heard events: what makes the assistant think, and for whom."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evennia_ai.history.audience import PUBLIC, is_private
from evennia_ai.history.messages import SPEECH

Event = Mapping[str, Any]
_ARTICLES = ("a", "an", "the")


@dataclass(frozen=True)
class Group:
    """The events of one audience, in order.

    Args:
        audience: Who may know them.
        events: Oldest first.
    """

    audience: str
    events: tuple[Event, ...]

    def triggers(self, greet_arrivals: bool) -> tuple[Event, ...]:
        """The events that call for a turn: speech of others, arrivals where they are greeted."""
        wanted = (*SPEECH, "arrive") if greet_arrivals else SPEECH
        return tuple(event for event in self.events if event.get("channel") in wanted)


def by_audience(events: Iterable[Event]) -> tuple[Group, ...]:
    """Events in groups of one audience each, in order of the audiences' first event."""
    groups: dict[str, list[Event]] = {}
    for event in events:
        groups.setdefault(str(event.get("audience") or PUBLIC), []).append(event)
    return tuple(Group(audience, tuple(items)) for audience, items in groups.items())


def names(text: str, name: str) -> bool:
    """Whether a text names somebody, by the whole name or its first word that is no article."""
    words = name.lower().split()
    first = next((word for word in words if word not in _ARTICLES), "")
    wanted = {" ".join(words), first} - {""}
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text.lower()) for word in wanted)


def addressed(events: Sequence[Event], name: str, listeners: int) -> bool:
    """Whether somebody speaks to the assistant.

    Args:
        events: Heard events.
        name: The assistant's name.
        listeners: How many others there are to speak to, the speaker left out.

    Returns:
        True for a whisper or page, for speech that names it, and for speech where nobody else
        is there to be meant.
    """
    for event in events:
        channel = event.get("channel")
        if channel in ("whisper", "page") or is_private(str(event.get("audience") or PUBLIC)):
            return True
        if channel in ("say", "pose") and names(str(event.get("content", "")), name):
            return True
        if channel == "say" and listeners == 0:
            return True
    return False


def resolved(events: Iterable[Event], here: Iterable[str]) -> list[Event]:
    """Events with each ``move`` made an arrival or a departure.

    A game announces both while the mover stands in the room. A moment later it is plain: who
    is here came, who is not went.

    Args:
        events: Heard events.
        here: Stable ids of those present now.
    """
    present = set(here)

    def channel(event: Event) -> str:
        return "arrive" if (event.get("speaker") or {}).get("id") in present else "leave"

    return [
        {**event, "channel": channel(event)} if event.get("channel") == "move" else event
        for event in events
    ]
