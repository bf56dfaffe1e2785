"""The game's default command sets. Each extends the one of Evennia."""

from evennia import default_cmds

import evennia_ai.commands


class CharacterCmdSet(default_cmds.CharacterCmdSet):
    """Commands of characters."""

    key = "DefaultCharacter"

    def at_cmdset_creation(self):
        """Add Evennia's commands and those of the assistants."""
        super().at_cmdset_creation()
        self.add(evennia_ai.commands.AssistantCmdSet)


class AccountCmdSet(default_cmds.AccountCmdSet):
    """Commands of accounts, with or without a character."""

    key = "DefaultAccount"


class UnloggedinCmdSet(default_cmds.UnloggedinCmdSet):
    """Commands before login."""

    key = "DefaultUnloggedin"


class SessionCmdSet(default_cmds.SessionCmdSet):
    """Commands of sessions."""

    key = "DefaultSession"
