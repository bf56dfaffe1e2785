"""Which stored values can be used, and that nothing of the others is lost."""

import unittest

from evennia_ai.history.pages import ASIDE, name_of
from evennia_ai.testing import MemoryStore
from evennia_ai.turns.schema import BODY, SCRIPT, mend, odd_places

# Of each Attribute: what is used as it is, and what of another value can be used.
CASES = {
    (None, "enabled"): ([True, False, None], [(1, None), ("off", None)]),
    (None, "operating_mode"): (["awake", "sleep"], [("dead", None), ([5], None)]),
    (None, "event_queue"): (
        [[], [{"id": "m1", "content": "x"}]],
        [([5, {"id": "m1", "content": "x"}], [{"id": "m1", "content": "x"}]), ({"x": 1}, None)],
    ),
    (None, "followers"): ([[1, 2]], [([1, "a"], [1]), (5, None)]),
    (None, "last_sleep"): (
        [{"at": 5.0, "steps": {"a": {"success": True}}}],
        [
            ({"at": float("inf"), "steps": {}}, None),
            ({"at": 5.0, "steps": {"a": 5}}, None),
            ({"at": 5.0, "steps": {"a": {"count": 10**5000}}}, None),
            (7, None),
        ],
    ),
    ("ai_tombstones", "t1"): ([{"id": "t1"}], [(5, None)]),
    ("ai_ledger", "l1"): ([{"text": "x"}], [(7, None)]),
    (None, "journal"): ([{"entries": []}], [(5, None)]),
    ("ai_entities", "o1"): ([{"name": "x"}], [([1], None)]),
    ("ai_archive", "g1"): ([{"messages": []}], [(5, None), ([{}], None)]),
    ("ai_journal", "page_000001"): ([{"entries": []}], [(5, None)]),
}


class TestSoundness(unittest.TestCase):
    """Each value in a store of its own."""

    def places(self, store):
        """The odd places among those of script and body."""
        found = [*odd_places(store, SCRIPT), *odd_places(store, BODY)]
        return {place for place in found if place}

    def test_values(self):
        """What cannot be used is named, alone; mended, it is aside, and the rest is there."""
        for (category, key), (good, odd) in CASES.items():
            readers = SCRIPT if (category, key) in SCRIPT else BODY
            for value, kept in [*((value, value) for value in good), *odd]:
                is_odd = (value, kept) in odd
                with self.subTest(key=key, value=repr(type(value)), odd=is_odd):
                    store = MemoryStore()
                    store.set(key, value, category)
                    self.assertEqual(self.places(store), {(category, key)} if is_odd else set())
                    if is_odd:
                        mend(store, (category, key), readers)
                        self.assertEqual(store.get(key, category), kept)
                        self.assertEqual(self.places(store), set())
                        self.assertEqual(store.get(name_of(key, category), ASIDE), [value])
