"""Stored values in memory, and one rule for when they are read again.

A value read from an Attribute holds until the Attribute's stamp is another one. What cannot be read
is put aside whole (`put_aside`) at that moment: a whole Attribute, or single items of a list.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, TypeVar

from evennia_ai.history.records import as_list
from evennia_ai.history.stored import Stored, Unreadable

T = TypeVar("T")
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
        read: Makes a value of a key, what is stored there and a list, into which it puts parts
            that it cannot read; raises `Unreadable` where it can use nothing.
        write: Makes the plain data that is stored of a value.
        most: How many values stay in memory, the latest used; all of them by default.
    """

    def __init__(
        self,
        store: Store,
        category: str | None,
        read: Callable[[str, Any, list[object]], T],
        write: Callable[[T], object],
        most: int | None = None,
    ):
        self.store, self.category = store, category
        self._read, self._write, self._most = read, write, most
        self._known: dict[str, tuple[object, T]] = {}

    def get(self, key: str) -> T | None:
        """The value under a key, or None."""
        return self._current(key, self.store.stamp(key, self.category))

    def all(self, keys: Sequence[str] | None = None) -> dict[str, T]:
        """The values of these keys, by default of all, by key; in one query for what is new."""
        keys = self.store.keys(self.category or "") if keys is None else keys
        self.store.preload(keys, self.category)
        stamps = self.store.stamps(keys, self.category)
        values = ((key, self._current(key, stamp)) for key, stamp in zip(keys, stamps, strict=True))
        return {key: value for key, value in values if value is not None}

    def set(self, key: str, value: T) -> None:
        """Store a value."""
        self.store.set(key, self._write(value), self.category)
        self._keep(key, self.store.stamp(key, self.category), value)

    def delete(self, key: str) -> None:
        """Remove a value."""
        self.store.delete(key, self.category)

    def _current(self, key: str, stamp: object) -> T | None:
        stamped, value = self._known.pop(key, (None, None))
        if stamp is None:
            return None
        if stamped is not stamp:
            value = self._load(key)
            stamp = self.store.stamp(key, self.category)
        if value is not None:
            self._keep(key, stamp, value)
        return value

    def _keep(self, key: str, stamp: object, value: T) -> None:
        self._known.pop(key, None)
        self._known[key] = (stamp, value)
        if self._most is not None and len(self._known) > self._most:
            del self._known[next(iter(self._known))]

    def _load(self, key: str) -> T | None:
        raw, odd = self.store.get(key, self.category), list[object]()
        try:
            value = self._read(key, raw, odd)
        except Unreadable:
            with self.store.transaction():
                put_aside(self.store, raw, key, self.category)
                self.store.delete(key, self.category)
            return None
        if odd:
            with self.store.transaction():
                for item in odd:
                    put_aside(self.store, item, key, self.category)
                self.store.set(key, self._write(value), self.category)
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
    return f"{category}_{key}" if category else key


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
