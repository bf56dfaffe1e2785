"""Words and tool calls as one JSON object, for models without working tool calling of their own.

The request asks for the object by a JSON schema and names the tools in the system text. The call in
the reply, which `dialects` reads, is judged like a native one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from evennia_ai.history.stored import as_dict

_RULE = """Answer with a JSON object: "say" is what you say aloud, "pose" what you do, in the \
third person and without your name, "call" a tool to call; each is null where there is none. The \
tools are:"""
_TEXT = {"type": ["string", "null"]}

Tool = Mapping[str, Any]


def form_format(tools: Sequence[Tool], takes_many: bool) -> dict[str, Any]:
    """The field `response_format` that asks for the object.

    `takes_many` is whether it may make several calls: in a job that nobody hears.
    """
    functions = [as_dict(tool.get("function")) for tool in tools]
    calls = [_object(name={"enum": [f["name"]]}, arguments=f["parameters"]) for f in functions]
    call: dict[str, Any] = {"anyOf": [{"type": "null"}, *calls]}
    if takes_many:
        call = {"type": "array", "items": {"anyOf": calls}}
    schema = _object(say=_TEXT, pose=_TEXT, call=call)
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def form_rule(tools: Sequence[Tool]) -> str:
    """What the system text says of the object: its fields, and a line for each tool."""
    lines = [_RULE]
    for tool in tools:
        function = as_dict(tool.get("function"))
        names = ", ".join(as_dict(as_dict(function.get("parameters")).get("properties")))
        lines.append(f"- {function['name']}({names}): {function.get('description', '')}")
    return "\n".join(lines)


def _object(**properties: Any) -> dict[str, Any]:
    names = [*properties]
    return {
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": False,
    }
