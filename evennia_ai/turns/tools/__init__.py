"""What the assistant can do. Each tool is a small class; `BUILTIN_TOOLS` lists them.

Features bring more; a game adds its own by dotted path in `settings.EVENNIA_AI_TOOLS`.
"""

from evennia_ai.turns.tools.base import Text, Tool, ToolContext
from evennia_ai.turns.tools.game import Drop, Emote, Get, Give, Look, Move, Noop, Say, Whisper
from evennia_ai.turns.tools.journal import (
    AddJournalEntry,
    ProposeLedgerEntry,
    UpdateEntityObservation,
)
from evennia_ai.turns.tools.memory import (
    ContextSnapshot,
    ExpandMemory,
    ListContributors,
    RequestCompaction,
    SearchMemory,
    TraceSummaries,
)

BUILTIN_TOOLS: tuple[type[Tool], ...] = (
    Say,
    Emote,
    Whisper,
    Look,
    Move,
    Get,
    Drop,
    Give,
    AddJournalEntry,
    SearchMemory,
    ExpandMemory,
    UpdateEntityObservation,
    ProposeLedgerEntry,
    RequestCompaction,
    ContextSnapshot,
    ListContributors,
    TraceSummaries,
    Noop,
)

__all__ = ["BUILTIN_TOOLS", "Text", "Tool", "ToolContext"]
