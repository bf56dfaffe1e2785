"""Copies of an assistant: another one with its options and none of its life.

Evennia's `copy` and `spawn` put one body's Attributes on another and call no hook of the first. So
a body names itself in an Attribute, and one that names another is a copy.
"""

from typing import TYPE_CHECKING

from evennia_ai.game.evennia_internals import AttributeStore
from evennia_ai.game.identity import find, stable_id
from evennia_ai.game.stored_privacy import is_life

if TYPE_CHECKING:
    from evennia import DefaultCharacter

_NAME, _CATEGORY = "assistant_body", "evennia_ai"


def begin_life(body: "DefaultCharacter") -> None:
    """Make a copied body, which has its script, an assistant of its own; others only get a name."""
    named, own = body.attributes.get(_NAME, category=_CATEGORY), stable_id(body)
    if named == own:
        return
    body.attributes.add(_NAME, own, category=_CATEGORY)
    if named is None:
        return
    store = AttributeStore(body)
    for attribute in body.attributes.all():
        if is_life(attribute.db_key, attribute.db_category):
            store.delete(attribute.db_key, attribute.db_category)
    if original := getattr(find(str(named)), "assistant", None):
        body.assistant.state.configure_as(original.state)
