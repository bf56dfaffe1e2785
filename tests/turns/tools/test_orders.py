"""Whom an assistant obeys, and what it does by itself."""

import unittest

from evennia import create_object

from evennia_ai.errors import NotObeyedError
from evennia_ai.game.seeing import stable_id
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.testing import call
from tests.fake import FakeAssistant
from tests.models import ScriptedModel
from tests.turns.tools.case import OBJECT, AskedTest, rank
from tests.waiting import wait_for


class OrderTest(AskedTest):
    """`self.char1` is a builder, `self.char2` a player; both stand beside Aria."""

    def setUp(self):
        super().setUp()
        rank(self.account, "Builder")


class TestOrders(OrderTest):
    """Walking, the order that every assistant may be given."""

    def walk(self, asker):
        """Ask her to walk out; returns what came of it."""
        self.talk("Aria, go out!", call("move", direction="out"), "", speaker=asker)
        return self.results()[-1]

    def test_a_player_is_refused(self):
        """For a player it stays, and is told whom to refuse and how."""
        result = self.walk(self.char2)
        self.assertIs(self.aria.location, self.room1)
        self.assertIn(f"{NotObeyedError.SAYS} Char2", result)
        self.assertIn("in character", result)

    def test_obeys_is_a_lock(self):
        """Here only a builder with a tag is refused; who controls the body is obeyed always."""
        self.configure(obeys="not tag(stranger)")
        self.char1.tags.add("stranger")
        self.assertIn(NotObeyedError.SAYS, self.walk(self.char1))
        self.walk(self.char2)
        self.assertIs(self.aria.location, self.room2)
        self.aria.location = self.room1
        self.configure(obeys="perm(Admin)")
        self.aria.locks.add(f"control:id({self.char2.id})")
        self.walk(self.char2)
        self.assertIs(self.aria.location, self.room2)

    def test_obeys_is_a_lock_of_the_body(self):
        """What the lock asks of its object is asked of the body, not of whoever speaks."""
        game = self.script.game.asked_by(stable_id(self.char2))
        for lock in ("objtag(tame)", "self()"):
            with self.subTest(lock=lock):
                self.configure(obeys=lock)
                self.char2.tags.add("tame")
                self.assertFalse(game.obeys())
                self.assertFalse(game.allowed(f"tool:{lock}"))
        self.configure(obeys="objtag(tame)")
        self.char2.tags.remove("tame")
        self.aria.tags.add("tame")
        self.assertTrue(game.obeys())
        self.assertTrue(game.allowed("tool:objtag(tame)"))


class TestHands(OrderTest):
    """`get` and `give`."""

    def thing(self, key, location=None, locks="", **attributes):
        """Something, in the room if nowhere else."""
        thing = create_object(OBJECT, key=key, location=location or self.room1, locks=locks)
        for name, value in attributes.items():
            thing.attributes.add(name, value)
        return thing

    def get(self, *things, asker=None):
        """What comes of picking these up."""
        calls = (call("get", thing=thing) for thing in things)
        return self.ask(*calls, asker=asker or self.char1)

    def give(self, thing, *people, asker=None):
        """What comes of giving it to each of these."""
        calls = (call("give", thing=thing, to=who) for who in people)
        return self.ask(*calls, asker=asker or self.char1)

    def test_picks_up(self):
        """It picks up what lies here, by the thing's hooks; the room sees it as with any player."""
        coin, lines = self.thing("coin"), self.lines_of(self.char2)
        called = []
        coin.at_get = called.append
        self.assertEqual(self.get("the coin"), ["You get coin. You carry a coin."])
        self.assertIs(coin.location, self.aria)
        self.assertIn("Aria picks up a coin.", lines)
        self.assertEqual(called, [self.aria])

    def test_does_not_pick_up(self):
        """A lock, a hook, a move that fails and a thing that is not here are told plainly."""
        self.thing("anvil", locks="get:false()", get_err_msg="It is |rfar|n too heavy.")
        self.thing("shelf", locks="get:false()")
        self.thing("cat").at_pre_get = lambda getter, **kwargs: False
        self.thing("ghost").move_to = lambda *args, **kwargs: False
        results = self.get("anvil", "shelf", "cat") + self.get("ghost", "unicorn", "Char2")
        reasons = (
            "anvil` failed: It is far too heavy",
            "shelf` failed",
            "cat` failed",
            "picked up",
        )
        reasons += ("no `unicorn`", "failed")
        for result, why in zip(results, reasons, strict=True):
            self.assertIn(why, result)
        self.assertEqual(self.aria.contents, [])

    def test_gives_what_it_carries(self):
        """Giver, receiver and the others see it, and the hooks are called."""
        coin, called = self.thing("coin", self.aria), []
        self.thing("ring", self.aria)
        self.thing("coin")
        coin.at_give = lambda giver, getter, **kwargs: called.append((giver, getter))
        receiver = self.lines_of(self.char2)
        results = self.give("coin", "Char2")
        self.assertEqual(results, ["You give coin to Char2. You carry a ring."])
        self.assertIs(coin.location, self.char2)
        self.assertEqual(called, [(self.aria, self.char2)])
        self.assertIn("Aria gives you a coin.", receiver)

    def test_does_not_give(self):
        """Nobody, itself, a thing as receiver, a hook that forbids it: a plain reason each."""
        coin = self.thing("coin", self.aria)
        coin.at_pre_give = lambda giver, getter, **kwargs: False
        results = self.give("coin", "Nobody", "Aria", "Obj")
        results += self.give("coin", "Char2") + self.give("unicorn", "Char2")
        reasons = (
            "no `Nobody`",
            "no `Aria`",
            "no `Obj`",
            "`give coin to Char2` failed",
            "`unicorn`",
        )
        for result, why in zip(results, reasons, strict=True):
            self.assertIn(why, result)
        self.assertIn("You carry a coin.", results[3])
        self.assertIs(coin.location, self.aria)

    def test_anybody_may_have_what_is_free(self):
        """A thing whose lock `give` passes goes to whomever the one who asks names."""
        ale, wine = self.thing("ale", locks="give:all()"), self.thing("wine")
        beer, player = self.thing("beer", locks="give:all()"), self.char2
        refused = self.give("wine", "Char2", asker=player) + self.get("wine", asker=player)
        for result in refused:
            self.assertIn(f"{NotObeyedError.SAYS} Char2", result)
        self.get("ale", asker=player)
        self.give("ale", "Char2", asker=player)
        self.give("beer", "Char", asker=player)
        self.assertIs(ale.location, self.char2)
        self.assertIs(beer.location, self.char1)
        self.assertIs(wine.location, self.room1)

    def test_what_is_dispensed(self):
        """What refuses to be picked up but hands out something else counts as that."""
        barrel = self.thing("barrel of ale", locks="give:all()")
        barrel.aliases.add("ale")
        barrel.at_pre_get = lambda getter, **kwargs: not self.thing("mug of ale", getter)
        drawn = self.get("ale", asker=self.char2)
        self.assertEqual(drawn, ["You get barrel of ale. You carry a mug of ale."])
        self.aria.contents[0].locks.add("give:all()")
        self.aria.contents[0].aliases.add("mug")
        (given,) = self.give("mug", "Char2", asker=self.char2)
        self.assertIn("You give mug of ale to Char2", given)
        self.assertIs(barrel.location, self.room1)


class TestAlone(unittest.TestCase):
    """What nobody here asked for."""

    def results(self, *calls, asker=None, **config):
        """What comes of calls in a turn for somebody whom she does not obey, or for nobody."""
        aria = FakeAssistant(ScriptedModel([*calls, call("noop")]), **config)
        aria.game.obeys = lambda: False
        wait_for(aria.run_turn(TurnRequest(asker=asker)))
        self.assertEqual(aria.game.said, [])
        messages = aria.history.messages()
        return [m.content for m in messages if m.role == "tool" and m.name != "noop"]

    def test_no_act(self):
        """In a turn that nobody asked for it acts neither with a post nor without one."""
        acts = (call("move", direction="up"), call("give", thing="ale", to="Bob"))
        for post in (True, False):
            results = self.results(*acts, post=post)
            self.assertTrue(all("nobody asked" in result for result in results), results)

    def test_orders_from_afar(self):
        """Whoever pages from elsewhere and is not obeyed is refused without a name."""
        (result,) = self.results(call("move", direction="up"), asker="o404.far")
        self.assertIn(f"{NotObeyedError.SAYS} whoever asks", result)
