"""Words of a text: folding, stop words, a light English stemmer, and traits of an utterance."""

import re
import unicodedata
from functools import lru_cache

# A question is short; what is beyond this is not looked at.
MAX_QUERY_CHARACTERS = 2_000

_STOP_WORDS = """
a an the and or but if of to in on at for with from by as is are was were be been being do does
did doing have has had having i you he she it we they me him her us them my your his its our
their mine yours this that these those what which who whom whose when where why how will would
can could shall should may might must not no nor so than too very s t re ve ll d m am just about
into over after before between out up down again then there here all any both each more most
other some such only own same also like get got go going went kind type thing many much
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

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


def storable(text: str) -> str:
    """A text without lone surrogates and NULs, which neither SQLite nor tokenizers take."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", " ")


def words(text: str) -> list[str]:
    """Words of a text in order, folded as SQLite's `unicode61` tokenizer folds them."""
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in decomposed if not unicodedata.combining(c))
    return _WORD.findall(text.lower())


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A word's stem: English endings off, so that `dances`, `danced`, `dancing` meet.

    Lighter than Porter's: it takes off one plural, one verb ending and one derivation, and is
    meant for matching only; a stem need not be a word.
    """
    if len(word) <= 3 or not word.isascii():
        return word
    word = _without_verb_ending(_without_plural(word))
    if word.endswith("ly") and len(word) > 5:
        word = word[:-2]
    for ending in ("ation", "ment", "ness"):
        if word.endswith(ending) and len(word) > 7:
            word = word[: -len(ending)]
            break
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_verb_ending(word: str) -> str:
    for ending in ("ing", "ed"):
        base = word[: -len(ending)]
        if word.endswith(ending) and len(base) >= 3 and re.search("[aeiouy]", base):
            doubled = len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz"
            return base[:-1] if doubled else base
    return word


def traits(text: str) -> tuple[float, ...]:
    """What kind of utterance a text is, see `TRAITS` for the order; each between 0 and 1."""
    bare = text.rstrip()
    return (
        float("?" in text),
        float(bare.endswith("?")),
        float(bool(_TIME.search(text))),
        float(bool(_NUMBER.search(text))),
        min(3, len(_SELF.findall(text))) / 3,
        min(3, len(_NAME.findall(text))) / 3,
        float(bool(_QUOTE.search(text))),
    )


TRAITS = ("asks", "ends_asking", "time", "number", "self", "name", "quote")


def packed_traits(text: str) -> int:
    """Traits and length of a text in one int: two bits a trait, the word count above them."""
    packed = min(len(_WORD.findall(text)), 65_535)
    for value in reversed(traits(text)):
        packed = packed << 2 | round(value * 3)
    return packed
