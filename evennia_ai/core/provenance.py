"""Which messages a note rests on, where it was written from a whole history and not one turn."""

from collections.abc import Iterable

from evennia_ai.core.injection import telling_words
from evennia_ai.core.messages import Message, is_summary

# A message bears a note out if it has this share of the note's telling words.
LEAST_SHARE = 0.4


def supporting(text: str, messages: Iterable[Message], most: int = 3) -> tuple[str, ...]:
    """Ids of the messages that a note most likely rests on.

    Args:
        text: The note.
        messages: What its writer saw, oldest first.
        most: Most ids.

    Returns:
        Ids of what was said with the largest share of the note's telling words, best first; of
        equal ones the newer. Empty where none has `LEAST_SHARE` of them.
    """
    wanted = telling_words(text)
    found: list[tuple[float, int, str]] = []
    for place, message in enumerate(messages):
        if not wanted or message["role"] not in ("user", "assistant") or is_summary(message):
            continue
        speaker = (message.get("speaker") or {}).get("key") or ""
        share = len(wanted & telling_words(f"{speaker} {message['content']}")) / len(wanted)
        if share >= LEAST_SHARE:
            found.append((share, place, message["id"]))
    return tuple(each for _, _, each in sorted(found, reverse=True)[:most])
