"""What the offline model answers with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool the model wants to be called."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """Text, or tool calls, or neither (silence)."""

    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()


def tool_names(tools: object) -> frozenset[str]:
    """The names of the tools a request offers; whatever is malformed is passed over."""
    names: set[str] = set()
    for tool in tools if isinstance(tools, list | tuple) else ():
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if isinstance(name, str):
            names.add(name)
    return frozenset(names)
