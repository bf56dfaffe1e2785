"""Stored texts that show only their length.

Evennia's building commands, prototypes and web API show and copy every Attribute without asking for
a lock. So talk and memories are stored as sealed texts: a dict of a stored message keeps its id,
time and audience readable, and shows ``<43 characters>`` for what was said. Code reads them as
texts: ``script.db.conversation_history[0]["content"] == "hello"``.

A sealed text belongs to one object. Copied to another assistant, it stays sealed there.
"""

from collections import deque
from collections.abc import Mapping, MutableSequence
from typing import Any

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
    through it or show it character by character.

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
        return Sealed(value, owner) if value else ""
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
        return value.text if owner is None or value.owner == owner else value
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
