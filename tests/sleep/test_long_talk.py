"""A long talk in a small context, over real HTTP."""

import itertools
import random

from tests import loopback
from tests.thoroughness import examples
from tests.waiting import pump_until
from tests.wire_case import WireTest

PLACES = ("mill", "harbour", "chapel", "orchard", "old bridge")
THINGS = ("lantern", "barrel", "silver key", "ledger", "fiddle")


TURNS = examples(300, 60)


class TestHundredsOfTurns(WireTest):
    def setUp(self):
        self.random = random.Random(7)
        self.numbers = itertools.count()
        super().setUp()

    def respond(self, body):
        """A chatty model that likes tools and, told to summarise or extract, does."""
        messages = body["messages"]
        told = [str(m.get("content")) for m in messages]
        if "[MESSAGES TO COMPACT]" in told[-1] or "to be summarised" in told[-1]:
            return loopback.text("They spoke of the mill, the harbour and who owes whom.")
        if any("(pre_compaction)" in text for text in told):
            if messages[-1]["role"] == "tool" or self.random.random() < 0.5:
                return loopback.calls(loopback.call("noop"))
            return loopback.calls(loopback.call("add_journal_entry", {"content": "A fact."}))
        if any(m["role"] == "tool" for m in messages[-3:]):
            return loopback.text(f"That is number {next(self.numbers)}.")
        look, search = loopback.call("look"), loopback.call("search_memory", {"query": "key"})
        say = loopback.call("say", {"text": self.line(8)})
        note = loopback.call("add_journal_entry", {"content": self.line(10)})
        answers = (
            loopback.text(self.line(12)),
            loopback.text(self.line(60)),
            loopback.calls(look),
            loopback.calls(look, search),
            loopback.calls(say, note, content="Let me see."),
        )
        return self.random.choice(answers)

    def line(self, words):
        return " ".join(self.random.choice(PLACES + THINGS) for _ in range(words))

    def test_nothing_is_lost(self):
        """Each line said is in history or archive, once; requests stay legal and in the limit."""
        heard, logs, dreams = [], [], 0
        self.script.log = lambda text, warning=False: logs.append(text)
        for turn in range(TURNS):
            text = f"line {turn}: " + self.line(self.random.choice((6, 15, 40)))
            heard.append(text)
            speaker = self.random.choice((self.char1, self.char2))
            if turn % 9 == 4:
                speaker.at_say(text, receivers=[self.aria], whisper=True)
            else:
                self.say(text, speaker)
            self.tick()
            if turn % 60 == 59:
                # A compaction in the background may hold the lock for its commit.
                pump_until(lambda: self.script.runtime.behind is None)
                while self.script.runtime.heard():
                    pump_until(lambda: self.script.runtime.lock.running is None)
                    self.tick()
                self.script.fall_asleep()
                self.assertEqual(self.tick(), "dreamt")
                dreams += 1
                self.script.wake()
        emergencies = sum("nearly full" in line for line in logs)
        self.assert_requests_legal()
        ids = [m.id for m in self.recorded()]
        self.assertEqual(len(ids), len(set(ids)))
        said = [text for text in self.recorded_contents("user") if text.startswith("line ")]
        self.assertEqual(sorted(said), sorted(heard))
        self.assertGreater(emergencies, TURNS // 100)
        self.assertEqual(dreams, TURNS // 60)
        self.assertEqual(self.script.runtime.counts["errors"], 0, self.script.runtime.last_error)
