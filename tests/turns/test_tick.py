"""The tick, awake: hearing, thinking, answering."""

import unittest
from collections import Counter
from datetime import time
from itertools import product
from unittest.mock import patch

from twisted.internet.defer import Deferred

from evennia_ai import services
from evennia_ai.history.audience import STAFF
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction.contexts import CONTEXT_PRE_COMPACTION
from evennia_ai.llm_interaction.values import READ_AHEAD
from evennia_ai.rag_memory import memory as retrieval
from evennia_ai.testing import call
from evennia_ai.turns.runtime import ANSWER, QUEUE_LIMIT
from tests.asked import model_down
from tests.base import AssistantTest
from tests.fake import FakeAssistant
from tests.memory_assistant import PEOPLE, MemoryWorldTest
from tests.models import ScriptedModel
from tests.waiting import started_reactor, wait_for


class TestAwakeTick(AssistantTest):
    """What a tick does with what was heard."""

    def at(self, now):
        self.script.now = lambda: now

    def tick_at(self, now, text=None):
        """Let it be a time, say something, and tick."""
        self.at(now)
        if text:
            self.say(text)
        return wait_for(self.script.at_tick())

    def test_said_is_answered(self):
        """What is said is stored and answered aloud; others have turns between its steps."""
        services.use(server=True)  # where people play, no turn is done in one piece
        started_reactor()
        self.model.answers = ["Good evening, Char."]
        heard = self.lines_of(self.char1)
        self.say("hello Aria")
        self.script.runtime.last_turn_at = 0.0
        done = self.script.at_tick()
        self.assertFalse(done.called)
        self.assertEqual(wait_for(done), "turn")
        self.assertEqual(
            self.contents(), [("user", "hello Aria"), ("assistant", "Good evening, Char.")]
        )
        self.assertIn("Good evening, Char.", heard[-1])

    def test_cooldown(self):
        """A line right after a turn waits until it is over; a call ends with its turn."""
        self.configure(reply_cooldown_s=30, turn_timeout_s=20, llm_timeout_s=60)
        now = self.script.now()
        self.model.default = "Yes?"
        self.assertEqual(self.tick_at(now, "Aria, hello"), "turn")
        self.assertLessEqual(self.model.requests[-1].within_s, 20)
        self.assertEqual(self.tick_at(now + 29, "Aria, one more thing"), "cooldown")
        self.assertEqual(len(self.model.requests), 1)
        self.assertEqual(self.tick_at(now + 30), "turn")
        self.assertEqual(len(self.model.requests), 2)

    def test_a_clock_that_is_set_back(self):
        """It answers at once; it does not wait for the old time."""
        now = self.script.now()
        self.model.default = "Yes?"
        self.assertEqual(self.tick_at(now, "Aria, hello"), "turn")
        for set_back_s in (3600, 86_400):
            now -= set_back_s
            self.assertEqual(self.tick_at(now, "Aria, are you there?"), "turn")
            now += 2

    def test_words_in_the_queue_keep_it_awake(self):
        """However long ago they were heard, they are stored before it falls asleep."""
        self.configure(sleep_after_idle_s=60)
        self.say("Aria, hello")
        self.at(self.script.now() + 1000)
        self.assertEqual(self.tick(), "heard")
        self.assertEqual(self.contents(), [("user", "Aria, hello")])
        self.assertEqual(self.tick(), "fell asleep")

    def test_a_store_that_never_answers(self):
        """A turn goes on without memories when their store hangs, or breaks in its own way."""
        hangs, breaks = lambda *args, **_: Deferred(), lambda *args, **_: {}["gone"]
        for search, answer in ((hangs, "Here I am."), (breaks, "And again.")):
            self.semantic.search = search
            with patch.object(retrieval, "SEARCH_TIMEOUT_S", 0.1):
                text = f"Aria, is the mill of Norvik {answer}"
                self.assertEqual(self.talk(text, answer), "turn")
            self.assertEqual(self.contents()[-1], ("assistant", answer))

    def test_late_tick_is_skipped(self):
        """While a turn waits for the model a second tick does nothing but save the queue."""
        first = self.asked_slowly("hello", "Yes?")
        self.say("are you there?")
        self.assertEqual(wait_for(self.script.at_tick()), "late")
        # What is being answered, and what came meanwhile.
        self.assertEqual(len(self.script.state.load_queue()), 2)
        self.model.release()
        wait_for(first)
        self.assertEqual(len(self.contents()), 2)


class TestHeard(unittest.TestCase):
    """One line that was heard, by its audience."""

    def test_for_staff(self):
        """What only staff may read is stored and never answered."""
        aria = FakeAssistant(ScriptedModel(default="Yes?"))
        alice = Speaker("Alice", aria.game.people["Alice"])
        line = Message("user", "Aria?", id="m1", audience=STAFF, speaker=alice, channel="say")
        aria.runtime.hear(line, aria.now())
        self.assertEqual(wait_for(aria.tick()), "heard")
        self.assertEqual([m.content for m in aria.history.messages()], ["Aria?"])

    def test_all_is_heard_while_switched_off(self):
        """More lines than the queue holds are stored, without a turn."""
        model = ScriptedModel(default="Yes?")
        aria = FakeAssistant(model)
        aria.enabled = False
        lines = [f"line {number}" for number in range(QUEUE_LIMIT + 200)]
        for number, text in enumerate(lines):
            line = Message("user", text, id=f"m{number}", speaker=Speaker("Al"), channel="say")
            aria.runtime.hear(line, aria.now())
            if number % 60 == 0:
                self.assertEqual(wait_for(aria.tick()), "disabled")
        wait_for(aria.tick())
        stored = [message.content for message in aria.history.messages()]
        waiting = [event.content for event in aria.runtime.queue]
        self.assertGreater(len(stored), len(waiting))
        self.assertEqual(stored + waiting, lines)
        self.assertEqual(model.requests, [])

    def test_a_commit_that_fails(self):
        """What was saved in it is saved as a whole the next time."""
        aria = FakeAssistant()
        heard = [Message("user", "Aria?", id=f"m{n:02}") for n in range(40)]
        aria.state.save_queue(heard[:1])
        with self.assertRaises(OSError), aria.store.transaction():
            aria.state.save_queue(heard)
            raise OSError("the disk is full")
        aria.state.save_queue(heard)
        self.assertEqual([e.id for e in aria.state.load_queue()], [e.id for e in heard])

    def test_saved_before_the_start(self):
        """A saved queue that was not read yet stays as it is until something is heard."""
        aria = FakeAssistant()
        aria.state.save_queue([Message("user", "Aria?", id="m1", channel="say")])
        aria.save_queue()
        self.assertEqual([event.id for event in aria.state.load_queue()], ["m1"])


class TestAskedAgain(MemoryWorldTest):
    """A question whose turn failed keeps its place, however much others talk."""

    def setUp(self):
        super().setUp()
        self.world.configure(llm_offline_fallback=False, reply_cooldown_s=0, turn_timeout_s=20)
        self.back_at = self.script.now()
        self.world.model.default = self.answer
        self.tries, self.order = Counter(), []

    def answer(self, request):
        """Fails until the model is back; notes who asked."""
        asked = str(request.messages[-1]["content"]).splitlines()[-1]
        line = next(w for w in ("boat", "ox", "key") if w in asked)
        self.tries[line] += 1
        if self.script.now() < self.back_at:
            return model_down()
        self.order.append(line)
        return f"The {line} is by the mill, number {len(self.order)}."

    def ask(self, name, text, **fields):
        self.hear(text, Speaker(name, PEOPLE[name]), **fields)

    def pass_time(self, seconds, others):
        """Ticks every two seconds, before each of which somebody else does something."""
        for _ in range(seconds // 2):
            self.world.later(2)
            others()
            wait_for(self.script.runtime.lock.run(self.script.tick))

    def others(self):
        """What others do: nothing, a pose, talk among themselves, an arrival, a line for her."""
        talk = {"metadata": {ANSWER: False}}
        return {
            "nothing": lambda: None,
            "pose": lambda: self.ask("Cora", "Cora waves.", channel="pose", **talk),
            "talk": lambda: self.ask("Cora", "Well, Bob?", **talk),
            "arrival": lambda: self.ask("Cora", "", channel="move"),
            "asks": lambda: self.ask("Cora", "Aria, where is the key?"),
        }

    def test_when_the_model_is_back(self):
        """Whatever others do meanwhile, and for however long the model was down."""
        for name, down_s in product(self.others(), (4, 24, 84)):
            with self.subTest(others=name, down_s=down_s):
                self.setUp()
                self.back_at += down_s
                self.ask("Alice", "Aria, where is my boat?")
                self.pass_time(100, self.others()[name])
                self.assertEqual(self.order.count("boat"), 1)
                self.assertLessEqual(self.tries["boat"], 4)
                self.assertEqual(self.script.runtime.unanswered, {})

    def test_in_the_order_of_asking(self):
        """Two who asked before a third are answered before, whoever was tried last."""
        self.back_at += 20
        self.ask("Alice", "Aria, where is my boat?")
        self.pass_time(4, lambda: None)
        self.ask("Bob", "Aria, where is my ox?")
        self.pass_time(4, lambda: None)
        self.assertEqual((self.tries["boat"], self.tries["ox"]), (2, 1))
        self.world.later(20)
        self.ask("Cora", "Aria, where is the key?")
        self.pass_time(2, lambda: None)
        self.assertEqual(self.order, ["boat", "ox", "key"])

    def test_given_up(self):
        """A model that stays away is asked four times for one line; staff are told."""
        self.back_at += 1000
        self.ask("Alice", "Aria, where is my boat?")
        self.pass_time(200, self.others()["talk"])
        self.assertEqual((self.tries["boat"], self.order), (4, []))
        self.back_at = self.script.now()
        self.pass_time(100, self.others()["talk"])
        self.assertEqual(self.order, [])

    def test_too_old(self):
        """What waited otherwise, as in a game that stood still, is not answered."""
        self.ask("Alice", "Aria, where is my boat?")
        self.world.later(self.script.stale_after_s + 1)
        self.pass_time(10, self.others()["talk"])
        self.assertEqual(self.tries["boat"], 0)


class TestInMemory(MemoryWorldTest):
    """Reading ahead, emergencies and the hours of sleep."""

    def tick_with(self, *players, waited_s=400.0):
        """A tick while these are here; returns the purposes of the calls it made."""
        here = dict.fromkeys(players, True)
        later = self.script.now() + waited_s
        self.script.now, self.script.game.here = lambda: later, lambda: here
        before = len(self.world.model.requests)
        wait_for(self.script.tick())
        return [asked.purpose for asked in self.world.model.requests[before:]]

    def test_reads_ahead_for_the_first_player_who_comes(self):
        """A model of the game's own; once, not for each who joins, nor soon after a turn."""
        self.assertEqual(self.tick_with("o1"), [])
        self.world.model.own = True
        self.assertEqual(self.tick_with(), [])
        self.assertEqual(self.tick_with("o1"), [READ_AHEAD])
        self.assertEqual(self.tick_with("o1", "o2", waited_s=10.0), [])
        self.assertEqual(self.tick_with(waited_s=10.0), [])
        self.assertEqual(self.tick_with("o1", waited_s=10.0), [])  # who walks in and out
        self.assertEqual(self.tick_with(), [])
        self.assertEqual(self.tick_with("o1"), [READ_AHEAD])
        self.assertEqual(self.tick_with(), [])
        self.script.runtime.last_turn_at = self.script.now()
        self.assertEqual(self.tick_with("o1", waited_s=10.0), [])

    def test_an_emergency_waits_for_its_extraction(self):
        """No summary is asked for before a slow model has saved the facts."""
        self.world.configure(max_context_tokens=6000, compact_background=False)
        self.fill(60, content="word " * 60)
        self.world.model.held = True
        noted = call("add_journal_entry", content="Bob owes Alice 3 barrels.")
        self.world.model.answers = [noted, call("noop")]
        running = self.script.check_emergency()
        purposes = [request.purpose for request in self.world.model.requests]
        self.assertEqual(purposes, [CONTEXT_PRE_COMPACTION])
        self.world.model.release()
        self.assertTrue(wait_for(running))
        (record,) = self.script.history.compactions()
        self.assertEqual(len([each for each in record.entries if each[0] not in "xc"]), 1)
        logged = [text for kind, text in self.script.audits if kind == "log"]
        self.assertFalse([text for text in logged if text.startswith("emergency compaction")])

    def test_quiet_in_its_hours(self):
        """It falls asleep after five quiet minutes, or sooner if it always does."""
        self.script.game.clock = lambda game, now: time(12)
        for hours, idle_s, quiet_s in (
            ("11:00-13:00", None, 300),
            ("11:00-13:00", 1000, 300),
            ("11:00-13:00", 60, 60),
            ("13:00-14:00", 1000, 1000),
        ):
            with self.subTest(hours=hours, idle_s=idle_s):
                self.world.configure(sleep_schedule=hours, sleep_after_idle_s=idle_s)
                self.script.wake()
                self.world.later(quiet_s - 1)
                self.assertEqual(wait_for(self.script.tick()), "idle")
                self.world.later(1)
                self.assertEqual(wait_for(self.script.tick()), "fell asleep")
