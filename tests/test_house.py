"""The package's imports, and how many modules a line and a compaction pass (`scripts/house.py`)."""

import unittest

from evennia_ai.sleep.compaction import compact_conversation_history
from scripts.house import HERE, circles, graph_of, modules_passed, syntax_of
from tests.base import AssistantTest
from tests.waiting import wait_for

# What is counted today. Lower them with the count.
LINE, COMPACTION = 48, 34


class TestImports(unittest.TestCase):
    """Imports go one way, those for the type checker alone and those in functions, too."""

    def test_no_circle(self):
        """No two modules need each other."""
        package = HERE / "evennia_ai"
        graph = graph_of(syntax_of(package)[1], package)
        self.assertIn("evennia_ai.turns.assistant", graph["evennia_ai.turns.tools.base"])
        self.assertEqual(circles(graph), set())


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
