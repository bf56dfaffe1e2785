"""Words of a text: its sentences, common words and stems, names, and what it is about.

The package has no other stemmers.
"""

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, lru_cache
from typing import Any

import regex
import snowballstemmer

from evennia_ai.language.script import (
    FORM_LETTERS,
    SENTENCE_END,
    akin,
    folded,
    is_asked,
    places,
    size,
    words_of,
)
from evennia_ai.language.script import words as words
from evennia_ai.language.tables import DEFAULT, Table, table_of, tables

# A question is short; what is beyond this is not looked at.
MAX_QUERY_CHARACTERS = 2_000
STOP_WORDS = tables()[DEFAULT].stop

# Most letters that a form of a name has more than the name.
ENDING_LETTERS = 4
# A short name may end with more than another vowel: `Еву` and `Евой` are `Ева`.
_VOWEL = regex.compile("[aeiouyаеиоуыэюя]")
_VOWEL_ENDING = regex.compile(f"ie|{_VOWEL.pattern}й?")
# The vowel that falls out before an ending: `Павлом` is `Павел`.
_FLEETING = regex.compile("(?<=.{3})[eео](?=[^aeiouyаеиоуыэюя]$)")
# Little words that Arabic and Hebrew write together with the next.
_PREFIX = regex.compile("[ولبفك]{1,2}|[ולבכמשה]{1,2}")

# Given names among the words that say nothing of a subject: in English a person called Will or May.
ALSO_NAMES = frozenset(("will", "may"))
# A word that does not begin a sentence, and the one behind it.
_INNER = re.compile(r"(?<=[\w,;)'’]\s)[^\W\d_]\w*")
# Words of a text that are read; what is beyond them costs time and says little.
MOST_WORDS = 400
# The same as `SENTENCE_END` for plain letters, ten times as fast: every text of an index is read.
_PLAIN_END = re.compile(r"(?<=[.!?;])[\"')]*\s+")
# What marks a cut in an excerpt, and where sentences end.
CUT = "…"
# Places of wanted words among which the best part of a line is looked for.
MOST_PLACES = 200
_END = re.compile(r"[.!?؟۔।]\s+|[。！？]")
# An escape in JSON: both halves of a character, half of one or a NUL, or any other.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}"
    r"|(u[dD][89a-fA-F][\da-fA-F]{2}|u0000)|.)",
    re.S,
)
_SPOKEN = regex.compile(r"[^\W_]+(?:['’][^\W_]+)?")


def storable(text: str) -> str:
    """A text every database, tokenizer and network takes: no lone surrogates, no NULs."""
    try:
        text.encode()
    except UnicodeEncodeError:  # two halves that belong together become one character
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return text.replace("\x00", "")


def storable_json(text: str) -> str:
    """A JSON text without them, also where they are escaped."""
    return storable(_ESCAPE.sub(lambda found: "" if found[1] else found[0], text))


def storable_value(value: Any) -> Any:
    """A value of JSON whose texts, at any depth, are storable."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {storable(str(key)): storable_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [storable_value(each) for each in value]
    return value


def sentences(text: str) -> list[str]:
    """The sentences of a text, of its first few hundred words."""
    ends = _PLAIN_END if text.isascii() else SENTENCE_END
    parts = ends.split(" ".join(text.split()[:MOST_WORDS]))
    return [part for part in parts if part] or [""]


@lru_cache(maxsize=4096)
def asks(text: str) -> bool:
    """Whether more of a text's words are in sentences with a question mark than in others."""
    asked = told = 0
    for sentence in sentences(text):
        if is_asked(sentence):
            asked += size(sentence)
        else:
            told += size(sentence)
    return asked > 0 and asked >= told


def capitals(text: str) -> frozenset[str]:
    """The words, in lower case, with a capital that do not begin a sentence."""
    return frozenset(word.lower() for word in _INNER.findall(text) if word[0].isupper())


def names_among(text: str) -> frozenset[str]:
    """The words, in lower case, that mean somebody here and are stop words elsewhere.

    Such a word has a capital within a sentence, or begins one that asks nothing.
    """
    if not any(name.title() in text for name in ALSO_NAMES):
        return frozenset()
    firsts = (spoken_words(part)[:1] for part in sentences(text) if not is_asked(part))
    begins = {bare(word.lower()) for word, *_ in filter(None, firsts) if word[0].isupper()}
    return (capitals(text) | begins) & ALSO_NAMES


@lru_cache(maxsize=65_536)
def stem(word: str, code: str = DEFAULT) -> str:
    """A word without its endings, so that `dances`, `danced`, `dancing` meet.

    By the stemmer that the language's table names: Snowball's, or ``light``, which takes one
    plural, one verb ending and one derivation off English words, fewer than Porter's.
    """
    return _stemmer(code)(word)


def _light_stem(word: str) -> str:
    if len(word) <= 3 or not word.isascii():
        return word
    word = _without_verb_ending(singular(word))
    if word.endswith("ly") and len(word) > 5:
        word = word[:-2]
    for ending in ("ation", "ment", "ness"):
        if word.endswith(ending) and len(word) > 7:
            word = word[: -len(ending)]
            break
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word


@cache
def _stemmer(code: str) -> Callable[[str], str]:
    name, prefixes = (tables()[code].data.get(key) for key in ("stemmer", "verb_prefixes"))
    if name == "light":
        return _light_stem
    if not name:
        return str
    by_ending = snowballstemmer.stemmer(name).stemWord
    person = regex.compile(rf"^[{prefixes}](?=.{{3}})" if prefixes else "(?!)")
    # Some stems are no longer folded: Turkish `borc-um` becomes `borç`.
    return lambda word: person.sub("", folded(by_ending(word)))


def singular(word: str) -> str:
    """A word in lower case without its plural ending."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "zes", "ches", "shes")) and len(word) > 4:
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_verb_ending(word: str) -> str:
    for ending in ("ing", "ed"):
        base = word[: -len(ending)]
        if word.endswith(ending) and len(base) >= 3 and regex.search("[aeiouy]", base):
            doubled = len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz"
            return base[:-1] if doubled else base
    return word


def spoken_words(text: str) -> list[str]:
    """Words of a text as they stand, a contraction or possessive being one word."""
    return list(_SPOKEN.findall(text))


def bare(word: str) -> str:
    """A word in lower case without a possessive or contracted ending; ``not`` for ``don't``."""
    head, mark, ending = word.replace("’", "'").partition("'")
    return "not" if ending == "t" and head.endswith("n") else head if mark else word


def without_article(name: str) -> str:
    """A name without the little word that it may begin with: `a slender innkeeper`."""
    first, _, rest = name.partition(" ")
    return rest if rest and folded(first) in STOP_WORDS else name


def is_common(word: str) -> bool:
    """Whether a bare word in lower case, or its singular, says nothing of a subject."""
    return any(each in tables()[DEFAULT].little for each in (word, singular(word)))


def mentions(text: str, names: Iterable[str], others: Collection[str] = ()) -> bool:
    """Whether a text names somebody, by a name or a part with a capital, as `Ann` of `Ann Lee`.

    A word with a capital, or of a script without, may be any form of a name: `Annę` is `Anna`. One
    without is none, but in a name of several or without capitals. Ordinary words and names of
    `others` are no forms of it; a name that is an ordinary word itself must be a name here, as
    `Will` in `Will is late`.
    """
    ordinary = tables()[DEFAULT].little | table_of(text).little
    named = set(map(folded, capitals(text) | names_among(text)))
    said = places(text)

    def fits(at: int, word: str, name: str) -> bool:
        if word == name or word in ordinary or not is_form(word, name):
            return word == name
        spelt = text[at : at + len(word)].casefold()  # `Annę` is not `Anne`
        return all(spelt not in other.casefold().split() for other in others)

    def is_there(row: list[tuple[int, str]], name: list[str], is_lower: bool) -> bool:
        spelt = [word for _, word in row]
        letters = [text[place] for place, _ in row]
        if spelt == name and len(name) == 1 and name[0] in ordinary:
            return name[0] in named or letters[0].lower() == letters[0].upper()
        if not any(map(_is_capital, letters)):
            is_told = is_lower or (len(name) > 1 and not ordinary.issuperset(name))
            return is_told and spelt == name
        pairs = zip(row, name, strict=False)
        return len(row) == len(name) and all(fits(*place, wanted) for place, wanted in pairs)

    def is_named(name: str) -> bool:
        row = [word for _, word in places(name)]
        rows = (said[at : at + len(row)] for at in range(len(said) if row else 0))
        return any(is_there(each, row, not _has_capital(name)) for each in rows)

    parts = {part for name in names for part in name.split() if _has_capital(part)}
    return any(map(is_named, {*names, *(part for part in parts if folded(part) not in ordinary)}))


def _is_capital(letter: str) -> bool:
    """Whether a letter is one that begins names, as each of a script without case."""
    return letter == letter.title()


def _has_capital(name: str) -> bool:
    return any(_is_capital(name[at]) for at, _ in places(name))


def is_form(word: str, name: str) -> bool:
    """Whether a word is a name, maybe with another ending, not the beginning of a longer word."""
    if len(name) == FORM_LETTERS and _VOWEL.fullmatch(name[-1]) and word.startswith(name[:-1]):
        return _VOWEL_ENDING.fullmatch(word[len(name) - 1 :]) is not None
    if len(word) > len(name) + ENDING_LETTERS:
        return False
    without_vowel = _FLEETING.sub("", name)
    return (
        akin(word, name)
        or (without_vowel != name and word.startswith(without_vowel))
        or (word.endswith(name) and _PREFIX.fullmatch(word[: -len(name)]) is not None)
    )


@lru_cache(maxsize=8_192)
def telling_stem(word: str) -> str:
    """The stem of an English word in lower case; empty for one that says nothing of a subject."""
    word = bare(word)
    tells = word.isdigit() or (len(word) > 1 and not is_common(word))
    return stem(word) if tells else ""


def telling_words(text: str, heard: Collection[str] = ()) -> frozenset[str]:
    """Stems of the words that say what a text is about.

    `heard` are names that everybody here hears all the time, as the assistant's own.
    """
    table = table_of(text)
    if table.code != DEFAULT:
        known = {word for name in heard for word in words(name)}
        return frozenset(stem(w, table.code) for w in content_words(text, table) if w not in known)
    meant = names_among(text)
    common = {bare(word) for name in heard for word in spoken_words(name.lower())}
    found = {bare(folded(word)) for word in spoken_words(text)} - common
    return frozenset(filter(None, (telling_stem(word) for word in found - meant))) | meant - common


def content_words(text: str, table: Table) -> list[str]:
    """The words of a text, in order, that say something of a subject."""
    text, is_unparted = folded(text), table.data.get("unparted")
    if is_unparted:
        text = _endings(table.code).sub("", text)
        text = _fillers(table.code).sub(" ", text)
    return [
        word
        for word in words_of(text)
        if word not in table.little and (word[1:] or word.isdigit() or is_unparted)
    ]


@cache
def _endings(code: str) -> regex.Pattern[str]:
    """Particles that a language glues to words."""
    return regex.compile(tables()[code].data.get("endings", "(?!)"))


@cache
def _fillers(code: str) -> regex.Pattern[str]:
    """The little words of a language without spaces, wherever they stand, the longest first."""
    words = sorted(tables()[code].stop, key=len, reverse=True)
    return regex.compile("|".join(map(regex.escape, words)) or "(?!)")


def plain(text: str) -> str:
    """A text for comparing: without case and surrounding space."""
    return text.strip().casefold()


def excerpt(text: str, query: str, room: int) -> str:
    """The part of a text that shares most with a query, in at most `room` characters.

    Whole lines, or else the part of the best with most of the query's words, in whole sentences
    where there are any. An ellipsis marks a cut, behind a blank where it is between sentences.
    """
    rows = [row for row in text.splitlines() if row.strip()]
    if len(text) <= room or not rows:
        return text[:room]
    wanted = set(_compared(query).values())
    best = sorted(range(len(rows)), key=lambda at: -len(wanted & set(_compared(rows[at]).values())))
    kept: list[int] = []
    left = room
    for at in best:
        if len(rows[at]) < left:
            kept.append(at)
            left -= len(rows[at]) + 1
    if kept[:1] != best[:1]:
        return _part(rows[best[0]], wanted, room)
    return "\n".join(rows[at] for at in sorted(kept))


def _part(row: str, wanted: set[str], room: int) -> str:
    """The part of a line with most of the wanted words, from shortly before the first of them."""
    if len(row) <= room:
        return row
    places = ((at, word) for at, word in _compared(row).items() if word in wanted)
    shared = dict(itertools.islice(places, MOST_PLACES))
    width = room - 2 * len(CUT) - 1
    lead = width // 3

    def held(at: int) -> int:
        return len({word for place, word in shared.items() if at <= place < at + width - lead})

    first = max(shared, key=lambda at: (held(at), -at), default=0)
    if held(first) > 1:  # the last place from which they all are there: they stand together
        nearer = (at for at in shared if first < at < first + width - lead)
        first = max((at for at in nearer if held(at) == held(first)), default=first)
    start = max(0, min(first - lead, len(row) - width))
    if sentence := _END.search(row, start, first) if start else None:
        start, head = sentence.end(), f"{CUT} "
    elif start:
        start, head = row.find(" ", start, first) + 1 or start, CUT
    else:
        head = ""
    end = start + width
    if end >= len(row):
        return head + row[start:]
    last = max((at for at in shared if first <= at < end), default=first)
    if ends := [sentence.end() for sentence in _END.finditer(row, last, end)]:
        return f"{head}{row[start : ends[-1]].rstrip()} {CUT}"
    return f"{head}{row[start : row.rfind(' ', first, end) % (end + 1)]}{CUT}"


def _compared(text: str) -> dict[int, str]:
    """The stems of a text's words, without common ones, by where they begin."""
    table = table_of(text)
    common = table.little
    return {at: stem(word, table.code) for at, word in places(text) if word not in common}
