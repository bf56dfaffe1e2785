"""Episodic index: what of an assistant's life is in the search index, as turns.

Old entries of low importance leave retrieval, so that they do not crowd out what matters. They
never leave the journal. With whom it is in the middle of a conversation is read off the newest
messages; nothing of that is stored.
"""

from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from evennia_ai.history.messages import SPEECH, Message, tool_calls
from evennia_ai.history.pairs import ToolTraits
from evennia_ai.llm_interaction.tool_calls import spoken_text
from evennia_ai.rag_memory.journal_entry import JournalEntry
from evennia_ai.recall.values import Turn, seconds

# Summaries of summaries would only bring recalled text up again.
INDEXED_ROLES = ("user", "assistant")
# Seconds of silence after which a conversation is over: who comes back to a tavern starts again.
MAX_AGE_S = 3600.0


def turn_of_message(message: Message, traits: ToolTraits) -> Turn | None:
    """A message as a turn for the index, or None if nobody said it and no tool gave it out."""
    if message.metadata.get("context") not in (None, "awake", "unasked"):
        return None
    if message.role == "tool":
        text, audience = message.content, message.audience
        is_news = message.name not in traits.tells_nothing_new
        if not text or not is_news or text.startswith('{"error":'):
            return None  # an error, a confirmation, or itself recalled
        return Turn(message.id, "", text, message.created_at, None, audience, "tool")
    text = said_in(message, traits)
    if message.role not in INDEXED_ROLES or not text:
        return None
    speaker, at = message.speaker_name, message.created_at
    return Turn(message.id, speaker, text, at, at[:10], message.audience)


def said_in(message: Message, traits: ToolTraits) -> str:
    """What a message says to others: its content, or what its tool calls say, a line each.

    Content beside tool calls is thought, not said, unless the only call keeps silent.
    """
    calls = [call.get("function") or {} for call in tool_calls(message)]
    if any(call.get("name") not in traits.silent for call in calls):
        spoken = (spoken_text(call) for call in calls if call.get("name") in traits.speaks)
        return "\n".join(text for text in spoken if text)
    return message.content if message.channel in SPEECH else ""


def prune_low_importance_entries(entries: Iterable[JournalEntry], now: float) -> dict[str, Any]:
    """Decide which entries leave retrieval at `now`, seconds since the epoch.

    Returns ``{"pruned", "kept", "pruned_ids"}``: how many leave and stay, the ids of the former.
    """
    everything = list(entries)
    pruned = [entry.id for entry in everything if entry.is_worn(now)]
    return {"pruned": len(pruned), "kept": len(everything) - len(pruned), "pruned_ids": pruned}


def clear_stale_conversations(newest_first: Iterable[Message], now: float) -> dict[str, int]:
    """Count the conversations that are over: those in which nobody spoke for `MAX_AGE_S`.

    Returns ``{"cleared", "kept"}``: partners whose conversation is over, and goes on.
    """
    messages = [m for m in newest_first if m.role == "user" and m.channel in SPEECH]
    recent = takewhile(lambda m: now - seconds(m.created_at) <= MAX_AGE_S, messages)
    kept = {message.speaker_id for message in recent} - {""}
    everybody = {message.speaker_id for message in messages} - {""}
    return {"cleared": len(everybody - kept), "kept": len(kept)}
