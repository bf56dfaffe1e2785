"""The only place that talks to a model: requests, replies, prompts and summaries.

The public names are looked up on first use, so that importing a module of this package costs
nothing.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "DEFAULT_COMPACTION_PROMPT": "summary",
    "build_llm_messages": "prompt",
    "call_llm_simple": "summary",
    "count_conversation_tokens": "tokens",
    "format_messages_for_compaction": "summary",
    "generate_context_summary": "summary",
}

__all__ = [*_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
