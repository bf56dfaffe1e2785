"""Words in a row, counted plainly: an oracle for `evennia_ai.language.script.runs`.

It shares nothing with the package, and is told whether a text is written without spaces.
"""

import re

# Languages written without spaces, by name and by code.
UNSPACED = ("Chinese", "Japanese", "Thai", "zh", "ja", "th")


def wordings(text: str, language: str) -> set[str]:
    """Each five words in a row of a text, or each twelve letters in a language without spaces."""
    parts, count = re.findall(r"\w+", text.casefold()), 5
    if language in UNSPACED:
        # A letter with the marks behind it, which Thai has.
        parts, count = re.findall(r"[^\W\d_][\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]*", text), 12
    return {" ".join(parts[start : start + count]) for start in range(len(parts) - count + 1)}
