"""Words in a row, counted plainly: an oracle for `evennia_ai.language.script.runs`.

It shares nothing with the package, and is told whether a text is written without spaces.
"""

import unicodedata

# Codes of languages that are written without spaces.
UNSPACED = ("ja", "th", "zh")


def wordings(text: str, language: str) -> set[str]:
    """Each five words in a row of a text, or each twelve letters in a language without spaces."""
    parts, count = _words(text), 5
    if language in UNSPACED:
        parts, count = _letters(text), 12
    return {" ".join(parts[start : start + count]) for start in range(len(parts) - count + 1)}


def _words(text: str) -> list[str]:
    signs = list(text.casefold())
    for place, sign in enumerate(signs):
        if unicodedata.category(sign)[0] not in "LNM":
            signs[place] = " "
    return "".join(signs).split()


def _letters(text: str) -> list[str]:
    """Letters, each with the marks behind it, which Thai has."""
    letters: list[str] = []
    for sign in text:
        kind = unicodedata.category(sign)[0]
        if kind == "L":
            letters.append(sign)
        elif kind == "M" and letters:
            letters[-1] += sign
    return letters
