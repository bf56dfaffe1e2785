"""Speaking unasked: reasons to, and what code asks before it spends a call on one.

A turn that nobody asked for may only speak, pose or do nothing: `agent_loop` drops all other calls
of its model.
"""

from dataclasses import dataclass

from evennia_ai.history.stored import Stored

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
