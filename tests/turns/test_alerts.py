"""Alerts reach staff who are there, also where nobody asked to be told."""

from evennia_ai.sleep.compaction.compact import Compaction
from evennia_ai.sleep.compaction.plan import EMERGENCY
from tests.base import AssistantTest
from tests.turns.tools.case import rank
from tests.waiting import wait_for


class TestAlerts(AssistantTest):
    """A developer and a player, both connected."""

    def setUp(self):
        super().setUp()
        self.told = {}
        for account, perm in ((self.account, "Developer"), (self.account2, "Player")):
            rank(account, perm)
            account.db_is_connected = True
            account.save()
            self.told[account] = self.lines_of(account)

    def test_who_is_told(self):
        """Connected admins are told, once each; others are not."""
        self.script.alert("automatic compaction is stopped")
        self.assertEqual(
            self.told, {self.account: ["Aria: automatic compaction is stopped"], self.account2: []}
        )
        self.assertIn("automatic compaction is stopped", self.script.runtime.trouble.text)

    def test_who_lost_the_rank(self):
        """Nothing is told any more."""
        self.script.tell_staff("the model answers again")
        self.assertEqual([len(lines) for lines in self.told.values()], [1, 0])
        self.account.permissions.clear()
        self.script.alert("stopped")
        self.assertEqual([len(lines) for lines in self.told.values()], [1, 0])

    def test_compactions_that_fail(self):
        """Where one after the other fails, admins are told."""
        self.configure(pre_compact_extraction_enabled=False, max_context_tokens=4000)
        self.fill(90, words=40)
        self.script.runtime.summaries.waits = 2, 0.0
        self.model.default = ValueError("spoilt")
        with self.assertRaises(ValueError):
            wait_for(Compaction(self.script, EMERGENCY).run())
        (line,) = self.told[self.account]
        self.assertIn("3 compactions in a row failed", line)
