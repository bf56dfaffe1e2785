"""What a model's text means: its words, and the tool calls it wrote among them. Pure.

Models end turns, think and call tools in marks of their own, and servers pass these on as text.
`read` takes a text apart in this order: channels, thoughts, the end of the turn, calls,
and all other marks. Each form stands in one of the tables below with an example; a new one is a new
line there. What is left is free of marks, whatever the text was made of.

>>> read("<think>Bob greets me.</think>Well met.<|im_end|>").text
'Well met.'
>>> read('[TOOL_CALLS]say[ARGS]{"text": "Well met."}', {"say": "text"}).calls
(('say', '{"text": "Well met."}'),)
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from json_repair import repair_json

# A longer reply is a runaway: its beginning is read.
MOST_CHARS = 100_000
# More calls than this in one reply are a runaway.
MOST_CALLS = 32
# Longer broken JSON is not mended.
REPAIRED_CHARS = 5_000

Tools = Mapping[str, str]
Call = tuple[str, str]


@dataclass(frozen=True)
class Read:
    """A text as it was meant.

    Args:
        text: The words, without thoughts, calls and marks.
        calls: Name and arguments of each call. The arguments are the text of a JSON object, or
            what was written, where that cannot be read.
        thought: Whether there was more than words: a text that held only marks is no answer.
    """

    text: str
    calls: tuple[Call, ...] = ()
    thought: bool = False


def read(text: str, tools: Tools = MappingProxyType({}), reported: bool = False) -> Read:
    """What a text says and calls.

    Args:
        text: As it came from the model.
        tools: The tools it may call, by name, each with the argument that may follow as plain
            text, or an empty one. Without marks around it, only a call of one of these is a call;
            in a report that may call none, any is, as it is no report then.
        reported: Whether the text reports what others said, as summaries do: a player who typed
            ``</think>`` must not erase what stands before, so that quoted marks stay.
    """
    body = text[:MOST_CHARS]
    if not reported:
        body = _of_channels(_named_alike(body, tools))
    body = _without_thoughts(body, reported).strip()
    if not reported:
        body = _own_turn(body)
    calls, rest = _calls(body, tools, reported)
    rest = rest if reported else _undressed(_without_marks(rest))
    return Read(rest.strip(), tuple(calls[:MOST_CALLS]), len(rest) < len(text.strip()))


# Names in marks: with a namespace, as `<minimax:tool_call>`, or one between bars.

_NAMESPACE = re.compile(
    r"(</?)(?:\w{1,20}:|\uff5c\w{1,20}\uff5c)(?=(?:tool_calls?|function_calls|invoke|parameter)\b)"
)
_BARS = re.compile(r"<\uff5c[^<>\n]{0,60}\uff5c>")


def _named_alike(text: str, tools: Tools) -> str:
    """A text whose marks have their plain names; a tool's own tag is a call of it."""
    text = _NAMESPACE.sub(r"\1", text)
    text = _BARS.sub(lambda mark: mark[0].replace("\u2581", "_"), text)
    if tools and "<" in text:
        names = "|".join(map(re.escape, tools))
        text = re.sub(rf"<({names})\s*/>", r"<function=\1></function>", text)
        text = re.sub(
            rf"<({names})>(.{{0,2000}}?)</\1>", r"<function=\1>\2</function>", text, flags=re.S
        )
    return text


# Channels (OpenAI's Harmony): `<|channel|>analysis<|message|>…<|end|>`. Servers that drop the marks
# leave `analysis…assistantfinal…`, or the names on lines of their own.

_CHANNEL = re.compile(
    r"(?:<\|start\|>\s*(?:assistant)?(?P<to>[^<]*))?<\|channel\|>\s*(?P<name>\w+)(?P<header>[^<]*)"
    r"(?:<\|constrain\|>[^<]*)?<\|message\|>"
    r"(?P<body>.*?)(?:<\|(?:end|call|return)\|>|(?=<\|(?:start|channel)\|>)|\Z)",
    re.S,
)
_CHANNELS = r"(?:analysis|commentary|final)"
_NEXT = rf"(?:assistant(?={_CHANNELS})|\n(?={_CHANNELS}[ \t]*\n))"
_BARE_CHANNEL = re.compile(
    rf"(?:\A\s*|{_NEXT})(?P<to>)(?P<name>{_CHANNELS})"
    rf"(?P<header>\s*to=[\w.]+\s*(?:json|code)?)?(?P<body>.*?)(?={_NEXT}|\Z)",
    re.S,
)


def _of_channels(text: str) -> str:
    """A text without the channels that only the model itself reads."""
    is_bare = re.match(r"\s*(?:analysis|commentary)(?=[A-Z\"'*\s]|$)", text)
    if is_bare and re.search(_NEXT, text):
        text = _BARE_CHANNEL.sub(_of_channel, text)
    return _CHANNEL.sub(_of_channel, text).strip()


def _of_channel(found: re.Match[str]) -> str:
    name, body = found["name"], found["body"]
    if called := re.search(r"to=([\w.\-]+)", f"{found['to'] or ''} {found['header'] or ''}"):
        return f"<function={called[1]}>{body}</function>"
    return body if name == "final" else ""


# Thoughts. A group is what closes.

_THOUGHT_WORDS = (
    r"think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad|inner_monologue"
    r"|cot_budget_reflect|details|\u601d\u8003"
)
_THOUGHT = re.compile(
    r"<(/?)(?:\w+:)?(?:" + _THOUGHT_WORDS + r")\b[^<>]*>"  # <think>, <seed:think>
    r"|\[(/?)(?:THINK|THINKING|REASONING)\]"  # Magistral
    r"|\u25c1(/?)think\u25b7"  # Kimi
    r"|<\|(?:(/|end_(?:of_)?)|start_|begin_of_)?(?:" + _THOUGHT_WORDS + r")(?:_(?:start|end))?\|>"
    r"|<\|inner_(?:prefix|(suffix))\|>"  # Apertus
    r"|<\|channel>\s*(?:thought|analysis)\b|<(channel)\|>",  # Gemma
    re.I,
)
_AROUND = 8
_QUOTES = tuple("\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb")


def _without_thoughts(text: str, reported: bool) -> str:
    """Text without thoughts, closed or not.

    A closing mark without an opening one ends a thought that began with the text: some chat
    templates swallow the first. One pass, so that hostile nesting costs no more.
    """
    kept: list[str] = []
    depth, at = 0, 0
    for mark in _THOUGHT.finditer(text):
        closes = any(mark.groups()) or mark[0].lower().endswith("_end|>")
        if reported and not _is_own(mark, at, depth, closes):
            continue
        if not closes:
            kept += [text[at : mark.start()]] if not depth else []
            depth += 1
        elif depth:
            depth -= 1
        else:
            kept.clear()
        at = mark.end()
    return "".join(kept if depth else [*kept, text[at:]])


def _is_own(mark: re.Match[str], begin: int, depth: int, closes: bool) -> bool:
    """Whether a mark in a report is the model's own; the mark before it ends at `begin`.

    An opening one begins the text or a line, or follows another thought; a closing one without an
    opening one is alone on its line.
    """
    before = mark.string[max(begin, mark.start() - _AROUND) : mark.start()].rstrip(" \t")
    after = mark.string[mark.end() : mark.end() + _AROUND].lstrip(" \t")
    if before[-1:] in _QUOTES or after[:1] in _QUOTES:
        return False
    first = not before or before.endswith("\n")
    alone = first and (not after or after.startswith("\n"))
    return bool(depth) or (alone if closes else first)


# The end of a turn, and the header of the next one. What stands behind is another's.

_ROLE = r"(?:system|user|assistant|model|human|tool|ipython)"
_TURN = re.compile(
    r"<\|(?:im_start|start_header_id|header_start|start_of_role|start|turn)\|?>\s*"
    + _ROLE
    + r"?\s*(?:<\|(?:end_(?:header_id|of_role)|header_end)\|>)?"
    r"|<\|(?:im_end|eot_id|eom_id|eot|eom|end|return|endoftext|end_of_text|begin_of_text|eos|bos"
    r"|end_of_turn|START_OF_TURN_TOKEN|END_OF_TURN_TOKEN|(?:USER|CHATBOT|SYSTEM)_TOKEN"
    r"|START_RESPONSE|END_RESPONSE|end_of_role|end_header_id|header_end"
    r"|" + _ROLE + r"(?:_(?:start|end))?)\|>"
    r"|<(?:start|end)_of_turn>\s*" + _ROLE + r"?|<turn\|>"
    r"|\[\|(?:endofturn|" + _ROLE + r")\|\]\s*"  # EXAONE
    r"|\]~!?b[\[\]](?:ai|user|system)?|\[e~\["  # MiniMax
    r"|<\uff5c[^<>|\uff5c]{0,40}(?:sentence|User|Assistant)\s*\uff5c>"
    r"|</?s>|<(?:eos|bos|eot)>|\[/?INST\]|<</?SYS>>|<\[?end_of_text\]?>|\[(?:eot|EOT|end|END)\]"
    r"|^[ \t]*(?:\*{3,}|-{3,}|={3,})[ \t]*$"  # what follows is another scene
    r"|\A(?:assistant|model)[ \t]*\n"
    r"|^###\s*(?:Instruction|Response|Human|User|Assistant):?\s*$",
    re.M,
)


def _own_turn(text: str) -> str:
    """A text up to where its turn ends; headers of it at the beginning are left out."""
    while opening := _TURN.match(text):
        text = text[opening.end() :].lstrip()
    end = _TURN.search(text)
    return text[: end.start()].rstrip() if end else text


# Calls in marks: where one begins, and where it ends. The group `name` is a name in the mark.

_NAME = r"[A-Za-z_](?:[\w.\-]*[\w\-])?"
_MARKED: tuple[tuple[str, str], ...] = (
    # <tool_call>{"name": …}</tool_call>, also with XML or `name` and <arg_key> inside
    (r"<tool_calls?>", r"</tool_calls?>"),
    (r"<function_?calls?>|<FUNCTIONCALL>", r"</function_?calls?>|</FUNCTIONCALL>|\Z"),
    (r"<TOOLCALL>|<tool_use>|<tool_code>", r"</TOOLCALL>|</tool_use>|</tool_code>"),
    (rf"<function=(?P<name>{_NAME})>", r"</function>"),
    (rf"<(?:function|invoke) name=\"?(?P<name>{_NAME})\"?>", r"</(?:function|invoke)>"),
    # [TOOL_CALLS]say[ARGS]{…}, [TOOL_CALLS] [{…}]
    (r"\[TOOL_CALLS?\]", r"(?=\[TOOL_CALLS?\])|\Z"),
    (r"\[TOOL_REQUEST\]", r"\[END_TOOL_REQUEST\]"),
    (r"<\|tool_call_start\|>", r"<\|tool_call_end\|>"),
    # <|tool_call_begin|>functions.say:0<|tool_call_argument_begin|>{…}<|tool_call_end|>
    (r"<\|tool_call_begin\|>", r"<\|tool_call_end\|>"),
    (r"<\|tool_call>", r"<tool_call\|>"),
    (r"<\|tool_call\|>|<\|python_tag\|>|<\|START_ACTION\|>", r"<\|END_ACTION\|>|\Z"),
    (r"<\|python_start\|>|<\|tools_prefix\|>", r"<\|python_end\|>|<\|tools_suffix\|>"),
    (r"<\|action_start\|>(?:\s*<\|\w+\|>)?", r"<\|action_end\|>"),
    (r"<\uff5ctool_call_begin\uff5c>", r"<\uff5ctool_call_end\uff5c>"),
    (r"<start_function_call>", r"<end_function_call>"),
    (r"\bfunctools(?=\[)|<functioncall>", r"\Z"),
    (r"^[ \t]*```(?:tool|tool_call|tool_code)[ \t]*\n", r"^[ \t]*```"),
)
_OPENING = tuple((re.compile(first, re.M), re.compile(last, re.M)) for first, last in _MARKED)
# A line of the text protocol: `TOOL say: Good evening.`, `TOOL give {"thing": "lamp"}`.
_LINE = re.compile(
    rf"^[ \t]*+(?:\*\*)?TOOL\b(?:\*\*)?[ \t]*+(?::[ \t]*+)?(?P<name>{_NAME})?+[ \t]*+"
    r"(?P<mark>[:(]?)[ \t]*+",
    re.M,
)
_OPENERS = re.compile(
    "|".join([_LINE.pattern, *(f"(?:{_[0]})" for _ in _MARKED)])
    .replace("?P<name>", "?:")
    .replace("?P<mark>", "?:"),
    re.M,
)
_REACT = re.compile(
    rf"^[ \t]*Action:[ \t]*(?P<name>{_NAME})[ \t]*\n[ \t]*Action[ _]Input:[ \t]*(?P<body>.*)",
    re.M | re.S | re.I,
)
# Agents that write the action as an object.
_ACTION = re.compile(r"\A\s*(?:Thought:.*?\n)?[ \t]*Action:\s*(?=[{\[`])", re.S)
_FENCE = re.compile(r"\A\s*```[ \t]*\w*[ \t]*\n(?P<body>.*?)\n?[ \t]*(?:```\s*)?\Z", re.S)


def _calls(text: str, tools: Tools, reported: bool) -> tuple[list[Call], str]:
    """The calls in a text without thoughts, and the rest of it."""
    calls: list[Call] = []
    rest, at, unread = list[str](), 0, 0
    for opening in _OPENERS.finditer(text):
        if opening.start() < at:
            continue  # inside the call before
        if unread > MOST_CALLS or len(calls) >= MOST_CALLS:
            break
        if reported and text[: opening.start()].rstrip(" \t")[-1:] not in ("", "\n"):
            continue  # quoted
        made, end = _of_line(text, opening, tools) or _of_marks(text, opening.start(), tools)
        if not end:
            unread += 1
            continue
        rest.append(text[at : opening.start()])
        calls += [repaired(*each, tools) for each in made]
        at = end
    rest.append(text[at:])
    if not calls:
        calls = _unmarked(text, tools, reported and not tools)
        return calls, "" if calls else "".join(rest)
    return calls, "\n".join(filter(str.strip, "".join(rest).split("\n")))


def _of_marks(text: str, start: int, tools: Tools) -> tuple[list[Call], int]:
    """The calls in the marks that begin there, and where they end; 0 if these are no calls."""
    first, last = next(_ for _ in _OPENING if _[0].match(text, start))
    begin = first.match(text, start)
    assert begin is not None
    end = last.search(text, begin.end())
    body = text[begin.end() : end.start() if end else len(text)]
    named = begin.groupdict().get("name")
    made = [(named, _arguments(body))] if named else list(_payload(body, tools))
    return made, (end.end() if end else len(text)) if made or end else 0


def _unmarked(text: str, tools: Tools, any_name: bool) -> list[Call]:
    """Calls of known tools without marks: thought and action, or the whole text."""
    if (found := _REACT.search(text)) and (name := _known(found["name"], tools)) in tools:
        return [(name, _arguments(found["body"]))]
    body = _unfenced(_ACTION.sub("", text))
    made = [repaired(*each, tools) for each in _payload(body, tools)]
    is_call = body not in tools  # a word that is also a tool's name
    if any_name:
        is_call = bool(re.match(rf"[\[{{]|{_NAME}\(", body))
    elif not all(name in tools for name, _ in made):
        is_call = False
    return made if is_call else []


def _of_line(text: str, found: re.Match[str], tools: Tools) -> tuple[list[Call], int] | None:
    """The call of a line of the text protocol, and where it ends; None for marks."""
    line = _LINE.match(text, found.start())
    if not line:
        return None
    name, start = line["name"] or "", line.end()
    if text.startswith("{", start):
        body, length = _object(text[start:])
        source = text[start : start + length]
        made = [(name, body)] if name else list(_payload(source, tools)) or [("", source)]
        return made, start + length
    more = text[start:].split("\n", 1)[0]
    made = list(_with_text(name, more, line["mark"], tools))
    return made, start + len(more) if made else 0


def _with_text(name: str, more: str, mark: str, tools: Tools) -> Iterator[Call]:
    """The call of a line with a name and perhaps a text.

    Without a mark behind the name, the words after it are an argument only of a tool that has one:
    others are prose.
    """
    text = more.strip(" \t\"'`:<>(){}[]*\r")
    is_stop = not mark and not any(map(str.isalnum, text))  # as in `TOOL look.`
    if not name:
        return
    if not text or is_stop:
        yield name, "{}"
    elif tools.get(name):
        yield name, _dumped({tools[name]: text})
    elif mark:
        yield name, text


# What stands in a call: JSON, XML, Python, or a name and arguments.

_XML = re.compile(
    r"<(?:parameter[= ](?:name=)?\"?(?P<key>[\w\-]+)\"?[^<>]*|arg_key>\s*(?P<key2>[\w\-]+)\s*"
    r"</arg_key>\s*<arg_value|(?P<tag>[\w\-]+))>\s*(?P<value>.*?)\s*"
    r"(?:</(?:parameter|arg_value|(?P=tag))>|(?=<parameter)|\Z)",
    re.S,
)
_INNER = re.compile(
    rf"<(?:function=|(?:function|invoke) name=\"?)(?P<name>{_NAME})\"?>"
    rf"|<(?:tool_)?name>\s*(?P<tag>{_NAME})\s*</(?:tool_)?name>"
)
_NAMED = re.compile(
    rf"\s*+(?:function<\uff5ctool_sep\uff5c>|call:)?(?P<name>{_NAME})(?::\d+)?"
    r"(?:\[ARGS\]|<\|tool_call_argument_begin\|>|<\|tool_sep\|>|<\uff5ctool_sep\uff5c>|\s)*+"
    r"(?P<body>[\{\(`<].*|)\s*\Z",
    re.S,
)
# Marks in a call's body that say nothing, and those in which strings stand.
_WRAPPERS = re.compile(r"</?(?:tool_calls?|arguments|parameters|input)>")
_STRING = re.compile(r"(<\|\"\|>|<escape>)(.*?)\1", re.S)
_CALL_KEYS = ("tool_calls", "tool_call", "function_call")
_NAME_KEYS = ("name", "tool", "tool_name", "function", "action", "recipient_name", "type")
_ARGUMENT_KEYS = (
    "arguments",
    "parameters",
    "args",
    "input",
    "action_input",
    "tool_input",
    "params",
    "kwargs",
)


def _payload(body: str, tools: Tools) -> Iterator[Call]:
    """The calls that stand in a text as such."""
    body = _STRING.sub(lambda found: _dumped(found[2]), _WRAPPERS.sub("", body))
    body = _unfenced(body).removeprefix("TOOL ")
    if inner := list(_INNER.finditer(body)):
        ends = [*(each.start() for each in inner[1:]), len(body)]
        for each, end in zip(inner, ends, strict=True):
            yield each["name"] or each["tag"], _arguments(_closed(body[each.end() : end]))
    elif body[:1] in ("{", "[") and (made := list(_of_values(_loaded(body), tools))):
        yield from made
    elif body.startswith("[") or (body.endswith(")") and "(" in body):
        yield from _python(body, tools)
    elif (found := _NAMED.match(body)) and (found["body"] or found["name"] in tools):
        yield found["name"], _arguments(found["body"])


def _closed(body: str) -> str:
    return re.split(r"</(?:function|invoke)>", body)[0]


def _unfenced(text: str) -> str:
    """A text without a fence around it."""
    fenced = _FENCE.match(text)
    return (fenced["body"] if fenced else text).strip()


def _of_values(value: object, tools: Tools) -> Iterator[Call]:
    """Calls as JSON values, in the forms of APIs and of agents."""
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, Mapping):
            continue
        if isinstance(inner := next(filter(None, map(item.get, _CALL_KEYS)), None), list | Mapping):
            yield from _of_values(inner, tools)
            continue
        if isinstance(inner := item.get("function"), Mapping):
            item = inner
        [(only, value), *more] = item.items() or [("", None)]
        if not more and isinstance(value, Mapping) and _known(str(only), tools) in tools:
            yield str(only), _dumped(value)  # {"say": {"text": …}}
            continue
        key = next((k for k in _NAME_KEYS if isinstance(item.get(k), str)), None)
        given = next((k for k in _ARGUMENT_KEYS if k in item), None)
        if key is None:
            continue
        name = str(item[key])
        if given is not None:
            yield name, _dumped({} if item[given] is None else item[given])
        elif item.keys() == {"name"}:
            yield name, "{}"
        elif key != "type" and _known(name, tools) in tools:  # {"action": "say", "text": …}
            yield name, _dumped({k: v for k, v in item.items() if k != key})


def _python(body: str, tools: Tools) -> Iterator[Call]:
    """Calls written as Python: ``[say(text="Well met.")]``, ``print(default_api.say("Hi."))``."""
    try:
        tree = ast.parse(body.rstrip("; \n"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in tree.elts if isinstance(tree, ast.List) else [tree]:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print" and node.args:
            node = node.args[0]
        if not isinstance(node, ast.Call):
            continue
        try:
            name = ast.unparse(node.func)
            given = ast.literal_eval(node.args[0]) if node.args else {}
            if not isinstance(given, dict):
                given = {tools[_known(name, tools)]: given}
            given |= {each.arg: ast.literal_eval(each.value) for each in node.keywords if each.arg}
            if "" not in given:
                yield name, _dumped(given)
        except (KeyError, ValueError, TypeError, SyntaxError, RecursionError):
            continue


def _arguments(body: str) -> str:
    """The arguments of a call whose name is known, as a JSON text where they can be read."""
    body = _unfenced(_WRAPPERS.sub("", body))
    if body.startswith("<") and (pairs := list(_XML.finditer(body))):
        return _dumped(
            {each["key"] or each["key2"] or each["tag"]: each["value"] for each in pairs}
        )
    if body.startswith("(") and (made := list(_python(f"f{body}", {}))):
        return made[0][1]
    if not body:
        return "{}"
    return _object(body)[0] if body.startswith("{") else body


def _object(text: str) -> tuple[str, int]:
    """A JSON object at the beginning of a text, mended if need be, and how much of the text it is.

    Where it cannot be read: its line, as it is written.
    """
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text)
        return _dumped(value), end
    except (ValueError, RecursionError):
        line = text.split("\n", 1)[0]
        value = _loaded(line)
        return (_dumped(value) if isinstance(value, dict) and value else line), len(line)


def _loaded(text: str) -> Any:
    """A JSON value, mended if need be; None if there is none."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        pass
    if len(text) > REPAIRED_CHARS:
        return None
    try:
        return repair_json(text, return_objects=True, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def folded(name: str) -> str:
    """What makes a tool's name: its letters and digits, without a namespace before them."""
    bare = re.split(r"[./:]", name.strip())[-1] or name
    return re.sub(r"[^a-z0-9]", "", bare.lower())


def _known(name: str, tools: Tools) -> str:
    """The tool that a name means, also miscased, prefixed or written with other signs."""
    if name in tools:
        return name
    meant = folded(name)
    return next((each for each in tools if folded(each) == meant), name)


def repaired(name: str, arguments: str, tools: Tools) -> Call:
    """A provider's own call, with a known name, and with arguments that are one JSON object.

    A fence around them, or a second round of quotes, is taken off; what cannot be read stays.
    """
    value: object = arguments
    for _ in range(3):
        body = _unfenced(value) if isinstance(value, str) else ""
        loaded = _loaded(body) if body[:1] in ("{", '"') else None
        if loaded is None or loaded == "":
            break
        value = loaded
    is_read = isinstance(value, dict) and (value or arguments.strip() == "{}")
    return _known(name, tools), _dumped(value) if is_read else arguments.strip() or "{}"


# All other marks: whatever looks like one goes.

_MARKS = re.compile(
    r"<\|[^<>|\n]{0,60}\|?>|<\w{1,40}\|>|\[\|\w{1,40}\|\]|<\uff5c[^<>\n]{0,60}\uff5c>|\|>|<\|"
    r"|</[A-Za-z][^<>\n]{0,40}>|\[/[A-Za-z][\w ]{0,30}\]"
    r"|<(?:answer|response|reply|message|dialogue|speech|end|stop|final|output|tool_calls?"
    r"|tool_response|tool_code|tool_use|function(?:=[^<>]*)?|invoke|parameter|arg_key|arg_value"
    r"|(?:start|end)_of_turn|s|eos|bos|pad|unk|unused\d+|0x[0-9A-Fa-f]{2})(?:[ =][^<>\n]*)?>"
    r"|<\w+:(?:think|tool_call)>|\[INST\]|<</?SYS>>"
    r"|\[(?:TOOL_CALLS?|ARGS|TOOL_RESULTS?|END_TOOL_REQUEST|TOOL_REQUEST|THINK)\]"
    r"|[\u25c1\u25b7\u2581\uff5c]",
    re.I,
)


def _without_marks(text: str) -> str:
    """A text without marks, also such as are made by taking out others."""
    while (shorter := _MARKS.sub("", _THOUGHT.sub("", text))) != text:
        text = shorter
    return text


# What models put round their words, in this order.

_ROUND = tuple(
    (re.compile(pattern, re.I | re.M), instead)
    for pattern, instead in (
        (r"\\n", "\n"),
        (r"^\[Result of [^\]\n]+\][^\n]*\n?", ""),
        # Thought: … Final Answer: …
        (
            r"\A\s*(?s:\**(?:thoughts?|thinking|reasoning|analysis)\b\W.*?^)?"
            r"[*#]{0,3}[ \t]?(?:final )?(?:answer|response|reply)(?:\**:\**[ \t]*|\**[ \t]*\n)",
            "",
        ),
        # Sure! Here is Aria's response: …
        (
            r"\A\s*(?:(?:sure|certainly|of course|okay|ok|absolutely)\b[!,.]*\s*)?"
            r"(?:here(?:['\u2019]s| is| are)|this is)\b[^\n:]{0,60}"
            r"\b(?:response|reply|answer|line|dialogue)\b[^\n:]{0,30}:\s*",
            "",
        ),
        # As Aria, I would say: …
        (
            r"\A\s*as [\w' -]{1,40}, i(?:'d| would| might| will) (?:say|respond|reply|answer)"
            r"[^\n:]{0,30}:\s*",
            "",
        ),
        (r"\A(?:\W*(?:scene|setting)\W*:[^\n]*\n\s*)+", ""),
        # (Thinking: …), [Internal monologue: …]
        (
            r"[(\[~*]{1,3}\s?(?:(?:internal|inner) (?:monologue|thoughts?)|think(?:s|ing)"
            r"|thoughts?)\b[^()\[\]~*\n]{0,300}[)\]~*]{1,3}[ \t]*\n?",
            "",
        ),
        (r"\A\s*\[\d\d?:\d\d(?::\d\d)?(?: ?[ap]m)?\]\s*", ""),
        (r"\A\s*(?:\{\{char\}\}|ai|bot|npc)\s*:\s*", ""),
        (r",?[ \t]?\{\{\w{1,20}\}\}", ""),
        # say Well met.  /me bows.  :bows
        (r"\A\s*(?-i:say)[ :]+(?=(?-i:[\"\u201cA-Z]))", ""),
        (r"\A\s*(?:/(?:me|em|emote|pose)|(?-i:emote|pose))\s+([^\n.!?]{2,120})[.\n]?", r"*\1* "),
        (r"\A\s*:((?-i:[a-z])[^\n]{2,120})$", r"*\1*"),
    )
)
_SPOKEN_KEYS = (
    *("response", "reply", "say", "speech", "dialogue", "text", "message"),
    *("content", "answer", "output"),
)


def _undressed(text: str) -> str:
    """The words of a text, also such as stand in an object of JSON."""
    body = _unfenced(text)
    value = _loaded(body) if body.startswith("{") and body.endswith("}") else None
    if isinstance(value, dict):
        texts = (value[key] for key in _SPOKEN_KEYS if isinstance(value.get(key), str))
        text = str(next(texts, text))
    for pattern, instead in _ROUND:
        text = pattern.sub(instead, text)
    return text
