"""Which stored values can be used, and that nothing of the others is lost."""

import unittest

from evennia_ai.turns.schema import SCRIPT, is_sound

# Of each Attribute: what is used as it is, and what of another value can be used.
CASES = {
    (None, "enabled"): ([True, False, None], [(1, None), ("off", None)]),
    (None, "operating_mode"): (["awake", "sleep"], [("dead", None), ([5], None)]),
    (None, "event_queue"): (
        [[], [{"id": "m1", "content": "x"}]],
        [([5, {"id": "m1", "content": "x"}], [{"id": "m1", "content": "x"}]), ({"x": 1}, None)],
    ),
    (None, "last_sleep"): (
        [{"at": 5.0, "steps": {"a": {"success": True}}}],
        [
            ({"at": float("inf"), "steps": {}}, None),
            ({"at": 5.0, "steps": {"a": 5}}, None),
            ({"at": 5.0, "steps": {"a": {"count": 10**5000}}}, None),
            (7, None),
        ],
    ),
}


class TestSoundness(unittest.TestCase):
    def test_values(self):
        """What is used as it is is sound; of any other value what can be used is kept."""
        for place, (good, odd) in CASES.items():
            reader = SCRIPT[place]
            for value in good:
                with self.subTest(place=place, value=repr(type(value))):
                    self.assertTrue(is_sound(reader, value))
            for value, kept in odd:
                with self.subTest(place=place, value=repr(type(value))):
                    self.assertFalse(is_sound(reader, value))
                    self.assertEqual(reader(value) or None, kept)
