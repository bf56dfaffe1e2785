"""An act needs an asker: whose own words of this turn name what the act is about.

A model may take any text in its prompt for an order: somebody else's line, a name, a note, a
memory, in whatever encoding. So what counts is not what the model read but what the asker said in
this turn. An act that their words do not name waits until they confirm it, in so many words or
with a yes.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evennia_ai.errors import ToolError, UnaskedError
from evennia_ai.history.audience import private
from evennia_ai.language.script import folded
from evennia_ai.language.tables import each_words
from evennia_ai.language.words import is_common, telling_stem, words

if TYPE_CHECKING:
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
    arguments: str  # what its values mean, as JSON, keys sorted
    at: float = field(compare=False)  # when the asker was asked, seconds since the epoch


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
    name = set(_SEPARATORS.split(folded(own)))
    said = set(filter(None, _SEPARATORS.split(folded(lines[-1])))) - name
    return bool(said & YES) and said <= YES | BESIDE


def check_asked(tool: "Tool", arguments: Mapping[str, Any], ctx: "ToolContext") -> None:
    """Raise `ToolError` for an act that nobody asked for in this turn; its asker is then asked."""
    if not tool.is_act:
        return
    if ctx.asker is None:
        raise ToolError("nobody asked for this; speak, pose or call noop")
    proposals = ctx.script.runtime.proposals
    meant = {name: ctx.game.meant(str(value), ctx.asker) for name, value in arguments.items()}
    # Calls are compared by what their values mean, however they name it.
    ids = {
        name: sorted(each.id for each in meant[name]) or str(value)
        for name, value in arguments.items()
    }
    call = Proposal(tool.name, json.dumps(ids, sort_keys=True), ctx.script.now())
    if ctx.confirmed == call:
        ctx.confirmed = None
        proposals.pop(ctx.asker, None)
        return
    if _names(" ".join(ctx.own_lines()), tool.name, arguments.values(), ctx):
        return
    is_shown = proposals.setdefault(ctx.asker, call) is call
    if is_shown:
        shown = [  # things by their own names
            meant[name][0].names[0] if meant[name] else " ".join(str(value).split())[:SHOWN_CHARS]
            for name, value in arguments.items()
        ]
        what = ", ".join((tool.name.replace("_", " "), *shown))
        question = f'asks {ctx.asker_name()}: {what}? Say "yes" if you want this.'
        ctx.game.show(question, private([ctx.asker]), ctx.channel, ctx.asker)
    raise UnaskedError(ctx.asker_name(), is_shown)


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
