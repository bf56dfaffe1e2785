"""Speaking unasked: reasons to, and what code asks before it spends a call on one.

A turn that nobody asked for may only speak, pose or do nothing: `agent_loop` drops all other calls
of its model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evennia_ai.history.stored import Stored
from evennia_ai.llm_interaction.values import OFFLINE_MODEL

if TYPE_CHECKING:
    from evennia_ai.protocol import Assistant

# It speaks unasked only when nobody has spoken for this long, and to players who did something in
# the last ten minutes.
QUIET_S, IDLE_S = 120.0, 600.0
# A reason is of use for this long; and most characters of one.
CUE_S, CUE_CHARS = 300.0, 300
# Lines in a row that nobody answers, most; and the share of a spend limit for such turns.
MOST_UNANSWERED, SPEND_SHARE = 2, 0.5
HOUR_S = 3600.0
QUIET = "it has been quiet here for a while"


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
        is_answered = bool(self.at) and spoke_at > self.at[-1]
        # The newest stays: what nobody answers then is still not answered.
        at = tuple(each for each in self.at if 0 <= now - each < HOUR_S or each == self.at[-1])
        return Used(at, 0 if is_answered else self.unanswered)


def lately(script: "Assistant") -> Used:
    """What counts now of how often it spoke unasked."""
    return script.state.unasked.since(script.now(), script.runtime.player_spoke_at)


# Why nobody speaks unasked, and what must hold that it does; in the order in which it is asked.
RULES: tuple[tuple[str, Callable[["Assistant"], bool]], ...] = (
    ("its option `initiative` is 0", lambda s: s.config.initiative > 0),
    ("it is on the offline model", lambda s: s.model_name != OFFLINE_MODEL),
    ("the window of its model is too small", lambda s: not s.limits().only_talks),
    ("it is switched off or asleep", lambda s: s.enabled and s.state.mode == "awake"),
    ("no player who is not idle is here", lambda s: bool(s.game.company(IDLE_S))),
    ("somebody spoke in the last two minutes", lambda s: s.runtime.quiet_s(s.now()) >= QUIET_S),
    (
        "an assistant spoke unasked here in the last two minutes",
        lambda s: not 0 <= s.now() - s.game.manners.cued_at < QUIET_S,
    ),
    (
        "it has spoken unasked often enough for this hour",
        lambda s: sum(0 <= s.now() - at < HOUR_S for at in lately(s).at) < s.config.initiative,
    ),
    (
        "nobody answered its last two lines; it waits until a player speaks",
        lambda s: lately(s).unanswered < MOST_UNANSWERED,
    ),
    # The last, as it asks the database.
    ("half of a spend limit is used up", lambda s: s.spend.reached(share=SPEND_SHARE) is None),
)


def why_not(script: "Assistant") -> str:
    """Why an assistant does not speak unasked now, in words; empty if it may."""
    return next((why for why, holds in RULES if not holds(script)), "")
