"""The line that tells what a compaction did."""

import unittest

from evennia_ai.history.records import CompactionRecord
from evennia_ai.sleep.compaction.receipts import receipt_line

RESULT = {
    "original_tokens": 3000,
    "new_tokens": 900,
    "level": "main",
    "compacted_messages": 60,
    "retention": 1.0,
    "summary_id": "s1",
    "generation": 3,
}


class TestFading(unittest.TestCase):
    """From the third generation on it says that detail may have faded."""

    def line(self, **result):
        record = CompactionRecord(id="c1", at="", trigger="sleep", result={**RESULT, **result})
        return receipt_line("Aria", record)

    def test_not_before(self):
        """The first two say nothing of it."""
        self.assertNotIn("faded", self.line(generation=2, drift=0.5))

    def test_how_much(self):
        """The share that the long-term summary lost is named where there is one."""
        self.assertIn("no longer holds 25% of the names", self.line(drift=0.25))

    def test_nothing_faded(self):
        """Where it lost none, or so little that it rounds to none, no share is named."""
        for drift in ({}, {"drift": 0.0}, {"drift": 0.004}):
            line = self.line(**drift)
            self.assertIn("detail may have faded; the raw words are in the archive", line)
            self.assertNotIn("0% of the names", line)
