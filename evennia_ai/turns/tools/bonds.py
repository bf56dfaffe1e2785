"""Noting what the assistant feels for the one who asks."""

from evennia_ai.errors import ToolError
from evennia_ai.history.messages import Speaker
from evennia_ai.rag_memory.bonds import WHY_CHARS
from evennia_ai.turns.tools.base import Tool, ToolContext
from evennia_ai.turns.tools.parameters import Text

_CHANGES = {"better": True, "worse": False}


class NoteFeeling(Tool):
    """Like the one who asks a little better, or worse, for what they say now."""

    name = "note_feeling"
    parameters = {
        "change": Text("better or worse.", limit=20),
        "because": Text(limit=WHY_CHARS),
        "person": Text(required=False, limit=120),
    }
    lock = "tool:perm(Player)"
    serves = "met"
    concludes = tells_nothing_new = True

    def run(self, ctx: ToolContext, change: str, because: str, person: str = "") -> str:
        """A point for what the one who asks said in this turn, within the limits of talk."""
        if ctx.asker is None or not ctx.own_lines():
            raise ToolError("nobody speaks to you; call noop")
        meant = ctx.game.identify(person) if person else None
        if person and (meant is None or meant["id"] != ctx.asker):
            raise ToolError("this is for what the one who asks says themselves; call noop")
        here = ctx.game.identify(ctx.asker)
        if here is not None and here["id"] != ctx.asker:
            raise ToolError("you cannot tell who wears this mask; call noop")
        if change.lower() not in _CHANGES:
            raise ToolError("`change` must be better or worse")
        them = Speaker(ctx.asker_name(), ctx.asker)
        source = ctx.source_message_ids[-1]
        is_better = _CHANGES[change.lower()]
        ctx.script.bonds.note_talk(them, is_better, because, source, ctx.audience)
        return "Noted. It shows in how you treat them."
