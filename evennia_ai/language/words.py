"""Words of a text: its sentences, common words and stems, names, and what it is about."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import regex
import snowballstemmer

from evennia_ai.language.script import (
    FORM_LETTERS,
    FULL_STOP,
    JOINED,
    SENTENCE_END,
    UNIT,
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

# A word that does not begin a sentence, and the one behind it.
_INNER = re.compile(r"(?<=[\w,;)'’]\s)[^\W\d_]\w*")
# Words of a text that are read; what is beyond them costs time and says little.
MOST_WORDS = 400
# The same as `SENTENCE_END` for plain letters, ten times as fast: every text of an index is read.
_PLAIN_END = re.compile(r"(?<=[.!?;])[\"')]*\s+")
# What sets words off from what stands around them.
_SET_OFF = " ,،、，:：;；–—-"
# What marks a cut in an excerpt.
CUT = "…"
# An escape in JSON: both halves of a character, half of one or a NUL, or any other.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}"
    r"|(u[dD][89a-fA-F][\da-fA-F]{2}|u0000)|.)",
    re.S,
)


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
    ends = SENTENCE_END
    if text.isascii():
        ends = _PLAIN_END
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


@lru_cache(maxsize=65_536)
def stem(word: str, code: str = DEFAULT) -> str:
    """A folded word without its endings, so that `dances`, `danced`, `dancing` meet.

    By the Snowball stemmer that the language's table names; a word as it is where it names none.
    """
    return _stemmer(code)(word)


@cache
def _stemmer(code: str) -> Callable[[str], str]:
    name, prefixes = (tables()[code].data.get(key) for key in ("stemmer", "verb_prefixes"))
    if not name:
        return str
    by_ending = snowballstemmer.stemmer(name).stemWord
    person = regex.compile(rf"^[{prefixes}](?=.{{3}})" if prefixes else "(?!)")
    # Some stems are no longer folded: Turkish `borc-um` becomes `borç`.
    return lambda word: person.sub("", folded(by_ending(word)))


def parted(lines: Iterable[str], text: str) -> tuple[str, str, str]:
    """What stands before, in and behind the words of a text, in the first line that has them.

    They stand there in a row; forms of a word count as the word, in scripts without spaces each
    letter counts, marks do not. Three empty texts if no line has them.
    """
    for line in lines:
        code, places = table_of(line).code, [word.span() for word in UNIT.finditer(line)]
        said, wanted = (
            [stem(folded(word), code) for word in UNIT.findall(each)] for each in (line, text)
        )
        for at in range(len(said)):
            stretch = slice(at, at + len(wanted))
            if wanted and said[stretch] == wanted:
                start, end = places[stretch][0][0], places[stretch][-1][1]
                return line[:start], line[start:end], line[end:]
    return "", "", ""


def message_in(before: str, words: str, behind: str, to: str = "") -> str:
    """Words of a line with all that may turn their sense, to the end of their sentence.

    Where they are told to somebody: from directly behind the name if it stands before them, else,
    or if the name goes on with a particle, from the beginning of their sentence; of a line that has
    no such name, from its beginning. Empty if an earlier sentence alone has the name: it may be
    about somebody rather than for them.
    """
    ends = [0, *(stop.end() for stop in FULL_STOP.finditer(before + words[:1]))]
    told, rest = before[ends[-1] :], words + behind
    stop = FULL_STOP.search(rest, len(words))
    ending = rest[: stop and stop.start()]
    _, name, behind_name = parted([told], to)
    if name and not JOINED.match(behind_name):
        told = behind_name
    elif to and not parted([told + ending], to)[1]:
        if parted([before], to)[1]:
            return ""
        if not parted([behind], to)[1]:
            told = before
    return (told + ending).strip(_SET_OFF)


def without_article(name: str) -> str:
    """A name without the little word that it may begin with: `a slender innkeeper`."""
    first, _, rest = map(str.strip, name.strip().partition(" "))
    if rest and any(folded(first) in each.stop for each in tables().values()):
        return rest
    return name


def is_common(word: str) -> bool:
    """Whether a folded word says nothing of a subject in English."""
    return word in tables()[DEFAULT].little


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


def telling_words(text: str, heard: Iterable[str] = ()) -> frozenset[str]:
    """Stems of the words that say what a text is about.

    `heard` are names that everybody here hears all the time, as the assistant's own.
    """
    table = table_of(text)
    common = {word for name in heard for word in words(name)}
    told = (word for word in content_words(text, table) if word not in common)
    return frozenset(stem(word, table.code) for word in told)


def content_words(text: str, table: Table, little: frozenset[str] | None = None) -> list[str]:
    """The words of a text, in order, that say something of a subject.

    `little` are those that say nothing, by default the language's.
    """
    if little is None:
        little = table.little
    text, is_unparted = folded(text), table.data.get("unparted")
    if is_unparted:
        text = table.fillers.sub(" ", table.endings.sub("", text))
    return [
        word
        for word in words_of(text)
        if word not in little and (word[1:] or word.isdigit() or is_unparted)
    ]


def plain(text: str) -> str:
    """A text for comparing: without case and surrounding space."""
    return text.strip().casefold()


def excerpt(text: str, query: str, room: int) -> str:
    """The part of a text that shares most with a query, in at most `room` characters.

    The best lines as far as they fit, in order; else the best sentence of the best line with those
    around it, else a piece of that line. An ellipsis marks a cut in a line.
    """
    if len(text) <= room:
        return text
    table = table_of(query)

    def shared(part: str) -> int:
        return len(wanted & {stem(word, table.code) for word in words(part)})

    wanted = {stem(word, table.code) for word in words(query) if word not in table.little}
    rows = [row for row in text.splitlines() if row.strip()] or [text]
    best = sorted(range(len(rows)), key=lambda at: -shared(rows[at]))
    row = rows[best[0]]
    if len(row) <= room:
        return "\n".join(rows[at] for at in _fitting(rows, best, room))
    width = room - 2 * len(CUT) - 2
    parts = list(filter(None, SENTENCE_END.split(row)))
    first = max(range(len(parts)), key=lambda at: shared(parts[at]))
    if len(parts[first]) <= width:
        near = sorted(range(len(parts)), key=lambda at: abs(at - first))
        kept = _fitting(parts, near, width)
        before, behind = kept[0] > 0, kept[-1] < len(parts) - 1
        shown = " ".join(parts[at] for at in kept)
        return f"{CUT} " * before + shown + f" {CUT}" * behind
    at = next((at for at, word in places(row) if stem(word, table.code) in wanted), 0)
    start = max(row.rfind(" ", 0, max(0, at - width // 3)) + 1, at - width // 2)
    piece = row[start : start + width]
    return f"{CUT * (start > 0)}{piece.rpartition(' ')[0] or piece}{CUT}"


def _fitting(parts: Sequence[str], ranked: Sequence[int], room: int) -> list[int]:
    """The places, in order, of the first of some ranked parts that fit together."""
    kept = list[int]()
    for at in ranked:
        room -= len(parts[at])
        if room < 0:
            break
        room -= 1
        kept.append(at)
    return sorted(kept)
