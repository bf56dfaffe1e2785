"""Lorebooks of several programs: entries of keys and a text, read and written.

Read are the books inside cards (versions 2 and 3), SillyTavern's, RisuAI's, Agnai's and NovelAI's.
What an entry cannot be used for here (depth, chance, groups) stays in its original for an export.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import regex

from evennia_ai.cards.cleaning import Cleaner, storable
from evennia_ai.errors import Refusal

ENTRIES, TEXT_CHARS, KEY_CHARS, KEYS = 500, 2_000, 100, 50
# Where the locks of a fact stand in an exported entry, and those of a book in the book.
EXTENSION = "evennia_ai"
# Counted repeats are unrolled when a pattern is compiled: most of them, and most characters.
PATTERN_CHARS, REPEATS, UNROLLED = 200, 10_000, 100_000
# How secondary keys count, by SillyTavern's numbers.
ANY, NOT_ALL, NOT_ANY, ALL = "any", "not all", "not any", "all"
LOGIC = (ANY, NOT_ALL, NOT_ANY, ALL)
_NAMES = {
    "keys": ("keys", "key", "keywords"),
    "secondary": ("secondary_keys", "keysecondary", "secondkey"),
    "text": ("content", "text", "entry"),
    "always": ("constant", "alwaysactive", "forceactivation"),
    "weight": ("priority", "insertion_order", "order", "insertorder"),
}
_VALUES = ("keys", "text", "secondary", "logic", "always", "on")
_PATTERN = re.compile(r"/(.+)/([a-z]*)", re.S)
_COUNTED = re.compile(r"\{([^{}]*)\}")
# In a verbose pattern blanks and comments may part the digits of a count; one that calls itself
# does not heed its time.
_REFUSED = re.compile(r"\(\?(?:[A-Za-z01-]*x[A-Za-z01-]*[:)]|R|[+-]?\d|&|P>)")
_DECORATOR = re.compile(r"^@@@?(\w+)[ \t]*(.*)\n?")


@dataclass(frozen=True)
class Fact:
    """A fact of a book: an entry as it was read.

    Args:
        keys: Words or phrases that call it; ``/…/i`` is a regular expression.
        secondary: Keys that must be, or must not be, there as well, by `logic`.
        always: Whether it needs no key.
        weight: The higher, the earlier; what has the lowest is left out first.
        original: The entry as it came.
    """

    keys: tuple[str, ...]
    text: str
    secondary: tuple[str, ...] = ()
    logic: str = ANY
    always: bool = False
    on: bool = True
    weight: float = 0
    original: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Book:
    """A book as it was read, with notes; its `original` has only the entries that are of no use."""

    name: str
    entries: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()
    original: Mapping[str, Any] | None = None


def read_book(value: Any, char: str = "") -> Book:
    """A lorebook of any of the formats; raises `Refusal` if it is none.

    `char` is whose book it is, in its texts ``{{char}}``.
    """
    if not isinstance(value, dict):
        raise Refusal("this is no lorebook: it has no `entries`")
    data = value.get("data")
    raw = value.get("entries", data if isinstance(data, list) else None)
    if raw is None and isinstance(data, dict):
        return read_book(data.get("character_book") or data, char)
    items = list(raw.values()) if isinstance(raw, dict) else raw
    if not isinstance(items, list):
        raise Refusal("this is no lorebook: it has no `entries`")
    entries, notes, bare, wrong, cleaner = [], [], 0, 0, Cleaner(char)
    unused: list[Any] = []
    for number, item in enumerate(items[:ENTRIES], 1):
        unused.append(item)
        changes: list[str] = []
        entry = _entry(item if isinstance(item, dict) else {}, cleaner, changes)
        keys = (*entry.keys, *entry.secondary)
        bad = [key for key in keys if is_pattern(key) and pattern(key) is None]
        if bad:
            wrong += 1
            notes.append(f"entry {number}: keys: `{bad[0][:40]}` is no regular expression")
        elif not entry.text or not (entry.keys or entry.always):
            bare += 1
            what = "keys: none is usable" if entry.text else "content: there is no text"
            notes.append(f"entry {number}: {what}")
        else:
            entries.append(entry)
            unused.pop()
            notes += [f"entry {number}: {', '.join(changes)}"] if changes else []
    mended = len(notes) - bare - wrong
    taken = f"{len(entries)} taken" + (f" ({mended} mended)" if mended else "")
    counts = [f"{len(items)} entries: {taken}"]
    counts += [f"{bare} without a usable key or text"] if bare else []
    counts += [f"{wrong} with a key that is no regular expression"] if wrong else []
    over = len(items) - ENTRIES
    counts += [f"{over} beyond {ENTRIES} left out"] if over > 0 else []
    name = value.get("name")
    name = name if isinstance(name, str) else ""
    said = ", ".join(counts), *notes, *cleaner.notes()
    rest = {key: each for key, each in value.items() if key != "data"}
    rest["entries"] = [*unused, *items[ENTRIES:]]
    return Book(name.strip()[:KEY_CHARS], tuple(entries), said, rest)


def _entry(item: dict[str, Any], cleaner: Cleaner, changes: list[str]) -> Fact:
    extensions = item.get("extensions")
    inner = extensions if isinstance(extensions, dict) else {}
    values = {str(k).lower().replace("_", ""): v for k, v in (*inner.items(), *item.items())}

    def of(name: str) -> Any:
        names = (each.replace("_", "") for each in _NAMES[name])
        return next((values[each] for each in names if values.get(each) is not None), None)

    text = of("text")
    text = storable(text).strip() if isinstance(text, str) else ""
    always, on = _flag(of("always"), False), _flag(values.get("enabled"), True)
    on = on and not _flag(values.get("disable"), False)
    while found := _DECORATOR.match(text):
        always = always or found[1] == "activate"
        on = on and found[1] != "dont_activate"
        text = text[found.end() :].lstrip()
    text, left = cleaner.clean(text, TEXT_CHARS)
    if left:
        changes.append(f"content: {left:,} characters left out")
    logic, weight = values.get("selectivelogic"), of("weight")
    is_selective = _flag(values.get("selective"), True)
    return Fact(
        _keys(of("keys"), "keys", changes),
        text,
        _keys(of("secondary"), "secondary keys", changes) if is_selective else (),
        LOGIC[logic] if isinstance(logic, int) and 0 <= logic < len(LOGIC) else ANY,
        always,
        on,
        weight if isinstance(weight, int | float) and abs(weight) < 10**9 else 0,
        item,
    )


def _keys(value: Any, name: str, changes: list[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        is_one = "," not in value or _PATTERN.fullmatch(value.strip())
        if not is_one:
            changes.append(f"{name}: one text was split at its commas")
        value = [value] if is_one else value.split(",")
    texts = (key for key in value if isinstance(key, str)) if isinstance(value, list) else ()
    keys = list(filter(None, dict.fromkeys(storable(key).strip() for key in texts)))
    usable = [key for key in keys if len(key) <= KEY_CHARS or is_pattern(key)]
    if len(keys) > KEYS or len(usable) < len(keys):
        changes.append(f"{name}: at most {KEYS} of {KEY_CHARS} characters are used")
    return tuple(usable[:KEYS])


def _flag(value: Any, default: bool) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in ("true", "1", "yes", "on")
    return bool(value) if isinstance(value, bool | int) else default


def is_pattern(key: str) -> bool:
    """Whether a key is meant as a regular expression: it stands between slashes."""
    return _PATTERN.fullmatch(key) is not None


@lru_cache(maxsize=100)
def pattern(key: str) -> "regex.Pattern[str] | None":
    """The regular expression of a key; None if the key is none, or a wrong or too large one."""
    found = _PATTERN.fullmatch(key)
    if not found or len(key) > PATTERN_CHARS or _REFUSED.search(found[1]):
        return None
    counts = (re.findall("[0-9]+", count) for count in _COUNTED.findall(found[1]))
    repeats = prod(max(1, *map(int, digits)) for digits in counts if digits)
    if repeats > REPEATS or repeats * len(key) > UNROLLED:
        return None
    flags = sum(getattr(regex, each.upper()) for each in set(found[2]) & set("ims"))
    try:
        return regex.compile(found[1], flags, cache_pattern=False)
    except (regex.error, RecursionError, OverflowError, ValueError, MemoryError):
        return None


def exported(
    name: str, facts: Sequence[Fact], original: Mapping[str, Any] | None = None, char: str = ""
) -> dict[str, Any]:
    """A book of version 3; what it (`Book.original`) and its entries held besides comes along."""
    book = {"extensions": {}, "name": name, **(original or {})}
    return {**book, "entries": [*(_as_raw(fact, char) for fact in facts), *book.get("entries", ())]}


def locks_of(raw: Mapping[str, Any] | None) -> Any:
    """What a book or an entry says of its locks (`with_locks`); None for nothing."""
    extensions = (raw or {}).get("extensions")
    return extensions.get(EXTENSION) if isinstance(extensions, dict) else None


def with_locks(raw: dict[str, Any], know: str, tell: str) -> dict[str, Any]:
    """A book or an entry with these locks in place of any it has."""
    locks = {name: lock for name, lock in (("know", know), ("tell", tell)) if lock}
    if not locks and locks_of(raw) is None:
        return raw
    extensions = raw.get("extensions")
    others = dict(extensions) if isinstance(extensions, dict) else {}
    others.pop(EXTENSION, None)
    return raw | {"extensions": others | ({EXTENSION: locks} if locks else {})}


def _as_raw(fact: Fact, char: str) -> dict[str, Any]:
    raw = dict(fact.original or {})
    came = _entry(raw, Cleaner(char), [])
    if raw and all(getattr(fact, name) == getattr(came, name) for name in _VALUES):
        return raw
    return raw | {
        "keys": list(fact.keys),
        "content": fact.text,
        "extensions": raw.get("extensions") or {},
        "enabled": fact.on,
        "insertion_order": raw.get("insertion_order", fact.weight),
        "use_regex": any(map(is_pattern, fact.keys)),
        "constant": fact.always,
        "selective": bool(fact.secondary),
        "secondary_keys": list(fact.secondary),
        "selectiveLogic": LOGIC.index(fact.logic),
    }
