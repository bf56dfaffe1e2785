"""Lore: what a line finds, in any language, under both locks."""

import unittest
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.cards.books import ALL, NOT_ALL, NOT_ANY, Book, Fact
from evennia_ai.rag_memory.finder import (
    FULL,
    OFF,
    SECRET,
    TWICE,
    UNKNOWN,
    Finder,
    next_id,
    parts_of,
    used,
)


def fact(id, keys, text="A fact.", **values):
    """A fact that everybody knows."""
    return Fact(tuple(keys.split("|")) if keys else (), text, id=id, know="all", **values)


def bars(knows, tells):
    """Bars what does not have this `know`, and no `tell` besides these."""

    def why_not(know, tell):
        return UNKNOWN if know != knows else SECRET if tell and tell not in tells else ""

    return why_not


def find(facts, text, knows="all", tells=(), room=300, finder=None, near=()):
    """Ids of the facts that a line finds, with why each is not used."""
    verdicts = (finder or Finder(facts)).find(text, bars(knows, tells), room, len, dict(near))
    return {verdict.fact.id: verdict.why_not for verdict in verdicts}


class TestKeys(unittest.TestCase):
    def test_any_form_in_any_language(self):
        """Inflected words, phrases, scripts without spaces, accents, marks."""
        keys = ("fish|harbour market", "рыба", "市场", "Fisch", "C++|café")
        facts = [fact(f"w{n}", key) for n, key in enumerate(keys, 1)]
        for line, expected in (
            ("where can I buy fishes?", "w1"),
            ("The Harbour markets?", "w1"),
            ("где купить рыбу?", "w2"),
            ("市场在哪里？", "w3"),
            ("Wo gibt es hier Fische?", "w4"),
            ("the cafe!", "w5"),
        ):
            self.assertEqual(list(find(facts, line)), [expected], line)
        for line in ("harbour of the market", "a fisher king", "", "???"):
            self.assertEqual(find([facts[0]], line), {}, line)

    def test_secondary_keys(self):
        """Any, all, not all, none of them; also in scripts without spaces."""
        for logic, expected in (("any", "b bc"), (ALL, "bc"), (NOT_ALL, "b -"), (NOT_ANY, "-")):
            facts = [fact("w1", "a", secondary=("b", "c"), logic=logic)]
            hits = [rest for rest in ("b", "bc", "-") if find(facts, f"a {' '.join(rest)}")]
            self.assertEqual(hits, expected.split(), logic)
        facts = [fact("w1", "fish", secondary=("big", "鱼"), logic="any")]
        self.assertEqual([bool(find(facts, f"{t} fish")) for t in ("Big", "a 鱼", "no")], [1, 1, 0])


class TestOrder(unittest.TestCase):
    def test_room(self):
        """Most keys first, then weight, then what needs no key, until the room is full."""
        facts = [
            fact("w1", "a", "1" * 100, weight=5),
            fact("w2", "a|b", "2" * 100),
            fact("w3", "", "3" * 100, always=True),
            fact("w4", "a", "4" * 100, weight=9),
            fact("w5", "a", "5"),
        ]
        expected = {"w2": "", "w4": "", "w1": "", "w5": FULL, "w3": FULL}
        self.assertEqual([*find(facts, "a b", room=300).items()], [*expected.items()])
        self.assertEqual(find(facts, "a b", room=301)["w5"], "")
        self.assertEqual(find(facts, "a b", room=401)["w3"], "")
        self.assertEqual(list(find(facts, "c", near={"w1": 0.9})), ["w3", "w1"])
        twins = [fact("w1", "a"), fact("w2", "a"), fact("w3", "a", "Other.")]
        self.assertEqual(find(twins, "a"), {"w1": "", "w2": TWICE, "w3": ""})

    def test_meaning(self):
        """Behind what keys find, the nearest first; secondary keys hold there, too."""
        facts = [fact("w1", "a"), fact("w2", "b", weight=9), fact("w3", "c")]
        facts += [fact("w4", "d", secondary=("x",)), fact("w5", "e", tell="tag(x)")]
        near = {"w3": 0.5, "w2": 0.1, "w4": 0.4, "w5": 0.9}
        self.assertEqual(list(find(facts, "a", near=near)), ["w1", "w5", "w3", "w2"])
        self.assertEqual(find(facts, "a", near=near)["w5"], SECRET)

    def test_why_not(self):
        """Off, not known, not for these ears."""
        facts = [
            fact("w1", "a", on=False),
            Fact(("a",), "t", id="w2", know="npc:x"),
            fact("w3", "a", tell="tag(x)"),
        ]
        self.assertEqual(find(facts, "a"), {"w1": OFF, "w2": UNKNOWN, "w3": SECRET})
        self.assertEqual(find(facts, "a", tells=("tag(x)",))["w3"], "")

    @settings(max_examples=200, deadline=None)
    @given(
        st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["", "x", "y"]), st.booleans())),
        st.text(alphabet="ab ", max_size=9),
        st.sets(st.sampled_from("xy")),
        st.integers(0, 40),
        st.dictionaries(st.sampled_from(["w0", "w1", "w2"]), st.floats(0, 1)),
    )
    def test_no_secret_gets_out(self, rows, line, tells, room, near):
        """Whatever is said, a fact is used only where its `tell` passes and there is room."""
        facts = [
            fact(f"w{n}", key, "12345", tell=tell, always=always)
            for n, (key, tell, always) in enumerate(rows)
        ]
        verdicts = Finder(facts).find(line, bars("all", tells), room, len, near)
        given_facts = used(verdicts)
        self.assertTrue(all(not each.tell or each.tell in tells for each in given_facts))
        self.assertLessEqual(5 * len(given_facts), room)


class TestBooks(unittest.TestCase):
    def test_stored(self):
        """A book is stored and read; its facts have its locks where they have none of their own."""
        own = Fact(("a",), "t", original={"depth": 4}, id="w1", source="o1.x", know="all")
        book = Book("B", (own, Fact(("b",), "u", id="w7")), "npc:x", "tag(y)")
        self.assertEqual(Book.from_dict(book.to_dict()), book)
        locks = [(fact.know, fact.tell) for fact in book.locked()]
        self.assertEqual(locks, [("all", "tag(y)"), ("npc:x", "tag(y)")])
        parts = parts_of([*book.locked(), replace(own, on=False)])
        self.assertEqual([list(turns) for turns in parts.values()], [["w1"], ["w7"]])
        self.assertEqual((next_id([book]), next_id([])), (8, 1))
