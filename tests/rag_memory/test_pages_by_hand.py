"""Pages of journal, ledger and archive stay what they are, whatever a hand wrote as a number."""

import unittest
from typing import ClassVar

from evennia_ai.history.live import ARCHIVE, COMPACTIONS, SUMMARIES
from evennia_ai.history.messages import Speaker
from evennia_ai.rag_memory.journal import JOURNAL, PAGE_ENTRIES, PAGES, JournalHandler
from evennia_ai.rag_memory.ledger_store import PAGE_ENTRIES as CLOSED
from evennia_ai.rag_memory.ledger_store import PAGES as CLOSED_PAGES
from evennia_ai.rag_memory.ledger_store import LedgerHandler
from evennia_ai.testing import MemoryStore
from tests.base import AssistantTest
from tests.memory_assistant import MemoryWorldTest

FIRST = [f"entry {number}" for number in range(120)]
LATER = [f"later {number}" for number in range(60)]


def contents(journal):
    """All contents in sorted order, each as often as it stands there."""
    return sorted(entry.content for entry in journal.all())


class TestJournal(unittest.TestCase):
    """A journal of two full pages and twenty entries."""

    def setUp(self):
        self.store = MemoryStore()
        self.told, self.out = [], []
        self.journal = self.handler()
        for text in FIRST:
            self.journal.add(text)
        self.told.clear()

    def handler(self):
        """A journal on what is stored, as of a new process."""
        return JournalHandler(
            self.store,
            on_add=lambda entry: self.told.append(entry.content),
            on_change=lambda entry: self.out.append(entry.content),
        )

    def newest(self, **changes):
        """The newest page as it is stored, with some keys changed, or left out where None."""
        page = {**self.store.get(JOURNAL), **changes}
        return {key: value for key, value in page.items() if value is not None}

    def test_a_page_without_its_number(self):
        """Nothing is hidden, and nothing that is stored is written over; a restart changes none."""
        mine = self.newest()["entries"]
        for value, kept in (
            (["by hand"], ["by hand"]),
            ("by hand", ["by hand"]),
            ({"entries": ["by hand"]}, ["by hand"]),
            ({"entries": mine}, FIRST[100:]),
            (self.newest(page=1), FIRST[100:]),
            (self.newest(page=2), FIRST[100:]),
            (self.newest(page="3"), FIRST[100:]),
            (self.newest(page=-7), FIRST[100:]),
            (self.newest(page=10**7), FIRST[100:]),
            (self.newest(page=10**5000), FIRST[100:]),
            (None, []),
        ):
            with self.subTest(value=repr(type(value))):
                self.setUp()
                self.store.set(JOURNAL, value)
                wanted = [*FIRST[:100], *kept]
                self.assertEqual(contents(self.journal), sorted(wanted))
                self.assertEqual(self.journal.count(), len(wanted))
                self.assertEqual(self.journal.stretch(0, 200)[-1].content, FIRST[0])
                before = {key: self.store.get(key, PAGES) for key in self.store.keys(PAGES)}
                for text in LATER:
                    self.journal.add(text)
                for journal in (self.journal, self.handler()):
                    self.assertEqual(contents(journal), sorted([*wanted, *LATER]))
                after = {key: self.store.get(key, PAGES) for key in before}
                self.assertEqual(after, before)

    def test_open_pages(self):
        """What was not in semantic memory is found for it still, and what was, is not again."""
        done = [entry.id for entry in self.journal.unconsolidated(70)]
        self.journal.mark_consolidated(done)
        for value in ({"entries": self.newest()["entries"]}, self.newest(open_pages=None)):
            self.store.set(JOURNAL, value)
            found = [entry.content for entry in self.journal.unconsolidated()]
            self.assertEqual(found, FIRST[70:])
        self.journal.add("one more")
        self.assertEqual(self.store.get(JOURNAL)["open_pages"], [2])

    def test_only_what_is_gone_is_told(self):
        """Entries that are there still leave neither index nor semantic memory."""
        self.store.set(JOURNAL, {"entries": ["by hand", *self.newest()["entries"][1:]]})
        self.journal.count()
        self.assertEqual((self.told, self.out), (["by hand"], [FIRST[100]]))

    def test_an_older_copy(self):
        """A copy put back that stands on a stored page already is not there twice."""
        for text in FIRST[:10]:
            self.journal.add(f"more {text}")
        copied = self.newest()
        for text in LATER:
            self.journal.add(text)
        lost = {entry["content"] for entry in self.newest()["entries"]}
        copied["entries"].append("by hand")
        self.store.set(JOURNAL, copied)
        more = [f"more {text}" for text in FIRST[:10]]
        wanted = sorted([*FIRST, *more, *(set(LATER) - lost), "by hand"])
        self.assertEqual(contents(self.journal), wanted)
        self.assertEqual(contents(self.handler()), wanted)

    def test_pages_put_in(self):
        """A page put in by hand under the next number, or far behind it, is not written over."""
        for number in (3, 4, 9):
            self.setUp()
            key = f"page_{number:06d}"
            self.store.set(key, ["put in"], PAGES)
            for text in LATER:
                self.journal.add(text)
            self.assertEqual(self.store.get(key, PAGES), ["put in"])
            for journal in (self.journal, self.handler()):
                self.assertEqual(contents(journal), sorted([*FIRST, *LATER, "put in"]))

    def test_marks_stay_on_their_page(self):
        """Withdrawing an entry of a page that names another number, or none, writes that page."""
        before = self.store.get("page_000001", PAGES)
        for page in (["put in"], {"page": 1, "entries": ["put in"]}, {"page": 4}):
            page = page if isinstance(page, list) else {**page, "entries": ["put in"]}
            self.store.set("page_000003", page, PAGES)
            self.store.set(JOURNAL, self.newest())
            (wanted,) = [e.id for e in self.journal.all() if e.content == "put in"]
            self.assertEqual(self.journal.withdraw([wanted]), 1)
            self.assertTrue(self.store.get("page_000003", PAGES)["entries"][0]["withdrawn"])
            self.assertEqual(self.store.get("page_000001", PAGES), before)
            self.assertEqual(contents(self.journal), sorted([*FIRST, "put in"]))

    def test_odd_keys(self):
        """What stands under a key that is none of a page is left alone."""
        for key in ("page_x", "page_7", "notes"):
            self.store.set(key, ["odd"], PAGES)
        self.store.set(JOURNAL, ["by hand"])
        for text in LATER:
            self.journal.add(text)
        self.assertEqual(contents(self.journal), sorted([*FIRST[:100], "by hand", *LATER]))


class TestAttributes(AssistantTest):
    """The same in a game."""

    def test_a_list(self):
        """A builder's list in the Attribute begins a page behind the others."""
        for number in range(2 * PAGE_ENTRIES + 5):
            self.aria.journal.add(f"entry {number}")
        self.aria.db.journal = ["by hand"]
        self.assertEqual(self.aria.journal.count(), 2 * PAGE_ENTRIES + 1)
        for text in LATER:
            self.aria.journal.add(text)
        held = contents(self.aria.journal)
        self.assertEqual(len(held), 2 * PAGE_ENTRIES + 1 + len(LATER))
        self.assertLessEqual({"entry 0", "entry 99", "by hand", LATER[-1]}, set(held))


class TestLedger(unittest.TestCase):
    """Closed notes in pages of their own."""

    ALICE: ClassVar = Speaker("Alice", "o1.a")

    def setUp(self):
        self.store = MemoryStore()
        self.ledger = LedgerHandler(self.store)

    def close(self, *texts):
        """Notes that are given and withdrawn."""
        for text in texts:
            note = self.ledger.add(text, self.ALICE, state="approved")
            self.ledger.change(note.id, "withdrawn", self.ALICE)

    def closed(self):
        """The closed notes as a new process finds them, the first closed first."""
        return [note.text for note in LedgerHandler(self.store).closed()][::-1]

    def test_pages_put_in(self):
        """A page that is put in while the ledger is in use is added to, not written over."""
        self.close("I like jazz")
        self.ledger.entries()
        put_in = {"text": "I like ale", "state": "withdrawn"}
        full = [{**put_in, "text": f"I like ale {n}"} for n in range(CLOSED)]
        for notes in ([put_in], full):
            key = f"page_{len(self.store.keys(CLOSED_PAGES)) + 1:06d}"
            self.store.set(key, {"entries": notes}, CLOSED_PAGES)
            before = self.closed()
            self.close(f"I like {key}")
            self.assertEqual(self.closed(), [*before, f"I like {key}"])
            self.assertEqual([n.text for n in self.ledger.closed()][::-1], self.closed())

    def test_no_notes(self):
        """A page that holds what is no note stays as it is."""
        for value in ("a list of mine", ["a line of mine"], {"entries": [{"text": ""}]}):
            self.setUp()
            self.close("I like jazz")
            self.store.set("page_000001", value, CLOSED_PAGES)
            self.close("I like ale")
            self.assertEqual(self.store.get("page_000001", CLOSED_PAGES), value)
            self.assertEqual(self.closed(), ["I like ale"])


class TestRecords(MemoryWorldTest):
    """Segments, summaries and compactions, each under its own key."""

    def test_a_foreign_id(self):
        """A record in which somebody wrote another's id is written back under its own key."""
        for _ in range(2):
            self.fill()
            self.compact()
        store = self.world.storage.script
        for category in (ARCHIVE, SUMMARIES, COMPACTIONS):
            first, last = store.keys(category)[0], store.keys(category)[-1]
            store.set(last, {**store.get(last, category), "id": first}, category)
        self.assert_proven()
        before = [store.get(store.keys(kind)[0], kind) for kind in (ARCHIVE, COMPACTIONS)]
        self.roll_back()
        after = [store.get(store.keys(kind)[0], kind) for kind in (ARCHIVE, COMPACTIONS)]
        self.assertEqual(after, before)
        statuses = [record["status"] for record in self.script.history.compactions()]
        self.assertEqual(statuses, ["committed", "rolled back"])
        self.assert_proven()
