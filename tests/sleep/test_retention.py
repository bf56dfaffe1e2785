"""What a summary lost: counted and appended."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.items import Item, items_of, missing
from evennia_ai.sleep.compaction.retention import (
    APPENDIX_TITLE,
    appendix,
    drift,
    kept,
    score,
)
from tests.strategies import MANY

some_items = st.lists(
    st.builds(Item, st.sampled_from(("name", "number", "quote")), st.text(min_size=1, max_size=30))
)


class TestScore(unittest.TestCase):
    """The share that survived."""

    def test_score(self):
        """The score is the share that survived; nothing to keep is all kept."""
        items = items_of("of Roland, Mara, 3 and 4")
        self.assertEqual(score(items, items[:1]), 0.75)
        self.assertEqual((score(items, ()), score(items, items), score((), ())), (1.0, 0.0, 1.0))


class TestAppendix(unittest.TestCase):
    """The line that names what no summary did."""

    def test_line(self):
        """The line lists items in order, quotations in quotes."""
        items = items_of('of Roland, 3 and "the key"')
        line = f'{APPENDIX_TITLE} Roland, 3, "the key".'
        self.assertEqual(appendix(items, 100, len), (line, ()))
        self.assertEqual(appendix((), 100, len), ("", ()))

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

    def test_what_was_appended_is_found(self):
        """A summary with the line has lost nothing the line names."""
        items = items_of("of Roland, 3, 1,200, 17:30 and \"the key\" at O'Brien's")
        line, _ = appendix(items, 1000, len)
        self.assertEqual(missing(items, f"They met.\n{line}"), ())


class TestKept(unittest.TestCase):
    """A summary with its line."""

    def test_what_is_kept_elsewhere_is_not_appended(self):
        """The journal and the ledger count; what of a text is cut off counts as lost."""
        items = items_of("of Roland, Mara and 17")
        held = kept(items, "Roland came.", ["Mara sings."], 100, len)
        self.assertEqual(held.text, f"Roland came.\n{APPENDIX_TITLE} 17.")
        self.assertEqual([item.text for item in held.lost], ["17"])
        self.assertAlmostEqual(held.score, 2 / 3)
        self.assertAlmostEqual(held.in_summary, 1 / 3)
        self.assertEqual(held.named, ("Roland", "Mara"))
        held = kept(items, "It was late. " * 9 + "Roland, Mara.", (), 100, len)
        self.assertLessEqual(len(held.text), 100)
        self.assertIn("Roland", [item.text for item in held.lost])

    def test_nothing_lost(self):
        """Nothing is appended, and drift is none."""
        items = items_of("of Roland")
        self.assertEqual(kept(items, "Roland came.", (), 100, len).text, "Roland came.")
        self.assertEqual(drift(["of Roland"], "Roland came."), 0.0)
        self.assertEqual(drift(["of Roland"], "He came."), 1.0)
