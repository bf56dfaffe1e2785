"""An act needs an asker: whose own words of this turn name what the act is about.

A model may take any text in its prompt for an order: somebody else's line, a name, a note, a
memory, in whatever encoding. So what counts is not what the model read but what the asker said in
this turn. An act that their words do not name waits until they confirm it, in so many words or
with a yes.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from evennia_ai.errors import ToolError, UnaskedError
from evennia_ai.history.audience import private
from evennia_ai.language.script import folded
from evennia_ai.language.tables import each_words
from evennia_ai.language.words import is_common, telling_stem, words

if TYPE_CHECKING:
    from evennia_ai.history.messages import Message
    from evennia_ai.protocol import Named
    from evennia_ai.turns.tools.base import Tool, ToolContext

# How long a yes confirms what the asker was last asked, and most characters of a value they see.
CONFIRM_S, SHOWN_CHARS = 120.0, 60
# A line that confirms holds words of these two lists alone, and one of the first at least.
YES, BESIDE = each_words("yes"), each_words("beside_yes")
_SEPARATORS = re.compile(r"[\s.,:;!?¡¿…。、，！؟-]+")


@dataclass(frozen=True, slots=True)
class Proposal:
    """An act that waits for its asker's yes."""

    tool: str  # the tool's name
    arguments: str  # its values as JSON, keys sorted, the stable ids of objects for their names
    question: str = field(default="", compare=False)  # what the asker is shown
    at: float = field(default=0.0, compare=False)  # when that was, seconds since the epoch
    # Id of the line that its asker spoke next, and whether somebody else spoke before.
    next_line: str = field(default="", compare=False)
    is_crossed: bool = field(default=False, compare=False)

    def heard(self, line: "Message", asker: str) -> "Proposal":
        """The same after a line that the assistant heard."""
        if self.next_line:
            return self
        if line.speaker_id != asker:
            return replace(self, is_crossed=True)
        return self if line.channel == "pose" else replace(self, next_line=line.id)

    def is_confirmed(self, lines: Sequence[str], own: str, now: float) -> bool:
        """Whether what its asker said next, and in the same turn, is a yes and nothing else.

        Args:
            lines: Their lines.
            own: The assistant's name, which may stand beside the yes.
            now: Seconds since the epoch.
        """
        if not 0 <= now - self.at <= CONFIRM_S:
            return False
        name = set(_SEPARATORS.split(folded(own)))
        said = set(filter(None, _SEPARATORS.split(folded(" ".join(lines))))) - name
        return bool(said & YES) and said <= YES | BESIDE


def read_answer(ctx: "ToolContext") -> None:
    """Read in a turn's lines whether they confirm what their asker was asked before it.

    A yes is one only as the asker's next line. If somebody else spoke before it, and it was said to
    more than the assistant alone, it may be an answer to them: the assistant asks again.
    """
    asker, proposals = ctx.asker or "", ctx.script.runtime.proposals
    proposal = proposals.get(asker)
    lines = ctx.typed_lines()
    if proposal is None or not proposal.next_line or not lines:
        return
    is_next = proposal.next_line in ctx.source_message_ids
    if not is_next or not proposal.is_confirmed(lines, ctx.character.key, ctx.script.now()):
        del proposals[asker]
    elif proposal.is_crossed and ctx.audience != private([asker]):
        del proposals[asker]
        ctx.proposal = proposal
    else:
        ctx.confirmed = proposal


def show_question(ctx: "ToolContext") -> None:
    """Show the question of a turn, as the last thing in it: the next line answers nothing else."""
    proposal, asker = ctx.proposal, ctx.asker
    if proposal is None or asker is None:
        return
    asked = replace(proposal, at=ctx.script.now(), next_line="", is_crossed=False)
    ctx.script.runtime.proposals[asker] = asked
    ctx.game.show(asked.question, private([asker]), ctx.channel, asker)


def check_asked(tool: "Tool", arguments: Mapping[str, Any], ctx: "ToolContext") -> None:
    """Raise `ToolError` for an act that nobody asked for in this turn; its asker is then asked."""
    if not tool.is_act:
        return
    if ctx.asker is None:
        raise ToolError("nobody asked for this; speak, pose or call noop")
    meant = {name: ctx.game.meant(str(value), ctx.asker) for name, value in arguments.items()}
    # Calls are compared by what their values mean, however they name it.
    ids = {
        name: sorted(each.id for each in meant[name]) or str(value)
        for name, value in arguments.items()
    }
    shown = [  # things by their own names
        meant[name][0].names[0] if meant[name] else " ".join(str(value).split())[:SHOWN_CHARS]
        for name, value in arguments.items()
    ]
    what = ", ".join((tool.name.replace("_", " "), *shown))
    question = f'asks {ctx.asker_name()}: {what}? Say "yes" if you want this.'
    call = Proposal(tool.name, json.dumps(ids, sort_keys=True), question)
    if ctx.confirmed == call:
        ctx.confirmed = None
        ctx.script.runtime.proposals.pop(ctx.asker, None)
        return
    if _names(" ".join(ctx.typed_lines()), tool.name, arguments.values(), ctx):
        return
    if ctx.proposal is None:
        ctx.proposal = call
    raise UnaskedError(ctx.asker_name(), ctx.proposal == call)


def _names(said: str, tool: str, values: Collection[Any], ctx: "ToolContext") -> bool:
    """Whether what was said names all that a call is about, and something at all.

    The speaker need not name themselves, and numbers need not be said.
    """
    spoken, names = _stems(said, ctx.character.key), _shares(tool, said, ctx)
    for value in values:
        if isinstance(value, int | float):
            continue
        meant = ctx.game.meant(str(value), ctx.asker)
        others = [each for each in meant if each.id != ctx.asker]
        if not all(_is_named(each, said, ctx) for each in others):
            return False
        wanted = frozenset() if meant else _stems(str(value), ctx.character.key)
        if not wanted <= spoken:
            return False
        names = names or bool(others or wanted)
    return names


def _is_named(thing: "Named", said: str, ctx: "ToolContext") -> bool:
    """Whether what was said names a thing by a word of its names, or a way by a whole name.

    A way whose name is a common word, as `out`, is named only where nothing else is spoken of.
    """
    if any(_shares(name, said, ctx) for name in thing.names):
        return True
    ways = [name for name in thing.names if thing.is_way]
    is_bare = not _stems(said, ctx.character.key)
    return any(
        re.search(rf"(?<![\w'’]){re.escape(name)}(?![\w'’])", said, re.I)
        and (is_bare or not (len(name) <= 2 or is_common(name.lower())))
        for name in ways
    )


def _shares(name: str, said: str, ctx: "ToolContext") -> bool:
    """Whether a telling word of a name was said; in scripts without spaces, the name itself."""
    if not name.isascii() and name.casefold() in said.casefold():
        return True
    return not _stems(name.replace("_", " ")).isdisjoint(_stems(said, ctx.character.key))


def _stems(text: str, own: str = "") -> frozenset[str]:
    """Stems of the telling words of a text, without those of the assistant's `own` name."""
    spoken = [word for word in words(text) if word not in words(own)]
    return frozenset(filter(None, map(telling_stem, spoken)))


def is_own_wording(text: str, ctx: "ToolContext") -> bool:
    """Whether the one who asks said these words in this turn: as they are, or each that tells."""
    said = " ".join(ctx.own_lines())
    if " ".join(text.casefold().split()) in " ".join(said.casefold().split()):
        return True
    wanted = _stems(text)
    return bool(wanted) and wanted <= _stems(said)
