"""Looking around and walking."""

from evennia_ai.tools.base import Tool, ToolContext
from evennia_ai.tools.parameters import Text


class Look(Tool):
    """Look at the room, or at one thing or person in it."""

    name = "look"
    parameters = {
        "target": Text(
            "Name of a thing or person; leave out for the room.", required=False, limit=120
        )
    }

    def run(self, ctx: ToolContext, target: str = "") -> str:
        """What the assistant sees."""
        return str(ctx.game.look(target or None))


class Move(Tool):
    """Walk through an exit of this room."""

    name = "move"
    parameters = {"direction": Text("Name of the exit.", limit=120)}
    lock = "tool:perm(Player)"
    public_act = True

    def run(self, ctx: ToolContext, direction: str) -> str:
        """What the assistant sees where it comes to."""
        return str(ctx.game.move(direction))
