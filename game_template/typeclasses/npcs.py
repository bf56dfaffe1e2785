"""Villagers, who need no model: they walk their rounds and do their work."""

import random

from evennia import TICKER_HANDLER
from typeclasses.characters import Character

ROUND_S = 40


class Villager(Character):
    """A character with a daily round, who works where others can see it.

    Attributes a builder may set on it:
        rounds (list of rooms): where the villager goes, in this order. Without it, it stays.
        doings (dict): lists of lines to show, by the tag of the room; ``""`` is any room.
            ``{name}`` in a line is the villager's name.
        greeting (str): the line to show when a player says its name; ``{other}`` is the player.
    """

    def at_object_creation(self):
        """Start the rounds. After a restart `start_rounds` does it."""
        super().at_object_creation()
        self.locks.add("get:false();puppet:perm(Builder)")
        self.start()

    def at_object_delete(self):
        """Stop the ticker before the object is deleted."""
        TICKER_HANDLER.remove(ROUND_S, self.at_round, idstring=_ticker_name(self), persistent=False)
        return super().at_object_delete()

    def start(self):
        """Start the rounds. Calling it again changes nothing."""
        TICKER_HANDLER.add(ROUND_S, self.at_round, idstring=_ticker_name(self), persistent=False)

    def at_round(self, *args, **kwargs):
        """Work, or sometimes walk on to the next place."""
        if self.location is None:
            return
        if random.random() < 0.3 and self.db.rounds:
            self._walk_on()
        else:
            self._work()

    def msg(self, text=None, from_obj=None, session=None, options=None, **kwargs):
        """Receive a message; greet a player who says the villager's name."""
        super().msg(text=text, from_obj=from_obj, session=session, options=options, **kwargs)
        if self._is_named_by(text, from_obj):
            line = self.db.greeting or "{name} nods to {other}."
            self._show(line.replace("{other}", from_obj.get_display_name(self)))

    def _is_named_by(self, text, from_obj):
        if not isinstance(text, tuple | list) or len(text) < 2 or not hasattr(from_obj, "location"):
            return False
        options = text[1] if isinstance(text[1], dict) else {}
        first_name = self.key.split()[0].lower()
        return (
            options.get("type") == "say"
            and from_obj is not self
            and from_obj.has_account
            and first_name in str(text[0]).lower()
        )

    def _walk_on(self):
        rooms = [room for room in self.db.rounds if room]
        if not rooms:
            return
        here = rooms.index(self.location) if self.location in rooms else -1
        self.move_to(rooms[(here + 1) % len(rooms)], quiet=False)

    def _work(self):
        doings = self.db.doings or {}
        names = self.location.tags.get(category="gilded_lantern", return_list=True) or []
        lines = [line for name in [*names, ""] if name is not None for line in doings.get(name, ())]
        if lines and any(thing.has_account for thing in self.location.contents):
            self._show(random.choice(lines))

    def _show(self, line):
        """Show a line without a speaker, so that no assistant takes it as addressed to it."""
        self.location.msg_contents(line.replace("{name}", self.key), exclude=[self])


def start_rounds():
    """Start the rounds of all villagers. Called at each start of the Server."""
    for villager in Villager.objects.all_family():
        villager.start()


def _ticker_name(villager):
    return f"rounds_{villager.id}"
