"""Names that are words too: a person called Will or May.

Such a word is a name if it has a capital within a sentence, or is the subject at the beginning.
"""

import re

# Given names among the words that say nothing of a subject.
ALSO_NAMES = frozenset({"will", "may"})
_VOCATIVE = re.compile(r"^\W*[A-Z][\w'’-]+,\s+")
# A word that does not begin a sentence, and the one behind it.
_INNER = re.compile(r"(?<=[\w,;)'’]\s)[^\W\d_]\w*")
# `Will lives in the mill.`, but neither `Will this do?` nor `Will dogs bite?`
_SUBJECT = re.compile(
    r"(?:^|[.!?]\s)\W*(Will|May)(?=['’]s\b"
    r"|\s(?!this\b|his\b|its\b|us\b|as\b)(?:had|[a-z]+(?:s|ed))\b(?![^.!?]*\?))"
)
_MONTH = re.compile(
    r"\b(?:in|of|on|since|until|till|by|during|before|after|from|every|each|last|next|this|early"
    r"|mid|late|\d+(?:st|nd|rd|th)?),?[\s-]May\b|\bMay,?\s\d"
)


def capitals(text: str) -> frozenset[str]:
    """The words, in lower case, with a capital that do not begin a sentence."""
    return frozenset(word.lower() for word in _INNER.findall(text) if word[0].isupper())


def names_among(text: str) -> frozenset[str]:
    """The words, in lower case, that mean somebody here and are stop words elsewhere."""
    if not any(name.title() in text for name in ALSO_NAMES):
        return frozenset()
    said = _VOCATIVE.sub("", text)
    named = (capitals(said) & ALSO_NAMES) | {name.lower() for name in _SUBJECT.findall(said)}
    return named - {"may"} if _MONTH.search(said) else named
