"""Edits that meet a compaction, and archives damaged before a rollback: no old text returns."""

import unittest

from evennia_ai.core.masking import masked
from evennia_ai.handlers.verify import verify_history
from evennia_ai.sleep.compaction import compact_conversation_history
from evennia_ai.testing import ScriptedModel
from tests.memory_assistant import MemoryWorld, count
from tests.waiting import wait_for

SUMMARY = "They spoke of hay and a fence."
HISTORY = "conversation_history"


def talk(lines, words="fetch the hay from the barn and mend the fence before it rains"):
    """So many lines of Bob's."""
    bob = {"key": "Bob", "id": "o2.b"}
    return [{"role": "user", "content": f"{n}: {words}", "speaker": bob} for n in range(lines)]


class DamageTest(unittest.TestCase):
    """Helpers for the classes below."""

    def setUp(self):
        self.model = ScriptedModel(default=SUMMARY)
        self.world = MemoryWorld(self.model, pre_compact_extraction_enabled=False)
        self.script, self.history = self.world.script, self.world.script.history
        self.history.append(talk(40))
        self.history.checkpoint()

    def assert_proven(self):
        self.assertEqual(verify_history(self.script), ())


class TestEditMeanwhile(DamageTest):
    """A message that leaves is changed while its summary is being written."""

    def begin(self):
        """A compaction that waits for its summary."""
        self.model.held = True
        return compact_conversation_history(self.script, self.world.body, force=True)

    def edited(self, edit):
        """The outcome of a compaction during which `edit` made another first message."""
        done = self.begin()
        first, *others = self.world.attribute(HISTORY)
        self.world.write(HISTORY, [edit(first), *others])
        self.history.messages()
        self.model.release()
        return wait_for(done)

    def test_an_edit_is_not_undone(self):
        """Nothing is archived in its old words; the next try archives the new ones."""
        result = self.edited(lambda message: {**message, "content": "the word was taken out"})
        self.assertFalse(result["success"])
        self.assertIn("changed meanwhile", result["detail"])
        self.assertEqual(list(self.history.segments()), [])
        self.assertEqual(self.history.messages()[0]["content"], "the word was taken out")
        again = self.begin()
        self.model.release()
        self.assertTrue(wait_for(again)["success"])
        (segment,) = self.history.segments()
        self.assertEqual(segment["messages"][0]["content"], "the word was taken out")
        self.assert_proven()

    def test_an_edit_of_who_may_know(self):
        """Another audience is a change as well as other words."""
        result = self.edited(lambda message: {**message, "audience": "staff"})
        self.assertFalse(result["success"])
        self.assertEqual(self.history.messages()[0]["audience"], "staff")

    def test_our_own_changes_are_none(self):
        """A mask, a new count and what a database makes of a tuple hold up no compaction."""
        odd = {"role": "tool", "name": "look", "content": "oak " * 900, "metadata": {"at": (1, 2)}}
        first, *others = self.history.messages()
        self.history.replace([{**first, **odd}, *others])

        def by_us(message):
            hidden = masked(message, "2027-01-15T08:00:00.000+00:00", count)
            return {**hidden, "tokens": 7, "metadata": {**hidden["metadata"], "at": [1, 2]}}

        result = self.edited(by_us)
        self.assertTrue(result["success"], result)
        self.assert_proven()

    def test_messages_that_come_meanwhile_hold_up_nothing(self):
        """A history that only grows is folded as planned."""
        done = self.begin()
        self.history.append(talk(3, "what comes later"))
        self.history.checkpoint()
        self.model.release()
        self.assertTrue(wait_for(done)["success"])
        self.assertEqual(self.history.messages()[-1]["content"], "2: what comes later")
        self.assert_proven()
