"""The words of turns and queries: what a query asks for, stems and forms of words."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import regex

from evennia_ai.language.script import akin, folded
from evennia_ai.language.tables import DEFAULT, language_of, tables
from evennia_ai.language.words import (
    ALSO_NAMES,
    MAX_QUERY_CHARACTERS,
    STOP_WORDS,
    content_words,
    names_among,
    stem,
    storable,
    words,
)

MAX_WORDS = 24
_MONTHS = "january february march april may june july august september october november december"
# `may` and `mar` are words too.
_MONTH_NUMBERS = {
    name[:cut]: number
    for number, name in enumerate(_MONTHS.split(), 1)
    for cut in (3, len(name))
    if name[:cut] not in ("may", "mar")
}
# A short form has at least so many letters, of a name of at least so many.
_SHORT, _FULL = 3, 5
_WANTS_TIME = re.compile(
    r"^(when|what (date|day|month|year|time)|which (month|year|day))\b|how long"
)
_WANTS_NAME = re.compile(r"^who\b|\bname|\bwhich\b|\bcalled\b")
_MAY = re.compile(r"\b(in|of|on|\d+(st|nd|rd|th)?) may\b|\bmay,? \d")
_TOGETHER = re.compile(r"\b(both|and|shared?|common|together)\b")
_AUXILIARIES = words("did does do has have had is was will would can could")
# The present tense asks for what holds; one of these asks for what was.
_NOW = re.compile(r"\b(is|are|does|do|has|have|lives?|s|'s|’s|now|current\w*|these days)\b")
_PAST = re.compile(
    r"\b(did|was|were|had|first|once|before|ago|last|used|original\w*|always|ever|times"
    r"|(19|20)\d\d)\b"
)
# Where a thing was put asks about now.
_PUT = re.compile(
    r"^where (did|has|have)\b.*\b(hid|hide|hidden|put|stash\w*|leave|left|keep|kept|store\w*"
    r"|bury|buried|tuck\w*)\b"
)
# A capital that no query begins with.
_NAME = re.compile(r"(?<=\s)[\"'“‘]?([A-Z]\w+)")
_YEAR = re.compile(r"^(19|20)\d\d$")
_DAY = re.compile(r"^([0-3]?\d)(st|nd|rd|th)?$")
_name_parts = lru_cache(maxsize=16_384)(lambda name: tuple(words(name)))
# What another form of a word counts, and letters with which forms of one begin.
_KIN, _ALIKE = 0.8, 2
# Before a word that means somebody, as `will` may.
_AS_NAME = "§"
_SIGN = regex.compile(r"[\p{Han}\p{Hangul}]|[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*")


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query."""

    text: str  # the query, cut to `MAX_QUERY_CHARACTERS`
    # Its words in order, each once, without stop words and speakers' names.
    content: tuple[str, ...]
    asked: tuple[str, ...]  # names of the speakers in it; who does something comes first
    proper: tuple[bool, ...]  # which words of `content` are written as names
    # Words of `content` that name somebody here and are stop words elsewhere.
    also_names: frozenset[str]
    # Folded words of the speakers' names, and their short forms in the query.
    name_words: frozenset[str]
    together: bool  # whether it asks about several speakers together
    months: tuple[int, ...]
    years: tuple[int, ...]
    days: tuple[int, ...]
    wants_time: bool
    wants_name: bool
    asks_now: bool  # whether it asks, in the present tense, how things are
    # Whether it may ask so: it has no word of the past, or asks where something was put.
    may_ask_now: bool
    language: str = DEFAULT  # the code of the language it is in


def parsed_query(text: str, speakers: Iterable[str] = ()) -> ParsedQuery:
    """Parse a query; `speakers` are those who speak, as far as the asker may know."""
    cut = storable(text[:MAX_QUERY_CHARACTERS]).strip()
    lower, tokens = cut.lower(), words(cut)
    names = {
        name: own
        for name in speakers
        if (own := _name_parts(name)) and any(_is_called(token, own[0]) for token in tokens)
    }
    asked = _in_order_of_doing(tokens, names)
    parts = {part for name in asked for part in names[name]}
    meant = {token for token in tokens if any(_is_called(token, part) for part in parts)}
    also_names = names_among(cut) - meant
    unwanted = (STOP_WORDS - also_names) | meant
    language = language_of(cut) or DEFAULT
    told = tokens if language == DEFAULT else content_words(cut, tables()[language])
    content = [token for token in dict.fromkeys(told) if token not in unwanted][:MAX_WORDS]
    capitals = {word for name in _NAME.findall(cut) for word in words(name)}
    months = [_MONTH_NUMBERS[token] for token in tokens if token in _MONTH_NUMBERS]
    months += [5] if _MAY.search(lower) else []
    days = (_DAY.match(token) for token in tokens) if months else ()
    may_ask_now = bool(_PUT.search(lower)) or not (_PAST.search(lower) or months)
    return ParsedQuery(
        text=cut,
        content=tuple(content),
        asked=asked,
        proper=tuple(word in capitals for word in content),
        also_names=also_names,
        name_words=frozenset(parts | meant),
        together=len(asked) > 1 and bool(_TOGETHER.search(lower)),
        months=tuple(months),
        years=tuple(int(token) for token in tokens if _YEAR.match(token)),
        days=tuple(int(day[1]) for day in days if day and 1 <= int(day[1]) <= 31),
        wants_time=bool(_WANTS_TIME.search(lower)),
        wants_name=bool(_WANTS_NAME.search(lower)),
        asks_now=may_ask_now and bool(_NOW.search(lower)) and "when" not in tokens,
        may_ask_now=may_ask_now,
        language=language,
    )


def _is_called(token: str, part: str) -> bool:
    """Whether a word is a name or its short form: `mel` for `melanie`, not `me`."""
    short = len(token) >= _SHORT and len(part) >= _FULL and part.startswith(token)
    return token == part or short


def _in_order_of_doing(tokens: list[str], names: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Names in their order in the text, but first the one after an auxiliary: `did Alice`."""

    def place(name: str) -> tuple[bool, int, str]:
        at = [n for n, token in enumerate(tokens) if _is_called(token, names[name][0])]
        does = any(n and tokens[n - 1] in _AUXILIARIES for n in at)
        return not does, at[0], name

    return tuple(sorted(names, key=place))


def turn_words(text: str) -> list[str]:
    """The words of a turn, each once, and those that mean somebody, marked.

    Where words have no spaces, each sign is one, too: among pairs of signs `船` would not be found.
    """
    named = (_AS_NAME + name for name in sorted(names_among(text)))
    signs = () if text.isascii() else _SIGN.findall(folded(text))
    return list(dict.fromkeys([*words(text), *signs, *named]))


def asked_words(query: ParsedQuery) -> list[str]:
    """The words of a query's `content` as `turn_words` has them."""
    return [_AS_NAME + word if word in query.also_names else word for word in query.content]


def stem_of(word: str) -> str:
    """The stem by which a word of `turn_words` is looked for."""
    return word if word.startswith(_AS_NAME) else stem(word)


def forms_of(word: str, language: str, stored: Callable[[str], Iterable[str]]) -> dict[str, float]:
    """The stems of turns that are forms of a query's word, and how near each comes, up to 1.

    Args:
        word: One of `asked_words`.
        language: The code of the query's language. In English the stem is the only form.
        stored: Gives the stems of all turns that begin with some letters.
    """
    forms = {stem_of(word): 1.0}
    if language != DEFAULT:
        own = stem(word, language)
        for other in stored(word[:_ALIKE]):
            if stem(other, language) == own:
                forms[other] = 1.0
            elif akin(other, word):
                forms.setdefault(other, _KIN)
    return forms


def name_stems(query: ParsedQuery) -> list[str]:
    """The stems by which those are named whom a query names."""
    names = sorted(query.name_words)
    return [stem_of(_AS_NAME + name if name in ALSO_NAMES else name) for name in names]
