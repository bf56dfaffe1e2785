"""Notes of the ledger: their types and states, stored as plain dicts."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.audience import PUBLIC, STAFF
from evennia_ai.history.messages import Speaker
from evennia_ai.history.stored import Unreadable
from evennia_ai.rag_memory.ledger import (
    STATES,
    TYPES,
    LedgerError,
    Note,
    kind_of,
    moved,
    new_note,
)

ALICE = Speaker("Alice", "o1")
BOB = Speaker("Bob", "o2")
AT = "2026-01-02T03:04:05+00:00"
word = st.text(min_size=1, max_size=8)
words = st.lists(word, max_size=3).map(tuple)
people = st.builds(Speaker, word, word)
notes = st.builds(
    Note,
    word,
    word,
    st.sampled_from(TYPES),
    st.integers(1, 10),
    word,
    words,
    st.sampled_from([PUBLIC, STAFF, "private:o1.a"]),
    st.sampled_from(STATES),
    st.just(AT),
    people,
    st.booleans(),
    st.just(AT),
    st.none() | people,
    word,
    words,
)


def note(text, number=1, state="approved", by=ALICE, **fields):
    """A note with an id that says its number."""
    return new_note(text, f"l{number}", float(number), by, state=state, **fields)


class TestNewNote(unittest.TestCase):
    """A note as it is added."""

    def test_types(self):
        """Rules, tasks and preferences are recognised by their words; the rest are facts."""
        for text, kind in (
            ("Never sell on credit", "rule"),
            ("Alice owes me two coins", "task"),
            ("My favourite drink is rum", "preference"),
            ("I was born in Ostmark", "fact"),
        ):
            self.assertEqual(kind_of(text), kind)
        self.assertEqual(note("I like jazz", kind=" Rule ").kind, "rule")

    def test_refused(self):
        """No words, too many of them and an unknown type are refused with a reason."""
        for says, fields in (
            ("needs words", {"text": "  "}),
            ("at most 300", {"text": "x" * 301}),
            ("kinds: rule", {"text": "x", "kind": "poem"}),
        ):
            with self.assertRaisesRegex(LedgerError, says):
                note(**fields)


class TestStates(unittest.TestCase):
    """What a note may become."""

    def test_allowed(self):
        """A proposal is approved or withdrawn; an approved note is superseded or withdrawn."""
        proposed = note("x", state="proposed")
        approved = moved(proposed, "approved", 9.0, BOB)
        self.assertEqual((approved.state, approved.decided_by), ("approved", BOB))
        self.assertEqual(moved(proposed, "withdrawn", 9.0, BOB).state, "withdrawn")
        for state in ("superseded", "withdrawn"):
            self.assertEqual(moved(approved, state, 9.0, BOB).state, state)
        self.assertEqual(proposed.state, "proposed")

    def test_final(self):
        """Nothing comes back from withdrawn or superseded, and nothing is approved twice."""
        for state in ("withdrawn", "superseded"):
            done = moved(note("x"), state, 9.0, BOB)
            for wanted in STATES:
                with self.assertRaisesRegex(LedgerError, f"is {state}"):
                    moved(done, wanted, 9.0, BOB)
        with self.assertRaises(LedgerError):
            moved(note("x"), "approved", 9.0, BOB)


class TestStored(unittest.TestCase):
    """From stored values and back."""

    @given(notes)
    def test_round_trip(self, before):
        """A note comes back as it was."""
        self.assertEqual(Note.from_dict(before.to_dict()), before)

    def test_others(self):
        """What has no words, or an unknown kind or state, is no note."""
        whole = note("Be kind").to_dict()
        for odd in (5, {"text": "x"}, {**whole, "text": ""}, {**whole, "kind": "poem"}):
            with self.assertRaises(Unreadable):
                Note.from_dict(odd)
        with self.assertRaises(Unreadable):
            Note.from_dict({**whole, "state": "odd"})
