"""What a model or its server cannot do, learned from its refusals, and requests in its shape. Pure.

`learned` reads a refusal by the tables of `servers.toml`, `reshaped` gives a request the shape that
a profile asks for. A refusal that no line of the tables knows is met with the `plainest` shape.

>>> profile = learned(UNKNOWN, "Jinja Exception: System role not supported")
>>> profile.said()
['takes no system role, or wants user and assistant to alternate']
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evennia_ai.history.messages import note
from evennia_ai.history.stored import Stored
from evennia_ai.llm_interaction.conversation import alternating
from evennia_ai.llm_interaction.failures import SERVERS, Failure, joined
from evennia_ai.llm_interaction.form import form_format, form_rule
from evennia_ai.llm_interaction.values import FORM, ModelReply, ModelRequest

Chat = Mapping[str, Any]

# A reply that thinking used up is asked for again with so many times the tokens.
MORE_ROOM = 4
_FLAGS: dict[str, dict[str, str]] = SERVERS["flags"]
_REFUSALS = {
    name: re.compile(joined(flag["refused"]), re.I | re.S)
    for name, flag in _FLAGS.items()
    if "refused" in flag
}
# Fields that a request can do without, and how a refusal names them.
_FIELDS: dict[str, str] = SERVERS["fields"]
_REFUSING = joined(SERVERS["refuses"])


@dataclass(frozen=True)
class ModelProfile(Stored):
    """What is known of one model beside its window."""

    # What it cannot do and which fields it refuses: names in the tables `flags` and `fields`.
    flags: tuple[str, ...] = ()
    speech: str = ""  # how it speaks and acts, as a trial found; empty before it

    @property
    def limit_field(self) -> str:
        """The field that bounds a reply."""
        if "max_tokens" in self.flags:
            return "max_completion_tokens"
        return "max_tokens"

    def having(self, *flags: str) -> "ModelProfile":
        """The profile with more flags."""
        return replace(self, flags=tuple(dict.fromkeys((*self.flags, *flags))))

    def said(self) -> list[str]:
        """What is known, in words."""
        unknown = "refuses the field `{name}`"
        return [
            _FLAGS.get(name, {"words": unknown})["words"].format(name=name) for name in self.flags
        ]


UNKNOWN = ModelProfile()


def _refuses(text: str, name: str) -> bool:
    """Whether one sentence of a text names a field and refuses it."""
    field = rf"(?<!use )(?<!use .)(?<!when )\b(?:{_FIELDS[name]})\b"
    either = rf"(?:{_REFUSING}).{{0,80}}?{field}|{field}.{{0,80}}?(?:{_REFUSING})"
    return any(re.search(either, each, re.I) for each in re.split(r"[.!?;]\s|\n", text))


def learned(profile: ModelProfile, text: str, sent: Iterable[str] = ()) -> ModelProfile:
    """A profile with what the text of a refusal teaches; the same one if it teaches nothing new.

    `sent` are the names of the optional fields that the refused request had.
    """
    for name, pattern in _REFUSALS.items():
        if name not in profile.flags and pattern.search(text):
            return profile.having(name)
    return profile.having(*(name for name in sent if name in _FIELDS and _refuses(text, name)))


def plainest(profile: ModelProfile) -> ModelProfile:
    """The plainest shape for a model of that profile."""
    fields = (name for name in _FIELDS if not name.endswith("_tokens"))
    return profile.having("strict", "no_tools", "no_empty", *fields, "guessed")


def taught(
    profile: ModelProfile, request: ModelRequest, outcome: ModelReply | Failure
) -> ModelProfile:
    """A profile with what an outcome teaches; the same one if it teaches nothing.

    A reply that thoughts used up teaches that the model needs room, an unknown refusal the plainest
    shape.
    """
    if isinstance(outcome, ModelReply) and outcome.is_empty:
        return profile.having("thinks")
    if isinstance(outcome, ModelReply) or not outcome.row.get("of_shape"):
        return profile
    sent = [profile.limit_field, *request.extra]
    if request.thinking != "default" or "thinks" in profile.flags:
        sent += ["reasoning_effort", "chat_template_kwargs"]
    if request.stop:
        sent.append("stop")
    if FORM in (request.speech, profile.speech):
        sent.append("response_format")
    new = learned(profile, outcome.said, sent)
    if new == profile and outcome.kind == "bad_request":
        return plainest(profile)
    return new


def reshaped(request: ModelRequest, profile: ModelProfile) -> ModelRequest:
    """A request in the shape that a model takes; fields that it refuses are left out later."""
    flags, speech = profile.flags, request.speech or profile.speech
    asks_for_form = speech == FORM and request.tools and request.messages
    if asks_for_form and "response_format" not in flags:  # instead of native tool calls
        first, *others = _without_calls(request.messages)
        rule = f"{first['content']}\n\n{form_rule(request.tools)}"
        form = form_format(request.tools, request.reported)
        request = replace(
            request,
            messages=({**first, "content": rule}, *others),
            extra={**request.extra, "response_format": form},
        )
    if speech == FORM or "no_tools" in flags:
        request = replace(request, tools=())
    messages: Sequence[Chat] = request.messages
    if not request.tools:  # many servers want tools beside old calls
        messages = _without_calls(messages)
    if "strict" in flags:
        messages = _strict(messages)
    if "thinks" in flags:
        request = replace(request, max_tokens=request.max_tokens * MORE_ROOM)
    if "thinks" in flags and request.thinking == "default":
        request = replace(request, thinking="off")
    shown = tuple(_shown(message, flags) for message in messages)
    return replace(request, messages=shown, speech=speech)


def _without_calls(messages: Sequence[Chat]) -> Sequence[Chat]:
    """Messages for a request without tools: what a call gave is a note of the user's."""
    shown: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            text = note(str(message.get("name")), message["content"])
            shown.append({"role": "user", "content": text})
        elif not message.get("tool_calls"):
            shown.append(dict(message))
        elif message.get("content"):
            shown.append({"role": "assistant", "content": message["content"]})
    return alternating(shown)


_SILENCE = "…"
# What a line of the user is, where one must be and nobody spoke.
_GO_ON = "[Go on.]"


def _shown(message: Chat, flags: Sequence[str]) -> dict[str, Any]:
    """A message as a model takes it."""
    shown = dict(message)
    calls = shown.get("tool_calls")
    if calls and "thoughts_back" in flags:
        shown["reasoning_content"] = shown.get("reasoning_content") or _SILENCE
    if "short_ids" in flags:
        if calls:
            shown["tool_calls"] = [{**call, "id": _short(call["id"])} for call in calls]
        if "tool_call_id" in shown:
            shown["tool_call_id"] = _short(shown["tool_call_id"])
    if "no_empty" in flags and not shown.get("content"):
        shown["content"] = _SILENCE
    return shown


def _short(call_id: str) -> str:
    return hashlib.sha256(call_id.encode()).hexdigest()[:9]


def _strict(messages: Sequence[Chat]) -> Sequence[Chat]:
    """Messages that begin and end with the user's, and of which no two of a role are in a row.

    The system's text begins the first of the user's. A line of the user that follows a tool's
    result would be a second one, as templates count tools as the user's: it goes into the result.
    """
    rules = "\n\n".join(str(m["content"]) for m in messages if m["role"] == "system")
    talk = [dict(message) for message in messages if message["role"] != "system"]
    if rules:
        talk.insert(0, {"role": "user", "content": f"{rules}\n"})
    elif not talk or talk[0]["role"] != "user":
        talk.insert(0, {"role": "user", "content": _GO_ON})
    shown: list[dict[str, Any]] = []
    for message in alternating(talk):
        if message["role"] == "user" and shown and shown[-1]["role"] == "tool":
            shown[-1]["content"] += f"\n\n{message['content']}"
        else:
            shown.append(message)
    if shown[-1]["role"] == "assistant":
        shown.append({"role": "user", "content": _GO_ON})
    return shown
