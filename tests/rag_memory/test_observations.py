"""Observations read off journal entries, and taken out again with them."""

import unittest
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.forgetting import OwnWords
from evennia_ai.rag_memory.entities import (
    forgotten,
    names_index,
    new_profile,
    observe,
    with_alias,
)
from evennia_ai.rag_memory.journal_entry import JournalEntry
from evennia_ai.rag_memory.observations import MOST_OBSERVATIONS, observed

PROFILES = {
    "o1": new_profile("o1", "Bob", 0.0),
    "o2": new_profile("o2", "Jean-Luc Mill", 0.0),
    "o3": new_profile("o3", "Twin", 0.0),
    "o4": new_profile("o4", "Twin", 0.0),
    "r1": new_profile("r1", "The Old Mill", 0.0, kind="place"),
}
NAMES = names_index(PROFILES, PUBLIC)


def entry(number, content, audience="public"):
    at = f"2026-01-{number + 1:02d}T10:00:00+00:00"
    return JournalEntry(f"e{number}", at, content, audience=audience)


def facts(*contents, entity_id="o1"):
    """Subject, predicate and value of each observation that a series of entries leaves."""
    profile = PROFILES[entity_id]
    for number, content in enumerate(contents):
        profile = observed(profile, entry(number, content), NAMES)
    return [(o.subject, o.predicate, o.value) for o in profile.observations]


class TestObserved(unittest.TestCase):
    """What a sentence tells, and of whom."""

    def test_properties(self):
        """Properties of which there is one at a time have predicate and value."""
        told = {
            "Bob lives in Ford.": ("lives in", "Ford"),
            "Bob now lives over in the Old Mill these days.": ("lives in", "Old Mill"),
            "Bob has moved to Dunmere, over the hill.": ("lives in", "Dunmere"),
            "Bob moved: Bob lives in the mill now.": ("lives in", "mill"),
            "Bob has news: he sings; Ann lives in Ash.": ("", ""),
            "Bob works as a cooper by trade": ("works as", "cooper"),
            "Bob still works for the duke!": ("works at", "duke"),
            "Bob was born in Ash.": ("was born in", "Ash"),
            "Bob is married to Ann since May.": ("is married to", "Ann"),
            "Bob is forty years old.": ("age", "forty"),
            "Bob keeps bees.": ("", ""),
        }
        for sentence, (predicate, value) in told.items():
            with self.subTest(sentence):
                self.assertEqual(facts(sentence), [("", predicate, value)])

    def test_what_is_owned(self):
        """A property of somebody's sister or dog is told of that one."""
        self.assertEqual(
            facts("Bob's sister Marla lives in Ash now. Bob's dog is called Soot."),
            [("Bob's sister Marla", "lives in", "Ash"), ("Bob's dog", "is called", "Soot")],
        )
        self.assertEqual(facts("Bob's beard grows."), [("", "", "")])

    def test_tells_of_others(self):
        """Speakers, questions, other names and names of two tell nothing of somebody."""
        for sentence in (
            "Bob: I live in Ford.",
            "Does Bob live in Ford?",
            "Bob lives in Ford?",
            "Bobby lives in Ford.",
            "Ann told Bob a story.",
            "Bob",
            "",
        ):
            with self.subTest(sentence):
                self.assertEqual(facts(sentence), [])
        self.assertEqual(facts("Twin lives in Ford.", entity_id="o3"), [])

    def test_names_of_several_words(self):
        """Articles and hyphens are no hindrance, and the longest name counts."""
        self.assertEqual(facts("The Old Mill is haunted.", entity_id="r1"), [("", "", "")])
        told = facts("Jean-Luc Mill works as a baker.", entity_id="o2")
        self.assertEqual(told, [("", "works as", "baker")])

    def test_later_value_supersedes(self):
        """The latest of a property holds; the older is a former one."""
        profile = PROFILES["o1"]
        for number, town in enumerate(("Ford", "Ash")):
            told = entry(number, f"Bob lives in {town}.")
            profile = observed(profile, told, NAMES)
        (belief,) = profile.beliefs("public")
        self.assertEqual((belief.observation.value, belief.former[0].value), ("Ash", "Ford"))

    def test_reads_an_entry_once(self):
        """Also where another entry told the same."""
        once = observed(PROFILES["o1"], entry(0, "Bob sings."), NAMES)
        twice = observed(once, entry(1, "Bob sings."), NAMES)
        self.assertEqual([belief.times for belief in twice.beliefs("public")], [2])
        for number in (0, 1):
            self.assertEqual(observed(twice, entry(number, "Bob sings."), NAMES), twice)

    def test_audience(self):
        """What was whispered is observed for those only."""
        secret = "private:o1"
        profile = observed(PROFILES["o1"], entry(1, "Bob lives in Ford.", secret), NAMES)
        self.assertEqual(profile.beliefs("public"), [])
        self.assertEqual(len(profile.beliefs(secret)), 1)

    def test_bounded(self):
        """A profile takes no more different sentences than it can hold, but always a property."""
        profile = PROFILES["o1"]
        for number in range(MOST_OBSERVATIONS + 5):
            for text in (f"Bob sang song {number}.", "Bob sings."):
                told = replace(entry(1, text), id=f"e{number} {text}")
                profile = observed(profile, told, NAMES)
        self.assertEqual(len(profile.beliefs("public")), MOST_OBSERVATIONS)
        last = replace(entry(9, "Bob lives in Ford."), id="last")
        profile = observed(profile, last, NAMES)
        self.assertEqual(profile.observations[-1].value, "Ford")

    @given(st.lists(st.text(alphabet="Bobs '.?!:lives in", max_size=60), max_size=4))
    def test_any_text(self, contents):
        """It never raises, and the same entry read again changes nothing."""
        profile = PROFILES["o1"]
        for number, content in enumerate(contents):
            once = observed(profile, entry(number, content), NAMES)
            self.assertEqual(observed(once, entry(number, content), NAMES), once)
            profile = once


class TestForgotten(unittest.TestCase):
    """A profile without what somebody said who is forgotten."""

    own = OwnWords(frozenset({"zorblax"}))

    def left(self, profile, sources=("m1",)):
        return forgotten(profile, sources, self.own, ["o1.a"])

    def test_what_rests_on_their_words(self):
        """It goes, also where others said the same; what it had superseded holds again."""
        bob = observe(PROFILES["o1"], "Lives here.", 1, "m2", predicate="home", value="mill")
        bob = observe(bob, "Moved.", 2, ["m3", "m1"], predicate="home", value="inn")
        [kept] = self.left(bob).beliefs("public")
        self.assertEqual((kept.observation.value, kept.former), ("mill", ()))

    def test_what_repeats_them(self):
        """An observation or another name with a word of theirs."""
        bob = observe(PROFILES["o1"], "Keeps bees.", 1, "m2")
        for text, fields in (
            ("A zorblax.", {}),
            ("Has it.", {"predicate": "z", "value": "Zorblax"}),
        ):
            told = observe(bob, text, 2, "m2", **fields)
            self.assertEqual(len(self.left(told).observations), 1)
        named = with_alias(bob, "Zorblax", 2, "m2", PUBLIC)
        self.assertEqual(
            self.left(with_alias(named, "Bo", 3, "m2", PUBLIC)).names(PUBLIC), ("Bob", "Bo")
        )

    def test_the_same(self):
        """Nothing of theirs, nothing changed."""
        bob = observe(PROFILES["o1"], "Keeps bees.", 1, "m2")
        self.assertIs(self.left(bob), bob)

    def test_profiles_that_go(self):
        """Their own without observations, and those of things only they mentioned."""
        alice = new_profile("o1.a", "Alice", 0.0)
        self.assertIsNone(self.left(alice))
        told = observe(alice, "Owes Bob.", 1, "m2")
        self.assertIs(self.left(told), told)
        self.assertIsNone(self.left(new_profile("n.zorblax", "Zorblax", 0.0)))
        boat = new_profile("n.boat", "boat", 0.0)
        self.assertIs(self.left(boat), boat)
        self.assertIsNone(self.left(observe(boat, "Blue.", 1, "m1")))
        archived = replace(observe(boat, "Blue.", 1, "m1"), archived=("page_000001",))
        self.assertIsNotNone(self.left(archived))
