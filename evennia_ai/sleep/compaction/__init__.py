"""Compaction: fold the older part of a history into summaries without losing a message."""

from evennia_ai.sleep.compaction.compact import compact_conversation_history
from evennia_ai.sleep.compaction.extraction import run_pre_compaction_extraction

__all__ = ["compact_conversation_history", "run_pre_compaction_extraction"]
