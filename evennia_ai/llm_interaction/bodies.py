"""Odd bodies of replies as the plain JSON that was asked for. No I/O.

Some servers and proxies send an event stream although none was asked for, the words in parts, or a
byte that is no UTF-8. What can be read of such a body is read; any other stays as it is.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from evennia_ai.history.stored import as_dict, as_list
from evennia_ai.llm_interaction.tool_calls import loaded


def plain_body(body: bytes) -> bytes:
    """The body of a reply as plain JSON; the same one if it is plain, or cannot be read."""
    text = body.decode("utf-8-sig", "ignore")
    reply = _loaded(text)
    is_odd = not body.startswith(b"{") or len(text.encode()) != len(body)
    choices = map(as_dict, as_list(reply.get("choices")))
    if not reply or any("delta" in choice for choice in choices):  # one event of a stream
        is_odd = True
        reply = _joined([reply] if reply else filter(None, map(_loaded, text.splitlines())))
    if not reply:
        return body
    for choice in map(as_dict, as_list(reply.get("choices"))):
        message = choice.get("message")
        if isinstance(message, dict) and isinstance(message.get("content"), list | dict):
            message["content"], is_odd = _words(message["content"]), True
    return json.dumps(reply).encode() if is_odd else body


def _loaded(text: str) -> dict[str, Any]:
    """The JSON object of a body, or of an event's line; empty if it is none."""
    return as_dict(loaded(text.strip().removeprefix("data:")))


def _words(content: object) -> str:
    """The words in a content: a text, a part, or several; thoughts are none."""
    if isinstance(content, list):
        return "".join(map(_words, content))
    part = content.get("text") if isinstance(content, Mapping) else content
    return part if isinstance(part, str) else ""


# What grows from piece to piece; of anything else the newest counts.
_GROWING = ("content", "text", "name", "arguments")


def _joined(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The reply that a stream of events makes up; empty if there is none.

    An error, or an event that holds a whole reply, is what counts.
    """
    reply, choice = dict[str, Any](), dict[str, Any]()
    for event in events:
        piece = as_dict(next(iter(as_list(event.get("choices"))), {}))
        if "message" in piece or "error" in event:
            return dict(event)
        reply |= {key: value for key, value in event.items() if value is not None}
        _add(choice, piece)
    if not reply:
        return {}
    message = {"role": "assistant", "content": "", **as_dict(choice.pop("delta", None))}
    calls = as_dict(message.pop("tool_calls", None)).values()
    if calls:
        message["tool_calls"] = [{"type": "function", **as_dict(call)} for call in calls]
    if "text" not in choice:  # else it is a base model's
        choice["message"] = message
    choice = {"index": 0, "finish_reason": None, **choice}
    return {"id": "", "model": "", "created": 0, **reply, "choices": [choice]}


def _add(whole: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Add a piece to what those before it make up; entries of a list by their numbers."""
    for name, value in piece.items():
        if isinstance(value, list) and name == "tool_calls":
            value = {str(as_dict(each).get("index", at)): each for at, each in enumerate(value)}
        if name in _GROWING:
            whole[name] = whole.get(name, "") + _words(value)
        elif isinstance(value, Mapping):
            whole[name] = as_dict(whole.get(name))
            _add(whole[name], value)
        elif value:
            whole[name] = value
