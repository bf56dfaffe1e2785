"""Bonds: what an assistant feels for people, as events with sources that code adds up.

The model never sets a bond: game code, staff and gifts note events, and talk adds a point now and
then, within limits. Who may know an event is said by its audience, so a turn knows a bond by what
its own audience may know of it alone.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from evennia_ai.errors import Refusal
from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.frames import one_line, quoted
from evennia_ai.history.messages import Speaker, new_id, utc_iso
from evennia_ai.history.pages import Store, records
from evennia_ai.history.stored import Stored

CATEGORY = "ai_bonds"
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
        source = f" ({self.source})" if self.source else f" ({self.by})"
        return f"{self.id} {utc_iso(self.at)[:10]} {self.points:+d} {self.why}{source}"


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
        feeling = "wary of" if level == "wary" else f"{level} to"
        return f"You are {feeling} {one_line(name)}; newest reason: {quoted(self.events[-1].why)}"


def mood_line(bonds: Collection[Bond], now: float) -> str:
    """What a prompt says of a mood: the newest event of the last hour; empty if there is none."""
    newest = [(bond.events[-1].at, bond) for bond in bonds if bond.events]
    at, bond = max(newest, key=lambda pair: pair[0], default=(-inf, Bond()))
    if now - at >= MOOD_S:
        return ""
    event = bond.events[-1]
    mood = "pleased" if event.points > 0 else "upset"
    return f"Your mood: {mood}, because of {one_line(bond.name)}: {quoted(event.why)}"


class Bonds:
    """The bonds of one assistant, by stable id of the person.

    Args:
        store: The script's Attributes.
        now: Seconds since the epoch.
        who: Name and stable id of a person; game code names people by their objects.
    """

    def __init__(
        self,
        store: Store,
        now: Callable[[], float] = time.time,
        who: Callable[[Any], Speaker] = lambda person: person,
    ):
        self._store, self._now, self._who = store, now, who
        self._bonds = records(store, CATEGORY, Bond)

    def all(self) -> Mapping[str, Bond]:
        """All bonds, by stable id."""
        return self._bonds.all()

    def get(self, person: str) -> Bond:
        """The bond with somebody, by stable id."""
        return self._bonds.get(person) or Bond()

    def note(
        self,
        person: Any,
        points: int,
        why: str,
        source: str = "",
        audience: str = PUBLIC,
        by: str = GAME,
    ) -> Feeling:
        """Note an event of a bond.

        Args:
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
            raise Refusal(
                f"An event has points from -{MOST_POINTS} to {MOST_POINTS}, and a reason."
            )
        them = self._who(person)
        event = Feeling(new_id("b"), self._now(), int(points), reason, source, audience, by)
        self._bonds.set(them.id, self.get(them.id).with_event(event, them.key))
        return event

    def note_talk(self, person: Any, is_better: bool, why: str, source: str, audience: str) -> None:
        """Note a point for what somebody said; `Refusal` where talk has moved the bond enough."""
        now, point = self._now(), 1 if is_better else -1
        talk = [e for e in self.get(self._who(person).id).events if e.by == TALK]
        recent = [now - event.at for event in talk if now - event.at < DAY_S]
        if recent and min(recent) < SCENE_S:
            raise Refusal("you have noted what you feel in this scene; go on talking")
        if len(recent) >= TALK_A_DAY or abs(sum(e.points for e in talk) + point) > TALK_IN_ALL:
            raise Refusal("words alone move you no further for now; go on talking")
        self.note(person, point, why, source, audience, TALK)

    def note_gift(self, person: Any, what: str, audience: str) -> None:
        """Note a gift, once a day of each person."""
        gifts = [e.at for e in self.get(self._who(person).id).events if e.by == GIFT]
        if all(self._now() - at >= DAY_S for at in gifts):
            self.note(person, GIFT_POINTS, f"gave you {what}", "", audience, GIFT)

    def drop(self, event_id: str) -> bool:
        """Take an event back, by its id; returns whether there was one."""
        for person, bond in self.all().items():
            left = bond.only(lambda event: event.id != event_id)
            if left != bond:
                self._put(person, left)
                return True
        return False

    def forget(
        self,
        people: Collection[str],
        gone: Collection[str],
        takes: Callable[[str], bool] = lambda text: False,
    ) -> None:
        """Drop the bonds with people (stable ids), and events that rest on them or on `gone`.

        `takes` says of a reason whether it goes, whatever it rests on.
        """
        theirs = {*people, *gone}
        for person, bond in self.all().items():
            left = bond.only(lambda e: e.source not in theirs and not takes(e.why))
            left = Bond() if person in people else left
            if left != bond:
                self._put(person, left)

    def _put(self, person: str, bond: Bond) -> None:
        if bond.events:
            self._bonds.set(person, bond)
        else:
            self._store.delete(person, CATEGORY)
