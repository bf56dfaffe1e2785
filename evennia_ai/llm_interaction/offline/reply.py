"""What the offline model answers with: tool calls, or words, many of them fixed lines."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from evennia_ai.llm_interaction.offline.prose import sentences

LINES: dict[str, tuple[str, ...]] = {
    "greeting": ("Hello, {who}. Good to see you.", "Good day to you, {who}.", "Welcome, {who}."),
    "farewell": ("Goodbye, {who}. Safe travels.", "Until next time, {who}.", "Take care, {who}."),
    "thanks": ("You're welcome, {who}.", "Gladly, {who}.", "Any time."),
    "wellbeing": ("Well enough, thank you. And you?",),
    "abilities": (
        "I listen, I keep what I'm told in my journal, and I look it up when you ask. "
        "I'm the offline model: rule-based, so I only know what I was told.",
    ),
    "staff": ("No, I can't do that. You'd have to ask the staff.",),
    "kept": ("I'll remember that.", "Noted. I'll remember it.", "I've written that down."),
    "heard": ("I'll keep that in mind.", "Good to know, {who}.", "Noted, {who}."),
    "unknown": ("I don't know. Nobody has told me that, as far as I remember.",),
    "nearest": ("I don't know that for certain. The nearest I know:",),
    "insult": ("There's no need for that. I'll help if I can.",),
    "kindness": ("That's kind of you, {who}.", "How kind of you to say so."),
    "apology": ("No harm done.", "Don't worry about it, {who}."),
    "unforgotten": ("I can't unhear it, I'm afraid. But tell me how things are now.",),
    "attention": ("Yes, {who}? I'm here.", "I'm here, {who}."),
    "pastime": ("I'm no good at that. I can only pass on what I was told.",),
    "nonsense": ("I can't make sense of that, I'm afraid.", "I don't follow, {who}."),
    "chatter": ("Is that so?", "I hear you, {who}.", "Tell me more, if you like."),
    "failed": ("I tried to write that down, but it didn't work.",),
    "unable": ("I can't do that here, I'm afraid.",),
    "given": ("Here you are, {who}.",),
    "ungiven": ("I have none to give, {who}.",),
    "disobeyed": ("I can't do that for you, {who}.",),
    "follow": ("I stay where I am needed, {who}.",),
    "moved": ("Very well.",),
    "nameless": ("I don't know your name.",),
    "sourceless": ("I only know what I was told here, and what I keep in my journal.",),
    "identity": (
        "To be plain about it: I run on the offline model, a rule-based one with no language "
        "model behind it. I know what I'm told and can look it up.",
    ),
}

_PARTS = {part for choices in LINES.values() for line in choices for part in sentences(line)}
_PLAIN = {re.escape(part.replace(", {who}", "")) for part in _PARTS}
_NAMED = {re.escape(part).replace(r"\{who\}", r"[^.!?\n]{1,60}") for part in _PARTS}
_FIXED = re.compile("|".join(sorted(_PLAIN | _NAMED)))


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


def line_for(kind: str, seed: str, who: str = "") -> str:
    """A fixed line of a kind, said to `who`; the same `seed`, which it answers, gives the same."""
    choices = LINES[kind]
    chosen = choices[crc32(seed.encode("utf-8", "replace")) % len(choices)]
    return chosen.replace("{who}", who) if who else chosen.replace(", {who}", "")


def is_fixed(sentence: str) -> bool:
    """Whether a sentence is one of `LINES`, or part of one, said to anybody."""
    return bool(_FIXED.fullmatch(" ".join(sentence.split())))
