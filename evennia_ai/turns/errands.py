"""Errands: words that somebody leaves with an assistant for a person, who gets them once."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from evennia_ai.errors import Refusal
from evennia_ai.history.messages import Speaker
from evennia_ai.history.stored import Stored
from evennia_ai.language.times import EXAMPLES, due
from evennia_ai.protocol import Assistant

KEY = "errands"
# Characters of an errand, open ones of each author, and how long one waits.
TEXT_CHARS, MOST_OPEN, MOST_DAYS = 200, 5, 30
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Errand(Stored):
    """Words to be delivered."""

    id: str  # by which its author names it
    by: Speaker  # who leaves them
    to: Speaker  # who gets them
    text: str  # the words, as they were given
    at: float  # when they were given, seconds since the epoch
    # When they are delivered, at the earliest, in seconds of their clock; 0 where they wait
    # until the person comes to the assistant.
    due: float = 0.0
    game: bool = False  # whether that clock is the game's own

    def is_over(self, now: float) -> bool:
        """Whether it has waited too long; one that is due comes first."""
        return now - self.at > (MOST_DAYS + 1) * DAY_S


@dataclass(frozen=True, slots=True)
class Errands(Stored):
    """All open errands of one assistant, oldest first, and the number of the next."""

    errands: tuple[Errand, ...] = ()
    next: int = 1

    def with_errand(self, errand: Errand) -> "Errands":
        """With one more, under the next id; `Refusal` if its author has enough."""
        own = [each for each in self.errands if each.by.id == errand.by.id]
        if len(own) >= MOST_OPEN:
            raise Refusal(
                f"{len(own)} errands of {errand.by.key} are open already, the most there may be. "
                "One has to be delivered or withdrawn first."
            )
        return Errands((*self.errands, replace(errand, id=f"e{self.next}")), self.next + 1)

    def concerning(self, people: Collection[str]) -> list[Errand]:
        """Those by and for these people (stable ids)."""
        return [e for e in self.errands if e.by.id in people or e.to.id in people]

    def without(self, ids: Collection[str]) -> "Errands":
        """Without these errands."""
        return replace(self, errands=tuple(e for e in self.errands if e.id not in ids))


def take(script: Assistant, by: Speaker, to: Speaker, text: str, when: str = "") -> Errand:
    """Keep words of one person for another, or for themselves.

    Args:
        script: Who keeps them.
        by: Who leaves them.
        to: Who gets them.
        text: The words.
        when: A time as `language.times` reads it, on the game's clock behind the word ``game``;
            empty for when the person comes.

    Returns:
        The errand. Raises `Refusal` for words, a time or a number that cannot be.
    """
    words, when = " ".join(text.split()), when.strip()
    if not words or len(words) > TEXT_CHARS:
        raise Refusal(f"Words to deliver have 1 to {TEXT_CHARS} characters.")
    seconds, is_game = 0.0, when.lower().startswith("game ")
    now = script.game.clock(is_game, script.now())
    at = due(when[5:] if is_game else when, now) if when else None
    if at or any(map(str.isdigit, when)):  # other words tell that somebody comes
        if at is None:
            raise Refusal(f"`{when[:40]}` is no time. Times: {EXAMPLES}, game 21:00.")
        seconds = at.timestamp()
        if not 0 < seconds - now.timestamp() <= MOST_DAYS * DAY_S:
            raise Refusal(f"That time must lie within the next {MOST_DAYS} days.")
    elif by.id == to.id:
        raise Refusal(f"Say when you want to be reminded: {EXAMPLES}.")
    errands = script.state.errands.with_errand(
        Errand("new", by, to, words, script.now(), seconds, is_game and seconds > 0)
    )
    script.state.errands = errands
    script.audit("errand", act="taken", errand=errands.errands[-1].id, by=by.id)
    return errands.errands[-1]
