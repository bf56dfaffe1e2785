"""What an assistant holds in memory while the server runs, apart from its database objects.

Evennia may drop a Script from its cache with all that hangs on it; a lock kept there would be
lost in mid-turn. So the turn lock, the queue of heard events and the counters live here.
"""

import random
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.internet.interfaces import IDelayedCall
from twisted.python.failure import Failure

from evennia_ai.history.messages import Message, is_by
from evennia_ai.llm_interaction.budget import BudgetEvent
from evennia_ai.llm_interaction.budget_log import EVENTS_KEPT
from evennia_ai.protocol import Assistant
from evennia_ai.turns.events import UNJUDGED, Group
from evennia_ai.turns.options import AssistantConfig
from evennia_ai.turns.tools.asking import Proposal
from evennia_ai.turns.turn_lock import TurnLock

if TYPE_CHECKING:
    from evennia_ai.sleep.compaction.compact import Compaction

T = TypeVar("T")

QUEUE_LIMIT = 500
# Own lines that a reply must not repeat.
LINES_REMEMBERED = 3
# Tokens of a heard line on top of its words: name, id, verb, quotes.
_LINE_TOKENS = 20
# Notes that what one person says may cause in an hour; people tell less that is worth keeping.
NOTES_PER_HOUR = 20
# Time in which the same error is not logged again.
REPEATED_S = 600.0
# Waits before a turn that no model answered is tried again.
RETRY_WAITS_S = (5.0, 20.0, 60.0)
# Most seconds between two ticks of an assistant with nothing to do: with a thousand of them, ticks
# take about a twentieth of a processor. Each has its own, so that those started together do not
# tick together.
REST_S = (24.0, 36.0)
# A clock that is corrected by less than this was not set back.
_SET_BACK_S = 1.0


@dataclass(frozen=True)
class Unanswered:
    """A turn that failed because no model answered.

    Args:
        group: The events it was for.
        tries: How often it was tried.
        due: When it is tried again, seconds since the epoch.
    """

    group: Group
    tries: int
    due: float


@dataclass
class Runtime:
    """One assistant's live state.

    Args:
        lock: What ticks and all else that must not run at the same time hold.
        queue: Heard events not yet in the history, oldest first.
        queue_saved: Whether the saved copy of the queue is up to date.
        dropped: Events not taken since the last drain because the queue was full.
        fixed_tokens: Tokens of system text, tools and ledger in the last prompt.
        room_for: For which configuration and limit it was checked whether there is room to talk.
        compaction_waits: How many automatic compactions failed in a row, and when the next may be
            tried, seconds since the epoch.
        last_error_at: When the last trouble was, in seconds since the epoch.
        error_passes: Whether a turn that succeeds clears the last trouble.
        counts: Ticks, turns, errors and the like, since the server started.
        budgets: The newest token budgets; `Assistant.budgets` reads and writes them.
        left_out: Ids of the live messages that the last turn's prompt had no room for.
        answering: Stored groups of events that a turn answers now or next.
        stored: Events stored while something held the lock, for the next tick.
        behind: The compaction in the background, if one runs, and what fired it.
        prepared: A night's next compaction, with what was extracted for it.
        compacting: What fired the compaction whose summaries are being made; empty if none are.
        extracts: Whether no model is asked for them.
        better_tries: How often the owed summaries were tried in vain, and when to try again,
            seconds since the epoch.
        waiting: Of events not answered yet: when they were heard, and `lock.worked_s` then.
        said: The newest lines it spoke: audience, who was answered, and the words.
        called: The turn that is about to begin because somebody spoke to it.
        sign: What will tell those who wait that it is thinking.
        signed: Groups, by key, that were told so and wait on.
        trouble_shown_at: When it showed last that no model answers, seconds since the epoch.
        declined: When it showed last that it answers no more for a while, by groups' keys.
        refused: When moderation refused a whole reply last, and the turn's audience.
        proposals: Acts that wait for a yes of the one who asked, by stable id.
        notes: When what each person said caused the newest notes, by stable id.
        rest_s: Most seconds between two ticks while there is nothing to do.
        ends: Whether the server stops: what is heard from now on is saved at once.
        cannot_store: Whether the last tick failed because the database could not be written.
        logged: When each error was logged last, by its text, on the monotonic clock.
    """

    lock: TurnLock = field(default_factory=TurnLock)
    queue: list[Message] = field(default_factory=list)
    queue_saved: bool = True
    dropped: int = 0
    fixed_tokens: int = 0
    last_heard_at: float = field(default_factory=time.time)
    last_turn_at: float = 0.0
    last_error: str = ""
    last_error_at: float = 0.0
    error_passes: bool = False
    compaction_requested: bool = False
    room_for: tuple[AssistantConfig, int] | None = None
    compaction_waits: tuple[int, float] = (0, 0.0)
    spent_told: str = ""
    counts: "Counter[str]" = field(default_factory=Counter)
    budgets: "deque[BudgetEvent]" = field(default_factory=lambda: deque(maxlen=EVENTS_KEPT))
    left_out: frozenset[str] = frozenset()
    conversations: dict[str, dict[str, Any]] = field(default_factory=dict)
    unanswered: dict[tuple[str, str], Unanswered] = field(default_factory=dict)
    answering: tuple[Group, ...] = ()
    stored: tuple[Message, ...] = ()
    behind: "tuple[Deferred[Any], str] | None" = None
    prepared: "Compaction | None" = None
    compacting: str = ""
    extracts: bool = False
    better_tries: tuple[int, float] = (0, 0.0)
    waiting: dict[str, tuple[float, float]] = field(default_factory=dict)
    said: "deque[tuple[str, str | None, str]]" = field(
        default_factory=lambda: deque(maxlen=LINES_REMEMBERED)
    )
    called: IDelayedCall | None = None
    sign: IDelayedCall | None = None
    signed: set[tuple[str, str]] = field(default_factory=set)
    trouble_shown_at: float = float("-inf")
    declined: dict[tuple[str, str], float] = field(default_factory=dict)
    refused: tuple[float, str] | None = None
    proposals: dict[str, Proposal] = field(default_factory=dict)
    notes: dict[str, "deque[float]"] = field(default_factory=dict)
    rest_s: float = field(default_factory=lambda: random.uniform(*REST_S))
    ends: bool = False
    cannot_store: bool = False
    logged: dict[str, float] = field(default_factory=dict)
    _last_seen_at: float = 0.0

    def note_trouble(self, text: str, at: float, passes: bool = False) -> None:
        """Keep the last trouble; `passes` as `error_passes`."""
        self.last_error, self.last_error_at, self.error_passes = text, at, passes

    def is_news(self, error: str, at: float) -> bool:
        """Whether an error is to be logged: it was not in the last `REPEATED_S` seconds."""
        self.logged = {e: then for e, then in self.logged.items() if at - then < REPEATED_S}
        is_new = error not in self.logged
        if is_new:
            self.logged[error] = at
        return is_new

    def hear(self, event: Message, at: float) -> None:
        """Queue an event. If the queue is full, whoever has most lines in it loses his newest."""
        self.last_heard_at = at
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

    def age_s(self, event: Message, now: float) -> float:
        """How long an event has waited, without the time that the assistant's own work took."""
        heard, worked = self.waiting.get(event.id, (now, self.lock.worked_s))
        return now - heard - (self.lock.worked_s - worked)

    def may_note(self, asker: str, now: float) -> bool:
        """Count a note that what somebody said causes; False if there were enough this hour."""
        times = self.notes.setdefault(asker, deque(maxlen=NOTES_PER_HOUR))
        if len(times) == NOTES_PER_HOUR and now - times[0] < 3600:
            return False
        times.append(now)
        return True

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

    def see_clock(self, now: float) -> None:
        """If the clock was set back, let nothing wait for a time that was close by before."""
        if now < self._last_seen_at - _SET_BACK_S:
            self.last_turn_at = 0.0
            self.last_heard_at = min(self.last_heard_at, now)
            self.trouble_shown_at = float("-inf")
            self.notes.clear()
            self.unanswered = {k: replace(late, due=now) for k, late in self.unanswered.items()}
        self._last_seen_at = now

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

    def forget(self, people: Collection[str], until: str) -> None:
        """Drop what these people (stable ids) said up to a message's id, and what it meant.

        The last lines spoken are dropped too, as they may repeat it.
        """

        def stays(event: Message) -> bool:
            return not is_by(event, people, until)

        self.queue = list(filter(stays, self.queue))
        self.stored = tuple(filter(stays, self.stored))
        self.answering = tuple(g for g in self.answering if all(map(stays, g.events)))
        self.unanswered = {
            key: late for key, late in self.unanswered.items() if all(map(stays, late.group.events))
        }
        self.conversations = {
            key: talk for key, talk in self.conversations.items() if talk["partner"] not in people
        }
        self.said.clear()
        self.queue_saved = False

    def give_up(self) -> None:
        """Answer nothing of what was asked until now."""
        self.answering, self.stored, self.queue_saved = (), (), False
        self.unanswered.clear()

    def answered(self, group: Group) -> None:
        """A group's turn is over, one way or the other."""
        self.answering = tuple(each for each in self.answering if each is not group)
        self.signed.discard(group.key)
        self.queue_saved = False

    def due(self, now: float) -> Unanswered | None:
        """A turn whose time has come again."""
        return next((late for late in self.unanswered.values() if late.due <= now), None)

    def run_behind(self, function: Callable[[], Any], trigger: str) -> None:
        """Run a compaction beside the ticks; `stop_behind` cancels it. There must be none."""
        placeholder: Deferred[Any] = Deferred()
        self.behind = placeholder, trigger
        running = maybeDeferred(function)
        if self.behind is None or self.behind[0] is not placeholder:
            running.addErrback(_trap_cancelled)
            running.cancel()  # it was stopped while it began
        else:
            self.behind = running, trigger

        def done(result: T) -> T:
            if self.behind is not None and self.behind[0] is running:
                self.behind = None
            return result

        running.addBoth(done)

    def stop_behind(self) -> bool:
        """Cancel the compaction in the background; returns whether there was one."""
        behind, self.behind = self.behind, None
        if behind is not None:
            behind[0].addErrback(_trap_cancelled)
            behind[0].cancel()
        return behind is not None


def _trap_cancelled(failure: Failure) -> Failure | None:
    return None if isinstance(failure.value, CancelledError) else failure


LiveAssistant = Assistant
_runtimes: dict[str, Runtime] = {}


def runtime_for(script_id: str) -> Runtime:
    """The live state of the assistant with this stable id, made at first use."""
    if script_id not in _runtimes:
        _runtimes[script_id] = Runtime()
    return _runtimes[script_id]


def forget_runtime(script_id: str) -> None:
    """Drop the live state of a deleted assistant."""
    _runtimes.pop(script_id, None)
