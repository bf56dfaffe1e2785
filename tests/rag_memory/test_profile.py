"""Profiles: stored as plain dicts, complete however somebody edited them."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.audience import PUBLIC, STAFF
from evennia_ai.rag_memory.profile import Observation, Profile

AT = "2026-01-02T03:04:05+00:00"
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=5,
)
word = st.text(min_size=1, max_size=8)
words = st.lists(word, max_size=3)
some = st.lists(word, min_size=1, max_size=3)
observations = st.fixed_dictionaries(
    {
        "id": word,
        "text": st.text(max_size=20),
        "subject": st.none() | word,
        "predicate": st.none() | word,
        "value": st.none() | word,
        "at": st.just(AT),
        "source": word,
        "audience": st.sampled_from([PUBLIC, STAFF, "private:o1.a"]),
        "status": st.sampled_from(["current", "superseded"]),
        "superseded_by": st.none() | word,
    },
    optional={
        "superseded_at": st.just(AT),
        "sources": some,
        "last_at": st.just(AT),
        "times": st.integers(2, 9),
        "other_texts": some,
        "note of a game": anything,
    },
)
profiles = st.fixed_dictionaries(
    {
        "version": st.just(1),
        "id": word,
        "name": word,
        "kind": st.sampled_from(["person", "place", "thing", "unknown"]),
        "aliases": words,
        "first_seen": st.just(AT),
        "last_seen": st.just(AT),
        "relationship": st.text(max_size=8),
        "observations": st.lists(observations, max_size=3),
        "memory_links": words,
    },
    optional={"archived": some, "summary": word, "tidied": word, "note of a game": anything},
)


def edited(value):
    """Dicts with the keys of a value and anything in them."""
    return st.dictionaries(st.sampled_from([*value.__dataclass_fields__, "x"]), anything)


class TestProfile(unittest.TestCase):
    """From stored values and back."""

    @given(profiles)
    def test_round_trip(self, raw):
        """A complete stored profile comes back as it was, unknown keys included."""
        self.assertEqual(Profile.from_dict(raw).to_dict(), raw)

    @given(edited(Profile), st.lists(edited(Observation) | anything, max_size=3))
    def test_by_hand(self, raw, listed):
        """Whatever is stored gives a complete profile, the same at every reading."""
        profile = Profile.from_dict({**raw, "observations": listed}, "o1")
        self.assertEqual(repr(Profile.from_dict(profile.to_dict())), repr(profile))
        self.assertTrue(profile.id and profile.name)
        for audience in (PUBLIC, STAFF, "private:o1.a"):
            self.assertEqual(profile.lines(audience)[0], profile.heading)

    def test_repairs(self):
        """An observation without an id is left out; one without an audience is for staff."""
        stored = {"observations": [{"text": "x"}, {"id": 7, "text": None, "times": "2"}, "y"]}
        (found,) = Profile.from_dict(stored, "o1").observations
        self.assertEqual((found.id, found.text, found.times), ("7", "", 1))
        self.assertEqual(found.audience, STAFF)
        self.assertEqual(found.source_ids, ("",))
