"""Alerts reach staff who are there, also where nobody asked to be told."""

from dataclasses import replace

from evennia_ai.errors import ModelError
from evennia_ai.sleep.compaction.compact import Compaction
from evennia_ai.sleep.compaction.due import EMERGENCY
from tests.base import AssistantTest
from tests.waiting import wait_for


class TestAlerts(AssistantTest):
    """A developer and a player, both connected."""

    def setUp(self):
        super().setUp()
        self.told = {}
        for account, perm in ((self.account, "Developer"), (self.account2, "Player")):
            account.permissions.clear()
            account.permissions.add(perm)
            account.is_superuser = False
            account.db_is_connected = True
            account.save()
            account.msg = self.told.setdefault(account, []).append
            self.addCleanup(account.__dict__.pop, "msg", None)

    def test_who_is_told(self):
        """Connected admins are told, once each, whether they follow or not; others are not."""
        self.script.alert("automatic compaction is stopped")
        self.assertEqual(
            self.told,
            {self.account: ["Aria: automatic compaction is stopped"], self.account2: []},
        )
        self.assertIn("automatic compaction is stopped", self.script.runtime.last_error)
        self.script.state.follow(self.account.pk)
        self.script.alert("again")
        self.assertEqual([len(lines) for lines in self.told.values()], [2, 0])

    def test_a_follower_who_lost_the_rank(self):
        """Neither receipts nor alerts are told, and with the rank the following is lost."""
        state = self.script.state
        for account in (self.account, self.account2):
            state.follow(account.pk)
        self.script.tell_staff("compacted")
        self.assertEqual([len(lines) for lines in self.told.values()], [1, 0])
        self.assertEqual(state.followers, [self.account.pk])
        self.account.permissions.clear()
        self.script.alert("stopped")
        self.assertEqual([len(lines) for lines in self.told.values()], [1, 0])
        self.assertEqual(state.followers, [])

    def test_compactions_that_fail(self):
        """Where one after the other fails, admins are told."""
        self.configure(pre_compact_extraction_enabled=False)
        self.model.default = ""
        self.fill(60)
        self.script.runtime.compaction_waits = 2, 0.0
        self.model.default = ValueError("spoilt")
        done = Compaction(self.script, self.aria, EMERGENCY).run()
        with self.assertRaises(ValueError):
            wait_for(done)
        (line,) = self.told[self.account]
        self.assertIn("3 compactions in a row failed", line)


class TestNoModelAtAll(AssistantTest):
    """Neither the model nor the offline model answers, as when the mind's process is gone."""

    def setUp(self):
        super().setUp()
        gone = ModelError("the mind's process ended", retryable=True, kind="connection")
        self.model.default = lambda request: gone
        self.shown = self.lines_of(self.char1)

    def signs(self):
        """How often it was shown that no answer comes for now."""
        return sum(self.script.config.emotes["trouble"] in line for line in self.shown)

    def test_each_question_gets_a_sign(self):
        """Of two questions within a minute both do, and a retry shows nothing again."""
        for number in (1, 2):
            self.talk(f"Aria, what is boat {number} called?", speaker=self.char1)
            self.assertEqual(self.signs(), number)
        late = self.script.runtime.unanswered
        self.script.runtime.unanswered = {k: replace(each, due=0.0) for k, each in late.items()}
        self.tick()
        self.assertEqual(self.signs(), 2)
