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
        self.line = history.messages()[-10].id
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

    def change(self, line, note):
        """Change the line, and the note when it was read but is not put in yet."""
        self.change_line(**line)
        self.clock.advance(1)
        self.clock.advance(1)
        self.assertGreater(self.index.count("Aria"), LINES)
        self.change_note(**note)

    def finish(self, done):
        """Fill it to the end."""
        while not done.called:
            self.clock.advance(1)
        wait_for(done)

    def change_line(self, **changes):
        """Change a line by hand, or take it out where nothing is given; it is noticed at once."""
        live = self.world.attribute("conversation_history")
        place = [m["id"] for m in live].index(self.line)
        live[place : place + 1] = [{**live[place], **changes}] if changes else []
        self.world.write("conversation_history", live)
        self.script.history.messages()

    def change_note(self, **changes):
        """The same of an entry of the journal."""
        page = self.world.storage.body.get("journal")
        place = [e["id"] for e in page["entries"]].index(self.note)
        page["entries"][place : place + 1] = (
            [{**page["entries"][place], **changes}] if changes else []
        )
        self.world.storage.body.set("journal", page)
        self.world.body.journal.count()

    def indexed(self):
        """Texts and audiences of line and note, as they are indexed."""
        return [
            (turn.text, turn.audience) for turn in self.index.get("Aria", [self.line, self.note])
        ]

    def found(self, audience="public"):
        """Which of line and note are found for somebody."""
        hits = [*self.search("heron", LINES, audience), *self.search("bees", NOTES, audience)]
        return {self.line, self.note} & set(ids(hits))

    def test_narrowed(self):
        """What is kept for one person while the index is filled is found by nobody else."""
        for fill in (restore_index, rebuild_index):
            self.setUp()
            done = self.begin(fill)
            self.change({"audience": ALICE}, {"audience": ALICE})
            self.finish(done)
            self.assertEqual(self.found(), set())
            self.assertEqual(self.found(ALICE), {self.line, self.note})
            self.assertEqual(self.index.count("Aria"), LINES + NOTES)

    def test_corrected(self):
        """What is said otherwise, said no more or taken out stays so."""
        done = self.begin(restore_index)
        self.change(
            {"content": "The heron is blue.", "audience": ALICE}, {"content": "Elin keeps geese."}
        )
        self.finish(done)
        wanted = [("The heron is blue.", ALICE), ("Elin keeps geese.", "public")]
        self.assertCountEqual(self.indexed(), wanted)
        for changes in ({"content": ""}, {}):
            self.setUp()
            done = self.begin(restore_index)
            self.change(changes, changes)
            self.finish(done)
            self.assertEqual(self.indexed(), [])

    def test_put_back(self):
        """What was taken out and put back for one person alone is for that one."""
        kept = next(m for m in self.script.history.messages() if m.id == self.line)
        done = self.begin(restore_index)
        self.change_line()
        live = self.world.attribute("conversation_history")
        self.world.write("conversation_history", [*live, replace(kept, audience=ALICE).to_dict()])
        self.script.history.messages()
        self.finish(done)
        self.assertEqual(self.found() & {self.line}, set())
        self.assertEqual(self.found(ALICE) & {self.line}, {self.line})

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
        self.change_line(audience=ALICE)
        self.change_note(content="Elin keeps no bees.")
        while not done.called:
            while worker.waiting:
                worker.work()
            self.clock.advance(1)
        self.script.mind.recall.worker = InlineWorker()
        self.assertEqual(self.index.count("Aria"), everything)
        self.assertIn(("Elin keeps no bees.", "public"), self.indexed())
        self.assertEqual(self.found(), {self.note})

    def test_another_index(self):
        """What was changed is in an index that takes the place of the one being filled."""
        memory, opened = self.script.memory, [self.index]
        memory.recall.open_index = lambda: opened[-1]
        done = self.begin(rebuild_index)
        self.change_line(audience=ALICE)
        self.index = CountingIndex()
        opened.append(self.index)
        self.finish(done)
        self.assertEqual(self.index.count("Aria"), LINES + NOTES)
        self.assertEqual(self.found(), {self.note})

    def test_what_waited(self):
        """What could not be indexed at first does not come over what it was changed to."""
        self.index.broken = True
        (self.line,) = self.say("Bram", "A heron was seen at the mill.")
        self.script.history.checkpoint()
        self.index.broken = False
        self.change_line(audience=ALICE)
        self.say("Bram", "A barrel.")
        self.assertEqual(self.found() & {self.line}, set())
        self.assertEqual(self.found(ALICE) & {self.line}, {self.line})
