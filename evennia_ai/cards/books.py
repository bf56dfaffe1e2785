"""Lorebooks of several programs: entries of keys and a text, read and written.

Read are the books inside cards (versions 2 and 3), SillyTavern's, RisuAI's, Agnai's, NovelAI's,
KoboldAI's `worldinfo` and AI Dungeon's story cards. What an entry cannot be used for here (depth,
chance, groups) stays in its original for an export.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from evennia_ai.cards.cleaning import Cleaner, storable
from evennia_ai.errors import Refusal
from evennia_ai.history.stored import Stored

FACTS, TEXT_CHARS, KEY_CHARS, KEYS = 500, 2_000, 100, 50
# Who knows a fact, where nothing else is said; other values are npc:<id>, place:<id>, lock:<lock>.
# And a `tell` that nobody passes.
EVERYBODY, NOBODY_HEARS = "all", "false()"
# Where the locks of a fact stand in an exported entry, and those of a book in the book.
EXTENSION = "evennia_ai"
# How secondary keys count, by SillyTavern's numbers.
ANY, NOT_ALL, NOT_ANY, ALL = "any", "not all", "not any", "all"
_LOGIC = (ANY, NOT_ALL, NOT_ANY, ALL)
_NAMES = {  # as `_plain_name` makes them
    "keys": ("keys", "key", "keywords"),
    "secondary": ("secondarykeys", "keysecondary", "secondkey"),
    "text": ("content", "text", "entry", "value"),
    "always": ("constant", "alwaysactive", "forceactivation"),
    "weight": ("priority", "insertionorder", "order", "insertorder"),
}
_SWITCHES = ("enabled", "disable")
# A key that is a regular expression; of one that holds words alone these are the key.
_PATTERN, _WORDS = re.compile(r"/(.+)/[a-z]*", re.S), re.compile(r"[\w '’-]+")
_BARE = "without a usable key or text"
_ORDER = "always on and set into the talk, as orders to another program's model"
# SillyTavern's places of an entry: before and behind the character; all others are in the talk.
_BESIDE = (0, 1, "before_char", "after_char")
READ = "those in cards, of SillyTavern, RisuAI, Agnai, NovelAI, KoboldAI and AI Dungeon"
# Lines before the text: decorators, each a name and its value.
_HEAD, _DECORATOR = re.compile(r"(?:@@@?\w+.*\s*)*"), re.compile(r"^@@@?(\w+)", re.M)
_IN_TALK = frozenset(("depth", "instruct_depth", "reverse_depth", "role", "position"))
_OFF = re.compile(r"^@@@?dont_activate\b.*\n?", re.M)


@dataclass(frozen=True)
class Fact(Stored):
    """A fact of a book; an empty lock means that of its book."""

    keys: tuple[str, ...]  # words or phrases that call it
    text: str
    secondary: tuple[str, ...] = ()  # keys that must be, or must not be, there as well, by `logic`
    logic: str = ANY
    always: bool = False  # whether it needs no key
    on: bool = True
    weight: float = 0  # the higher, the earlier; what has the lowest is left out first
    original: Mapping[str, Any] = field(default_factory=dict)  # the entry as it came
    id: str = ""  # its id, as ``w12``; empty as long as it is in no game
    know: str = ""  # which assistants know it
    tell: str = ""  # a lock for those who may hear it
    source: str = ""  # stable id of who typed it, or the file it is from


@dataclass(frozen=True)
class Book(Stored):
    """A book: facts, the locks of those without their own, and what else came as JSON text."""

    name: str
    facts: tuple[Fact, ...] = ()
    know: str = EVERYBODY
    tell: str = ""
    original: str = ""

    def locked(self) -> Iterator[Fact]:
        """Its facts, each with the locks that hold for it."""
        for fact in self.facts:
            yield replace(fact, know=fact.know or self.know, tell=fact.tell or self.tell)


def read_book(value: Any, char: str = "") -> tuple[Book, list[str]]:
    """A lorebook of any of the formats, and notes on it; raises `Refusal` if it is none.

    Its `original` has only the entries that are of no use. `char` is whose book it is, in its texts
    ``{{char}}``. Locks are as the file has them.
    """
    if not isinstance(value, dict):
        value = {"entries": value}
    data = value.get("data")
    items = value.get("entries", value.get("worldinfo", data))
    if isinstance(data, dict) and items is data:
        return read_book(data.get("character_book") or data, char)
    if isinstance(items, dict):
        items = list(items.values())
    if not isinstance(items, list):
        raise Refusal(f"this is no lorebook: it has no `entries`. Read are {READ}")
    facts, unused, notes, cleaner = list[Fact](), list[Any](), list[str](), Cleaner(char)
    kinds = Counter[str]()
    for number, item in enumerate(items[:FACTS], 1):
        changes: list[str] = []
        fact, why_useless = _fact(item, cleaner, changes)
        if why_useless:
            unused.append(item)
        else:
            facts.append(fact)
        if changes:
            notes.append(f"entry {number}: {', '.join(changes)}")
            kinds[why_useless] += 1
    counts = [f"{len(items)} entries: {len(facts)} taken"]
    if mended := kinds[""]:
        counts[0] += f" ({mended} mended)"
    counts += [f"{kinds[what]} {what}" for what in (_BARE, _ORDER) if kinds[what]]
    if len(items) > FACTS:
        counts.append(f"{len(items) - FACTS} beyond {FACTS} left out")
    rest = {key: each for key, each in value.items() if key != "data"}
    rest["entries"] = [*unused, *items[FACTS:]]
    name = _text(value.get("name"))[:KEY_CHARS]
    book = Book(name, tuple(facts), *_locks_of(value), json.dumps(rest))
    return book, [", ".join(counts), *notes, *cleaner.notes()]


def is_book(value: Any) -> bool:
    """Whether the JSON value of a file is a lorebook, and no card."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(each, dict) for each in value)
    return isinstance(value, dict) and ("entries" in value or "worldinfo" in value)


def _text(value: Any) -> str:
    """A value that is a text, without what cannot be stored; empty for any other."""
    if not isinstance(value, str):
        return ""
    return storable(value).strip()


def _values(item: Mapping[str, Any]) -> dict[str, Any]:
    """What an entry and its extensions hold, by names as they are compared."""
    pairs = (*_extensions(item).items(), *item.items())
    return {_plain_name(name): value for name, value in pairs}


def _plain_name(name: object) -> str:
    return str(name).lower().replace("_", "")


def _value(values: Mapping[str, Any], name: str) -> Any:
    """The value of a field under the first of its names."""
    return next((values[each] for each in _NAMES[name] if values.get(each) is not None), None)


def _fact(entry: Any, cleaner: Cleaner, changes: list[str]) -> tuple[Fact, str]:
    """What an entry says, and why it is of no use if it is none; notes what had to be changed.

    An entry that is always on, and stands in the talk or beside its newest line instead of beside
    the character, by its place or by a decorator, is an order to another program's model.
    """
    item: dict[str, Any] = {}
    if isinstance(entry, dict):
        item = entry
    values = _values(item)
    weight, text = _value(values, "weight"), _text(_value(values, "text"))
    if not isinstance(weight, int | float) or abs(weight) >= 10**9:
        weight = 0
    head = _HEAD.match(text)[0]  # type: ignore[index]
    decorators = set(_DECORATOR.findall(head))
    text, left = cleaner.clean(text.removeprefix(head), TEXT_CHARS)
    if left:
        changes.append(f"content: {left:,} characters left out")
    keys, secondary = _keys(_value(values, "keys"), "keys", changes), tuple[str, ...]()
    if _flag(values.get("selective"), True):
        secondary = _keys(_value(values, "secondary"), "secondary keys", changes)
    is_on = _flag(values.get("enabled"), True) and not _flag(values.get("disable"), False)
    fact = Fact(
        keys,
        text,
        secondary,
        next((each for n, each in enumerate(_LOGIC) if n == values.get("selectivelogic")), ANY),
        _flag(_value(values, "always"), False) or "activate" in decorators,
        is_on and "dont_activate" not in decorators,
        weight,
        item,
        "",
        *_locks_of(item),
    )
    is_in_talk = values.get("position", 0) not in _BESIDE or not _IN_TALK.isdisjoint(decorators)
    if not text:
        changes.append("content: there is no text")
        return fact, _BARE
    if not (keys or fact.always):
        changes.append("keys: none is usable")
        return fact, _BARE
    if fact.always and is_in_talk:
        changes[:] = ["an order, no fact"]
        return fact, _ORDER
    return fact, ""


def _keys(value: Any, name: str, changes: list[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        parts = value.split(",")
        if len(parts) == 1 or _PATTERN.fullmatch(value.strip()):
            parts = [value]
        else:
            changes.append(f"{name}: one text was split at its commas")
        value = parts
    keys = dict[str, None]()
    if not isinstance(value, list):
        value = []
    for key in map(_text, value):
        if found := _PATTERN.fullmatch(key):
            if not _WORDS.fullmatch(found[1]):
                changes.append(f"{name}: `{key[:40]}`, a regular expression, is not used")
                continue
            key = found[1]
        keys.setdefault(key)
    keys.pop("", None)
    usable = [key for key in keys if len(key) <= KEY_CHARS]
    if len(keys) > KEYS or len(usable) < len(keys):
        changes.append(f"{name}: at most {KEYS} of {KEY_CHARS} characters are used")
    return tuple(usable[:KEYS])


def _flag(value: Any, default: bool) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in ("true", "1", "yes", "on")
    if isinstance(value, int):
        return bool(value)
    return default


def exported(book: Book) -> dict[str, Any]:
    """A book of version 3, with its locks in `extensions` and what else it held when it came."""
    original = json.loads(book.original or '{"extensions": {}}')
    entries = list[dict[str, Any]]()
    for fact in book.facts:
        raw = dict(fact.original)
        if _fact(raw, Cleaner(""), [])[0].on != fact.on:
            text = _value(_values(raw), "text")
            raw = {name: value for name, value in raw.items() if _plain_name(name) not in _SWITCHES}
            raw |= {"enabled": fact.on, "disable": not fact.on}
            if fact.on:
                raw["content"] = _OFF.sub("", text)
        entries.append(_with_locks(raw, fact.know, fact.tell))
    data = original | {"entries": [*entries, *original.get("entries", ())]}
    if book.name:
        data["name"] = book.name
    know = book.know
    if know == EVERYBODY:
        know = ""
    return _with_locks(data, know, book.tell)


def _extensions(raw: Mapping[str, Any]) -> dict[str, Any]:
    extensions = raw.get("extensions")
    if not isinstance(extensions, dict):
        return {}
    return dict(extensions)


def _locks_of(raw: Mapping[str, Any]) -> tuple[str, str]:
    """`know` and `tell` of a book or an entry, empty where it has none."""
    locks = _extensions(raw).get(EXTENSION)
    if locks is not None and not isinstance(locks, dict):
        return "", NOBODY_HEARS
    know, tell = (str((locks or {}).get(name) or "").strip() for name in ("know", "tell"))
    return know, tell


def _with_locks(raw: dict[str, Any], know: str, tell: str) -> dict[str, Any]:
    """A book or an entry with these locks in place of any it has."""
    locks = {name: lock for name, lock in (("know", know), ("tell", tell)) if lock}
    extensions = _extensions(raw)
    if extensions.pop(EXTENSION, None) is None and not locks:
        return raw
    if locks:
        extensions[EXTENSION] = locks
    return raw | {"extensions": extensions}
