"""The words of turns and queries: what a query asks for, stems and forms of words."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import regex

from evennia_ai.language.script import akin, folded
from evennia_ai.language.tables import DEFAULT, language_of, tables
from evennia_ai.language.words import (
    MAX_QUERY_CHARACTERS,
    asks,
    content_words,
    stem,
    storable,
    words,
)

MAX_WORDS = 24
# A short form has at least so many letters, of a name of at least so many.
_SHORT, _FULL = 3, 5
_YEAR = re.compile(r"^(19|20)\d\d$")
_DAY = re.compile(r"^([0-3]?\d)(st|nd|rd|th)?$")
# Months where they are numbers: `5月`.
_MONTH = re.compile(r"(?<!\d)(1[0-2]|[1-9]) ?[月월]")
_name_parts = lru_cache(maxsize=16_384)(lambda name: tuple(words(name)))
# What another form of a word counts, and letters with which forms of one begin.
_KIN, _ALIKE = 0.8, 2
# Fewest words with a meaning of a statement; less is what somebody types to search for it.
STATEMENT_WORDS = 4
_SIGN = regex.compile(r"[\p{Han}\p{Hangul}]|[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*")


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query."""

    text: str  # the query, cut to `MAX_QUERY_CHARACTERS`
    # Its words in order, each once, without stop words and speakers' names.
    content: tuple[str, ...]
    asked: tuple[str, ...]  # names of the speakers in it, in order
    # Folded words of the speakers' names, and their short forms in the query.
    name_words: frozenset[str]
    months: tuple[int, ...]
    years: tuple[int, ...]
    days: tuple[int, ...]
    language: str = DEFAULT  # the code of the language it is in
    # Whether it is something said, rather than asked, and more than a few typed words.
    states: bool = False


def parsed_query(text: str, speakers: Iterable[str] = ()) -> ParsedQuery:
    """Parse a query; `speakers` are those who speak, as far as the asker may know."""
    cut = storable(text[:MAX_QUERY_CHARACTERS]).strip()
    tokens = words(cut)
    places = {
        name: place
        for name in speakers
        for place, token in reversed(list(enumerate(tokens)))
        if _is_called(token, *_name_parts(name)[:1])
    }
    parts = {part for name in places for part in _name_parts(name)}
    meant = {token for token in tokens if any(_is_called(token, part) for part in parts)}
    language = language_of(cut) or DEFAULT
    table = tables()[language]
    told = dict.fromkeys(content_words(cut, table, table.stop))
    content = [token for token in told if token not in meant][:MAX_WORDS]
    months = list[int]()
    for place, token in enumerate(tokens):
        beside = tokens[max(0, place - 1) : place + 2]
        # One that is a little word, too, as `may`, beside a number.
        is_clear = token not in table.stop or any(word[0].isdigit() for word in beside)
        if token in table.months and is_clear:
            months.append(table.months[token])
    months += map(int, _MONTH.findall(folded(cut)))
    days = (_DAY.match(token) for token in tokens) if months else ()
    return ParsedQuery(
        text=cut,
        content=tuple(content),
        asked=tuple(sorted(places, key=lambda name: (places[name], name))),
        name_words=frozenset(parts | meant),
        months=tuple(months),
        years=tuple(int(token) for token in tokens if _YEAR.match(token)),
        days=tuple(int(day[1]) for day in days if day and 1 <= int(day[1]) <= 31),
        language=language,
        states=len(content) >= STATEMENT_WORDS and not asks(cut),
    )


def _is_called(token: str, part: str = "") -> bool:
    """Whether a word is a name or its short form: `mel` for `melanie`, not `me`."""
    short = len(token) >= _SHORT and len(part) >= _FULL and part.startswith(token)
    return token == part or short


def turn_words(text: str) -> list[str]:
    """The words of a turn, each once.

    Where words have no spaces, each sign is one, too: among pairs of signs `船` would not be found.
    """
    signs = () if text.isascii() else _SIGN.findall(folded(text))
    return list(dict.fromkeys([*words(text), *signs]))


def forms_of(word: str, language: str, stored: Callable[[str], Iterable[str]]) -> dict[str, float]:
    """The stems of turns that are forms of a query's word, and how near each comes, up to 1.

    Args:
        word: One of a query's `content`.
        language: The code of the query's language. In English the stem is the only form.
        stored: Gives the stems of all turns that begin with some letters.
    """
    forms = {stem(word): 1.0}
    if language != DEFAULT:
        own = stem(word, language)
        for other in stored(word[:_ALIKE]):
            if stem(other, language) == own:
                forms[other] = 1.0
            elif akin(other, word):
                forms.setdefault(other, _KIN)
    return forms
