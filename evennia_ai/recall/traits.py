"""Traits of an utterance, as features of ranking, and how the index stores them."""

import re

import numpy as np

from evennia_ai.recall.vectors import Floats, Ints

TRAITS = ("asks", "ends_asking", "time", "number", "self", "name", "quote")
_WORD = re.compile(r"[^\W_]+")
_TIME = re.compile(
    r"\b(yesterday|today|tonight|tomorrow|last|next|ago|week|weekend|month|year|monday|tuesday"
    r"|wednesday|thursday|friday|saturday|sunday|morning|recently|since|19\d\d|20\d\d|january"
    r"|february|march|april|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\b(\d+|one|two|three|four|five|six|seven|eight|nine|ten|once|twice|dozen|hundred|first"
    r"|second|third|few|couple)\b",
    re.IGNORECASE,
)
_SELF = re.compile(r"\b(i|my|we|our|mine)\b", re.IGNORECASE)
# A capital that no sentence begins with.
_NAME = re.compile(r"(?<=[a-z,'’] )[\"“']?[A-Z][a-z]+")
_QUOTE = re.compile(r'["“”]')


def traits(text: str) -> tuple[float, ...]:
    """What kind of utterance a text is, in the order of `TRAITS`, each between 0 and 1."""
    return (
        float("?" in text),
        float(text.rstrip().endswith("?")),
        float(bool(_TIME.search(text))),
        float(bool(_NUMBER.search(text))),
        min(3, len(_SELF.findall(text))) / 3,
        min(3, len(_NAME.findall(text))) / 3,
        float(bool(_QUOTE.search(text))),
    )


def packed_traits(text: str) -> int:
    """Traits and length of a text in one int: two bits a trait, the word count above them."""
    packed = min(len(_WORD.findall(text)), 65_535)
    for value in reversed(traits(text)):
        packed = packed << 2 | round(value * 3)
    return packed


def unpacked_traits(packed: Ints) -> tuple[Floats, Floats]:
    """Traits, a row a text, and word counts, of what `packed_traits` gave."""
    shifts = 2 * np.arange(len(TRAITS))
    rows = (packed[:, None] >> shifts & 3) / 3
    return rows.astype(np.float32), (packed >> 2 * len(TRAITS)).astype(np.float32)
