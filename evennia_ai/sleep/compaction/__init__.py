"""Compaction: fold the older part of a history into summaries without losing a message."""

from evennia_ai.sleep.compaction.extraction import run_pre_compaction_extraction
from evennia_ai.sleep.compaction.service import compact_conversation_history

__all__ = ["compact_conversation_history", "run_pre_compaction_extraction"]
