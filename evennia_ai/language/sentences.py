"""Sentences of a text, and whether a text asks or tells."""

import re
from functools import lru_cache

# Words of a text that are read; what is beyond them costs time and says little.
MOST_WORDS = 400
_ENDS = re.compile(r"(?<=[.!?…;])[\"'”’)]*\s+")
_WORD = re.compile(r"\w+")
# A question without its mark: asked of somebody by name or not.
_UNMARKED = re.compile(
    r"^\W*(?:\w+,\s+)?(?:(?:who|what|where|when|why|how|which|whose)(?:['’]s|['’]re|"
    r"(?:\s+(?!(?:i|you|he|she|it|we|they)\b)\w+){0,2}"
    r"\s+(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should))\b"
    r"|(?:do|does|did|can|could|would|will|have) you\b|(?:tell|remind) me\b)",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """The sentences of a text, of its first few hundred words."""
    return _ENDS.split(" ".join(text.split()[:MOST_WORDS]))


@lru_cache(maxsize=4096)
def asks(text: str) -> bool:
    """Whether a text asks more than it tells, by the words of its sentences."""
    asked = told = 0
    for sentence in sentences(text):
        size = len(_WORD.findall(sentence))
        if sentence.rstrip("\"'”’) ").endswith("?") or _UNMARKED.match(sentence):
            asked += size
        else:
            told += size
    return asked > 0 and asked >= told
