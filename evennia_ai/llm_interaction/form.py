"""Words and tool calls as one JSON object, for models without working tool calling of their own.

The request asks for the object by a JSON schema and names the tools in the system text. The call in
the reply is judged like a native one.

>>> read_form('{"say": "Here.", "pose": null, "call": {"name": "look", "arguments": {}}}')
Read(text='Here.', calls=(('look', '{}'),), thought=False)
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from evennia_ai.history.stored import as_dict, as_dicts, as_text
from evennia_ai.llm_interaction.dialects import Read, Tools, repaired
from evennia_ai.llm_interaction.tool_calls import loaded

FIELDS = ("say", "pose", "call")
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


def read_form(text: str, tools: Tools = ()) -> Read | None:
    """What an object says and calls, a pose in stars before the words; None for another text.

    `tools` are the names of those that it may call.
    """
    value = loaded(text)
    if not isinstance(value, dict) or not value.keys() <= {*FIELDS}:
        return None
    said, pose = as_text(value.get("say")), as_text(value.get("pose"))
    if pose := " ".join(pose.replace("*", " ").split()):
        said = "\n".join(filter(None, (f"*{pose}*", said)))
    made = value.get("call")
    calls = as_dicts(made) or as_dicts([made])
    return Read(
        said,
        tuple(
            repaired(str(call["name"]), json.dumps(call.get("arguments") or {}), tools)
            for call in calls
            if call.get("name")
        ),
    )


def _object(**properties: Any) -> dict[str, Any]:
    names = [*properties]
    return {
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": False,
    }
