"""The recall index keeps up with what is stored, is forgotten, lost and rebuilt."""

import unittest
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from twisted.internet.task import Clock

from evennia_ai.background import pause
from evennia_ai.errors import StoreError
from evennia_ai.history.archive import Segment
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.mind.mind import IndexFile
from evennia_ai.rag_memory.journal import KEEP_DAYS
from evennia_ai.rag_memory.memory import (
    BATCH,
    Memory,
    RecallJobs,
)
from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.recall.values import Query
from evennia_ai.sleep.consolidation import prune_orphaned_memory_links
from evennia_ai.sleep.cycle import prune_episodic_index
from evennia_ai.testing import InlineWorker
from tests.recall.test_index import turns_in
from tests.search_case import SearchTest, ids
from tests.waiting import alone, pump_until, wait_for


def rebuilt(script, reactor):
    """Fires when the index is made anew."""
    script.memory.pause = partial(pause, reactor)
    return script.memory.rebuild()


class TestForgetting(SearchTest):
    def setUp(self):
        super().setUp()
        self.entry = self.world.body.journal.add("The key is under the mat.", importance=3)

    def forget(self):
        return wait_for(self.world.script.memory.forget_entry(self.entry.id))

    def test_index_down(self):
        """A forgetting the index did not take part in fails, and can be repeated."""
        self.index.broken = True
        with self.assertRaisesRegex(StoreError, "next night tries it again"):
            self.forget()
        self.assertTrue(self.world.body.journal.get(self.entry.id).withdrawn)
        self.index.broken = False
        self.forget()
        self.assertEqual(self.search("mat"), [])

    def test_killed_in_between(self):
        """What was withdrawn when the server died leaves the index at the next start."""
        self.world.body.journal.withdraw([self.entry.id])
        self.assertEqual(ids(self.search("mat")), [self.entry.id])
        self.world.restart()
        self.assertEqual(self.search("mat"), [])

    def test_a_forgetting_that_failed_is_finished_at_night(self):
        """What index and semantic memory still hold leaves them with the outbox."""
        self.index.broken = True
        with self.assertRaises(StoreError):
            self.forget()
        self.index.broken = False
        wait_for(prune_orphaned_memory_links(self.world.script, self.world.body))
        self.assertEqual(self.search("mat"), [])
        self.assertEqual(self.world.script.state.outbox, [])

    def test_nightly(self):
        """The night takes out what is worn, and looks only at what came of age since the last."""
        for number in range(120):
            self.world.body.journal.add(f"Nothing of note, {number}.", importance=9)
        counted = []
        for days in (KEEP_DAYS + 1, 1, 1):
            self.world.later(days * 86400)
            counted.append(wait_for(prune_episodic_index(self.world.script, self.world.body)))
        self.assertEqual(counted[0], {"pruned": 1, "kept": 120})
        self.assertEqual(counted[1:], [{"pruned": 0, "kept": 0}] * 2)
        self.assertEqual(self.search("mat"), [])


class TestWholeIndex(SearchTest):
    """An index that lost what is stored."""

    def setUp(self):
        super().setUp()
        history = self.world.script.history
        for number in range(4):  # folded, the oldest first
            self.say("Bram", *(f"Barrel {number}, {each}." for each in range(60)))
            history.archive(Segment.sealed(f"{number:03}", "s1", history.messages()))
            history.replace([])
        for number in range(120):
            self.world.body.journal.add(f"Barrels, {number}.")
        self.say("Bram", "The last barrel.")
        self.all = 4 * 60 + 120 + 1
        self.assertEqual(self.index.count("Aria"), self.all)

    def start(self):
        """Start again, and wait until nothing is put into the index any more."""
        self.world.restart()
        pump_until(lambda: not self.world.script.memory.syncing)

    def assert_whole_after_a_start(self):
        self.start()
        self.assertEqual(self.index.count("Aria"), self.all)
        self.assertTrue(wait_for(self.world.script.memory.is_whole()))

    def test_emptied(self):
        """An index that was thrown away or of an older schema is made whole at the start."""
        wait_for(self.world.script.memory.clear())
        self.assert_whole_after_a_start()
        self.assertIn("index restored", str(self.world.script.audits))

    def test_newest_lost(self):
        """What a crash kept from the index is put in at the start, which then looks no further."""
        self.start()
        lost = [m.id for m in self.world.script.history.segment("003").messages]
        live = [m.id for m in self.world.script.history.messages()]
        entries = [entry.id for entry in self.world.body.journal.recent(5)]
        self.index.remove("Aria", [*lost, *live, *entries])
        old = self.world.script.history.segment("001").messages[0].id
        self.index.remove("Aria", [old])
        self.start()
        self.assertEqual(self.index.count("Aria"), self.all - 1)
        wait_for(self.world.script.memory.sync(whole=True))
        self.assertEqual(self.index.count("Aria"), self.all)

    def test_rebuilding_broken_off(self):
        """A rebuilding that a stop broke off goes on after the next start; others search in it."""
        history = self.world.script.history
        said = Message("user", "", channel="say", speaker=Speaker(key="Bram", id="o1"))
        history.append([replace(said, content=f"Cask {number}.") for number in range(2_100)])
        self.index.add("Bo", [Turn("b1", "Bram", "A cask.", 1.7e9)])
        self.index.sizes.clear()
        clock = Clock()
        alone(rebuilt, self.world.script, clock)
        clock.advance(1)
        self.assertLess(self.index.count("Aria"), 3 * BATCH)
        self.assertEqual(max(self.index.sizes), BATCH)
        self.assertEqual([hit.turn_id for hit in self.index.search("Bo", "cask")], ["b1"])
        self.all += 2_100
        self.assert_whole_after_a_start()

    def test_changed_meanwhile(self):
        """What is forgotten or narrowed while the index is made whole is put in as it is then."""
        self.index.clear("Aria")
        clock, history = Clock(), self.world.script.history
        self.world.script.memory.pause = partial(pause, clock)
        done = self.world.script.memory.sync(True)
        clock.advance(1)
        entry = self.world.body.journal.recent(120)[0]
        first, second, *_ = history.segment("000").messages
        wait_for(self.world.script.memory.forget_entry(entry.id))

        def narrowed(message):
            return replace(message, audience="private:o1.a") if message.id == second.id else message

        history.archive(history.segment("000").revised({first.id}, narrowed))
        wait_for(self.world.script.memory.forget([first.id, second.id]))
        while not done.called:
            clock.advance(1)
        left = turns_in(self.index, "Aria", [entry.id, first.id, second.id])
        self.assertEqual([(t.id, t.audience) for t in left], [(second.id, "private:o1.a")])

    def test_said_while_it_is_emptied(self):
        """What is said while a rebuilding empties the index is in it afterwards."""
        clock = Clock()
        done = alone(rebuilt, self.world.script, clock)
        (said,) = self.say("Bram", "A cask.")
        while not done.called:
            clock.advance(1)
        self.assertEqual(len(turns_in(self.index, "Aria", [said])), 1)
        self.assertEqual(self.index.count("Aria"), self.all + 1)

    def test_rebuilding_fails(self):
        """A rebuilding that fails in the middle is told, and gone on with after the next start."""
        clock = Clock()
        done = alone(rebuilt, self.world.script, clock)
        self.index.broken = True
        clock.advance(1)
        with self.assertRaises(StoreError):
            wait_for(done)
        self.index.broken = False
        self.assertLess(self.index.count("Aria"), self.all)
        self.assert_whole_after_a_start()

    def test_cannot_be_written(self):
        """An index that takes nothing is given up until the next start, and it is said."""
        self.index.clear("Aria")
        self.index.broken = True
        self.start()
        self.assertIn("stays incomplete", str(self.world.script.audits))


class TestLostFile(unittest.TestCase):
    """The index's file, deleted under a running game."""

    def setUp(self):
        self.folder = Path(self.enterContext(TemporaryDirectory()))
        self.opened = IndexFile(self.folder / "recall.sqlite3")

    def test_opened_anew(self):
        """What is added after it is in a file that a restart finds; till then it stays open."""
        first = self.opened()
        first.add("Aria", [Turn("m1", "Bram", "A key.", 1.7e9)])
        self.assertIs(self.opened(), first)
        for path in self.folder.iterdir():
            path.unlink()
        second = self.opened()
        self.assertIsNot(second, first)
        second.add("Aria", [Turn("m2", "Bram", "A key.", 1.7e9)])
        second.close()
        again = RecallIndex(self.folder / "recall.sqlite3")
        self.assertEqual([turn.id for turn in turns_in(again, "Aria", ["m1", "m2"])], ["m2"])
        again.close()

    def test_not_a_database(self):
        """A file that is no database is replaced by an empty index."""
        (self.folder / "recall.sqlite3").write_bytes(b"not a database at all" * 100)
        index = self.opened()
        self.addCleanup(index.close)
        self.assertEqual(index.count("Aria"), 0)

    def test_damaged(self):
        """A file found damaged in use is replaced, and what was asked is asked of the new one."""
        turns = [Turn(f"m{n}", "Bram", f"Key {n} opens door {n}.", 1.7e9 + n) for n in range(900)]
        path = self.folder / "recall.sqlite3"
        index = RecallIndex(path)
        index.add("Aria", turns)
        index.close()
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 3] + bytes([255]) * (len(whole) * 2 // 3))
        errors, lost = [], []
        jobs = RecallJobs(InlineWorker(), self.opened)
        memory = Memory("Aria", jobs, lambda *e: errors.append(e))
        memory.on_new_index = lambda: lost.append(self.opened().count("Aria"))
        self.assertEqual(wait_for(memory.found(Query("key 7"))), [])
        self.addCleanup(self.opened().close)
        self.assertEqual((errors, lost), ([], [0]))
