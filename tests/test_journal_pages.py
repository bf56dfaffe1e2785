"""The journal's pages: an entry is found by its id without going through all of them."""

import unittest

from evennia_ai.core.messages import IdSource
from evennia_ai.handlers.journal import PAGE_ENTRIES, PAGES, JournalHandler
from evennia_ai.handlers.store import MemoryStore

PAGE_COUNT = 40


class CountingStore(MemoryStore):
    """Counts the pages that are read."""

    reads = 0

    def get(self, key, category=None, default=None):
        self.reads += category == PAGES
        return super().get(key, category, default)


class TestPages(unittest.TestCase):
    """Forty pages."""

    def setUp(self):
        self.store = CountingStore()
        self.journal = JournalHandler(self.store)
        clock = iter(range(10**9))
        make = IdSource(now=lambda: 1.7e9 + next(clock))
        self.ids = [make("e") for _ in range(PAGE_COUNT * PAGE_ENTRIES)]
        for entry_id in self.ids:
            self.journal.add(f"said {entry_id}", id=entry_id)
        self.make = make

    def test_every_entry_is_found(self):
        """Each is found by its id."""
        for entry_id in self.ids[::7]:
            self.assertEqual(self.journal.get(entry_id)["content"], f"said {entry_id}")

    def test_few_pages_are_read(self):
        """Neither an old entry nor an id that is not there costs a look at every page."""
        for entry_id in (self.ids[0], self.ids[777], self.make("e"), "e00000000000000a"):
            self.store.reads = 0
            self.journal.get(entry_id)
            self.assertLess(self.store.reads, 12)

    def test_made_elsewhere(self):
        """An entry with an id of its own, and one beside pages written by hand, are found."""
        self.journal.add("by hand", id="the one")
        self.assertEqual(self.journal.get("the one")["content"], "by hand")
        by_hand = {"page": 20, "entries": [{"id": "x", "content": "odd"}]}
        self.store.set("page_000020", by_hand, category=PAGES)
        self.assertEqual(self.journal.get("x")["content"], "odd")
        self.assertIsNotNone(self.journal.get(self.ids[100]))
        self.assertIsNone(self.journal.get("nowhere"))

    def test_withdrawing_touches_its_pages_only(self):
        """Entries of two pages are withdrawn, and no others."""
        wanted = [self.ids[3], self.ids[4], self.ids[1500], "e00000000000000b"]
        self.assertEqual(self.journal.withdraw(wanted), 3)
        gone = [entry["id"] for entry in self.journal.all() if entry.get("withdrawn")]
        self.assertEqual(sorted(gone), sorted(wanted[:3]))

    def test_entries_out_of_order(self):
        """One whose id is a little older than its page is found on the page behind."""
        late = self.make("e")
        for _ in range(PAGE_ENTRIES):
            self.journal.add("filler", id=self.make("e"))
        self.journal.add("late", id=late)
        self.assertEqual(self.journal.get(late)["content"], "late")
