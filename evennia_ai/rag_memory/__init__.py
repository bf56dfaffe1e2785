"""What an assistant remembers: journal, entities, ledger, search and long-term semantic memory.

The public functions, those of the sleep cycle among them, are looked up on first use, so that
importing a module of this package costs nothing.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Mem0Backend": "evennia_ai.rag_memory.mem0_backend.backend",
    "compact_conversation_history": "evennia_ai.sleep.compaction.compact",
    "run_pre_compaction_extraction": "evennia_ai.sleep.compaction.extraction",
    "run_sleep_tick": "evennia_ai.sleep.cycle",
    "consolidate_memories_to_semantic": "evennia_ai.sleep.consolidation",
    "prune_orphaned_memory_links": "evennia_ai.sleep.consolidation",
    "repair_semantic_memory": "evennia_ai.sleep.consolidation",
    "run_entity_consolidation_batch": "evennia_ai.rag_memory.entity_context",
    "prune_low_importance_entries": "evennia_ai.rag_memory.episodic_index",
    "clear_stale_conversations": "evennia_ai.rag_memory.working_memory",
}

__all__ = [*_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
