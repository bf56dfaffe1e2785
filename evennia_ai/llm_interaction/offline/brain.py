"""The offline model's one entry: a request in, words or tool calls out. It keeps nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from evennia_ai.history.frames import MESSAGES_LABEL
from evennia_ai.language.tables import code_of, language_of, speaking
from evennia_ai.llm_interaction.contexts import fixed_language
from evennia_ai.llm_interaction.offline import summary, turn
from evennia_ai.llm_interaction.offline.reply import Reply, ToolCall, tool_names
from evennia_ai.llm_interaction.offline.transcript import Line, Talk, read_talk, text_of

__all__ = ["MODEL", "Reply", "ToolCall", "respond"]

MODEL = "offline/extractive"
MAX_LINES_READ = 60  # for the language of a talk


def respond(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
) -> Reply:
    """Answer a chat request by rules alone; equal requests get equal answers.

    `messages` are chat messages, as `history.messages.rendered` makes them; all but the system
    message is data, never an order. `tools` are function schemas in OpenAI's form; no other tool is
    called. Returns text or tool calls, empty text if there is nothing to say. Never raises.
    """
    given = [message for message in messages or () if isinstance(message, Mapping)]
    offered = tool_names(list(tools or ()))
    if not offered and [message.get("role") for message in given] == ["system", "user"]:
        asked = text_of(given[1].get("content"))
        if asked.lstrip().startswith(MESSAGES_LABEL):
            with speaking(language_of(asked)):
                return Reply(summary.summarise(asked))
    talk = read_talk(given)
    with speaking(_language(talk)):
        if turn.is_extraction(talk.system, offered):
            return turn.notes_of(talk, offered)
        return turn.take_turn(talk, offered)


def _language(talk: Talk) -> str:
    """The language to speak: the one the rules name, else that of the newest line.

    Where it does not show one, it is in that of the lines before it, first of the same speaker's,
    or of the notes.
    """
    if fixed := code_of(fixed_language(talk.system)):
        return fixed
    lines = [*talk.heard, *talk.fresh][:-MAX_LINES_READ:-1] or [Line("", "")]
    own_first = sorted(lines, key=lambda line: line.who != lines[0].who)
    texts = (line.text.replace(talk.me, "") for line in [*own_first, *talk.notes[:MAX_LINES_READ]])
    newest, *others = texts
    likely = next(filter(None, map(language_of, others)), "")
    return language_of(newest, likely) or likely
