"""Commands to talk to assistants, watch and tune them.

A game adds them in its ``CharacterCmdSet.at_cmdset_creation``::

    self.add(evennia_ai.commands.AssistantCmdSet)
"""

from evennia import CmdSet
from evennia.utils import logger

from evennia_ai.commands.assistants import CmdAI
from evennia_ai.commands.base import AssistantCommand
from evennia_ai.commands.budget import CmdAIBudget
from evennia_ai.commands.card import CmdAICard
from evennia_ai.commands.compaction import CmdCompact
from evennia_ai.commands.configuration import CmdAIConfig
from evennia_ai.commands.history import CmdAIHistory
from evennia_ai.commands.ledger import CmdAIRemember
from evennia_ai.commands.lore import CmdAILore
from evennia_ai.commands.memory import CmdAIMemory
from evennia_ai.commands.privacy import CmdAIForget
from evennia_ai.commands.status import CmdAIStatus
from evennia_ai.commands.talk import CmdAIPage
from evennia_ai.feature import feature_commands

COMMANDS = (
    CmdAI,
    CmdAIStatus,
    CmdAIBudget,
    CmdAIConfig,
    CmdAICard,
    CmdAILore,
    CmdAIHistory,
    CmdCompact,
    CmdAIMemory,
    CmdAIRemember,
    CmdAIForget,
    CmdAIPage,
)


def all_commands() -> tuple[type[AssistantCommand], ...]:
    """The commands of the core and of the game's features."""
    return (*COMMANDS, *feature_commands(lambda error: logger.log_err(f"[ai] {error}")))


class AssistantCmdSet(CmdSet):
    """Everything a game's characters need for its assistants; each command has its own lock."""

    key = "AssistantCmdSet"

    def at_cmdset_creation(self) -> None:
        """Add the commands."""
        for command in all_commands():
            self.add(command())
