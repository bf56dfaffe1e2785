"""Working memory: with whom the assistant is in the middle of a conversation.

It is read off the newest messages; nothing is stored.
"""

from collections.abc import Iterable
from itertools import takewhile

from evennia_ai.history.messages import SPEECH, Message
from evennia_ai.recall.values import seconds

# Seconds of silence after which a conversation is over: who comes back to a tavern starts again.
MAX_AGE_S = 3600.0


def clear_stale_conversations(newest_first: Iterable[Message], now: float) -> dict[str, int]:
    """Count the conversations that are over: those in which nobody spoke for `MAX_AGE_S`.

    Returns ``{"cleared", "kept"}``: partners whose conversation is over, and goes on.
    """
    messages = [m for m in newest_first if m.role == "user" and m.channel in SPEECH]
    recent = takewhile(lambda m: now - seconds(m.created_at) <= MAX_AGE_S, messages)
    kept = {message.speaker_id for message in recent} - {""}
    everybody = {message.speaker_id for message in messages} - {""}
    return {"cleared": len(everybody - kept), "kept": len(kept)}
