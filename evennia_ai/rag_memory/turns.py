"""What of an assistant's life stands in the search index: messages and journal entries as turns.

A turn is a dict with the fields of `recall.Turn`.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.messages import SPEECH, Message, tool_calls
from evennia_ai.rag_memory.episodic_index import is_pruned
from evennia_ai.rag_memory.recalled import RECALLED
from evennia_ai.sleep.compaction.retention import NOTHING_NEW

# Summaries of summaries would only bring recalled text up again.
INDEXED_ROLES = ("user", "assistant")
# Tools that speak, of which all but `whisper` are heard by everybody.
SPEAKING_TOOLS = ("say", "emote", "whisper")


def turn_of_message(message: Message) -> dict[str, Any] | None:
    """A message as a turn for the index, or None if nobody said it and no tool gave it out."""
    if message.metadata.get("context") not in (None, "awake"):
        return None
    if message.role == "tool":
        return _turn_of_output(message)
    text = said_in(message)
    if message.role not in INDEXED_ROLES or not text:
        return None
    return {
        "id": message.id,
        "speaker": message.speaker_name,
        "text": text,
        "at": message.created_at,
        "session": message.created_at[:10],
        "audience": message.audience,
        "kind": "message",
    }


def _turn_of_output(message: Message) -> dict[str, Any] | None:
    """A tool's result as a turn; None if it is an error, a confirmation or recalled itself."""
    text = message.content
    if not text or message.name in NOTHING_NEW or text.startswith('{"error":'):
        return None
    return {
        "id": message.id,
        "speaker": "",
        "text": text,
        "at": message.created_at,
        "session": None,
        "audience": message.audience,
        "kind": "tool",
    }


def said_in(message: Message) -> str:
    """What a message says to others: its content, or what its tool calls say, a line each.

    Content beside tool calls is thought, not said, except beside nothing but keeping silent.
    """
    calls = [call.get("function") or {} for call in tool_calls(message)]
    if any(call.get("name") != "noop" for call in calls):
        aloud = message.audience == PUBLIC
        spoken = (_spoken_by(call, aloud) for call in calls)
        return "\n".join(text for text in spoken if text)
    return message.content if message.channel in SPEECH else ""


def _spoken_by(call: Mapping[str, Any], aloud: bool) -> str:
    """What a call of a tool says; what everybody would hear is refused where not all may."""
    if call.get("name") not in (SPEAKING_TOOLS if aloud else ("whisper",)):
        return ""
    try:
        arguments = json.loads(call.get("arguments") or "{}")
    except ValueError:
        return ""
    text = arguments.get("text") if isinstance(arguments, dict) else None
    return text.strip() if isinstance(text, str) else ""


def turns_of(
    messages: Iterable[Message], entries: Iterable[Mapping[str, Any]], now: float
) -> list[dict[str, Any]]:
    """Messages, and those journal entries that take part in retrieval, as turns for the index."""
    said = [turn for turn in map(turn_of_message, messages) if turn]
    return said + [turn_of_entry(entry) for entry in entries if is_indexed(entry, now)]


def _is_lived(entry: Mapping[str, Any]) -> bool:
    recalled = entry.get("source_type") == RECALLED
    return not (recalled or entry.get("withdrawn")) and bool(entry["content"].strip())


def is_indexed(entry: Mapping[str, Any], now: float) -> bool:
    """Whether a journal entry takes part in retrieval at a time, seconds since the epoch."""
    return _is_lived(entry) and not is_pruned(entry, now)


def turn_of_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A journal entry as a turn for the index."""
    kind = "summary" if entry.get("source_type") == "compaction" else "journal"
    return {
        "id": entry["id"],
        "speaker": "",
        "text": entry["content"],
        "at": entry["timestamp"],
        "session": None,
        "audience": entry["audience"],
        "kind": kind,
    }
