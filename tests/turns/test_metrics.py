"""The history of figures: what is noted is found again, bounded, and survives damage."""

import sqlite3
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from twisted.internet.defer import maybeDeferred
from twisted.logger import capturedLogs

from evennia_ai.llm_interaction.budget import REGIONS, TokenBudget
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.turns.metrics import Figures, stacked

NOW = 1_790_000_000.0
DAY = 86_400.0


class TestFigures(unittest.TestCase):
    """Prompts and spend in a file, written at once, on this thread."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "ai" / "figures.sqlite3"
        self.figures = Figures(self.path, maybeDeferred)

    def prompt(self, at=NOW, history=100, assistant="s1"):
        sizes = tuple(history if region == "History" else 10 for region in REGIONS)
        event = TokenBudget(at=at, purpose="awake", model="m", sizes=sizes, limit=4000, usage=0.5)
        self.figures.note_prompt(assistant, event)

    def spend(self, account="", at=NOW, cost=0.5, purpose="awake", assistant="s1"):
        reply = ModelReply(
            content="", model="m", prompt_tokens=10, completion_tokens=3, cached_tokens=4, cost=cost
        )
        self.figures.note_spend(assistant, purpose, account, reply, at)

    def result(self, deferred):
        found = []
        deferred.addCallback(found.append)
        return found[0]

    def prompts(self, since=0.0, assistant="s1"):
        return self.result(self.figures.prompts(assistant, since))

    def times(self, **which):
        return [figure.at for figure in self.prompts(**which)]

    def spent(self, by, since="2020-01-01"):
        return self.result(self.figures.spend(by, since))

    def test_prompts_of_a_time(self):
        """Those of one assistant since a time, oldest first."""
        for number in range(5):
            self.prompt(NOW + number)
        found = self.result(self.figures.prompts("s1", NOW + 2))
        self.assertEqual([figure.at for figure in found], [NOW + 2, NOW + 3, NOW + 4])
        self.assertEqual(self.times(assistant="s2"), [])

    def test_columns_of_a_chart(self):
        """A column for each region, as long as the times."""
        self.prompt(history=70)
        chart = stacked(self.prompts())
        self.assertEqual(chart["History"], [70])
        self.assertEqual(set(chart), {"at", "limit", *REGIONS})

    def test_old_prompts_go(self):
        """They are kept for a month."""
        for days in (31, 29, 0):
            self.figures = Figures(self.path, maybeDeferred)  # the next start
            self.prompt(NOW - days * DAY)
        self.assertEqual(self.times(), [NOW - 29 * DAY, NOW])

    def test_spend_adds_up(self):
        """By any column; calls without a price are counted apart."""
        self.spend("a1")
        self.spend("a1", purpose="summary", cost=None)
        self.spend("a2", cost=2.0)
        by_account = [(f.of, f.calls, f.cost) for f in self.spent("account")]
        self.assertEqual(by_account, [("a2", 1, 2.0), ("a1", 2, 0.5)])
        [day] = self.spent("day")
        self.assertEqual((day.calls, day.prompt_tokens, day.cached_tokens), (3, 30, 12))
        self.assertEqual(day.unpriced, 1)
        self.assertEqual(self.spent("day", "2030-01-01"), [])

    def test_a_forgotten_account(self):
        """Its name is in no byte of the file; what it cost stays in the sums."""
        for account in ("a77secret", "a77secret", "a77secret", ""):
            self.spend(account)
        self.result(self.figures.forget(["a77secret"]))
        [nobody] = self.spent("account")
        self.assertEqual((nobody.of, nobody.calls, nobody.cost), ("", 4, 2.0))
        self.assertNotIn(b"a77secret", self.path.read_bytes())

    def test_a_damaged_file_is_replaced(self):
        """Charts begin anew; nothing raises."""
        self.path.parent.mkdir()
        self.path.write_bytes(b"no database at all" * 100)
        self.prompt()
        self.assertEqual(self.times(), [NOW])

    def test_a_disk_that_is_full(self):
        """What cannot be written is lost, with a line in the log; later figures are kept."""
        full = mock.patch.object(
            self.figures, "_write", side_effect=sqlite3.OperationalError("disk is full")
        )
        with full, capturedLogs() as logged:
            self.prompt()
        self.assertEqual([str(each.get("why")) for each in logged], ["disk is full"])
        self.prompt(NOW + 5)
        self.assertEqual(self.times(), [NOW + 5])
