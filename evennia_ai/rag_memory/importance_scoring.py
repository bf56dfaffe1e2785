"""Importance of a note where the model gave none: a heuristic from 1 (chatter) to 10 (vital)."""

from functools import partial

import regex

from evennia_ai.language.numbers import numbers_in
from evennia_ai.language.tables import table_of
from evennia_ai.language.words import STARTERS, asks, telling_words
from evennia_ai.rag_memory.journal_entry import LEAST_IMPORTANCE, bounded

# A plain statement: below the journal's default of 5; from 4 on it stays in retrieval for ever.
BASE = 3
# Telling words of a text that holds more than one fact; characters that are read.
MANY_WORDS, MAX_CHARACTERS = 8, 4000
_CAPITALISED = regex.compile(r"(?<!\w)\p{Lu}[\w'-]*\p{Ll}")


def score_importance(text: str) -> int:
    """How important a text is for memory, from 1 to 10: by names, numbers, length, "remember"."""
    text = text[:MAX_CHARACTERS]
    words = telling_words(text)
    if not words:
        return LEAST_IMPORTANCE
    speech = partial(table_of(text).expression, "speech")
    kept = 4 if speech("remember").match(text) or speech("important").search(text) else 0
    names = {word for word in _CAPITALISED.findall(text) if word.lower() not in STARTERS}
    facts = min(2, len(names)) + bool(numbers_in(text)) + (len(words) >= MANY_WORDS)
    return bounded(BASE + kept + facts - 2 * (asks(text) and not kept))
