"""Sealed texts: what they show, and that they come back as they were."""

import json
import pickle
from collections import OrderedDict, deque

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase as TestCase

from evennia_ai.history.stored import STRUCTURE, Sealed, seal, unseal
from tests.strategies import MANY

ANNA, BERTA = "o1.a", "o2.b"
keys = st.one_of(st.sampled_from(sorted(STRUCTURE)), st.text())
atoms = st.one_of(st.text(), st.integers(), st.floats(allow_nan=False), st.booleans(), st.none())
values = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner),
        st.tuples(inner),
        st.dictionaries(keys, inner),
        st.frozensets(atoms),
        st.sets(atoms),
    ),
)


class TestSealing(TestCase):
    """A value is sealed whole and comes back whole, for its owner."""

    @MANY
    @given(values)
    def test_round_trip(self, value):
        """What is sealed comes back, also from a pickle."""
        sealed = seal(value, ANNA)
        self.assertEqual(unseal(sealed, ANNA), value)
        self.assertEqual(unseal(pickle.loads(pickle.dumps(sealed, 2)), ANNA), value)

    @MANY
    @given(st.dictionaries(st.sampled_from(["content", "name", "tags"]), st.text(min_size=1)))
    def test_another_owner(self, value):
        """For anybody else every text stays sealed, also if it is stored again."""
        foreign = unseal(seal(value, ANNA), BERTA)
        self.assertTrue(all(isinstance(text, Sealed) for text in foreign.values()))
        again = unseal(seal(foreign, BERTA), BERTA)
        self.assertEqual(str(again), str(foreign))

    def test_odd_containers(self):
        """Those that Evennia stores besides are sealed as lists and dicts."""
        sealed = seal([deque(["Psst"]), OrderedDict(a="Psst"), b"bytes"], ANNA)
        self.assertNotIn("Psst", str(sealed))
        self.assertEqual(unseal(sealed, ANNA), [["Psst"], {"a": "Psst"}, b"bytes"])


class TestText(TestCase):
    """A sealed text is used as a text by code, and shown by nothing."""

    def test_used(self):
        """It equals the text and has its methods."""
        text = Sealed("Hello, world", ANNA)
        self.assertEqual(text, "Hello, world")
        self.assertEqual("Hello, world", text)
        self.assertEqual({text: 1}["Hello, world"], 1)
        self.assertNotEqual(text, "Hello")
        self.assertIn("world", text)
        self.assertEqual(len(text), 12)
        self.assertTrue(text.startswith("Hello"))
        self.assertEqual(text.lower(), "hello, world")
        self.assertFalse(Sealed(""))

    def test_shown(self):
        """However it is formatted, only the length is shown, and not a character by itself."""
        text = Sealed("Hello, world", ANNA)
        for shown in (str(text), repr(text), f"{text}", f"{text!r:>3}", "%s" % text, str([text])):  # noqa: UP031
            self.assertIn("<12 characters>", shown)
            self.assertNotIn("Hello", shown)
        for read in (iter, lambda it: it[0], lambda it: it[:2], json.dumps, lambda it: "x" + it):
            with self.assertRaises(TypeError):
                read(text)
        with self.assertRaises(AttributeError):
            text.__html__()
