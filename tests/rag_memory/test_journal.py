"""The journal's pages: an entry is found by its id without going through all of them."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.messages import IdSource
from evennia_ai.history.stored import aside
from evennia_ai.rag_memory.journal import (
    BASE,
    MIN_IMPORTANCE,
    PAGE_ENTRIES,
    PAGES,
    JournalEntry,
    JournalHandler,
    score_importance,
)
from tests.fake import MemoryStore
from tests.stand_ins import CountingStore

PAGE_COUNT = 40


class TestDamaged(unittest.TestCase):
    def setUp(self):
        self.store = MemoryStore()
        self.journal = JournalHandler(self.store)
        for number in range(2 * PAGE_ENTRIES + 1):
            self.journal.add(f"entry {number}")

    def contents(self):
        return [entry.content for entry in self.journal.recent(3)]

    def test_an_entry(self):
        """It is put aside; the others stay, also after a restart."""
        page = self.store.get("journal")
        self.store.set("journal", {**page, "entries": ["odd", *page["entries"]]})
        self.assertEqual(self.contents()[-1], "entry 100")
        self.journal = JournalHandler(self.store)
        self.assertEqual(self.contents()[-1], "entry 100")
        self.assertEqual(aside(self.store), {"journal": 1})

    def test_the_newest_page(self):
        """It is put aside as a whole, and no page is written over."""
        self.store.set("journal", "odd")
        self.assertEqual(self.contents()[-1], "entry 99")
        for number in range(PAGE_ENTRIES + 1):
            self.journal.add(f"later {number}")
        self.assertEqual(len(self.store.keys(PAGES)), 3)
        self.assertEqual(self.journal.count(), 3 * PAGE_ENTRIES + 1)
        self.assertEqual(len(list(self.journal.all())), 3 * PAGE_ENTRIES + 1)


class TestPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        clock = iter(range(10**9))
        cls.make = staticmethod(IdSource(now=lambda: 1.7e9 + next(clock)))
        cls.ids = [cls.make("e") for _ in range(PAGE_COUNT * PAGE_ENTRIES)]
        cls.written = MemoryStore()
        journal = JournalHandler(cls.written)
        for entry_id in cls.ids:
            journal.put(JournalEntry(entry_id, "2026", f"said {entry_id}"))

    def setUp(self):
        self.store = CountingStore(PAGES)
        self.store.values.update(self.written.values)
        self.journal = JournalHandler(self.store)

    def test_every_entry_is_found(self):
        """Each is found by its id."""
        for entry_id in self.ids[::7]:
            self.assertEqual(self.journal.get(entry_id).content, f"said {entry_id}")

    def test_few_pages_are_read(self):
        """Neither an old entry nor an id that is not there costs a look at every page."""
        for entry_id in (self.ids[0], self.ids[777], self.make("e"), "e00000000000000z"):
            self.store.reads = 0
            self.journal.get(entry_id)
            self.assertLess(self.store.reads, 12)
        self.assertLess(self.store.reads, 12)

    def test_a_stretch(self):
        """Entries by their place, newest first, read the pages they stand on."""
        newest = self.ids[::-1]
        for start, stop in ((0, 1), (0, 60), (49, 51), (777, 790), (1990, 2005), (5, 5)):
            self.store.reads = 0
            found = [entry.id for entry in self.journal.stretch(start, stop)]
            self.assertEqual(found, newest[start:stop])
            self.assertLess(self.store.reads, 4)
        self.journal.put(JournalEntry("e1", "2026", "one more"))
        self.assertEqual([e.id for e in self.journal.stretch(0, 2)], ["e1", newest[0]])

    def test_entries_out_of_order(self):
        """One whose id is a little older than its page is found on the page behind."""
        late = self.make("e")
        for _ in range(PAGE_ENTRIES):
            self.journal.put(JournalEntry(self.make("e"), "2026", "filler"))
        self.journal.put(JournalEntry(late, "2026", "late"))
        self.assertEqual(self.journal.get(late).content, "late")


class TestScore(unittest.TestCase):
    def test_order_of_things(self):
        """Nothing told, question, statement, one with a number, a long one."""
        for text in ("", "   ", "\n"):
            self.assertEqual(score_importance(text), 1, text)
        texts = [
            "Do you like the music here?!?",
            "We saw a cat.",
            "Bob owes Alice 3 barrels.",
            "Bob promised to bring 3 barrels of plum brandy and a silver key from Oldtown.",
        ]
        scores = [score_importance(text) for text in texts]
        self.assertEqual(scores, sorted(set(scores)))
        self.assertEqual(scores[1], BASE)

    def test_a_fact_about_somebody_stays_in_retrieval(self):
        """In every language alike; a question leaves it."""
        for said, asked in (
            ("Alice keeps bees.", "Does Alice keep bees?"),
            ("i was there before", "was i there before?"),
            ("Mein Boot heißt Heron.", "Wie heißt mein Boot?"),
            ("钥匙在垫子下面。", "钥匙在哪里？"),
            ("鍵はマットの下にあります。", "鍵はどこにありますか？"),
            ("المفتاح تحت السجادة.", "أين المفتاح؟"),
            ("चाबी चटाई के नीचे है।", "चाबी कहाँ है?"),
        ):
            self.assertEqual(score_importance(said), BASE, said)
            self.assertLess(score_importance(asked), MIN_IMPORTANCE, asked)
            self.assertGreaterEqual(score_importance(said), MIN_IMPORTANCE)

    @given(st.text(max_size=300))
    def test_any_text_has_a_score(self, text):
        """Whatever is written, the score is a whole number from 1 to 10."""
        self.assertIn(score_importance(text), range(1, 11))
