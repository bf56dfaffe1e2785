"""When a compaction fires, and what it keeps."""

import unittest

from evennia_ai.history.messages import Message, total_tokens
from evennia_ai.llm_interaction.prompt import context_usage
from evennia_ai.sleep.compaction.triggers import kept_capacity, make_plan, wants_compaction
from evennia_ai.testing import FakeAssistant, ScriptedModel


def assistant(lines, **options):
    """An assistant who heard so many lines of some thirty tokens."""
    aria = FakeAssistant(ScriptedModel())
    for name, value in options.items():
        aria.store.set(name, value)
    words = "the miller of Saltmarsh sold his goats for crowns and pence " * 2
    aria.history.append(Message("user", f"{number} {words}") for number in range(lines))
    return aria


class TestHold(unittest.TestCase):
    """After a rollback."""

    def test_only_an_overflow_fires(self):
        """Not a context that is nearly full, but any that is more than full."""
        for lines, fires in ((60, False), (400, True)):
            aria = assistant(lines, max_context_tokens=8000)
            aria.state.set_hold(True)
            self.assertEqual(context_usage(aria) > 1.0, fires)
            self.assertEqual(wants_compaction(aria, 0.1), fires)


class TestKept(unittest.TestCase):
    """What stays in the prompt."""

    def test_a_share_of_the_context_stays(self):
        """Where a token trigger fired, so much of the newest talk stays as well as the window."""
        options = {"max_context_tokens": 16_000, "compact_preserve_window": 2}
        aria = assistant(400, compact_preserve_token_share=0.2, **options)
        self.assertGreaterEqual(total_tokens(make_plan(aria, automatic=True).staying), 3200)
        self.assertEqual(len(make_plan(aria, automatic=False).staying), 2)

    def test_where_the_fixed_regions_take_nearly_all(self):
        """Less stays than window and share ask for, or an emergency would follow soon."""
        aria = assistant(60, max_context_tokens=8000)
        config, before = aria.config, total_tokens(make_plan(aria, automatic=True).staying)
        room = kept_capacity(aria, config.compact_sleep_threshold)
        aria.runtime.fixed_tokens += room + 100
        self.assertIsNone(kept_capacity(aria, config.compact_sleep_threshold))
        room = kept_capacity(aria, config.compact_emergency_threshold)
        staying = make_plan(aria, automatic=True).staying
        self.assertTrue(staying)
        self.assertLessEqual(total_tokens(staying), room)
        self.assertLess(room, before)
