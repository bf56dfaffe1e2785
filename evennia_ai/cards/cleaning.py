"""Texts of strangers made plain: macros filled in, markup out, nothing that looks like ours."""

import html
import random
import re

from evennia_ai.language.tables import DEFAULT, table_of, tables

# In a greeting the name of whoever is greeted is filled in later.
GREETED = "{name}"
_MACRO = re.compile(r"\{\{([^{}]*)\}\}")
_CODE = re.compile(r"<(style|script)\b.*?(?:</\1\s*>|\Z)|<%.*?(?:%>|\Z)", re.S | re.I)
_TAG, _LINE_TAG = re.compile(r"</?[a-z][^<>]*>", re.I), re.compile(r"<(?:br|/p)\b[^<>]*>", re.I)
_ALIAS = re.compile(r"<(bot|char|user)>", re.I)
_MARKUP = re.compile(r"\|(?:\[?[rgybmcwxRGYBMCWX]|\[?[0-5]{3}|[nuihH/_*^-])?")
_UNSTORABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
# The labels of a prompt's blocks and the ids of people (`history.messages`).
_LABEL = re.compile(r"^[^\w\n\[]{0,20}\[{1,3}[A-Z][A-Za-z ]{2,40}\]", re.M)
_ID = re.compile(r"\[[oas]\d+\.[^\]\s]{1,40}\]")
# Macros that say nothing where they stand.
_SILENT = ("", "original", "trim", "noop")
# Markup may be most of a text: so much of it is read for each character that is used.
_READ = 4
# So deep macros stand in each other.
_DEPTH = 10


def storable(text: str) -> str:
    """A text without characters that databases refuse."""
    return _UNSTORABLE.sub("", text)


def as_name(text: str) -> str:
    """A text as the name of a character: one line, no markup, at most 80 characters."""
    text = re.sub("[{}]", "", storable(text.replace("\n", " ")))
    return " ".join(_MARKUP.sub("", text).split())[:80].strip()


def whoever(text: str) -> str:
    """Whom somebody in a text talks with, in the language of the text."""
    return str(table_of(text).data.get("user") or tables()[DEFAULT].data["user"])


class Cleaner:
    """Cleans the texts of one card or book, and counts what it had to change.

    Args:
        char: What ``{{char}}`` stands for.
    """

    def __init__(self, char: str):
        self.char, self.frames = re.sub("[{}]", "", char), 0
        self.unknown: dict[str, None] = {}

    def clean(self, text: str, most: int, user: str = "") -> tuple[str, int]:
        """A text of at most `most` characters, and how many were left out.

        ``{{user}}`` is `user`, or else "whoever you talk with" in the language of the text. Random
        macros are filled in by a seed of the text: each time the same.
        """
        size, text = len(text), text[: most * _READ]
        user = user or whoever(text)
        picks = random.Random(f"{self.char} {text}")
        text = _LINE_TAG.sub("\n", _CODE.sub("", _ALIAS.sub(r"{{\1}}", text)))
        text = html.unescape(_TAG.sub("", text))
        for _ in range(_DEPTH):
            text = _MACRO.sub(lambda macro: self._filled(macro[1], user, picks), text)
        text = storable(text.replace("{{", "").replace("}}", ""))
        text = "\n".join(line.strip() for line in text.split("\n"))
        for frame in (_LABEL, _ID):
            text, count = frame.subn(lambda found: found[0].replace("[", "").replace("]", ""), text)
            self.frames += count
        text = re.sub(r"\n{3,}", "\n\n", text).strip()
        return text[:most], max(0, len(text) - most) + max(0, size - most * _READ)

    def notes(self) -> list[str]:
        """What was changed, in words."""
        changed = list[str]()
        if self.frames:
            lines = f"{self.frames} line{'s' * (self.frames > 1)}"
            changed.append(f"{lines} looked like parts of the prompt and lost their brackets")
        if self.unknown:
            changed.append(f"macros left out: {', '.join(self.unknown)}")
        return changed

    def _filled(self, macro: str, user: str, picks: random.Random) -> str:
        name, rest = (*re.split(r"::|:|\s", macro.strip(), maxsplit=1), "")[:2]
        name, rest = name.lower(), rest.strip()
        told = {"user": user, "char": self.char, "bot": self.char, "newline": "\n"}
        if name in told:
            return told[name]
        if name in ("random", "pick"):
            options: list[str] = re.split("::" if "::" in rest else ",", rest)
            return picks.choice(options).strip()
        if name not in _SILENT and not name.startswith("//"):
            self.unknown.setdefault(name[:30])
        return ""
