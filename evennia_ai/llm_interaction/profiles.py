"""What a model or its server cannot do, learned from its refusals, and requests in its shape. Pure.

`learned` reads a refusal by the tables of `servers.toml`, `reshaped` gives a request the shape that
a profile asks for. A refusal that no line of the tables knows is met with the `plainest` shape.

>>> profile = learned(UNKNOWN, "Jinja Exception: System role not supported")
>>> profile.said()
['takes no system role']
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evennia_ai.history.frames import note
from evennia_ai.history.stored import Stored
from evennia_ai.llm_interaction.conversation import alternating
from evennia_ai.llm_interaction.failures import SERVERS, joined
from evennia_ai.llm_interaction.form import form_format, form_rule
from evennia_ai.llm_interaction.values import FORM, ModelRequest

Chat = Mapping[str, Any]

# A reply that thinking used up is asked for again with so many times the tokens.
MORE_ROOM = 4


@dataclass(frozen=True)
class Profile(Stored):
    """What is known of one model beside its window. All defaults: nothing.

    `servers.toml` says each flag in words, and how refusals tell it. `without` names the fields
    that it refuses, `most_tokens` bounds its replies; a `guessed` profile, as a refusal was not
    understood, is the plainest shape.
    """

    completion_limit: bool = False
    thoughts_back: bool = False
    short_ids: bool = False
    tools_stay: bool = False
    no_system: bool = False
    no_tools: bool = False
    alternates: bool = False
    no_empty: bool = False
    names_thinking: bool = False
    thinks: bool = False
    thinks_less: bool = False
    guessed: bool = False
    without: tuple[str, ...] = ()
    most_tokens: int = 0
    speech: str = ""  # how it speaks and acts, as a trial found; empty before it

    @property
    def limit_field(self) -> str:
        """The field that bounds a reply."""
        return "max_completion_tokens" if self.completion_limit else "max_tokens"

    def said(self) -> list[str]:
        """What is known, in words."""
        shown = [flag["words"] for name, flag in SERVERS["flags"].items() if getattr(self, name)]
        if self.most_tokens:
            shown.append(f"gives replies of at most {self.most_tokens} tokens")
        return shown + [f"refuses the field `{name}`" for name in self.without]


UNKNOWN = Profile()
_REFUSALS = tuple(
    (re.compile(joined(flag["refused"]), re.I | re.S), name)
    for name, flag in SERVERS["flags"].items()
    if "refused" in flag
)

# Fields of no weight, and how a refusal names them.
_OPTIONAL: dict[str, str] = SERVERS["fields"]
# How a refusal names the most tokens that a reply may have.
_MOST = re.compile(
    r"(?:at most|up to|no more than|less than or equal to|<=|\d >|(?:not|cannot) exceed"
    r"|(?:range|between|maximum|limit)\b[^.\d]{0,60}(?:1 ?(?:,|and|to|-) ?)?)"
    r"\W{0,3}(\d[\d,]{1,8})\b",
    re.I,
)


def _most_tokens(text: str) -> int:
    """The most tokens of a reply that a refusal names; 0 if it names none."""
    of_reply = re.search(r"max_(?:completion_|output_|new_)?tokens", text, re.I)
    found = _MOST.search(text) if of_reply and "context length" not in text else None
    return int(found[1].replace(",", "")) if found else 0


def _refuses(text: str, name: str) -> bool:
    """Whether one sentence of a text names a field and refuses it."""
    is_limit = name.endswith("_tokens")
    denies, bounds = (joined(SERVERS["refuses"][each]) for each in ("field", "value"))
    words = denies if is_limit else f"{denies}|{bounds}"
    field_ = rf"(?<!use )(?<!use .)(?<!when )\b(?:{_OPTIONAL[name]})\b"
    either = re.compile(rf"(?:{words}).{{0,80}}?{field_}|{field_}.{{0,80}}?(?:{words})", re.I)
    return any(
        either.search(each) and not (is_limit and re.search(r"\bvalue", each, re.I))
        for each in re.split(r"[.!?;]\s|\n", text)
    )


def learned(profile: Profile, text: str, sent: Iterable[str] = ()) -> Profile:
    """A profile with what the text of a refusal teaches; the same one if it teaches nothing new.

    `sent` are the names of the optional fields that the refused request had.
    """
    for pattern, trait in _REFUSALS:
        if pattern.search(text) and not getattr(profile, trait):
            traits: dict[str, Any] = {trait: True}
            return replace(profile, **traits)
    if (most := _most_tokens(text)) and not 0 < profile.most_tokens <= most:
        return replace(profile, most_tokens=most)
    named = [
        name
        for name in sent
        if name in _OPTIONAL and name not in profile.without and _refuses(text, name)
    ]
    return replace(profile, without=(*profile.without, *named)) if named else profile


def plainest(profile: Profile) -> Profile:
    """The plainest shape for a model of that profile."""
    return replace(
        profile,
        no_system=True,
        alternates=True,
        no_tools=True,
        no_empty=True,
        without=tuple(name for name in _OPTIONAL if not name.endswith("tokens")),
        guessed=True,
    )


def reshaped(request: ModelRequest, profile: Profile) -> ModelRequest:
    """A request in the shape that a model takes."""
    speech = request.speech or profile.speech
    if speech == FORM:
        request = _in_form(request, profile)
    messages: Sequence[Chat] = request.messages
    tools, extra = request.tools, request.extra
    if profile.no_tools or (profile.tools_stay and not tools):
        messages, tools = _without_calls(messages), ()
    if profile.thoughts_back:
        messages = [
            {**m, "reasoning_content": m.get("reasoning_content") or _SILENCE}
            if m.get("tool_calls")
            else m
            for m in messages
        ]
    if profile.short_ids:
        messages = [_with_short_ids(m) for m in messages]
    if profile.no_system:
        messages = _without_system(messages)
    if profile.alternates:
        messages = _alternating(messages)
    if profile.no_empty:
        messages = [m if m.get("content") else {**m, "content": _SILENCE} for m in messages]
    if profile.without:
        extra = {k: v for k, v in extra.items() if k not in profile.without}
    most = request.max_tokens * (MORE_ROOM if profile.thinks else 1)
    return replace(
        request,
        messages=tuple(messages),
        tools=tuple(tools),
        speech=speech,
        extra=extra,
        stop=() if "stop" in profile.without else request.stop,
        max_tokens=min(most, profile.most_tokens or most),
        thinking="off" if profile.thinks_less else request.thinking,
    )


def _in_form(request: ModelRequest, profile: Profile) -> ModelRequest:
    """A request that asks for a JSON object instead of native tool calls."""
    messages = _without_calls(request.messages)
    if not (request.tools and messages) or "response_format" in profile.without:
        return replace(request, messages=tuple(messages), tools=())
    first = messages[0]
    rule = f"{first['content']}\n\n{form_rule(request.tools)}"
    return replace(
        request,
        messages=({**first, "content": rule}, *messages[1:]),
        tools=(),
        extra={**request.extra, "response_format": form_format(request.tools, request.reported)},
    )


def _without_calls(messages: Sequence[Chat]) -> Sequence[Chat]:
    """Messages for a model that takes no tools: what a call gave is a note of the user's."""
    shown: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            shown.append(
                {"role": "user", "content": note(str(message["name"]), message["content"])}
            )
        elif not message.get("tool_calls"):
            shown.append(dict(message))
        elif message.get("content"):
            shown.append({"role": "assistant", "content": message["content"]})
    return alternating(shown)


_SILENCE = "…"
# What a line of the user is, where one must be and nobody spoke.
_GO_ON = "[Go on.]"


def _with_short_ids(message: Chat) -> Chat:
    shorter = dict(message)
    if calls := message.get("tool_calls"):
        shorter["tool_calls"] = [{**call, "id": _short(call["id"])} for call in calls]
    if "tool_call_id" in message:
        shorter["tool_call_id"] = _short(message["tool_call_id"])
    return shorter


def _short(call_id: str) -> str:
    return hashlib.sha256(call_id.encode()).hexdigest()[:9]


def _without_system(messages: Sequence[Chat]) -> list[Chat]:
    """The system's text as the beginning of the first line of the user."""
    rules = "\n\n".join(str(m["content"]) for m in messages if m["role"] == "system")
    rest = [m for m in messages if m["role"] != "system"]
    if not rules:
        return rest
    if rest and rest[0]["role"] == "user":
        return [{**rest[0], "content": f"{rules}\n\n{rest[0]['content']}"}, *rest[1:]]
    return [{"role": "user", "content": rules}, *rest]


def _alternating(messages: Sequence[Chat]) -> list[Chat]:
    """Messages without two of the same role in a row; a user's are the first and the last.

    A line of the user that follows a tool's result would be a second one: templates count tools as
    the user's. It goes into the result.
    """
    shown: list[Chat] = []
    for message in messages:
        role, last = message["role"], shown[-1]["role"] if shown else ""
        if role == "assistant" and last in ("", "system"):
            shown.append({"role": "user", "content": _GO_ON})
        is_plain = not message.get("tool_calls") and not (shown and shown[-1].get("tool_calls"))
        if role == last and role != "tool" and is_plain or (role, last) == ("user", "tool"):
            both = (shown[-1].get("content"), message.get("content"))
            shown[-1] = {**shown[-1], "content": "\n\n".join(filter(None, both))}
        else:
            shown.append(message)
    if shown and shown[-1]["role"] in ("assistant", "system"):
        shown.append({"role": "user", "content": _GO_ON})
    return shown
