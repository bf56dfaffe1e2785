"""Requests to the offline model, as its tests write them."""

import json

from evennia_ai.history.messages import note, talk_line
from evennia_ai.llm_interaction.conversation import HERE, NOW
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
SYSTEM = {
    "role": "system",
    "content": "You are Aria, in a game.\n\nA barkeep.\n\nWhere you are: The Gilded Lantern",
}


def said(who, text, channel="say"):
    return {"role": "user", "content": talk_line(who, channel, text)}


def answered(text):
    return {"role": "assistant", "content": text}


def moment(*people, answer=None):
    """The newest turn; `answer` is who said what it answers, and what it was."""
    rows = [note(NOW, "dusk"), note(HERE, ", ".join(people))]
    if answer:
        rows.append(talk_line(answer[0], *answer[2:] or ["say"], answer[1]))
    return {"role": "user", "content": "\n".join(rows)}


def asking(who, text, *before, system=SYSTEM):
    """A request: somebody says something, behind other messages."""
    return [system, *before, moment(who, answer=(who, text))]


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


def play(question, hits, who="Bob", before=(), seen=None, people=()):
    """Run the tool loop for one question; returns the final words, None for silence.

    `hits` are what a search returns, `seen` what another tool does to its arguments; without it
    there is nothing to look at. `people` are those here besides who asks.
    """
    newest = moment(who, *people, answer=(who, question))
    messages = [SYSTEM, *before, said(who, question), newest]
    for _ in range(6):
        reply = respond(messages, TOOLS)
        if not reply.tool_calls:
            return reply.content
        if any(call.name == "noop" for call in reply.tool_calls):
            return None
        messages.append(calling(*reply.tool_calls))
        for i, call in enumerate(reply.tool_calls):
            other = seen(call.arguments) if seen else {"error": "there is nothing here"}
            value = {"results": hits} if call.name == "search_memory" else other
            messages.append(result(i, call.name, value))
    raise AssertionError(f"the tool loop did not end: {messages}")
