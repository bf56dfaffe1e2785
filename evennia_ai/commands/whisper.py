"""Whispering: Evennia's command, with which an assistant also learns who else was whispered to."""

from typing import Any

from evennia import default_cmds

EvenniaWhisper: Any = default_cmds.CmdWhisper


class CmdWhisper(EvenniaWhisper):
    """
    say something only some people here hear

    Usage:
      whisper <name> = <message>
      whisper <name>, <name>, ... = <message>

    Nobody else in the room learns of it. What is whispered to an assistant
    stays between it, you and whomever else you whispered to.
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
