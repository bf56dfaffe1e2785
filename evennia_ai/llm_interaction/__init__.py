"""The only place that talks to a model: requests, replies, prompts and summaries.

The public names are looked up on first use, so that importing a module of this package costs
nothing.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "DEFAULT_COMPACTION_PROMPT": "evennia_ai.llm_interaction.summary",
    "ModelClient": "evennia_ai.llm_interaction.client",
    "ModelReply": "evennia_ai.llm_interaction.values",
    "ModelRequest": "evennia_ai.llm_interaction.values",
    "Summary": "evennia_ai.llm_interaction.summary",
    "build_llm_messages": "evennia_ai.llm_interaction.prompt",
    "build_prompt": "evennia_ai.llm_interaction.prompt",
    "call_llm_simple": "evennia_ai.llm_interaction.summary",
    "count_conversation_tokens": "evennia_ai.llm_interaction.tokens",
    "format_messages_for_compaction": "evennia_ai.llm_interaction.summary",
    "generate_context_summary": "evennia_ai.llm_interaction.summary",
    "model_request": "evennia_ai.llm_interaction.prompt",
    "summarise": "evennia_ai.llm_interaction.summary",
}

__all__ = [*_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
