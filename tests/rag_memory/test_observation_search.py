"""Finding observations by the words of a query."""

import unittest
from dataclasses import replace

from evennia_ai.rag_memory.entities import new_profile, observe
from evennia_ai.rag_memory.observations import found_observations

MILL = {"predicate": "lives in", "value": "the mill"}


def profile(name, *texts, **fact):
    """A profile with observations, a second apart."""
    made = new_profile(f"n.{name.lower()}", name, 1.7e9)
    for second, text in enumerate(texts):
        made = observe(made, text, 1.7e9 + second, f"m{second}", **fact)
    return {made.id: made}


class TestFound(unittest.TestCase):
    """What a query finds."""

    def texts(self, profiles, query, audience="public"):
        """The texts, best first."""
        return [hit.text for hit in found_observations(profiles, query, audience)]

    def test_by_most_words(self):
        """Half of the words must be there, in any form, the entity's name among them."""
        known = profile("Elin", "Elin keeps bees.", "Elin went to bed.", "Elin sings.")
        self.assertEqual(self.texts(known, "who keeps bees"), ["Elin keeps bees."])
        self.assertEqual(self.texts(known, "is Elin keeping a bee?"), ["Elin keeps bees."])
        self.assertEqual(self.texts(known, "the keeper of the seal of Ford"), [])
        self.assertEqual(self.texts(known, "the"), [])

    def test_named_people(self):
        """Where people are named, only what names them is found."""
        homes = profile("Elin", "a floury home", **MILL) | profile("Amy", "an attic", **MILL)
        homes = {key: replace(each, kind="person") for key, each in homes.items()}
        found = self.texts(homes, "Does Amy live at the mill?")
        self.assertEqual(found, ["About Amy: an attic"])
        self.assertEqual(len(self.texts(homes, "Who lives at the mill?")), 2)

    def test_names_known_from_whispers(self):
        """Who is known to others only changes nothing."""
        bees = profile("Elin", "Elin keeps bees behind the mill.")
        ida = new_profile("n.ida", "Ida", 1.7e9)
        ida = replace(observe(ida, "She owes gold.", 1.7e9, "m9", "private:o1.a"), kind="person")
        known = {**bees, "n.ida": ida}
        query = "Are Ida's bees behind the mill?"
        self.assertEqual(self.texts(known, query), ["Elin keeps bees behind the mill."])
        self.assertEqual(self.texts(known, query, "private:o1.a"), [])
        self.assertEqual(self.texts(known, "Ida's gold"), [])
        self.assertTrue(self.texts(known, "Ida's gold", "private:o1.a"))
