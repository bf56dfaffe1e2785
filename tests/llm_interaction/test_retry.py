"""When a failed call is made again."""

import unittest
from email.utils import formatdate

from evennia_ai.llm_interaction.failures import Failure, retry_after_s
from evennia_ai.llm_interaction.retry import RetryPolicy


class TestRetryPolicy(unittest.TestCase):
    def test_backoff_doubles_with_jitter(self):
        """Waits double, half of each is random, and none is longer than the cap."""
        policy = RetryPolicy(attempts=9, base_s=1, max_wait_s=6)
        broken = Failure("server")
        self.assertEqual([policy.wait_s(broken, n, 1.0) for n in (1, 2, 3, 4)], [1, 2, 4, 6])
        self.assertEqual(policy.wait_s(broken, 2, 0.0), 1)

    def test_what_is_not_tried_again(self):
        """Final failures, the last attempt, and waits beyond the cap are given up."""
        policy = RetryPolicy(attempts=3, max_wait_s=6)
        self.assertIsNone(policy.wait_s(Failure("auth"), 1, 0))
        self.assertIsNone(policy.wait_s(Failure("server"), 3, 0))
        self.assertIsNone(policy.wait_s(Failure("bad_response"), 2, 0))
        self.assertIsNone(policy.wait_s(Failure("rate_limit", 429, 7.0), 1, 0))
        self.assertEqual(policy.wait_s(Failure("rate_limit", 429, 5.0), 1, 0), 5.0)


class TestRetryAfter(unittest.TestCase):
    def test_forms_of_the_header(self):
        """Seconds, milliseconds and dates are read; rubbish is not."""
        self.assertEqual(retry_after_s({"retry-after": "1.5"}), 1.5)
        self.assertEqual(retry_after_s({"retry-after": "-3"}), 0.0)
        self.assertEqual(retry_after_s({"retry-after-ms": "250", "retry-after": "9"}), 0.25)
        date = formatdate(1000, usegmt=True)
        self.assertEqual(retry_after_s({"retry-after": date}, now=990), 10)
        self.assertEqual(
            retry_after_s({"retry-after": date, "date": formatdate(995, usegmt=True)}, now=0), 5
        )
        for rubbish in ({}, {"retry-after": "soon"}, {"retry-after": "nan"}):
            self.assertIsNone(retry_after_s(rubbish))
