"""The tool calls of a reply: written as text, read from text, made storable, put in batches.

Models without tool calling get the tools described in their prompt, and write a call as a line::

    TOOL say: Good evening.
    TOOL give {"thing": "lamp", "target": "Alice"}
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from heapq import merge
from types import MappingProxyType
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


def main_arguments(tools: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The argument that may follow a tool's name as plain text, by the name of the tool.

    It is the only required one, or the first where none is required; tools that need two have none.
    """
    found = {}
    for tool in tools:
        function = tool.get("function", tool)
        parameters = function.get("parameters") or {}
        required = tuple(parameters.get("required") or ())
        names = required or tuple(parameters.get("properties") or ())[:1]
        if len(names) == 1:
            found[function["name"]] = names[0]
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
    """A stored call as the line that `read_calls` reads with the same `main_arguments`."""
    function = call.get("function") or {}
    name, arguments = str(function.get("name", "")), str(function.get("arguments") or "{}")
    if not _NAME.fullmatch(name):
        quoted = json.dumps(name, ensure_ascii=False)
        return f'{_KEYWORD} {{"name": {quoted}, "arguments": {arguments}}}'
    given = _loaded(arguments)
    if given == {}:
        return f"{_KEYWORD} {name}"
    if isinstance(given, dict) and [*given] == [main.get(name)]:
        [text] = given.values()
        if isinstance(text, str) and _PLAIN.fullmatch(text):
            return f"{_KEYWORD} {name}: {text}"
    return f"{_KEYWORD} {name} {arguments}"


def read_calls(
    text: str, make_id: Callable[[], str], main: Mapping[str, str] = MappingProxyType({})
) -> tuple[tuple[ChatToolCall, ...], str]:
    """The tool calls written in a text, and the text without them.

    A call is a line ``TOOL name``, ``TOOL name: text`` (the text is the argument that `main` has
    for the tool) or ``TOOL name {...}`` with its arguments (the object may run over several lines).
    Also read are ``TOOL {"name": ..., "arguments": ...}`` and the same object in a fence marked
    ``tool`` or in ``<tool_call>`` tags. Calls inside thoughts do not count. A call that is broken
    keeps its own text as arguments, so that the executor reports it as it reports a provider's bad
    arguments. `make_id` gives each call its id.
    """
    found, rest = _calls_in(strip_thoughts(text), main)
    return tuple(tool_call(make_id(), name, arguments) for name, arguments in found), rest


_KEYWORD = "TOOL"
_NAME = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*")
# A text that can stand behind a colon: one line, with no mark at its ends that is not read as text.
_PLAIN = re.compile(
    r"""[^\s"'`:<>(){}\[\]*](?:[^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]*[^\s"'`:<>(){}\[\]*])?"""
)
# Possessive, so that a long run of blanks is gone through once.
_CALL_LINE = re.compile(
    r"^[ \t]*+(?:\*\*)?TOOL\b(?:\*\*)?[ \t]{0,20}+(?::[ \t]*+)?"
    r"(?:(?=\{)|(?P<name>[A-Za-z_][\w-]*+(?:\.[\w-]++)*+)[ \t]*+"
    r"(?:(?=\{)|(?P<mark>[:(])[ \t]*+(?:(?=\{)|(?P<text>.*))|(?P<more>.*)))",
    re.M,
)
_CALL_FENCE = re.compile(
    r"^[ \t]*```(?:tool|tool_call|tool_code)[ \t]*\n(.*?)(?:^[ \t]*```|\Z)", re.M | re.S
)
_CALL_TAG = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.S)
_CALL_MARKS = ("TOOL", "```tool", "<tool_call>")


def _calls_in(
    body: str, main: Mapping[str, str] = MappingProxyType({})
) -> tuple[list[tuple[str, str]], str]:
    """Name and arguments of each call in a text without thoughts, and the rest of the text."""
    if not any(mark in body for mark in _CALL_MARKS):
        return [], body
    marked = [*_CALL_FENCE.finditer(body), *_CALL_TAG.finditer(body)][:MOST_CALLS]
    marked.sort(key=re.Match.start)
    calls: list[tuple[str, str]] = []
    kept, at = list[str](), 0
    for match in merge(marked, _CALL_LINE.finditer(body), key=re.Match.start):
        if len(calls) >= MOST_CALLS:
            break
        if match.start() < at:
            continue  # quoted in the call before
        end = match.end()
        if match.re is not _CALL_LINE:
            call = _read_call(match.group(1))
        elif named := _named_call(match, main):
            call = named
        elif match["more"] is None:
            end = _object_end(body, match.end())
            source = body[match.end() : end]
            call = (match["name"], _object(source)) if match["name"] else _read_call(source)
        else:
            continue
        calls.append(call)
        kept.append(body[at : match.start()])
        at = end
    lines = "".join([*kept, body[at:]]).split("\n")
    rest = "\n".join(line for line in lines if line.strip()).strip()
    return calls, rest


def _named_call(match: re.Match[str], main: Mapping[str, str]) -> tuple[str, str] | None:
    """The call of a line with a tool's name and perhaps a text; None if it is none, or an object.

    Without a mark behind the name, the words after it are an argument only of a tool that has one:
    others are prose.
    """
    name, more = match["name"], match["more"]
    if name is None or (match["text"] is None and more is None):
        return None
    text = (match["text"] if more is None else more).strip(" \t\"'`:<>(){}[]*\r")
    is_stop = not match["mark"] and not any(map(str.isalnum, text))  # as in `TOOL look.`
    if not text or is_stop:
        return name, "{}"
    if name in main:
        return name, json.dumps({main[name]: text}, ensure_ascii=False)
    return (name, text) if match["mark"] else None


def _object(source: str) -> str:
    """The arguments of a call as JSON text, as they are written where they cannot be read."""
    try:
        return json.dumps(json.loads(source, strict=False), ensure_ascii=False)
    except (ValueError, RecursionError):
        return source


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
