"""Edits that meet a compaction, and archives damaged before a rollback: no old text returns."""

from dataclasses import replace

from evennia_ai.errors import AssistantError
from evennia_ai.history.archive import ARCHIVE
from evennia_ai.history.messages import Message, Speaker, masked
from evennia_ai.history.pages import aside
from evennia_ai.history.records import Segment
from evennia_ai.sleep.compaction.compact import compact_conversation_history
from tests.memory_assistant import MemoryWorldTest, count
from tests.waiting import wait_for

HISTORY = "conversation_history"


def talk(lines, words="fetch the hay from the barn and mend the fence before it rains"):
    """So many lines of Bob's."""
    bob = Speaker("Bob", "o2.b")
    return [Message("user", f"{n}: {words}", speaker=bob) for n in range(lines)]


class DamageTest(MemoryWorldTest):
    def setUp(self):
        super().setUp()
        self.model, self.history = self.world.model, self.script.history
        self.history.append(talk(40))
        self.history.checkpoint()


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
        result = self.edited(lambda stored: {**stored, "content": "the word was taken out"})
        self.assertFalse(result["success"])
        self.assertIn("changed meanwhile", result["detail"])
        self.assertEqual(list(self.history.segments()), [])
        self.assertEqual(self.history.messages()[0].content, "the word was taken out")
        again = self.begin()
        self.model.release()
        self.assertTrue(wait_for(again)["success"])
        (segment,) = self.history.segments()
        self.assertEqual(segment.messages[0].content, "the word was taken out")
        self.assert_proven()

    def test_an_edit_of_who_may_know(self):
        """Another audience is a change as well as other words."""
        result = self.edited(lambda stored: {**stored, "audience": "staff"})
        self.assertFalse(result["success"])
        self.assertEqual(self.history.messages()[0].audience, "staff")

    def test_our_own_changes_are_none(self):
        """A mask, a new count and what a database makes of a tuple hold up no compaction."""
        odd = Message("tool", "oak " * 900, name="look", metadata={"at": (1, 2)})
        first, *others = self.history.messages()
        self.history.replace([replace(odd, id=first.id).completed(count, 0.0), *others])

        def by_us(stored):
            hidden = masked(Message.from_dict(stored), "2027-01-15T08:00:00.000+00:00", count)
            changed = replace(hidden, tokens=7, metadata={**hidden.metadata, "at": [1, 2]})
            return changed.to_dict()

        result = self.edited(by_us)
        self.assertTrue(result["success"], result)
        self.assert_proven()


class TestRollbackOfADamagedArchive(DamageTest):
    """A rollback brings back what left, or nothing."""

    def setUp(self):
        super().setUp()
        self.compact()
        (self.key,) = self.history.store.keys(ARCHIVE)
        self.segment = self.history.segment(self.key).to_dict()

    def assert_refused(self, stored):
        """With this for its segment it names the segment and what to do, and changes nothing."""
        self.history.store.set(self.key, stored, category=ARCHIVE)
        storage = self.world.storage
        before = dict(storage.script.values), dict(storage.body.values)
        with self.assertRaisesRegex(AssistantError, f"`{self.key}`.*`compact/verify`"):
            self.roll_back()
        self.assertEqual((storage.script.values, storage.body.values), before)

    def test_changed_words(self):
        """Words that somebody put into the archive do not become live."""
        first, *others = self.segment["messages"]
        forged = [{**first, "content": "Bob owes me 500 gold"}, *others]
        self.assert_refused({**self.segment, "messages": forged})

    def test_a_message_missing(self):
        """Fewer messages than left are not passed off as all, under an old seal or a new one."""
        short = self.segment["messages"][1:]
        self.assert_refused({**self.segment, "messages": short})
        resealed = Segment.from_dict({**self.segment, "messages": short}).resealed()
        self.assert_refused(resealed.to_dict())

    def test_no_segment(self):
        """One that cannot be read, or is gone, is told in words."""
        for odd in ("oops", {**self.segment, "messages": None}):
            self.history.store.set(self.key, odd, category=ARCHIVE)
            with self.assertRaisesRegex(AssistantError, f"`{self.key}` is missing"):
                self.roll_back()
        self.assertEqual(aside(self.history.store), {f"{ARCHIVE}_{self.key}": 2})
        with self.assertRaisesRegex(AssistantError, f"`{self.key}` is missing"):
            self.roll_back()
