"""What changes while the search index is filled: old copies do not come over what is newer."""

from collections import deque
from dataclasses import replace

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock

from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.rag_memory.indexing import BATCH, rebuild_index, restore_index
from evennia_ai.rag_memory.search import CLEARED_AT_ONCE
from evennia_ai.testing import InlineWorker
from tests.memory_assistant import PEOPLE
from tests.search_case import CountingIndex, SearchTest, ids
from tests.waiting import wait_for

ALICE = private([PEOPLE["Alice"]])
# A batch ends in the middle of the newest page of notes, of which the rest is held as it was.
LINES, NOTES = 2 * BATCH + 70, 140


class SlowWorker:
    """A worker that does a piece of work when it is told to."""

    def __init__(self):
        self.waiting = deque()

    def submit(self, function, *args):
        done = Deferred()
        self.waiting.append((function, args, done))
        return done

    submit_later = submit

    def work(self):
        """Do what waits longest."""
        function, args, done = self.waiting.popleft()
        maybeDeferred(function, *args).chainDeferred(done)


class TestFilling(SearchTest):
    """Lines and notes, and an index that lost them."""

    def setUp(self):
        super().setUp()
        self.clock = Clock()
        said = Message("user", "", channel="say", speaker=Speaker(key="Bram", id="o1"))
        history = self.script.history
        history.append(
            [replace(said, content=f"Heron {n} stands in the reeds.") for n in range(LINES)]
        )
        history.checkpoint()
        for n in range(NOTES):
            self.world.body.journal.add(f"Elin keeps {n} bees.")
        self.note = self.world.body.journal.recent(10)[0].id

    @property
    def script(self):
        return self.world.script

    def begin(self, fill):
        """Lose the index, and fill it up to the first batch, in which neither of the two is."""
        self.index.clear("Aria")
        done = fill(self.script, self.clock)
        self.assertEqual(self.index.count("Aria"), BATCH)
        return done

    def finish(self, done):
        """Fill it to the end."""
        while not done.called:
            self.clock.advance(1)
        wait_for(done)

    def change_note(self, **changes):
        """Change the note, as a summary made anew changes its entry."""
        journal = self.world.body.journal
        (new,) = journal.rewrite(
            lambda entry: replace(entry, **changes) if entry.id == self.note else entry,
            journal.pages(),
        )
        self.script.memory.correct_entry(new)

    def indexed(self):
        """Text and audience of the note, as it is indexed."""
        return [(turn.text, turn.audience) for turn in self.index.get("Aria", [self.note])]

    def found(self, audience="public"):
        """Whether the note is found for somebody."""
        return self.note in ids(self.search("bees", NOTES, audience))

    def test_changed(self):
        """What is changed while the index is filled is in it as it is now."""
        for fill in (restore_index, rebuild_index):
            self.setUp()
            done = self.begin(fill)
            self.clock.advance(1)
            self.clock.advance(1)
            self.change_note(content="Elin keeps geese.", audience=ALICE)
            self.finish(done)
            self.assertEqual(self.indexed(), [("Elin keeps geese.", ALICE)])
            self.assertFalse(self.found())
            self.assertTrue(self.search("geese", audience=ALICE))
            self.assertEqual(self.index.count("Aria"), LINES + NOTES)

    def test_withdrawn(self):
        """What is withdrawn meanwhile stays out."""
        done = self.begin(restore_index)
        self.change_note(withdrawn=True)
        self.finish(done)
        self.assertEqual(self.indexed(), [])

    def test_changed_while_the_index_is_emptied(self):
        """What is changed before the copies are made is put in again with them."""
        said = Message("user", "", channel="say", speaker=Speaker(key="Bram", id="o1"))
        barrels = [replace(said, content=f"Barrel {n}.") for n in range(2 * CLEARED_AT_ONCE)]
        self.script.history.append(barrels)
        self.script.history.checkpoint()
        everything = self.index.count("Aria")
        worker = self.script.mind.recall.worker = SlowWorker()
        done = rebuild_index(self.script, self.clock)
        while self.index.count("Aria") == everything:
            worker.work()
        self.change_note(content="Elin keeps no bees.")
        while not done.called:
            while worker.waiting:
                worker.work()
            self.clock.advance(1)
        self.script.mind.recall.worker = InlineWorker()
        self.assertEqual(self.index.count("Aria"), everything)
        self.assertEqual(self.indexed(), [("Elin keeps no bees.", "public")])

    def test_another_index(self):
        """What was changed is in an index that takes the place of the one being filled."""
        memory, opened = self.script.memory, [self.index]
        memory.recall.open_index = lambda: opened[-1]
        done = self.begin(rebuild_index)
        self.change_note(audience=ALICE)
        self.index = CountingIndex()
        opened.append(self.index)
        self.finish(done)
        self.assertEqual(self.index.count("Aria"), LINES + NOTES)
        self.assertFalse(self.found())
