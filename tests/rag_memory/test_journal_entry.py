"""Journal entries: stored as plain dicts, complete however somebody edited them."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.audience import PUBLIC, STAFF
from evennia_ai.rag_memory.journal_entry import DERIVED_SOURCES, JournalEntry

NOW = "2026-01-02T03:04:05+00:00"
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=5,
)
words = st.lists(st.text(min_size=1, max_size=8), max_size=3)
stored = st.fixed_dictionaries(
    {
        "id": st.text(min_size=1, max_size=20),
        "timestamp": st.just(NOW),
        "content": st.text(max_size=40),
        "importance": st.integers(1, 10),
        "source_type": st.sampled_from(["assistant", "import", *DERIVED_SOURCES]),
        "tags": words,
        "entities": words,
        "source_message_ids": words,
        "audience": st.sampled_from([PUBLIC, STAFF, "private:o1.a", "private:o1.a+o2.b"]),
    },
    optional={"withdrawn": st.just(True), "note of a game": anything},
)
edited = st.dictionaries(
    st.sampled_from([*JournalEntry.__dataclass_fields__, "x"]), anything, max_size=8
)


class TestJournalEntry(unittest.TestCase):
    """From stored values and back."""

    @given(stored)
    def test_round_trip(self, raw):
        """A complete stored entry comes back as it was, unknown keys included."""
        self.assertEqual(JournalEntry.from_dict(raw).to_dict(), raw)

    @given(anything | edited)
    def test_by_hand(self, raw):
        """Whatever is stored gives a complete entry, the same at every reading."""
        entry = JournalEntry.from_dict(raw, NOW)
        self.assertEqual(JournalEntry.from_dict(entry.to_dict()), entry)
        self.assertTrue(entry.id and entry.timestamp and entry.source_type)
        self.assertTrue(1 <= entry.importance <= 10)

    def test_repairs(self):
        """Odd values become what their author most likely meant."""
        odd = {"content": 5, "importance": 99, "tags": "bees", "entities": [7], "audience": "x"}
        entry = JournalEntry.from_dict({**odd, "timestamp": 0}, NOW)
        self.assertEqual((entry.content, entry.importance, entry.audience), ("5", 10, STAFF))
        self.assertEqual((entry.tags, entry.entities), (("bees",), ("7",)))
        self.assertTrue(entry.timestamp.startswith("1970-01-01"))
        self.assertEqual(JournalEntry.from_dict({"timestamp": 1e300}, NOW).timestamp, NOW)
        self.assertEqual(JournalEntry.from_dict({"importance": 10**500}).importance, 10)
        self.assertEqual(JournalEntry.from_dict({"importance": float("nan")}).importance, 5)

    def test_only_text(self):
        """A text alone is an entry for everybody, with an id that tells no time."""
        entry = JournalEntry.from_dict("The key is green.", NOW)
        self.assertEqual((entry.content, entry.audience), ("The key is green.", PUBLIC))
        self.assertTrue(entry.id.startswith("eh"))

    def test_may_consolidate(self):
        """What was lived through may become a memory; derived and withdrawn entries may not."""
        self.assertTrue(JournalEntry("e1", NOW, "x").may_consolidate)
        self.assertFalse(JournalEntry("e1", NOW, "x", withdrawn=True).may_consolidate)
        for source in DERIVED_SOURCES:
            self.assertFalse(JournalEntry("e1", NOW, "x", source_type=source).may_consolidate)
