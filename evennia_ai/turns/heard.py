"""What an assistant heard and has not answered, for whom, and the lock of its turns."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import cooperate

from evennia_ai.history.messages import SPEECH, Message

T = TypeVar("T")

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


class TurnLock:
    """Lets one thing run at a time; whatever comes of it, the lock is free again."""

    def __init__(self) -> None:
        self.running: Deferred[Any] | None = None  # what holds the lock, if anything does
        self.is_exclusive = False  # whether that is something other than a tick
        self._worked_s = 0.0
        self._since: float | None = None

    @property
    def worked_s(self) -> float:
        """Seconds for which something has held the lock, since the start."""
        return self._worked_s + (0.0 if self._since is None else time.monotonic() - self._since)

    def run(self, function: Callable[[], Any], exclusive: bool = False) -> "Deferred[Any]":
        """Run something under the lock, which must be free; fires with its result.

        The lock is free again before anything else learns of the result.
        """
        running: Deferred[Any] = Deferred()
        running.addCallback(lambda _: function())

        def freed(result: T) -> T:
            self._worked_s = self.worked_s
            self.running, self._since, self.is_exclusive = None, None, False
            return result

        running.addBoth(freed)
        self.running, self.is_exclusive = running, exclusive
        self._since = time.monotonic()
        running.callback(None)
        return running

    def run_here(self, function: Callable[[], Any]) -> "Deferred[Any]":
        """Run something at once, under the lock: the caller's, or its own if the lock is free."""
        if self.running is not None:
            return maybeDeferred(function)
        return self.run(function, exclusive=True)

    def holder(self) -> "Deferred[Any]":
        """What holds the lock; raises `RuntimeError` if nothing does.

        Functions that need the lock begin with it, so that a call without the lock is found.
        """
        if self.running is None:
            raise RuntimeError("This needs the turn lock; call it by `run_exclusive`.")
        return self.running

    def run_steps(self, steps: Iterator[None]) -> "Deferred[Any]":
        """Run the steps of what holds the lock, a few at a time; fires when all are done.

        It fails with `RuntimeError` before a step for which it would not hold the lock any more.
        """
        holder = self.holder()

        def guarded() -> Iterator[None]:
            for _ in steps:
                yield
                if self.running is not holder:
                    raise RuntimeError("The turn lock was lost between two steps.")

        return cooperate(guarded()).whenDone()

    def run_next(self, function: Callable[[], Any]) -> "Deferred[Any]":
        """Run something once what holds the lock now is done; fires with its result.

        Ticks are skipped until the value or Deferred that `function` returns is there. It must
        not ask for the lock itself. If the Deferred is cancelled before, it does not begin.
        """
        outcome: Deferred[Any] = Deferred()

        def begin(result: Any = None) -> Any:
            if outcome.called:
                return result
            if self.running is not None:
                self.running.addBoth(begin)
            else:
                done = self.run(function, exclusive=True)
                done.addCallbacks(outcome.callback, outcome.errback)
            return result

        begin()
        return outcome


@dataclass(frozen=True)
class Unanswered:
    """A turn that failed because no model answered."""

    group: Group
    tries: int  # how often it was tried
    due: float  # when it is tried again, seconds since the epoch
