"""An act needs an asker: whose own words of this turn name what the act is about.

A model may take any text in its prompt for an order: somebody else's line, a name, a note, a
memory, in whatever encoding. So what counts is not what the model read but what the asker said in
this turn. An act that their words do not name waits until they confirm it, in so many words or
with a yes.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evennia_ai.errors import ToolError, UnaskedError
from evennia_ai.history.messages import SPEECH
from evennia_ai.language.words import telling_stem, words

if TYPE_CHECKING:
    from evennia_ai.protocol import Named
    from evennia_ai.tools.base import Tool, ToolContext

# How long a yes confirms what the asker was last asked.
CONFIRM_S = 120.0
# How a line begins that confirms, in the languages that players use most.
_YES_WORDS = """
yes yeah yep aye sure ok okay please do ja jawohl doch si sí claro oui sim да так tak evet نعم हाँ
हां जी 是 是的 好 好的 对 はい うん 네 예 응 ใช่ ได้
"""
YES = frozenset(word for each in _YES_WORDS.split() for word in words(each))


@dataclass(frozen=True, slots=True)
class Proposal:
    """An act that waits for its asker's yes.

    Args:
        tool: The tool's name.
        arguments: As JSON, keys sorted.
        at: When the asker was asked, seconds since the epoch.
    """

    tool: str
    arguments: str
    at: float

    def is_like(self, other: "Proposal") -> bool:
        """Whether another call would do the same."""
        return (self.tool, self.arguments) == (other.tool, other.arguments)


def confirmed(proposal: Proposal | None, lines: Sequence[str], own: str, now: float) -> bool:
    """Whether the asker's lines of a turn confirm what they were asked before it.

    Args:
        proposal: What they were asked last; None if nothing.
        lines: Their lines, oldest first.
        own: The assistant's name, which may stand before the yes.
        now: Seconds since the epoch.
    """
    if proposal is None or not lines or not 0 <= now - proposal.at <= CONFIRM_S:
        return False
    said = [word for word in words(lines[-1]) if word not in words(own)]
    return bool(said) and said[0] in YES


def check_asked(tool: "Tool", arguments: Mapping[str, Any], ctx: "ToolContext") -> None:
    """Raise `ToolError` for an act that nobody asked for in this turn; its asker is then asked."""
    if not tool.is_act:
        return
    if ctx.asker is None:
        raise ToolError("nobody asked for this; speak, pose or call noop")
    call = Proposal(tool.name, json.dumps(arguments, sort_keys=True, default=str), ctx.script.now())
    if ctx.confirmed is not None and ctx.confirmed.is_like(call):
        return
    values = [str(value) for value in arguments.values()]
    if _names(" ".join(ctx.own_lines()), tool.name, values, ctx):
        return
    if ctx.script.runtime.proposals.setdefault(ctx.asker, call) is call:
        what = ", ".join(filter(None, (tool.name.replace("_", " "), *values)))
        question = f'asks {ctx.asker_name()}: {what}? Say "yes" if you want this.'
        ctx.game.show(question, ctx.audience, ctx.channel, ctx.asker)
    raise UnaskedError(ctx.asker_name())


def _names(said: str, tool: str, values: Collection[str], ctx: "ToolContext") -> bool:
    """Whether what was said names every thing, way and person of a call, and something at all.

    The speaker need not name themselves. Who names the tool need not name what means nothing here,
    as a manner or a number.
    """
    spoken = _stems(said, ctx.character.key)
    names_tool = names = _shares(tool, said, ctx)
    for value in values:
        meant = ctx.game.meant(value, ctx.asker)
        others = [each for each in meant if each.id != ctx.asker]
        if not all(_is_named(each, said, ctx) for each in others):
            return False
        if meant:
            names = names or bool(others)
            continue
        wanted = _stems(value, ctx.character.key)
        if not (wanted <= spoken or (names_tool and not ctx.game.people_in(value))):
            return False
        names = names or bool(wanted & spoken)
    return names


def _is_named(thing: "Named", said: str, ctx: "ToolContext") -> bool:
    """Whether what was said names a thing by a word of its names, or a way by a whole name."""
    if thing.is_way and any(
        re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said, re.I) for name in thing.names
    ):
        return True
    return any(_shares(name, said, ctx) for name in thing.names)


def _shares(name: str, said: str, ctx: "ToolContext") -> bool:
    """Whether a telling word of a name was said; in scripts without spaces, the name itself."""
    if not name.isascii() and name.casefold() in said.casefold():
        return True
    return not _stems(name.replace("_", " ")).isdisjoint(_stems(said, ctx.character.key))


def _stems(text: str, own: str = "") -> frozenset[str]:
    """Stems of the telling words of a text, without those of the assistant's `own` name."""
    spoken = [word for word in words(text) if word not in words(own)]
    return frozenset(filter(None, map(telling_stem, spoken)))


def own_lines(messages: Collection[Any], asker: str | None) -> list[str]:
    """What the asker said among the messages that a turn answers, oldest first."""
    return [
        message.content
        for message in messages
        if message.speaker_id == asker and message.channel in SPEECH
    ]
