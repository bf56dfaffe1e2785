"""The only place that talks to a model: requests, replies, prompts and summaries."""

from evennia_ai.llm_interaction.client import ModelClient, ModelReply, ModelRequest
from evennia_ai.llm_interaction.prompt import build_llm_messages, build_prompt, model_request
from evennia_ai.llm_interaction.summary import (
    DEFAULT_COMPACTION_PROMPT,
    Summary,
    call_llm_simple,
    format_messages_for_compaction,
    generate_context_summary,
    summarise,
)

__all__ = [
    "DEFAULT_COMPACTION_PROMPT",
    "ModelClient",
    "ModelReply",
    "ModelRequest",
    "Summary",
    "build_llm_messages",
    "build_prompt",
    "call_llm_simple",
    "format_messages_for_compaction",
    "generate_context_summary",
    "model_request",
    "summarise",
]
