"""How often the timer ticks."""

from twisted.internet import reactor

from evennia_ai.errors import ModelError
from evennia_ai.game.evennia_internals import pace
from evennia_ai.turns.runtime import REST_S
from tests.base import AssistantTest


class TestPace(AssistantTest):
    """The timer of an assistant that has something to do, and of one that has not."""

    def setUp(self):
        super().setUp()
        self.script.start(interval=2)
        self.task = self.script.ndb._task

    def quiet(self, seconds):
        """Nobody has spoken for so long."""
        self.script.runtime.last_heard_at = self.script.now() - seconds
        return self.tick()

    def next_s(self):
        """Seconds until the next tick."""
        return self.task.call.getTime() - reactor.seconds()

    def test_paces_in_memory(self):
        """From now on the interval lies between two ticks; what is stored stays."""
        for interval_s in (30, 3, 31):
            with self.subTest(interval=interval_s):
                pace(self.script, interval_s)
                for _ in range(2):
                    self.assertAlmostEqual(self.next_s(), interval_s, delta=0.5)
                    self.script.runtime.ends = True  # only the timer is looked at
                    self.task.call.cancel()
                    self.task.starttime -= interval_s  # as if the time had passed
                    self.task()
        self.assertEqual(self.script.interval, 2)

    def test_the_longer_it_is_quiet_the_rarer_it_ticks(self):
        """Up to a number of intervals; not if something was just said, or is to be tried again."""
        self.configure(sleep_after_idle_s=None)
        for quiet_s, least, most in ((4, 2, 2), (40, 9, 11), (4000, *REST_S)):
            with self.subTest(quiet=quiet_s):
                self.assertEqual(self.quiet(quiet_s), "idle")
                self.assertTrue(least <= self.task.interval <= most, self.task.interval)
        self.talk("Aria, are you there?", *[ModelError("it is away")] * 9)
        self.assertTrue(self.script.runtime.unanswered)
        self.quiet(1000)
        self.assertEqual(self.task.interval, 2)

    def test_what_is_heard_hurries_it(self):
        """Also what is not for it, so that no crash can lose more than before."""
        self.quiet(1000)
        self.task()
        self.say("what a night")
        self.assertEqual(self.task.interval, 2)
        self.assertLess(self.next_s(), 2.1)
        self.tick()
        self.assertTrue(self.script.runtime.queue_saved)

    def test_a_reload_hurries_it(self):
        """What was paused at a slow pace ticks soon after the start."""
        self.quiet(1000)
        self.task()
        self.script._pause_task(auto_pause=True)
        self.script._start_task(auto_unpause=True)
        self.task = self.script.ndb._task
        self.assertGreater(self.next_s(), 10)
        self.script.at_server_start()
        self.assertLess(self.next_s(), 2.1)
