"""The package's imports, and which modules a line, a compaction and a search pass."""

import re
import unittest

from evennia_ai.history.audience import PUBLIC
from evennia_ai.recall.values import Query
from evennia_ai.sleep.compaction import compact_conversation_history
from scripts.house import HERE, AtOnce, circles, graph_of, modules_passed, read_way, syntax_of
from tests.base import AssistantTest
from tests.waiting import wait_for

# What is counted today. Lower them with the count.
LINE, COMPACTION = 47, 34


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
        self.assert_documented("line", passed)

    def test_a_compaction(self):
        """From the full history to the summary in its place."""
        self.fill(40, words=30)
        passed = modules_passed(
            lambda: wait_for(compact_conversation_history(self.script, self.aria, force=True))
        )
        self.assertEqual(len(self.script.history.summaries()), 1)
        passed.pop("startstop.py", None)  # a timer of another test may fire meanwhile
        self.assertLessEqual(len(passed), COMPACTION, sorted(passed))
        self.assert_documented("compaction", passed)

    def test_a_search(self):
        """From the read gate to hits in one order."""
        self.talk("Aria, the ferry is late.")
        self.script.mind.recall.worker = AtOnce()
        query = Query("What about the ferry?")
        found = []
        passed = modules_passed(
            lambda: found.extend(wait_for(self.script.seen(PUBLIC).search(query)))
        )
        self.assertIn("ferry", found[0].text)
        self.assert_documented("search", passed)

    def assert_documented(self, what, passed):
        """The documentation shows modules that are passed, each with a function that it has."""
        page = (HERE / "docs" / "architecture.md").read_text(encoding="utf-8")
        way = read_way(
            re.search(rf"^### The way of a {what}\n.*?```text\n(.*?)```", page, re.M | re.S)[1]
        )
        self.assertGreater(len(way), 20)
        self.assertEqual(way.keys() - passed.keys(), set(), "Paste what scripts/house.py prints.")
        for module, function in way.items():
            text = (HERE / "evennia_ai" / module).read_text(encoding="utf-8")
            self.assertIn(f"def {function.rpartition('.')[2]}(", text)
