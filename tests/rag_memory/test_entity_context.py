"""Entities: adding observations, finding who is meant, joining two of a name."""

import copy
import unittest

from evennia_ai.history.audience import PUBLIC, STAFF, private
from evennia_ai.history.messages import utc_iso
from evennia_ai.rag_memory import entities
from evennia_ai.rag_memory.profile import Profile

ALICE_ONLY = private(["o1"])
DAY = 86400.0


def alice():
    return entities.new_profile("o1", "Alice", 0.0)


class TestObserve(unittest.TestCase):
    """Noting something."""

    def test_an_observation_holds_all_its_fields(self):
        """Text, fact, time, sources and audience are stored; the profile itself is as before."""
        old = alice()
        before = copy.deepcopy(old)
        noted = entities.observe(
            old,
            " Alice  lives in the mill. ",
            DAY,
            ["m1", "x1"],
            ALICE_ONLY,
            subject="ALICE",
            predicate="lives in",
            value="the mill",
            told_by="Bram",
        )
        stored = {
            "id": noted.observations[0].id,
            "text": "Alice lives in the mill.",
            "at": utc_iso(DAY),
            "predicate": "lives in",
            "value": "the mill",
            "sources": ["m1", "x1"],
            "audience": ALICE_ONLY,
            "told_by": "Bram",
        }
        self.assertEqual([item.to_dict() for item in noted.observations], [stored])
        self.assertEqual(old, before)


class TestNames(unittest.TestCase):
    """Finding who is meant."""

    def setUp(self):
        called = entities.with_alias(alice(), "Al", 0.0, "m1", PUBLIC)
        self.profiles = {
            "o1": entities.with_alias(called, "Grey", 0.0, "m1", ALICE_ONLY),
            "r1": entities.new_profile("r1", "The Gilded Lantern", 0.0, "place"),
            "o2": entities.new_profile("o2", "Sam", 0.0),
            "o3": entities.new_profile("o3", "sam", 0.0),
        }
        self.names = entities.names_index(self.profiles, PUBLIC)

    def find(self, wanted, audience=PUBLIC):
        names = entities.names_index(self.profiles, audience)
        return entities.find(self.profiles, wanted, names)

    def test_by_id_name_alias_and_without_article(self):
        """Case and a leading article do not matter."""
        for wanted in ("o1", "alice", "AL"):
            self.assertEqual(self.find(wanted), "o1")
        for wanted in ("gilded lantern", "the Gilded Lantern!"):
            self.assertEqual(self.find(wanted), "r1")

    def test_nobody_rather_than_the_wrong_one(self):
        """An unknown, empty or ambiguous name finds nobody."""
        for wanted in ("Zoe", "", "...", "Sam"):
            self.assertIsNone(self.find(wanted))

    def test_a_whispered_name(self):
        """It finds nobody for those who did not hear it."""
        self.assertIsNone(self.find("Grey"))
        self.assertEqual(self.find("Grey", ALICE_ONLY), "o1")

    def test_a_name_without_letters_is_no_name(self):
        """What is left of it when punctuation is taken out could match anything."""
        odd = {"o9": entities.new_profile("o9", "...", 0.0)}
        self.assertEqual(entities.names_index(odd, STAFF), {})


class TestJoined(unittest.TestCase):
    """A profile of a mere name and that of who was met."""

    def test_only_the_same_name(self):
        """Whoever is known under another name, or one that several have, is not joined."""
        other = entities.with_alias(Profile("n.al", "Al"), "Alice", 0.0, "m1", PUBLIC)
        profiles = {"o1": alice(), "n.al": other, "n.alice": Profile("n.alice", "the Alice")}
        names = entities.names_index(profiles, PUBLIC)
        self.assertEqual(entities.unmet_of(profiles, "o1", names), ["n.alice"])
        two = {**profiles, "o2": entities.new_profile("o2", "Alice", 0.0)}
        names = entities.names_index(two, PUBLIC)
        self.assertEqual(entities.unmet_of(two, "o1", names), [])
