"""What a summary lost: counted, asked for again and appended."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.items import Item, items_of, missing
from evennia_ai.sleep.compaction.retention import (
    APPENDIX_TITLE,
    appendix,
    missing_request,
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

    def test_request(self):
        """The request lists what is missing by kind and holds the summary."""
        text = missing_request("They met.", items_of('of Roland, 3 and "the key"'))
        for part in ("- Names: Roland\n", "- Numbers: 3\n", '- Quoted words: "the key"\n'):
            self.assertIn(part, text)
        self.assertIn("They met.", text)
        self.assertNotIn("Quoted", missing_request("They met.", items_of("of Roland")))
