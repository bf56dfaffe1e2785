"""The tool calls of a reply: written as text, read from text, made storable, put in batches.

Models without tool calling get the tools described in their prompt, and write a call as a line::

    TOOL {"name": "say", "arguments": {"text": "Good evening."}}
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, TypedDict

from evennia_ai.llm_interaction.reply import CLEANED_CHARS, strip_thoughts

# More calls than this in one reply are a runaway.
MOST_CALLS = 32
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


def tool_instructions(tools: Iterable[Mapping[str, Any]]) -> str:
    """What the system prompt says of tools (in the chat format) to a model without tool calling.

    Empty without tools.
    """
    listed = "\n".join(_described(tool.get("function", tool)) for tool in tools)
    if not listed:
        return ""
    return (
        "You can use tools. To use one, write a line of its own that starts with TOOL, followed "
        "by a JSON object on the same line:\n"
        'TOOL {"name": "<tool>", "arguments": {"<argument>": <value>}}\n'
        "You may write several such lines. Then stop: the results come in the next message. "
        "Everything else you write is spoken aloud.\nTools:\n" + listed
    )


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


def write_call(call: Call) -> str:
    """A stored call as the line that `read_calls` reads."""
    function = call.get("function") or {}
    name = json.dumps(function.get("name", ""), ensure_ascii=False)
    return f'TOOL {{"name": {name}, "arguments": {function.get("arguments") or "{}"}}}'


def read_calls(text: str, make_id: Callable[[], str]) -> tuple[tuple[ChatToolCall, ...], str]:
    """The tool calls written in a text, and the text without them.

    A call is ``TOOL {...}`` at the start of a line (the object may run over several lines), or
    the same object in a fence marked ``tool`` or in ``<tool_call>`` tags. Calls inside thoughts
    do not count. A call that is broken keeps its own text as arguments, so that the executor
    reports it as it reports a provider's bad arguments. `make_id` gives each call its id.
    """
    found, rest = _calls_in(strip_thoughts(text))
    return tuple(tool_call(make_id(), name, arguments) for name, arguments in found), rest


# Possessive, so that a long run of blanks is gone through once.
_CALL_LINE = re.compile(r"^[ \t]*+(?:\*\*)?TOOL(?:\*\*)?[ \t]*+(?::[ \t]*+)?(?=\{)", re.M)
_CALL_FENCE = re.compile(
    r"^[ \t]*```(?:tool|tool_call|tool_code)[ \t]*\n(.*?)(?:^[ \t]*```|\Z)", re.M | re.S
)
_CALL_TAG = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.S)
_CALL_MARKS = ("TOOL", "```tool", "<tool_call>")


def _calls_in(body: str) -> tuple[list[tuple[str, str]], str]:
    """Name and arguments of each call in a text without thoughts, and the rest of the text."""
    if not any(mark in body for mark in _CALL_MARKS):
        return [], body
    marked = [*_CALL_FENCE.finditer(body), *_CALL_TAG.finditer(body)][:MOST_CALLS]
    found = [(match.start(), match.end(), match.group(1)) for match in marked]
    for match in _CALL_LINE.finditer(body):
        if len(found) >= MOST_CALLS:
            break
        if not any(start <= match.start() < end for start, end, _ in found):
            end = _object_end(body, match.end())
            found.append((match.start(), end, body[match.end() : end]))
    found.sort()
    kept, at = [], 0
    for start, end, _ in found:
        kept.append(body[at:start])
        at = max(at, end)
    lines = "".join([*kept, body[at:]]).split("\n")
    rest = "\n".join(line for line in lines if line.strip()).strip()
    return [_read_call(source) for _, _, source in found], rest


def _object_end(text: str, start: int) -> int:
    """Where a JSON object ends; where it is broken, the end of its line."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        line_end = text.find("\n", start)
        return len(text) if line_end < 0 else line_end


def _read_call(source: str) -> tuple[str, str]:
    """A call's name, empty if it has none, and its arguments; those of a broken call as written."""
    source = re.sub(r"^TOOL\s*:?\s*", "", source.strip())
    try:
        value = json.loads(source, strict=False)
    except (ValueError, RecursionError):
        found = re.search(r'"name"\s*:\s*"([^"\n]*)"', source)
        return (found.group(1) if found else ""), source
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return "", source
    arguments = value.get("arguments", value.get("parameters"))
    return value["name"], json.dumps({} if arguments is None else arguments, ensure_ascii=False)


_OTHER_TAGS = re.compile(
    r"^[ \t]*+(?:<\|?(?:tool_calls?|function_calls?|function=|invoke\b|tool_use|python_tag|"
    r"tool_code)|\[TOOL_CALLS?\]|<?\uff5c?(?:tool)?\u2581calls\u2581|<\uff5ctool)",
    re.I | re.M,
)
_PYTHON_CALL = re.compile(
    r"^[A-Za-z_][\w.]*\((?:\s*[A-Za-z_]\w*\s*=.*|\s*\{.*\}\s*|)\)\s*;?$", re.S
)
_CALL_KEYS = (
    {"name", "arguments"},
    {"name", "parameters"},
    {"tool", "args"},
    {"function"},
    {"tool_calls"},
    {"tool_call"},
    {"function_call"},
    {"action", "action_input"},
)


def looks_like_tool_call(text: str) -> bool:
    """Whether a text is a tool call written out, in any of the usual forms, not prose.

    Prose may quote a call that somebody made. So a call must begin a line, and a readable one
    must make up most of the text.
    """
    head = strip_thoughts(text, reported=True)[:CLEANED_CHARS]
    fenced = re.match(r"^\s*```\w*\s*\n(.*?)\n?\s*```\s*$", head, re.S)
    body = (fenced.group(1) if fenced else head).strip()
    calls, rest = _calls_in(head)
    if _OTHER_TAGS.search(body) or (calls and len(rest) < len(head) / 2):
        return True
    return bool(_PYTHON_CALL.match(body)) or _is_call_value(_loaded(body))


def _is_call_value(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_is_call_value(item) for item in value)
    return isinstance(value, dict) and any(keys <= value.keys() for keys in _CALL_KEYS)


def bounded(calls: Sequence[Call]) -> tuple[tuple[Call, ...], int]:
    """The first `MOST_CALLS` calls of a reply, and how many were left out."""
    return tuple(calls[:MOST_CALLS]), max(0, len(calls) - MOST_CALLS)


def storable_call(call: Call) -> dict[str, Any]:
    """A call whose arguments are the text of a JSON object, as providers want them sent back.

    Unreadable arguments are kept as a text in such an object, at most `ARGUMENT_CHARS` of it.
    """
    function = call.get("function")
    function = dict(function) if isinstance(function, Mapping) else {}
    raw = function.get("arguments")
    text = raw if isinstance(raw, str) else json.dumps(raw if raw is not None else {})
    if len(text) > ARGUMENT_CHARS or not isinstance(_loaded(text), dict):
        text = json.dumps({"unreadable": text[:ARGUMENT_CHARS]}, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": text}}


def _loaded(text: str) -> object:
    """The value of a JSON text; None if it is not one."""
    try:
        return json.loads(text)
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
