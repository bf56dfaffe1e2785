"""What an assistant holds in memory while the server runs, apart from its database objects.

Evennia may drop a Script from its cache with all that hangs on it; a lock kept there would be
lost in mid-turn. So the turn lock, the queue of heard events and the counters live here.
"""

import re
import time
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, takewhile

from twisted.internet.interfaces import IDelayedCall

from evennia_ai.background import TurnLock
from evennia_ai.history.messages import SPEECH, Message, is_by, utc_iso
from evennia_ai.history.stored import Stored
from evennia_ai.language.script import folded
from evennia_ai.language.tables import Languages, each_phrase
from evennia_ai.llm_interaction.budget import PromptLog
from evennia_ai.sleep.sleeper import SummaryWork

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
    present, found = set(here), list[Message]()
    for event in events:
        if event.channel == "move" and event.speaker_id in present:
            event = replace(event, channel="arrive")
        elif event.channel == "move":
            event = replace(event, channel="leave")
        found.append(event)
    return found


@dataclass(frozen=True)
class Unanswered:
    """A turn that failed because no model answered."""

    group: Group
    tries: int  # how often it was tried
    due: float  # when it is tried again, seconds since the epoch


# Lines that wait for the next tick at most, as while it dreams in a busy room.
QUEUE_LIMIT = 2_000
# Tokens of a heard line on top of its words: name, id, verb, quotes.
_LINE_TOKENS = 20
# Waits before a turn that no model answered is tried again.
RETRY_WAITS_S = (5.0, 20.0, 60.0)
# Model calls that an assistant may make for itself in a minute, those of compactions apart.
OWN_CALLS_A_MINUTE = 2
# Own lines that a reply must not repeat.
LINES_REMEMBERED = 8
# Time in which the same error is not logged again.
REPEATED_S = 600.0


# It speaks unasked to players who did something in the last ten minutes.
IDLE_S = 600.0
# Most characters of a reason for it.
CUE_CHARS = 300
HOUR_S = 3600.0
# How long a yes confirms what the asker was last asked.
CONFIRM_S = 120.0
# Most words of a yes, and what parts them: no mark that makes a question in any script.
_YES_WORDS, _SEPARATORS = 12, re.compile(r"[\s.,:!¡…。、，！-]+")
_COURTESIES = ("yes", "please", "thanks")
# Words that may stand beside a yes.
BESIDE = frozenset(
    word for key in _COURTESIES for phrase in each_phrase(key) for word in phrase.split()
)


def _parts(text: str) -> list[str]:
    """The words of a text, folded; a question mark stays at its word."""
    return _SEPARATORS.sub(" ", folded(text)).split()


# Phrases that a yes begins with, and all that it is made of.
_YES, _COURTEOUS = (
    frozenset(" ".join(_parts(phrase)) for key in keys for phrase in each_phrase(key))
    for keys in (_COURTESIES[:1], _COURTESIES)
)


def _is_yes(words: Sequence[str]) -> bool:
    """Whether words begin with a yes, and go on with phrases of courtesy alone."""
    if not 0 < len(words) <= _YES_WORDS:
        return False
    reached = {0}
    for start, end in combinations(range(len(words) + 1), 2):
        if start in reached and " ".join(words[start:end]) in (_YES, _COURTEOUS)[start > 0]:
            reached.add(end)
    return len(words) in reached


@dataclass(frozen=True, slots=True)
class Cue:
    """A reason to speak unasked, given at a time (seconds since the epoch)."""

    text: str
    at: float


@dataclass(frozen=True, slots=True)
class Used(Stored):
    """The unasked turns of the last hour."""

    at: tuple[float, ...] = ()  # when they were, seconds since the epoch, oldest first
    unanswered: int = 0  # their lines in a row that nobody had answered at the last of them

    def since(self, now: float, spoke_at: float) -> "Used":
        """What counts now, when a player spoke last at `spoke_at`.

        Times ahead of a clock that was set back do not count.
        """
        unanswered = self.unanswered
        if self.at and spoke_at > self.at[-1]:
            unanswered = 0
        # The newest stays: what nobody answers then is still not answered.
        at = tuple(each for each in self.at if 0 <= now - each < HOUR_S or each == self.at[-1])
        return Used(at, unanswered)


@dataclass(frozen=True, slots=True)
class Proposal:
    """An act that waits for its asker's yes."""

    tool: str  # the tool's name
    arguments: str  # its values as JSON, keys sorted, the stable ids of objects for their names
    question: str = field(default="", compare=False)  # what the asker is shown
    at: float = field(default=0.0, compare=False)  # when that was, seconds since the epoch
    # Id of the line that its asker spoke next, and whether somebody else spoke before.
    next_line: str = field(default="", compare=False)
    is_crossed: bool = field(default=False, compare=False)

    def heard(self, line: Message, asker: str) -> "Proposal":
        """The same after a line that the assistant heard."""
        if self.next_line:
            return self
        if line.speaker_id != asker:
            return replace(self, is_crossed=True)
        if line.channel == "pose":
            return self
        return replace(self, next_line=line.id)

    def is_confirmed(self, lines: Sequence[str], own: str, now: float) -> bool:
        """Whether what its asker said next, and in the same turn, is a yes and nothing else.

        Args:
            lines: Their lines.
            own: The assistant's name, which may stand beside the yes.
            now: Seconds since the epoch.
        """
        if not 0 <= now - self.at <= CONFIRM_S:
            return False
        name = _parts(own)
        return _is_yes([word for word in _parts(" ".join(lines)) if word not in name])


@dataclass
class Trouble:
    """The last one."""

    text: str = ""
    at: float = 0.0  # when it was
    passes: bool = False  # whether a turn that succeeds clears it


@dataclass
class Runtime:
    """One assistant's live state. Times are seconds since the epoch; groups are named by keys."""

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
    # Of events not answered yet: when they were heard, and `lock.worked_s` then, less the waits
    # between tries to answer them.
    waiting: dict[str, tuple[float, float]] = field(default_factory=dict)
    # Groups that were shown that it is thinking, and wait on.
    signed: set[tuple[str, str]] = field(default_factory=set)
    forgotten: frozenset[str] = frozenset()  # who asked to be, while they were answered
    last_turn_at: float = 0.0
    trouble: Trouble = field(default_factory=Trouble)
    summaries: SummaryWork = field(default_factory=SummaryWork)
    counts: "Counter[str]" = field(default_factory=Counter)  # ticks, turns, errors and the like
    prompts: PromptLog = field(default_factory=PromptLog)
    # When the newest calls for itself were made.
    own_calls: deque[float] = field(default_factory=partial(deque, maxlen=OWN_CALLS_A_MINUTE))
    # The newest lines it spoke: audience, who was answered, and the words.
    said: deque[tuple[str, str | None, str]] = field(
        default_factory=partial(deque, maxlen=LINES_REMEMBERED)
    )
    called: IDelayedCall | None = None  # the turn that is about to begin, as somebody spoke to it
    languages: Languages = field(default_factory=Languages)
    trouble_shown_at: float = float("-inf")  # when it showed last that no model answers
    # When it showed last that it answers no more for a while, by groups' keys.
    declined: dict[tuple[str, str], float] = field(default_factory=dict)
    # When moderation refused a whole reply last, and the turn's audience.
    refused: tuple[float, str] | None = None
    proposals: dict[str, Proposal] = field(default_factory=dict)  # acts that wait, by asker
    notes: dict[str, deque[float]] = field(default_factory=dict)  # their times, by who caused them
    company_at: float = float("-inf")  # when a player was last near, at a tick
    cue: Cue | None = None  # the newest reason to speak unasked that no turn has taken
    ends: bool = False  # whether the server stops: what is heard from now on is saved at once
    cannot_store: bool = False  # whether the last tick could not write into the database
    logged: dict[str, float] = field(default_factory=dict)  # when each error was logged of late

    def hear(self, event: Message, at: float, by_player: bool = True) -> None:
        """Queue an event. If the queue is full, whoever has most lines in it loses his newest."""
        self.last_heard_at = at
        if event.channel in SPEECH:
            for asker, proposal in self.proposals.items():
                self.proposals[asker] = proposal.heard(event, asker)
            self.last_spoke_at = at
            if by_player:
                self.player_spoke_at = at
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
        self._rouse()

    def waited_s(self, event: Message, now: float) -> float:
        """How long an event has waited for its answer."""
        return now - self.waiting.get(event.id, (now, 0.0))[0]

    def age_s(self, event: Message, now: float) -> float:
        """How long an event has waited.

        Without the time that the assistant's own work took, and without waits between its tries.
        """
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
                self.queue[place] = replace(event, content=text, metadata=meta)
                if not text:
                    del self.queue[place]
                self.queue_saved = False
                self._rouse()
                return

    def _rouse(self) -> None:
        if self.summaries.on_call is not None and self.is_called():
            self.summaries.on_call()

    @property
    def asker(self) -> str:
        """Stable id of whom it answers now; empty for nobody."""
        return next((group.key[1] for group in self.answering), "")

    def take(self) -> list[Message]:
        """The queued events that have passed; they leave the queue."""
        taken = self.passed()
        self.queue = self.queue[len(taken) :]
        self.queue_saved = False
        return taken

    def pending(self) -> list[Message]:
        """What a restart must not lose: events not answered yet, and those not in the history."""
        late = [event for each in self.unanswered.values() for event in each.group.events]
        events = [*(event for group in self.answering for event in group.events), *late]
        return list({event.id: event for event in (*events, *self.queue)}.values())

    def queued_tokens(self) -> int:
        """A bound on the tokens of what is queued, without counting: characters / 3."""
        return sum(len(e.content) // 3 + _LINE_TOKENS for e in self.queue)

    def postpone(self, group: Group, now: float, gives_up: bool = True) -> bool:
        """Try a failed turn again later; False once it was tried often enough, if it `gives_up`.

        The few waits of one that gives up do not make its lines older (`age_s`).
        """
        before = self.unanswered.pop(group.key, None)
        tries = 1
        if before is not None and before.group == group:
            tries += before.tries
        if tries > len(RETRY_WAITS_S):
            if gives_up:
                return False
            tries = len(RETRY_WAITS_S)
        due = now + RETRY_WAITS_S[tries - 1]
        for event in group.events:
            heard, worked = self.waiting.get(event.id, (now, self.lock.worked_s))
            if gives_up:
                self.waiting[event.id] = heard, worked - (due - now)
        self.unanswered[group.key] = Unanswered(group, tries, due)
        self.queue_saved = False
        return True

    def ask_again(self, group: Group, now: float) -> None:
        """Answer a group as if it were said now: the saved copies of its events tell that time."""
        events = tuple(replace(event, created_at=utc_iso(now)) for event in group.events)
        self.waiting |= {event.id: (now, self.lock.worked_s) for event in events}
        self.unanswered[group.key] = Unanswered(replace(group, events=events), 1, now)
        self.queue_saved = False

    def is_called(self) -> bool:
        """Whether somebody has spoken to the assistant since its last tick."""
        return any(map(wants_answer, self.passed()))

    def give_up(self) -> None:
        """Answer nothing of what was asked until now."""
        self.answering, self.queue_saved = (), False
        self.unanswered.clear()

    def answered(self, group: Group) -> None:
        """A group's turn is over, one way or the other."""
        self.answering = tuple(each for each in self.answering if each is not group)
        self.signed.discard(group.key)
        self.forgotten -= {group.key[1]}
        self.queue_saved = False

    def quiet_s(self, now: float) -> float:
        """How long nobody has spoken, nor has it answered."""
        return now - max(self.last_spoke_at, self.last_turn_at)

    def forget(self, people: Collection[str], until: str) -> None:
        """Drop what these people (stable ids) said up to a message's id, and what it meant.

        The last lines spoken, the prompts and the reason to speak are dropped too, as they may
        repeat it or name them.
        """

        def stays(event: Message) -> bool:
            return not is_by(event, people, until)

        self.forgotten |= {group.key[1] for group in self.answering} & {*people}
        self.queue = list(filter(stays, self.queue))
        self.answering = tuple(g for g in self.answering if all(map(stays, g.events)))
        self.unanswered = {
            key: late for key, late in self.unanswered.items() if all(map(stays, late.group.events))
        }
        self.queue_saved = False
        self.proposals = {by: act for by, act in self.proposals.items() if by not in people}
        self.languages.of = {by: c for by, c in self.languages.of.items() if by not in people}
        self.said.clear()
        self.prompts.forget(people)
        self.cue = None


# The live state of each assistant by its stable id, made at first use.
RUNTIMES: defaultdict[str, Runtime] = defaultdict(Runtime)
