"""Audiences: who may know a thing."""

import unittest
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.audience import (
    PUBLIC,
    STAFF,
    Views,
    is_private,
    members,
    normalised,
    private,
    viewer,
    visible,
)
from tests.strategies import FEW, audiences

stored = st.one_of(audiences, st.none(), st.integers(), st.text(), st.just("private:"))


class TestNames(unittest.TestCase):
    def test_private(self):
        """A circle has one name, whatever order its people are told in; of nobody it is staff's."""
        self.assertEqual(private(["o2", "o1", "o2"]), "private:o1+o2")
        self.assertEqual(private([]), STAFF)
        self.assertEqual((is_private("private:o1+o2"), is_private(PUBLIC)), (True, False))
        self.assertEqual(members("private:o1+o2"), {"o1", "o2"})
        self.assertEqual(members(PUBLIC) | members(STAFF) | members("private:"), frozenset())

    @FEW
    @given(stored)
    def test_normalised_is_valid_and_stable(self, audience):
        """Anything stored becomes public, staff or a circle of somebody, once for all."""
        valid = normalised(audience)
        self.assertEqual(normalised(valid), valid)
        self.assertTrue(valid in (PUBLIC, STAFF) or members(valid))

    def test_unknown_is_narrow(self):
        """What nobody can read is for staff; what was never named is public."""
        self.assertEqual(
            [normalised(a) for a in (None, "all", 5, "private:")], [PUBLIC, STAFF, STAFF, STAFF]
        )

    def test_unknown_viewers_are_the_public(self):
        """Who asks for nobody known is told what is public."""
        unknown = (None, "", "Public", "everyone", "o2", "private:", "private:+", 5, ["staff"])
        self.assertEqual({viewer(each) for each in unknown}, {PUBLIC})
        self.assertEqual(viewer(STAFF), STAFF)
        self.assertEqual(viewer("private:o2+o1"), private(["o1", "o2"]))

    @FEW
    @given(audiences, stored)
    def test_a_viewer_sees_what_is_visible(self, audience, shown_to):
        """A viewer made valid sees what it saw, and no more."""
        self.assertEqual(viewer(audience), audience)
        self.assertEqual(viewer(viewer(shown_to)), viewer(shown_to))
        if isinstance(shown_to, str):
            self.assertEqual(visible(audience, viewer(shown_to)), visible(audience, shown_to))


class TestVisible(unittest.TestCase):
    def test_table(self):
        """Everybody in the turn must have been in the talk."""
        alice, both = private(["a"]), private(["a", "b"])
        viewers = (PUBLIC, alice, both, private(["c"]), STAFF, "somebody", "private:")
        for audience, may in (
            (PUBLIC, viewers),
            (alice, (alice, STAFF)),
            (both, (alice, both, STAFF)),
            (STAFF, (STAFF,)),
        ):
            self.assertEqual(tuple(v for v in viewers if visible(audience, v)), tuple(may))

    @FEW
    @given(audiences, audiences, audiences)
    def test_order(self, first, second, third):
        """Who may see a thing may see what its viewers may see."""
        self.assertTrue(visible(first, first))
        if visible(first, second) and visible(second, third):
            self.assertTrue(visible(first, third))


class TestViews(unittest.TestCase):
    @FEW
    @given(st.lists(st.tuples(audiences, st.integers(0, 50)), max_size=30))
    def test_the_sum_of_the_widest_view(self, added):
        """It is that of the definition: for each viewer, all that the viewer may see."""
        views, tally = Views(), Counter()
        for audience, tokens in added:
            views.add(audience, tokens)
            tally[audience] += tokens
            viewers = {PUBLIC, *filter(is_private, tally)}
            sums = [sum(n for a, n in tally.items() if visible(a, each)) for each in viewers]
            self.assertEqual(views.widest, max(sums))
        self.assertEqual(views.tally, tally)
