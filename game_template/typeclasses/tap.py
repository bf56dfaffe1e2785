"""Barrels from which whoever keeps the bar draws drinks."""

from evennia import DefaultCharacter, create_object, search_tag
from typeclasses.objects import Object

MUGS = 12
CATEGORY = "tap"


class Tap(Object):
    """A barrel: who gets it draws a mug of ale from it, and the barrel stays where it is.

    Its lock `get` says who may draw; anybody else sees its Attribute `get_err_msg`. Its lock `give`
    lets everybody ask an assistant for ale. There are never more than `MUGS` mugs of one barrel.
    """

    def at_object_creation(self):
        """Let everybody ask for ale."""
        super().at_object_creation()
        self.locks.add("give:all()")

    def at_pre_get(self, getter, **kwargs):
        """Draw a mug into the hands of the getter."""
        mug = self._mug()
        if mug is None:
            getter.msg("The barrel is dry: all the mugs are in somebody's hands.")
        elif mug.move_to(getter, quiet=True, move_type="get"):
            getter.location.msg_contents(f"$You() $conj(draw) a {mug.key}.", from_obj=getter)
        return False

    def _mug(self):
        """Return a new mug; if there are enough, the oldest that nobody carries, or None."""
        mugs = sorted(search_tag(self._tag, category=CATEGORY), key=lambda mug: mug.id)
        if len(mugs) >= MUGS:
            left = (mug for mug in mugs if not isinstance(mug.location, DefaultCharacter))
            return next(left, None)
        return create_object(
            Object,
            key="mug of ale",
            aliases=["mug"],
            locks="get:all();give:all()",
            tags=[(self._tag, CATEGORY)],
            attributes=[("desc", "Brown ale in an earthenware mug, with two fingers of foam.")],
        )

    @property
    def _tag(self):
        return f"mug_of_{self.id}"
