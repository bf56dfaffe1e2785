"""The line that tells what a compaction did."""

import unittest

from evennia_ai.history.records import CompactionRecord
from evennia_ai.sleep.compaction.receipts import receipt_line

RESULT = {
    "original_tokens": 3000,
    "new_tokens": 900,
    "level": "main",
    "compacted_messages": 60,
    "coverage": 1.0,
    "summary_id": "s1",
    "generation": 3,
}


class TestFading(unittest.TestCase):
    """From the third generation on it says that detail may have faded."""

    def line(self, **result):
        record = CompactionRecord(id="c1", at="", trigger="sleep", result={**RESULT, **result})
        return receipt_line("Aria", record)

    def test_generations(self):
        """The first two say nothing of it; the third names the archive."""
        self.assertNotIn("faded", self.line(generation=2))
        self.assertIn("detail may have faded; the raw words are in the archive", self.line())
