"""A model's text made fit for a game: cleaned, split to size, and refusals recognised."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from evennia_ai.history.frames import without_speaker

# A telnet screen is 80 columns by about 24 lines; four of these are a screen and a half.
REPLY_CHARS = 600
REPLY_PIECES = 4

# Longer replies are cut before they are cleaned: a runaway must not block the reactor.
CLEANED_CHARS = 20_000

_THOUGHT_TAG = re.compile(r"<(/?)(?:think|thinking|thought|reasoning|reflection)\b[^<>]*>", re.I)

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
# All control characters but newline, then the ones that reorder or hide text.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]")

_QUOTES = (('"', '"'), ("\u201c", "\u201d"), ("'", "'"), ("\u2018", "\u2019"), ("\u00ab", "\u00bb"))


def speakable(
    text: str, names: Iterable[str] = (), limit: int = REPLY_CHARS, most_pieces: int = REPLY_PIECES
) -> "SplitReply":
    """A model's reply of any length cleaned and split; see `clean_reply` and `split_reply`.

    Of a runaway reply only the beginning is cleaned; the rest counts as left out.
    """
    body = strip_thoughts(text)
    split = split_reply(clean_reply(body, names), limit, most_pieces)
    return SplitReply(split.pieces, split.left_out + max(0, len(body) - CLEANED_CHARS))


def clean_reply(text: str, names: Iterable[str] = ()) -> str:
    """A reply as it may be spoken in a game.

    The first `CLEANED_CHARS` characters as plain text without thoughts, labels with one of the
    assistant's `names`, markup, control characters, outer quotes and blank lines; may be empty.
    """
    body = strip_thoughts(text)[:CLEANED_CHARS]
    plain = without_speaker(strip_markup(strip_control(body)), names)
    return strip_quotes(without_narration(plain, names))


def strip_thoughts(text: str, reported: bool = False) -> str:
    """Text without ``<think>`` blocks and similar ones, closed or not.

    A closing tag without an opening one ends a thought that began with the text: some chat
    templates swallow the first tag. One pass, so that hostile nesting costs no more.

    `reported` is for texts that report what others said: a player who says ``</think>`` must not
    erase the beginning of a summary. Quoted tags, and tags inside a sentence, stay. A thought
    begins with the text, with a line or after another thought; a closing tag without an opening
    one counts only if it is alone on its line.
    """
    kept: list[str] = []
    depth, at = 0, 0
    for tag in _THOUGHT_TAG.finditer(text):
        if reported and not _is_own(tag, at, depth):
            continue
        if not tag[1]:
            kept += [text[at : tag.start()]] if not depth else []
            depth += 1
        elif depth:
            depth -= 1
        else:
            kept.clear()
        at = tag.end()
    return "".join(kept if depth else [*kept, text[at:]]).strip()


def _is_own(tag: re.Match[str], begin: int, depth: int) -> bool:
    """Whether a tag is the model's own; the tag before it ends at `begin`."""
    before = tag.string[max(begin, tag.start() - _AROUND) : tag.start()].rstrip(" \t")
    after = tag.string[tag.end() : tag.end() + _AROUND].lstrip(" \t")
    if before[-1:] in _MARKS or after[:1] in _MARKS:
        return False
    first = not before or before.endswith("\n")
    alone = first and (not after or after.startswith("\n"))
    return bool(depth) or (alone if tag[1] else first)


_AROUND = 8
_MARKS = tuple("\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb")


def strip_control(text: str) -> str:
    """Text without ANSI sequences and control characters; tabs become spaces."""
    text = _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _CONTROL.sub("", text.replace("\t", " "))


def without_narration(text: str, names: Iterable[str] = ()) -> str:
    """Only what is said of a reply written like a novel: ``"Aye!" She nods. "And you?"``.

    It begins with a quoted sentence, and behind that the assistant is told of in the third person.
    """
    found = _NARRATED.match(text)
    if not found or found["who"].lower() not in (*_THIRD, *(name.lower() for name in names)):
        return text
    spoken = (" ".join(part.split()) for part in _SPOKEN.findall(text))
    return " ".join(part for part in spoken if part)


# Nobody begins a line of their own with what was said and goes on so, unless they tell a story.
_THIRD = ("she", "he", "they", "her", "his", "their")
_NARRATED = re.compile(
    r"[\"\u201c][^\"\u201c\u201d]*[.!?,\u2026\u2014-][\"\u201d]\s+(?P<who>[^\W\d_]+)\b"
)
_SPOKEN = re.compile(r"[\"\u201c]([^\"\u201c\u201d]*)(?:[\"\u201d]|\Z)")


def strip_quotes(text: str) -> str:
    """Text without one pair of quote marks around all of it; a JSON string is decoded.

    A mark that stands alone at the beginning or the end goes, too.
    """
    body = text.strip()
    if body.count('"') == 1 and len(body) > 1:
        body = body.removeprefix('"').removesuffix('"').strip()
    for left, right in _QUOTES:
        inner = body[1:-1]
        whole = len(body) > 2 and body.startswith(left) and body.endswith(right)
        if whole and left not in inner and right not in inner:
            return inner.strip()
    if body.startswith('"'):
        try:
            return str(json.loads(body)).strip()
        except (ValueError, RecursionError):
            return body
    return body


# Each rule reduces one kind of markup to the words inside it, in this order.
_MARKUP: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.M), ""),
    (
        re.compile(
            r"!?\[([^\[\]\n]{1,300})\]\([^()\n]{0,500}(?:\([^()\n]{0,99}\))?[^()\n]{0,99}\)"
        ),
        r"\1",
    ),
    (re.compile(r"<((?:https?|mailto):[^\s<>]{1,500})>"), r"\1"),
    (re.compile(r"^[ \t]*#{1,6}[ \t]+", re.M), ""),
    (re.compile(r"^[ \t]*(?:(?:- ?){3,}|(?:\* ?){3,}|(?:_ ?){3,})[ \t]*$", re.M), ""),
    (re.compile(r"^[ \t]*(?:[-*+\u2022][ \t]+|>[ \t]?)", re.M), ""),
    (re.compile(r"\*\*|~~|(?<!\w)__(?=\w)|(?<=\S)__(?!\w)"), ""),
    (re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,500})(?<=\S)\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<!\w)_(?=[^\s_])([^_\n]{1,500})(?<=\S)_(?!\w)"), r"\1"),
    (re.compile(r"`+"), ""),
    (re.compile(r"</?(?:b|i|u|em|strong|code|pre|p|br|div|span|ul|ol|li)\s?/?>", re.I), ""),
)


def strip_markup(text: str) -> str:
    """Markdown and simple HTML as plain text, without blank lines and double spaces."""
    for pattern, plain in _MARKUP:
        text = pattern.sub(plain, text)
    lines = (re.sub(r" {2,}", " ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


@dataclass(frozen=True)
class SplitReply:
    """A reply in pieces a MUD client shows well; `left_out` counts characters in none of them."""

    pieces: tuple[str, ...]
    left_out: int = 0


def split_reply(text: str, limit: int = REPLY_CHARS, most_pieces: int = REPLY_PIECES) -> SplitReply:
    """Split a cleaned reply at paragraph, sentence or word borders.

    A piece has at most `limit` characters; text after `most_pieces` pieces is left out.
    """
    pieces: list[str] = []
    rest = text.strip()
    while rest and len(pieces) < most_pieces:
        at = _border(rest, limit)
        pieces.append(rest[:at].rstrip())
        rest = rest[at:].lstrip()
    return SplitReply(tuple(pieces), len(rest))


def _border(text: str, limit: int) -> int:
    """Where the next piece ends: the last border of the best kind within `limit`."""
    if len(text) <= limit:
        return len(text)
    head = text[: limit + 1]
    for pattern, least in (
        (r"\n", 0.5),
        (r"[.!?\u2026][\"'\u201d\u2019)]*(?=\s)", 0.4),
        (r"\s", 0),
    ):
        ends = [found.end() for found in re.finditer(pattern, head)]
        good = [end for end in ends if limit * least < end and len(head[:end].rstrip()) <= limit]
        if good:
            return good[-1]
    return limit


_REFUSAL = re.compile(
    r"""^\W*(?:
        (?:i['\u2019]?m|i\s+am|we['\u2019]?re)\s+(?:very\s+|really\s+|truly\s+)?
            (?:sorry|afraid|unable|not\s+able|not\s+comfortable)\b
      | (?:sorry|apologies|my\s+apologies|unfortunately)\b[^.!?\n]{0,40}
            \b(?:can['\u2019]?t|cannot|can\s+not|unable|not\s+able|won['\u2019]?t)\b
      | i\s+(?:apologi[sz]e|regret)\b
      | (?:i|we)\s+(?:can['\u2019]?t|cannot|can\s+not|won['\u2019]?t|will\s+not|
            must\s+decline|decline)\s+(?:\w+\s+){0,2}
            (?:help|assist|do|comply|fulfil|fulfill|provide|create|write|summari[sz]e|continue|
               process|complete|generate|discuss|engage|to\b)
      | as\s+an?\s+(?:ai|artificial|language\s+model|large\s+language|assistant)\b[^.!?\n]{0,80}
            \b(?:can['\u2019]?t|cannot|unable|not\s+able|don['\u2019]?t|do\s+not|won['\u2019]?t)\b
      | (?:this|that|your)\s+(?:request|content|conversation)\s+(?:\w+\s+){0,3}
            (?:violates?|against|cannot\s+be|can['\u2019]?t\s+be)\b
    )""",
    re.I | re.X,
)
# A refusal is short; a long text that begins with "I'm sorry" tells a story.
_REFUSAL_CHARS = 600


def is_refusal(text: str) -> bool:
    """Whether a text is a model's refusal instead of an answer. A guess from its beginning."""
    body = strip_thoughts(text, reported=True)
    return len(body) <= _REFUSAL_CHARS and bool(_REFUSAL.match(body))
