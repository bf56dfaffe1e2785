"""Which stored values can be used, and that nothing of the others is lost."""

import unittest

from evennia_ai.turns.assistant import SCRIPT, is_sound

# Of each Attribute: what can be used, and what cannot.
CASES = {
    (None, "enabled"): ([True, False, None], [1, "off"]),
    (None, "operating_mode"): (["awake", "sleep"], ["dead", [5]]),
    (None, "summaries_stale"): ([[], ["s1"]], [[5], {"x": 1}]),
    (None, "last_sleep"): (
        [{"at": 5.0, "steps": {"a": {"success": True}}}],
        [{"at": float("inf"), "steps": {}}, {"at": 5.0, "steps": {"a": 5}}, 7],
    ),
}


class TestSoundness(unittest.TestCase):
    def test_values(self):
        """A value is used as a whole, or counts as nothing stored."""
        for place, (good, odd) in CASES.items():
            reader = SCRIPT[place]
            for value in good:
                with self.subTest(place=place, value=repr(type(value))):
                    self.assertTrue(is_sound(reader, value))
            for value in odd:
                with self.subTest(place=place, value=repr(type(value))):
                    self.assertFalse(is_sound(reader, value))
