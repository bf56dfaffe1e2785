"""What a summary lost: counted and appended."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.llm_interaction.items import Item, items_of
from evennia_ai.sleep.compaction.coverage import APPENDIX_TITLE, appendix, covered
from tests.strategies import MANY

some_items = st.lists(
    st.builds(Item, st.sampled_from(("name", "number", "quote")), st.text(min_size=1, max_size=30))
)


class TestAppendix(unittest.TestCase):
    """The line that names what no summary did."""

    def test_overflow(self):
        """What does not fit is given back; a cap below the first leaves no line."""
        items = items_of("of Roland, Mara and Norvik")
        self.assertEqual(appendix(items, 24, len)[1], items[1:])
        self.assertEqual(appendix(items, 10, len), ("", items))

    @MANY
    @given(some_items, st.integers(0, 200))
    def test_cap(self, items, cap):
        """The line is one line within its cap, and no item is lost between it and the rest."""
        line, rest = appendix(items, cap, len)
        self.assertLessEqual(len(line), cap)
        self.assertLessEqual(len(line.splitlines()), 1)
        self.assertEqual(tuple(items)[len(items) - len(rest) :], rest)
        self.assertEqual(bool(line), len(rest) < len(items))
        if rest:
            longer, _ = appendix(items[: len(items) - len(rest) + 1], 10**6, len)
            self.assertGreater(len(longer), cap)


class TestCovered(unittest.TestCase):
    """A summary with its line."""

    def test_what_is_kept_elsewhere_is_not_appended(self):
        """The journal and the ledger count; what of a text is cut off counts as lost."""
        items = items_of("of Roland, Mara and 17")
        summary = covered(items, "Roland came.", ["Mara sings."], 100, len)
        self.assertEqual(summary.text, f"Roland came.\n{APPENDIX_TITLE} 17.")
        self.assertEqual([item.text for item in summary.lost], ["17"])
        self.assertAlmostEqual(summary.share, 2 / 3)
        self.assertEqual(summary.named, ("Roland", "Mara"))
        summary = covered(items, "It was late. " * 9 + "Roland, Mara.", (), 100, len)
        self.assertLessEqual(len(summary.text), 100)
        self.assertIn("Roland", [item.text for item in summary.lost])
