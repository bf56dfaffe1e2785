"""The values that go into the index and come out."""

import json
import unittest
from dataclasses import replace

from evennia_ai.recall import Hit

FOUND = Hit("m1", 0.25, "Bob", "I keep bees.", "2026-01-02T03:04:05.678901+00:00", "journal")


class TestHit(unittest.TestCase):
    """A hit as tools show it to a model."""

    def test_round_trip(self):
        """What is shown is read again; the time to the second, the score not at all."""
        for hit in (FOUND, replace(FOUND, speaker="", kind="message"), replace(FOUND, at=None)):
            shown = hit.to_dict()
            again = Hit.from_dict(json.loads(json.dumps(shown)))
            at = "2026-01-02T03:04:05" if hit.at else None
            self.assertEqual(again, replace(hit, at=at, score=0.0))
            self.assertEqual(again.to_dict(), shown)
