"""What the offline model answers with: tool calls, or words, most of them lines of its table."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any
from zlib import crc32

import regex

from evennia_ai.language.tables import DEFAULT, each_line, spoken, tables
from evennia_ai.llm_interaction.offline.prose import sentences

LINES: dict[str, list[str]] = tables()[DEFAULT].data["lines"]
# Lines that quote what was told, and the name of who told it.
QUOTING = ("told", "told_by_you", "asked_by_you", "noted", "seen", "said")
_SPEAKER = r"(?P<speaker>[^\s\".!?:][^\".!?:\n]{0,60}?)"
_NAMED = regex.compile(r"[^.!?。！？।\n]{1,60}")
_SLOTS = regex.compile(r"\{(?!who\})\w+\}")
# A name and what sets it off from the line: it goes where nobody is named.
_UNNAMED = regex.compile(r"[,،、，]? ?\{who\}[、，]?")


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


def line_for(kind: str, seed: str = "", who: str = "", **slots: str) -> str:
    """A line in the language of the talk, said to `who`; the same `seed` gives the same."""
    choices = spoken().get("lines", kind) or LINES[kind]
    chosen = choices[crc32(seed.encode("utf-8", "replace")) % len(choices)]
    chosen = chosen if who else _UNNAMED.sub("", chosen)
    return chosen.format(who=who, **slots)


def listed(names: Sequence[str]) -> str:
    """Names as they are told: ``up, down and out``."""
    if not names[1:]:
        return "".join(names)
    return line_for("names", names=", ".join(names[:-1]), last=names[-1])


@cache
def fixed_lines() -> tuple[frozenset[str], frozenset[tuple[str, ...]]]:
    """The sentences of lines of the tables in all languages, and the halves around a name."""
    lines = [each for kind in LINES for each in each_line(kind) if not _SLOTS.search(each)]
    parts = {part for line in lines for part in sentences(line)}
    named = {tuple(part.split("{who}")) for part in parts if part.count("{who}") == 1}
    return frozenset(_UNNAMED.sub("", part) for part in parts), frozenset(named)


@cache
def quote_lead() -> regex.Pattern[str]:
    """What stands before a quotation in a line of the tables, in any language."""
    leads = [line.partition('"{words}"')[0] for kind in QUOTING for line in each_line(kind)]
    leads.sort(key=lambda lead: "{speaker}" in lead)  # `You` is nobody's name
    either = "|".join(
        regex.escape(lead, special_only=True).replace(r"\{speaker\}", _SPEAKER)
        for lead in dict.fromkeys(leads)
    )
    return regex.compile(rf'(?:^|(?<=[.!?:"”…。।؟] )|(?<=[。：" ]))(?:{either})(?=")')


@lru_cache(maxsize=4096)
def is_fixed(sentence: str) -> bool:
    """Whether a sentence is a line of the tables, or part of one, said to anybody."""
    sentence = " ".join(sentence.split())
    plain, named = fixed_lines()
    return sentence in plain or any(
        sentence.startswith(before)
        and sentence.endswith(behind)
        and _NAMED.fullmatch(sentence, len(before), len(sentence) - len(behind))
        for before, behind in named
    )
