"""Errands: words that somebody leaves with an assistant for a person, who gets them once.

They are delivered word for word, by code and without a model.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import Refusal, ToolError
from evennia_ai.feature import Feature, Leaving
from evennia_ai.history.audience import private
from evennia_ai.history.messages import ASKER, FOR, Message, Speaker
from evennia_ai.history.stored import Stored
from evennia_ai.language.times import EXAMPLES, due
from evennia_ai.language.words import parted
from evennia_ai.turns.assistant import Assistant
from evennia_ai.turns.tools.base import Text, Tool, ToolContext

NAME, OPEN = "errands", "open"
# Characters of an errand, open ones of each author, and how long one waits.
TEXT_CHARS, MOST_OPEN, MOST_DAYS = 200, 5, 30
DAY_S = 86_400.0
_ME = ("", "me")


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
class OpenErrands(Stored):
    """All open errands of one assistant, oldest first, and the number of the next."""

    errands: tuple[Errand, ...] = ()
    next: int = 1


def open_errands(life: Assistant) -> OpenErrands:
    """What an assistant still has to deliver."""
    return life.records(NAME, OpenErrands).get(OPEN) or OpenErrands()


def concerning(life: Assistant, people: Collection[str]) -> list[Errand]:
    """The open errands by and for people (stable ids)."""
    errands = open_errands(life).errands
    return [each for each in errands if each.by.id in people or each.to.id in people]


def drop(life: Assistant, ids: Collection[str]) -> None:
    """Drop errands by their ids."""
    before = open_errands(life)
    after = replace(before, errands=tuple(e for e in before.errands if e.id not in ids))
    if after != before:
        life.records(NAME, OpenErrands).set(OPEN, after)


def take(
    life: Assistant, by: Speaker, to: Speaker, text: str, when: str = "", *, is_exact: bool = False
) -> Errand:
    """Keep words of one person for another, or for themselves.

    Args:
        life: Who keeps them.
        by: Who leaves them.
        to: Who gets them.
        text: The words.
        when: A time as `language.times` reads it, on the game's clock behind the word ``game``;
            empty for when the person comes.
        is_exact: Whether `when` must be a time; else other words tell that the person comes.

    Returns:
        The errand. Raises `Refusal` for words, a time or a number that cannot be.
    """
    words, when = " ".join(text.split()), when.strip()
    if not words or len(words) > TEXT_CHARS:
        raise Refusal(f"Words to deliver have 1 to {TEXT_CHARS} characters.")
    seconds, is_game = 0.0, when.lower().startswith("game ")
    now = life.game.clock(is_game, life.now())
    at = due(re.sub("^game ", "", when, flags=re.IGNORECASE), now)
    is_timed = at is not None or any(map(str.isdigit, when))
    if by.id == to.id and not is_timed:
        raise Refusal(f"Say when you want to be reminded: {EXAMPLES}.")
    if is_timed or (when and is_exact):
        if at is None:
            raise Refusal(f"`{when[:40]}` is no time. Times: {EXAMPLES}, game 21:00.")
        seconds = at.timestamp()
        if not 0 < seconds - now.timestamp() <= MOST_DAYS * DAY_S:
            raise Refusal(f"That time must lie within the next {MOST_DAYS} days.")
    before = open_errands(life)
    own = sum(each.by.id == by.id for each in before.errands)
    if own >= MOST_OPEN:
        raise Refusal(
            f"{own} errands of {by.key} are open already, the most there may be. "
            "One has to be delivered or withdrawn first."
        )
    is_game = is_game and seconds > 0
    errand = Errand(f"e{before.next}", by, to, words, life.now(), seconds, is_game)
    after = OpenErrands((*before.errands, errand), before.next + 1)
    life.records(NAME, OpenErrands).set(OPEN, after)
    life.audit("errand", act="taken", errand=errand.id, by=by.id)
    return errand


class TellLater(Tool):
    """Take a message, in the words said, or a reminder."""

    name = "tell_later"
    parameters = {
        "text": Text(limit=TEXT_CHARS),
        "to": Text(required=False, limit=120),
        "when": Text("in 2h, tomorrow 9:00; else when they come.", required=False, limit=60),
    }
    lock = "tool:perm(Player)"
    serves = "asked"
    concludes = tells_nothing_new = True

    def run(self, ctx: ToolContext, text: str, to: str = "", when: str = "") -> str:
        """Keep it, if the one who asks typed these words in a row in this turn.

        What somebody else gets is what was typed, to the end of the sentence: no word of it that
        may turn its sense is left out.
        """
        if ctx.asker is None:
            raise ToolError("nobody asked for this; speak, pose or call noop")
        by = Speaker(ctx.asker_name(), ctx.asker)
        if to.strip().lower() in (*_ME, by.key.lower(), by.id):
            to = by.id
        lines = ctx.own_lines(posed=False)
        for words in (text, to):
            if words != by.id and not any(parted(lines, words)):
                raise ToolError(f"{by.key} did not say `{words[:60]}`; use their own words")
        _, words, _ = parted(lines, text)
        person, time = by, "when they come"
        if to != by.id:
            person = ctx.game.player_called(to)
            words = ctx.typed(text, TEXT_CHARS, to)
            if not words:
                raise ToolError(f"{by.key} named {to} in another sentence; have it said in one")
        errand = take(ctx.script, by, person, words, when)
        if errand.due:
            time = "at that time"
        return f"Kept; {person.key} gets these words {time}. You need not do it: {errand.text}"


class Errands(Feature):
    """Takes words for people and delivers them."""

    name = NAME
    tools = (TellLater,)
    commands = ("evennia_ai.features.errands.command.CmdAIErrand",)

    @inlineCallbacks
    def due(self, life: Assistant) -> Steps[str]:
        """Deliver to those who can be reached now; wakes the assistant for it."""
        for errand in open_errands(life).errands:
            if not _is_due(life, errand):
                if errand.is_over(life.now()):
                    drop(life, [errand.id])
                    life.audit("errand", act="expired", errand=errand.id, by=errand.by.id)
                continue
            text = yield life.judge_said(errand.text, "whisper", True)
            if errand not in open_errands(life).errands or not _is_due(life, errand):
                continue  # withdrawn, or they have left meanwhile
            if text and life.state.mode == "sleep":
                life.wake()
            _hand_over(life, errand, text)
        return ""

    def forget(self, life: Assistant, people: Collection[str], plan: Leaving) -> None:
        """Drop those by them and for them."""
        drop(life, [errand.id for errand in concerning(life, people)])

    def export(
        self, life: Assistant, people: Collection[str], may_know: Callable[[str], bool]
    ) -> list[Any]:
        """Those by them and for them."""
        return [errand.to_dict() for errand in concerning(life, people)]


def _is_due(life: Assistant, errand: Errand) -> bool:
    """Whether an errand's time has come, and who it is for can be reached."""
    if errand.due > life.game.clock(errand.game, life.now()).timestamp():
        return False
    return life.game.reaches(errand.to.id, anywhere=errand.due > 0)


def _hand_over(life: Assistant, errand: Errand, text: str) -> None:
    """Say it, and note that it was said; or neither."""
    by, to = errand.by, errand.to
    kind = "errand"
    if by.id == to.id:
        kind = "reminder"
    words = life.own_notice(kind, to.id, name=by.key, text=text)
    said = Message(
        "assistant",
        words,
        speaker=Speaker(life.obj.key, life.obj.stable_id),
        audience=private([by.id, to.id]),
        channel="whisper",
        metadata={ASKER: by.id, FOR: to.id},  # so that it goes when one of them is forgotten
    )
    try:
        with life.store.transaction():
            drop(life, [errand.id])
            if text:  # else moderation refused it, which is logged
                life.history.append([said])
                try:
                    life.game.tell(to.id, words)
                except ToolError:  # nothing was said
                    raise
                except Exception as error:  # noqa: BLE001 - of a hook: it was said
                    life.log_error(f"delivering errand {errand.id}", error)
    except ToolError as error:
        life.log(f"errand {errand.id} is kept: {error}", warning=True)
        return
    life.audit("errand", act="delivered" if text else "refused", errand=errand.id, by=by.id)
