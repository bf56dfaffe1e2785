"""Whom an assistant obeys, and what it does by itself."""

import unittest

from evennia import create_object

from evennia_ai.errors import NotObeyedError
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.testing import FakeAssistant, ScriptedModel, call
from tests.base import AssistantTest
from tests.turns.tools.test_approval import named_by
from tests.waiting import wait_for

OBJECT = "evennia.objects.objects.DefaultObject"


class OrderTest(AssistantTest):
    """`self.char1` is a builder, `self.char2` a player; both stand beside Aria."""

    def setUp(self):
        super().setUp()
        self.char2.location = self.room1
        self.rank(self.account, "Builder")
        self.rank(self.account2, "Player")
        self.char2.account = self.account2
        self.char2.sessions.add(self.session)  # so that a player speaks, not a scripted character

    def rank(self, account, permission):
        """Give an account one permission and no others."""
        account.is_superuser = False
        account.permissions.clear()
        account.permissions.add(permission)

    def ask(self, asker, *calls):
        """`asker` names what the model's calls name; returns the calls' new results."""
        before = len(self.script.history.messages())
        self.model.answers = [*calls, ""]
        self.say(f"Aria, do it: {named_by(calls)}", asker)
        self.tick()
        new = self.script.history.messages()[before:]
        return [m.content for m in new if m.role == "tool"]


class TestOrders(OrderTest):
    """Walking, the order that every assistant may be given."""

    def test_a_player_is_refused(self):
        """For a player it stays, and is told whom to refuse and how."""
        (result,) = self.ask(self.char2, call("move", direction="out"))
        self.assertIs(self.aria.location, self.room1)
        self.assertIn(f"{NotObeyedError.SAYS} Char2", result)
        self.assertIn("in character", result)

    def test_the_owner_is_obeyed(self):
        """Who controls the body is obeyed whatever `obeys` says."""
        self.configure(obeys="perm(Admin)")
        self.aria.locks.add(f"control:id({self.char2.id})")
        self.ask(self.char2, call("move", direction="out"))
        self.assertIs(self.aria.location, self.room2)

    def test_obeys_is_a_lock(self):
        """The option decides: here only a builder with a tag is refused, and all others obeyed."""
        self.configure(obeys="not tag(stranger)")
        self.char1.tags.add("stranger")
        (refused,) = self.ask(self.char1, call("move", direction="out"))
        self.assertIn(NotObeyedError.SAYS, refused)
        self.ask(self.char2, call("move", direction="out"))
        self.assertIs(self.aria.location, self.room2)


class TestHands(OrderTest):
    """`get` and `give`."""

    def thing(self, key, location=None, locks="", typeclass=OBJECT, **attributes):
        """Something in the room."""
        return create_object(
            typeclass,
            key=key,
            location=location or self.room1,
            locks=locks,
            attributes=list(attributes.items()),
        )

    def test_picks_up(self):
        """It picks up what lies here, by the thing's hooks; the room sees it as with any player."""
        coin, lines = self.thing("coin"), self.lines_of(self.char2)
        called = []
        coin.at_get = called.append
        (result,) = self.ask(self.char1, call("get", thing="the coin"))
        self.assertEqual(result, "You pick up a coin. You carry a coin.")
        self.assertIs(coin.location, self.aria)
        self.assertIn("Aria picks up a coin.", lines)
        self.assertEqual(called, [self.aria])

    def test_does_not_pick_up(self):
        """A lock, a hook, a move that fails and a thing that is not here are told plainly."""
        self.thing("anvil", locks="get:false()", get_err_msg="It is |rfar|n too heavy.")
        self.thing("shelf", locks="get:false()")
        self.thing("cat").at_pre_get = lambda getter, **kwargs: False
        self.thing("ghost").move_to = lambda *args, **kwargs: False
        results = self.ask(
            self.char1, *(call("get", thing=name) for name in ("anvil", "shelf", "cat"))
        )
        results += self.ask(
            self.char1, *(call("get", thing=name) for name in ("ghost", "unicorn", "Char2"))
        )
        for result, why in zip(
            results,
            ("anvil: It is far too heavy", "up a shelf", "a cat now", "ghost now", "no `unicorn`"),
            strict=False,
        ):
            self.assertIn(why, result)
        self.assertIn("cannot pick up", results[5])
        self.assertEqual(self.aria.contents, [])

    def test_gives_what_it_carries(self):
        """Giver, receiver and the others see it, and the hooks are called."""
        coin, called = self.thing("coin", self.aria), []
        self.thing("ring", self.aria)
        self.thing("coin")
        coin.at_give = lambda giver, getter, **kwargs: called.append((giver, getter))
        others, receiver = self.lines_of(self.char1), self.lines_of(self.char2)
        (result,) = self.ask(self.char1, call("give", thing="coin", to="Char2"))
        self.assertEqual(result, "You give a coin to Char2. You carry a ring.")
        self.assertIs(coin.location, self.char2)
        self.assertEqual(called, [(self.aria, self.char2)])
        self.assertIn("Aria gives a coin to Char2.", others)
        self.assertIn("Aria gives you a coin.", receiver)
        self.assertNotIn("Aria gives a coin to Char2.", receiver)

    def test_does_not_give(self):
        """Nobody, itself, a thing as receiver, a hook that forbids it: a plain reason each."""
        coin = self.thing("coin", self.aria)
        coin.at_pre_give = lambda giver, getter, **kwargs: False
        results = self.ask(
            self.char1,
            *(call("give", thing="coin", to=name) for name in ("Nobody", "Aria", "Obj")),
        )
        results += self.ask(
            self.char1,
            call("give", thing="coin", to="Char2"),
            call("give", thing="unicorn", to="Char2"),
        )
        reasons = ("no `Nobody`", "yourself", "not a person", "could not give a coin", "`unicorn`")
        for result, why in zip(results, reasons, strict=True):
            self.assertIn(why, result)
        self.assertIn("You carry a coin.", results[3])
        self.assertIs(coin.location, self.aria)

    def test_anybody_may_have_what_is_free(self):
        """A thing whose lock `give` passes goes to whomever the one who asks names."""
        ale, wine = self.thing("ale", locks="give:all()"), self.thing("wine")
        beer = self.thing("beer", locks="give:all()")
        refused = self.ask(
            self.char2, call("give", thing="wine", to="Char2"), call("get", thing="wine")
        )
        for result in refused:
            self.assertIn(f"{NotObeyedError.SAYS} Char2", result)
        self.ask(self.char2, call("get", thing="ale"), call("give", thing="ale", to="Char2"))
        self.ask(self.char2, call("give", thing="beer", to="Char"))
        self.assertIs(ale.location, self.char2)
        self.assertIs(beer.location, self.char1)
        self.assertIs(wine.location, self.room1)

    def test_what_is_dispensed(self):
        """What refuses to be picked up but hands out something else counts as that."""
        barrel = self.thing("barrel of ale", locks="give:all()")
        barrel.at_pre_get = lambda getter, **kwargs: not self.thing("mug of ale", getter)
        (drawn,) = self.ask(self.char2, call("get", thing="ale"))
        self.assertEqual(drawn, "You pick up a mug of ale. You carry a mug of ale.")
        self.aria.contents[0].locks.add("give:all()")
        (given,) = self.ask(self.char2, call("give", thing="mug", to="Char2"))
        self.assertIn("You give a mug of ale to Char2", given)
        self.assertIs(barrel.location, self.room1)


class TestAlone(unittest.TestCase):
    """What nobody here asked for."""

    def alone(self, *calls, **config):
        """A turn of its own with these calls; returns the game and what came of the calls."""
        aria = FakeAssistant(ScriptedModel([*calls, ""]), **config)
        wait_for(aria.run_turn(TurnRequest()))
        return aria.game, [m.content for m in aria.history.messages() if m.role == "tool"]

    def test_no_act(self):
        """In a turn that nobody asked for it acts neither with a post nor without one."""
        acts = (call("move", direction="up"), call("give", thing="ale", to="Bob"))
        for post in (True, False):
            game, results = self.alone(*acts, post=post)
            self.assertEqual(game.said, [])
            self.assertTrue(all("nobody asked" in result for result in results), results)

    def test_orders_from_afar(self):
        """Whoever pages from elsewhere and is not obeyed is refused without a name."""
        aria = FakeAssistant(ScriptedModel([call("move", direction="up"), ""]))
        aria.game.obeys = lambda asker: False
        wait_for(aria.run_turn(TurnRequest(asker="o404.far")))
        result = next(m.content for m in aria.history.messages() if m.role == "tool")
        self.assertIn(f"{NotObeyedError.SAYS} whoever asks", result)
