"""Kinds of values that people set: pydantic types, what they take in words, and how they are typed.

An assistant's options (`options.py`) and a game's settings (`conf.py`) are models of them.
"""

import ast
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

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


@dataclass(frozen=True)
class Allowed:
    """What options may name in a game; None: anything."""

    models: Collection[str] | None = None  # the models that may be used; stars stand for anything
    tools: Collection[str] | None = None  # the names of all tools
    lock_functions: Collection[str] | None = None  # the names of all lock functions
    fields: bool = False  # whether `llm_extra` may set only `SAMPLING`, to numbers


ANYTHING = Allowed()


@dataclass(frozen=True)
class Kind:
    """What values a field of a model takes, for help, forms and error messages."""

    says: str  # the values in plain words
    # Of a form: ``text``, ``long``, ``list``, ``number``, ``choice`` or ``switch``.
    field: str = "text"
    words: tuple[str, ...] = ()  # the values of a choice, as typed
    keys: tuple[str, ...] = ()  # of a dict: the names it may have; empty if any
    of: "Kind | None" = None  # of a dict: what its values are


def kind_of(schema: Mapping[str, Any]) -> Kind:
    """The kind of a field, from its JSON Schema."""
    match schema:
        case {"says": says, "field": field}:
            return Kind(says, field)
        case {"anyOf": [of, _]}:  # the other is None
            kind = kind_of(of)
            words = kind.words and ("None", *kind.words)
            return replace(kind, says=f"{kind.says}, or None", words=words)
        case {"enum": words}:
            return Kind("one of " + ", ".join(words), "choice", tuple(words))
        case {"minimum": low, "maximum": high, "type": "integer"}:
            return Kind(f"a whole number from {low:,} to {high:,}", "number")
        case {"minimum": low, "maximum": high}:
            return Kind(f"a number from {low:,} to {high:,}", "number")
        case {"maxLength": most} if most > LINE_CHARS:
            return Kind(f"text of at most {most:,} characters", "long")
        case {"maxLength": most}:
            return Kind(f"text of at most {most:,} characters")
        case {"additionalProperties": of, "propertyNames": {"enum": keys}}:
            kind = kind_of(of)
            says = f"a dict of {', '.join(keys)} to {kind.says}"
            return Kind(says, keys=tuple(keys), of=kind)
        case {"additionalProperties": of, "propertyNames": names}:
            kind = kind_of(of)
            return Kind(f"a dict of {names.get('says', 'name')} to {kind.says}", "long", of=kind)
    return Kind("True or False", "switch", ("True", "False"))


@dataclass(frozen=True)
class About:
    """A field of a model, for help, forms and the documentation."""

    model: "type[Values]"  # whose field it is
    name: str
    default: Any
    help: str
    kind: Kind
    facts: Any  # more about it, by name


class Values(BaseModel):
    """A model whose fields people set one by one."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)
    prefix: ClassVar[str] = ""  # what messages write before the name of a field

    @classmethod
    @cache
    def about(cls) -> dict[str, About]:
        """What there is to say of its fields, by name."""
        schemas = cls.model_json_schema()["properties"]
        return {
            name: About(
                cls,
                name,
                field.default,
                field.description or "",
                kind_of(schemas[name]),
                field.json_schema_extra or {},
            )
            for name, field in cls.model_fields.items()
        }

    @classmethod
    def checked(cls, name: str, value: object, allowed: Allowed = ANYTHING, key: str = "") -> Any:
        """A field's value in its stored form, or that of one name of a dict.

        Raises `ConfigError` if the field does not take it.
        """
        label, given, kind = cls.prefix + name, value, cls.about()[name].kind
        if key:
            label, given, kind = f"{label}.{key}", {key: value}, kind.of or kind
        try:
            stored = getattr(cls.model_validate({name: given}, context=allowed), name)
        except ValidationError as error:
            for each in error.errors():
                if each["type"] == _REFUSED:
                    raise ConfigError(f"`{label}`: {each['msg']}.") from error
            raise ConfigError(f"`{label}` takes {kind.says}, not {shown_raw(value)}.") from error
        if key:
            [stored] = stored.values()
        return stored

    @classmethod
    def parsed(cls, name: str, text: str, allowed: Allowed = ANYTHING, key: str = "") -> Any:
        """As `checked`, of what somebody typed: a literal of Python or JSON, or the text itself.

        A list, dict or tuple is never read as text; in quotes it is.
        """
        text = text.strip()
        value = literal(text)
        try:
            return cls.checked(name, value, allowed, key)
        except ConfigError:
            if isinstance(value, Collection):
                raise
        return cls.checked(name, text, allowed, key)


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
        if any(mark in text for text in value for mark in ', "\n'):
            return json.dumps(value, ensure_ascii=False)
        return ", ".join(value) or "none"
    return repr(value)


def shown_raw(value: object) -> str:
    """The beginning of any value as Python writes it; Python refuses to for very long numbers."""
    try:
        return f"{value!r:.60}"
    except ValueError:
        return f"this {type(value).__name__}"


_REFUSED = "refused"


def refusal(why: str) -> PydanticCustomError:
    """The error for a value that is of its kind, but that the game does not allow."""
    return PydanticCustomError(_REFUSED, "{why}", {"why": why})


def says(words: str, field: str = "text") -> WithJsonSchema:
    """What a type takes, in words, where its schema does not say it."""
    return WithJsonSchema({"type": "string", "says": words, "field": field})


def _or(empty: object) -> BeforeValidator:
    """What also counts as an empty value: None, `none` and no text."""

    def read(value: object) -> object:
        if value is None or (isinstance(value, str) and value.strip().lower() in ("", "none")):
            return empty
        return value

    return BeforeValidator(read)


def _listed(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    return value


def _names(value: object) -> object:
    if isinstance(value, str):
        return [part for part in re.split(r"[,\n]", value) if part.strip()]
    return value


def _lower(value: object) -> object:
    if isinstance(value, str):
        return value.strip().lower()
    return value


def _no_flag(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(value)
    return value


def _model(name: str, info: ValidationInfo) -> str:
    """A model that may be used. Addresses stand in the settings alone."""
    models = _allowed(info).models
    if "://" in name:
        raise refusal(f"`{name:.60}` holds an address; addresses come from the settings alone")
    if models is None or any(name == each or fnmatchcase(name, each) for each in models):
        return name
    allows = ", ".join(f"`{each}`" for each in dict.fromkeys(models)) or "none"
    raise refusal(
        f"`{name:.60}` is not among the models of the setting `EVENNIA_AI_MODELS`, which allows "
        f"{allows}"
    )


def _lock(lock: str, info: ValidationInfo) -> str:
    functions = _allowed(info).lock_functions
    for name in re.findall(r"(\w+)\(", lock):
        if functions is not None and name not in functions:
            raise refusal(f"there is no lock function `{name}`")
    return lock


def _sampling(values: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    if not _allowed(info).fields:
        return values
    for name, value in values.items():
        if name not in SAMPLING:
            names = ", ".join(SAMPLING)
            raise refusal(f"`{name}` may be set by `EVENNIA_AI_OPTIONS` alone, here only {names}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise refusal(f"`{name}` must be a number")
    return values


def _allowed(info: ValidationInfo) -> Allowed:
    return info.context or ANYTHING


# Before the type of a value: what also counts as None, as an empty dict and as an empty list; one
# text for a list of it, and names separated by commas; words in any case; and True, no number.
OR_NONE, OR_EMPTY, OR_NO_ITEMS = _or(None), _or({}), _or(())
LISTED, NAMES = BeforeValidator(_listed), BeforeValidator(_names)
LOWER = BeforeValidator(_lower)
NO_FLAG = BeforeValidator(_no_flag)
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, strict=True)]
Line = Annotated[Text, StringConstraints(max_length=LINE_CHARS)]
Prose = Annotated[Text, StringConstraints(max_length=PROSE_CHARS)]
Model = Annotated[Line, AfterValidator(_model), says("the name of a model")]
Models = Annotated[
    tuple[Model, ...],
    NAMES,
    OR_NO_ITEMS,
    says("names of models separated by commas", "list"),
]
Names = Annotated[tuple[Line, ...], NAMES, OR_NO_ITEMS, says("a list of names", "list")]
TextsOfGame = Annotated[
    tuple[
        Annotated[Text, StringConstraints(pattern=r"^(help:\s*[^:,]{1,60}|rooms:\s*[1-3])$")], ...
    ],
    NAMES,
    OR_NO_ITEMS,
    says("a list such as help:lore, help:law, rooms:2", "list"),
]
_TIME = r"([01]?[0-9]|2[0-3]):[0-5][0-9]"
Hours = Annotated[
    Text,
    StringConstraints(pattern=rf"^(?i)((game|real)\s+)?{_TIME}\s*-\s*{_TIME}$", to_lower=True),
    says("hours such as 23:00-06:00 or game 23:00-06:00"),
]
Lock = Annotated[
    Text,
    StringConstraints(pattern=rf"^{_LOCK}(?:\s+(?:and|or|AND|OR)\s+{_LOCK})*$"),
    AfterValidator(_lock),
    says("a lock string such as perm(Builder) or id(5) or all()"),
]
Json = Annotated[JsonValue, says("a value that JSON can hold")]
RequestFields = Annotated[dict[Line, Json], AfterValidator(_sampling), OR_EMPTY]
Whole = Annotated[int, NO_FLAG]
Number = Annotated[float, NO_FLAG]
Amount = Annotated[
    int | float,
    Field(ge=0, le=10**12),
    NO_FLAG,
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": 10**12}),
]
Url = Annotated[
    Text,
    StringConstraints(pattern=r"^https?://[^\s/]+(/\S*)?$"),
    says("a web address such as http://127.0.0.1:11434/v1"),
]
Dotted = Annotated[
    Text,
    StringConstraints(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$"),
    says("a dotted path such as world.tools.OpenDoor"),
]
Paths = Annotated[tuple[Dotted, ...], NAMES, OR_NO_ITEMS, says("a list of dotted paths", "list")]
