"""Values as frames between the Server and the mind's process, and back.

A frame is a tag of `TAG` characters and a JSON text. Dataclasses in `VALUES` and sets are objects
whose one key is the tag. The tag is random, so that no text or key from a player, a model or an
edited Attribute passes for a value. Tuples become lists, except in fields that are tuples.
"""

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import date, datetime
from typing import Any

from evennia_ai.errors import (
    AssistantError,
    ConfigError,
    LocalModelError,
    ModelError,
    SpendError,
    StoreError,
    WindowError,
)
from evennia_ai.history.items import Item
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.history.pairs import ToolTraits
from evennia_ai.llm_interaction.grounding import Grounded, Struck
from evennia_ai.llm_interaction.tokens import TokenCounter
from evennia_ai.llm_interaction.values import ModelReply, ModelRequest, ProbeReport
from evennia_ai.recall.values import Hit, Query, Turn
from evennia_ai.sleep.compaction.coverage import Covered

# Characters of the tag that begins a frame.
TAG = 8
# Bytes of the largest frame.
MAX_FRAME = 64 * 2**20
VALUES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Covered,
        Grounded,
        Hit,
        Item,
        Message,
        ModelReply,
        ModelRequest,
        ProbeReport,
        Query,
        Speaker,
        Struck,
        TokenCounter,
        ToolTraits,
        Turn,
    )
}
_FIELDS = {kind: tuple(each.name for each in fields(kind)) for kind in VALUES.values()}
_TUPLES = {
    kind: frozenset(each.name for each in fields(kind) if str(each.type).startswith("tuple"))
    for kind in VALUES.values()
}
_ERRORS: dict[str, type[AssistantError]] = {
    kind.__name__: kind
    for kind in (AssistantError, ConfigError, LocalModelError, SpendError, StoreError)
}


def frame(value: object) -> bytes:
    """A value as a frame; raises `TypeError` or `ValueError` for what is none."""
    tag = secrets.token_hex(TAG // 2)

    def plain(each: object) -> dict[str, Any]:
        kind = type(each)
        if kind in _FIELDS:
            held = [kind.__name__, *(getattr(each, name) for name in _FIELDS[kind])]
        elif isinstance(each, set | frozenset):
            held = [kind.__name__, *each]
        elif isinstance(each, Mapping):
            return dict(each)
        elif isinstance(each, datetime | date):
            held = [kind.__name__, each.isoformat()]
        elif hasattr(each, "__iter__"):
            held = ["list", *each]
        else:
            raise TypeError(f"`{kind.__name__}` is no value of a frame")
        return {tag: held}

    # Player text may hold half of a surrogate pair, which UTF-8 cannot: hence ASCII.
    return (tag + json.dumps(value, default=plain)).encode("ascii")


def unframed(data: bytes) -> Any:
    """The value of a frame; raises `ValueError` if it has none."""
    tag, text = data[:TAG].decode("ascii", "replace"), data[TAG:]

    def restored(found: dict[str, Any]) -> Any:
        if len(found) != 1 or tag not in found:
            return found
        name, *held = found[tag]
        return _MAKERS[name](held)

    try:
        return json.loads(text, object_hook=restored)
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not a frame: {type(error).__name__}") from error


def _maker(kind: type) -> Callable[[list[Any]], Any]:
    names, tuples = _FIELDS[kind], _TUPLES[kind]

    def make(held: list[Any]) -> Any:
        given = zip(names, held, strict=True)
        return kind(**{n: tuple(v) if n in tuples else v for n, v in given})

    return make


_MAKERS: dict[str, Callable[[list[Any]], Any]] = {
    "set": set,
    "frozenset": frozenset,
    "list": list,
    "date": lambda held: date.fromisoformat(held[0]),
    "datetime": lambda held: datetime.fromisoformat(held[0]),
    **{name: _maker(kind) for name, kind in VALUES.items()},
}


def error_dict(error: BaseException) -> dict[str, Any]:
    """An error as plain data; of an unexpected one, its class and its text."""
    if isinstance(error, WindowError):
        return {"error": "WindowError", "text": str(error), "model": error.model}
    if type(error) is ModelError:
        kind = {"kind": error.kind, "retryable": error.retryable}
        return {"error": "ModelError", "text": str(error), **kind}
    name, text = type(error).__name__, str(error)
    if name not in _ERRORS:
        name, text = "AssistantError", f"{name}: {text}"
    return {"error": name, "text": text}


def read_error(data: Mapping[str, Any]) -> AssistantError:
    """The error that `error_dict` describes."""
    if data["error"] == "ModelError":
        return ModelError(data["text"], data["retryable"], data["kind"])
    if data["error"] == "WindowError":
        return WindowError(data["text"], data["model"])
    return _ERRORS[data["error"]](data["text"])
