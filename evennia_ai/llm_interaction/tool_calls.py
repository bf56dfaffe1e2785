"""The tool calls of a reply: written as text, made storable, put in batches.

Models without tool calling get the tools described in their prompt, and write a call as a line,
which `dialects` reads::

    TOOL say: Good evening.
    TOOL give {"thing": "lamp", "target": "Alice"}
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any, TypedDict

from evennia_ai.history.frames import tool_result
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


def main_arguments(tools: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The argument that may follow a tool's name as plain text, by the name of each tool.

    It is the only required one, or the first where none is required; it is empty for tools that
    need two or take none.
    """
    found = {}
    for tool in tools:
        function = tool.get("function", tool)
        parameters = function.get("parameters") or {}
        required = tuple(parameters.get("required") or ())
        names = required or tuple(parameters.get("properties") or ())[:1]
        found[function["name"]] = names[0] if len(names) == 1 else ""
    return found


def tool_instructions(tools: Sequence[Mapping[str, Any]], brief: bool = False) -> str:
    """What the system prompt says of tools (in the chat format) to a model without tool calling.

    Empty without tools. `brief` is for small models: a line and at most one argument for each.
    """
    functions = [tool.get("function", tool) for tool in tools]
    if not functions:
        return ""
    if brief:
        main = main_arguments(tools)
        lines = "\n".join(_in_brief(function, main.get(function["name"])) for function in functions)
        return (
            "Speaking is what you do nearly always. To act instead, write only one of these "
            f"lines:\n{lines}"
        )
    return (
        "You can use tools. To use one, write a line of its own: TOOL, the tool's name, and its "
        "arguments as a JSON object or, if it is one text, that text behind a colon:\n"
        'TOOL <tool> {"<argument>": <value>}\nTOOL <tool>: <text>\n'
        "You may write several such lines. Then stop: the results come in the next message. "
        "Everything else you write is spoken aloud.\nTools:\n"
        + "\n".join(map(_described, functions))
    )


def _in_brief(function: Mapping[str, Any], main: str | None) -> str:
    """How a tool is called, and what it does."""
    parameters = function.get("parameters") or {}
    is_needed = main in (parameters.get("required") or ())
    argument = f": <{main}>" if is_needed else ""
    says = str(function.get("description") or "").rstrip(".")
    return f"{_KEYWORD} {function['name']}{argument}" + (f" ({says})" if says else "")


def _described(function: Mapping[str, Any]) -> str:
    """A tool as one line: name, arguments (optional ones with ``?``), description."""
    parameters = function.get("parameters") or {}
    arguments = []
    for name, schema in (parameters.get("properties") or {}).items():
        optional = "" if name in (parameters.get("required") or ()) else "?"
        kind = "|".join(map(str, schema.get("enum") or ())) or schema.get("type", "any")
        about = f" = {schema['description']}" if schema.get("description") else ""
        arguments.append(f"{name}{optional}: {kind}{about}")
    listed = ", ".join(arguments)
    return f"- {function['name']}({listed}): {function.get('description', '')}".rstrip(": ")


def write_call(call: Call, main: Mapping[str, str] = MappingProxyType({})) -> str:
    """A stored call as the line that `dialects.read` reads with the same `main_arguments`."""
    function = call.get("function") or {}
    name, arguments = str(function.get("name", "")), str(function.get("arguments") or "{}")
    if not _NAME.fullmatch(name):
        quoted = json.dumps(name, ensure_ascii=False)
        return f'{_KEYWORD} {{"name": {quoted}, "arguments": {arguments}}}'
    given = loaded(arguments)
    if given == {}:
        return f"{_KEYWORD} {name}"
    if isinstance(given, dict) and [*given] == [main.get(name)]:
        [text] = given.values()
        if isinstance(text, str) and _PLAIN.fullmatch(text) and text not in ("null", "None"):
            return f"{_KEYWORD} {name}: {text}"
    return f"{_KEYWORD} {name} {arguments}"


_KEYWORD = "TOOL"
_NAME = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*")
# A text that can stand behind a colon: one line, without what may begin a mark, and with no mark at
# its ends that is not read as text.
_PLAIN = re.compile(
    r"""[^\s"'`:<>(){}\[\]*](?:[^<\r\n\v\f\x1c-\x1e\x85\u2028\u2029]*[^\s"'`:<>(){}\[\]*])?"""
)


def storable_call(call: Call) -> dict[str, Any]:
    """A call whose arguments are the text of a JSON object, as providers want them sent back.

    Unreadable arguments are kept as a text in such an object, at most `ARGUMENT_CHARS` of it.
    """
    function = call.get("function")
    function = dict(function) if isinstance(function, Mapping) else {}
    raw = function.get("arguments")
    text = raw if isinstance(raw, str) else json.dumps(raw if raw is not None else {})
    text = storable_json(text)
    if len(text) > ARGUMENT_CHARS or not isinstance(loaded(text), dict):
        text = json.dumps({"unreadable": text[:ARGUMENT_CHARS]}, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": text}}


def loaded(text: object) -> Any:
    """The value of a JSON text; None if it is not one."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def batches(
    calls: Sequence[Call], ending: Set[str], addressee: Callable[[Call], str | None]
) -> tuple[tuple[Call, ...], ...]:
    """Calls in the batches they are stored and run in; no batch is private to two people.

    Calls of tools that end the turn (`ending`) come last, so that all others are still made.
    `addressee` gives the only person a call is meant for, or None.
    """
    ordered = sorted(calls, key=lambda call: call["function"].get("name") in ending)
    found: list[list[Call]] = []
    current: str | None = None
    for call in ordered:
        person = addressee(call)
        if not found or (person and current and person != current):
            found.append([])
        current = person or current
        found[-1].append(call)
    return tuple(tuple(batch) for batch in found)


def as_text(
    messages: Iterable[Mapping[str, Any]], instructions: str, main: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Messages for a model without tool calling: calls and their results as plain text.

    `instructions` say how tools are called; they follow the system text, which stands first.
    """
    messages = list(messages)
    rules = [m["content"] for m in messages if m["role"] == "system"]
    shown = [{"role": "system", "content": "\n\n".join(filter(None, [*rules, instructions]))}]
    for message in messages:
        if message["role"] == "tool":
            text = tool_result(message["name"], message["content"])
            shown.append({"role": "user", "content": text})
        elif calls := message.get("tool_calls"):
            lines = [message.get("content") or "", *(write_call(call, main) for call in calls)]
            shown.append({"role": "assistant", "content": "\n".join(lines).strip()})
        elif message["role"] != "system":
            shown.append(dict(message))
    return shown
