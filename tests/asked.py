"""What a request shows."""


def source_of(messages):
    """The texts behind the system message."""
    return "\n".join(str(message.get("content") or "") for message in messages[1:])
