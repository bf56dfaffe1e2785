"""The functions that `Mind.work` may call in the mind's process, by their dotted names.

They compute, and only compute; arguments and results are values of `mind.codec`. A function that
is not listed runs on a thread of the Server.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

_SUMMARY = "evennia_ai.llm_interaction.summary"
_ITEMS = "evennia_ai.history.items"
WORK = frozenset(
    {
        "evennia_ai.llm_interaction.tokens.count_tokens",
        "evennia_ai.llm_interaction.budget.packed",
        "evennia_ai.llm_interaction.grounding.grounded_in",
        f"{_SUMMARY}.extract",
        f"{_SUMMARY}.shortened",
        f"{_ITEMS}.items_of",
        f"{_ITEMS}.source_items",
        "evennia_ai.sleep.compaction.coverage.covered",
        "evennia_ai.recall.embedding.dimensions",
    }
)


def name_of(function: Callable[..., Any]) -> str | None:
    """The name of a function that may be called in the process; None for others."""
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
    return name if name in WORK else None


def find(name: str) -> Callable[..., Any]:
    """A listed function; raises `LookupError` for any other name."""
    if name not in WORK:
        raise LookupError(f"`{name}` is not a function of the mind")
    module, _, attribute = name.rpartition(".")
    function: Callable[..., Any] = getattr(import_module(module), attribute)
    return function
