"""What a request shows, whether it goes on from a turn or is one of its own."""

from evennia_ai.history.frames import INSTRUCTION_LABEL


def source_of(messages):
    """The texts behind the system message, without the instruction of a summary or extraction."""
    texts = [str(message.get("content") or "") for message in messages[1:]]
    return "\n".join(text for text in texts if not text.startswith(INSTRUCTION_LABEL))
