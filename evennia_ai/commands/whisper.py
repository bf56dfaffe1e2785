"""Whispering: Evennia's command, with which an assistant also learns who else was whispered to."""

from typing import Any

from evennia import default_cmds

EvenniaWhisper: Any = default_cmds.CmdWhisper


class CmdWhisper(EvenniaWhisper):
    """
    Speak privately as your character to another

    Usage:
      whisper <character> = <message>
      whisper <char1>, <char2> = <message>

    Talk privately to one or more characters in your current location, without
    others in the room being informed. What is whispered to an assistant stays
    between it, you and whomever else you whispered to.
    """

    def func(self) -> None:
        """Whisper; while it is being heard the circle of the whisper stands on the caller."""
        self.caller.ndb.whispers_to = self._circle()
        try:
            super().func()
        finally:
            del self.caller.ndb.whispers_to

    def _circle(self) -> list[Any]:
        """Who is meant, as far as each name means exactly one."""
        names = {name.strip() for name in (self.lhs or "").split(",")} - {""}
        found = [self.caller.search(name, quiet=True) for name in sorted(names)]
        return [people[0] for people in found if len(people) == 1]
