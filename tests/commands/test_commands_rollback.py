"""What staff are told of a rollback, of the pause after it, and of what is stored then."""

from evennia_ai.sleep.compaction.compact import compact_conversation_history
from evennia_ai.sleep.compaction.rollback import rollback_compaction
from tests.asked import model_down
from tests.command_line import WholePagesTest
from tests.waiting import wait_for

HELD = "paused after a rollback, until you type compact"


class RollbackLineTest(WholePagesTest):
    """A compaction that is taken back."""

    default = "They talked of many things."

    def setUp(self):
        super().setUp()
        self.configure(pre_compact_extraction_enabled=False)

    def taken_back(self):
        """A compaction is made and taken back."""
        self.fill(60)
        wait_for(compact_conversation_history(self.script, self.aria, force=True))
        wait_for(rollback_compaction(self.script, self.aria))

    def status(self, head):
        """The line of `aistatus` that begins so."""
        lines = self.typed("aistatus Aria").split("\n")
        return next(line for line in lines if line.startswith(head))


class TestHold(RollbackLineTest):
    """Staff are told that automatic compaction is held, and it is let go as promised."""

    def test_told(self):
        """The answer to a rollback and the status say so."""
        self.fill(60)
        self.typed("compact Aria", until="compacted")
        self.typed("compact/rollback Aria")
        shown = self.typed("compact/rollback Aria = yes", until="Taken back")
        self.assertIn("40 messages live again", shown)
        self.assertIn(f"Compaction of Aria: {HELD}", shown)
        self.assertIn(HELD, self.status("Compaction:"))
        self.assertNotIn("in a lull from", self.status("Compaction:"))

    def test_other_commands_work_meanwhile(self):
        """The question captures nothing, and a yes to it does not take back a later compaction."""
        self.fill(60)
        self.typed("compact Aria", until="compacted")
        shown = "40 messages would be live again. To confirm, type within a minute: "
        self.assertTold("compact/rollback Aria", f"{shown}compact/rollback Aria = yes")
        self.assertTold("say Hello", 'You say, "Hello"')
        self.fill(60)
        self.typed("compact Aria", until="compacted")
        self.assertTold("compact/rollback Aria = yes", "would be live again")
        self.assertEqual(self.script.history.compactions()[-1].status, "committed")
        self.typed("compact/rollback Aria = yes", until="Taken back")

    def test_only_a_yes_confirms(self):
        """Neither Enter, nor the question asked again, nor an answer left empty."""
        self.fill(60)
        self.typed("compact Aria", until="compacted")
        self.typed("compact/rollback Aria")
        self.typed("")
        self.assertTold("compact/rollback Aria", "would be live again")
        self.typed("compact/rollback Aria =")
        self.typed("compact/rollback Aria = no")
        self.assertIsNone(self.script.runtime.lock.running)
        self.assertEqual(self.script.history.compactions()[-1].status, "committed")

    def test_stays_where_a_compact_fails(self):
        """Where no summary can be made, or compaction is off, nothing is changed."""
        self.taken_back()
        self.typed("compact/off Aria")
        self.typed("compact Aria", until="compaction is off")
        self.assertTrue(self.script.state.hold)
        self.typed("compact/on Aria")
        self.model.default = model_down()
        self.assertTold("compact Aria", "Nothing was changed", until="did not")
        self.assertTrue(self.script.state.hold)
