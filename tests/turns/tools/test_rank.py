"""Acts that need more than a player's rights: shown to the one who asks, done by their command."""

from evennia import create_object
from evennia.commands.cmdhandler import cmdhandler
from evennia.contrib.game_systems.containers.containers import CmdContainerGet

from evennia_ai.commands import AssistantCmdSet
from evennia_ai.errors import RankError
from evennia_ai.game.evennia_internals import as_player
from evennia_ai.game.seeing import stable_id
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.testing import call
from evennia_ai.turns.tools import BUILTIN_TOOLS
from evennia_ai.turns.tools.base import ToolRegistry
from evennia_ai.turns.tools.execution import waiting_calls
from evennia_ai.turns.waiting import YES_S
from tests.command_line import CommandLineTest
from tests.game.test_acting import commands
from tests.turns.tools.case import OBJECT, AskedTest, RingBell, done, rank
from tests.waiting import wait_for

RING = call("ring_bell", how="softly")


class RankTest(AskedTest, CommandLineTest):
    """`self.char1` is a builder and types; `self.char2` is a player. Aria has an admin's rank."""

    def setUp(self):
        super().setUp()
        done.clear()
        rank(self.account, "Builder")
        self.aria.permissions.add("Admin")
        self.script.__dict__["tools"] = ToolRegistry(
            [*BUILTIN_TOOLS, RingBell], lambda: self.script.config.tool_levels
        )

    def way(self, key, locks):
        """An exit to the other room."""
        return create_object(
            "evennia.objects.objects.DefaultExit",
            key=key,
            location=self.room1,
            destination=self.room2,
            locks=locks,
        )


class TestRank(RankTest):
    """What is asked, who may confirm it, and how."""

    def test_speech_is_not_enough(self):
        """The asker names it, and says yes: it is shown to them, and not done."""
        [result] = self.ask(RING, asker=self.char1)
        self.assertIn(RankError.SAYS, result)
        self.assertIn("Aria asks Char: ring_bell (how:", self.shown())
        self.assertIn("type: ai/yes Aria", self.shown())
        self.ask(RING, asker=self.char1, last="")
        self.talk("Aria, yes!", RING, "", speaker=self.char1)
        self.assertEqual(done, [])

    def test_the_command_does_it_once(self):
        """The stored call runs; its result is told to the asker and noted in the history."""
        self.ask(RING, asker=self.char1)
        self.assertTold("ai/yes", "Aria: It rings.")
        self.assertEqual(done, ["ring_bell"])
        self.assertIn("Char confirmed your call ring_bell", self.contents()[-1][1])
        self.assertTold("ai/yes Aria", "No act waits for your yes.")
        self.assertEqual(done, ["ring_bell"])

    def test_nobody_else(self):
        """Neither a player nor staff who did not ask confirm it; staff's list does not hold it."""
        self.ask(RING, asker=self.char1)
        self.char2.cmdset.add(AssistantCmdSet)
        cmdhandler(self.char2, "ai/yes Aria", callertype="object")
        self.assertEqual(done, [])
        self.be("Admin")
        self.assertTold("ai/approve Aria", "Nothing that Aria would do waits")
        self.assertTold("ai/approve Aria = 1", "No call 1 of Aria waits")
        self.assertEqual(done, [])

    def test_it_is_seen_by_the_asker_alone(self):
        """The question reaches nobody else here."""
        lines = self.lines_of(self.char2)
        self.ask(RING, asker=self.char1)
        self.assertNotIn("ring_bell", "\n".join(lines).replace("Aria, do it: ring bell", ""))

    def test_several(self):
        """Which one is meant is said by its number, so that no newer one is confirmed unseen."""
        self.ask(RING, call("ring_bell", how="loudly"), asker=self.char1)
        self.assertTold("ai/yes", "Say which.", 'Aria = 1: ring_bell (how: "softly")', "Aria = 2")
        self.assertEqual(done, [])
        self.assertTold("ai/yes Aria = 2", "It rings.")
        self.assertEqual([each.number for each in waiting_calls(self.script, True)], [1])

    def test_too_late(self):
        """What nobody confirms in time is dropped."""
        self.ask(RING, asker=self.char1)
        now = self.script.now() + YES_S
        self.script.now = lambda: now
        self.assertTold("ai/yes", "No act waits for your yes.")

    def test_rights_of_now(self):
        """Whoever lost the right meanwhile, or has left, confirms nothing."""
        self.ask(RING, asker=self.char1)
        rank(self.account, "Player")
        self.assertTold("ai/yes", "not allowed for you or for the one who asks")
        rank(self.account, "Builder")
        self.ask(RING, asker=self.char1)
        self.char1.location = self.room2
        self.assertTold("ai/yes", "has left")
        self.assertEqual(done, [])

    def test_staff_approve_besides(self):
        """At the level `confirm` it waits for staff after that, and not before."""
        self.configure(tool_levels={"ring_bell": "confirm"})
        self.ask(RING, asker=self.char1)
        self.assertEqual(waiting_calls(self.script), ())
        self.assertTold("ai/yes", "Not done yet: staff were asked")
        self.assertEqual([each.number for each in waiting_calls(self.script)], [2])
        self.be("Admin")
        self.assertTold("ai/approve Aria = 2", "It rings.")
        self.assertEqual(done, ["ring_bell"])

    def test_nobody_asks(self):
        """Without an asker the assistant's own rank opens nothing."""
        self.model.answers = [RING, call("noop")]
        wait_for(self.script.run_turn(TurnRequest()))
        self.assertIn("barred to whoever asks", self.results()[-1])
        self.assertEqual(done, [])


class TestWorld(RankTest):
    """Locks of exits and things."""

    def test_a_way_for_staff(self):
        """The assistant's rank opens it only after the command of somebody whom it lets pass."""
        self.way("vault", "traverse:perm(Builder)")
        self.ask(call("move", direction="vault"), asker=self.char1)
        self.assertIs(self.aria.location, self.room1)
        self.assertTold("ai/yes", "Aria: ")
        self.assertIs(self.aria.location, self.room2)

    def test_a_way_for_staff_and_a_player(self):
        """A player whom it obeys is refused: their yes would lend them its rank."""
        self.configure(obeys="all()")
        self.way("vault", "traverse:perm(Builder)")
        [result] = self.ask(call("move", direction="vault"))
        self.assertIn("barred to whoever asks", result)
        self.assertIs(self.aria.location, self.room1)
        self.assertEqual(waiting_calls(self.script, by_asker=True), ())

    def test_what_a_player_may(self):
        """Ordinary ways and things need no command, whatever rank the two have."""
        self.way("garden", "traverse:all()")
        coin = create_object(OBJECT, key="coin", location=self.room1)
        self.ask(call("get", thing="coin"), asker=self.char1)
        self.assertIs(coin.location, self.aria)
        self.ask(call("move", direction="garden"), asker=self.char1)
        self.assertIs(self.aria.location, self.room2)

    def test_a_thing_for_staff(self):
        """A thing that only staff may take, in the room and in a box."""
        chest = create_object(OBJECT, key="chest", location=self.room1)
        chest.locks.add("get:false();get_from:perm(Builder)")
        self.aria.cmdset.add(commands(CmdContainerGet))
        for place, lock in ((self.room1, "get:perm(Builder)"), (chest, "get:all()")):
            with self.subTest(lock):
                seal = create_object(OBJECT, key="seal", location=place, locks=lock)
                self.ask(call("get", thing="seal"), asker=self.char1)
                self.assertIs(seal.location, place)
                self.assertTold("ai/yes", "You get seal")
                seal.delete()

    def test_a_thing_that_is_given_to_staff(self):
        """Where it does not obey, the thing's lock `give` must let the asker pass as a player."""
        self.configure(obeys="false()")
        seal = create_object(OBJECT, key="seal", location=self.room1, locks="give:perm(Builder)")
        self.ask(call("get", thing="seal"), asker=self.char1)
        self.assertIs(seal.location, self.room1)
        self.assertTold("ai/yes", "You get seal")

    def test_nobody_unseen_is_named_by_id(self):
        """The id of somebody whom the asker does not see means nobody here."""
        hidden = create_object(self.char2.typeclass_path, key="Mallory", location=self.room1)
        hidden.locks.add("view:false()")
        create_object(OBJECT, key="coin", location=self.aria)
        [result] = self.ask(call("give", thing="coin", to=stable_id(hidden)), asker=self.char1)
        self.assertIn("there is no", result)
        self.assertNotIn("Mallory", self.shown())


class TestAsPlayer(RankTest):
    """The copy that locks are asked with."""

    def passes(self, lock, somebody=None):
        """Whether a lock passes somebody, and their copy."""
        somebody = somebody or self.char1
        check = self.obj1.locks.check_lockstring
        return tuple(
            bool(check(each, f"x:{lock}", no_superuser_bypass=True, access_type="x"))
            for each in (somebody, as_player(somebody))
        )

    def test_ranks(self):
        """Ranks above a player's are not passed, by whichever lock function; a player's is."""
        for lock in ("perm(Builder)", "perm(Builders)", "pperm(Helper)", "perm_above(Player)"):
            self.assertEqual(self.passes(lock), (True, False), lock)
        for lock in ("perm(Player)", "pperm(Guest)", f"id({self.char1.id})", "perm_above(Guest)"):
            self.assertEqual(self.passes(lock), (True, True), lock)
        self.assertEqual(self.passes("perm(Admin)", self.aria), (True, False))
        self.assertEqual(self.passes("perm(Builder)", self.account), (True, False))

    def test_what_is_theirs(self):
        """Tags, attributes, things and permissions of the game's own stay."""
        self.char1.tags.add("guild")
        self.account.permissions.add("innkeeper")
        self.obj2.location = self.char1
        for lock in ("tag(guild)", "perm(innkeeper)", "holds(Obj2)"):
            self.assertEqual(self.passes(lock), (True, True), lock)
        self.assertEqual(as_player(self.char1), self.char1)

    def test_superuser(self):
        """The copy of a superuser is none, by their methods too; they stay one."""
        self.account.is_superuser = True
        for somebody in (self.char1, self.account):
            copy = as_player(somebody)
            self.assertFalse(copy.is_superuser)
            self.assertFalse(copy.check_permstring("Builder"))
            self.assertFalse(copy.permissions.check("Builder"))
            self.assertFalse(copy.permissions.has("builder"))
            self.assertTrue(somebody.is_superuser)
            self.assertTrue(somebody.check_permstring("Developer"))
        self.assertEqual(self.account.permissions.all(), ["builder"])
