"""What the assistants' commands share."""

from typing import Any

from evennia import default_cmds

from evennia_ai.commands.lookup import Refusal, find_assistant
from evennia_ai.commands.show import Viewer, escaped
from evennia_ai.errors import AssistantError
from evennia_ai.history.audience import PUBLIC, STAFF
from evennia_ai.protocol import Assistant

MuxCommand: Any = default_cmds.MuxCommand


class AssistantCommand(MuxCommand):
    """A command about assistants.

    A subclass has a method for each switch, and `do` for the command without one. The caller
    sees the text of an `AssistantError` that they raise. An unknown switch is refused; Evennia
    would ignore it and run the command without one.
    """

    # Not plainly "AI": Evennia would show that category's index for `help ai`, not the command.
    help_category = "AI assistants"
    arg_regex = r"\s|/|$"
    locks = "cmd:perm(Admin)"
    # Switches by name. Those of `admin_switches`, an empty one for the command without a switch,
    # need the command's `admin` lock as well.
    switches_known: tuple[str, ...] = ()
    admin_switches: tuple[str, ...] = ()

    def func(self) -> None:
        """Run what the switch says."""
        self.viewer = Viewer(self.caller, self.session)
        try:
            getattr(self, f"do_{self._switch()}".rstrip("_"))()
        except AssistantError as error:
            self.viewer.tell(escaped(error))

    @property
    def audience(self) -> str:
        """What the caller may see: a game may open commands to others, private talk stays."""
        return STAFF if self.access(self.caller, "admin") else PUBLIC

    def _switch(self) -> str:
        """The full name of the one switch given, or an empty text, if the caller may use it."""
        given = [switch.lower() for switch in self.switches if switch] or [""]
        known, first = self.switches_known, given[0]
        found = [first] if first in ("", *known) else [s for s in known if s.startswith(first)]
        if len(given) > 1 or len(found) != 1:
            listed = ", ".join(f"/{switch}" for switch in known) or "none"
            raise Refusal(
                f"`{self.key}` has no switch `/{'/'.join(given)}`. Its switches: {listed}."
            )
        if found[0] in self.admin_switches and not self.access(self.caller, "admin"):
            raise Refusal(f"`{f'{self.key}/{found[0]}'.rstrip('/')}` is for admins.")
        return found[0]

    def assistant(self, name: str | None = None) -> Any:
        """The script of the assistant named left of the equals sign; the only one here if none."""
        return find_assistant(self.caller, self.lhs if name is None else name)

    def tunable(self, script: Assistant) -> Any:
        """The same script, if the caller may change this assistant.

        Raises:
            Refusal: If they may not.
        """
        body = script.obj
        if not (body.access(self.caller, "control") or body.access(self.caller, "edit")):
            raise Refusal(f"You may not change {body.key}: it belongs to somebody else.")
        return script

    def words(self, usage: str) -> str:
        """The text right of the equals sign.

        Raises:
            Refusal: If there is none; it shows the usage.
        """
        if not self.rhs:
            raise Refusal(f"Usage: {usage}")
        return str(self.rhs)
