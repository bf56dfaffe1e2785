"""What a model's text means: its words, and the tool calls it wrote among them. Pure.

Models end turns, think and call tools in marks of their own, and servers pass these on as text.
`read` takes a text apart in this order: channels, thoughts, the end of the turn, calls,
and all other marks. Each form stands in one of the tables below with an example; a new one is a new
line there. What is left is free of marks, whatever the text was made of.

>>> read("<think>Bob greets me.</think>Well met.<|im_end|>").text
'Well met.'
>>> read('[TOOL_CALLS]say[ARGS]{"text": "Well met."}', {"say"}).calls
(('say', '{"text": "Well met."}'),)
"""

import ast
import html
import itertools
import json
import re
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import regex
from json_repair import repair_json

from evennia_ai.history.stored import as_dicts, as_text

# A longer reply is a runaway: its beginning is read.
MOST_CHARS = 100_000
# More calls than this in one reply are a runaway.
MOST_CALLS = 32
# Longer or deeper broken JSON is not mended.
REPAIRED_CHARS = 5_000
MOST_OPENED = 500
# Words in an object stand no deeper.
MOST_DEPTH = 9

Tools = Collection[str]
Call = tuple[str, str]


@dataclass(frozen=True)
class Read:
    """A text as it was meant."""

    text: str  # the words, without thoughts, calls and marks
    # Name and arguments of each call. The arguments are the text of a JSON object, or what was
    # written, where that cannot be read.
    calls: tuple[Call, ...] = ()


def read(text: str, tools: Tools = (), reported: bool = False) -> Read:
    """What a text says and calls.

    Args:
        text: As it came from the model.
        tools: The names of the tools it may call. A call without marks is one only as the whole
            text, and of one of these.
        reported: Whether the text reports what others said, as summaries do: a player who typed
            ``</think>`` must not erase what stands before, so that quoted marks stay.
    """
    body, calls = text[:MOST_CHARS].replace("\r\n", "\n").strip(_BLANKS), list[Call]()
    if form := _form(body):
        body, calls = form.text, _all_repaired(form.calls, tools)
    if reported:
        rest = _REPORTED_THOUGHT.sub("", body).strip()
        if begun := _BEGUN.search(rest):
            calls += _marked(rest[begun.start() :], tools)[0]
        if not tools and rest.startswith(("{", "[")):  # a call is no report
            tools = {name for name, _ in _payload(rest, ())}
        calls = calls or _whole(rest, tools)
        if calls:
            rest = ""
    else:
        for pattern, instead in _ALIKE:
            body = pattern.sub(instead, body)
        body = _BARS.sub(lambda m: m[0].replace("\u2581", "_").replace("\uff5c", "|"), body)
        body, unclosed = _without_thoughts(_of_channels(body, tools))
        # Headers of its own turn are left out, and what stands behind the turn's end.
        body = _TURN.split(_HEADERS.sub("", body, 1), 1)[0]
        made, rest = _marked(body, tools)
        if not made and (made := _whole(_without_marks(body), tools)):
            rest = ""
        if made and _LABEL.fullmatch(rest):
            rest = ""
        # A model that calls a tool in mid-thought closes only the call.
        calls += made or _marked(unclosed, tools)[0]
        rest = _without_marks(rest).strip()
        if re.match(r"(?:```\w*\s*)?(?:\{\s*\"|\[\s*\{)", rest):  # words in an object of JSON
            rest = _spoken(_loaded(_unfenced(rest))).strip() or rest
    return Read(rest, tuple(calls[:MOST_CALLS]))


def replacements(*rows: str | tuple[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns, and what stands instead of what they find: nothing where no text is given."""
    made = []
    for row in rows:
        if isinstance(row, str):
            row = (row, "")
        made.append((re.compile(row[0], re.I | re.M), row[1]))
    return tuple(made)


# Around a reply, some of them with no width.
_BLANKS = " \t\r\n\ufeff\u200b\u2060"

# Marks by one name each: signs for angles, bars and blanks, namespaces, attributes, letters' case.

_ALIKE = replacements(
    # a mark at the end of a reply that had become too long
    r"(?-i:(?:<[/|\uff5c]|(?<!\w)<)"
    r"(?:[a-z_\u2581][\w|:.\-\u2581\uff5c]{0,40}(?:\s+\w*(?:=[^<>]{0,60})?)?)?"
    r"|\[/?(?:TOOL[A-Z_]{0,20}|THINK|INST|tool_?\w{0,20}))\Z",
    # a thought in a fence, or as a terminal shows it, and the switch of one
    r"\A(?s:```(?:think(?:ing)?|thoughts?|reasoning)\n.{0,5000}?\n```"
    r"|thinking\.{3}\n.{0,5000}?\n\.{3}\s?done thinking\.?)\s*",
    r"(?<!\S)/(?:no_?)?think\b[ \t]*",
    r"\A#{1,4} (?:thinking|thoughts?|reasoning|analysis)\b(?s:.{0,5000}?)\n(?=#{1,4} )",
    # words of a story, too, which are thoughts only in a pair
    r"\A<(internal|plan|planning|details|deliberation|inner_\w{1,20})\b[^<>]*>(?s:.{0,5000}?)</\1>",
    (r"(?:&lt;|\uff1c)(/?[\w|][\w|:=\"' ]{0,40})(?:&gt;|\uff1e)", r"<\1>"),
    (r"<\s?\|\s?(\w{1,40})\s?\|\s?>", r"<|\1|>"),
    r"\]<\]\w{1,20}\[>\[|<\|from\|>\s*\w{1,60}\s*",
    r"\[((?!TOOL_(?:CALL|REQUEST)|FUNCTION)[A-Z]{1,20}_[A-Z_]{1,20})\][^\n]{0,300}?\[/\1\]",
    (r"<\|open\|>(\w{1,20})([^<>|\n]{0,99})<\|sep\|>", r"<\1\2>"),
    (r"<\|close\|>(\w{1,20})<\|sep\|>", r"</\1>"),
    (
        r"(</?)(?:\w{1,20}:|([\uff5c|])\w{1,20}\2)"
        r"(?=(?:tool_calls?|function_calls?|invoke|parameter)\b)",
        r"\1",
    ),
    (r"<(/?)(?:[a-z]{1,20}_)?tool_?call(s?)>", r"<\1tool_call\2>"),
    (r"<function=([\w.\-]{1,60})(?=\s*<param)", r"<function=\1>"),
    (r"<(/?)[a-z]{1,20}_(arg_(?:key|value))>", r"<\1\2>"),
    (
        r"<(?:tool|tool_call|function|function_call|call|action)(?:=| (?:name|tool"
        r"|type)=)[\"']?([\w.\-]{1,60})[\"']?"
        r"(?: index=[^<>\n]{0,9})?>",
        r"<function=\1>",
    ),
    (r"<tool_call (?:id|index)=[^<>\n]{0,60}>", "<tool_call>"),
    (r"\[TOOL_CALLS?\]", "[TOOL_CALLS]"),
    r"^(?:>>>|<\|recipient\|>\s*)all\s*(?:<\|content\|>)?",
    (r"^(?:>>>|<\|recipient\|>\s*)([\w.]{1,60})\s*(?:<\|content\|>|\n)", r"<function=\1>"),
)
_BARS = re.compile(r"<[|\uff5c][^<>\n]{0,60}[|\uff5c]>")


# Forms that are calls only with the name of a tool in them: its own tag, and a text that ends with
# an action as ReAct has it.
_OF_TOOLS = (
    r"<(?P<name>{names})>(?P<body>.{{0,2000}}?)</(?P=name)>",
    r"\A(?:.*\n)??[*_]*Action[*_]*:[*_ \t]*(?P<name>{names})[*_ \t]*\n\s*[*_]*Action Input[*_]*:"
    r"[*_ \t]*(?P<body>.*?)(?:\nObservation\b.*)?\Z",
)


# Channels (OpenAI's Harmony): `<|start|>assistant<|channel|>analysis<|message|>…<|end|>`. Models
# garble the headers; servers that drop the marks leave `analysis…assistantfinal…`, or the names on
# lines of their own.

_CHANNELS = r"(?:analysis|commentary|final)"
_HEADER = re.compile(
    r"(?:<\|start\|>[^<]{0,80}|assistant)?"
    r"(?:(?:<\|channel\|?>[^<]{0,200}(?:<\|constrain\|>[^<]{0,80})?){1,4}<\|message\|>"
    rf"|<\|channel\|?>\s*(?:{_CHANNELS}|(?!to=)\w+|)"
    r"(?:[ \t]*to=[\w.]+?(?=\s|<|(?:json|code)?\s*\{|\Z))?(?:[ \t]*:)?)"
)
_ENDED = re.compile(r"<\|(?:end|call|return)\|>|<channel\|>")
_CHANNEL = re.compile(
    f"(?P<header>{_HEADER.pattern})(?P<body>.*?)"
    rf"(?:{_ENDED.pattern}|(?={_HEADER.pattern})|\Z)",
    re.S,
)
# A text whose marks were dropped, and where a channel of it begins.
_BARE = re.compile(
    rf"\A(?:{_CHANNELS}[ \t]*\n|(?:{_CHANNELS}\s+)?to=(?P<to>[\w.\-]+))|assistant{_CHANNELS}"
)
_BEGINS = re.compile(
    rf"(?:\A|(?<=\|>)\s*)(?={_CHANNELS}|to=)|assistant(?={_CHANNELS})|\n(?={_CHANNELS}[ \t]*\n)"
)
# What stands before the first header, which was cut off.
_HEADLESS = re.compile(
    rf"\A(?:(?!{_HEADER.pattern}).)*(?:{_ENDED.pattern})\s*(?={_HEADER.pattern})", re.S
)
_EVERYBODY = ("assistant", "user", "all")


def _of_channels(text: str, tools: Tools) -> str:
    """A text without the channels that only the model itself reads."""
    text = text.strip()
    if "<|channel" not in text and (bare := _BARE.search(text)):
        if bare["to"] and bare["to"] not in _EVERYBODY and not _called(bare[0], tools):
            return text
        text = _BEGINS.sub("<|end|><|channel|>", text)

    def spoken(channel: re.Match[str]) -> str:
        if called := _called(channel["header"], tools):
            return f"<function={called[-1]}>{channel['body']}</function>"
        return channel["body"] * ("final" in channel["header"])

    return _CHANNEL.sub(spoken, _HEADLESS.sub("", text))


def _called(header: str, tools: Tools) -> list[str]:
    """The tools to which a header is addressed."""
    names = re.findall(r"to=([\w.\-]+)", header)
    return [n for n in names if n.startswith("functions.") or _known(n, tools) in tools]


# Thoughts.

_WORDS = (
    r"(?:\w{0,20}(?:think|thought|reason|scratch_?pad|monologue|reflect|chain_of_thought|analysis)"
    r"\w{0,20}|\u601d\u8003)"
)
_CLOSES = (
    rf"(?:<\s?/\s?(?:\w+:)?{_WORDS}\b[^<>]*>"  # </think>, </seed:think>
    r"|\[/(?:THINK|THINKING|REASONING)\]"  # Magistral
    r"|\u25c1/think\u25b7"  # Kimi
    rf"|<\|(?:/|end_(?:of_)?){_WORDS}\|>|<\|{_WORDS}_end\|>"
    r"|<\|inner_suffix\|>"  # Apertus
    r"|<channel\|>)"  # Gemma
)
_OPENS = (
    rf"(?:<\s?(?:\w+:)?{_WORDS}\b[^<>]*>|\[(?:THINK|THINKING|REASONING)\]|\u25c1think\u25b7"
    rf"|<\|(?:start_|begin_of_)?{_WORDS}\|>|<\|inner_prefix\|>)"
)
_THOUGHT = re.compile(f"{_CLOSES}|{_OPENS}", re.I)
_WHOLE = re.compile(f"{_OPENS}(?:(?!{_OPENS}).)*?{_CLOSES}", re.I | re.S)
_CLOSED = re.compile(_CLOSES, re.I)
_OPENED = re.compile(_OPENS, re.I)
# In a report a mark may be quoted, but at its beginning, or alone on a line.
_REPORTED_THOUGHT = re.compile(
    rf"\A\s*(?:{_OPENS}.*?(?:{_CLOSES}|\Z)|(?:.*?\n)?[ \t]*{_CLOSES}[ \t]*(?=\n|\Z))\s*",
    re.S | re.I,
)
# What a thought that is never closed gives way to: the header of the answer.
_ANSWER = re.compile(
    r"<\|(?:begin|start|im_start|start_header_id)\|>\s*assistant\b"
    r"|<\|(?:content_text|begin_of_solution|START_RESPONSE)\|>|<(?:final_)?(?:answer|response)>"
)


def _without_thoughts(text: str) -> tuple[str, str]:
    """Text without thoughts, and the thought at its end that is not closed.

    A closing mark without an opening one ends a thought that began with the text: some chat
    templates swallow the first.
    """
    text = _CLOSED.split(_WHOLE.sub("", text))[-1]
    opened = _OPENED.search(text)
    if opened is None:
        return text, ""
    words, thought = text[: opened.start()], text[opened.end() :]
    if answer := _ANSWER.search(thought):
        words += thought[answer.end() :]
    return words, thought


# The end of a turn, and the header of the next one. What stands behind is another's.

_ROLE = r"(?:im_)?(?:system|user|assistant|model|human|tool|ipython|observation)"
_TURN = re.compile(
    r"<\|(?:im_start|start_header_id|header_start|start_of_role|start|begin|turn)\|?>\s*"
    + _ROLE
    + r"?\s*(?:<\|(?:end_(?:header_id|of_role)|header_end|im_sep|im_middle|content)\|>)?"
    r"|<\|(?:im_end|eot_id|eom_id|eot|eom|end|end_message|return|stop|bom|eos|bos"
    r"|(?:end|begin|start)_?of_?(?:text|sentence|turn)|START_OF_TURN_TOKEN|END_OF_TURN_TOKEN"
    r"|(?:USER|CHATBOT|SYSTEM)_TOKEN"
    r"|START_RESPONSE|END_RESPONSE|end_of_role|end_header_id|header_end|im_sep|im_middle"
    r"|" + _ROLE + r"(?:_(?:start|end))?)\|>"
    r"|<(?:start|end)_of_turn>\s*" + _ROLE + r"?|<turn\|>"
    r"|\[\|(?:endofturn|" + _ROLE + r")\|\]\s*"  # EXAONE
    r"|\]~!?b[\[\]](?:ai|user|system)?|\[e~\["  # MiniMax
    r"|<(?:tool_response|(?:function|tool)_results?)>|^```tool_outputs?\b"  # a made-up result
    r"|</?s>|<(?:eos|bos|eot)>|\[/?INST\]|<</?SYS>>|<\[?end_of_text\]?>|\[(?:eot|end)\][ \t]*$"
    r"|(?:\A|(?<=\|>))(?:assistant|model)(?:[ \t]*\n|\s*(?=<\|))"
    r"|(?<=[.!?\"\u2026\u201d*])assistant[ \t]*\n"  # a header without its marks
    r"|^###\s*(?:Instruction|Input|Response|Human|User|Assistant):?\s*$"
    r"|<role>\s*" + _ROLE + r"\s*</role>|(?<=[.!?\"\u2026\u201d*])\s(?-i:USER|HUMAN|GPT):",
    re.M | re.I,
)

# The headers before its own words.
_HEADERS = re.compile(rf"\A(?:\s*(?:{_TURN.pattern}))*\s*", re.M | re.I)


# Calls in marks: where one begins, and where it ends. The group `name` is a name in the mark.

_NAME = r"[A-Za-z_](?:[\w.\-]*[\w\-])?"
_MARKED: tuple[tuple[str, str], ...] = (
    # <tool_call>{"name": …}</tool_call>, also with XML or `name` and <arg_key> inside
    (r"<tool_calls?>", r"</tool_calls?>"),
    (r"<function_?calls?>", r"</function_?calls?>|\Z"),
    (
        r"<(?:tool_use|tool_code|use_mcp_tool|invoke)>",
        r"</(?:tool_use|tool_code|use_mcp_tool|invoke)>",
    ),
    (rf"<function=(?P<name>{_NAME})>", r"</(?:function|function_call|call|action|tool)>"),
    (rf"<(?:function|invoke) name=\"?(?P<name>{_NAME})\"?>", r"</(?:function|invoke)>"),
    # [TOOL_CALLS]say[ARGS]{…}, [TOOL_CALLS] [{…}]
    (r"\[TOOL_CALLS\]", r"(?=\[TOOL_CALLS\])|\Z"),
    (r"\[TOOL_REQUEST\]", r"\[END_TOOL_REQUEST\]"),
    (r"<\|tool_call_start\|>", r"<\|tool_call_end\|>"),
    # <|tool_call_begin|>functions.say:0<|tool_call_argument_begin|>{…}<|tool_call_end|>
    (r"<\|tool_call_begin\|>", r"<\|tool_call_end\|>"),
    (r"<\|tool_call>", r"<tool_call\|>"),
    (r"<\|tool_call\|>|<\|python_tag\|>|<\|START_ACTION\|>", r"<\|END_ACTION\|>|\Z"),
    (r"<\|python_start\|>|<\|tools_prefix\|>", r"<\|python_end\|>|<\|tools_suffix\|>"),
    (r"<\|action_start\|>(?:\s*<\|\w+\|>)?", r"<\|action_end\|>"),
    (rf"\bfunction<\|tool_sep\|>(?P<name>{_NAME})", r"(?=function<)|\Z"),
    (r"<start_function_call>", r"<end_function_call>"),
    (r"\bfunctools(?=\[)", r"\Z"),
    (r"^[ \t]*```(?:tool|tool_call|tool_code)[ \t]*\n", r"^[ \t]*```"),
)
_MARKS_OF_CALLS = "|".join(
    rf"(?:{first})(?P<body>.*?)(?:(?P<end>{last})|\Z)" for first, last in _MARKED
)
_CALL = regex.compile(_MARKS_OF_CALLS, re.M | re.I | re.S)
# One that begins a line: in a report others are quoted.
_BEGUN = regex.compile(rf"^[ \t]*(?={_MARKS_OF_CALLS})", re.M | re.I | re.S)
# Agents that write the action as an object.
_ACTION = re.compile(r"\A\s*+(?:(?:Question|Plan|Thought):.*?\n)?[ \t]*Action:\s*(?=[{\[`])", re.S)
_FENCE = re.compile(r"\A\s*```[ \t]*\w*[ \t]*\n(?P<body>.*?)\n?[ \t]*(?:```\s*)?\Z", re.S)


_LABEL = re.compile(
    r"\W*(?:(?:(?:tool|function)[ _/]?){0,2}calls?|json|xml|python|tool_code)?\W*", re.I
)


def _marked(text: str, tools: Tools) -> tuple[list[Call], str]:
    """The calls in marks of a text without thoughts, and the rest of it."""
    if names := "|".join(map(re.escape, tools)):
        for form in _OF_TOOLS:
            pattern = re.compile(form.format(names=names), re.S | re.I)
            text = pattern.sub(r"<function=\g<name>>\g<body></function>", text)
    calls: list[Call] = []

    def taken(mark: regex.Match[str]) -> str:
        made = [*_payload(mark["body"], tools)]
        if mark["name"]:
            made = [(mark["name"], mark["body"])]
        calls.extend(made)
        if made or mark["end"] is not None:
            return ""
        return str(mark[0])

    rest = _CALL.sub(taken, text)
    return _all_repaired(calls, tools), rest


def _whole(text: str, tools: Tools) -> list[Call]:
    """The calls of known tools that a whole text is; a name alone is a word, too."""
    body = _unfenced(_ACTION.sub("", text)).strip("`*")
    if body in tools and body != "noop":
        return []
    made = _all_repaired(_payload(body, tools), tools)
    if all(name in tools for name, _ in made):
        return made
    return []


def _all_repaired(calls: Iterable[Call], tools: Tools) -> list[Call]:
    return [repaired(*each, tools) for each in itertools.islice(calls, MOST_CALLS)]


# What stands in a call: JSON, XML, Python, or a name and arguments.

_XML = re.compile(
    r"<(?:(?:param(?:eter)?|arg(?:ument)?)[= ](?:name=|key=)?[\"']?(?P<key>[\w\-]+)[\"']?[^<>]*"
    r"|arg_key>\s*(?P<key2>[\w\-]+)\s*</arg_key>\s*<arg_value"
    r"|(?P<tag>[\w\-]+))>\s*(?P<value>.*?)\s*"
    r"(?:</(?:param(?:eter)?|arg(?:ument)?|arg_value|(?P=tag))>|(?=<param)|\Z)",
    re.S,
)
_INNER = re.compile(
    rf"(?:<(?:function=|(?:function|invoke) name=\"?)(?P<name>{_NAME})\"?>"
    rf"|<(?:tool_)?name>\s*(?P<tag>{_NAME})\s*</(?:tool_)?name>)"
    r"(?P<body>.*?)(?:</(?:function|invoke)>|(?=<function[= ]|<invoke |<(?:tool_)?name>)|\Z)",
    re.S,
)
_NAMED = re.compile(
    rf"\s*+(?:function<\|tool_sep\|>|(?:call)?:)?(?P<name>{_NAME})(?::\d+)?"
    r"(?:\[CALL_ID\]\w*|\[ARGS\]|<\|tool_call_argument_begin\|>|<\|tool_sep\|>|\s)*+"
    r"(?P<body>[\{\(`<].*|)\s*\Z",
    re.S,
)
# Marks in a call's body that say nothing, and those in which strings stand.
_WRAPPERS = re.compile(r"</?(?:tool_calls?|arguments|parameters|input)>")
_STRING = re.compile(r"(<\|\"\|?>|<escape>)(.*?)\1", re.S)
# What stands before arguments of JSON.
_LEADING = re.compile(r"\A(?:<\|\w{1,40}\|>|json\b|\s)+(?=\{)")
_CALL_KEYS = (
    *("tool_calls", "tool_call", "tool_uses", "function_calls", "function_call", "functionCall"),
    *("actions", "function"),
)
_NAME_KEYS = ("name", "tool", "function", "action", "command", "recipient_name", "type")
_PREFIX = re.compile(r"\A(?:tool|function|action)_")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "params", "kwargs")


def _payload(body: str, tools: Tools) -> Iterator[Call]:
    """The calls that stand in a text as such."""
    body = _STRING.sub(lambda found: _dumped(found[2]), _WRAPPERS.sub("", body))
    body = _unfenced(body).removeprefix("await ").rstrip("; \n")
    if inner := list(_INNER.finditer(body)):
        for each in inner:
            yield each["name"] or each["tag"], each["body"]
    elif body[:1] in ("{", "[") and (made := list(_of_values(_loaded(body), tools))):
        yield from made
    elif body.startswith("[") or (body.endswith(")") and "(" in body):
        yield from _python(body)
    elif found := _NAMED.match(body):
        is_torn = re.match(r"```|\(\s*(?:\w+=|\{)", found["body"])
        is_named = found["body"] or found["name"] in tools
        if is_torn or (is_named and isinstance(_arguments(found["body"]), dict)):
            yield found["name"], found["body"]


def _unfenced(text: str) -> str:
    """A text without a fence around it."""
    if fenced := _FENCE.match(text):
        text = fenced["body"]
    return text.strip()


def _of_values(value: object, tools: Tools) -> Iterator[Call]:
    """Calls as JSON values, in the forms of APIs and of agents."""
    for item in as_dicts(value) or as_dicts([value]):
        inner = next(filter(None, map(item.get, _CALL_KEYS)), None)
        if isinstance(inner, list | dict):
            yield from _of_values(inner, tools)
            continue
        for name, given in item.items():  # {"say": {"text": …}}
            if isinstance(given, dict) and _known(name, tools) in tools:
                yield name, _dumped(given)
        rest = dict(item)
        name, given = _taken(rest, _NAME_KEYS), _taken(rest, _ARGUMENT_KEYS)
        # {"name": "look"}, {"action": "say", "text": …}
        is_call = given is not None or not rest or _known(str(name), tools) in tools
        if isinstance(name, str) and is_call:
            yield name, _dumped((rest if given is None else given) or {})


def _taken(item: dict[str, Any], keys: Iterable[str]) -> Any:
    """What stands under the first of some keys, also as ``tool_name``, ``Action_Input``."""
    own = {_PREFIX.sub("", key.lower()): key for key in item}
    return next((item.pop(own[key]) for key in keys if key in own), None)


def _python(body: str) -> Iterator[Call]:
    """Calls written as Python: ``[say(text="Well met.")]``, ``say({text: "Hi."})``."""
    with suppress(SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        for node in ast.walk(ast.parse(body, mode="eval")):
            if not isinstance(node, ast.Call):
                continue
            given = [_loaded(ast.unparse(each)) for each in node.args[:1]]
            if all(isinstance(each, dict) for each in given):
                given += [{each.arg: ast.literal_eval(each.value)} for each in node.keywords]
                yield ast.unparse(node.func), _dumped(dict(ChainMap(*given)))


def _arguments(body: str) -> Any:
    """The arguments of a call, as a value of JSON; None if they cannot be read.

    A fence around them and further rounds of quotes are taken off.
    """
    body = _unfenced(_LEADING.sub("", _WRAPPERS.sub("", body)))
    if body in ("", "null", "None"):
        return {}
    if body.startswith("<") and (pairs := list(_XML.finditer(body))):
        return {each["key"] or each["key2"] or each["tag"]: each["value"] for each in pairs}
    if re.match(r"\w+=[\"']", body):
        body = f"({body})"
    if body.startswith("("):
        body = next((arguments for _, arguments in _python(f"f{body}")), "-")
    if body[0] not in ("{", "[", '"'):
        return None
    value = _loaded(body)
    if isinstance(value, str) and value:
        return _arguments(value)
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        value = next(filter(None, value), {})  # several: an empty one before the arguments, doubles
    return value


def _loaded(text: str) -> Any:
    """A JSON value, mended if need be; None if there is none."""
    with suppress(ValueError, RecursionError):
        if len(text) <= REPAIRED_CHARS and text.count("{") + text.count("[") <= MOST_OPENED:
            return repair_json(text, return_objects=True)
        return json.loads(text)
    return None


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _known(name: str, tools: Tools) -> str:
    """The tool that a name means, also miscased, prefixed, numbered or with a mark behind it."""
    parts = re.split(
        r"[./:]|__|^(?:functions?|tools?)_|_(?:tool|function)$", name.partition("<")[0]
    )
    meant = {re.sub(r"\W|_", "", tool.lower()): tool for tool in tools}
    folds = (re.sub(r"\W|_", "", part.lower()) for part in (name, *reversed(parts)))
    return next((meant[each] for each in folds if each in meant), name)


def repaired(name: str, arguments: str, tools: Tools) -> Call:
    """A call with a known name, and its arguments as one JSON object where they can be read."""
    value, written = _arguments(arguments), arguments.strip()
    if isinstance(value, dict):
        written = _dumped(value)
    return _known(name, tools), written or "{}"


# All other marks: whatever looks like one goes.

_MARKS = re.compile(
    r"<\|[^<>|\n]{0,60}\|?>|<\w{1,40}\|>|\[\|\w{1,40}\|\]|\|>|<\|"
    r"|</[A-Za-z][^<>\n]{0,40}>|\[/[A-Za-z][\w ]{0,30}\]"
    r"|<(?:answer|response|reply|message|dialogue|speech|end|stop|final|output|code|co|tools|sep"
    r"|sop"
    r"|function(?:=[^<>]*)?|invoke|parameter|details|plan"
    r"|s|eos|bos|pad|unk|unused\d+|0x[0-9A-Fa-f]{2}|\w{1,30}_\w{1,30})(?:[ =:][^<>\n]*)?>"
    r"|<\w+:(?:think|tool_call|eos|bos|pad)>|\u273f\w+\u273f:?\s*"
    r"|\u3010\d+:\d+[^\u3011]{0,40}\u3011|\bciteturn\w+|\[INST\]|<</?SYS>>"
    r"|\[(?:gMASK|TOOL_CALLS?|ARGS|TOOL_RESULTS?|END_TOOL_REQUEST|TOOL_REQUEST|THINK)\]"
    r"|(?-i:\[(?:PAD|UNK|CLS|SEP|MASK|BOS|EOS)\])|[\u25c1]/?\w{1,20}\u25b7|[\u25c1\u25b7\uff5c]",
    re.I,
)


# A tag of any name around all of a text.
_AROUND_ALL = re.compile(
    r"\A\s*<(?P<tag>[a-z]\w{0,40})(?: [^<>\n]{0,120})?>(?P<inner>.*)</(?P=tag)>\s*\Z", re.S
)


def _without_marks(text: str) -> str:
    """A text without marks, also such as are made by taking out others."""
    text = html.unescape(text)
    for _ in range(3):
        text = _AROUND_ALL.sub(r"\g<inner>", text)
    while (shorter := _MARKS.sub("", _THOUGHT.sub("", text))) != text:
        text = shorter
    if " " not in text:
        text = text.replace("\u0120", " ").replace("\u010a", "\n")
    return text.replace("\u2581", " ").replace("\ufeff", "")


_SPOKEN_KEYS = (
    *("response", "reply", "say", "speech", "dialogue", "text", "message"),
    *("content", "answer", "output", "line", "utterance"),
)


def _spoken(value: object, depth: int = MOST_DEPTH) -> str:
    """What a value of JSON says, as an object of a model's own, an API's body or its parts."""
    if isinstance(value, list) and depth:
        return "".join(_spoken(each, depth - 1) for each in value)
    if not isinstance(value, dict) or value.get("type") in ("thinking", "reasoning") or not depth:
        return ""
    texts = (value[key] for key in _SPOKEN_KEYS if isinstance(value.get(key), str))
    inner = (_spoken(each, depth - 1) for each in value.values())
    return next(filter(None, itertools.chain(texts, inner)), "")


def _form(text: str) -> Read | None:
    """What an object of words, pose and calls (`form`) says, the pose in stars before the words.

    None for any other text.
    """
    value = _loaded(text) if text.startswith("{") else None
    if not isinstance(value, dict) or not value.keys() <= {"say", "pose", "call"}:
        return None
    if isinstance(value.get("say"), dict):
        return None  # a call by its name
    said, pose = as_text(value.get("say")), as_text(value.get("pose"))
    if pose := " ".join(pose.replace("*", " ").split()):
        said = "\n".join(filter(None, (f"*{pose}*", said)))
    return Read(said, tuple(_of_values(value.get("call"), ())))
