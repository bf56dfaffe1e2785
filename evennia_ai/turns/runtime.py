"""What an assistant holds in memory while the server runs, apart from its database objects.

Evennia may drop a Script from its cache with all that hangs on it; a lock kept there would be
lost in mid-turn. So the turn lock, the queue of heard events and the counters live here.
"""

import json
import random
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.python.failure import Failure

from evennia_ai.llm_interaction.budget import EVENTS_KEPT, TokenBudget
from evennia_ai.turns.heard import Heard
from evennia_ai.turns.initiative import Cue
from evennia_ai.turns.options import AssistantConfig
from evennia_ai.turns.tools.asking import Proposal

if TYPE_CHECKING:
    from evennia_ai.sleep.compaction.compact import Compaction

T = TypeVar("T")

# Own lines that a reply must not repeat.
LINES_REMEMBERED = 8
# Prompts that are kept to be looked at, packed: newest turns of an assistant.
PROMPTS_KEPT = 8
# Time in which the same error is not logged again.
REPEATED_S = 600.0
# Most seconds between two ticks of an assistant with nothing to do: with a thousand of them, ticks
# take about a twentieth of a processor. Each has its own, so that those started together do not
# tick together.
REST_S = (24.0, 36.0)
# A clock that is corrected by less than this was not set back.
_SET_BACK_S = 1.0


@dataclass
class Runtime(Heard):
    """One assistant's live state, besides what it heard. Times are seconds since the epoch."""

    fixed_tokens: int = 0  # of system text, tools and ledger in the last prompt
    last_turn_at: float = 0.0
    last_error: str = ""  # the last trouble, and when it was
    last_error_at: float = 0.0
    error_passes: bool = False  # whether a turn that succeeds clears it
    compaction_requested: bool = False
    # For which configuration and limit it was checked whether there is room to talk.
    room_for: tuple[AssistantConfig, int] | None = None
    # How many automatic compactions failed in a row, and when the next may be tried.
    compaction_waits: tuple[int, float] = (0, 0.0)
    counts: "Counter[str]" = field(default_factory=Counter)  # ticks, turns, errors and the like
    # The newest token budgets; `Assistant.budgets` reads and writes them.
    budgets: "deque[TokenBudget]" = field(default_factory=lambda: deque(maxlen=EVENTS_KEPT))
    left_out: frozenset[str] = frozenset()  # ids of live messages the last prompt had no room for
    # The compaction in the background, if one runs, and what fired it.
    behind: "tuple[Deferred[Any], str] | None" = None
    prepared: "Compaction | None" = None  # a night's next, with what was extracted for it
    compacting: str = ""  # what fired the one whose summaries are being made
    extracts: bool = False  # whether no model is asked for them
    # How often the owed summaries were tried in vain, and when to try again.
    better_tries: tuple[int, float] = (0, 0.0)
    # The prompts of the newest turns, packed, with the time of their budget.
    prompts: "deque[tuple[float, bytes]]" = field(
        default_factory=lambda: deque(maxlen=PROMPTS_KEPT)
    )
    # The newest lines it spoke: audience, who was answered, and the words.
    said: "deque[tuple[str, str | None, str]]" = field(
        default_factory=lambda: deque(maxlen=LINES_REMEMBERED)
    )
    called: IDelayedCall | None = None  # the turn that is about to begin, as somebody spoke to it
    language: str = ""  # code of the one that was heard last
    trouble_shown_at: float = float("-inf")  # when it showed last that no model answers
    # When it showed last that it answers no more for a while, by groups' keys.
    declined: dict[tuple[str, str], float] = field(default_factory=dict)
    # When moderation refused a whole reply last, and the turn's audience.
    refused: tuple[float, str] | None = None
    proposals: dict[str, Proposal] = field(
        default_factory=dict
    )  # acts that wait for a yes, by asker
    notes: dict[str, "deque[float]"] = field(
        default_factory=dict
    )  # times of them, by who caused them
    told_enough: dict[str, float] = field(default_factory=dict)  # when they last were, by person
    rest_s: float = field(
        default_factory=lambda: random.uniform(*REST_S)
    )  # most, with nothing to do
    company_at: float = float("-inf")  # when a player was last near, at a tick
    cue: Cue | None = None  # the newest reason to speak unasked that no turn has taken
    stop: tuple[str, float] | None = None  # the entry of its routine that holds, and since when
    stop_told: bool = False  # whether it has excused itself for that entry
    ends: bool = False  # whether the server stops: what is heard from now on is saved at once
    cannot_store: bool = False  # whether the last tick could not write into the database
    logged: dict[str, float] = field(default_factory=dict)  # when each error was, monotonic clock
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

    def keep_prompt(self, at: float, sent: Sequence[dict[str, Any]]) -> None:
        """Keep the messages and tools of a prompt, by the time of its budget, in memory alone."""
        text = json.dumps(sent, ensure_ascii=False, default=str)
        self.prompts.append((at, zlib.compress(text.encode("utf-8", "replace"), 1)))

    def prompt_of(self, at: float) -> list[dict[str, Any]]:
        """The messages and tools of that prompt; empty if it is not kept any more."""
        packed = next((packed for then, packed in self.prompts if then == at), None)
        return [] if packed is None else list(json.loads(zlib.decompress(packed)))

    def see_clock(self, now: float) -> None:
        """If the clock was set back, let nothing wait for a time that was close by before."""
        if now < self._last_seen_at - _SET_BACK_S:
            self.last_turn_at = 0.0
            self.last_heard_at = min(self.last_heard_at, now)
            self.company_at = min(self.company_at, now)
            self.last_spoke_at = min(self.last_spoke_at, now)
            self.player_spoke_at = min(self.player_spoke_at, now)
            self.trouble_shown_at = float("-inf")
            self.notes.clear()
            self.told_enough.clear()
            self.unanswered = {k: replace(late, due=now) for k, late in self.unanswered.items()}
        self._last_seen_at = now

    def quiet_s(self, now: float) -> float:
        """How long nobody has spoken, nor has it answered."""
        return now - max(self.last_spoke_at, self.last_turn_at)

    def forget(self, people: Collection[str], until: str) -> None:
        """Drop what these people (stable ids) said up to a message's id, and what it meant.

        The last lines spoken, the prompts and the reason to speak are dropped too, as they may
        repeat it or name them.
        """
        super().forget(people, until)
        self.said.clear()
        self.prompts.clear()
        self.cue = None

    def run_behind(self, function: Callable[[], Any], trigger: str) -> None:
        """Run a compaction beside the ticks; `stop_behind` cancels it. There must be none."""
        running: Deferred[Any] = Deferred()
        running.addCallback(lambda _: function())

        def done(result: T) -> T:
            if self.behind is not None and self.behind[0] is running:
                self.behind = None
            return result

        running.addBoth(done)
        self.behind = running, trigger
        running.callback(None)
        if self.behind is None:
            running.cancel()  # it was stopped while it began

    def stop_behind(self) -> bool:
        """Cancel the compaction in the background; returns whether there was one."""
        behind, self.behind = self.behind, None
        if behind is not None:
            behind[0].addErrback(_trap_cancelled)
            behind[0].cancel()
        return behind is not None


def _trap_cancelled(failure: Failure) -> Failure | None:
    return None if isinstance(failure.value, CancelledError) else failure


_runtimes: defaultdict[str, Runtime] = defaultdict(Runtime)


def runtime_for(script_id: str) -> Runtime:
    """The live state of the assistant with this stable id, made at first use."""
    return _runtimes[script_id]


def forget_runtime(script_id: str) -> None:
    """Drop the live state of a deleted assistant."""
    _runtimes.pop(script_id, None)
