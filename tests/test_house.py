"""How many of the package's modules a heard line and a compaction pass (`scripts/house.py`)."""

from evennia_ai.sleep.compaction import compact_conversation_history
from scripts.house import modules_passed
from tests.base import AssistantTest
from tests.waiting import wait_for

# What is counted today. Lower them with the count.
LINE, COMPACTION = 61, 35


class TestModulesPassed(AssistantTest):
    """Fewer hand-offs from module to module are easier to follow."""

    default = "They talked about the ferry."

    def test_a_heard_line(self):
        """From what somebody says to the words that the room hears."""
        self.talk("Aria, good evening.")  # the first loads what is slow
        lines = self.lines_of(self.char1)
        passed = modules_passed(lambda: self.talk("Aria, what is new?", "The ferry is late."))
        self.assertIn("The ferry is late.", "\n".join(lines))
        self.assertIn("game/hearing.py", passed)
        self.assertLessEqual(len(passed), LINE, sorted(passed))

    def test_a_compaction(self):
        """From the full history to the summary in its place."""
        self.fill(40, words=30)
        passed = modules_passed(
            lambda: wait_for(compact_conversation_history(self.script, self.aria, force=True))
        )
        self.assertEqual(len(self.script.history.summaries()), 1)
        passed = set(passed) - {"startstop.py"}  # a timer of another test may fire meanwhile
        self.assertLessEqual(len(passed), COMPACTION, sorted(passed))
