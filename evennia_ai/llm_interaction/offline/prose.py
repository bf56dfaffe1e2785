"""Prose: sentences, questions, nonsense, word stems, names."""

from functools import lru_cache

import regex

from evennia_ai.language.names import capitals
from evennia_ai.language.script import SENTENCE_END, folded, is_unparted, size
from evennia_ai.language.sentences import asks
from evennia_ai.language.tables import DEFAULT, Table, language_of, spoken, table_of, tables
from evennia_ai.language.words import content_words, spoken_words, stem, words

_ENDS = regex.compile(rf"{SENTENCE_END.pattern}|\n+")
_WORDLIKE = regex.compile(
    r"^[\"'“”„‘’«»(*¿¡]*\p{L}[\p{L}\p{M}]*(?:['’./-]\p{L}[\p{L}\p{M}]*|\p{Nd}{0,3})*"
    r"[\"'“”‘’«»).,;:!?…*؟،؛।॥۔]*$"
    r"|^[\"'(£$€#]*\p{Nd}[\p{Nd}.,:/-]*(?:\w{1,3}|%)?[\"').,;:!?…؟،؛।॥۔]*$|^[-–—&+]+$"
)
_HELD = regex.compile(r"(\p{L})\1{2,}", regex.I)
# Of the letters of a word, and of a script with vowels among its letters.
_VOWEL = regex.compile(r"[aeiouyæøœı0-9]|[^\p{Latin}]")
MAX_LETTERS, ARTICLE_LETTERS = 40, 3  # of a word, of a language's little words
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
    """Whether a sentence is mostly no words: symbols, codes, keys in a row or held down."""
    parts = [part for part in _BREAKS.split(sentence) if part]
    return bool(parts) and sum(map(_is_odd, parts)) * 2 > len(parts)


def _is_odd(part: str) -> bool:
    repeated = sum(len(run[0]) for run in _HELD.finditer(part))
    if is_unparted(part):
        return repeated * 2 > len(part)
    keyboards = (table.expression("speech", "keyboard") for table in tables().values())
    return (
        len(part) > MAX_LETTERS
        or not _WORDLIKE.match(part)
        or repeated * 2 > len(part)
        or (part.islower() and len(part) > 3 and not _VOWEL.search(folded(part)))
        or any(keyboard.search(part) for keyboard in keyboards)
    )


@lru_cache(maxsize=16_384)
def root(word: str, code: str = DEFAULT) -> str:
    """A folded word's stem, irregular forms included, so that `kept` meets `keep`."""
    return stem(tables()[code].plain_forms.get(word, word), code)


def root_set(text: str) -> frozenset[str]:
    """The stems of the words of a text that say what it is about."""
    table = table_of(text)
    return frozenset(root(word, table.code) for word in content_words(text, table, ("stop",)))


def roots_of(name: str, code: str = "") -> frozenset[str]:
    """The stems of all words of a name, in the language of the talk if no other is named."""
    return frozenset(root(word, code or spoken().code) for word in words(name))


def names_in(text: str) -> frozenset[str]:
    """Lower-case words that a text writes as names: with a capital, not to begin a sentence."""
    if table_of(text).data.get("nouns_have_capitals"):
        return frozenset()
    # In an unknown language a short word that begins a sentence is more often an article.
    least = 1 if language_of(text) else ARTICLE_LETTERS + 1
    firsts = (spoken_words(sentence)[:1] for sentence in sentences(text))
    begins = {
        word.lower()
        for word, *_ in filter(None, firsts)
        if word[0].isupper() and len(word) >= least
    }
    return (capitals(text) | begins) - table_of(text).starters


def frame_of(table: Table) -> frozenset[str]:
    """Stems of words that only frame a question, as in `do you remember`."""
    return frozenset(root(word, table.code) for word in table.words("frame"))
