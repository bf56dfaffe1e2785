"""Which values an assistant's Attributes may hold, and what becomes of others.

All code that reads one of these Attributes takes of it what it can use, so an odd value stops
nothing. It is put aside (`history.stored`) before something else is written in its place.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from evennia_ai.history.stored import Stored, as_dict, as_dicts, as_list, as_text, as_texts, as_time
from evennia_ai.rag_memory.seen import KEY as QUARANTINE
from evennia_ai.rag_memory.seen import Quarantined
from evennia_ai.turns.initiative import Used
from evennia_ai.turns.tools.waiting import KEY as WAITING
from evennia_ai.turns.tools.waiting import WaitingCalls

# The shape of what assistants store. A release that changes it counts up, and brings what older
# ones stored up to date.
VERSION = 1
VERSION_KEY = "schema_version"
AWAKE, SLEEP = "awake", "sleep"
PHASES = ("sleeping", "dreaming", "waking")

# Returns a stored value as it can be used; anything false if nothing of it can.
Reader = Callable[[object], object]
Place = tuple[str | None, str]


def queued_events(value: object) -> list[Any]:
    """The stored events of a queue that can be read as messages."""
    return [
        each for each in as_dicts(value) if each.get("id") and isinstance(each.get("content"), str)
    ]


def sleep_report(value: object) -> dict[str, Any] | None:
    """The report of a sleep cycle and when it was; None if it is none, or cannot be shown."""
    raw = as_dict(value)
    steps = as_dict(raw.get("steps"))
    try:
        json.dumps(steps)
    except (TypeError, ValueError, RecursionError):  # a number may be too large, too
        return None
    is_read = as_time(raw.get("at")) == raw.get("at") and all(map(as_dict, steps.values()))
    return raw if is_read else None


def _one_of(*words: str) -> Reader:
    return lambda value: value if value in words else None


def _whole(kind: type[Stored]) -> Reader:
    return lambda value: (read := kind.if_readable(value)) and read.to_dict()


def _flag(value: object) -> object:
    return value if isinstance(value, bool) else None


_OF_SCRIPT: Mapping[str, Reader] = {
    "enabled": _flag,
    "dreamt": _flag,
    "compaction_hold": _flag,
    "operating_mode": _one_of(AWAKE, SLEEP),
    "sleep_phase": _one_of(*PHASES),
    "summaries_stale": as_texts,
    "summaries_remade": lambda value: [at for each in as_list(value) if (at := as_time(each))],
    "conversation_begun": as_text,
    "context_signals": as_dict,
    "routine_done": as_text,
    "routine_alert": as_text,
    "compaction_outbox": as_texts,
    "nights_done": as_dict,
    "event_queue": queued_events,
    WAITING: _whole(WaitingCalls),
    "initiative_used": _whole(Used),
    QUARANTINE: _whole(Quarantined),
    "greeted": as_dict,
    "last_extraction": as_texts,
    "looked_through": as_texts,
    "last_compaction": as_dict,
    "last_sleep": sleep_report,
}
SCRIPT: Mapping[Place, Reader] = {(None, key): reader for key, reader in _OF_SCRIPT.items()}
# What is read as a whole, and put aside where it cannot be (`history.stored`).
BODY: Mapping[Place, Reader] = {(None, "journal"): as_dict}


def is_sound(reader: Reader, value: object) -> bool:
    """Whether a stored value is used as it is; None counts as nothing stored."""
    return value is None or reader(value) == value
