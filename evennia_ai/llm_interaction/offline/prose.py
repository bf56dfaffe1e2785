"""Prose: sentences, questions, nonsense, word stems, names."""

import re
from functools import lru_cache

from evennia_ai.language.names import capitals
from evennia_ai.language.sentences import asks
from evennia_ai.language.words import STARTERS, STOP_WORDS, spoken_words, stem, words
from evennia_ai.llm_interaction.offline.table import LISTS, SPEECH, TABLE

_ENDS = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|\n+")
_WORDLIKE = re.compile(
    r"^[\"'“”‘’(*]*[^\W\d_]+(?:['’./-][^\W\d_]+|\d{0,3})*[\"'“”‘’).,;:!?…*]*$"
    r"|^[\"'(£$€#]*\d[\d.,:/-]*(?:\w\w?|%)?[\"').,;:!?…]*$|^[-–—&+]+$"
)
_HELD = re.compile(r"([^\W\d_])\1{4}|\S{41}", re.IGNORECASE)
_PLAIN = {
    other: forms[0]
    for forms in map(str.split, TABLE["lists"]["irregular"].split("|"))
    for other in forms[1:]
}


def sentences(text: str) -> list[str]:
    """The sentences of a text, trimmed, empty ones left out."""
    parts: list[str] = []
    for piece in _ENDS.split(text):
        if parts and SPEECH["abbreviation"].search(parts[-1]):
            parts[-1] += " " + piece
        elif piece.strip():
            parts.append(piece.strip())
    return parts


def is_question(sentence: str) -> bool:
    """Whether a sentence asks rather than tells."""
    sentence = SPEECH["lead"].sub("", sentence)
    is_marked = asks(sentence) and not SPEECH["tag"].search(sentence)
    return is_marked or asks(sentence.rstrip("?\"'”’) "))


def is_nonsense(sentence: str) -> bool:
    """Whether a sentence is mostly no words: symbols, codes, one letter held down."""
    parts = sentence.split()
    odd = sum(
        not _WORDLIKE.match(part) or bool(_HELD.search(part) or SPEECH["keyboard"].search(part))
        for part in parts
    )
    return bool(parts) and odd * 2 > len(parts)


@lru_cache(maxsize=16_384)
def root(word: str) -> str:
    """A lower-case word's stem, irregular forms included, so that `kept` meets `keep`."""
    return stem(_PLAIN.get(word, word))


def root_set(text: str) -> frozenset[str]:
    """The stems of the words of a text that say what it is about."""
    return frozenset(root(word) for word in words(text) if word not in STOP_WORDS)


def roots_of(name: str) -> frozenset[str]:
    """The stems of all words of a name."""
    return frozenset(map(root, words(name)))


def names_in(text: str) -> frozenset[str]:
    """Lower-case words that a text writes as names: with a capital, not to begin a sentence."""
    firsts = (spoken_words(sentence)[:1] for sentence in sentences(text))
    begins = {word[0].lower() for word in firsts if word and word[0][:1].isupper()} - STARTERS
    return (capitals(text) | begins) - STARTERS


# Words that only frame a question, as in `do you remember`.
FRAME = frozenset(map(root, LISTS["frame"]))
