"""The only place that talks to a model: requests, replies, prompts and summaries.

The public names are looked up on first use, so that importing a module of this package costs
nothing.
"""

from evennia_ai import lazy_names

_HOMES = {
    "DEFAULT_COMPACTION_PROMPT": "llm_interaction.summary",
    "build_llm_messages": "llm_interaction.prompt",
    "call_llm_simple": "llm_interaction.summary",
    "count_conversation_tokens": "llm_interaction.tokens",
    "format_messages_for_compaction": "llm_interaction.summary",
    "generate_context_summary": "llm_interaction.summary",
}

__all__ = [*_HOMES]  # noqa: PLE0604
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
