"""Damaged values, kept aside before others take their place.

Each Attribute of the category `ASIDE` holds the former values of one Attribute, oldest first.
"""

from collections.abc import Callable

from evennia_ai.history.records import as_list
from evennia_ai.protocol import Store

ASIDE = "ai_damaged"
# Where earlier versions kept damaged messages.
FORMER = "conversation_damaged"


def name_of(key: str, category: str | None = None) -> str:
    """How an Attribute is named to people, and in the category `ASIDE`."""
    return f"{category}_{key}" if category else key


def put_aside(store: Store, value: object, key: str, category: str | None = None) -> None:
    """Keep a value that cannot be used."""
    name = name_of(key, category)
    kept = as_list(store.get(name, category=ASIDE))
    store.set(name, [*kept, value], category=ASIDE)


def drop_from_aside(store: Store, is_dropped: Callable[[object], bool]) -> None:
    """Drop values kept aside, for privacy."""
    for key, category in ((FORMER, None), *((name, ASIDE) for name in store.keys(ASIDE))):
        held = as_list(store.get(key, category=category))
        kept = [value for value in held if not is_dropped(value)]
        if len(kept) < len(held):
            store.set(key, kept, category=category)
