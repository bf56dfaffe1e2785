"""Names, numbers and quoted words of a text, and which of them another text holds.

An item is found in a text if its words stand there in a row, whatever their case, accents,
possessives and plurals; numbers are compared by value, so that ``1,200`` is ``1200`` and
``three`` is ``3``.

What counts as a name is decided without a dictionary: capitals amid a sentence, and capitals at
its start where the word is not one that sentences start with. All patterns are linear: texts
come from players.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from evennia_ai.history.frames import one_line, read_heard, read_source_line, without_marks
from evennia_ai.history.messages import Message, tool_calls
from evennia_ai.history.pairs import ToolTraits
from evennia_ai.language.numbers import numbers_in, with_values
from evennia_ai.language.words import STARTERS, singular

# Longer ones are speech, whose names and numbers count by themselves.
QUOTE_WORDS = 8
_QUOTE_CHARS = 120
_NAME_WORDS = 6
# Of what a tool was called with or gave out only the beginning: a long listing is not what a talk
# was about.
TOOL_CHARS = 2000
_JSON_DEPTH = 6


class _Number(str):
    """A number of JSON as it was written."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Of the words that begin sentences, all that are no names or dates with a capital elsewhere.
_NOT_AMID = STARTERS - _words(
    "will may march mark page spring summer autumn winter dear sir dr mr mrs ms st"
)
# Never part of a name, wherever they stand.
_NEVER = _words("the a an oh ok okay lol omg ooc ic afk")
_TITLES = _words(
    "mr mrs ms dr sir dame lord lady king queen prince princess captain master mistress"
)

_UPPER = "".join(chr(code) for code in range(0x2000) if chr(code).isupper())
# `I` is never a name; a letter alone is, as an initial.
_CAPITAL = rf"(?!I\b)[{_UPPER}]\w*(?:['-][^\W\d_]\w*)*"
_LINK = r"(?:of the|of|de|von|van|der|du|la) "
_RUN = re.compile(rf"(?<![\w'-]){_CAPITAL}(?: (?:{_LINK})?{_CAPITAL}){{0,{_NAME_WORDS - 1}}}")
_VERB_OBJECTS = (
    "me|you|him|us|them|it|my|your|his|our|their|the|a|an|this|that|these|those|some|any"
)
_ING_PLACES = "to|for|at|on|in|with|up|down|from|about|into|over|out|through|back"
# A first word before one of these is a verb: "Fetch the key", "Walking to the mill".
_AS_VERB = re.compile(rf"\w+(?: (?:{_VERB_OBJECTS})|(?<=ing) (?:{_ING_PLACES}))\b")
_CONTRACTION = re.compile(r"'(?:s|re|ve|ll|d|m)$", re.I)
_ACRONYM_LETTERS = 5
# A word after one of these is an ordinary one, also where a sentence starts with it.
_ORDINARY = re.compile(
    r"\b(?:the|a|an|my|your|his|our|their|some|any|no|these|those|every|each|i|you|we|they|will"
    r"|can|not) ([a-z]+)\b"
)
_SENTENCE_ENDS = frozenset('.!?:;\u2026"\u201c\u201d\u201e\u00ab\u00bb(*\u2014\n')

_LINKS = re.compile(r"https?://\S+")
_WITH_DIGITS = re.compile(r"(?<!\w)(?=[a-zA-Z-]{0,40}[0-9])[a-zA-Z0-9][\w.:+-]{5,}", re.A)
_IDS = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}[0-9:.]*(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
    r"|[a-z][0-9]{1,12}\.[0-9a-z]{3,40}"
    r"|(?=[a-zA-Z]*[0-9])(?=[0-9]*[a-zA-Z])[0-9a-zA-Z]{12,}"
)
_ACCENTS = re.compile("[\u0300-\u036f]")
_BLANKS = re.compile(r" {2,}|[^\S\n ]+")
# A first character is matched before what must not stand in front of it: patterns that begin with
# letters, not with a condition, are looked for at the speed of a plain search.
_QUOTED = re.compile(
    rf'"(?<![\w"]")(?=[^\s"])([^"\n]{{1,{_QUOTE_CHARS}}})(?<=\S)"(?![\w:]| :)'
    rf"|[\u201c\u201e]([^\u201c-\u201e\n]{{1,{_QUOTE_CHARS}}})[\u201c\u201d]"
    rf"|\u00ab([^\u00ab\u00bb\n]{{1,{_QUOTE_CHARS}}})\u00bb"
)

_WORDS = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


@dataclass(frozen=True)
class Item:
    """One thing a summary must keep.

    Args:
        kind: ``name`` (people, places, things called by name), ``number`` or ``quote``.
        text: As the source has it, without quote marks.
    """

    kind: Literal["name", "number", "quote"]
    text: str


def items_of(text: str, known_names: Iterable[str] = ()) -> tuple[Item, ...]:
    """What of a text must survive, in order of its first mention, each item once.

    Args:
        text: Prose, lines as a model sees them (`history.frames.heard_line`), or a JSON text,
            of which only the values count.
        known_names: Names that count wherever they stand, in any case.
    """
    lines, speakers = _lines(text)
    return _items("\n".join(lines), (*known_names, *speakers))


def source_items(
    messages: Sequence[Message], traits: ToolTraits, known_names: Iterable[str] = ()
) -> tuple[Item, ...]:
    """What of raw messages must survive: what was said and by whom.

    Of tool traffic the values of arguments count, from the first `TOOL_CHARS` characters of each;
    of tools that tell nothing new only the texts among them, as their numbers say how weighty a
    note is. Results do not count: nobody said them. Names and result are as for `items_of`.
    """
    parts: list[str] = []
    names = list(known_names)
    for message in messages:
        if message.role == "tool":
            continue
        speaker = one_line(message.speaker_name)
        names += [speaker] if speaker else []
        lines, speakers = _lines(message.content)
        parts += [speaker, *lines]
        names += speakers
        calls = [call.get("function") or {} for call in tool_calls(message)]
        parts += (_arguments_text(call, traits) for call in calls)
    return _items("\n".join(parts), names)


def missing(items: Iterable[Item], *texts: str) -> tuple[Item, ...]:
    """The items that stand in none of the texts, in their order."""
    found = "\n".join(f" {normal(text)} " for text in texts)
    return tuple(item for item in items if f" {_key(item)} " not in found)


# --- the prose of a source ---


def _lines(text: str) -> tuple[list[str], list[str]]:
    """A text as lines of prose, and the names of speakers that stood in front of them."""
    values = _json_values(text)
    if values is not None:
        return values, []
    lines: list[str] = []
    speakers: list[str] = []
    for line in text.split("\n"):
        heard = read_heard(line) if line.endswith('"') else None
        source = read_source_line(line)
        if heard and heard.exact:
            speakers.append(heard.who)
            lines += [heard.who, _unwrapped(heard.text)]
        elif source and source.role == "tool" and _looks_like_json(source.text):
            lines.append(_tool_text(source.text))
        else:
            lines.append(_unwrapped(line))
    return lines, speakers


def _unwrapped(line: str) -> str:
    """A line without quote marks around the whole of it: they are how somebody typed."""
    body = line.strip()
    whole = len(body) > 1 and body[0] == body[-1] == '"' and '"' not in body[1:-1]
    return body[1:-1] if whole else body


def _json_values(text: str) -> list[str] | None:
    """Strings and numbers among the values of a JSON object or list; None if it is neither."""
    if not _looks_like_json(text):
        return None
    try:
        value = json.loads(text, parse_int=_Number, parse_float=_Number)
    except (ValueError, RecursionError):
        return None
    return list(_values(value, _JSON_DEPTH))


def _looks_like_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def _values(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _values(part, depth - 1)


def _arguments_text(call: Mapping[str, Any], traits: ToolTraits) -> str:
    """What a tool was called with; of one that tells nothing new, the texts."""
    text = str(call.get("arguments") or "")
    values = _json_values(text) if call.get("name") in traits.tells_nothing_new else None
    if values is None:
        return _tool_text(text)
    return _beginning("\n".join(each for each in values if not isinstance(each, _Number)))


def _tool_text(text: str) -> str:
    """The beginning of what a tool was told or answered, without the quote marks of JSON."""
    values = _json_values(text)
    if values is not None:
        return _beginning("\n".join(values))
    bare = re.sub('["\u201c-\u201e\u00ab\u00bb]', " ", text) if _looks_like_json(text) else text
    return _beginning(bare)


def _beginning(text: str) -> str:
    return text if len(text) <= TOOL_CHARS else text[:TOOL_CHARS].rpartition(" ")[0]


# --- finding items ---


def _items(text: str, known_names: Iterable[str]) -> tuple[Item, ...]:
    """Items of prose; a line is a sentence at least."""
    text = _cleaned(text)
    bare = _QUOTED.sub(_blanked, text)
    known = {name.strip(): None for name in known_names if name.strip()}
    found = [*_quotes(text), *_known(bare, known), *_names(bare, known), *_numbers(bare)]
    items: dict[str, Item] = {}
    for _, item in sorted(found, key=lambda pair: pair[0]):
        if key := _key(item):
            items.setdefault(key, item)
    return tuple(items.values())


def _cleaned(text: str) -> str:
    """Prose without links, ids and times of a record, single blanks between its words."""
    text = without_marks(_LINKS.sub(" ", text) if "://" in text else text)
    text = _WITH_DIGITS.sub(
        lambda found: " " if _IDS.fullmatch(found[0].rstrip(".:+-")) else found[0],
        text.replace("\u2019", "'"),
    )
    return _BLANKS.sub(" ", text)


def _quoted_words(match: re.Match[str]) -> str:
    """The words of a short quotation; empty for a longer one."""
    body = next(filter(None, match.groups())).strip(" .,;:!?-")
    return body if 0 < len(body.split()) <= QUOTE_WORDS else ""


def _quotes(text: str) -> Iterator[tuple[int, Item]]:
    for match in _QUOTED.finditer(text):
        if body := _quoted_words(match):
            yield match.start(), Item("quote", body)


def _blanked(match: re.Match[str]) -> str:
    """Quote marks in place of a short quotation, so that its words count once."""
    return '"' * len(match[0]) if _quoted_words(match) else match[0]


def _known(text: str, known: Iterable[str]) -> Iterator[tuple[int, Item]]:
    """Known names wherever they stand; a common word only with a capital."""
    lower = text.lower()
    words = set(re.findall(r"[^\W_]+", lower))
    for name in known:
        wanted = re.findall(r"[^\W_]+", name.lower())
        if not wanted or not words.issuperset(wanted):
            continue
        common = name.lower() in STARTERS
        place = _place(text, name) if common else _place(lower, name.lower())
        if place >= 0:
            yield place, Item("name", name)


def _place(text: str, name: str) -> int:
    """Where a name first stands as words of its own; -1 if it does not."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not (text[max(0, at - 1) : at].isalnum() or text[end : end + 1].isalnum()):
            return at
        at = text.find(name, at + 1)
    return -1


def _names(text: str, known: Iterable[str]) -> Iterator[tuple[int, Item]]:
    """Names by their capitals; each run of words is judged once, where it first stands so."""
    runs: dict[tuple[str, bool, bool], int] = {}
    for run in _RUN.finditer(text):
        start = _starts_sentence(text, run.start())
        verb = start and " " not in run[0] and bool(_AS_VERB.match(text, run.start()))
        runs.setdefault((run[0], start, verb), run.start())
    heads = {_bare(words.partition(" ")[0]).lower() for words, start, _ in runs if not start}
    sure = heads - _NOT_AMID
    # Of a known name of several words the common ones are no names by themselves.
    sure.update({word for name in known for word in name.lower().split()} - STARTERS)
    sure.update(name.lower() for name in known)
    ordinary = (STARTERS | set(_ORDINARY.findall(text.lower()))) - sure
    for (words, start, verb), at in runs.items():
        if verb and words.lower() not in sure:
            continue
        for name in _pieces(words.split(" "), start, sure, ordinary):
            yield at, Item("name", name)


def _starts_sentence(text: str, at: int) -> bool:
    before = text[max(0, at - 2) : at].rstrip(" ")
    return not before or before[-1] in _SENTENCE_ENDS


def _pieces(words: list[str], start: bool, sure: Set[str], ordinary: Set[str]) -> Sequence[str]:
    """The names in a run of capitalised words.

    Args:
        words: The run's words, small linking ones between them.
        start: Whether a sentence starts with it.
        sure: Lower-case words that are names beyond doubt.
        ordinary: Lower-case words that are no names at the start of a sentence.
    """
    first = _bare(words[0]).lower()
    if "".join(words).isupper():  # one short word amid a sentence; more of them are shouting
        short = len(words) == 1 and 1 < len(words[0]) <= _ACRONYM_LETTERS
        return words if short and not start and words[0].lower() not in _NOT_AMID else []
    if first in sure:
        return _split(words)
    if start and first.partition("-")[0] in ordinary:
        return _split(words[1:])
    if start and len(words) > 1 and _bare(words[1]).lower() in sure:
        return [*_split(words[:1]), *_split(words[1:])]
    return _split(words) if start or len(words) > 1 or first not in _NOT_AMID else ()


def _split(words: Sequence[str]) -> list[str]:
    """Words as names: parted behind a possessive and at words that are never in a name."""
    names: list[list[str]] = [[]]
    for word in words:
        if word.lower() in _NEVER or word.lower().endswith("n't"):
            names.append([])
            continue
        names[-1].append(_bare(word))
        if _bare(word) != word:
            names.append([])
    joined = (" ".join(_without_loose_links(name)) for name in names)
    return [name for name in joined if len(name) > 1]


def _without_loose_links(words: Sequence[str]) -> Sequence[str]:
    """Words of a name from its first capital to its last."""
    capitals = [index for index, word in enumerate(words) if not word.islower()]
    return words[capitals[0] : capitals[-1] + 1] if capitals else ()


def _bare(word: str) -> str:
    """A word without possessive or contraction."""
    return _CONTRACTION.sub("", word)


def _numbers(text: str) -> Iterator[tuple[int, Item]]:
    for number, at in numbers_in(text).items():
        yield at, Item("number", number)


# --- comparing ---


@lru_cache(maxsize=4096)
def _key(item: Item) -> str:
    """What of an item is looked for: its normal form, a name without its titles."""
    words = normal(item.text).split(" ")
    while item.kind == "name" and len(words) > 1 and words[0] in _TITLES:
        del words[0]
    return " ".join(words)


def normal(text: str) -> str:
    """A text as words that compare equal, with a space between; numbers by their value."""
    text = text.replace("\u2019", "'")
    if not text.isascii():
        text = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    found = _WORDS.findall(with_values(text.lower()))
    return " ".join(singular(word.removesuffix("'s")) for word in found)
