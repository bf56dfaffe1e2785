"""What an assistant heard and has not answered: for whom, its queue, turns due, their lock."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, TypeVar

from twisted.internet.defer import Deferred

from evennia_ai.history.messages import SPEECH, Message, is_by

T = TypeVar("T")

# Key of an event's metadata: whether this assistant is to answer it.
ANSWER = "answer"
# Key of a queued event's metadata: the game's moderation has not let it pass yet.
UNJUDGED = "unjudged"
QUEUE_LIMIT = 500
# Tokens of a heard line on top of its words: name, id, verb, quotes.
_LINE_TOKENS = 20
# Waits before a turn that no model answered is tried again.
RETRY_WAITS_S = (5.0, 20.0, 60.0)


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


@dataclass
class Heard:
    """Events on their way from the ear to an answer. Groups are named by their keys."""

    lock: TurnLock = field(default_factory=TurnLock)  # of all that must not run at the same time
    queue: list[Message] = field(default_factory=list)  # not yet in the history, oldest first
    queue_saved: bool = True  # whether its saved copy is up to date
    dropped: int = 0  # events not taken since the last drain because it was full
    last_heard_at: float = field(default_factory=time.time)
    last_spoke_at: float = field(default_factory=time.time)  # when somebody else spoke
    player_spoke_at: float = 0.0
    # Turns that failed and are tried again.
    unanswered: dict[tuple[str, str], Unanswered] = field(default_factory=dict)
    answering: tuple[Group, ...] = ()  # stored, and answered by a turn now or next
    stored: tuple[Message, ...] = ()  # while something held the lock, for the next tick
    # Of events not answered yet: when they were heard, and `lock.worked_s` then.
    waiting: dict[str, tuple[float, float]] = field(default_factory=dict)
    # Groups that were shown that it is thinking, and wait on.
    signed: set[tuple[str, str]] = field(default_factory=set)
    # Groups whose late answer was not said, as they had asked anew; the next one is, for all of it.
    overtaken: set[tuple[str, str]] = field(default_factory=set)
    forgotten: frozenset[str] = frozenset()  # who asked to be, while they were answered

    def hear(self, event: Message, at: float, by_player: bool = True) -> None:
        """Queue an event. If the queue is full, whoever has most lines in it loses his newest."""
        self.last_heard_at = at
        if event.channel in SPEECH:
            self.last_spoke_at = at
            self.player_spoke_at = at if by_player else self.player_spoke_at
        if len(self.waiting) > 2 * QUEUE_LIMIT:
            pending = {each.id for each in self.pending()}
            self.waiting = {id: since for id, since in self.waiting.items() if id in pending}
        self.waiting[event.id] = (at, self.lock.worked_s)
        self.queue.append(event)
        self.queue_saved = False
        if len(self.queue) > QUEUE_LIMIT:
            self.dropped += 1
            [(loudest, _)] = Counter(each.speaker_id for each in self.queue).most_common(1)
            places = range(len(self.queue) - 1, -1, -1)
            del self.queue[next(i for i in places if self.queue[i].speaker_id == loudest)]

    def waited_s(self, event: Message, now: float) -> float:
        """How long an event has waited for its answer."""
        return now - self.waiting.get(event.id, (now, 0.0))[0]

    def since(self, asker: str) -> list[Message]:
        """What somebody (stable id) has said while a turn answers what they said before."""
        return [event for event in self.heard() if event.speaker_id == asker]

    def asks_anew(self, key: tuple[str, str]) -> bool:
        """Whether the speaker of a group, by its key, has asked more since it was taken up."""
        audience, speaker = key
        return any(wants_answer(e) and e.audience == audience for e in self.since(speaker))

    def age_s(self, event: Message, now: float) -> float:
        """How long an event has waited, without the time that the assistant's own work took."""
        heard, worked = self.waiting.get(event.id, (now, self.lock.worked_s))
        return now - heard - (self.lock.worked_s - worked)

    def passed(self) -> list[Message]:
        """The queued events before the first that waits for moderation: all, where nothing does."""
        return list(takewhile(lambda event: UNJUDGED not in event.metadata, self.queue))

    def judged(self, event_id: str, text: str) -> None:
        """Let an event that waits for moderation pass with a text; drop it if that is empty."""
        for place, event in enumerate(self.queue):
            if event.id == event_id and UNJUDGED in event.metadata:
                meta = {key: value for key, value in event.metadata.items() if key != UNJUDGED}
                kept = [replace(event, content=text, metadata=meta)] if text else []
                self.queue = [*self.queue[:place], *kept, *self.queue[place + 1 :]]
                self.queue_saved = False
                return

    def take(self) -> list[Message]:
        """The queued events that have passed; they leave the queue."""
        taken = self.passed()
        self.queue = self.queue[len(taken) :]
        self.queue_saved = False
        return taken

    def give_back(self, events: Iterable[Message]) -> None:
        """Put taken events back at the front."""
        self.queue = [*events, *self.queue]
        self.queue_saved = False

    def pending(self) -> list[Message]:
        """What a restart must not lose: events not answered yet, and those not in the history."""
        late = [event for each in self.unanswered.values() for event in each.group.events]
        events = [*(event for group in self.answering for event in group.events), *late]
        return list({event.id: event for event in (*events, *self.stored, *self.queue)}.values())

    def queued_tokens(self) -> int:
        """A bound on the tokens of what is queued, without counting: characters / 3."""
        return sum(len(e.content) // 3 + _LINE_TOKENS for e in self.queue)

    def postpone(self, group: Group, now: float, gives_up: bool = True) -> bool:
        """Try a failed turn again later; False once it was tried often enough, if it `gives_up`."""
        before = self.unanswered.pop(group.key, None)
        tries = (before.tries if before and before.group == group else 0) + 1
        if tries > len(RETRY_WAITS_S):
            if gives_up:
                return False
            tries = len(RETRY_WAITS_S)
        due = now + RETRY_WAITS_S[tries - 1]
        self.unanswered[group.key] = Unanswered(group, tries, due)
        self.queue_saved = False
        return True

    def take_stored(self) -> tuple[Message, ...]:
        """The events that were stored while something held the lock; none afterwards."""
        taken = self.stored
        if taken:
            self.stored, self.queue_saved = (), False
        return taken

    def heard(self) -> list[Message]:
        """Events that no tick has seen: stored while something held the lock, and queued."""
        return [*self.stored, *self.passed()]

    def is_called(self) -> bool:
        """Whether somebody has spoken to the assistant since its last tick."""
        return any(map(wants_answer, self.heard()))

    def give_up(self) -> None:
        """Answer nothing of what was asked until now."""
        self.answering, self.stored, self.queue_saved = (), (), False
        self.unanswered.clear()

    def answered(self, group: Group) -> None:
        """A group's turn is over, one way or the other."""
        self.answering = tuple(each for each in self.answering if each is not group)
        self.signed.discard(group.key)
        self.forgotten -= {group.key[1]}
        self.queue_saved = False

    def due(self, now: float) -> Unanswered | None:
        """A turn whose time has come again."""
        return next((late for late in self.unanswered.values() if late.due <= now), None)

    def forget(self, people: Collection[str], until: str) -> None:
        """Drop what these people (stable ids) said up to a message's id."""

        def stays(event: Message) -> bool:
            return not is_by(event, people, until)

        self.forgotten |= {group.key[1] for group in self.answering} & {*people}
        self.queue = list(filter(stays, self.queue))
        self.stored = tuple(filter(stays, self.stored))
        self.answering = tuple(g for g in self.answering if all(map(stays, g.events)))
        self.unanswered = {
            key: late for key, late in self.unanswered.items() if all(map(stays, late.group.events))
        }
        self.queue_saved = False
