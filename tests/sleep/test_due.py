"""When a compaction is due, and what it keeps."""

import unittest

from evennia_ai.history.messages import Message
from evennia_ai.llm_interaction.prompt import measure_fixed
from evennia_ai.sleep import run_sleep_tick
from evennia_ai.sleep.compaction.compact import Compaction, due
from evennia_ai.sleep.compaction.plan import BACKGROUND, COUNT, EMERGENCY, MANUAL, REQUEST, SLEEP
from evennia_ai.sleep.compaction.rules import firing
from tests.fake import FakeAssistant
from tests.memory_assistant import MemoryWorldTest
from tests.models import ScriptedModel
from tests.waiting import wait_for

WORDS = "the miller of Saltmarsh sold his goats for crowns and pence " * 2


def assistant(lines, **options):
    """An assistant who heard so many lines of some thirty tokens."""
    aria = FakeAssistant(ScriptedModel(), **options)
    measure_fixed(aria)
    aria.history.append(Message("user", f"{number} {WORDS}") for number in range(lines))
    return aria


class TestDue(unittest.TestCase):
    def test_the_first_that_fires(self):
        """By usage of the room, in the order asked."""
        aria = assistant(400, max_context_tokens=12_000)
        self.assertEqual(firing(aria, EMERGENCY, SLEEP), EMERGENCY)
        self.assertEqual(due(aria, COUNT, REQUEST, BACKGROUND).trigger, BACKGROUND)
        aria.runtime.summaries.is_requested = True
        self.assertEqual(due(aria, COUNT, REQUEST, BACKGROUND).trigger, REQUEST)
        for window in ("immediate_window", "recent_window"):
            aria.store.set(window, 10)
        self.assertEqual(due(aria, COUNT, REQUEST, BACKGROUND).trigger, COUNT)
        aria = assistant(20)
        self.assertIsNone(due(aria, EMERGENCY, COUNT, REQUEST, BACKGROUND, SLEEP))

    def test_what_the_windows_keep(self):
        """The two windows count for a compaction by count alone, and only where both are set."""
        kept = {}
        for immediate, recent in ((0, 0), (10, 0), (0, 10), (10, 10)):
            windows = {"immediate_window": immediate, "recent_window": recent}
            aria = assistant(100, compact_preserve_window=30, **windows)
            for trigger in (COUNT, MANUAL):
                kept[trigger, immediate, recent] = len(Compaction(aria, trigger).plan.staying)
        self.assertEqual(kept.pop((COUNT, 10, 10)), 11)
        self.assertEqual(set(kept.values()), {30})

    def test_what_may_not(self):
        """Nothing fires where it is switched off, or waits after failures."""
        for options in ({"compact_enabled": False}, {"compact_auto": False}):
            aria = assistant(400, max_context_tokens=12_000, **options)
            self.assertEqual(firing(aria, EMERGENCY), "")
        aria = assistant(400, max_context_tokens=12_000)
        aria.runtime.summaries.waits = 1, aria.now() + 60
        self.assertEqual(firing(aria, EMERGENCY), "")
        aria.clock.advance(61)
        self.assertEqual(firing(aria, EMERGENCY), EMERGENCY)

    def test_after_a_rollback_only_an_overflow_fires(self):
        """Not a context that is nearly full, but any that is more than full."""
        for lines, fires in ((60, ""), (400, SLEEP)):
            aria = assistant(lines, max_context_tokens=8000, compact_sleep_threshold=0.1)
            aria.state.hold = True
            self.assertEqual(aria.usage() > 1.0, bool(fires))
            self.assertEqual(firing(aria, SLEEP), fires)


class TestAsleep(MemoryWorldTest):
    def test_its_own_windows(self):
        """Just those lines leave for which there is a window."""
        self.world.configure(immediate_window=30, recent_window=20)
        self.fill(51, content="a line of talk " * 3)
        report = wait_for(run_sleep_tick(self.script, self.body))
        self.assertEqual(report["context_compaction"]["compacted_messages"], 20)
        (record,) = self.script.history.compactions()
        self.assertEqual(record.trigger, "count")
