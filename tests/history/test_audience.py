"""Audiences: who may know a thing."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.audience import (
    PUBLIC,
    STAFF,
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
    """Audiences as short strings."""

    def test_private_is_sorted(self):
        """A circle has one name, whatever order its people are told in."""
        self.assertEqual(private(["o2", "o1", "o2"]), "private:o1+o2")
        self.assertTrue(is_private("private:o1+o2"))
        self.assertFalse(is_private(PUBLIC))

    def test_a_circle_of_nobody_is_for_staff(self):
        """Where nobody is left to know a thing, only staff may."""
        self.assertEqual(private([]), STAFF)

    def test_members(self):
        """A private audience names its people, any other none."""
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
    """Who may be shown what."""

    def test_table(self):
        """Everybody in the turn must have been in the talk."""
        alice, both = private(["a"]), private(["a", "b"])
        seen = [
            (PUBLIC, PUBLIC),
            (PUBLIC, alice),
            (PUBLIC, STAFF),
            (alice, alice),
            (both, alice),
            (both, both),
            (alice, STAFF),
            (STAFF, STAFF),
        ]
        hidden = [
            (alice, PUBLIC),
            (alice, both),
            (both, private(["c"])),
            (STAFF, PUBLIC),
            (STAFF, alice),
            (alice, "somebody"),
        ]
        self.assertEqual([pair for pair in seen if not visible(*pair)], [])
        self.assertEqual([pair for pair in hidden if visible(*pair)], [])

    def test_a_circle_of_nobody_sees_no_secret(self):
        """A turn that is for nobody in particular is shown no private talk."""
        self.assertFalse(visible(private(["a"]), "private:"))
        self.assertTrue(visible(PUBLIC, "private:"))

    @FEW
    @given(audiences, audiences, audiences)
    def test_order(self, first, second, third):
        """Who may see a thing may see what its viewers may see."""
        self.assertTrue(visible(first, first))
        if visible(first, second) and visible(second, third):
            self.assertTrue(visible(first, third))

    @FEW
    @given(audiences, audiences)
    def test_mutual_sight_is_equality(self, first, second):
        """Two audiences that may see each other are the same, staff left out."""
        if visible(first, second) and visible(second, first):
            self.assertEqual(first, second)
