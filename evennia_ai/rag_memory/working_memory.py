"""Working memory: what the assistant is in the middle of talking about, and with whom.

It is read off the newest messages; nothing is stored.
"""

from collections.abc import Iterable, Iterator
from itertools import takewhile

from evennia_ai.history.messages import SPEECH, Message
from evennia_ai.recall.values import seconds

# Words of the last question or statement that name a topic.
TOPIC_WORDS = 8
# Seconds of silence after which a conversation is over: who comes back to a tavern starts again.
MAX_AGE_S = 3600.0


def last_topics(newest_first: Iterable[Message], now: float) -> dict[str, str]:
    """What each partner (stable id) in a conversation in progress last spoke of, newest first."""
    topics = dict[str, str]()
    for partner, message in _spoken(newest_first, now):
        if topic := " ".join(message.content.split()[:TOPIC_WORDS]):
            topics.setdefault(partner, topic)
    return topics


def clear_stale_conversations(newest_first: Iterable[Message], now: float) -> dict[str, int]:
    """Count the conversations that are over: those in which nobody spoke for `MAX_AGE_S`.

    Returns ``{"cleared", "kept"}``: partners whose conversation is over, and goes on.
    """
    messages = list(newest_first)
    kept = {partner for partner, _ in _spoken(messages, now)}
    everybody = {m.speaker_id for m in messages if m.role == "user" and m.channel in SPEECH}
    return {"cleared": len(everybody - kept - {""}), "kept": len(kept)}


def _spoken(newest_first: Iterable[Message], now: float) -> Iterator[tuple[str, Message]]:
    """The lines of people, with their stable ids, that are no older than `MAX_AGE_S`."""
    for message in takewhile(lambda m: now - seconds(m.created_at) <= MAX_AGE_S, newest_first):
        if message.speaker_id and message.role == "user" and message.channel in SPEECH:
            yield message.speaker_id, message
