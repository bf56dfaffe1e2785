"""The circuit breaker of one model."""

import unittest

from twisted.internet.task import Clock

from evennia_ai.llm_interaction.retry import Breaker, BreakerPolicy


class TestBreaker(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.breaker = Breaker(BreakerPolicy(threshold=3, cooldown_s=10), self.clock.seconds)

    def fail_times(self, times):
        for _ in range(times):
            self.breaker.failed()

    def test_opens_after_failures_in_a_row(self):
        """Failures in a row open it; a success between them starts the count anew."""
        self.fail_times(2)
        self.breaker.succeeded()
        self.fail_times(2)
        self.assertTrue(self.breaker.admits())
        self.breaker.failed()
        self.assertFalse(self.breaker.admits())

    def test_half_open_lets_one_probe_through(self):
        """After the cool-down one call may try, and a second one may not."""
        self.fail_times(3)
        self.clock.advance(9.9)
        self.assertFalse(self.breaker.admits())
        self.clock.advance(0.1)
        self.assertTrue(self.breaker.admits())
        self.assertFalse(self.breaker.admits())

    def test_the_probe_decides(self):
        """A probe that fails opens it for another cool-down, one that succeeds closes it."""
        self.fail_times(3)
        self.clock.advance(10)
        self.breaker.admits()
        self.breaker.failed()
        self.assertFalse(self.breaker.admits())
        self.clock.advance(10)
        self.breaker.admits()
        self.breaker.succeeded()
        self.assertTrue(self.breaker.admits() and self.breaker.admits())

    def test_a_cancelled_probe_makes_room(self):
        """A probe that was cancelled lets the next caller probe at once."""
        self.fail_times(3)
        self.clock.advance(10)
        self.breaker.admits()
        self.breaker.abandoned()
        self.assertTrue(self.breaker.admits())

    def test_rest(self):
        """A server that asks for rest gets it, though it never failed before."""
        self.breaker.rest(5)
        self.assertFalse(self.breaker.admits())
        self.clock.advance(5)
        self.assertTrue(self.breaker.admits())
