"""What a request shows, and what the offline model and one that is down answer."""

from evennia_ai.errors import ModelError
from evennia_ai.history.messages import Heard
from evennia_ai.llm_interaction.conversation import read_prompt
from evennia_ai.llm_interaction.offline.brain import respond
from evennia_ai.testing import call


def source_of(messages):
    """The texts behind the system message."""
    return "\n".join(str(message.get("content") or "") for message in messages[1:])


def heard_in(messages):
    """The lines that people said, as a reader of the prompt finds them, oldest first."""
    return [line for _, line in read_prompt(messages).turns if isinstance(line, Heard)]


def model_down():
    """What a client fails with when no model answers."""
    return ModelError("no model answered", retryable=True, kind="connection")


def offline(request):
    """What the offline model answers."""
    reply = respond(request.messages, request.tools)
    calls = [one for made in reply.tool_calls for one in call(made.name, **made.arguments)]
    return calls or reply.content or ""
