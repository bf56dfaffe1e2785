"""Budgets over real HTTP: what is logged is what the server received."""

import json
from dataclasses import replace
from unittest.mock import patch

from evennia_ai.history.messages import Message
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.sleep.compaction import compact_conversation_history, run_pre_compaction_extraction
from tests import loopback
from tests.loopback import count_tokens
from tests.waiting import wait_for
from tests.wire_case import WireTest

# The share by which a logged total may differ from what the server counts, besides a few tokens.
TOLERANCE, FEW_TOKENS = 0.02, 8


class TestBudgetOnTheWire(WireTest):
    """Every request of any purpose, compared with its logged event."""

    def assert_near(self, logged, received):
        self.assertLessEqual(abs(logged - received), FEW_TOKENS + TOLERANCE * received)

    def assert_logged(self):
        """Each request has its event; without the reserve it holds what the server counted."""
        events = self.script.prompts.events()
        for event, body in zip(events, self.server.bodies, strict=True):
            received = count_tokens(body)
            self.assert_near(event.total - event.regions["Reserve"], received)
            self.assertEqual(event.regions["Reserve"], body["max_tokens"])
            self.assertLessEqual(event.total, event.limit)
            self.assertEqual(event.prompt_tokens, received)
            tools = loopback.encode_length(json.dumps(body["tools"])) if "tools" in body else 0
            self.assert_near(event.regions["Tools"], tools)
        return events

    def test_a_long_talk(self):
        """Short lines, long lines, tools, memories and what is left out: within 2 %."""
        self.configure(compact_auto=False, reply_cooldown_s=0)
        for n in range(25):
            self.say(f"Aria, have you heard of the {n * 7} goats by the mill? " * (1 + n % 7))
            self.server.script(
                loopback.calls(loopback.call("look")), loopback.text(f"No, not of {n}.")
            )
            self.tick()
            self.say("So.")
            self.say("The ferryman told me that it rains.")
        self.assertTrue(self.assert_logged()[-1].left_out)
        self.assertGreater(len(self.server.bodies), 40)

    def test_compaction(self):
        """Extractions and summaries are logged as they are sent, too."""
        self.configure(compact_preserve_window=4)
        self.fill(40, words=30)
        wait_for(run_pre_compaction_extraction(self.script, self.aria))
        done = wait_for(compact_conversation_history(self.script, self.aria, force=True))
        self.assertTrue(done["success"], done)
        wait_for(self.script.run_turn(TurnRequest()))
        events = self.assert_logged()
        self.assertEqual({e.purpose for e in events}, {"pre_compaction", "summary", "awake"})
        self.assertGreater(events[-1].regions["Summaries"], 0)

    def test_without_tools(self):
        """A model that is offered none gets none, and they take no room."""
        model = self.script.mind.model
        facts = replace(model.facts(self.script.model_name), calls_tools=False, own=False)
        self.enterContext(patch.object(model, "facts", lambda name: facts))
        self.server.script(loopback.text("The sea."), loopback.text("Words."))
        self.talk("Aria, what do you see?")
        self.script.history.append([Message("user", "word " * 3000)])
        wait_for(self.script.run_turn(TurnRequest()))
        for event in self.assert_logged():
            self.assertEqual(event.regions["Tools"], 0)
        self.assertFalse([body for body in self.server.bodies if "tools" in body])
