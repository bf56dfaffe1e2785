"""Stored values: frozen dataclasses that round-trip to plain dicts, each field said once.

A stored dict has the names of the fields as keys. Fields with a default may be missing; where they
are empty by default, empty ones are not stored. What has another shape is `Unreadable`: nothing is
repaired, the whole value is put aside (`put_aside`) when it is read: a whole Attribute, or single
items of a list. A value in memory holds until its Attribute's stamp is another one (`Cache`).

Evennia's building commands, prototypes and web API show and copy every Attribute without asking for
a lock. So talk and memories are stored as sealed texts, which show only their length (`Sealed`): a
dict of a stored message keeps its id, time and audience readable, and shows ``<43 characters>`` for
what was said. Code reads them as texts: ``conversation_history[0]["content"] == "hello"``.

The readers (`as_text`, `as_count`, ...) turn any stored value into one of their type.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, MutableSequence, Sequence
from contextlib import AbstractContextManager
from dataclasses import MISSING, fields
from functools import partial
from types import NoneType, UnionType
from typing import (
    Any,
    Generic,
    Literal,
    Protocol,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

# Keys whose texts stay readable: ids, times and states, which tell nothing that was said.
STRUCTURE = frozenset(
    {"id", "ids", "role", "type", "created_at", "audience", "channel", "tool_call_id", "known_to"}
    | {"digest", "checksum", "recorded_at", "rebuilt_at", "timestamp", "at", "last_at"}
    | {"source_type", "source_ids", "source_message_ids", "sources", "child_ids", "earlier_ids"}
    | {"consolidated_entry_ids", "message_ids", "segments", "summary_id"}
    | {"tier", "status", "state", "level", "archived_at", "compacted_at", "decided_at", "asker"}
    | {"superseded_by", "without"}
)
# Begins the id of somebody or something mentioned and never met; a name follows.
UNMET = "n."
_ATOMS = frozenset({int, float, bool, type(None)})


class Sealed:
    """A text that shows only how long it is.

    It equals the text, and has the methods of texts. It is no sequence, as Evennia would walk
    through it or show it character by character. The names of this class and of its module stand in
    everything that is stored: neither may change.

    Attributes:
        text: The text itself.
        owner: Stable id of the object it belongs to.
    """

    __slots__ = ("owner", "text")

    def __init__(self, text: str, owner: str = ""):
        self.text, self.owner = text, owner

    def __repr__(self) -> str:
        return f"<{len(self.text)} characters>"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __reduce__(self) -> tuple[type["Sealed"], tuple[str, str]]:
        return Sealed, (self.text, self.owner)

    def __eq__(self, other: object) -> bool:
        return self.text == (other.text if isinstance(other, Sealed) else other)

    def __hash__(self) -> int:
        return hash(self.text)

    def __len__(self) -> int:
        return len(self.text)

    def __contains__(self, part: str) -> bool:
        return part in self.text

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in self.__slots__:
            raise AttributeError(name)
        return getattr(self.text, name)


def seal(value: Any, owner: str) -> Any:
    """A copy of a value with its texts sealed, but for those under keys of `STRUCTURE`."""
    return _sealed(value, owner, False)


def _sealed(value: Any, owner: str, is_structure: bool) -> Any:
    kind = type(value)
    if kind in _ATOMS or (is_structure and kind is str and not value.startswith(UNMET)):
        return value
    if isinstance(value, str):
        if value:
            return Sealed(value, owner)
        return ""
    if isinstance(value, dict):
        return {
            key if key in STRUCTURE else _sealed(key, owner, True): _sealed(
                each, owner, key in STRUCTURE
            )
            for key, each in value.items()
        }
    if isinstance(value, list | deque):
        return [_sealed(each, owner, is_structure) for each in value]
    if isinstance(value, tuple):
        return tuple([_sealed(each, owner, is_structure) for each in value])
    if kind in (set, frozenset):
        return kind([_sealed(each, owner, is_structure) for each in value])
    return value


def holds_sealed(value: Any, owner: str | None) -> bool:
    """Whether a dict holds a text that is sealed for this owner."""
    texts = value.values() if isinstance(value, Mapping) else ()
    return any(isinstance(text, Sealed) and text.owner == owner for text in texts)


def unseal(value: Any, owner: str | None = None) -> Any:
    """A copy of a value with the sealed texts of this owner open, of all owners if None.

    Evennia's own lists and dicts become plain ones.
    """
    kind = type(value)
    if kind is str or kind in _ATOMS:
        return value
    if kind is Sealed:
        if owner is None or value.owner == owner:
            return value.text
        return value
    if kind is dict or isinstance(value, Mapping):
        return {
            key if type(key) is str else unseal(key, owner): unseal(each, owner)
            for key, each in value.items()
        }
    if kind in (tuple, set, frozenset):
        return kind([unseal(each, owner) for each in value])
    if isinstance(value, MutableSequence):
        return [unseal(each, owner) for each in value]
    return value


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
                reader_of(hints[each.name]),
                each.default if each.default_factory is MISSING else each.default_factory(),
            )
            for each in fields(kind)
        )
    return _SHAPES[kind]


def reader_of(kind: Any) -> Reader:
    """Makes a value of this type of stored data; raises `Unreadable` where that cannot be."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda value: value
    if origin in (Union, UnionType):
        read = reader_of(next(each for each in args if each is not NoneType))
        return lambda value: None if value is None else read(value)
    if origin is Literal:
        return lambda value: _one_of(args, value)
    if origin in (tuple, list):
        read = reader_of(args[0])
        return lambda value: origin(map(read, _of(list | tuple, value)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        read = reader_of(args[1])
        return lambda value: {key: read(each) for key, each in _of(Mapping, value).items()}
    if issubclass(kind, Stored):
        return lambda value: kind.from_dict(value)
    return partial(_atom, (int, float) if kind is float else (kind,))


def _one_of(words: Sequence[str], value: Any) -> str:
    if value not in words:
        raise Unreadable("none of " + ", ".join(words))
    return str(value)


def _of(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind):
        raise Unreadable(f"it cannot be a {type(value).__name__}")
    return value


def _atom(kinds: tuple[type, ...], value: Any) -> Any:
    """A text, flag or number of just one of these kinds; numbers are below `MOST`."""
    kind = type(value)
    if kind in kinds and (kind in (str, bool) or -MOST < value < MOST):
        return value
    if str in kinds and isinstance(value, str):
        return str(value)
    raise Unreadable(f"it cannot be a {kind.__name__}, or so large")


def as_plain(value: Any) -> Any:
    """A value as plain data: stored values and mappings as dicts, tuples as lists."""
    if isinstance(value, str | int):  # first, as most values are; the checks below take longer
        return value
    if isinstance(value, list | tuple):
        return list(map(as_plain, value))
    if isinstance(value, Mapping):
        return {key: as_plain(each) for key, each in value.items()}
    if isinstance(value, Stored):
        return value.to_dict()
    return value


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


_LAST_SECOND = 253_000_000_000.0  # in the year 9987


def as_text(value: object) -> str:
    """A text as it is; an empty one for anything else."""
    if isinstance(value, str):
        return value
    return ""


def as_count(value: object) -> int:
    """A whole number below `MOST` as it is; 0 for anything else."""
    if type(value) is int and -MOST < value < MOST:
        return value
    return 0


def as_amount(value: object) -> float:
    """A number below `MOST` as it is, no NaN; 0 for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool) and -MOST < value < MOST:
        return value
    return 0.0


def as_time(value: object) -> float:
    """Seconds since the epoch that a date can be made of; 0 for anything else."""
    return max(0.0, min(as_amount(value), _LAST_SECOND))


def as_dict(value: object) -> dict[str, Any]:
    """A mapping as a dict; an empty one for anything else."""
    if isinstance(value, Mapping):
        return dict(value)
    return {}


def as_texts(value: object) -> list[str]:
    """The texts of a list; none for anything else."""
    return [each for each in as_list(value) if isinstance(each, str)]


def as_dicts(value: object) -> list[dict[str, Any]]:
    """The mappings of a list; none for anything else."""
    return [dict(each) for each in as_list(value) if isinstance(each, Mapping)]


def as_list(value: object) -> list[Any]:
    """A list or tuple as a list; an empty one for anything else."""
    if isinstance(value, list | tuple):
        return list(value)
    return []


R = TypeVar("R", bound=Stored)
# Each Attribute of this category holds the former values of one Attribute, oldest first. The proof
# counts them, and `aistatus` names them.
ASIDE = "ai_damaged"
# Pages or segments that stay in memory, the latest read.
KEPT = 64


class Store(Protocol):
    """Where plain data is kept by key and category: a game object's Attributes."""

    def preload(self, keys: Iterable[str], category: str | None = None) -> None:
        """Load values of a category that are not in memory yet, in one query."""

    def get(self, key: str, category: str | None = None, default: Any = None) -> Any:
        """A copy of a value as plain data, or the default."""

    def get_own(self, key: str, category: str | None = None) -> list[Any]:
        """The items of a stored list that this store has sealed, not those put in by hand."""

    def stamp(self, key: str, category: str | None = None) -> object:
        """The stored value's own object, which is another one after every change."""

    def stamps(self, keys: Iterable[str], category: str | None = None) -> tuple[object, ...]:
        """The stamps of several keys of a category."""

    def set(self, key: str, value: object, category: str | None = None) -> None:
        """Store a value in one write."""

    def delete(self, key: str, category: str | None = None) -> None:
        """Remove a value."""

    def delete_all(self, keys: Iterable[str], category: str | None = None) -> None:
        """Remove values of a category in few writes, however many there are."""

    def move(self, keys: Iterable[str], category: str, to: str) -> None:
        """Put values of a category into another one in few writes, without writing them again.

        Raises `StoreError` if one of them is not there.
        """

    def keys(self, category: str) -> tuple[str, ...]:
        """All keys of a category, sorted, without loading the values."""

    def categories(self, beginning: str) -> tuple[str, ...]:
        """All categories with such a beginning, sorted."""

    def transaction(self) -> AbstractContextManager[None]:
        """All that is stored in this block, or nothing of it."""

    def on_commit(self, callback: Callable[[], Any]) -> None:
        """Call this once the present transaction is done; at once without one."""


class Cache(Generic[T]):
    """The values of one category of Attributes.

    Args:
        category: Their category.
        read: Makes a value of a key, what is stored there and a list, into which it puts parts
            that it cannot read; raises `Unreadable` where it can use nothing.
        write: Makes the plain data that is stored of a value.
        most: How many values stay in memory, the latest used; all of them by default.
        newest: The key of one that is an Attribute without a category.
    """

    def __init__(
        self,
        store: Store,
        category: str | None,
        read: Callable[[str, Any, list[object]], T],
        write: Callable[[T], object],
        most: int | None = None,
        newest: str = "",
    ):
        self.store, self.category = store, category
        self._read, self._write, self._most, self._newest = read, write, most, newest
        self._known: dict[str, tuple[object, T]] = {}

    def get(self, key: str) -> T | None:
        """The value under a key, or None."""
        return self._current(key, self._stamp(key))

    def all(self, keys: Sequence[str] | None = None) -> dict[str, T]:
        """The values of these keys, by default of all, by key; in one query for what is new."""
        keys = self.store.keys(self.category or "") if keys is None else keys
        self.store.preload(keys, self.category)
        stamps = self.store.stamps(keys, self.category)
        values = ((key, self._current(key, stamp)) for key, stamp in zip(keys, stamps, strict=True))
        return {key: value for key, value in values if value is not None}

    def set(self, key: str, value: T) -> None:
        """Store a value."""
        self.store.set(key, self._write(value), self._category(key))
        self._keep(key, self._stamp(key), value)

    def delete(self, key: str) -> None:
        """Remove a value."""
        self.store.delete(key, self.category)

    def _category(self, key: str) -> str | None:
        if key == self._newest:
            return None
        return self.category

    def _stamp(self, key: str) -> object:
        return self.store.stamp(key, self._category(key))

    def _current(self, key: str, stamp: object) -> T | None:
        stamped, value = self._known.pop(key, (None, None))
        if stamp is None:
            return None
        if stamped is not stamp:
            value = self._load(key)
            stamp = self._stamp(key)
        if value is not None:
            self._keep(key, stamp, value)
        return value

    def _keep(self, key: str, stamp: object, value: T) -> None:
        self._known.pop(key, None)
        self._known[key] = (stamp, value)
        if self._most is not None and len(self._known) > self._most:
            del self._known[next(iter(self._known))]

    def _load(self, key: str) -> T | None:
        category, odd = self._category(key), list[object]()
        raw = self.store.get(key, category)
        try:
            value = self._read(key, raw, odd)
        except Unreadable:
            with self.store.transaction():
                put_aside(self.store, raw, key, category)
                self.store.delete(key, category)
            return None
        if odd:
            with self.store.transaction():
                for item in odd:
                    put_aside(self.store, item, key, category)
                self.store.set(key, self._write(value), category)
        return value


def records(store: Store, category: str | None, kind: type[R], most: int | None = None) -> Cache[R]:
    """Records of a kind in a category; the id of each is its key.

    With another id it is unreadable, or it would hide another record.
    """

    def read(key: str, raw: object, odd: list[object]) -> R:
        record = kind.from_dict(raw)
        if getattr(record, "id", key) != key:
            raise Unreadable("its id is another one")
        return record

    return Cache(store, category, read, Stored.to_dict, most)


def name_of(key: str, category: str | None = None) -> str:
    """How an Attribute is named to people, and in the category `ASIDE`."""
    if category:
        return f"{category}_{key}"
    return key


def put_aside(store: Store, value: object, key: str, category: str | None = None) -> None:
    """Keep a value, or an item of one, that cannot be used."""
    name = name_of(key, category)
    store.set(name, [*as_list(store.get(name, category=ASIDE)), value], category=ASIDE)


def aside(store: Store) -> dict[str, int]:
    """How many values are kept aside, by the names of their Attributes."""
    return {name: len(as_list(store.get(name, category=ASIDE))) for name in store.keys(ASIDE)}


def drop_from_aside(store: Store, is_dropped: Callable[[object], bool]) -> None:
    """Drop values kept aside, for privacy."""
    for name in store.keys(ASIDE):
        values = as_list(store.get(name, category=ASIDE))
        kept = [value for value in values if not is_dropped(value)]
        if len(kept) < len(values):
            store.set(name, kept, category=ASIDE)
