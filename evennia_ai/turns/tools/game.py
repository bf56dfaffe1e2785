"""Acting in the game: speaking, posing, looking, walking, keeping silent."""

from typing import Any

from twisted.internet.defer import Deferred

from evennia_ai.language.script import folded
from evennia_ai.life import Told
from evennia_ai.turns.tools.base import Name, Text, Tool, ToolContext

# In brackets, as a small model says results aloud.
_DONE = "(It was noticed. Call noop unless there is more to do.)"


def _done(told: Told) -> Any:
    """What a call that speaks gives, once it has spoken: what the game tells the body of it."""
    if isinstance(told, Deferred):
        return told.addCallback(_done)
    answer = f"(The game answers: {' '.join(told)} Call noop unless there is more to do.)"
    return answer if told else _DONE


class Say(Tool):
    """Say something, aloud or as you were spoken to."""

    name = "say"
    serves = "reply"
    concludes = speaks = tells_nothing_new = True
    parameters = {"text": Text("What to say, without your name or quotes.")}

    def run(self, ctx: ToolContext, text: str) -> Any:
        """Say it to the turn's audience, as plain text is said."""
        ctx.check_speech(text)
        return _done(ctx.speak(text))


class Emote(Tool):
    """Do something others see, as `smiles at Bob`."""

    name = "emote"
    serves = "reply"
    concludes = speaks = tells_nothing_new = True
    parameters = {"text": Text("What you do, in the third person, without your name.", limit=500)}

    def run(self, ctx: ToolContext, text: str) -> Any:
        """Pose, in a private turn for those alone whom it is for."""
        ctx.check_speech(text)
        told: Told = ()
        if ctx.is_secret:
            ctx.game.show(text, ctx.audience, ctx.channel, ctx.asker)
        else:
            told = ctx.game.emote(text)
        ctx.note_speech(text)
        return _done(told)


class Whisper(Tool):
    """Whisper to one person here."""

    name = "whisper"
    ends_turn = True  # what was whispered is no part of a public turn any more
    speaks = to_one = tells_nothing_new = True
    parameters = {"target": Name(place="people"), "text": Text()}

    def run(self, ctx: ToolContext, target: str, text: str) -> Any:
        """Whisper, in a private turn only to those it is for."""
        ctx.check_speech(text)
        told = ctx.game.whisper(target, text, ctx.audience)
        ctx.note_speech(text)
        return _done(told)


class Look(Tool):
    """Look at a thing or person here, or at the room."""

    name = "look"
    parameters = {"target": Text(required=False, limit=120)}

    def run(self, ctx: ToolContext, target: str = "") -> str:
        """What the assistant sees."""
        is_room = folded(target.strip()) in ("", "room", "here")
        return str(ctx.game.look(None if is_room else target))


class _Act(Tool):
    """What it does with hands or feet for whoever asks, by the game's method of its name."""

    lock = "tool:perm(Player)"
    public_act = True

    def run(self, ctx: ToolContext, **arguments: Any) -> Any:
        """What the assistant did and carries now, or what it sees where it comes to."""
        return getattr(ctx.game, self.name)(*arguments.values())


class Move(_Act):
    """Walk through an exit of this room."""

    name = "move"
    parameters = {"direction": Name(place="exit")}
    serves = "obeyed"
    obeyed = True


class Get(_Act):
    """Pick up something here."""

    name = "get"
    parameters = {"thing": Name(place="lying")}
    serves = "things"
    tells_nothing_new = True


class Drop(_Act):
    """Put down something that you carry."""

    name = "drop"
    parameters = {"thing": Name(place="carried")}
    serves = "carried"
    concludes = tells_nothing_new = True


class Give(_Act):
    """Give somebody a thing that you carry or that lies here."""

    name = "give"
    parameters = {"thing": Name(place="lying or carried"), "to": Name(place="people")}
    serves = "things"
    concludes = tells_nothing_new = True


class Noop(Tool):
    """Do nothing and end the turn."""

    name = "noop"
    ends_turn = True
    silent = tells_nothing_new = extracts = True

    def run(self, ctx: ToolContext, **arguments: Any) -> str:
        """Nothing."""
        return "The turn is over."
