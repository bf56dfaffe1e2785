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
import html
import itertools
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
# What stands round the words of a longer text stays.
DRESSED_CHARS = 4_000
# Longer or deeper broken JSON is not mended, nor more of it among words.
MOST_MENDED = 4
REPAIRED_CHARS = 5_000
MOST_OPENED = 500
# Words in an object stand no deeper.
MOST_DEPTH = 9

Tools = Mapping[str, str]
Call = tuple[str, str]


@dataclass(frozen=True)
class Read:
    """A text as it was meant."""

    text: str  # the words, without thoughts, calls and marks
    # Name and arguments of each call. The arguments are the text of a JSON object, or what was
    # written, where that cannot be read.
    calls: tuple[Call, ...] = ()
    # Whether there was more than words: a text that held only marks is no answer.
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
    body = text[:MOST_CHARS].replace("\r\n", "\n").strip(_BLANKS)
    if not reported:
        body = _of_channels(_named_alike(_BROKEN_OFF.sub("", body), tools), tools)
    body, unclosed = _without_thoughts(body, reported)
    body = body.strip() if reported else _own_turn(body.strip())
    calls, rest = _calls(body, tools, reported)
    if unclosed and not calls:  # a model that calls a tool in mid-thought closes only the call
        calls = _marked(unclosed, tools, False)[0]
    rest = rest if reported else _undressed(_without_marks(rest))
    return Read(rest.strip(), tuple(calls[:MOST_CALLS]), len(rest) < len(text.strip()))


def replacements(*rows: str | tuple[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns, and what stands instead of what they find: nothing where no text is given."""
    pairs = ((row, "") if isinstance(row, str) else row for row in rows)
    return tuple((re.compile(pattern, re.I | re.M), instead) for pattern, instead in pairs)


# Around a reply, some of them with no width.
_BLANKS = " \t\r\n\ufeff\u200b\u2060"

# A mark at the end of a reply that had become too long.
_BROKEN_OFF = re.compile(
    r"(?:(?:<[/|\uff5c]|(?<!\w)<)"
    r"(?:[a-z_\u2581][\w|:.\-\u2581\uff5c]{0,40}(?:\s+\w*(?:=[^<>]{0,60})?)?)?"
    r"|\[/?(?:TOOL[A-Z_]{0,20}|THINK|INST|tool_?\w{0,20}))\Z"
)

# Marks by one name each: signs for angles, bars and blanks, namespaces, attributes, letters' case.

_ALIKE = replacements(
    r"\A#{1,4} (?:thinking|thoughts?|reasoning|analysis)\b(?s:.{0,5000}?)\n(?=#{1,4} )",
    # words of a story, too, which are thoughts only in a pair
    r"\A<(internal|planning|deliberation|inner_\w{1,20})>(?s:.{0,5000}?)</\1>",
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


def _named_alike(text: str, tools: Tools) -> str:
    """A text whose marks have their plain names; a tool's own tag is a call of it."""
    for pattern, instead in _ALIKE:
        text = pattern.sub(instead, text)
    text = _BARS.sub(lambda mark: mark[0].replace("\u2581", "_").replace("\uff5c", "|"), text)
    if tools and "<" in text:
        names = "|".join(map(re.escape, tools))
        own = re.compile(
            rf"<(?:(?:invoke|action|call"
            rf"|tool) \w{{4}}=[\"'])?({names})[\"']?((?:\s+{_ATTRIBUTE})+\s*/?|\s*/)>",
            re.I,
        )
        text = own.sub(lambda tag: f"<function={tag[1]}>{_of_attributes(tag[2])}</function>", text)
        text = re.sub(
            rf"<({names})>(.{{0,2000}}?)</\1>",
            r"<function=\1>\2</function>",
            text,
            flags=re.S | re.I,
        )
    return text


_ATTRIBUTE = r"\w{1,60}=(?:\"[^\"<>]*\"|'[^'<>]*')"


def _of_attributes(tag: str) -> str:
    """The arguments that stand in a tag."""
    pairs = (each.partition("=") for each in re.findall(_ATTRIBUTE, tag))
    return _dumped({key: value[1:-1] for key, _, value in pairs})


# Channels (OpenAI's Harmony): `<|start|>assistant<|channel|>analysis<|message|>…<|end|>`. Models
# garble the headers; servers that drop the marks leave `analysis…assistantfinal…`, or the names on
# lines of their own.

_CHANNELS = r"(?:analysis|commentary|final)"
_HEADER = re.compile(
    r"(?:<\|start\|>[^<]{0,80}|assistant)?"
    r"(?:(?:<\|channel\|?>[^<]{0,200}(?:<\|constrain\|>[^<]{0,80})?){1,4}<\|message\|>"
    r"|<\|channel\|?>\s*\w*(?:[ \t]+to=[\w.]+)?(?:[ \t]+(?:json|code)\b)?)"
)
_ENDED = re.compile(r"<\|(?:end|call|return)\|>|<channel\|>")
_GLUED = re.compile(rf"assistant(?={_CHANNELS})")
_ON_LINES = re.compile(rf"\n(?={_CHANNELS}[ \t]*\n)")
_BARE = re.compile(
    rf"(?P<header>{_CHANNELS}?\s*(?:\bto=[\w.]+?(?=\s|<|(?:json|code)?\s*\{{|\Z))?)"
    r"\s*(?:<\|constrain\|>)?(?:(?:json|code)(?=\W))?(?:<\|message\|>)?[ \t]*:?"
)


def _of_channels(text: str, tools: Tools) -> str:
    """A text without the channels that only the model itself reads."""
    text = text.strip()
    if "<|channel" in text and (headers := list(_HEADER.finditer(text))):
        ends = [*(header.start() for header in headers[1:]), len(text)]
        before = text[: headers[0].start()]
        spoken = ["" if _ENDED.search(before) else before]
        for header, end in zip(headers, ends, strict=True):
            body, *rest = _ENDED.split(text[header.end() : end], maxsplit=1)
            spoken += [_of_channel(header[0], body, tools), *rest]
        return "".join(spoken).strip()
    parts = [text]
    if _GLUED.search(text) or re.match(rf"{_CHANNELS}[ \t]*\n", text):
        parts = [part for glued in _GLUED.split(text) for part in _ON_LINES.split(glued)]
    if len(parts) == 1:
        found = re.match(rf"(?:{_CHANNELS}\s+)?to=\w", text) and _BARE.match(text)
        to_tool = found and re.search(r"to=(?!(?:assistant|user|all)\b)", found["header"])
        if not found or (to_tool and not _called(found["header"], tools)):
            return text
    return "".join(
        _of_channel(bare["header"], _ENDED.split(part[bare.end() :])[0], tools)
        for part in parts
        for bare in [_BARE.match(part)]
        if bare
    )


def _of_channel(header: str, body: str, tools: Tools) -> str:
    if called := _called(header, tools):
        return f"<function={called[-1]}>{body}</function>"
    return body if "final" in header else ""


def _called(header: str, tools: Tools) -> list[str]:
    """The tools to which a header is addressed."""
    names = re.findall(r"to=([\w.\-]+)", header)
    return [n for n in names if n.startswith("functions.") or _known(n, tools) in tools]


# Thoughts. A group is what closes.

_THOUGHT_WORDS = (
    r"\w{0,20}(?:think|thought|reason|scratch_?pad|monologue|reflect|chain_of_thought|analysis)"
    r"\w{0,20}|details|plan|\u601d\u8003"
)
_THOUGHT = re.compile(
    r"<\s?(/?)\s?(?:\w+:)?(?:" + _THOUGHT_WORDS + r")\b[^<>]*>"  # <think>, <seed:think>
    r"|\[(/?)(?:THINK|THINKING|REASONING)\]"  # Magistral
    r"|\u25c1(/?)think\u25b7"  # Kimi
    r"|<\|(?:(/|end_(?:of_)?)|start_|begin_of_)?(?:" + _THOUGHT_WORDS + r")\|>"
    r"|<\|inner_(?:prefix|(suffix))\|>"  # Apertus
    r"|<(channel)\|>",  # Gemma
    re.I,
)
# What a thought that is never closed gives way to: the header of the answer.
_ANSWER = re.compile(
    r"<\|(?:begin|start|im_start|start_header_id)\|>\s*assistant\b"
    r"|<\|(?:content_text|begin_of_solution|START_RESPONSE)\|>|<(?:final_)?(?:answer|response)>"
)
# Names that are also a story's words: thoughts only where they begin a line.
_WEAK = re.compile(r"<\s?/?\s?(?:details|plan)\b", re.I)
_AROUND = 8
_QUOTES = tuple("\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb")


def _without_thoughts(text: str, reported: bool) -> tuple[str, str]:
    """Text without thoughts, and the thought at its end that is not closed.

    A closing mark without an opening one ends a thought that began with the text: some chat
    templates swallow the first. One pass, so that hostile nesting costs no more.
    """
    kept: list[str] = []
    depth, at = 0, 0
    for mark in _THOUGHT.finditer(text):
        closes = any(mark.groups()) or mark[0].lower().endswith("_end|>")
        weak = _WEAK.match(mark[0])
        if (reported or weak) and not _is_own(mark, at, depth, closes):
            continue
        if weak and closes and not depth:
            continue
        if not closes:
            kept += [text[at : mark.start()]] if not depth else []
            depth += 1
        elif depth:
            depth -= 1
        else:
            kept.clear()
        at = mark.end()
    if not depth:
        return "".join([*kept, text[at:]]), ""
    answer = None if reported else _ANSWER.search(text, at)
    return "".join([*kept, text[answer.end() :] if answer else ""]), "" if reported else text[at:]


def _is_own(mark: re.Match[str], begin: int, depth: int, closes: bool) -> bool:
    """Whether a mark that may be quoted is the model's own; the mark before ends at `begin`.

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
    r"|\A(?:assistant|model)(?:[ \t]*\n|\s*(?=<\|))"
    r"|(?<=[.!?\"\u2026\u201d*])assistant[ \t]*\n"  # a header without its marks
    r"|^###\s*(?:Instruction|Input|Response|Human|User|Assistant):?\s*$"
    r"|<role>\s*" + _ROLE + r"\s*</role>|(?<=[.!?\"\u2026\u201d*])\s(?-i:USER|HUMAN|GPT):",
    re.M | re.I,
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
_OPENING = tuple((re.compile(a, re.M | re.I), re.compile(b, re.M | re.I)) for a, b in _MARKED)
_OPENERS = re.compile(
    "|".join(f"(?i:{_[0]})" for _ in _MARKED).replace("?P<name>", "?:"),
    re.M,
)
_REACT = re.compile(
    r"(?:\A\s{0,9}Name|^(?:\d\.)?[^\w\n>]{0,9}(?:Action|(?:(?:Using|Calling|Call)[ _])?"
    r"(?:Tool|Function)(?:[ _](?:Name|Call))?))"
    rf"[^\w\n]{{0,4}}:[^\w\n]{{0,4}}(?P<name>{_NAME})(?:[ \t*]*\n\s*(?:\d\.)?[^\w{{\n>]{{0,9}}"
    r"(?P<label>(?:[a-z]+[ _])?[a-z]+)[^\w\n]{0,4}:(?!//)[ \t*]*(?P<body>.*?)(?=\nObservation\b|\Z)"
    r"|[ \t*\]]*\n\s*(?P<object>\{.*)|[\[(](?P<bracketed>[^\])\n]*)[\])])",
    re.M | re.S | re.I,
)
# Agents that write the action as an object.
_ACTION = re.compile(r"\A\s*+(?:(?:Question|Plan|Thought):.*?\n)?[ \t]*Action:\s*(?=[{\[`])", re.S)
_FENCE = re.compile(r"\A\s*```[ \t]*\w*[ \t]*\n(?P<body>.*?)\n?[ \t]*(?:```\s*)?\Z", re.S)


_LABEL = re.compile(
    r"\W*(?:(?:(?:tool|function)[ _/]?){0,2}calls?|json|xml|python|tool_code)?\W*", re.I
)


def _calls(text: str, tools: Tools, reported: bool) -> tuple[list[Call], str]:
    """The calls in a text without thoughts, and the rest of it."""
    calls, rest = _marked(text, tools, reported)
    if not calls:
        calls = _unmarked(text if reported else _without_marks(text), tools, reported and not tools)
        rest = "" if calls else rest
    if not calls and tools and not reported:
        calls, rest = _among_words(rest, tools)
    if calls:
        rest = "\n".join(filter(str.strip, rest.split("\n")))
        rest = "" if _LABEL.fullmatch(rest) else rest
    return calls, rest


def _marked(text: str, tools: Tools, reported: bool) -> tuple[list[Call], str]:
    """The calls in marks, and the rest of the text."""
    calls: list[Call] = []
    rest, at, unread = list[str](), 0, 0
    for opening in _OPENERS.finditer(text):
        if opening.start() < at:
            continue  # inside the call before
        if unread > MOST_CALLS or len(calls) >= MOST_CALLS:
            break
        if reported and text[: opening.start()].rstrip(" \t")[-1:] not in ("", "\n"):
            continue  # quoted
        made, end = _of_marks(text, opening.start(), tools)
        if not end:
            unread += 1
            continue
        rest.append(text[at : opening.start()])
        calls += [repaired(*each, tools) for each in made]
        at = end
    return calls, "".join([*rest, text[at:]])


def _among_words(text: str, tools: Tools) -> tuple[list[Call], str]:
    """Calls of known tools without marks among words, and the text without the lines they are on.

    A name alone, or one with empty brackets, is a word.
    """
    names = "|".join(map(re.escape, tools))
    calls: list[Call] = []
    rest, at = list[str](), 0
    opening = re.compile(
        rf"\b(?:{names})\((?=[\w\"'{{])"
        rf"|(?P<name>\b(?:{names})\b[^{{}}(\n]{{0,40}})?(?P<object>\{{(?=\s*[\"']))"
    )
    for attempt, found in enumerate(opening.finditer(text)):
        before = text.rfind("\n", 0, found.start()) + 1
        if found.start() < at or text.startswith(">", before):  # a line that is quoted
            continue
        if attempt - len(calls) > MOST_MENDED:
            break
        start = found.start("object") if found["object"] else found.start()
        if found["object"]:
            source, length = _object(text[start:])
            made = [repaired(*each, tools) for each in _of_values(_loaded(source), tools)]
            name = re.match(r"\w*", found["name"] or "")
            main = tools.get(name[0] if name else "")
            if not made and main and main in (_loaded(source) or ()):
                made = [repaired(name[0] if name else "", source, tools)]
        else:
            made, length = _python_at(text[start:], tools)
        if not made or any(name not in tools for name, _ in made):
            continue
        calls += made
        after = text.find("\n", start + length)
        rest.append(text[at : max(at, before)])
        at = after if after >= 0 else len(text)
    return calls, "".join([*rest, text[at:]])


def _python_at(text: str, tools: Tools) -> tuple[list[Call], int]:
    """The call in Python's form at the beginning of a text, and its length."""
    closing = (found.end() for found in re.finditer(r"\)", text[:REPAIRED_CHARS]))
    for end in itertools.islice(closing, MOST_CALLS):
        if made := list(_python(text[:end], tools)):
            return [repaired(*each, tools) for each in made], end
    return [], 0


def _of_marks(text: str, start: int, tools: Tools) -> tuple[list[Call], int]:
    """The calls in the marks that begin there, and where they end; 0 if these are no calls."""
    begin, last = next((m, last) for first, last in _OPENING if (m := first.match(text, start)))
    end = last.search(text, begin.end())
    body = text[begin.end() : end.start() if end else len(text)]
    named = begin.groupdict().get("name")
    made = [(named, _arguments(body))] if named else list(_payload(body, tools))
    return made, (end.end() if end else len(text)) if made or end else 0


def _unmarked(text: str, tools: Tools, any_name: bool) -> list[Call]:
    """Calls of known tools without marks: thought and action, or the whole text."""
    if made := _labelled(text, tools):
        return made
    body = _unfenced(_ACTION.sub("", text)).strip("`*")
    made = [repaired(*each, tools) for each in _payload(body, tools)]
    is_call = body not in tools or body == "noop"  # others are words, too
    if any_name:
        is_call = bool(re.match(rf"[\[{{]|{_NAME}\(", body))
    elif not all(name in tools for name, _ in made):
        is_call = False
    return made if is_call else []


def _labelled(text: str, tools: Tools) -> list[Call]:
    """The call of a known tool that stands under labels."""
    found = _REACT.search(text)
    if not found or (name := _known(found["name"], tools)) not in tools:
        return []
    label = _bare((found["label"] or "input").replace(" ", "_"))
    written = _arguments(found["body"] or found["object"] or found["bracketed"] or "")
    if label not in _ARGUMENT_KEYS:
        if label != tools[name]:
            return []  # a record of somebody: `Name: Look`, `Age: 12`
        written = _dumped({label: written})
    return [repaired(found["name"], written, tools)]


# What stands in a call: JSON, XML, Python, or a name and arguments.

_XML = re.compile(
    r"<(?:(?:param(?:eter)?|arg(?:ument)?)[= ](?:name=|key=)?[\"']?(?P<key>[\w\-]+)[\"']?[^<>]*"
    r"|arg_key>\s*(?P<key2>[\w\-]+)\s*</arg_key>\s*<arg_value"
    r"|(?P<tag>[\w\-]+))>\s*(?P<value>.*?)\s*"
    r"(?:</(?:param(?:eter)?|arg(?:ument)?|arg_value|(?P=tag))>|(?=<param)|\Z)",
    re.S,
)
_INNER = re.compile(
    rf"<(?:function=|(?:function|invoke) name=\"?)(?P<name>{_NAME})\"?>"
    rf"|<(?:tool_)?name>\s*(?P<tag>{_NAME})\s*</(?:tool_)?name>"
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
    "actions",
)
_NAME_KEYS = ("name", "tool", "function", "action", "command", "recipient_name", "type")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "params", "kwargs")


def _bare(key: str) -> str:
    """A key of a call without what it is the key of: ``tool_name``, ``Action_Input``."""
    return re.sub(r"\A(?:tool|function|action)_", "", key.lower())


def _payload(body: str, tools: Tools) -> Iterator[Call]:
    """The calls that stand in a text as such."""
    body = _STRING.sub(lambda found: _dumped(found[2]), _WRAPPERS.sub("", body))
    body = _unfenced(body).removeprefix("await ").rstrip("; \n")
    if inner := list(_INNER.finditer(body)):
        ends = [*(each.start() for each in inner[1:]), len(body)]
        for each, end in zip(inner, ends, strict=True):
            inside = re.split(r"</(?:function|invoke)>", body[each.end() : end])[0]
            yield each["name"] or each["tag"], _arguments(inside)
    elif body[:1] in ("{", "[") and (made := list(_of_values(_loaded(body), tools))):
        yield from made
    elif body.startswith("[") or (body.endswith(")") and "(" in body):
        yield from _python(body, tools)
    elif made := _labelled(body, tools):
        yield from made
    elif (found := _NAMED.match(body)) and (found["body"] or found["name"] in tools):
        arguments = _arguments(found["body"])
        if isinstance(_loaded(arguments), dict):
            yield found["name"], arguments


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
        keys = {_bare(str(each)): each for each in item}
        key = next((k for k in _NAME_KEYS if isinstance(item.get(keys.get(k)), str)), None)
        given = next((keys[k] for k in _ARGUMENT_KEYS if k in keys), None)
        if key is None:
            continue
        name = str(item[keys[key]])
        if given is not None:
            yield name, _dumped({} if item[given] is None else item[given])
        elif [*keys] == ["name"]:
            yield name, "{}"
        elif key != "type" and _known(name, tools) in tools:  # {"action": "say", "text": …}
            yield name, _dumped({k: v for k, v in item.items() if k != keys[key]})


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
            given = _literal(node.args[0]) if node.args else {}
            if not isinstance(given, dict):
                given = {tools[_known(name, tools)]: given}
            given |= {each.arg: ast.literal_eval(each.value) for each in node.keywords if each.arg}
            if "" not in given:
                yield name, _dumped(given)
        except (KeyError, ValueError, TypeError, SyntaxError, RecursionError):
            continue


def _literal(node: ast.expr) -> Any:
    """The value that is written; keys of an object need no quotes, as in JavaScript."""
    if not isinstance(node, ast.Dict):
        return ast.literal_eval(node)
    keys = (k.id if isinstance(k, ast.Name) else ast.literal_eval(k) for k in node.keys if k)
    return dict(zip(keys, map(_literal, node.values), strict=True))


def _arguments(body: str) -> str:
    """The arguments of a call whose name is known, as a JSON text where they can be read."""
    body = _unfenced(_LEADING.sub("", _WRAPPERS.sub("", body)))
    if body.startswith("<") and (pairs := list(_XML.finditer(body))):
        return _dumped(
            {each["key"] or each["key2"] or each["tag"]: each["value"] for each in pairs}
        )
    body = f"({body})" if re.match(r"\w+=[\"']", body) else body
    if body.startswith("(") and (made := list(_python(f"f{body}", {}))):
        return made[0][1]
    if body in ("", "null", "None"):
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
    if len(text) > REPAIRED_CHARS or text.count("{") + text.count("[") > MOST_OPENED:
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
    """The tool that a name means, also miscased, prefixed, numbered or with a mark behind it."""
    if name in tools:
        return name
    parts = re.split(
        r"[./:]|__|^(?:functions?|tools?)_|_(?:tool|function)$", name.partition("<")[0]
    )
    meant = [folded(each) for each in (name, *reversed(parts)) if each]
    return next((each for part in meant for each in tools if folded(each) == part), name)


def repaired(name: str, arguments: str, tools: Tools) -> Call:
    """A provider's own call, with a known name, and with arguments that are one JSON object.

    A fence around them, a second round of quotes, or an object around them is taken off. A text
    alone is the argument that may follow as one; else, what cannot be read stays.
    """
    name, written = _known(name, tools), arguments.strip()
    if written[:1] not in ("{", "[", '"'):
        written = _arguments(written)
    value: object = written
    for _ in range(3):
        body = _unfenced(value) if isinstance(value, str) else ""
        loaded = _loaded(body) if body[:1] in ("{", "[", '"') else None
        if loaded is None or loaded == "":
            break
        value = loaded
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        value = next(filter(None, value), {})  # several: an empty one before the arguments, doubles
    main = tools.get(name, "")
    while isinstance(value, dict) and (inner := _wrapped(value, main)):
        value = inner
    if isinstance(value, dict) and main and main not in value:  # by another name
        alike = (*_SPOKEN_KEYS, "arg_value") if main in _SPOKEN_KEYS else ()
        value = {main if k.lower() in (main, *alike) else k: v for k, v in value.items()}
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict) and (value or written.startswith("{}")):
        return name, _dumped(value)
    text = value.strip() if isinstance(value, str) else written.strip()
    if tools.get(name) and text and text[0] not in "{[<(":
        return name, _dumped({tools[name]: text})
    return name, arguments.strip() or "{}"


def _wrapped(value: Mapping[str, Any], main: str) -> Mapping[str, Any] | None:
    """The arguments in an object that holds only them, or their schema's frame."""
    keys = [key for key in value if key not in ("type", "required")]
    inner = value[keys[0]] if len(keys) == 1 else None
    inner = _loaded(inner) if isinstance(inner, str) and inner.startswith("{") else inner
    is_frame = keys != [main] and keys[:1] and _bare(keys[0]) in (*_ARGUMENT_KEYS, "properties")
    return inner if is_frame and isinstance(inner, dict) and inner else None


# All other marks: whatever looks like one goes.

_MARKS = re.compile(
    r"<\|[^<>|\n]{0,60}\|?>|<\w{1,40}\|>|\[\|\w{1,40}\|\]|\|>|<\|"
    r"|</[A-Za-z][^<>\n]{0,40}>|\[/[A-Za-z][\w ]{0,30}\]"
    r"|<(?:answer|response|reply|message|dialogue|speech|end|stop|final|output|code|co|tools|sep"
    r"|sop"
    r"|function(?:=[^<>]*)?|invoke|parameter"
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
    for _ in range(3):
        text = _AROUND_ALL.sub(r"\g<inner>", text)
    while (shorter := _MARKS.sub("", _THOUGHT.sub("", text))) != text:
        text = shorter
    if " " not in text:
        text = text.replace("\u0120", " ").replace("\u010a", "\n")
    return text.replace("\u2581", " ").replace("\ufeff", "")


# What models put round their words, in this order.

# A thought in a fence, or as a terminal shows it, and the switch of one.
_ROUND = replacements(
    r"\A(?s:```(?:think(?:ing)?|thoughts?|reasoning)\n.*?\n```"
    r"|thinking\.{3}\n.*?\n\.{3}\s?done thinking\.?)\s*",
    r"(?<!\S)/(?:no_?)?think\b[ \t]*",
    r"```\w*\s*```",
)
_SPOKEN_KEYS = (
    *("response", "reply", "say", "speech", "dialogue", "text", "message"),
    *("content", "answer", "output", "line", "utterance"),
)


def _undressed(text: str) -> str:
    """The words of a text, also such as stand in an object of JSON."""
    if "&" in text:
        text = _without_marks(html.unescape(text))
    body = _unfenced(text)
    if re.match(r"\{\s*\"|\[\s*\{", body):
        text = _spoken(_loaded(body)) or text
    if len(text) >= DRESSED_CHARS:
        return text
    # Long runs of blanks would cost each rule the square of their length.
    text = re.sub(r"\n\s*\n", "\n\n", re.sub(r"[^\S\n]{9,}", " ", text))
    for pattern, instead in _ROUND:
        text = pattern.sub(instead, text)
    return text


def _spoken(value: object, depth: int = MOST_DEPTH) -> str:
    """What a value of JSON says, as an object of a model's own, an API's body or its parts."""
    if isinstance(value, list) and depth:
        return "".join(_spoken(each, depth - 1) for each in value)
    if not isinstance(value, dict) or value.get("type") in ("thinking", "reasoning") or not depth:
        return ""
    texts = (value[key] for key in _SPOKEN_KEYS if isinstance(value.get(key), str))
    inner = (_spoken(each, depth - 1) for each in value.values())
    return next(filter(None, itertools.chain(texts, inner)), "")
