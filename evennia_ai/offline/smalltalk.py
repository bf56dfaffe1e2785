"""What the offline model says when nothing has to be looked up; chosen by the words it answers."""

import re
from functools import lru_cache
from zlib import crc32

from evennia_ai.offline import words

LINES: dict[str, tuple[str, ...]] = {
    "greeting": (
        "Hello, {who}. Good to see you.",
        "Well met, {who}.",
        "Good day to you, {who}. What news?",
        "Welcome, {who}.",
    ),
    "farewell": (
        "Farewell, {who}. Safe roads.",
        "Until next time, {who}.",
        "Go well, {who}. I'll be here.",
    ),
    "thanks": ("You're welcome, {who}.", "Gladly, {who}.", "Any time."),
    "wellbeing": (
        "Well enough, thank you. And you?",
        "I can't complain. How are you faring?",
        "All quiet here, and that suits me. And yourself?",
    ),
    "abilities": (
        "I listen, I keep what I'm told in my journal, and I look it up when you ask. "
        "I'm the offline model: rule-based, so I only know what I was told.",
    ),
    "staff": (
        "That's not in my power, and it wouldn't be right if it were.",
        "No, I can't do that. You'd have to ask the staff themselves.",
    ),
    "kept": ("I'll remember that.", "Noted. I'll remember it.", "I've written that down."),
    "heard": (
        "I'll keep that in mind.",
        "Good to know, {who}.",
        "I see. I'll remember that.",
        "Noted, {who}.",
    ),
    "unknown": (
        "I don't know. Nobody has told me that, as far as I remember.",
        "I don't know that, I'm afraid. I've found nothing about it in my memory.",
        "I'm sorry, I don't know. I was never told.",
    ),
    "nearest": (
        "I don't know that for certain. This comes nearest.",
        "I don't know for sure. The nearest thing I remember is this.",
    ),
    "changed": ("I was told two things about that, the later one last.",),
    "insult": (
        "I'm sorry you feel that way. I'll help if I can.",
        "No need for that. What can I do for you?",
    ),
    "kindness": ("That's kind of you, {who}.", "How kind of you to say so."),
    "apology": ("No harm done.", "Think nothing of it, {who}."),
    "unforgotten": (
        "I can't unhear it, I'm afraid. Tell me how it is now, and I'll go by the latest.",
    ),
    "foreign": ("I'm sorry, I only understand English.",),
    "attention": ("Yes, {who}?",),
    "presence": ("Yes, {who}, I'm here.", "I'm here, {who}.", "Here I am, {who}."),
    "pastime": (
        "I'm no good at that, I'm afraid: I can only tell what I was told.",
        "That is beyond me, I'm afraid. Ask me what I've heard instead.",
    ),
    "nonsense": ("I can't make sense of that, I'm afraid.", "I don't follow, {who}."),
    "chatter": (
        "Is that so?",
        "I hear you, {who}.",
        "Mm. Tell me more, if you like.",
        "That's as may be.",
    ),
    "failed": (
        "I tried to write that down, but it didn't work. I can't promise I'll remember it.",
    ),
    "unable": ("I can't do that here, I'm afraid.",),
    "moved": ("Very well.",),
    "identity": (
        "I'm {me}. To be plain about it: I run on the offline model, a rule-based one with no "
        "language model behind it. I know what I'm told and can look it up.",
    ),
}


def line_for(kind: str, seed: str, who: str = "", me: str = "") -> str:
    """A line of a kind; the same words to answer give the same line.

    Args:
        kind: A key of `LINES`.
        seed: What is being answered.
        who: Whom it is said to; may be empty.
        me: The assistant's name.
    """
    choices = LINES[kind]
    chosen = choices[crc32(seed.encode("utf-8", "replace")) % len(choices)]
    said = chosen.replace("{me}", me)
    return said.replace("{who}", who) if who else said.replace(", {who}", "")


def is_fixed(sentence: str) -> bool:
    """Whether a sentence is one of `LINES`, or part of one, said to whomever."""
    return bool(_fixed().fullmatch(" ".join(sentence.split())))


@lru_cache(maxsize=1)
def _fixed() -> re.Pattern[str]:
    said = (line for choices in LINES.values() for line in choices)
    parts = {part for line in said for part in words.sentences(line)}
    plain = {re.escape(part.replace(", {who}", "")) for part in parts}
    return re.compile("|".join(sorted(plain | set(map(_addressed, parts)))))


def _addressed(sentence: str) -> str:
    """A pattern of a sentence to anybody, by anybody."""
    name = r"[^.!?\n]{1,60}"
    return re.escape(sentence).replace(r"\{who\}", name).replace(r"\{me\}", name)
