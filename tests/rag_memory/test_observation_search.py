"""Finding observations by the words of a query."""

import unittest
from dataclasses import replace

from evennia_ai.rag_memory.entities import new_profile, observe
from evennia_ai.rag_memory.observations import MOST_FOUND, found_observations
from evennia_ai.rag_memory.profile import Profile

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

    def test_by_property(self):
        """Predicate and value count as words; a text without the name gets it."""
        known = profile("Elin", "a floury home", **MILL)
        self.assertEqual(self.texts(known, "who lives at the mill"), ["About Elin: a floury home"])

    def test_few_and_newest(self):
        """Of many equally good ones the newest few."""
        known = profile("Elin", *(f"Elin sang, {n}." for n in range(9)))
        found = self.texts(known, "Elin sang")
        self.assertEqual(len(found), MOST_FOUND)
        self.assertEqual(found[0], "Elin sang, 8.")
        hit = found_observations(known, "Elin sang", "public")[0]
        self.assertEqual((hit.kind, hit.score), ("observation", 1.0))

    def test_named_people(self):
        """Who is named must be in it; a part of another's name, or a place's, hides nothing."""
        bees = profile("Elin", "Elin keeps bees behind the mill.")
        query = "Who keeps bees behind the mill?"
        for name, kind in (("Camilla", "person"), ("The Bee Garden", "place")):
            other = profile(name, "It was cold there.")
            (only,) = other.values()
            known = {**bees, only.id: replace(only, kind=kind)}
            self.assertEqual(self.texts(known, query), ["Elin keeps bees behind the mill."])
        homes = profile("Elin", "a floury home", **MILL) | profile("Bram", "a cellar", **MILL)
        homes |= profile("Amy", "an attic", **MILL)
        found = self.texts(homes, "Does Amy live at the mill?")
        self.assertEqual(found, ["About Amy: an attic"])
        found = self.texts(homes, "Does Bram live at the mill?")
        self.assertEqual(found, ["About Bram: a cellar"])

    def test_parts_of_names(self):
        """A word of a name names somebody where it is written as one, and stands by itself."""
        mill = profile("Elin", "Elin owes four silver for the mill.")
        cask = profile("Elin", "Elin hid the key behind the cask in the cellar.")
        for known, query, name in (
            (mill, "Who owes silver for the old mill?", "Old Tom"),
            (mill, "Who owes silver for the Old Mill?", "Old Tom"),
            (mill, "Old debts of silver for the mill?", "Old Tom"),
            (cask, "Where is the key that the guard at the gate hid?", "a gate guard"),
        ):
            other = profile(name, "It was cold there.")
            self.assertEqual(self.texts(known | other, query)[:1], self.texts(known, query), query)
            self.assertTrue(self.texts(known, query), query)
        known = mill | profile("Old Tom", "The sleeper owes four silver.")
        for query in (
            "Does Tom owe silver?",
            "does old tom owe silver",
            "Is it Tom's silver owed?",
        ):
            found = self.texts(known, query)
            self.assertEqual(found, ["About Old Tom: The sleeper owes four silver."], query)

    def test_names_known_from_whispers(self):
        """Who is known to others only changes nothing."""
        bees = profile("Elin", "Elin keeps bees behind the mill.")
        ida = new_profile("n.ida", "Ida", 1.7e9)
        ida = observe(ida, "She owes gold.", 1.7e9, "m9", "private:o1.a")
        known = {**bees, "n.ida": ida}
        query = "Are Ida's bees behind the mill?"
        self.assertEqual(self.texts(known, query), ["Elin keeps bees behind the mill."])
        self.assertEqual(self.texts(known, query, "private:o1.a"), [])
        self.assertEqual(self.texts(known, "Ida's gold"), [])
        self.assertTrue(self.texts(known, "Ida's gold", "private:o1.a"))

    def test_names_that_are_words(self):
        """Who is called like a word that tells nothing is found by it, told of or known."""
        told = profile("Bram", "Bram's cousin Will lives in the tower.", "Odo lives in the attic.")
        found = self.texts(told, "Where does Will live?")
        self.assertEqual(found[0], "Bram's cousin Will lives in the tower.")
        for name in ("May", "Dear"):
            known = profile(name, "The tower is home.") | profile("Odo", "The attic is home.")
            found = self.texts(known, f"Where is {name} at home?")
            self.assertEqual(found[0], f"About {name}: The tower is home.")
            self.assertEqual(len(self.texts(known, f"{name} had a home once?")), 2)
        known = profile("Will", "The tower is home.") | profile("Odo", "Odo will live there.")
        found = self.texts(known, "Where does Will live?")
        self.assertEqual(found, ["About Will: The tower is home."])

    def test_nameless(self):
        """A profile written by hand without a name is searched like others."""
        made = observe(Profile("n.x", ""), "It glows.", 1.7e9, "m1")
        self.assertEqual(self.texts({"n.x": made}, "what glows"), ["It glows."])
