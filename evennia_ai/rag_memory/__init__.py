"""What an assistant remembers: journal, entities, ledger, search and long-term semantic memory.

The public functions, also those of the sleep cycle, are imported on first use.
"""

from evennia_ai import lazy_names

_HOMES = {
    "Mem0Backend": "rag_memory.mem0",
    "compact_conversation_history": "sleep.compaction.compact",
    "run_pre_compaction_extraction": "sleep.compaction.extraction",
    "run_sleep_tick": "sleep.cycle",
    "consolidate_memories_to_semantic": "sleep.consolidation",
    "prune_orphaned_memory_links": "sleep.consolidation",
    "run_entity_consolidation_batch": "rag_memory.entity_store",
    "prune_low_importance_entries": "rag_memory.memory",
    "clear_stale_conversations": "rag_memory.memory",
}

__all__ = [*_HOMES]  # noqa: PLE0604
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
