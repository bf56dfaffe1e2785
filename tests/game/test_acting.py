"""Acting by a game's own commands and hooks: what it refuses, and why, is the tool's result."""

from evennia import CmdSet, Command, DefaultExit, DefaultObject, create_object

from evennia_ai.errors import ToolError
from evennia_ai.game.identity import stable_id
from tests.base import AssistantTest

HERE = "tests.game.test_acting"


class Slippery(DefaultObject):
    """Stays in nobody's hands."""

    def at_pre_get(self, getter, **kwargs):
        """Say why."""
        getter.msg("It slips through your fingers.")
        return False

    def at_pre_give(self, giver, getter, **kwargs):
        """Say why."""
        giver.msg("It sticks to your hand.")
        return False


class Gate(DefaultExit):
    """Lets nobody through."""

    def at_failed_traverse(self, traveller, **kwargs):
        """Say why."""
        traveller.msg("The gate is rusted shut.")


class CmdGet(Command):
    """A game's own, with a limit."""

    key = "get"

    def func(self):
        """One thing at most."""
        if self.caller.contents:
            return self.caller.msg("Your hands are full.")
        self.caller.search(self.args.strip()).location = self.caller


class CmdGive(Command):
    """A game's own, which asks the other one first."""

    key = "give"

    def func(self):
        """Only ask; broken for what is no lamp."""
        assert "lamp" in self.args
        self.caller.msg(f"You offer {self.args.strip()}.")


class OwnHands(CmdSet):
    """The game's own commands."""

    key, priority = "OwnHands", 1

    def at_cmdset_creation(self):
        """Add them."""
        self.add(CmdGet())
        self.add(CmdGive())


class TestActing(AssistantTest):
    """`get`, `give` and `move`."""

    def thing(self, key, kind="evennia.objects.objects.DefaultObject", **fields):
        return create_object(kind, key=key, location=self.room1, **fields)

    def test_refused_by_hooks(self):
        """What a hook tells the body is the reason."""
        game, eel = self.script.game, self.thing("eel", f"{HERE}.Slippery")
        with self.assertRaisesRegex(ToolError, "pick up an eel: It slips through your fingers"):
            game.get("eel")
        eel.location = self.aria
        with self.assertRaisesRegex(ToolError, "give an eel to Char: It sticks to your hand"):
            game.give("eel", "Char")
        self.thing("gate", f"{HERE}.Gate", destination=self.room2, locks="traverse:false()")
        with self.assertRaisesRegex(ToolError, "could not go `gate`: The gate is rusted shut"):
            game.move("gate")

    def test_own_commands(self):
        """Where the game has commands of its own, they decide."""
        game = self.script.game
        self.aria.cmdset.add(OwnHands)
        lamp, coin = self.thing("lamp"), self.thing("coin")
        self.assertIn("You pick up a lamp.", game.get("lamp"))
        with self.assertRaisesRegex(ToolError, "pick up a coin: Your hands are full"):
            game.get("coin")
        with self.assertRaisesRegex(ToolError, "You offer lamp to Char"):
            game.give("lamp", stable_id(self.char1))
        self.assertEqual((lamp.location, coin.location), (self.aria, self.room1))
        coin.location = self.aria  # a command that fails is no refusal
        self.assertIn("You give a coin to Char", game.give("coin", stable_id(self.char1)))
        self.assertEqual(coin.location, self.char1)

    def test_the_prompt_names_what_it_carries(self):
        """What it carries stands in the tail of the prompt."""
        self.thing("lamp").location = self.aria
        self.say("Aria, hello")
        self.tick()
        tail = self.model.requests[-1].messages[-1]["content"]
        self.assertIn("\nCarried by you: a lamp\n", tail)
