"""Stored values: frozen dataclasses that round-trip to plain dicts, each field said once.

A stored dict has the names of the fields as keys. Fields with a default may be missing; where they
are empty by default, empty ones are not stored. What has another shape is `Unreadable`: nothing is
repaired, the whole value is put aside (`history.pages`).
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from types import NoneType, UnionType
from typing import Any, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from evennia_ai.history.sealed import unseal

T = TypeVar("T")
Reader = Callable[[Any], Any]
_SHAPES: dict[object, tuple[tuple[str, Reader, object], ...]] = {}
# Numbers beyond this were put in by hand; Python does not even write very long ones.
MOST = 10**15


class Unreadable(ValueError):
    """A stored value that does not have its shape; the text says what is wrong."""


class Stored:
    """A base for frozen dataclasses whose fields are texts, numbers, flags, tuples, dicts or such.

    `from_dict` also reads lists as tuples, and what code took from an Attribute, where texts are
    sealed; keys that are no field are left out.
    """

    __slots__ = ()

    @classmethod
    def from_dict(cls, raw: object) -> Self:
        """The value of a stored dict; raises `Unreadable`."""
        if not isinstance(raw, Mapping):
            raise Unreadable(f"a {type(raw).__name__} where a dict must be")
        stored = raw if type(raw) is dict else unseal(raw)
        found = {}
        for name, read, default in _shape(cls):
            if name in stored:
                try:
                    found[name] = read(stored[name])
                except Unreadable as error:
                    raise Unreadable(f"`{name}`: {error}") from None
            elif default is MISSING:
                raise Unreadable(f"`{name}` is missing")
        value = cls(**found)
        value.check()
        return value

    @classmethod
    def if_readable(cls, raw: object) -> Self | None:
        """The value of a stored dict; None if it cannot be read."""
        try:
            return cls.from_dict(raw)
        except Unreadable:
            return None

    def check(self) -> None:
        """Raises `Unreadable` where a stored value of the right types is wrong all the same."""

    def to_dict(self) -> dict[str, Any]:
        """The plain dict that is stored."""
        return {
            name: as_plain(value)
            for name, _, default in _shape(type(self))
            if (value := getattr(self, name)) or value != default
        }


def _shape(kind: Any) -> tuple[tuple[str, Reader, object], ...]:
    """Name, reader and default, or `MISSING`, of each field."""
    if kind not in _SHAPES:
        hints = get_type_hints(kind)
        _SHAPES[kind] = tuple(
            (
                each.name,
                _reader(hints[each.name]),
                each.default if each.default_factory is MISSING else each.default_factory(),
            )
            for each in fields(kind)
        )
    return _SHAPES[kind]


def _reader(kind: Any) -> Reader:
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda value: value
    if origin in (Union, UnionType):
        read = _reader(next(each for each in args if each is not NoneType))
        return lambda value: None if value is None else read(value)
    if origin is tuple:
        read = _reader(args[0])
        return lambda value: tuple(map(read, _of(list | tuple, value)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        read = _reader(args[1])
        return lambda value: {key: read(each) for key, each in _of(Mapping, value).items()}
    if issubclass(kind, Stored):
        return lambda value: kind.from_dict(value)
    return {str: _text, int: _number, float: _amount, bool: _flag}[kind]


def _of(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind):
        raise Unreadable(f"it cannot be a {type(value).__name__}")
    return value


def _text(value: Any) -> str:
    return value if type(value) is str else str(_of(str, value))


def _number(value: Any) -> int:
    if type(value) is not int or not -MOST < value < MOST:
        raise Unreadable("no whole number, or too large")
    return value


def _amount(value: Any) -> float:
    if type(value) not in (int, float) or not -MOST < value < MOST:
        raise Unreadable("no number, or too large")
    return value  # type: ignore[no-any-return]


def _flag(value: Any) -> bool:
    return bool(_of(bool, value))


def as_plain(value: Any) -> Any:
    """A value as plain data: stored values and mappings as dicts, tuples as lists."""
    if isinstance(value, str | int):  # first, as most values are; the checks below take longer
        return value
    if isinstance(value, list | tuple):
        return list(map(as_plain, value))
    if isinstance(value, Mapping):
        return {key: as_plain(each) for key, each in value.items()}
    return value.to_dict() if isinstance(value, Stored) else value


def each_readable(items: object, read: Callable[[Any], T], odd: list[object]) -> list[T]:
    """The values of a stored list; what cannot be read goes into `odd`."""
    if not isinstance(items, list | tuple):
        raise Unreadable(f"a {type(items).__name__} where a list must be")
    values = []
    for item in items:
        try:
            values.append(read(item))
        except Unreadable:
            odd.append(item)
    return values
