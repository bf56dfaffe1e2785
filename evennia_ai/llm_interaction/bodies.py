"""Odd bodies of replies as the plain JSON that was asked for. No I/O.

Some servers and proxies send an event stream although none was asked for, the words in parts, or a
byte that is no UTF-8. What can be read of such a body is read; any other stays as it is.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from evennia_ai.history.records import as_dict, as_list

# The parts of a streamed reply whose pieces are put together.
_PIECES = ("content", "reasoning_content")


def plain_body(body: bytes) -> bytes:
    """The body of a reply as plain JSON; the same one if it is plain, or cannot be read."""
    text = body.decode("utf-8-sig", "ignore")
    reply = _loaded(text)
    is_odd = not body.startswith(b"{") or len(text.encode()) != len(body)
    if not reply or _is_piece(reply):
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
    try:
        value = json.loads(text.strip().removeprefix("data:"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _is_piece(reply: Mapping[str, Any]) -> bool:
    """Whether a reply is one event of a stream."""
    return any("delta" in as_dict(each) for each in as_list(reply.get("choices")))


def _words(content: object) -> str:
    """The words in a content: a text, a part, or several; thoughts are none."""
    if isinstance(content, list):
        return "".join(map(_words, content))
    part = content.get("text") if isinstance(content, Mapping) else content
    return part if isinstance(part, str) else ""


def _joined(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The reply that a stream of events makes up; empty if there is none.

    An error, or an event that holds a whole reply, is what counts.
    """
    joined: dict[str, Any] = {}
    message: dict[str, Any] = {"role": "assistant", **dict.fromkeys(_PIECES, "")}
    calls: dict[object, dict[str, Any]] = {}
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": None}
    for event in events:
        pieces = as_list(event.get("choices"))
        piece = as_dict(pieces[0]) if pieces else {}
        if "message" in piece or "error" in event:
            return dict(event)
        joined |= {key: value for key, value in event.items() if value is not None}
        delta = as_dict(piece.get("delta"))
        for name in _PIECES:
            message[name] += _words(delta.get(name))
        if "text" in piece:
            choice["text"] = choice.get("text", "") + _words(piece["text"])
        _add_calls(calls, as_list(delta.get("tool_calls")))
        choice["finish_reason"] = piece.get("finish_reason") or choice["finish_reason"]
    if not joined:
        return {}
    if calls:
        message["tool_calls"] = list(calls.values())
    if "text" in choice:
        del choice["message"]
    kind = "text_completion" if "text" in choice else "chat.completion"
    return {"id": "", "model": "", "created": 0, **joined, "object": kind, "choices": [choice]}


def _add_calls(calls: dict[object, dict[str, Any]], pieces: Iterable[object]) -> None:
    """Add the pieces of tool calls to the calls so far, by their index."""
    for number, piece in enumerate(map(as_dict, pieces)):
        new = {"type": "function", "function": {"name": "", "arguments": ""}}
        index = piece.get("index")
        call = calls.setdefault(index if isinstance(index, int) else number, new)
        call["id"] = piece.get("id") or call.get("id")
        for name, value in as_dict(piece.get("function")).items():
            if name in call["function"] and isinstance(value, str):
                call["function"][name] += value
