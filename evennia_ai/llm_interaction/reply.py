"""A model's reply as it is heard: one label taken off, poses and words in their order.

Nothing else is cut. A text that is no answer is asked for again; `fault` says why.

>>> [(piece.is_spoken, piece.text) for piece in pieces("*smiles* Well met. *bows*", "Aria")]
[(False, 'smiles'), (True, 'Well met.'), (False, 'bows')]
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from evennia_ai.language.script import words
from evennia_ai.language.words import sentences
from evennia_ai.llm_interaction.conversation import NOTE_BEGINS
from evennia_ai.llm_interaction.dialects import replacements

# A telnet screen is 80 columns by about 24 lines; four of these are a screen and a half.
REPLY_CHARS = 600
REPLY_PIECES = 4
# Longer replies are cut before they are read: a runaway must not block the reactor.
CLEANED_CHARS = 6_000
# A line of fewer words may be said again, and may be that which it answers.
REPEATED_WORDS = 5

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
# All control characters but newline, then the ones that reorder or hide text, and half characters.
_CONTROL = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_QUOTED = re.compile(
    r"\"([^\"]+)\"|\u201c([^\u201c\u201d]+)\u201d|\u2018([^\u2018\u2019]+)\u2019"
    r"|\u00ab([^\u00ab\u00bb]+)\u00bb|„([^„“]+)“|„([^„”]+)”|»([^«»]+)«|「([^「」]+)」|『([^『』]+)』"
)
# What no person says: a mark of a template, a tag of a machine's, the notes of a prompt.
_MACHINE = re.compile(
    r"<[|\uff5c][^<>\n]{0,60}|[|\uff5c]>|</[A-Za-z][\w:-]{0,40}>|<[a-z][\w:-]{0,40}(?:\s+\w+=[^<>\n]*)?/?>"
    r"|\[/?(?:INST|TOOL_\w{1,20})\]"
)
# Scripts without spaces write on behind a star.
_STARRED = re.compile(
    r"(?<![A-Za-z0-9_*])\*(?=[^\s*])(?P<inner>[^*\n]{1,400}?)(?<=[^\s*])\*(?![a-z0-9_*])"
)
_APART = re.compile(r"(?:\A|\n|[.!?\u2026\u3002\uff01\uff1f\"'\u201d\u2019\u00bb\u300d*])\s*\Z")
# A pose stands behind the name of who poses, so that these say it again.
_PRONOUNS = ("she", "he", "they")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a reply: words, or a pose in the third person without a name."""

    is_spoken: bool
    text: str


def clean_reply(text: str, names: Iterable[str] = ()) -> str:
    """A reply as plain text: without one label of its own, markup, and quotes around all of it.

    At most the first `CLEANED_CHARS` characters, with its lines; it may be empty. Thoughts and
    marks of models were taken out before, see `dialects`.
    """
    body = text[:CLEANED_CHARS].replace("\r\n", "\n").replace("\r", "\n")
    body = _CONTROL.sub("", _ANSI.sub("", body).replace("\t", " "))
    return strip_quotes(strip_markup(cut_own_label(body, names)))


def cut_own_label(text: str, names: Iterable[str]) -> str:
    """A reply without one label before it that names the assistant.

    ``Aria: …``, ``[2026-11-28 16:40] Aria: …``, ``**Aria** (smiling): …``, ``Aria says: "…"``.
    """
    who = "|".join(re.escape(name) for name in names if name)
    if not who:
        return text
    name = rf"[*_]{{0,3}}(?:{who})[*_]{{0,3}}(?:\s?\([^()\n]{{1,60}}\))?[*_]{{0,3}}"
    quoted = r"[\"\u201c„«「][^\n]*[\"\u201d\u201c»」]\s*\Z"
    label = (
        r"\A\s*(?:\[[^\]\n]{1,40}\]\s*)?"
        rf"(?:{name}\s*[:\uff1a][*_]{{0,3}}\s*|[\[<](?:{who})[\]>]\s*[:\uff1a]?\s*"
        rf"|(?:{who})(?: \w+){{1,3}}[,:]\s*(?={quoted}))"
    )
    return re.sub(label, "", text, flags=re.IGNORECASE)


def strip_quotes(text: str) -> str:
    """Text without one pair of quote marks around all of it."""
    body = text.strip()
    if body.count('"') == 1 and len(body) > 1:  # the other one was cut off
        body = body.removeprefix('"').removesuffix('"').strip()
    if _QUOTED.fullmatch(body):
        body = body[1:-1].strip()
    return body


# Each rule reduces one kind of markup to the words inside it, in this order.
_MARKUP = replacements(
    r"^[ \t]*(?:```|~~~)[^\n]*$",
    (r"!?\[([^\[\]\n]{1,300})\]\([^()\n]{0,500}(?:\([^()\n]{0,99}\))?[^()\n]{0,99}\)", r"\1"),
    (r"<((?:https?|mailto):[^\s<>]{1,500})>", r"\1"),
    r"^[ \t]*#{1,6}[ \t]+",
    r"^[ \t]*(?:(?:- ?){3,}|(?:\* ?){3,}|(?:_ ?){3,})[ \t]*$",
    r"^[ \t]*(?:[-*+\u2022\u2013\u2014][ \t]+|>[ \t]?)",
    r"\*\*|~~|(?<!\w)__(?=\w)|(?<=\S)__(?!\w)",
    (r"(?<!\w)_(?=[^\s_])([^_\n]{1,500})(?<=\S)_(?!\w)", r"\1"),
    r"`+",
    (r"\\(?:boxed|text)\{([^{}\n]*)\}", r"\1"),
    r"</?(?:b|i|u|em|strong|code|pre|p|br|div|span|ul|ol|li)\s?/?>",
)


def strip_markup(text: str) -> str:
    """Markdown and simple HTML as plain text, without blank lines and double spaces."""
    for pattern, plain in _MARKUP:
        text = pattern.sub(plain, text)
    lines = (re.sub(r" {2,}", " ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def pieces(text: str, own: str) -> list[Piece]:
    """A cleaned reply as words and poses, in the order in which they stand.

    Words in stars that stand apart, between sentences, are a pose; within a sentence they are
    stressed words.
    """
    parts, at = list[Piece](), 0
    poses = [found for found in _STARRED.finditer(text) if _is_pose(text, found)]
    me = re.escape(own)
    # It is shown behind the name.
    subject = rf"\A(?:(?:{me}|{'|'.join(_PRONOUNS)}) |{me}(?=['\u2019]s ))"
    for found in poses:
        told = " ".join(found["inner"].split()).strip(" ,;:")
        bare = re.sub(subject, "", told, flags=re.I)
        if bare == told:
            bare = told[:1].lower() + told[1:]
        parts += [Piece(True, text[at : found.start()]), Piece(False, bare)]
        at = found.end()
    parts.append(Piece(True, text[at:]))
    for place, part in enumerate(parts):
        if part.is_spoken:  # stars of stressed words are left out
            said = _STARRED.sub(lambda found: found["inner"], part.text).strip()
            parts[place] = Piece(True, strip_quotes(said) if poses else said)
    return [part for part in parts if any(map(str.isalnum, part.text))]


def _is_pose(text: str, found: re.Match[str]) -> bool:
    """Whether starred words stand apart: before and behind them a sentence, a line or all ends."""
    before, after = text[: found.start()][-8:], text[found.end() : found.end() + 8]
    if not _APART.search(before):
        return False
    behind = after.lstrip(" ")
    goes_on = bool(behind) and behind[0].islower()
    return not (goes_on and found["inner"][0].isupper()) and behind[:1] not in tuple(",;:.!?")


# A piece of a long text: all that is left, or what ends at a paragraph, a sentence or a word.
_PIECE = re.compile(
    rf"\s*+(?P<piece>.{{1,{REPLY_CHARS}}}\Z|.{{{REPLY_CHARS // 2},{REPLY_CHARS - 1}}}\n"
    rf"|.{{{REPLY_CHARS * 2 // 5},{REPLY_CHARS - 9}}}"
    r"(?:[.!?\u2026؟।۔][\"'\u201d\u2019)»]{0,5}(?=\s)|[。！？][」』”]{0,5})"
    rf"|.{{1,{REPLY_CHARS}}}(?=\s)|.{{{REPLY_CHARS}}})",
    re.S,
)


def speakable(text: str) -> tuple[list[str], int]:
    """A text of any length, split for a game's screen.

    Returns the pieces and how many characters are in none of them.
    """
    body, shown, end = text.strip(), list[str](), 0
    for found in islice(_PIECE.finditer(body), REPLY_PIECES):
        shown.append(found["piece"].rstrip())
        end = found.end()
    return shown, len(body) - end


# The faults of a reply that is no answer, as the model is told them.
SAYS_NOTHING = "Your last try held no words. Say something in plain words."
MACHINE_TEXT = "Your last try held marks of a program. Write only the words you say."
ECHO = "Your last try only repeated what was said before. Say something of your own."
SPEAKS_FOR_OTHERS = "Your last try spoke for somebody else. Write only what you say yourself."


def fault(
    text: str, own_line: str, heard: Sequence[str], others: Sequence[str], own_name: str = ""
) -> str:
    """Why a cleaned reply is no answer, in one sentence; empty for an answer.

    Names of those present call somebody: `Bob, the ale is dear` repeats `Aria, the ale is dear`.

    Args:
        text: The reply.
        own_line: The assistant's newest line to the same person.
        heard: The lines that it answers.
        others: Names of the other people present.
        own_name: The assistant's.
    """
    names = set(words(" ".join((own_name, *others))))

    def telling(line: str) -> list[str]:
        return [word for word in words(line) if word not in names]

    if not words(text):
        return SAYS_NOTHING
    if _MACHINE.search(text) or NOTE_BEGINS.search(text):
        return MACHINE_TEXT
    said = telling(text)
    if len(said) >= REPEATED_WORDS and said in [telling(line) for line in (own_line, *heard)]:
        return ECHO
    if _speaks_for_others(text, others):
        return SPEAKS_FOR_OTHERS
    return ""


def said_once(text: str, before: Iterable[str]) -> str:
    """A reply as later prompts show it: without sentences that its newest replies held already.

    A model goes on with what it reads of itself, and would say such a sentence in each reply. Word
    for word; what holds nothing else stays whole.

    >>> said_once("Hat, Bob. I'm sorry, I can't help.", ["Hello! I'm sorry, I can't help."])
    'Hat, Bob.'
    """
    known = {tuple(words(part)) for line in before for part in sentences(line)}
    new = [part for part in sentences(text) if tuple(words(part)) not in known]
    if len(new) == len(sentences(text)):
        return text
    return " ".join(new) or text


def _speaks_for_others(text: str, others: Iterable[str]) -> bool:
    """Whether a line begins with somebody else's name and a colon, outside of quotes and lists.

    A list is announced by a line that ends with a colon, and goes on line by line.
    """
    names = "|".join(re.escape(name) for name in others if name)
    if not names:
        return False
    label = re.compile(
        rf"[*_\[<]{{0,3}}(?:{names})[*_\]>]{{0,3}}(?:\s?\([^()]{{1,60}}\))?\s?[:\uff1a]", re.I
    )
    in_list, quotes = False, 0
    for line in text.split("\n"):
        is_label = label.match(line.strip())
        if is_label and not in_list and quotes % 2 == 0:
            return True
        in_list = line.rstrip().endswith((":", "\uff1a")) or bool(is_label and in_list)
        quotes += line.count('"') + len(re.findall("[\u201c\u201d„«»「」]", line))
    return False
