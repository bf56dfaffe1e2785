"""Profiles: stored as plain dicts, and what of them holds for whom."""

import unittest
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.audience import PUBLIC, STAFF, private, visible
from evennia_ai.history.stored import Unreadable
from evennia_ai.rag_memory.entities import (
    Belief,
    Observation,
    Profile,
    current,
    new_profile,
    with_alias,
)

ALICE_ONLY = private(["o1"])


def seen(number, text="x", at=0, audience=PUBLIC, fact=("", ""), **fields):
    predicate, value = fact
    when = f"2026-01-{at + 1:02d}T00:00:00+00:00"
    given = {"predicate": predicate, "value": value, "audience": audience, **fields}
    return Observation(f"o{number}", text, when, sources=(f"m{number}",), **given)


def profile(*observations, **fields):
    """Alice with observations."""
    return replace(new_profile("o1", "Alice", 0.0), observations=observations, **fields)


class TestStored(unittest.TestCase):
    def test_others(self):
        """What is no profile is not read as one; what names no audience is for staff."""
        for odd in ("x", {"id": "o1"}, {**profile().to_dict(), "name": 7}):
            with self.assertRaises(Unreadable):
                Profile.from_dict(odd)
        odd = Observation.from_dict({"id": "o1", "text": "unknown origin", "at": ""})
        self.assertEqual(profile(odd).beliefs(PUBLIC), [])
        self.assertEqual(len(profile(odd).beliefs(STAFF)), 1)


class TestCurrent(unittest.TestCase):
    def test_the_newest_value(self):
        """The newest of several values counts; the others are former ones, each once."""
        values = ("cider", "ale", "cider", "Rum")
        drinks = [seen(n, f"drinks {v}", n, fact=("drinks", v)) for n, v in enumerate(values)]
        (belief,) = current(reversed(drinks), PUBLIC)
        self.assertEqual((belief.observation.value, belief.times), ("Rum", 1))
        self.assertEqual([item.id for item in belief.former], ["o2", "o1"])
        self.assertEqual(belief.line, "drinks Rum (before: cider)")

    def test_the_same_again(self):
        """Said twice it is there once, in its newest words, with a count."""
        said = [seen(1, "Keeps bees.", 1), seen(2, "keeps  bees", 2), seen(3, "Sings.", 0)]
        lines = [belief.line for belief in current(said, PUBLIC)]
        self.assertEqual(lines, ["keeps bees (heard 2 times)", "Sings"])
        texts = ("She lives in the mill.", "Home: mill.")
        home = [seen(n, text, n, fact=("lives in", "mill")) for n, text in enumerate(texts)]
        self.assertEqual([belief.times for belief in current(home, PUBLIC)], [2])

    @given(
        st.lists(
            st.tuples(
                st.integers(0, 5),
                st.sampled_from([PUBLIC, ALICE_ONLY, private(["o1", "o2"]), STAFF]),
                st.sampled_from(["", "lives in", "likes"]),
                st.sampled_from(["", "mill", "town", "Mill."]),
            ),
            max_size=12,
        ),
        st.sampled_from([PUBLIC, ALICE_ONLY, private(["o2"]), STAFF]),
    )
    def test_nothing_else_is_told(self, rows, viewer):
        """Each known observation is counted or former, and no other, a secret, takes any away."""
        items = [
            seen(n, f"{predicate} {value}", at, audience, (predicate, value))
            for n, (at, audience, predicate, value) in enumerate(rows)
        ]
        known = [item for item in items if visible(item.audience, viewer)]
        beliefs = current(items, viewer)
        self.assertEqual(beliefs, current(known, viewer))
        held = [each for b in beliefs for each in (b.observation, *b.former)]
        self.assertEqual({i.statement for i in held}, {i.statement for i in known})
        self.assertEqual(len({i.statement for i in held}), len(held))
        self.assertLessEqual(sum(b.times for b in beliefs), len(known))
        ids = [(b.observation.at, b.observation.id) for b in beliefs]
        self.assertEqual(ids, sorted(ids, reverse=True))


class TestNames(unittest.TestCase):
    def test_other_names(self):
        """One learned in a whisper is unknown to others; several hold at once."""
        alice = with_alias(profile(), " Al ", 0.0, "m1", PUBLIC)
        alice = with_alias(alice, "Lady  Grey", 1.0, "m2", ALICE_ONLY)
        self.assertEqual(alice.names(PUBLIC), ("Alice", "Al"))
        self.assertEqual(alice.names(ALICE_ONLY), ("Alice", "Al", "Lady Grey"))
        self.assertEqual(alice.beliefs(ALICE_ONLY), [])
        for name in ("alice", "AL", " "):
            self.assertIs(with_alias(alice, name, 2.0, "m3", PUBLIC), alice)

    def test_relationship(self):
        """It is the newest value that the viewer may know."""
        told = profile(
            seen(1, "a guest", 1, fact=("Relationship", "guest")),
            seen(2, "a friend", 2, fact=("relationship", "a  friend")),
            seen(3, "a debtor", 3, ALICE_ONLY, fact=("relationship", "debtor")),
            seen(4, "a rival", 4, fact=("relationship", "rival"), subject="her brother"),
        )
        self.assertEqual(told.relationship(PUBLIC), "a friend")
        self.assertEqual(told.relationship(ALICE_ONLY), "debtor")
        self.assertEqual(profile().relationship(STAFF), "")


class TestLines(unittest.TestCase):
    def test_newest_first_and_limited(self):
        """The relationship comes first, then the newest observations up to the limit."""
        told = profile(*(seen(n, f"fact {n}.", n) for n in range(5)))
        self.assertEqual(told.facts(PUBLIC, 2), ["fact 4", "fact 3"])
        friend = seen(9, "a friend", 9, fact=("relationship", "a friend"))
        told = replace(told, observations=(*told.observations, friend))
        self.assertEqual(told.facts(PUBLIC, 2), ["a friend", "a friend", "fact 4"])
        self.assertEqual(told.facts(PUBLIC, -1), ["a friend"])

    def test_who_said_it(self):
        """The one who said it of somebody else is named, once."""
        for text, line in (
            ("Stole it.", "Bram said: Stole it"),
            ("Bram saw Cora.", "Bram saw Cora"),
        ):
            self.assertEqual(Belief(seen(1, text, told_by="Bram")).line, line)

    def test_without_a_source(self):
        """An observation goes with each of its sources; what it had replaced holds again."""
        old = seen(1, "lives in Ford", 1, fact=("lives in", "Ford"))
        new = replace(seen(2, "lives in Ash", 2, fact=("lives in", "Ash")), sources=("m2", "x9"))
        both = profile(old, new)
        self.assertEqual(both.only(lambda item: "x9" not in item.sources), profile(old))
        self.assertIs(both.only(lambda item: "x1" not in item.sources), both)
