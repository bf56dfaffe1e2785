"""Odd bodies of replies as the plain JSON that was asked for. No I/O.

Some servers and proxies send an event stream although none was asked for, the words in parts, or a
byte that is no UTF-8. What can be read of such a body is read; any other stays as it is.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from evennia_ai.history.stored import as_dict, as_dicts, as_text
from evennia_ai.llm_interaction.tool_calls import loaded

# What grows from piece to piece of a stream; of anything else the newest counts.
_GROWING = ("content", "text", "name", "arguments")
# Lists whose pieces belong together by their numbers.
_NUMBERED = ("choices", "tool_calls")


def plain_body(body: bytes) -> bytes:
    """The body of a reply as plain JSON; the same one if it cannot be read."""
    text = body.decode("utf-8-sig", "ignore")
    events = [_loaded(text)]
    if not events[0]:
        events = list(filter(None, map(_loaded, text.splitlines())))
    # An error, or an event that holds a whole reply, is what counts.
    wholes = (
        event
        for event in events
        if "error" in event or any("message" in each for each in as_dicts(event.get("choices")))
    )
    reply = next(wholes, None) or _joined(events)
    if not reply:
        return body
    for choice in as_dicts(reply.get("choices")):
        message = choice.get("message")
        if isinstance(message, dict) and isinstance(message.get("content"), list | dict):
            message["content"] = _words(message["content"])
    return json.dumps(reply).encode()


def _loaded(text: str) -> dict[str, Any]:
    """The JSON object of a body, or of an event's line; empty if it is none."""
    return as_dict(loaded(text.strip().removeprefix("data:")))


def _words(content: object) -> str:
    """The words in a content: a text, a part, or several; thoughts are none."""
    if isinstance(content, list):
        return "".join(map(_words, content))
    if isinstance(content, Mapping):
        content = content.get("text")
    return as_text(content)


def _joined(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The reply that a stream of events makes up; empty if there is none."""
    reply = dict[str, Any]()
    for event in events:
        _add(reply, event)
    choice = as_dict(next(iter(as_dict(reply.get("choices")).values()), None))
    if not choice:
        return {}
    message = {"role": "assistant", "content": "", **as_dict(choice.pop("delta", None))}
    if calls := as_dict(message.pop("tool_calls", None)):
        message["tool_calls"] = [{"type": "function", **as_dict(call)} for call in calls.values()]
    if "text" not in choice:  # else it is a base model's
        choice["message"] = message
    choice = {"index": 0, "finish_reason": None, **choice}
    return {"id": "", "model": "", "created": 0, **reply, "choices": [choice]}


def _add(whole: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Add a piece to what those before it make up."""
    for name, value in piece.items():
        if isinstance(value, list) and name in _NUMBERED:
            value = {str(as_dict(each).get("index", at)): each for at, each in enumerate(value)}
        if name in _GROWING:
            whole[name] = whole.get(name, "") + _words(value)
        elif isinstance(value, Mapping):
            whole[name] = as_dict(whole.get(name))
            _add(whole[name], value)
        elif value:
            whole[name] = value
