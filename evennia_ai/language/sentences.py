"""Sentences of a text, and whether a text asks or tells."""

import re
from functools import lru_cache

from evennia_ai.language.script import SENTENCE_END, is_asked, size
from evennia_ai.language.tables import table_of

# Words of a text that are read; what is beyond them costs time and says little.
MOST_WORDS = 400
# The same as `SENTENCE_END` for plain letters, ten times as fast: every text of an index is read.
_PLAIN_END = re.compile(r"(?<=[.!?;])[\"')]*\s+")


def sentences(text: str) -> list[str]:
    """The sentences of a text, of its first few hundred words."""
    ends = _PLAIN_END if text.isascii() else SENTENCE_END
    parts = ends.split(" ".join(text.split()[:MOST_WORDS]))
    return [part for part in parts if part] or [""]


@lru_cache(maxsize=4096)
def asks(text: str) -> bool:
    """Whether a text asks more than it tells, by the words of its sentences."""
    asked = told = 0
    unmarked = table_of(text).expression("speech", "asks")
    for sentence in sentences(text):
        if is_asked(sentence) or unmarked.search(sentence):
            asked += size(sentence)
        else:
            told += size(sentence)
    return asked > 0 and asked >= told
