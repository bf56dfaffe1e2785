"""The log of token budgets: every request of any purpose, in memory, saved now and then."""

import unittest
from collections import deque

from evennia_ai.errors import ModelError
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction.budget import EVENTS_KEPT, KEY, BudgetLog
from evennia_ai.llm_interaction.values import ModelReply, TurnRequest
from evennia_ai.sleep.compaction.due import EMERGENCY
from evennia_ai.testing import FakeAssistant, ScriptedModel
from tests.asked import model_down
from tests.memory_assistant import extract_and_compact
from tests.waiting import wait_for


def talk(count):
    """Lines that are long enough to be worth a summary."""
    texts = [f"line {n}: the miller owes Bob {n} coins, due at dawn. " * 4 for n in range(count)]
    bob = Speaker("Bob", "o2.b")
    return [Message("user", text, speaker=bob) for text in texts]


class TestBudgetLog(unittest.TestCase):
    def setUp(self):
        self.aria = FakeAssistant(ScriptedModel(default="They talked."), compact_preserve_window=4)
        self.aria.history.append(talk(12))

    def turn(self, **request):
        return wait_for(self.aria.run_turn(TurnRequest(**request)))

    def test_a_turn(self):
        """A turn's request is logged with its audience, its regions and the reply's figures."""
        audience = private(["o2.b"])
        self.aria.mind.model.answers = [ModelReply(content="Aye.", completion_tokens=3)]
        self.turn(audience=audience)
        (event,) = self.aria.budgets.events()
        self.assertEqual((event.purpose, event.audience), ("awake", audience))
        self.assertEqual(event.at, self.aria.now())
        self.assertGreater(event.regions["History"], 0)
        self.assertGreater(event.usage, 0)
        self.assertEqual(event.trigger, "")
        self.assertEqual(event.completion_tokens, 3)

    def test_no_answer(self):
        """A request that no model answers is logged too, without figures of a reply."""
        self.aria.mind.model.answers = [model_down()]
        self.aria.store.set("llm_offline_fallback", False)
        with self.assertRaises(ModelError):
            self.turn()
        self.assertEqual([e.completion_tokens for e in self.aria.budgets.events()], [0])

    def test_a_compaction(self):
        """Extraction and summary are logged with what triggered their compaction."""
        script = self.aria
        wait_for(extract_and_compact(script, script.obj, EMERGENCY))
        events = script.budgets.events()
        self.assertEqual({e.purpose for e in events}, {"pre_compaction", "summary"})
        self.assertEqual({e.trigger for e in events}, {"emergency"})
        for event in events:
            self.assertLessEqual(event.total, event.limit)
            self.assertGreater(event.regions["History"], 100)
        self.turn()
        self.assertEqual(script.budgets.events()[-1].trigger, "")

    def test_bounded(self):
        """The newest events are kept, in memory and stored."""
        for _ in range(EVENTS_KEPT + 7):
            self.turn()
        self.aria.budgets.save()
        self.assertEqual(len(self.aria.budgets.events()), EVENTS_KEPT)
        again = FakeAssistant(store=self.aria.store)
        self.assertEqual(again.budgets.events(), self.aria.budgets.events())
        newest = self.aria.budgets.events()[-1:]
        log = BudgetLog(self.aria.store, deque(newest))
        log.save()
        self.assertEqual(log.events(), newest)
        self.assertEqual(len(self.aria.store.get(KEY)["events"]), EVENTS_KEPT)

    def test_no_talk(self):
        """What is stored holds nobody's words and no names."""
        self.turn()
        self.aria.budgets.save()
        self.assertNotRegex(str(self.aria.store.get(KEY)), "miller|Bob")
