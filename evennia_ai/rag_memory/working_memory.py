"""Working memory: what the assistant is in the middle of talking about, and with whom.

A plain dict of conversations, made of what it hears and, after a start, of the live history. Public
and private talk with a partner are two conversations, so that one never leaks into the other.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from evennia_ai.history.audience import PUBLIC, normalised, visible
from evennia_ai.history.messages import SPEECH, Message
from evennia_ai.recall.values import seconds

Conversation = dict[str, Any]

# Words of the last question or statement that name a topic.
TOPIC_WORDS = 8
# Seconds of silence after which a conversation is over: who comes back to a tavern starts again.
MAX_AGE_S = 3600.0


def conversation_key(partner: str, audience: str = PUBLIC) -> str:
    """The key of a conversation: the partner's id, and the audience unless it is public."""
    audience = normalised(audience)
    return partner if audience == PUBLIC else f"{partner} {audience}"


def note(
    conversations: Mapping[str, Conversation],
    partner: str,
    text: str,
    at: float,
    audience: str = PUBLIC,
) -> dict[str, Conversation]:
    """A new dict of conversations with one more line that a partner (stable id) said.

    A conversation is ``{"partner", "audience", "last_at" (seconds since the epoch), "topic"}``.
    """
    key = conversation_key(partner, audience)
    before = conversations.get(key, {})
    after: Conversation = {
        "partner": partner,
        "audience": normalised(audience),
        "last_at": max(at, before.get("last_at", at)),
        "topic": " ".join(text.split()[:TOPIC_WORDS]) or before.get("topic", ""),
    }
    return {**conversations, key: after}


def from_history(messages: Sequence[Message], now: float) -> dict[str, Conversation]:
    """The conversations in progress by key, from the end of a history, oldest message first."""
    timed = ((seconds(message.created_at), message) for message in reversed(messages))
    recent = list(takewhile(lambda each: now - each[0] <= MAX_AGE_S, timed))
    talks: dict[str, Conversation] = {}
    for at, message in reversed(recent):
        partner = message.speaker_id
        if partner and message.role == "user" and message.channel in SPEECH:
            talks = note(talks, partner, message.content, at, message.audience)
    return talks


def clear_stale_conversations(
    conversations: Mapping[str, Mapping[str, Any]], now: float
) -> dict[str, Any]:
    """Decide which conversations are over: those in which nobody spoke for `MAX_AGE_S`.

    They stay in `conversations`. Returns ``{"cleared": int, "kept": int, "stale": [sorted keys]}``.
    """
    stale = sorted(
        key
        for key, conversation in conversations.items()
        if now - float(conversation.get("last_at") or 0.0) > MAX_AGE_S
    )
    return {"cleared": len(stale), "kept": len(conversations) - len(stale), "stale": stale}


def visible_conversations(
    conversations: Mapping[str, Conversation], audience: str, now: float
) -> list[Conversation]:
    """The conversations in progress that a turn for an audience may know of, newest first."""
    stale = clear_stale_conversations(conversations, now)["stale"]
    shown = (item for key, item in conversations.items() if key not in stale)
    allowed = [item for item in shown if visible(item["audience"], audience)]
    return sorted(allowed, key=lambda item: float(item["last_at"]), reverse=True)
