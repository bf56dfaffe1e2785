"""Notes of the ledger: their types and states, stored as plain dicts, repaired after edits."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.audience import PUBLIC, STAFF
from evennia_ai.history.messages import Speaker
from evennia_ai.rag_memory.ledger import (
    STATES,
    TYPES,
    LedgerError,
    Note,
    kind_of,
    moved,
    new_note,
    notes_in,
)

ALICE = Speaker("Alice", "o1")
BOB = Speaker("Bob", "o2")
AT = "2026-01-02T03:04:05+00:00"
short = st.text(max_size=8)
anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    short,
    st.lists(short, max_size=3),
    st.dictionaries(st.sampled_from(("key", "id", "x")), short),
)
word = st.text(min_size=1, max_size=8)
people = st.fixed_dictionaries({"key": st.text(max_size=8), "id": st.text(max_size=8)})
stored = st.fixed_dictionaries(
    {
        "version": st.just(1),
        "id": word,
        "text": word,
        "type": st.sampled_from(TYPES),
        "weight": st.integers(1, 10),
        "source": st.text(max_size=8),
        "about": st.lists(word, max_size=3),
        "audience": st.sampled_from([PUBLIC, STAFF, "private:o1.a"]),
        "state": st.sampled_from(STATES),
        "at": st.just(AT),
        "by": people,
    },
    optional={
        "staff": st.booleans(),
        "decided_at": st.just(AT),
        "decided_by": people,
        "superseded_by": word,
        "replaces": st.lists(word, min_size=1, max_size=3),
        "note of a game": anything,
    },
)
edited = st.dictionaries(
    st.sampled_from([*Note.__dataclass_fields__, "type", "version", "x"]), anything, max_size=4
)


def note(text, number=1, state="approved", by=ALICE, **fields):
    """A note with an id that says its number."""
    return new_note(text, f"l{number}", float(number), by, state=state, **fields)


class TestNewNote(unittest.TestCase):
    """A note as it is added."""

    def test_defaults(self):
        """It is one line of the type its words suggest, public, and of middle weight."""
        made = note("I like\n jazz", about=["o1"])
        self.assertEqual(made.text, "I like jazz")
        self.assertEqual((made.kind, made.weight), ("preference", 5))
        self.assertEqual((made.audience, made.source), (PUBLIC, "command"))
        self.assertEqual((made.by, made.about), (ALICE, ("o1",)))

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

    def test_own_ways_are_no_rules(self):
        """What one never or always does oneself binds nobody else."""
        for text in ("I never eat meat", "I don't like blues", "I have always loved jazz"):
            self.assertNotEqual(kind_of(text), "rule", text)
        self.assertEqual(kind_of("I say: never sell ale"), "rule")

    def test_refused(self):
        """No words, too many of them and an unknown type are refused with a reason."""
        for says, fields in (
            ("needs words", {"text": "  "}),
            ("at most 300", {"text": "x" * 301}),
            ("kinds: rule", {"text": "x", "kind": "poem"}),
        ):
            with self.assertRaisesRegex(LedgerError, says):
                note(**fields)

    def test_weight_is_kept_in_bounds(self):
        """Weights lie between 1 and 10."""
        self.assertEqual([note("x", weight=w).weight for w in (-3, 4, 99)], [1, 4, 10])


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

    @given(stored)
    def test_round_trip(self, raw):
        """A complete stored note comes back as it was, unknown keys included."""
        self.assertEqual(Note.from_dict(raw).to_dict(), raw)

    @given(edited)
    def test_by_hand(self, raw):
        """Whatever is stored gives a complete note, the same at every reading."""
        made = Note.from_dict(raw, "l1")
        self.assertEqual(Note.from_dict(made.to_dict()), made)
        self.assertTrue(made.id and made.kind in TYPES and made.state in STATES)
        self.assertIsInstance(made.weight, int)

    def test_repairs(self):
        """A note with gaps is proposed and for staff only."""
        (made,) = notes_in([{"text": "Never sing", "by": "Char", "about": "o1"}])
        self.assertEqual((made.id, made.kind, made.weight), ("l1", "rule", 5))
        self.assertEqual((made.state, made.audience), ("proposed", "staff"))
        self.assertEqual((made.by, made.about), (Speaker("Char"), ()))

    def test_what_is_no_note(self):
        """Anything but a list holds none; an item without words is left out."""
        self.assertEqual(notes_in(5), ())
        self.assertEqual(notes_in([5, {"text": ""}, {"id": "l9"}]), ())
