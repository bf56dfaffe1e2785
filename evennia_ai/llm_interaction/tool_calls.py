"""The tool calls of a reply: made storable."""

import json
from collections.abc import Mapping
from typing import Any, TypedDict

from evennia_ai.history.stored import as_dict, as_text
from evennia_ai.language.words import storable_json

# Longer arguments are no arguments of any tool here; they must be readable JSON all the same.
ARGUMENT_CHARS = 100_000

Call = Mapping[str, Any]


class ChatToolCall(TypedDict):
    """A tool call in the chat format; `type` is ``function``.

    Of the function, `name` is the tool's, `arguments` a text that should be a JSON object.
    """

    id: str
    type: str
    function: dict[str, str]


def tool_call(call_id: str, name: str, arguments: str) -> ChatToolCall:
    """A call in the chat format."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def storable_call(call: Call) -> dict[str, Any]:
    """A call whose arguments are the text of a JSON object, as providers want them sent back.

    Unreadable arguments are kept as a text in such an object, at most `ARGUMENT_CHARS` of it.
    """
    function = as_dict(call.get("function"))
    text = function.get("arguments")
    if text is None:
        text = "{}"
    if not isinstance(text, str):
        text = json.dumps(text)
    text = storable_json(text)
    if len(text) > ARGUMENT_CHARS or not isinstance(loaded(text), dict):
        text = json.dumps({"unreadable": text[:ARGUMENT_CHARS]}, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": text}}


def loaded(text: object) -> Any:
    """The value of a JSON text; None if it is not one."""
    try:
        return json.loads(as_text(text))
    except (ValueError, RecursionError):
        return None


def spoken_text(function: Call) -> str:
    """What a call's function says: its argument `text`."""
    return as_text(as_dict(loaded(function.get("arguments"))).get("text")).strip()
