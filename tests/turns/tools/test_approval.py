"""Tools at level `confirm`: what waits, who decides, and what comes of it."""

import time
import unittest
from unittest import mock

from evennia import create_object

from evennia_ai.errors import NotObeyedError
from evennia_ai.game.seeing import player_ids, stable_id
from evennia_ai.history.audience import private
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.staff.status import status_lines
from evennia_ai.testing import call
from evennia_ai.turns.tools import BUILTIN_TOOLS
from evennia_ai.turns.tools.base import ToolRegistry
from evennia_ai.turns.tools.execution import drop_calls, waiting_calls
from evennia_ai.turns.waiting import WAIT_S
from tests.command_line import CommandLineTest
from tests.fake import FakeAssistant
from tests.models import ScriptedModel
from tests.turns.tools.case import OBJECT, AskedTest, rank
from tests.waiting import wait_for


class TestApproval(AskedTest, CommandLineTest):
    """`self.char1` is an admin and types; `self.char2` is a player who asks."""

    def setUp(self):
        super().setUp()
        self.account.db_is_connected = True
        self.account.save()
        self.configure(tool_levels={"give": "confirm", "whisper": "confirm"}, obeys="all()")
        self.sword = create_object(OBJECT, key="sword", location=self.aria)

    def ask(self, *calls, **kwargs):
        return super().ask(*calls, last="So be it.", **kwargs)

    def give(self, to="Char2"):
        """The call that waits in most tests."""
        return self.ask(call("give", thing="sword", to=to))

    def notices(self):
        """What the assistant learned of its calls: audience and text."""
        found = self.script.history.messages()
        return [(m.audience, m.content) for m in found if m.role == "system"]

    def test_waits(self):
        """It does not act, the model learns that it waits, and staff are told how to decide."""
        self.assertTold("ai/approve Aria", "Nothing that Aria would do waits")
        self.assertNotIn("approval", "\n".join(status_lines(self.script)))
        self.told.clear()
        (result,) = self.give()
        self.assertIn("Not done yet", result)
        self.assertIs(self.sword.location, self.aria)
        shown = self.shown()
        self.assertIn('1: give (thing: "sword", to: "Char2"), asked by "Char2"', shown)
        self.assertIn("ai/approve Aria = 1", shown)
        self.assertIn("So be it.", self.contents()[-1][1])
        for switch in ("approve", "refuse"):
            self.assertTold(f"ai/{switch} Aria", "1: give", 'asked by "Char2"', "just now")
        self.assertTold("aistatus Aria", "Waiting for approval: 1 call (ai/approve Aria)")

    def test_approved(self):
        """It acts then, once, also after a restart, and learns in its history what came of it."""
        self.give()
        for attribute in self.script.db_attributes.all():
            attribute.flush_from_cache(force=True)
        self.script.attributes.reset_cache()
        waiting = []

        def at_pre_give(*args, **kwargs):
            waiting.append(waiting_calls(self.script))  # off the list before it is done
            return True

        self.sword.at_pre_give = at_pre_give
        self.assertTold("ai/approve Aria = 1", "You give sword to Char2.")
        self.assertIs(self.sword.location, self.char2)
        [(audience, text)] = self.notices()
        self.assertEqual(audience, "public")
        self.assertIn("Staff approved your call give", text)
        self.assertIn("You give sword to Char2.", text)
        self.assertEqual(waiting, [()])
        self.assertTold("ai/approve Aria = 1", "No call 1 of Aria waits")

    def test_refused(self):
        """It is never done, and the number stays used; who is forgotten leaves none behind."""
        self.give()
        self.assertTold("ai/refuse Aria = 1", "Refused: give")
        self.assertIs(self.sword.location, self.aria)
        self.assertIn("It was not done.", self.notices()[0][1])
        self.give()
        drop_calls(self.script, ("o404.x",))
        self.assertEqual([each.number for each in waiting_calls(self.script)], [2])
        drop_calls(self.script, player_ids(self.char2))
        self.assertEqual(waiting_calls(self.script), ())

    def test_who_may_decide(self):
        """Builders hear of and decide for their own assistants only, players for none."""
        self.be("Builder")
        self.told.clear()
        self.give()
        self.assertNotIn("ai/approve", self.shown())
        self.assertTold("ai/approve Aria = 1", "You may not change Aria")
        self.aria.locks.add(f"control:id({self.char1.id})")
        self.told.clear()
        self.give(to="Char")
        self.assertIn("2: give", self.shown())
        self.assertTold("ai/refuse Aria = 2", "Refused")
        self.be("Player")
        self.assertTold("ai/approve Aria = 1", "Players may type")
        self.assertIs(self.sword.location, self.aria)

    def test_private_talk(self):
        """What was asked in private is for admins; the outcome is for those of the talk."""
        self.configure(tool_levels={"add_journal_entry": "confirm"})
        self.aria.locks.add(f"control:id({self.char1.id})")
        self.be("Builder")
        self.told.clear()
        self.model.answers = [call("add_journal_entry", content="Char2 hides a ruby."), "So be it."]
        self.char2.at_say("My ruby lies in the well.", receivers=[self.aria], whisper=True)
        self.tick()
        self.assertIn("Not done yet", self.results()[0])
        self.assertNotIn("ruby", self.shown())
        self.assertNotIn("ruby", self.assertTold("ai/approve Aria", "for admins"))
        self.assertTold("ai/approve Aria = 1", "admins decide on it")
        self.be("Admin")
        self.assertTold("ai/approve Aria = 1", "written", until="written")
        circle = private([stable_id(self.char2)])
        self.assertEqual([audience for audience, _ in self.notices()], [circle])
        self.assertEqual([e.audience for e in self.aria.journal.recent()], [circle])

    def test_a_whisper_is_for_whom_it_goes_to(self):
        """Of a whisper that waits in a public turn only its receiver and admins know."""
        (result,) = self.ask(call("whisper", target="Char2", text="the code is plum"))
        self.assertIn("Not done yet", result)
        self.assertIn("So be it.", self.contents()[-1][1])
        self.typed("ai/approve Aria = 1")
        [(audience, text)] = self.notices()
        self.assertEqual(audience, private([stable_id(self.char2)]))
        self.assertIn("plum", text)

    def test_rights_are_checked_again(self):
        """Whoever lost a right meanwhile gets nothing; staff and assistant read why."""
        self.give()
        self.configure(obeys="perm(Builder)")
        self.assertTold("ai/approve Aria = 1", NotObeyedError.SAYS)
        self.assertIn(NotObeyedError.SAYS, self.notices()[0][1])
        self.configure(obeys="all()")
        self.give()
        rank(self.account2, "Guest")
        self.assertTold("ai/approve Aria = 2", "not allowed for you or for the one who asks")
        rank(self.account2, "Player")
        self.give(to="Char")
        self.aria.permissions.clear()
        self.assertTold("ai/approve Aria = 3", "not allowed")
        self.assertIs(self.sword.location, self.aria)

    def test_the_situation_of_that_time(self):
        """The thing or who asked may be gone, or the tool off."""
        self.give()
        self.sword.location = self.room2
        self.assertTold("ai/approve Aria = 1", "`sword` is not here")
        self.sword.location = self.aria
        self.give()
        self.configure(tool_levels={"give": "off"})
        self.assertTold("ai/approve Aria = 2", "there is no tool `give`")
        self.configure(tool_levels={"give": "confirm"})
        self.give()
        self.char2.location = self.room2
        self.assertTold("ai/approve Aria = 3", "the one who asked for it has left")
        self.char2.location = self.room1
        self.give()
        self.char2.delete()
        self.assertTold("ai/approve Aria = 4", "the one who asked for it has left")
        self.assertIs(self.sword.location, self.aria)

    def test_expires(self):
        """After an hour nobody can approve it, and the assistant learns so at its next tick."""
        self.give()
        held = self.script.db.waiting_calls
        held["calls"][0]["at"] = time.time() - WAIT_S
        self.assertTold("ai/approve Aria = 1", "No call 1 of Aria waits")
        self.tick()
        self.assertIn("Nobody confirmed your call give", self.notices()[0][1])

    def test_waits_for_the_turn(self):
        """An approval during a turn is carried out behind it."""
        self.give()
        self.asked_slowly("Aria, hello")
        self.typed("ai/approve Aria = 1")
        self.assertIs(self.sword.location, self.aria)
        self.model.release()
        self.assertIs(self.sword.location, self.char2)

    def test_broken_off(self):
        """A call that is broken off in the midst is off the list, and said to be unsure."""
        self.give()
        with mock.patch.object(type(self.script.game), "here", side_effect=KeyError("gone")):
            self.typed("ai/approve Aria = 1")
        self.assertEqual(waiting_calls(self.script), ())
        self.assertIn("It may be done or not", self.notices()[-1][1])


class TestKnownTo(unittest.TestCase):
    """Who may know of a call that waits."""

    def test_a_whisper_in_private_talk(self):
        """It stays with those of the talk, not with the one whom the whisper is for."""
        aria = FakeAssistant(ScriptedModel([call("whisper", target="Bob", text="Hush."), ""]))
        aria.tools = ToolRegistry(BUILTIN_TOOLS, lambda: {"whisper": "confirm"})
        alice = aria.game.people["Alice"]
        asked = TurnRequest(audience=private([alice]), channel="whisper", asker=alice)
        wait_for(aria.run_turn(asked))
        self.assertEqual([each.known_to for each in waiting_calls(aria)], [private([alice])])
