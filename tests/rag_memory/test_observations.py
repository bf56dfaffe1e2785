"""Observations: read off journal entries, and found by the words of a query."""

import unittest
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.audience import PUBLIC
from evennia_ai.rag_memory.entities import (
    found_observations,
    new_profile,
    observe,
)
from evennia_ai.rag_memory.entity_store import EntityHandler
from evennia_ai.rag_memory.journal import JournalEntry
from tests.fake import MemoryStore

PROFILES = {
    "o1": new_profile("o1", "Bob", 0.0),
    "o2": new_profile("o2", "Jean-Luc Mill", 0.0),
    "o3": new_profile("o3", "Twin", 0.0),
    "o4": new_profile("o4", "Twin", 0.0),
    "r1": new_profile("r1", "The Old Mill", 0.0, kind="place"),
}
HANDLER = EntityHandler(MemoryStore())
HANDLER.put(PROFILES)


def entry(number, content, audience="public"):
    at = f"2026-01-{number + 1:02d}T10:00:00+00:00"
    return JournalEntry(f"e{number}", at, content, audience=audience)


def texts(content, entity_id="o1"):
    """The texts of the observations that an entry leaves."""
    profile = HANDLER.observed(PROFILES[entity_id], entry(0, content))
    return [item.text for item in profile.observations]


class TestObserved(unittest.TestCase):
    def test_sentences_about_it(self):
        """Each sentence that begins with its name; the longest known name counts."""
        told = "Bob lives in Ford. Ann sings. Bob's sister Marla moved: he lives alone."
        self.assertEqual(texts(told), ["Bob lives in Ford.", told[30:]])
        self.assertEqual(texts("The Old Mill is haunted.", "r1"), ["The Old Mill is haunted."])
        self.assertEqual(texts("Jean-Luc Mill is a baker.", "o2"), ["Jean-Luc Mill is a baker."])

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
                self.assertEqual(texts(sentence), [])
        self.assertEqual(texts("Twin lives in Ford.", "o3"), [])

    def test_reads_an_entry_once(self):
        """Also where another entry told the same."""
        once = HANDLER.observed(PROFILES["o1"], entry(0, "Bob sings."))
        twice = HANDLER.observed(once, entry(1, "Bob sings."))
        self.assertEqual([belief.times for belief in twice.beliefs("public")], [2])
        for number in (0, 1):
            self.assertEqual(HANDLER.observed(twice, entry(number, "Bob sings.")), twice)

    def test_audience(self):
        """What was whispered is observed for those only."""
        secret = "private:o1"
        profile = HANDLER.observed(PROFILES["o1"], entry(1, "Bob lives in Ford.", secret))
        self.assertEqual(profile.beliefs("public"), [])
        self.assertEqual(len(profile.beliefs(secret)), 1)

    @given(st.lists(st.text(alphabet="Bobs '.?!:lives in", max_size=60), max_size=4))
    def test_any_text(self, contents):
        """It never raises, and the same entry read again changes nothing."""
        profile = PROFILES["o1"]
        for number, content in enumerate(contents):
            once = HANDLER.observed(profile, entry(number, content))
            self.assertEqual(HANDLER.observed(once, entry(number, content)), once)
            profile = once


MILL = {"predicate": "lives in", "value": "the mill"}


def profile(name, *texts, **fact):
    """A profile with observations, a second apart."""
    made = new_profile(f"n.{name.lower()}", name, 1.7e9)
    for second, text in enumerate(texts):
        made = observe(made, text, 1.7e9 + second, f"m{second}", **fact)
    return {made.id: made}


class TestFound(unittest.TestCase):
    def texts(self, profiles, query, audience="public"):
        """The texts, best first."""
        handler = EntityHandler(MemoryStore())
        handler.put(profiles)
        named = handler.called(query, audience)
        return [hit.text for hit in found_observations(named, query, audience)]

    def test_by_most_words(self):
        """More than half of the words must be there, in any form, the entity's name among them."""
        known = profile("Elin", "Elin keeps bees.", "Elin went to bed.", "Elin sings.")
        self.assertEqual(self.texts(known, "who keeps bees"), [])
        self.assertEqual(self.texts(known, "Elin's bees"), ["Elin keeps bees."])
        self.assertEqual(self.texts(known, "is Elin keeping a bee?"), ["Elin keeps bees."])
        self.assertEqual(self.texts(known, "the keeper of the seal of Ford"), [])
        self.assertEqual(self.texts(known, "the"), [])

    def test_what_is_gone(self):
        """The name of a profile that was dropped finds nothing, of a changed one what it is."""
        known = profile("Elin", "Elin keeps bees.") | profile("Amy", "Amy keeps bees.")
        handler = EntityHandler(MemoryStore())
        handler.put(known)
        changed = {"n.elin": replace(known["n.elin"], name="Elsa")}
        for _ in handler.forget(lambda item: changed.get(item.id)):
            pass
        found = [handler.named(name, PUBLIC) for name in ("elin", "amy", "elsa")]
        self.assertEqual(found, [(), (), ("n.elin",)])

    def test_named_people(self):
        """Only of those whom the query names something is found."""
        homes = profile("Elin", "a floury home", **MILL) | profile("Amy", "an attic", **MILL)
        self.assertEqual(self.texts(homes, "Amy's attic"), ["About Amy: an attic"])
        found = self.texts(homes, "Does Amy live at the mill?")
        self.assertEqual(found, ["About Amy: an attic"])

    def test_names_known_from_whispers(self):
        """Who is known to others only changes nothing."""
        bees = profile("Elin", "Elin keeps bees behind the mill.")
        ida = new_profile("n.ida", "Ida", 1.7e9)
        ida = replace(observe(ida, "She owes gold.", 1.7e9, "m9", "private:o1.a"), kind="person")
        known, query = {**bees, "n.ida": ida}, "Are Ida's bees behind the mill?"
        for viewer in ("public", "private:o1.a"):
            self.assertEqual(self.texts(known, query, viewer), [])
        self.assertEqual(self.texts(known, "Ida's gold"), [])
        self.assertTrue(self.texts(known, "Ida's gold", "private:o1.a"))
