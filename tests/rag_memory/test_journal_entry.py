"""Journal entries: stored as plain dicts."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.audience import PUBLIC, STAFF
from evennia_ai.rag_memory.journal_entry import DERIVED_SOURCES, JournalEntry

NOW = "2026-01-02T03:04:05+00:00"
word = st.text(max_size=8)
words = st.lists(word, max_size=3).map(tuple)
entries = st.builds(
    JournalEntry,
    word,
    st.just(NOW),
    word,
    st.integers(1, 10),
    st.sampled_from(["assistant", "import", *DERIVED_SOURCES]),
    words,
    words,
    words,
    st.sampled_from([PUBLIC, STAFF, "private:o1.a", "private:o1.a+o2.b"]),
    st.booleans(),
)


class TestJournalEntry(unittest.TestCase):
    """From stored values and back."""

    @given(entries)
    def test_round_trip(self, entry):
        """An entry comes back as it was."""
        self.assertEqual(JournalEntry.from_dict(entry.to_dict()), entry)

    def test_may_consolidate(self):
        """What was lived through may become a memory; derived and withdrawn entries may not."""
        self.assertTrue(JournalEntry("e1", NOW, "x").may_consolidate)
        self.assertFalse(JournalEntry("e1", NOW, "x", withdrawn=True).may_consolidate)
        for source in DERIVED_SOURCES:
            self.assertFalse(JournalEntry("e1", NOW, "x", source_type=source).may_consolidate)
