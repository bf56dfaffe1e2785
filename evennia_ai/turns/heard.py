"""What an assistant heard and has not answered, and for whom."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from evennia_ai.history.messages import SPEECH, Message

# Key of an event's metadata: whether this assistant is to answer it.
ANSWER = "answer"
# Key of an event's metadata: the stable id of whom it was said to, where the game tells that.
TO = "to"
# Key of a queued event's metadata: the game's moderation has not let it pass yet.
UNJUDGED = "unjudged"


@dataclass(frozen=True)
class Group:
    """What one speaker said to one audience, oldest first."""

    audience: str
    events: tuple[Message, ...]

    @property
    def key(self) -> tuple[str, str]:
        """Audience and speaker, which no two groups share."""
        return self.audience, self.events[0].speaker_id


def by_speaker(events: Iterable[Message]) -> tuple[Group, ...]:
    """Events in groups of one audience and one speaker each, in order of their first event."""
    groups: dict[tuple[str, str], list[Message]] = {}
    for event in events:
        groups.setdefault((event.audience, event.speaker_id), []).append(event)
    return tuple(Group(audience, tuple(items)) for (audience, _), items in groups.items())


def wants_answer(event: Message) -> bool:
    """Whether an event calls for a turn: speech that it is to answer, past moderation."""
    is_judged = UNJUDGED not in event.metadata
    return is_judged and event.channel in SPEECH and bool(event.metadata.get(ANSWER, True))


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


@dataclass(frozen=True)
class Unanswered:
    """A turn that failed because no model answered."""

    group: Group
    tries: int  # how often it was tried
    due: float  # when it is tried again, seconds since the epoch
