"""Requests to the offline model, as its tests write them."""

import json

from evennia_ai.history.frames import answer_line, heard_line
from evennia_ai.llm_interaction.offline.brain import respond
from tests import loopback

NAMES = (
    "search_memory",
    "add_journal_entry",
    "noop",
    "move",
    "get",
    "give",
    "emote",
    "whisper",
    "tell_later",
    "look",
)
TOOLS = [{"type": "function", "function": {"name": name}} for name in NAMES]
SYSTEM = {"role": "system", "content": "Rules.\nYou are Aria\nA barkeep."}


def said(who, text, channel="say"):
    return {"role": "user", "content": heard_line(who, f"o1.{who.lower()}", channel, text)}


def answered(text):
    return {"role": "assistant", "content": text}


def moment(*people, answer=None):
    """The tail of a prompt; `answer` is who said what the turn answers, and what it was."""
    here = ", ".join(f"{name} [o1.{name.lower()}]" for name in people)
    text = f"[Present moment]\nTime: dusk\nPlace: The Gilded Lantern\nPresent: {here}"
    if answer:
        who, words = answer
        text += "\n" + answer_line(who, f"o1.{who.lower()}", "say", words)
    return {"role": "user", "content": text}


def asking(who, text, *before, system=SYSTEM):
    """A request: somebody says something, behind other messages."""
    return [system, *before, said(who, text), moment(who)]


def reply_to(who, text, *before, tools=TOOLS):
    """The reply to such a request."""
    return respond(asking(who, text, *before), tools)


def calling(*calls):
    made = [loopback.call(call.name, call.arguments, f"c{i}") for i, call in enumerate(calls)]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(number, name, value):
    content = value if isinstance(value, str) else json.dumps(value)
    return {"role": "tool", "tool_call_id": f"c{number}", "name": name, "content": content}


def after(request, *values):
    """The calls that a request brings about, and the reply to what they return."""
    made = respond(request, TOOLS).tool_calls
    results = [result(i, call.name, values[i]) for i, call in enumerate(made)]
    return made, respond([*request, calling(*made), *results], TOOLS)


def hit(text, who="Alice", memory_id="m1", at="2026-01-01T10:00:00", kind="message"):
    return {"id": memory_id, "kind": kind, "speaker": who, "at": at, "text": text}


def play(question, hits, who="Bob", before=(), seen=None):
    """Run the tool loop for one question; returns the final words, None for silence.

    `hits` are what a search returns, `seen` what another tool does to its arguments.
    """
    messages = [SYSTEM, *before, said(who, question), moment(who, answer=(who, question))]
    for _ in range(6):
        reply = respond(messages, TOOLS)
        if not reply.tool_calls:
            return reply.content
        if any(call.name == "noop" for call in reply.tool_calls):
            return None
        messages.append(calling(*reply.tool_calls))
        for i, call in enumerate(reply.tool_calls):
            other = seen(call.arguments) if seen else {"ok": True}
            value = {"results": hits} if call.name == "search_memory" else other
            messages.append(result(i, call.name, value))
    raise AssertionError(f"the tool loop did not end: {messages}")
