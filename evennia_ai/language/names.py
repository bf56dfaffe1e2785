"""Names that are words too: in English a person called Will or May.

Such a word is a name if it has a capital within a sentence, or is the subject at the beginning. The
tables say which words, and what shows that they are a subject or a date.
"""

import re

from evennia_ai.language.tables import each_words, table_of

# Given names among the words that say nothing of a subject.
ALSO_NAMES = each_words("also_names")
_VOCATIVE = re.compile(r"^\W*[A-Z][\w'’-]+,\s+")
# A word that does not begin a sentence, and the one behind it.
_INNER = re.compile(r"(?<=[\w,;)'’]\s)[^\W\d_]\w*")


def capitals(text: str) -> frozenset[str]:
    """The words, in lower case, with a capital that do not begin a sentence."""
    return frozenset(word.lower() for word in _INNER.findall(text) if word[0].isupper())


def names_among(text: str) -> frozenset[str]:
    """The words, in lower case, that mean somebody here and are stop words elsewhere."""
    if not any(name.title() in text for name in ALSO_NAMES):
        return frozenset()
    said, table = _VOCATIVE.sub("", text), table_of(text)
    subjects = table.expression("speech", "subject_name").findall(said)
    named = (capitals(said) & ALSO_NAMES) | {name.lower() for name in subjects}
    is_date = table.expression("speech", "date_name").search(said)
    return named - table.words("date_names") if is_date else named
