"""Narration told apart from speech: what a reply says, and what it tells that is done. Pure.

Models that learned from novels and chats write ``*smiles* Well met.`` or ``Aria looks up. "Well
met."``. What stands in stars, or beside a quoted line, is a pose; the rest is speech.

>>> told_apart("*smiles at Bob* Well met.", ["Aria"])
Told(speech='Well met.', pose='smiles at Bob')
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

_PRONOUNS = ("she", "he", "they")
_THEIRS = ("her", "his", "their", "i", "my", "you", "your", "we")
# Stars or underscores around words; brackets only at the beginning.
_STARRED = re.compile(
    r"(?<![\w*])(\*{1,3}|_)(?=[^\s*_])(?P<inner>[^*\n]{1,400}?)(?<=\S)\1(?![a-zA-Z0-9_*])"
)
_BRACKETED = re.compile(r"\A\s*\((?P<inner>[^()\n]{2,200})\)\s*(?=\S)")
_QUOTED = re.compile(r"[\"\u201c](?P<inner>[^\"\u201c\u201d]*)(?:[\"\u201d]|\Z)")
# A sentence that is said ends before the closing mark; a word that is quoted does not.
_SENTENCE_ENDS = ".!?,\u2026\u2014-"
_ENDED = re.compile(r"[.!?\u2026\u3002\uff01\uff1f\"\u201d*:]\s*\Z")
_SAYS = r"(?:says?|said|asks?|asked|replies|replied|answers|answered|adds|whispers|murmurs)"
_SAYING = re.compile(rf"(?:\A{_SAYS}\b|\b{_SAYS}\W*\Z)", re.I)
# A line of its own, as `*Bram sits down and eats.*`.
_THEIR_DEED = re.compile(
    r"\*{1,3}(?!She\b|He\b|They\b|The\b)(?P<who>[A-Z][\w'-]+) "
    r"(?!is\b|was\b|has\b|does\b|says\b)[a-z]{2,}s [^*]+\*{1,3}\Z"
)
_POSE_CHARS = 400


class Told(NamedTuple):
    """What a reply says, and its pose, in the third person without a name; both may be empty."""

    speech: str
    pose: str = ""


def told_apart(text: str, names: Iterable[str]) -> Told:
    """A model's reply, with its marks of stars and quotes, told apart.

    Args:
        text: The reply, without thoughts.
        names: Those of the assistant.
    """
    own = tuple(name.lower() for name in names)
    poses: list[str] = []

    def leave(found: re.Match[str]) -> str:
        before, after = text_now[: found.start()], text_now[found.end() :]
        theirs = _THEIR_DEED.match(found[0])
        is_line = not {before[-1:], after[:1]} - {"", "\n"}
        who = theirs["who"].lower() if theirs and is_line else ""
        if who and not any(who.startswith(name) or name.startswith(who) for name in own):
            return ""  # what somebody else does is theirs to tell
        if not _is_deed(found["inner"], before, after, own):
            return found[0]
        poses.append(found["inner"])
        return " "

    text_now = text
    speech = _STARRED.sub(leave, text_now)
    text_now = speech
    speech = _BRACKETED.sub(leave, text_now)
    speech, beside = _beside_quotes(speech.strip(), own, bool(poses))
    poses += beside
    pose = ", ".join(filter(None, (_as_pose(each, own) for each in poses)))
    return Told(
        "\n".join(" ".join(line.split()) for line in speech.split("\n")), pose[:_POSE_CHARS]
    )


def _is_deed(inner: str, before: str, after: str, own: tuple[str, ...]) -> bool:
    """Whether marked words tell what is done, rather than stress what is said.

    They stand apart, between sentences, and do not begin as one.
    """
    line = before.rsplit("\n", 1)[-1]
    behind = after.split("\n", 1)[0].strip()
    is_apart = not line.strip() or bool(_ENDED.search(line))
    is_apart &= not behind or not (behind[0].islower() or behind[0] in ",;.!?:")
    words = inner.split()
    first = words[0].strip(",.").lower()
    if first.removesuffix("'s").removesuffix("\u2019s") in (*own, *_PRONOUNS, *_THEIRS):
        return is_apart
    is_verb = len(words) > 1 and len(first) > 3 and first.endswith(("s", "ing"))
    return is_apart and inner[-1] not in "!?" and (not inner[0].isupper() or is_verb)


def _beside_quotes(text: str, own: tuple[str, ...], is_told: bool) -> tuple[str, list[str]]:
    """What is quoted in a reply written like a novel, and what stands beside it.

    Nobody begins a line of their own with what was said and goes on about ``she``, or begins with
    their own name and quotes whole sentences, unless they tell a story.
    """
    quotes = list(_QUOTED.finditer(text))
    if not quotes:
        return text, []
    edges = [0, *(edge for quote in quotes for edge in quote.span()), len(text)]
    beside = [text[a:b].strip() for a, b in zip(edges[::2], edges[1::2], strict=True)]
    said = [" ".join(quote["inner"].split()) for quote in quotes]
    is_said = said[0][-1:] in tuple(_SENTENCE_ENDS)
    first = next((part.split()[0].lower().strip(",") for part in beside if part), "")
    if re.match(_SAYS, first) and any(
        name in re.findall(r"\w+", beside[1].lower()) for name in own
    ):
        first = own[0]  # `"Aye," says Aria`
    tellers = own if beside[0] else (*own, *_PRONOUNS, *_THEIRS[:3])
    is_novel = is_said and bool(first) and first in tellers
    if not is_novel and not (is_told and is_said and not beside[0]):
        return text, []
    speech = " ".join(filter(None, said))
    if not is_novel:  # `*smiles* "Well met." And more.`
        return " ".join(filter(None, (speech, *beside))), []
    return speech, [part for part in beside if part]


def _as_pose(told: str, own: tuple[str, ...]) -> str:
    """What was told, as a pose; empty for what cannot be one."""
    told = " ".join(told.split()).strip(" ,;:").rstrip(".")
    first, _, rest = told.partition(" ")
    word = first.lower().strip(",")
    if _SAYING.search(told) or word in _THEIRS or not re.search(r"\w", told):
        return ""
    if word in own or word in _PRONOUNS:
        return rest
    for name in own:
        if told.lower().startswith((f"{name} ", f"{name}'s ", f"{name}\u2019s ")):
            return told[len(name) :].strip()
    return told[0].lower() + told[1:]
