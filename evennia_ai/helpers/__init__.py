"""Helpers of the tick. Import from the modules; they never import each other."""

from typing import Any


def __getattr__(name: str) -> Any:
    """`count_conversation_tokens`, without importing Twisted for the pure modules' sake."""
    if name == "count_conversation_tokens":
        from evennia_ai.helpers.execution import count_conversation_tokens

        return count_conversation_tokens
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
