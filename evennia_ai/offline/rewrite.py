"""Rewrites what somebody said of themselves so that it stands alone, in the third person."""

import re

from evennia_ai.offline import lexicon, words

MAX_CHARS = 600
LEADS = re.compile(
    r"^(?:(?:well|so|oh|ah|by the way|truth be told|to be honest|mind you|"
    r"as it happens|i tell you|let me tell you|did i say|listen|look|you know|actually|also|and|"
    r"hey|ok|okay|aye|yes|no|please)\b[,!.?:]*\s+)+",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"\b[Ii](?:['’](m|ve|d|ll))?\b(?:\s+((?:never|always|often|also|still|only|just|once|really|"
    r"usually|sometimes|rarely|seldom|already|now|even|recently|finally|secretly)\b))?"
    r"(?:\s+([A-Za-z]+(?:['’]t)?))?"
)
# `Mine` is also where ore is dug: only what ends a clause or stands before a verb is somebody's.
_MINE = re.compile(
    r"(?<!\bthe )(?<!\ba )\b(?:mine|ours)\b(?=\s*(?:[.,;!?]|$|is\b|was\b|are\b|too\b))",
    re.IGNORECASE,
)
_FORMS = {"am": "is", "have": "has", "do": "does", "don't": "does not", "haven't": "has not"}
_KEPT = lexicon.word_set(
    "was had did will would shall should can could may might must ought and or who cannot "
    "can't won't wouldn't couldn't didn't wasn't hadn't"
)
_CONTRACTION = {"m": "is", "ve": "has", "d": "would", "ll": "will"}


def third_person(text: str, who: str) -> str:
    """A statement by `who`, with ``I``, ``me`` and ``my`` replaced by the name.

    ``We`` and ``us`` cannot be resolved from the words alone: such a statement, and one that
    names no speaker, comes back as ``who: text``.
    """
    text = LEADS.sub("", " ".join(text.split()))[:MAX_CHARS].strip()
    if not who or not text:
        return text
    if re.search(r"\b(we|us|you|your)\b", text, re.IGNORECASE):
        return f"{who}: {text}"
    changed = _SUBJECT.sub(lambda found: _third(found, who), text)
    changed = re.sub(r"\b(my|our)\b", f"{who}'s", changed, flags=re.IGNORECASE)
    changed = _MINE.sub(f"{who}'s", changed)
    changed = re.sub(r"\b(me|myself)\b", who, changed, flags=re.IGNORECASE)
    return changed if who.lower() in changed.lower() else f"{who}: {text}"


def _third(found: re.Match[str], who: str) -> str:
    contraction, adverb, verb = found.groups()
    parts = [who]
    if contraction:
        parts.append(_CONTRACTION[contraction])
    if adverb:
        parts.append(adverb)
    if verb:
        parts.append(verb if contraction else _conjugated(verb))
    return " ".join(parts)


def _conjugated(verb: str) -> str:
    lower = verb.lower().replace("’", "'")
    if lower in _FORMS:
        return _FORMS[lower]
    if (
        lower in _KEPT
        or lower in words.THIRD
        or lower.endswith("ed")
        or lexicon.is_irregular(lower)
    ):
        return verb
    if lower.endswith(("s", "x", "ch", "sh", "o")):
        return verb + "es"
    if lower.endswith("y") and lower[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"
