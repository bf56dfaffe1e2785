"""Values that could not be read, kept aside before others take their place.

Each Attribute of the category `ASIDE` holds the former values of one Attribute, oldest first. The
proof counts them, and `aistatus` names them.
"""

from collections.abc import Callable

from evennia_ai.history.records import as_list
from evennia_ai.protocol import Store

ASIDE = "ai_damaged"


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
