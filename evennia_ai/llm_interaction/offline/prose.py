"""Prose: sentences, questions, nonsense, word stems, names."""

from functools import lru_cache

import regex

from evennia_ai.language.names import capitals
from evennia_ai.language.script import SENTENCE_END, is_unparted, size
from evennia_ai.language.sentences import asks
from evennia_ai.language.tables import DEFAULT, spoken, table_of, tables
from evennia_ai.language.words import STARTERS, content_words, spoken_words, stem, words

_ENDS = regex.compile(rf"{SENTENCE_END.pattern}|\n+")
_WORDLIKE = regex.compile(
    r"^[\"'“”„‘’«»(*¿¡]*\p{L}[\p{L}\p{M}]*(?:['’./-]\p{L}[\p{L}\p{M}]*|\p{Nd}{0,3})*"
    r"[\"'“”‘’«»).,;:!?…*؟،؛।॥۔]*$"
    r"|^[\"'(£$€#]*\p{Nd}[\p{Nd}.,:/-]*(?:\w{1,3}|%)?[\"').,;:!?…؟،؛।॥۔]*$|^[-–—&+]+$"
)
_HELD = regex.compile(r"(\p{L})\1{4}|\S{41}", regex.I)
_BREAKS = regex.compile(r"[\s。，、！？：；…「」『』・“”]+")


def sentences(text: str) -> list[str]:
    """The sentences of a text, trimmed, empty ones left out."""
    parts: list[str] = []
    table = table_of(text)
    for piece in _ENDS.split(text):
        if parts and table.expression("speech", "abbreviation").search(parts[-1]):
            parts[-1] += " " + piece
        elif piece.strip():
            parts.append(piece.strip())
    return parts


def is_question(sentence: str) -> bool:
    """Whether a sentence asks rather than tells."""
    table = table_of(sentence)
    sentence = table.expression("speech", "lead").sub("", sentence)
    tag = table.expression("speech", "tag").search(sentence)
    # `It is cold, is it?` tells; before `are you well?` a name alone stands.
    is_marked = asks(sentence) and not (tag and size(sentence[: tag.start()]) > 1)
    return is_marked or asks(sentence.rstrip("?\"'”’) "))


def is_nonsense(sentence: str) -> bool:
    """Whether a sentence is mostly no words: symbols, codes, one letter held down."""
    parts = [part for part in _BREAKS.split(sentence) if part]
    keyboard = tables()[DEFAULT].expression("speech", "keyboard")
    odd = sum(
        not is_unparted(part)
        and (not _WORDLIKE.match(part) or bool(_HELD.search(part) or keyboard.search(part)))
        for part in parts
    )
    return bool(parts) and odd * 2 > len(parts)


_IRREGULAR = map(str.split, tables()[DEFAULT].get("lists", "irregular").split("|"))
_PLAIN = {other: forms[0] for forms in _IRREGULAR for other in forms[1:]}


@lru_cache(maxsize=16_384)
def root(word: str, code: str = DEFAULT) -> str:
    """A folded word's stem, English irregular forms included, so that `kept` meets `keep`."""
    return stem(_PLAIN.get(word, word) if code == DEFAULT else word, code)


def root_set(text: str) -> frozenset[str]:
    """The stems of the words of a text that say what it is about."""
    table = table_of(text)
    if table.code == DEFAULT:
        stop = table.words("stop")
        return frozenset(root(word) for word in words(text) if word not in stop)
    return frozenset(root(word, table.code) for word in content_words(text, table))


def roots_of(name: str, code: str = "") -> frozenset[str]:
    """The stems of all words of a name, in the language of the talk if no other is named."""
    return frozenset(root(word, code or spoken().code) for word in words(name))


def names_in(text: str) -> frozenset[str]:
    """Lower-case words that a text writes as names: with a capital, not to begin a sentence."""
    if table_of(text).data.get("nouns_have_capitals"):
        return frozenset()
    firsts = (spoken_words(sentence)[:1] for sentence in sentences(text))
    begins = {word[0].lower() for word in firsts if word and word[0][:1].isupper()} - STARTERS
    return (capitals(text) | begins) - STARTERS


# Words that only frame a question, as in `do you remember`.
FRAME = frozenset(map(root, tables()[DEFAULT].words("frame")))
