"""What a request shows, and what a model that is down fails with."""

from evennia_ai.errors import ModelError


def source_of(messages):
    """The texts behind the system message."""
    return "\n".join(str(message.get("content") or "") for message in messages[1:])


def model_down():
    """What a client fails with when no model answers."""
    return ModelError("no model answered", retryable=True, kind="connection")
