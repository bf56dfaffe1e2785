"""Requests to the offline model, as its tests write them."""

import json

from evennia_ai.history.frames import answer_line, heard_line
from evennia_ai.llm_interaction.offline.brain import respond

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


def moment(*people, answer=None):
    """The tail of a prompt; `answer` is who said what the turn answers, and what it was."""
    here = ", ".join(f"{name} [o1.{name.lower()}]" for name in people)
    text = f"[Present moment]\nTime: dusk\nPlace: The Gilded Lantern\nPresent: {here}"
    if answer:
        who, words = answer
        text += "\n" + answer_line(who, f"o1.{who.lower()}", "say", words)
    return {"role": "user", "content": text}


def calling(*calls):
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"c{i}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for i, call in enumerate(calls)
        ],
    }


def result(number, name, value):
    return {
        "role": "tool",
        "tool_call_id": f"c{number}",
        "name": name,
        "content": json.dumps(value),
    }


def hit(text, who="Alice", memory_id="m1", at="2026-01-01T10:00:00", kind="message"):
    return {"id": memory_id, "kind": kind, "speaker": who, "at": at, "text": text}


def play(question, hits, who="Bob", before=(), people=("Bob",)):
    """Run the tool loop for one question; returns the final words, None for silence."""
    messages = [SYSTEM, *before, said(who, question), moment(*people, answer=(who, question))]
    for _ in range(6):
        reply = respond(messages, TOOLS)
        if not reply.tool_calls:
            return reply.content
        if any(call.name == "noop" for call in reply.tool_calls):
            return None
        messages.append(calling(*reply.tool_calls))
        for i, call in enumerate(reply.tool_calls):
            found = {"results": hits} if call.name == "search_memory" else {"ok": True}
            messages.append(result(i, call.name, found))
    raise AssertionError(f"the tool loop did not end: {messages}")
