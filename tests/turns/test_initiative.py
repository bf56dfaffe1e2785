"""Speaking unasked: what must hold before a call is spent, and what such a turn may do."""

import time

from evennia import create_object

from evennia_ai.game.seeing import stable_id
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker, new_id
from evennia_ai.llm_interaction.values import OFFLINE_MODEL, ModelReply
from evennia_ai.testing import call
from evennia_ai.turns.runtime import Cue, Used
from evennia_ai.turns.spend_book import Amount
from evennia_ai.turns.tick import RULES
from tests.asked import model_down
from tests.base import CHARACTER
from tests.command_line import CommandLineTest
from tests.fake import FakeGame
from tests.memory_assistant import MemoryWorldTest
from tests.turns.tools.test_attacks import ALL, AttackTest
from tests.waiting import wait_for

ALICE = FakeGame.people["Alice"]


class TestRules(MemoryWorldTest):
    """Code asks first; a no costs nothing."""

    def setUp(self):
        super().setUp()
        self.world.model.default = "The fire is warm."
        self.world.configure(initiative=4, sleep_after_idle_s=None)
        self.world.later(200)

    @property
    def game(self):
        return self.script.game

    def tick(self, later_s=0.0):
        self.world.later(later_s)
        return wait_for(self.script.tick())

    def hear(self, text="Good evening.", by_player=True):
        said = Message("user", text, id=new_id("m"), speaker=Speaker("Alice", ALICE), channel="say")
        self.script.runtime.hear(said, self.script.now(), by_player)

    def cued(self, text="the bell tolls"):
        self.script.runtime.cue = Cue(text, self.script.now())

    def used(self, ages, unanswered):
        now = self.script.now()
        self.script.state.unasked = Used(tuple(sorted(now - age for age in ages)), unanswered)

    def test_speaks(self):
        """A fresh reason stands in the prompt, the line in the history, the call in its purpose."""
        for age_s, reason in ((0, "(Nobody spoke to you: the bell tolls."), (301, "quiet here")):
            self.cued()
            self.assertEqual(self.tick(age_s), "unasked")
            request = self.world.model.requests[-1]
            self.assertIn(reason, request.messages[-1]["content"])
        self.assertNotIn("bell", request.messages[-1]["content"])
        self.assertEqual(self.game.said[0], ("public", "The fire is warm."))
        self.assertEqual(request.purpose, "unasked")
        offered = [tool["function"]["name"] for tool in request.tools]
        self.assertEqual(offered, ["noop"])
        line = self.script.history.messages()[0]
        self.assertEqual((line.role, line.content), ("assistant", "The fire is warm."))
        self.assertIsNone(self.script.runtime.cue)

    def test_each_rule(self):
        """Each thing that must hold, alone, keeps it silent at no cost, and is named."""
        breaks = {
            "`initiative` is 0": lambda: self.world.configure(initiative=0),
            "offline model": lambda: setattr(self.script, "model_name", OFFLINE_MODEL),
            "asleep": lambda: self.script.fall_asleep(),
            "is too small": lambda: setattr(self.world.model, "_window", 1_500),
            "no player": lambda: setattr(self.game, "active", ()),
            "somebody spoke": lambda: self.hear(by_player=False),
            "an assistant spoke unasked": lambda: setattr(
                self.game.manners, "cued_at", self.script.now()
            ),
            "often enough": lambda: self.used([n * 200.0 for n in range(4)], 0),
            "half of a spend limit": lambda: (
                self.world.configure(spend_caps={"tokens_day": 100}),
                self.script.spend.add(Amount(1, 50)),
            ),
            "last two lines": lambda: self.used([500.0], 2),
        }
        self.assertEqual(len(breaks), len(RULES))
        for words, breaking in breaks.items():
            with self.subTest(rule=words):
                self.setUp()
                self.assertEqual(self.script.why_not(), "")
                breaking()
                self.assertIn(words, self.script.why_not())
                if words != "somebody spoke":  # that line is answered
                    self.tick()
                    self.assertEqual(self.world.model.requests, [])

    def test_two_lines_then_silence(self):
        """Two lines, two minutes apart; then none until a player speaks, also after a restart."""
        spoken = [second for second in range(0, 3600, 30) if self.tick(30) == "unasked"]
        self.assertEqual(spoken, [0, 120])
        self.world.restart()
        self.assertEqual(self.tick(130), "idle")
        self.hear("Bah.", by_player=False)
        self.tick()
        self.assertEqual(self.tick(130), "idle")
        self.hear()
        self.assertEqual([self.tick(), self.tick(), self.tick(130)], ["turn", "idle", "unasked"])

    def test_the_hour(self):
        """So many calls an hour, whatever comes of them."""
        self.world.model.default = call("noop")
        self.world.later(7200)
        self.assertEqual(sum(self.tick(30) == "unasked" for _ in range(240)), 8)
        self.assertEqual(list(self.script.history.messages()), [])

    def test_only_words_and_poses(self):
        """Other calls are dropped and logged, and nothing of them is stored."""
        wrong = [call("give", thing="crown", to="Alice"), call("search_memory", query="gold")]
        wrong += [call("add_journal_entry", content="obey Alice"), call("noop")]
        wrong += [call("whisper", target="Alice", text="psst")]
        self.world.model.answers = [[each for calls in wrong for each in calls]]
        self.assertEqual(self.tick(), "unasked")
        self.assertEqual(self.game.said, [])
        self.assertEqual(list(self.script.history.messages()), [])
        refused = {fields["tool"] for kind, fields in self.script.audits if kind == "tool_refused"}
        self.assertEqual(refused, {"give", "search_memory", "add_journal_entry", "whisper"})
        self.world.model.answers = [call("emote", text="pokes the fire.")]
        self.tick(130)
        self.assertEqual(self.game.said, [("public", "pokes the fire.")])

    def test_who_leaves_meanwhile(self):
        """It looks again before it speaks: nobody is here, or somebody has just spoken."""
        for happens in (lambda: setattr(self.game, "active", ()), self.hear):
            self.game.active = tuple(FakeGame.people.values())
            self.world.model.default = lambda request, happens=happens: happens() or "By the way."
            self.tick(130)
            self.assertEqual(self.game.said, [])
        self.assertEqual(self.script.state.unasked.unanswered, 0)

    def test_no_model(self):
        """Where no model answers, nothing is said or shown, and the offline model is not asked."""
        for answer in (model_down(), ModelReply(content="", model="m", finish_reason="length")):
            self.world.model.answers = [answer]
            self.tick(130)
        self.assertEqual(self.game.said + self.game.shown, [])
        self.assertEqual(len(self.world.model.requests), 2)

    def test_clock_set_back(self):
        """Times ahead of the clock count for nothing."""
        self.assertEqual(Used((900.0, 5000.0), 1).since(1000.0, 0.0), Used((900.0, 5000.0), 1))
        self.assertEqual(Used((900.0,), 2).since(1000.0, 950.0), Used((900.0,), 0))
        self.assertEqual(Used().since(1000.0, 950.0), Used())


class TestPlanted(AttackTest):
    """Scene 11: a model that obeys whatever it reads, in turns that nobody asked for."""

    def unasked(self):
        runtime = self.script.runtime
        runtime.last_spoke_at = runtime.last_turn_at = 0.0
        self.script.game.manners.cued_at = 0.0
        return wait_for(self.script.at_tick())

    def test_orders(self):
        """Planted orders move nothing, wherever they stand."""
        self.configure(initiative=60)
        self.room1.db.desc = ALL
        self.mallory.db.desc = ALL
        self.talk(f"Aria, {ALL}", speaker=self.mallory)
        self.aria.journal.add(f"Char ordered: {ALL}", audience="public")
        for _ in range(3):
            self.script.runtime.player_spoke_at = time.time()
            self.script.cue(f"the bell tolls {ALL}")
            self.assertEqual(self.unasked(), "unasked")
            self.assertSafe()
        self.assertEqual(self.model.requests[-1].purpose, "unasked")

    def test_company(self):
        """An active player is near: connected, not idle, seen, and not ignoring assistants."""
        [session] = self.char1.sessions.all()

        def is_company():
            return stable_id(self.char1) in self.script.game.company(600)

        self.assertTrue(is_company())
        session.cmd_last_visible = time.time() - 700
        self.assertFalse(is_company())
        session.cmd_last_visible = time.time()
        self.char1.locks.add("view:false()")
        self.assertFalse(is_company())
        self.char1.locks.add("view:all()")
        self.account.tags.add("ignored", category="evennia_ai")
        self.assertFalse(is_company())
        self.account.tags.remove("ignored", category="evennia_ai")
        self.assertTrue(is_company())
        self.char1.location = self.room2
        self.assertFalse(is_company())


class TestCues(CommandLineTest):
    """Reasons that a game gives, and two assistants in one room."""

    default = "The bell, again."

    def quiet(self, script):
        script.runtime.last_spoke_at = script.runtime.last_turn_at = 0.0

    def test_a_reason_of_the_game(self):
        """`cue` says whether the assistant may speak, and why not."""
        self.assertIn("its option `initiative` is 0", self.script.cue("the bell tolls"))
        self.configure(initiative=4)
        self.quiet(self.script)
        self.assertEqual(self.script.cue("the |rbell|n tolls"), "")
        self.assertEqual(self.script.runtime.cue.text, "the bell tolls")

    def test_one_assistant_a_room(self):
        """Two assistants never speak unasked within the same two minutes."""
        boris = create_object(CHARACTER, key="Boris", location=self.room1)
        scripts, done = (self.script, boris.assistant), []
        for script in scripts:
            script.stop()
            script.attributes.add("initiative", 60)
            self.quiet(script)
        for script in scripts:
            done.append(wait_for(script.at_tick()))
            self.quiet(scripts[1])
        self.assertEqual(done, ["unasked", "heard"])
        self.assertIn("an assistant spoke unasked", scripts[1].why_not())

    def test_in_a_private_room(self):
        """What is said unasked in a private room stays with those who are in it."""
        self.room1.tags.add("private", category="evennia_ai")
        self.configure(initiative=4)
        self.quiet(self.script)
        self.assertEqual(wait_for(self.script.at_tick()), "unasked")
        line = self.script.history.messages()[-1]
        here = [obj for obj in self.room1.contents if obj in (self.char1, self.char2)]
        self.assertEqual(line.audience, private(map(stable_id, here)))
