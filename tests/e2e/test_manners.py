"""An evening with several players and assistants, a model that fails, and a flood of lines."""

import unittest

import pytest

from benchmarks import evening, hard_evening

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]


class TestEvening(unittest.TestCase):
    """The benchmarks' evenings, shorter."""

    def test_the_right_one_answers(self):
        """Lines are answered by those they are for, and stored once by everybody who heard them."""
        seen = evening.measure(lines=30, seed=7)
        self.assertGreaterEqual(seen["right_answerers"], 0.9, seen)
        self.assertLessEqual(seen["calls_per_public_line"], 1.5, seen)
        self.assertLessEqual(seen["longest_chain"], 2, seen)
        self.assertEqual(seen["answers_to_people_who_left"], 0, seen)
        self.assertEqual((seen["stored"]["lost"], seen["stored"]["doubled"]), (0, 0), seen)
        self.assertEqual(seen["tracebacks"], 0)

    def test_nobody_waits_in_the_dark(self):
        """Memory stays small; a failing model is covered for; a flood drowns nobody."""
        seen = hard_evening.measure(questions=3, down_s=12.0, flooders=4, flood_s=8.0)
        self.assertEqual(seen["memory"]["answered_right"], 3, seen)
        self.assertLessEqual(seen["memory"]["grown_tokens"]["max"], 400, seen)
        self.assertEqual(seen["down"]["alerts_to_staff"], 1, seen)
        self.assertLess(seen["down"]["seconds_to_words"]["max"], 30, seen)
        self.assertTrue(seen["down"]["model_speaks_again"], seen)
        self.assertEqual(seen["flood"]["heard_once"], hard_evening.LINES, seen)
        self.assertEqual(seen["flood"]["answered"], hard_evening.LINES, seen)
        self.assertTrue(seen["flood"]["in_turn"], seen)
        self.assertEqual(seen["tracebacks"], 0)
