"""Commands to talk to assistants, watch and tune them.

A game adds them in its ``CharacterCmdSet.at_cmdset_creation``::

    self.add(evennia_ai.commands.AssistantCmdSet)
"""

from evennia_ai.commands.cmdset import AssistantCmdSet

__all__ = ["AssistantCmdSet"]
