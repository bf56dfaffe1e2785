"""Leaving words with the assistant for somebody else, or for later."""

from evennia_ai.errors import ToolError
from evennia_ai.history.messages import Speaker
from evennia_ai.turns.errands import TEXT_CHARS, take
from evennia_ai.turns.tools.asking import is_own_wording
from evennia_ai.turns.tools.base import Tool, ToolContext
from evennia_ai.turns.tools.parameters import Text

_ME = ("", "me")


class TellLater(Tool):
    """Take a message, in the words said, or a reminder."""

    name = "tell_later"
    parameters = {
        "text": Text(limit=TEXT_CHARS),
        "to": Text(required=False, limit=120),
        "when": Text("in 2h, tomorrow 9:00; else when they come.", required=False, limit=60),
    }
    lock = "tool:perm(Player)"
    serves = "asked"
    concludes = tells_nothing_new = True

    def run(self, ctx: ToolContext, text: str, to: str = "", when: str = "") -> str:
        """Keep it, if it is the wish of the one who asks in their own words."""
        if ctx.asker is None:
            raise ToolError("nobody asked for this; speak, pose or call noop")
        by = Speaker(ctx.asker_name(), ctx.asker)
        is_own = to.strip().lower() in (*_ME, by.key.lower(), by.id)
        for words in (text, *(() if is_own else (to,))):
            if not is_own_wording(words, ctx):
                raise ToolError(f"{by.key} did not say `{words[:60]}`; use their own words")
        person = by if is_own else Speaker(*ctx.game.player_called(to))
        errand = take(ctx.script, by, person, text, when)
        time = "at that time" if errand.due else "when they come"
        return f"Kept; {person.key} gets these words {time}. You need not do it: {errand.text}"
