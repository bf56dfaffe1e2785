"""Hours of the day."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.turns.options import within_hours
from tests.strategies import FEW

minutes = st.integers(0, 1439)


def shown(minute):
    return f"{minute // 60:02}:{minute % 60:02}"


def at(minute):
    return lambda game: divmod(minute, 60)


class TestWithinHours(unittest.TestCase):
    """Whether it is now within a span."""

    def test_over_midnight(self):
        """A span that ends before it begins runs over midnight; its end is not in it."""
        inside = [minute for minute in range(1440) if within_hours("23:00-06:00", at(minute))]
        self.assertEqual(inside, [*range(360), *range(1380, 1440)])

    @FEW
    @given(minutes, minutes, minutes)
    def test_a_span_and_its_opposite_share_the_day(self, start, end, now):
        """Each minute is in a span or in the opposite one, never in both."""
        if start != end:
            one = within_hours(f"{shown(start)}-{shown(end)}", at(now))
            other = within_hours(f"{shown(end)}-{shown(start)}", at(now))
            self.assertNotEqual(one, other)
        else:
            self.assertFalse(within_hours(f"{shown(start)}-{shown(end)}", at(now)))
