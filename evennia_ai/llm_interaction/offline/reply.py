"""What the offline model answers with: tool calls, or words, most of them lines of its table."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from evennia_ai.llm_interaction.offline.prose import sentences
from evennia_ai.llm_interaction.offline.table import TABLE

LINES: dict[str, list[str]] = TABLE["lines"]
# Lines that quote what was told, and the name of who told it.
QUOTING = ("told", "told_by_you", "asked_by_you", "noted", "seen", "said")
_SPEAKER = r"(?P<speaker>[^\s\".!?:][^\".!?:\n]{0,60}?)"
_SLOTS = re.compile(r"\{(?!who\})\w+\}")


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
    """The names of the tools a request offers; malformed ones are passed over."""
    names: set[str] = set()
    for tool in tools if isinstance(tools, list | tuple) else ():
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if isinstance(name, str):
            names.add(name)
    return frozenset(names)


def line_for(kind: str, seed: str = "", who: str = "", **slots: str) -> str:
    """A line of the table, said to `who`; the same `seed`, which it answers, gives the same."""
    choices = LINES[kind]
    chosen = choices[crc32(seed.encode("utf-8", "replace")) % len(choices)]
    chosen = chosen if who else chosen.replace(", {who}", "")
    return chosen.format(who=who, **slots)


def listed(names: Sequence[str]) -> str:
    """Names as they are told: ``up, down and out``."""
    if not names[1:]:
        return "".join(names)
    return line_for("names", names=", ".join(names[:-1]), last=names[-1])


def _fixed() -> re.Pattern[str]:
    lines = (line for choices in LINES.values() for line in choices if not _SLOTS.search(line))
    parts = {part for line in lines for part in sentences(line)}
    plain = {re.escape(part.replace(", {who}", "")) for part in parts}
    named = {re.escape(part).replace(r"\{who\}", r"[^.!?\n]{1,60}") for part in parts}
    return re.compile("|".join(sorted(plain | named)))


def _quote() -> re.Pattern[str]:
    leads = [line.partition('"{words}"')[0] for kind in QUOTING for line in LINES[kind]]
    leads.sort(key=lambda lead: "{speaker}" in lead)  # `You` is nobody's name
    either = "|".join(re.escape(lead).replace(r"\{speaker\}", _SPEAKER) for lead in leads)
    return re.compile(rf'(?:^|(?<=[.!?:"”…] ))(?:{either})(?=")')


_FIXED, QUOTE = _fixed(), _quote()


def is_fixed(sentence: str) -> bool:
    """Whether a sentence is a line of the table, or part of one, said to anybody."""
    return bool(_FIXED.fullmatch(" ".join(sentence.split())))
