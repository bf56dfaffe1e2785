"""Barrels and pots from which whoever keeps the bar fills mugs and bowls."""

from evennia import DefaultCharacter, create_object, search_tag
from typeclasses.objects import Object

MOST_FILLED = 12
CATEGORY = "tap"


class Tap(Object):
    """A barrel: who gets it draws a mug of ale from it, and the barrel stays where it is.

    Its lock `get` says who may draw; anybody else sees its Attribute `get_err_msg`. Its lock `give`
    lets everybody ask an assistant for ale. There are never more than `MOST_FILLED` mugs of one
    barrel.
    """

    serving = "mug of ale"
    vessel = "mug"
    verb = "draw"
    looks = "Brown ale in an earthenware mug, with two fingers of foam."

    def at_object_creation(self):
        """Let everybody ask for it."""
        super().at_object_creation()
        self.locks.add("give:all()")

    def at_pre_get(self, getter, **kwargs):
        """Fill a vessel in the hands of the getter."""
        filled = self._filled()
        if filled is None:
            getter.msg(f"It is empty: each {self.vessel} is in somebody's hands.")
        elif filled.move_to(getter, quiet=True, move_type="get"):
            getter.location.msg_contents(
                f"$You() $conj({self.verb}) a {filled.key}.", from_obj=getter
            )
        return False

    def _filled(self):
        """Return a new one; if there are enough, the oldest that nobody carries, or None."""
        filled = sorted(search_tag(self._tag, category=CATEGORY), key=lambda each: each.id)
        if len(filled) >= MOST_FILLED:
            left = (each for each in filled if not isinstance(each.location, DefaultCharacter))
            return next(left, None)
        return create_object(
            Object,
            key=self.serving,
            aliases=[self.vessel],
            locks="get:all();give:all()",
            tags=[(self._tag, CATEGORY)],
            attributes=[("desc", self.looks)],
        )

    @property
    def _tag(self):
        return f"{self.vessel}_of_{self.id}"


class Pot(Tap):
    """A pot, from which bowls of soup are filled in the same way."""

    serving = "bowl of soup"
    vessel = "bowl"
    verb = "fill"
    looks = "Barley soup with leeks, a heel of bread laid across the bowl."
