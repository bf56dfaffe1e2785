"""Bonds: what an assistant feels for people, as events with sources that code adds up.

The model never sets a bond: game code, staff and gifts note events, and talk adds a point now and
then, within limits. Who may know an event is said by its audience, so a turn knows a bond by what
its own audience may know of it alone.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

from evennia_ai.errors import Refusal, ToolError
from evennia_ai.feature import Feature, Leaving
from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.messages import Message, Speaker, new_id, one_line, quoted, utc_iso
from evennia_ai.history.stored import Stored
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.rag_memory.seen import Seen
from evennia_ai.turns.assistant import Assistant
from evennia_ai.turns.runtime import Cue
from evennia_ai.turns.tools.base import Text, Tool, ToolContext

NAME = "bonds"
GAME, GIFT, STAFF_NOTE, TALK = "game", "gift", "staff", "talk"
# Points of one event, characters of its reason, and events of a bond that are kept apart.
MOST_POINTS, WHY_CHARS, EVENTS_KEPT = 20, 120, 40
# Talk alone never makes a friend: points a scene, a day, and in all.
SCENE_S, TALK_A_DAY, TALK_IN_ALL = 600.0, 3, 14
GIFT_POINTS, DAY_S = 2, 86_400.0
# An event counts half after this time; and it makes a mood for an hour.
HALF_LIFE_S, MOOD_S = 90 * DAY_S, 3600.0
# The level below each sum.
LEVELS = ((-49, "hostile"), (-14, "wary"), (15, "neutral"), (50, "friendly"), (inf, "close"))
NEUTRAL, LIKED = "neutral", ("friendly", "close")
_CHANGES = {"better": 1, "worse": -1}


@dataclass(frozen=True, slots=True)
class Feeling(Stored):
    """One event of a bond."""

    id: str
    at: float  # when it was, seconds since the epoch
    points: int  # how much it counts, for better or worse
    why: str = ""  # in a few words
    source: str = ""  # the message, quest or person that it rests on
    audience: str = PUBLIC  # who may know of it
    by: str = GAME  # who noted it: ``game``, ``staff``, ``gift`` or ``talk``

    @property
    def line(self) -> str:
        """Id, day, points, reason and source, for people."""
        day, source = utc_iso(self.at)[:10], self.source or self.by
        return f"{self.id} {day} {self.points:+d} {self.why} ({source})"


@dataclass(frozen=True, slots=True)
class Bond(Stored):
    """What is felt for one person, whose name is that of the newest event; oldest event first."""

    name: str = ""
    events: tuple[Feeling, ...] = ()

    def points(self, now: float) -> int:
        """The sum of what its events still count; one ahead of the clock counts in full."""
        ages = ((each.points, max(0.0, now - each.at)) for each in self.events)
        return round(sum(points * float(0.5 ** (age / HALF_LIFE_S)) for points, age in ages))

    def level(self, now: float) -> str:
        """The sum as a word."""
        points = self.points(now)
        return next(word for most, word in LEVELS if points < most)

    def with_event(self, event: Feeling, name: str) -> "Bond":
        """With one more event; of too many, the two oldest of one kind and audience become one."""
        events = [*self.events, event]
        while len(events) > EVENTS_KEPT:
            first = {(each.audience, each.by): each for each in reversed(events)}
            new = next((e for e in events if first[e.audience, e.by] is not e), events[0])
            old = first[new.audience, new.by]
            if old is not new:
                merged = replace(new, points=old.points + new.points, why="earlier", source="")
                events[events.index(new)] = merged
            events.remove(old)
        return Bond(name, tuple(events))

    def only(self, keeps: Callable[[Feeling], bool]) -> "Bond":
        """The bond with some of its events."""
        return replace(self, events=tuple(filter(keeps, self.events)))

    def line(self, name: str, now: float) -> str:
        """What a prompt says of it, if it is more than neutral: the level, the newest reason."""
        level = self.level(now)
        if level == NEUTRAL or not self.events:
            return ""
        feeling = {"wary": "wary of"}.get(level, f"{level} to")
        return f"You are {feeling} {one_line(name)}; newest reason: {quoted(self.events[-1].why)}"


def mood_line(bonds: Collection[Bond], now: float) -> str:
    """What a prompt says of a mood: the newest event of the last hour; empty if there is none."""
    newest = [(bond.events[-1].at, bond) for bond in bonds if bond.events]
    at, bond = max(newest, key=lambda pair: pair[0], default=(-inf, Bond()))
    if now - at >= MOOD_S:
        return ""
    event, mood = bond.events[-1], "upset"
    if event.points > 0:
        mood = "pleased"
    return f"Your mood: {mood}, because of {one_line(bond.name)}: {quoted(event.why)}"


def all_bonds(life: Assistant) -> Mapping[str, Bond]:
    """All bonds of an assistant, by stable id of the person."""
    return life.records(NAME, Bond).all()


def bond_with(life: Assistant, person: str) -> Bond:
    """The bond with somebody, by stable id."""
    return life.records(NAME, Bond).get(person) or Bond()


def seen_bond(life: Assistant, seen: Seen, person: str) -> Bond:
    """What is felt for somebody (stable id), as far as the viewer may know why."""
    trusts = seen.trusts(person)
    return bond_with(life, person).only(
        lambda event: seen.shows(event.audience) and (trusts or event.by != TALK)
    )


def note_event(
    life: Assistant,
    person: Any,
    points: int,
    why: str,
    source: str = "",
    audience: str = PUBLIC,
    by: str = GAME,
) -> Feeling:
    """Note an event of a bond.

    Args:
        life: The assistant.
        person: A character of the game.
        points: From -20 to 20, and not 0.
        why: A few words, as ``brought the lost ring``; a prompt quotes them.
        source: What it rests on, as ``quest:ring``.
        audience: Who may know of it: ``public``, ``staff``, or those that
            `history.audience.private` names.
        by: Who notes it.

    Returns:
        The event. Raises `Refusal` for other points, or no reason.
    """
    reason = " ".join(why.split())[:WHY_CHARS]
    if not points or abs(points) > MOST_POINTS or int(points) != points or not reason:
        raise Refusal(f"An event has points from -{MOST_POINTS} to {MOST_POINTS}, and a reason.")
    them = life.who(person)
    event = Feeling(new_id("b"), life.now(), int(points), reason, source, audience, by)
    bond = bond_with(life, them.id).with_event(event, them.key)
    life.records(NAME, Bond).set(them.id, bond)
    return event


def note_talk(
    life: Assistant, person: Any, point: int, why: str, source: str, audience: str
) -> None:
    """Note a point, 1 or -1, for what somebody said; `Refusal` where talk has done enough."""
    now = life.now()
    talk = [e for e in bond_with(life, life.who(person).id).events if e.by == TALK]
    recent = [now - event.at for event in talk if now - event.at < DAY_S]
    if recent and min(recent) < SCENE_S:
        raise Refusal("you have noted what you feel in this scene; go on talking")
    if len(recent) >= TALK_A_DAY or abs(sum(e.points for e in talk) + point) > TALK_IN_ALL:
        raise Refusal("words alone move you no further for now; go on talking")
    note_event(life, person, point, why, source, audience, TALK)


def drop(life: Assistant, event_id: str) -> bool:
    """Take an event back, by its id; returns whether there was one."""
    return _keep_only(life, lambda person, event: event.id != event_id)


def _keep_only(life: Assistant, keeps: Callable[[str, Feeling], bool]) -> bool:
    """Drop the other events, each told with its person; returns whether there were any."""
    changed = False
    for person, bond in all_bonds(life).items():
        left = bond.only(partial(keeps, person))
        if left == bond:
            continue
        changed = True
        if left.events:
            life.records(NAME, Bond).set(person, left)
        else:
            life.records(NAME, Bond).delete(person)
    return changed


class NoteFeeling(Tool):
    """Like the one who asks a little better, or worse, for what they say now."""

    name = "note_feeling"
    parameters = {
        "change": Text("better or worse.", limit=20),
        "because": Text(limit=WHY_CHARS),
        "person": Text(required=False, limit=120),
    }
    lock = "tool:perm(Player)"
    serves = "met"
    concludes = tells_nothing_new = True

    def run(self, ctx: ToolContext, change: str, because: str, person: str = "") -> str:
        """A point for what the one who asks said in this turn, within the limits of talk."""
        if ctx.asker is None or not ctx.own_lines():
            raise ToolError("nobody speaks to you; call noop")
        meant, here = ctx.game.identify(person or ctx.asker), ctx.game.identify(ctx.asker)
        if person and (meant is None or meant.id != ctx.asker):
            raise ToolError("this is for what the one who asks says themselves; call noop")
        if here is not None and here.id != ctx.asker:
            raise ToolError("you cannot tell who wears this mask; call noop")
        if change.lower() not in _CHANGES:
            raise ToolError("`change` must be better or worse")
        them = Speaker(ctx.asker_name(), ctx.asker)
        source = ctx.source_message_ids[-1]
        note_talk(ctx.script, them, _CHANGES[change.lower()], because, source, ctx.audience)
        return "Noted. It shows in how you treat them."


class Bonds(Feature):
    """Feels something for people, and shows it."""

    name = NAME
    tools = (NoteFeeling,)
    commands = ("evennia_ai.features.bonds.command.CmdAIBond",)

    def lines(
        self, life: Assistant, turn: TurnRequest, present: Mapping[str, str]
    ) -> Iterable[str]:
        """What is felt for those present, and the mood."""
        seen, now = life.seen(turn.audience, trusted=True), life.now()
        bonds = {person: seen_bond(life, seen, person) for person in present}
        lines = [bonds[person].line(name, now) for person, name in present.items()]
        return filter(None, [*lines, mood_line(bonds.values(), now)])

    def heard(self, life: Assistant, lines: Sequence[Message]) -> None:
        """Take the coming of somebody whom it likes, as all may know, for a reason to speak."""
        seen, now = life.seen(PUBLIC, trusted=True), life.now()
        for line in lines:
            if line.channel != "arrive":
                continue
            if seen_bond(life, seen, line.speaker_id).level(now) in LIKED:
                life.runtime.cue = Cue(f"{line.speaker_name}, whom you like, has come", now)

    def given(self, life: Assistant, giver: Any, what: str, audience: str) -> None:
        """Note a gift, once a day of each person."""
        gifts = [e.at for e in bond_with(life, life.who(giver).id).events if e.by == GIFT]
        if all(life.now() - at >= DAY_S for at in gifts):
            note_event(life, giver, GIFT_POINTS, f"gave you {what}", "", audience, GIFT)

    def forget(self, life: Assistant, people: Collection[str], plan: Leaving) -> None:
        """Drop the bonds with people, and events that rest on them or on what goes."""
        theirs = {*people, *plan.gone}
        _keep_only(
            life,
            lambda person, event: (
                person not in people
                and event.source not in theirs
                and not plan.holds_own(event.why)
            ),
        )

    def export(
        self, life: Assistant, people: Collection[str], may_know: Callable[[str], bool]
    ) -> list[Any]:
        """The events of the bonds with them."""
        events = (event for person in people for event in bond_with(life, person).events)
        return [event.to_dict() for event in events if may_know(event.audience)]
