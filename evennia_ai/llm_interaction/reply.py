"""Making a model's text fit for a game: what is stripped, how it is split, what is no answer.

Also the text tool protocol, for models that know no tool calling: the tools are described in the
prompt, and a call is a line of its own::

    TOOL {"name": "say", "arguments": {"text": "Good evening."}}
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evennia_ai.llm_interaction.calls import MOST_CALLS

# A telnet screen is 80 columns by about 24 lines; four of these are a screen and a half.
REPLY_CHARS = 600
REPLY_PIECES = 4

# What is longer than this is cut before it is cleaned: a runaway reply must not hold the reactor.
CLEANED_CHARS = 20_000

_THOUGHT_TAG = re.compile(r"<(/?)(?:think|thinking|thought|reasoning|reflection)\b[^<>]*>", re.I)

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
# All control characters but newline, then the ones that reorder or hide text.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]")

_QUOTES = (('"', '"'), ("\u201c", "\u201d"), ("'", "'"), ("\u2018", "\u2019"), ("\u00ab", "\u00bb"))


def speakable(
    text: str, names: Iterable[str] = (), limit: int = REPLY_CHARS, most_pieces: int = REPLY_PIECES
) -> "SplitReply":
    """A model's reply of any length cleaned and split; see `clean_reply` and `split_reply`.

    The time it takes is bounded: of a runaway reply only the beginning is cleaned, and the rest
    counted as left out.
    """
    body = strip_thoughts(text)
    split = split_reply(clean_reply(body, names), limit, most_pieces)
    return SplitReply(split.pieces, split.left_out + max(0, len(body) - CLEANED_CHARS))


def clean_reply(text: str, names: Iterable[str] = ()) -> str:
    """A reply as it may be spoken in a game.

    Args:
        text: What the model wrote.
        names: Names the assistant may have labelled its own lines with.

    Returns:
        Plain text without thoughts, labels, markup, control characters and outer quotes, made
        from the first `CLEANED_CHARS` characters; empty if nothing else was there. Line breaks
        stay, blank lines do not.
    """
    body = strip_thoughts(text)[:CLEANED_CHARS]
    return strip_quotes(strip_label(strip_markup(strip_control(body)), names))


def strip_thoughts(text: str) -> str:
    """Text without what stands between ``<think>`` tags and their like, closed or not.

    A closing tag whose opening one is missing ends a thought that began with the text: some
    chat templates swallow the first tag. One pass, so that hostile nesting costs no more.
    """
    kept: list[str] = []
    depth, at = 0, 0
    for tag in _THOUGHT_TAG.finditer(text):
        if not tag.group(1):
            kept += [text[at : tag.start()]] if not depth else []
            depth += 1
        elif depth:
            depth -= 1
        else:
            kept.clear()
        at = tag.end()
    return "".join(kept if depth else [*kept, text[at:]]).strip()


def strip_own_thoughts(text: str) -> str:
    """As `strip_thoughts`, but tags that are quoted, or stand amid a sentence, stay.

    For texts that tell what others said: whoever says ``</think>`` must not wipe out what a
    summary tells before it. A thought begins where the text, a line or another thought's end
    does; a closing tag without one counts where it is alone on its line.
    """
    kept: list[str] = []
    depth, at = 0, 0
    for tag in _THOUGHT_TAG.finditer(text):
        before = text[max(at, tag.start() - _AROUND) : tag.start()].rstrip(" \t")
        after = text[tag.end() : tag.end() + _AROUND].lstrip(" \t")
        first = not before or before.endswith("\n")
        if before[-1:] in _MARKS or after[:1] in _MARKS:
            continue
        if not tag.group(1) and (depth or first):
            kept += [text[at : tag.start()]] if not depth else []
            depth += 1
        elif tag.group(1) and depth:
            depth -= 1
        elif tag.group(1) and first and (not after or after.startswith("\n")):
            kept.clear()
        else:
            continue
        at = tag.end()
    return "".join(kept if depth else [*kept, text[at:]]).strip()


_AROUND = 8
_MARKS = tuple("\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb")


def strip_control(text: str) -> str:
    """Text without ANSI sequences and control characters; tabs and returns become usual."""
    text = _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _CONTROL.sub("", text.replace("\t", " "))


def strip_label(text: str, names: Iterable[str]) -> str:
    """Text without a leading ``Aria:``, ``[Aria]``, ``Aria says, "..."`` or ``Assistant:``.

    Args:
        text: The reply.
        names: The assistant's names; `assistant` is always one.
    """
    who = "|".join(re.escape(name) for name in (*names, "assistant") if name)
    body = text.strip()
    for pattern in _label_patterns(who):
        body = re.sub(pattern, "", body, count=1, flags=re.I)
    return body.strip()


def _label_patterns(who: str) -> tuple[str, ...]:
    verb = r"(?:says?|said|replies|replied|answers?|answered|whispers?|asks?|asked)"
    reference = r"(?:\s*\[[^\]\n]{1,40}\])?"
    return (
        rf"^\[(?:{who})\]\s*:?\s*",
        rf"^<(?:{who})>\s*:?\s*",
        rf"^(?:{who}){reference}\s+{verb}\s*[,:]\s*(?=[\"\u201c'])",
        rf"^(?:{who}){reference}\s+{verb}\s*:\s*",
        rf"^(?:{who}){reference}\s*:\s*",
    )


def strip_quotes(text: str) -> str:
    """Text without one pair of quote marks around all of it; a JSON string is decoded."""
    body = text.strip()
    for left, right in _QUOTES:
        inner = body[1:-1]
        whole = len(body) > 2 and body.startswith(left) and body.endswith(right)
        if whole and left not in inner and right not in inner:
            return inner.strip()
    value = _loaded(body) if body.startswith('"') else None
    return value.strip() if isinstance(value, str) else body


# Each rule turns one kind of markdown into the words it marks up, in this order.
_MARKUP: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.M), ""),
    (
        re.compile(
            r"!?\[([^\[\]\n]{1,300})\]\([^()\n]{0,500}(?:\([^()\n]{0,99}\))?[^()\n]{0,99}\)"
        ),
        r"\1",
    ),
    (re.compile(r"<((?:https?|mailto):[^\s<>]{1,500})>"), r"\1"),
    (re.compile(r"^[ \t]*#{1,6}[ \t]+", re.M), ""),
    (re.compile(r"^[ \t]*(?:(?:- ?){3,}|(?:\* ?){3,}|(?:_ ?){3,})[ \t]*$", re.M), ""),
    (re.compile(r"^[ \t]*(?:[-*+\u2022][ \t]+|>[ \t]?)", re.M), ""),
    (re.compile(r"\*\*|~~|(?<!\w)__(?=\w)|(?<=\S)__(?!\w)"), ""),
    (re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,500})(?<=\S)\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<!\w)_(?=[^\s_])([^_\n]{1,500})(?<=\S)_(?!\w)"), r"\1"),
    (re.compile(r"`+"), ""),
    (re.compile(r"</?(?:b|i|u|em|strong|code|pre|p|br|div|span|ul|ol|li)\s?/?>", re.I), ""),
)


def strip_markup(text: str) -> str:
    """Markdown and simple HTML as plain text; blank lines and double spaces go."""
    for pattern, plain in _MARKUP:
        text = pattern.sub(plain, text)
    lines = (re.sub(r" {2,}", " ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


@dataclass(frozen=True)
class SplitReply:
    """A reply in pieces a MUD client shows well.

    Args:
        pieces: In order; none empty, none longer than the limit.
        left_out: Characters of the reply that are in no piece.
    """

    pieces: tuple[str, ...]
    left_out: int = 0


def split_reply(text: str, limit: int = REPLY_CHARS, most_pieces: int = REPLY_PIECES) -> SplitReply:
    """Split a reply at paragraph, sentence or word borders.

    Args:
        text: A cleaned reply.
        limit: Most characters of a piece, at least 1.
        most_pieces: Most pieces; what comes after them is left out.

    Returns:
        The pieces and how many characters they lack. A word longer than `limit` is cut.
    """
    pieces: list[str] = []
    rest = text.strip()
    while rest and len(pieces) < most_pieces:
        at = _border(rest, limit)
        pieces.append(rest[:at].rstrip())
        rest = rest[at:].lstrip()
    return SplitReply(tuple(pieces), len(rest))


def _border(text: str, limit: int) -> int:
    """Where the next piece ends: the last good border within `limit`, the better kind first."""
    if len(text) <= limit:
        return len(text)
    head = text[: limit + 1]
    for pattern, least in (
        (r"\n", 0.5),
        (r"[.!?\u2026][\"'\u201d\u2019)]*(?=\s)", 0.4),
        (r"\s", 0),
    ):
        ends = [found.end() for found in re.finditer(pattern, head)]
        good = [end for end in ends if limit * least < end and len(head[:end].rstrip()) <= limit]
        if good:
            return good[-1]
    return limit


_REFUSAL = re.compile(
    r"""^\W*(?:
        (?:i['\u2019]?m|i\s+am|we['\u2019]?re)\s+(?:very\s+|really\s+|truly\s+)?
            (?:sorry|afraid|unable|not\s+able|not\s+comfortable)\b
      | (?:sorry|apologies|my\s+apologies|unfortunately)\b[^.!?\n]{0,40}
            \b(?:can['\u2019]?t|cannot|can\s+not|unable|not\s+able|won['\u2019]?t)\b
      | i\s+(?:apologi[sz]e|regret)\b
      | (?:i|we)\s+(?:can['\u2019]?t|cannot|can\s+not|won['\u2019]?t|will\s+not|
            must\s+decline|decline)\s+(?:\w+\s+){0,2}
            (?:help|assist|do|comply|fulfil|fulfill|provide|create|write|summari[sz]e|continue|
               process|complete|generate|discuss|engage|to\b)
      | as\s+an?\s+(?:ai|artificial|language\s+model|large\s+language|assistant)\b[^.!?\n]{0,80}
            \b(?:can['\u2019]?t|cannot|unable|not\s+able|don['\u2019]?t|do\s+not|won['\u2019]?t)\b
      | (?:this|that|your)\s+(?:request|content|conversation)\s+(?:\w+\s+){0,3}
            (?:violates?|against|cannot\s+be|can['\u2019]?t\s+be)\b
    )""",
    re.I | re.X,
)
# A refusal is short, or says so at once; a long text that begins with "I'm sorry" tells a story.
_REFUSAL_CHARS = 600


def is_refusal(text: str) -> bool:
    """Whether a text is a model's refusal instead of an answer. A guess from its beginning."""
    body = strip_own_thoughts(text)
    return len(body) <= _REFUSAL_CHARS and bool(_REFUSAL.match(body))


_CALL_TAGS = re.compile(
    r"^[ \t]*+(?:<\|?(?:tool_calls?|function_calls?|function=|invoke\b|tool_use|python_tag|"
    r"tool_code)|\[TOOL_CALLS?\]|<?\uff5c?(?:tool)?\u2581calls\u2581|<\uff5ctool)",
    re.I | re.M,
)
_CALL_KEYS = ({"name", "arguments"}, {"name", "parameters"}, {"tool", "args"}, {"function"})
_CALL_KEYS_MORE = ({"tool_calls"}, {"tool_call"}, {"function_call"}, {"action", "action_input"})
_CALL_LINE = re.compile(r"^[A-Za-z_][\w.]*\((?:\s*[A-Za-z_]\w*\s*=.*|\s*\{.*\}\s*|)\)\s*;?$", re.S)


def looks_like_tool_call(text: str) -> bool:
    """Whether a text is a tool call written out, in any of the usual forms, not prose.

    Prose that quotes one, as somebody may have said it, is none: a call begins a line, and where
    it is one that can be read, little else stands beside it.
    """
    head = strip_own_thoughts(text)[:CLEANED_CHARS]
    body = _without_fence(head)
    calls, rest = _calls_in(head)
    if _CALL_TAGS.search(body) or (calls and len(rest) < len(head) / 2):
        return True
    if _CALL_LINE.match(body):
        return True
    return _is_call_value(_loaded(body))


def _without_fence(text: str) -> str:
    fenced = re.match(r"^\s*```\w*\s*\n(.*?)\n?\s*```\s*$", text, re.S)
    return (fenced.group(1) if fenced else text).strip()


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_call_value(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_is_call_value(item) for item in value)
    if not isinstance(value, dict):
        return False
    return any(keys <= value.keys() for keys in (*_CALL_KEYS, *_CALL_KEYS_MORE))


@dataclass(frozen=True)
class TextToolCall:
    """One call found in a text.

    Args:
        name: The tool's name, empty if it could not be read.
        arguments: Its arguments, empty if they could not be read.
        error: What is wrong with the call, for the model to read; empty if nothing is.
        source: The call as it was written.
    """

    name: str
    arguments: Mapping[str, Any]
    error: str = ""
    source: str = ""


_CALL_MARKS = ("TOOL", "```tool", "<tool_call>")
# Possessive, so that a long run of blanks is gone through once.
_TOOL_LINE = re.compile(r"^[ \t]*+(?:\*\*)?TOOL(?:\*\*)?[ \t]*+(?::[ \t]*+)?(?=\{)", re.M)
_FENCED_TOOL = re.compile(
    r"^[ \t]*```(?:tool|tool_call|tool_code)[ \t]*\n(.*?)(?:^[ \t]*```|\Z)", re.M | re.S
)
_TAGGED_TOOL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.S)


def parse_text_tool_calls(text: str) -> tuple[tuple[TextToolCall, ...], str]:
    """The tool calls written in a text, and the text without them.

    Understood are ``TOOL {...}`` at the start of a line (the object may run over several
    lines), and the same object in a fence marked ``tool`` or in ``<tool_call>`` tags.

    Args:
        text: What the model wrote; thoughts are left out first.

    Returns:
        The calls in order (one that cannot be read has its `error` set) and the rest.
    """
    return _calls_in(strip_thoughts(text))


def _calls_in(body: str) -> tuple[tuple[TextToolCall, ...], str]:
    """The calls in a text without thoughts, and the rest of it."""
    if not any(mark in body for mark in _CALL_MARKS):
        return (), body
    found = _marked_calls(body)
    for match in _TOOL_LINE.finditer(body):
        if len(found) >= MOST_CALLS:
            break
        if not any(start <= match.start() < end for start, end, _ in found):
            end = _object_end(body, match.end())
            found.append((match.start(), end, _read_call(body[match.end() : end])))
    found.sort(key=lambda item: item[0])
    return tuple(call for _, _, call in found), _outside(body, found)


def _marked_calls(text: str) -> list[tuple[int, int, TextToolCall]]:
    """Calls in fences and tags: where each starts, where it ends, what it says."""
    marks = (*_FENCED_TOOL.finditer(text), *_TAGGED_TOOL.finditer(text))
    return [(m.start(), m.end(), _read_call(m.group(1))) for m in marks[:MOST_CALLS]]


def _outside(text: str, found: Sequence[tuple[int, int, TextToolCall]]) -> str:
    kept, at = [], 0
    for start, end, _ in found:
        kept.append(text[at:start])
        at = max(at, end)
    lines = "".join([*kept, text[at:]]).split("\n")
    return "\n".join(line for line in lines if line.strip()).strip()


def _object_end(text: str, start: int) -> int:
    """Where a JSON object ends; where it is broken, the end of its line."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        line_end = text.find("\n", start)
        return len(text) if line_end < 0 else line_end


def _read_call(source: str) -> TextToolCall:
    source = re.sub(r"^TOOL\s*:?\s*", "", source.strip())
    try:
        value = json.loads(source, strict=False)
    except (ValueError, RecursionError) as error:
        return TextToolCall(
            _guessed_name(source), {}, f"the call is not valid JSON: {error}", source
        )
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return TextToolCall("", {}, 'a call needs {"name": ..., "arguments": {...}}', source)
    arguments = value.get("arguments", value.get("parameters"))
    if arguments is not None and not isinstance(arguments, dict):
        return TextToolCall(value["name"], {}, "`arguments` must be a JSON object", source)
    return TextToolCall(value["name"], arguments or {}, "", source)


def _guessed_name(source: str) -> str:
    found = re.search(r'"name"\s*:\s*"([^"\n]*)"', source)
    return found.group(1) if found else ""


def chat_tool_calls(
    found: Iterable[TextToolCall], make_id: Callable[[], str]
) -> tuple[dict[str, Any], ...]:
    """Calls found in a text in the chat format, so that one executor serves both protocols.

    A call that could not be read keeps its own broken text as arguments, so that the executor
    reports it as it reports bad arguments of a provider's call.
    """
    return tuple(_chat_call(call, make_id()) for call in found)


def _chat_call(call: TextToolCall, call_id: str) -> dict[str, Any]:
    arguments = call.source if call.error else json.dumps(call.arguments, ensure_ascii=False)
    function = {"name": call.name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def text_tool_instructions(tools: Iterable[Mapping[str, Any]]) -> str:
    """What the system prompt says of tools to a model without tool calling.

    Args:
        tools: Tools in the chat format, ``{"type": "function", "function": {...}}``.
    """
    listed = "\n".join(_tool_line(tool.get("function", tool)) for tool in tools)
    if not listed:
        return ""
    return (
        "You can use tools. To use one, write a line of its own that starts with TOOL, followed "
        "by a JSON object on the same line:\n"
        'TOOL {"name": "<tool>", "arguments": {"<argument>": <value>}}\n'
        "You may write several such lines. Then stop: the results come in the next message. "
        "Everything else you write is spoken aloud.\nTools:\n" + listed
    )


def _tool_line(function: Mapping[str, Any]) -> str:
    parameters = function.get("parameters") or {}
    required = set(parameters.get("required") or ())
    properties = parameters.get("properties") or {}
    arguments = ", ".join(_argument(n, p, n in required) for n, p in properties.items())
    return f"- {function['name']}({arguments}): {function.get('description', '')}".rstrip(": ")


def _argument(name: str, schema: Mapping[str, Any], required: bool) -> str:
    kind = "|".join(map(str, schema.get("enum") or ())) or str(schema.get("type", "any"))
    about = f" = {schema['description']}" if schema.get("description") else ""
    return f"{name}{'' if required else '?'}: {kind}{about}"
