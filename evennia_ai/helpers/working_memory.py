"""Working memory: what the assistant is in the middle of talking about, and with whom.

A plain dict of conversations. What is said aloud to a partner and what is said in private are
two conversations, so that one never leaks into the other.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from evennia_ai.core.audience import PUBLIC, normalised, visible

Conversation = dict[str, Any]

# Lines kept of a conversation: enough to pick up the thread, the history holds the rest.
MAX_LINES = 12
# Words of the last question or statement that name a topic.
TOPIC_WORDS = 8


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
    speaker: str | None = None,
    max_lines: int = MAX_LINES,
) -> dict[str, Conversation]:
    """Conversations with one more line.

    Args:
        conversations: Conversations by key (`conversation_key`).
        partner: Stable id of the one the assistant talks with.
        text: What was said.
        at: When, seconds since the epoch.
        audience: Who heard it.
        speaker: Who said it, by id; the partner where it is None.
        max_lines: Newest lines that are kept.

    Returns:
        A new dict; a conversation is ``{"partner", "audience", "last_at", "topic", "lines"}``,
        a line ``{"speaker", "text", "at"}``. The partner's words give the topic.
    """
    key = conversation_key(partner, audience)
    before = conversations.get(key, {})
    said = " ".join(text.split())
    line = {"speaker": speaker or partner, "text": said, "at": at}
    topic = _topic(said) if line["speaker"] == partner else ""
    after: Conversation = {
        "partner": partner,
        "audience": normalised(audience),
        "last_at": max(at, before.get("last_at", at)),
        "topic": topic or before.get("topic", ""),
        "lines": [*before.get("lines", ()), line][-max_lines:],
    }
    return {**conversations, key: after}


def clear_stale_conversations(
    conversations: Mapping[str, Mapping[str, Any]], now: float, max_age_s: float = 3600.0
) -> dict[str, Any]:
    """Decide which conversations are over: those in which nobody spoke for a while.

    Args:
        conversations: Conversations by key; left as they are, see `without`.
        now: Seconds since the epoch.
        max_age_s: Seconds of silence after which a conversation is over; an hour, as people
            who come back to a tavern later the same evening start anew.

    Returns:
        ``{"cleared": int, "kept": int, "stale": [keys, sorted]}``.
    """
    stale = sorted(
        key
        for key, conversation in conversations.items()
        if now - float(conversation.get("last_at") or 0.0) > max_age_s
    )
    return {"cleared": len(stale), "kept": len(conversations) - len(stale), "stale": stale}


def without(
    conversations: Mapping[str, Conversation], keys: Iterable[str]
) -> dict[str, Conversation]:
    """Conversations without those of the given keys."""
    gone = set(keys)
    return {key: value for key, value in conversations.items() if key not in gone}


def visible_conversations(
    conversations: Mapping[str, Conversation], audience: str
) -> list[Conversation]:
    """The conversations a turn for an audience may know of, newest first."""
    shown = [item for item in conversations.values() if visible(item["audience"], audience)]
    return sorted(shown, key=lambda item: float(item["last_at"]), reverse=True)


def _topic(text: str) -> str:
    return " ".join(text.split()[:TOPIC_WORDS])
