"""The game's default command sets; each takes Evennia's own and may add to it."""

from evennia import default_cmds

import evennia_ai.commands


class CharacterCmdSet(default_cmds.CharacterCmdSet):
    """What characters can do."""

    key = "DefaultCharacter"

    def at_cmdset_creation(self):
        """Evennia's commands, then the assistants'."""
        super().at_cmdset_creation()
        self.add(evennia_ai.commands.AssistantCmdSet)


class AccountCmdSet(default_cmds.AccountCmdSet):
    """What accounts can always do."""

    key = "DefaultAccount"


class UnloggedinCmdSet(default_cmds.UnloggedinCmdSet):
    """What can be done before logging in."""

    key = "DefaultUnloggedin"


class SessionCmdSet(default_cmds.SessionCmdSet):
    """What sessions can do."""

    key = "DefaultSession"
