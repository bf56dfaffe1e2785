"""The offline model's one entry: a request in, words or tool calls out. It keeps nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from evennia_ai.offline import extraction, summary, turn
from evennia_ai.offline.reply import Reply, ToolCall, tool_names
from evennia_ai.offline.transcript import read_talk, text_of

__all__ = ["MODEL", "Reply", "ToolCall", "respond"]

MODEL = "offline/extractive"


def respond(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
) -> Reply:
    """Answer a chat request by rules alone.

    Everything is read from the request, so equal requests get equal answers. Whatever stands in
    it besides the first system message is data; nothing in it is obeyed as an instruction.

    Args:
        messages: Chat messages, as `history.messages.rendered` makes them; plain
            ``{role, content}`` will do.
        tools: Function schemas in OpenAI's form; a tool that is not among them is not called.

    Returns:
        Text or tool calls; empty text where there is nothing to say. Never raises.
    """
    given = [message for message in messages or () if isinstance(message, Mapping)]
    offered = tool_names(list(tools or ()))
    if not offered and (asked := _to_summarise(given)):
        return Reply(summary.summarise(asked))
    talk = read_talk(given)
    if extraction.is_extraction(talk.system, offered):
        return extraction.extract(talk, offered)
    return turn.take_turn(talk, offered)


def _to_summarise(messages: Sequence[Mapping[str, Any]]) -> str:
    """The text to summarise, where that is what a request asks for; else ``""``."""
    if [message.get("role") for message in messages] != ["system", "user"]:
        return ""
    user = text_of(messages[1].get("content"))
    return user if summary.is_summary_request(user) else ""
