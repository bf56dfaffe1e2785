"""Plain values into Attributes and out of them, at the cost of a copy in C.

Evennia walks through a value twice in Python before it pickles it, and wraps every list and dict
of it at each reading, as it may hold database objects or be changed in place. For 600 messages
that is 25 ms each way on the reactor. What this package stores is plain data, of which neither is
true; whatever is not plain goes Evennia's way.
"""

import marshal
from base64 import b64encode
from pickle import dumps
from typing import Any

from evennia.utils.dbserialize import deserialize
from evennia.utils.picklefield import DEFAULT_PROTOCOL, PickledObject

# How Evennia's stand-ins for database objects and sessions begin inside a stored value.
_PACKED = b"__packed_"


def copied(value: Any) -> Any:
    """A deep copy of a value of plain types only.

    `marshal` takes exactly those: None, numbers, texts, bytes, lists, tuples, dicts and sets, no
    classes derived of them.

    Raises:
        ValueError: If something else is in it.
    """
    return marshal.loads(marshal.dumps(value))


def read(attribute: Any) -> Any:
    """A copy of an Attribute's value, database objects in it unpacked."""
    try:
        data = marshal.dumps(attribute.db_value)
    except ValueError:
        return deserialize(attribute.value)
    return deserialize(attribute.value) if _PACKED in data else marshal.loads(data)


def write(attribute: Any, value: Any) -> None:
    """Store a copy of a value in an Attribute, in one database statement."""
    try:
        plain = copied(value)
    except ValueError:
        attribute.value = value
        return
    pickled = PickledObject(b64encode(dumps(plain, DEFAULT_PROTOCOL)).decode("ascii"))
    if not type(attribute).objects.filter(pk=attribute.pk).update(db_value=pickled):
        attribute.value = plain  # the row is gone: what Evennia does then
        return
    attribute.db_value = plain
    _tell_monitors(attribute)


def _tell_monitors(attribute: Any) -> None:
    """As Evennia does after each save, for games that watch an Attribute."""
    from evennia.scripts.monitorhandler import MONITOR_HANDLER

    MONITOR_HANDLER.at_update(attribute, "db_value")
