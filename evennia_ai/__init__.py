"""A living AI assistant for Evennia games, with lossless conversation compaction."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's `__getattr__`, which imports its public names on first use, and `__dir__`.

    So importing one module of the package costs nothing for the others. `homes` gives each name's
    module, relative to `evennia_ai`.
    """

    def find(name: str) -> Any:
        if name in homes:
            return getattr(import_module(f"evennia_ai.{homes[name]}"), name)
        raise AttributeError(f"module `{package}` has no attribute `{name}`")

    return find, lambda: sorted(homes)


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "AssistantCharacter": "assistant_character",
        "AssistantCmdSet": "commands",
        "AssistantMixin": "assistant_character",
        "AssistantScript": "assistant_script",
        "ScriptedModel": "testing",
        "Tool": "turns.tools",
        "ToolContext": "turns.tools",
        "ToolError": "errors",
        "heard": "game.hearing",
    },
)
