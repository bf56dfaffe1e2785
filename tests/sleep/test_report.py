"""The line that tells what a compaction did."""

import unittest
from dataclasses import replace

from evennia_ai.history.records import CompactionRecord, Report
from evennia_ai.sleep.compaction.report import report_line

REPORT = Report(level="main", compacted_messages=60, summary_ids=("s1",), generation=3)


class TestFading(unittest.TestCase):
    """From the third generation on it says that detail may have faded."""

    def line(self, **figures):
        record = CompactionRecord(
            id="c1", at="", trigger="sleep", report=replace(REPORT, **figures)
        )
        return report_line("Aria", record)

    def test_generations(self):
        """The first two say nothing of it; the third names the archive."""
        self.assertNotIn("faded", self.line(generation=2))
        self.assertIn("detail may have faded; the raw words are in the archive", self.line())
