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

    A subclass has a method for each switch, and `do` for none. What they raise as
    `AssistantError` is told to the caller as it stands. A switch that does not exist is refused;
    Evennia would ignore it and do what is done without.
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
        """The whole name of the one switch given, or an empty text, if the caller may use it."""
        found = self._found_switch()
        if found in self.admin_switches and not self.access(self.caller, "admin"):
            raise Refusal(f"`{f'{self.key}/{found}'.rstrip('/')}` is for admins.")
        return found

    def _found_switch(self) -> str:
        given = [switch.lower() for switch in self.switches if switch]
        if not given:
            return ""
        known = self.switches_known
        found = [s for s in known if s == given[0]] or [s for s in known if s.startswith(given[0])]
        if len(given) > 1 or len(found) != 1:
            listed = ", ".join(f"/{switch}" for switch in known) or "none"
            raise Refusal(
                f"`{self.key}` has no switch `/{'/'.join(given)}`. Its switches: {listed}."
            )
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
