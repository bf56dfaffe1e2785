"""Moderation: what a game's own function makes of what is heard and said."""

import json
import threading
import unittest

from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from evennia_ai.commands.history import why
from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.messages import Message, new_id
from evennia_ai.history.stored import unseal
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.recall.values import Query
from evennia_ai.testing import call
from evennia_ai.turns.moderation import THREADS, TIMEOUT_S, Moderator
from evennia_ai.turns.runtime import RUNTIMES, UNJUDGED
from evennia_ai.turns.tools.base import NOT_SAID
from tests import moderators
from tests.base import AssistantTest, events, log_text
from tests.fake import FakeAssistant
from tests.models import ScriptedModel
from tests.strategies import FEW
from tests.waiting import pump_until, wait_for

PATH = "tests.moderators.moderate"


class ModeratedTest(AssistantTest):
    """A game whose settings name `tests.moderators.moderate`."""

    def setUp(self):
        self.enterContext(override_settings(EVENNIA_AI_MODERATE=PATH))
        self.addCleanup(moderators.may_answer.set)
        moderators.asked.clear()
        moderators.threads.clear()
        super().setUp()
        # A tick begins when the test says so.
        self.configure(reply_cooldown_s=3600)
        self.script.runtime.last_turn_at = self.script.now()
        self.heard = self.lines_of(self.char2)
        self.alerts = []
        self.script.alert = self.alerts.append

    def judged(self, *texts):
        """Say these, and wait until everything heard has its verdict."""
        for text in texts:
            self.say(text)
        queue = self.script.runtime
        pump_until(lambda: len(queue.passed()) == len(queue.queue))

    def log(self):
        """The audit log, as text."""
        return log_text()

    def audits(self):
        """The lines of the audit log on moderation."""
        return [event.facts for event in events("moderation")]

    def everything(self):
        """All Attributes of script and body, and the audit log, as text."""
        log = self.log()
        rows = [*self.script.db_attributes.all(), *self.aria.db_attributes.all()]
        return str([unseal(row.value) for row in rows]) + log

    def reload(self):
        """The process ends and another starts, in which the function answers."""
        self.script.at_server_reload()
        RUNTIMES.pop(self.script.scope, None)
        for name in ("state", "history"):
            self.script.__dict__.pop(name, None)
        moderators.may_answer.set()
        self.script.at_server_start()


class TestHeard(ModeratedTest):
    def test_refused_is_never_heard(self):
        """A refused line is in no request, in nothing stored and in no search; others are."""
        self.judged("a forbidden xylophone", "good evening Aria")
        self.assertEqual(self.tick(), "turn")
        found = wait_for(self.script.memory.search(Query("xylophone", 9, PUBLIC)))
        self.assertEqual(list(found), [])
        self.assertEqual(self.contents()[0], ("user", "good evening Aria"))
        self.assertNotIn("xylophone", str(self.model.requests))
        self.assertNotIn("xylophone", self.everything())

    def test_replaced(self):
        """What is stored and sent to a model is what the function returned."""
        self.judged("Aria, you rude thing")
        self.tick()
        self.assertEqual(self.contents()[0], ("user", "Aria, you gentle thing"))
        self.assertNotIn("rude", str(self.model.requests))

    def test_what_it_is_told(self):
        """Plain values: who, how, and whether it is private; on daemon threads of its own."""
        self.char1.at_say("psst", receivers=[self.aria], whisper=True)
        self.judged()
        [(text, about)] = moderators.asked
        self.assertEqual(text, "psst")
        wanted = {"kind": "heard", "speaker": "Char", "channel": "whisper", "private": True}
        self.assertEqual({key: about[key] for key in wanted}, wanted)
        json.dumps(about)
        self.assertNotIn(threading.main_thread(), moderators.threads)
        self.assertTrue(all(thread.daemon for thread in moderators.threads))

    def test_a_verdict_begins_the_turn(self):
        """An allowed line is answered as soon as it has passed, without the timer."""
        self.model.answers = ["Good evening."]
        self.configure(reply_cooldown_s=0)
        self.say("good evening Aria")
        pump_until(lambda: self.model.requests)

    def test_restart(self):
        """A line whose verdict a restart cuts off is judged and answered afterwards."""
        moderators.may_answer.clear()
        self.say("good evening Aria")
        self.say("a forbidden word")
        self.reload()
        self.judged()
        self.tick()
        self.assertEqual(self.contents()[0], ("user", "good evening Aria"))
        self.assertNotIn("forbidden", str(self.contents()))

    def test_failure(self):
        """If the function fails, the line passes; staff are told once, not what was said."""
        self.judged("a broken xylophone", "number two", "a cancelled word", "good evening Aria")
        self.tick()
        self.assertEqual(self.contents()[0], ("user", "a broken xylophone"))
        self.assertEqual(self.contents()[3], ("user", "good evening Aria"))
        self.assertEqual(len(self.alerts), 1)
        self.assertIn("ValueError in moderators.py", self.alerts[0])
        self.assertNotIn("xylophone", self.alerts[0])
        self.assertEqual([line["verdict"] for line in self.audits()], ["failed"] * 3)

    def test_staff_who_cannot_be_told(self):
        """What is raised while staff are told holds up no line."""
        self.script.alert = lambda text: 1 / 0
        self.judged("a broken xylophone", "good evening Aria")
        self.tick()
        self.assertEqual(self.contents()[0], ("user", "a broken xylophone"))

    def test_audit(self):
        """The log names speaker and verdict of what was refused or replaced, never the words."""
        for text in ("a forbidden word", "a rude word", "a good word"):
            self.judged(text)
        self.assertEqual([line["verdict"] for line in self.audits()], ["refused", "replaced"])
        self.assertNotIn("word", str(self.audits()))


class TestSaid(ModeratedTest):
    def turn(self, *answers, text="good evening Aria"):
        self.model.answers = list(answers)
        self.judged(text)
        return self.tick()

    def test_a_refused_reply_is_no_silence(self):
        """Who asked sees a sign in character, and `ai/why` names moderation, not the words."""
        self.turn("a forbidden xylophone")
        self.assertIn("words would not come", str(self.heard))
        lines = "\n".join(wait_for(why(self.script, "", self.script.seen(PUBLIC))))
        self.assertIn("Moderation refused a newer reply", lines)
        self.assertNotIn("xylophone", lines)

    def test_stock_replies(self):
        """What moderation says instead may be the same again and again."""
        for number in range(3):
            self.turn(f"a stock word {number}")
        self.assertEqual(str(self.heard).count("Let us not speak of that here"), 3)

    def test_every_way_to_speak(self):
        """Words and poses by tools are asked about too; the model may then try other words."""
        for tool, more in (("say", {}), ("emote", {}), ("whisper", {"target": "Char2"})):
            with self.subTest(tool):
                self.turn(
                    call(tool, text="forbidden xylophones", **more),
                    call(tool, text=f"rude words by {tool}", **more),
                    call("noop"),
                )
                self.assertNotIn("xylophones", str(self.heard))
                self.assertNotIn("xylophones", self.everything())
                self.assertNotIn(NOT_SAID, str(self.heard))
                self.assertIn(f"gentle words by {tool}", str(self.heard))

    def test_words_beside_a_call(self):
        """What stands beside a call is not stored unasked either."""
        look = tuple(call("look"))
        beside = ModelReply(content="forbidden xylophones", tool_calls=look, model="m")
        self.turn(beside, call("noop"))
        self.assertNotIn("xylophones", self.everything())

    def test_failure_is_silence(self):
        """If the function fails, nothing is said, and staff are told."""
        self.turn("a broken xylophone")
        self.assertNotIn("xylophone", str(self.heard))
        self.assertNotIn("xylophone", self.everything())
        self.assertEqual(len(self.alerts), 1)

    def test_stopped_in_mid_verdict(self):
        """A turn that a reload stops while it waits is answered after the start."""
        self.model.answers = ["Hello first.", "Hello again."]
        self.judged("good evening Aria")
        moderators.may_answer.clear()
        self.script.runtime.last_turn_at = 0.0
        running = self.script.at_tick()
        pump_until(lambda: len(moderators.asked) == 2)
        self.script.stop_thinking()
        wait_for(running)
        self.reload()
        self.tick()
        self.assertIn("Hello again.", str(self.heard))
        self.assertNotIn("Hello first.", str(self.heard))


class TestSlow(unittest.TestCase):
    """A function whose calls return when the test says so, or never."""

    def setUp(self):
        self.clock, self.begun, self.answers = Clock(), [], {}
        self.aria = FakeAssistant(ScriptedModel(["Good evening."]), clock=self.clock)
        self.judge = Moderator(lambda: self.verdict, self.submit, self.clock)
        self.aria.moderator = self.judge

    def verdict(self, text, about):
        """Some are kept, some dropped, all others changed."""
        return {"keep": text, "drop": ""}.get(text.split()[0], text.upper())

    def submit(self, function, text, about):
        self.begun.append((answer := Deferred(), function, text, about))
        return answer

    def finish(self, number):
        answer, function, *args = self.begun[number]
        answer.callback(function(*args))

    def ask(self, text, kind="heard", assistant="Aria", speaker_id="o1.a"):
        about = {"kind": kind, "assistant": assistant, "speaker_id": speaker_id}
        got = self.answers.setdefault(text, [])
        self.judge.ask(text, about).addCallbacks(got.append, lambda why: got.append(why.type))

    def hear(self, text):
        event = Message("user", text, id=new_id("m"), channel="say", metadata={UNJUDGED: True})
        self.aria.runtime.hear(event, 0.0)
        self.aria.moderate(event)

    def test_heard_passes(self):
        """After the timeout, a heard line passes."""
        self.hear("hello")
        self.clock.advance(TIMEOUT_S - 0.1)
        self.assertEqual(self.aria.runtime.passed(), [])
        self.clock.advance(0.2)
        self.assertEqual([each.content for each in self.aria.runtime.passed()], ["hello"])

    def test_a_flood_waits_in_line(self):
        """A slow function is asked about every text; waiting is no failure."""
        for number in range(3 * THREADS):
            self.ask(f"t{number}")
        for number in range(3 * THREADS):
            self.clock.advance(TIMEOUT_S * 0.9 / THREADS)
            self.finish(number)
        self.assertEqual(self.answers, {f"t{n}": [f"T{n}"] for n in range(3 * THREADS)})

    def test_hanging_calls_give_their_place(self):
        """After the timeout the next texts are asked about."""
        for number in range(THREADS + 1):
            self.ask(f"t{number}")
        self.assertEqual(len(self.begun), THREADS)
        self.clock.advance(TIMEOUT_S)
        self.assertEqual(len(self.begun), THREADS + 1)
        self.finish(THREADS)
        self.assertEqual(self.answers[f"t{THREADS}"], [f"T{THREADS}"])
        self.assertEqual(len(self.answers["t0"]), 1)

    @FEW
    @given(st.lists(st.sampled_from(("keep", "drop", "change")), max_size=12), st.randoms())
    def test_verdicts_in_any_order(self, kinds, rng):
        """What passes leaves in the order in which it was heard, each line once."""
        self.setUp()
        texts, taken = [f"{kind} line {number}" for number, kind in enumerate(kinds)], []
        for text in texts:
            self.hear(text)
        finished = set()
        while len(finished) < len(texts):
            number = rng.choice([n for n in range(len(self.begun)) if n not in finished])
            self.finish(number)
            finished.add(number)
            if rng.random() < 0.3:
                taken += self.aria.runtime.take()
        taken += self.aria.runtime.take()
        wanted = [self.verdict(text, {}) for text in texts]
        self.assertEqual([event.content for event in taken], [text for text in wanted if text])
        self.assertEqual((self.aria.runtime.queue, self.aria.errors), ([], []))
