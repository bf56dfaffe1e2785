"""Kinds of values that people set: what each takes, how it is checked, read and shown.

An assistant's options (`turns/options.py`) and a game's settings (`conf.py`) are tables of them.
"""

import ast
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from evennia_ai.errors import ConfigError

# Persona and prompts are sent with every call: so many characters are about 2,000 tokens.
PROSE_CHARS = 8_000
# Emotes are shown to players on a line or two, and names are short.
LINE_CHARS = 500
# Fields of a request that a builder may set: how a model chooses its words.
SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "frequency_penalty",
    "presence_penalty",
    "repeat_penalty",
    "repetition_penalty",
    "seed",
)
_LOCK = r"(?:(?:not|NOT)\s+)?\w+\([^():;]*\)"
_LOCKS = re.compile(rf"{_LOCK}(?:\s+(?:and|or|AND|OR)\s+{_LOCK})*")
_HOURS = re.compile(r"^(?:(game|real)\s+)?(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})$")
_TEXTS = re.compile(r"help:[^:,]{1,60}|rooms:[1-3]")
_URL = re.compile(r"https?://[^\s/]+(/\S*)?")
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_FLAGS = {"true": True, "on": True, "yes": True, "1": True}
_FLAGS |= {"false": False, "off": False, "no": False, "0": False}


@dataclass(frozen=True)
class Allowed:
    """What options may name in a game; None: anything."""

    models: Collection[str] | None = None  # the models that may be used; stars stand for anything
    tools: Collection[str] | None = None  # the names of all tools
    lock_functions: Collection[str] | None = None  # the names of all lock functions
    # The fields of a request to a model that `llm_extra` may set, to numbers.
    fields: Collection[str] | None = None


Check = Callable[[Any], Any]
Refusal = Callable[[Any, Allowed], str]


@dataclass(frozen=True)
class Kind:
    """What values an option or a setting takes."""

    says: str  # the values in plain words, for help and error messages
    # Returns a value in its stored form; `ValueError` or the like for one that is none.
    check: Check
    unit: str = ""  # of numbers, for help
    # Of a form: ``text``, ``long``, ``list``, ``number``, ``choice`` or ``switch``.
    field: str = "text"
    words: tuple[str, ...] = ()  # the values of a choice, as typed
    keys: tuple[str, ...] = ()  # of a dict: the names it may have; empty if any
    of: "Kind | None" = None  # of a dict: what its values are
    # Why a game does not allow a value that is one; empty if it does.
    refused: Refusal = lambda value, allowed: ""


def checked(name: str, kind: Kind, value: object, allowed: Allowed = Allowed()) -> Any:  # noqa: B008 - frozen
    """A value in its stored form; `ConfigError` if `name` does not take it."""
    try:
        stored = kind.check(value)
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        raise ConfigError(f"`{name}` takes {kind.says}, not {shown_raw(value)}.") from error
    if why := kind.refused(stored, allowed):
        raise ConfigError(f"`{name}`: {why}.")
    return stored


def parsed(name: str, kind: Kind, text: str, allowed: Allowed = Allowed()) -> Any:  # noqa: B008 - frozen
    """As `checked`, of what somebody typed: a literal of Python or JSON, or the text itself.

    A list, dict or tuple is never read as text; in quotes it is.
    """
    text = text.strip()
    value = literal(text)
    try:
        return checked(name, kind, value, allowed)
    except ConfigError:
        if isinstance(value, Collection):
            raise
    return checked(name, kind, text, allowed)


def literal(text: str) -> Any:
    """The value that a text is in Python or JSON; else the text itself."""
    for read in (ast.literal_eval, json.loads):
        try:
            return read(text)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
    return text


def shown(value: object) -> str:
    """A value as it may be typed: texts bare, lists separated by commas."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        is_bare = not any(mark in text for text in value for mark in ', "\n')
        return (", ".join(value) or "none") if is_bare else json.dumps(value, ensure_ascii=False)
    return repr(value)


def shown_raw(value: object) -> str:
    """The beginning of any value as Python writes it; Python refuses to for very long numbers."""
    if isinstance(value, str) and len(value) > LINE_CHARS:
        return f"{value[:60]!r} ({len(value):,} characters)"
    try:
        return repr(value)[:60]
    except (ValueError, RecursionError):
        return f"this {type(value).__name__}"


def number(low: float, high: float, unit: str = "", whole: bool = False) -> Kind:
    """A number from `low` to `high`; only whole ones if `whole`."""

    def check(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise TypeError(value)
        result = float(value)
        if not low <= result <= high or (whole and result != int(result)):
            raise ValueError(value)
        return int(result) if whole else result

    says = f"a number from {low:g} to {high:g}"
    says = f"a whole number from {low:,} to {high:,}" if whole else says
    return Kind(says, check, unit, field="number")


def _amount(value: object) -> float:
    amount: float = number(0, 10**12).check(value)
    return int(amount) if amount == int(amount) else amount


whole = partial(number, whole=True)


def choice(*words: str) -> Kind:
    """One of some words."""

    def check(value: object) -> str:
        word = str(value).strip().lower()
        if word not in words:
            raise ValueError(value)
        return word

    return Kind("one of " + ", ".join(words), check, field="choice", words=words)


def or_none(kind: Kind) -> Kind:
    """The same values, or None, also written as an empty text."""

    def check(value: object) -> Any:
        return None if _is_none(value) else kind.check(value)

    def refused(value: object, allowed: Allowed) -> str:
        return "" if value is None else kind.refused(value, allowed)

    words = ("None", *kind.words) if kind.words else ()
    return replace(kind, says=f"{kind.says}, or None", check=check, refused=refused, words=words)


def table(of: Kind, *keys: str, name: str = "name", refused: Refusal | None = None) -> Kind:
    """A dict of names to values of a kind, only of some names if these are given.

    `name` says what a name is; None is an empty dict.
    """

    def check(value: object) -> dict[str, Any]:
        if _is_none(value):
            return {}
        if not isinstance(value, Mapping):
            raise TypeError(value)
        if keys and not set(value) <= set(keys):
            raise KeyError(value)
        return {_text(key): of.check(part) for key, part in value.items()}

    says = f"a dict of {', '.join(keys) or name} to {of.says}"
    return Kind(
        says,
        check,
        of.unit,
        "text" if keys else "long",
        keys=keys,
        of=of,
        refused=refused or Kind.refused,
    )


def _is_none(value: object) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in ("", "none"))


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise TypeError(value)
    return _FLAGS[value.strip().lower()]


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(value)
    return value.strip()


def text(most_chars: int, field: str = "text") -> Kind:
    """A text that is not empty and not too long."""

    def check(value: object) -> str:
        if len(result := _text(value)) > most_chars:
            raise ValueError(value)
        return result

    return Kind(f"text of at most {most_chars:,} characters", check, field=field)


def _names(value: object) -> tuple[str, ...]:
    if _is_none(value):
        return ()
    if isinstance(value, str):
        value = [part for part in re.split(r"[,\s]+", value.strip("()[] ")) if part]
    if not isinstance(value, Iterable) or isinstance(value, Mapping | bytes):
        raise TypeError(value)
    return tuple(map(LINE.check, value))


def texts(most: int, most_chars: int) -> Kind:
    """A list of at most `most` texts."""
    one = text(most_chars)

    def check(value: object) -> tuple[str, ...]:
        values = [] if _is_none(value) else [value] if isinstance(value, str) else value
        if not isinstance(values, list | tuple) or len(values) > most:
            raise ValueError(value)
        return tuple(map(one.check, values))

    return Kind(f'a text, or a list of at most {most} as ["...", "..."]', check, field="long")


def _texts_of_game(value: object) -> tuple[str, ...]:
    parts = [] if _is_none(value) else value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        raise TypeError(value)
    names = [":".join(map(str.strip, _text(part).split(":"))) for part in parts]
    if not all(map(_TEXTS.fullmatch, names)):
        raise ValueError(value)
    return tuple(names)


def _hours(value: object) -> str:
    words = str(value).strip().lower()
    match = _HOURS.match(words)
    if not match or any(int(match[i]) > (59 if i % 2 else 23) for i in (2, 3, 4, 5)):
        raise ValueError(value)
    return re.sub(r"\s*-\s*", "-", words)


def _matching(pattern: re.Pattern[str]) -> Check:
    def check(value: object) -> str:
        if not pattern.fullmatch(result := _text(value)):
            raise ValueError(value)
        return result

    return check


def refused_model(name: str, allowed: Allowed) -> str:
    """Why a model must not be used; empty if it may. Addresses stand in the settings alone."""
    short, models = name if len(name) <= 60 else f"{name[:60]}...", allowed.models
    if "://" in name:
        return f"`{short}` holds an address; addresses come from the game's settings alone"
    if models is None or name in models:
        return ""
    if any(fnmatchcase(name, pattern) for pattern in models):
        return ""
    listed = ", ".join(f"`{each}`" for each in dict.fromkeys(models))
    return (
        f"`{short}` is not among the models of the setting `EVENNIA_AI_MODELS`, "
        f"which allows {listed or 'none'}"
    )


def _refused_models(names: Iterable[str], allowed: Allowed) -> str:
    return next(filter(None, (refused_model(name, allowed) for name in names)), "")


def _refused_lock(lock: str, allowed: Allowed) -> str:
    functions = allowed.lock_functions
    missing = [
        f for f in re.findall(r"(\w+)\(", lock) if functions is not None and f not in functions
    ]
    return f"there is no lock function `{missing[0]}`" if missing else ""


def _refused_fields(values: Mapping[str, object], allowed: Allowed) -> str:
    if allowed.fields is None:
        return ""
    for name, value in values.items():
        if name not in allowed.fields:
            fields = ", ".join(allowed.fields)
            return f"`{name}` may be set by `EVENNIA_AI_OPTIONS` alone, here only {fields}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"`{name}` must be a number"
    return ""


FLAG = Kind("True or False", _flag, field="switch", words=("True", "False"))
SHARE = Kind("a share from 0.0 to 1.0", number(0.0, 1.0).check, "share of the context", "number")
PROSE, LINE = text(PROSE_CHARS, "long"), text(LINE_CHARS)
AMOUNT = Kind(number(0, 10**12).says, _amount, field="number")
MODEL = Kind("the name of a model", LINE.check, refused=refused_model)
MODELS = Kind("names of models separated by commas", _names, field="list", refused=_refused_models)
NAMES = Kind("a list of names", _names, field="list")
TEXTS_OF_GAME = Kind("a list such as help:lore, help:law, rooms:2", _texts_of_game, field="list")
LEVELS = table(choice("off", "dry run", "confirm", "on"), name="tool name")
HOURS = or_none(Kind("hours such as 23:00-06:00 or game 23:00-06:00", _hours, "clock times"))
LOCK = Kind(
    "a lock string such as perm(Builder) or id(5) or all()",
    _matching(_LOCKS),
    refused=_refused_lock,
)
JSON = Kind(
    "a value that JSON can hold", lambda value: json.loads(json.dumps(value, allow_nan=False))
)
FIELDS = table(JSON, refused=_refused_fields)
KEY = Kind("a key without spaces around it", _matching(re.compile(r"\S(.*\S)?")))
URL = Kind("a web address such as http://127.0.0.1:11434/v1", _matching(_URL))
PATH = Kind("a dotted path such as world.tools.OpenDoor", _matching(_DOTTED))
