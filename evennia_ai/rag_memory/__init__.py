"""Long-term semantic memory: the only place that talks to Mem0.

`Mem0Store` is the public face; it does its work on one daemon thread and answers by Deferreds.
The functions that feed the store while the assistant sleeps are importable from here as well,
looked up on first use, so that importing this package costs nothing.
"""

from importlib import import_module
from typing import Any

from evennia_ai.rag_memory.store import Mem0Store

_ELSEWHERE = {
    "compact_conversation_history": "evennia_ai.sleep.compaction",
    "run_pre_compaction_extraction": "evennia_ai.sleep.compaction",
    "run_sleep_tick": "evennia_ai.sleep",
    "consolidate_memories_to_semantic": "evennia_ai.sleep.consolidation",
    "prune_orphaned_memory_links": "evennia_ai.sleep.consolidation",
    "repair_semantic_memory": "evennia_ai.sleep.consolidation",
    "run_entity_consolidation_batch": "evennia_ai.helpers.entity_context",
    "prune_low_importance_entries": "evennia_ai.helpers.episodic_index",
    "clear_stale_conversations": "evennia_ai.helpers.working_memory",
}

__all__ = ["Mem0Store", *_ELSEWHERE]


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        return getattr(import_module(_ELSEWHERE[name]), name)
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ELSEWHERE})
