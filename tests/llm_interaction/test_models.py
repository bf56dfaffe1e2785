"""What is known of each model: when it is left alone, what it was taught, what of it is kept."""

import tempfile
import unittest
from pathlib import Path

from twisted.internet.task import Clock

from evennia_ai.llm_interaction.failures import Failure
from evennia_ai.llm_interaction.models import Model, Models, RetryPolicy
from evennia_ai.llm_interaction.profiles import UNKNOWN, Profile, plainest
from evennia_ai.llm_interaction.values import ModelReply, ModelRequest


class TestBreaker(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        policy = RetryPolicy(threshold=3, cooldown_s=10)
        self.breaker = Model(policy, self.clock.seconds)

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
        self.clock.advance(9.9)
        self.assertFalse(self.breaker.admits())

    def test_the_probe_decides(self):
        """One call may try; if it fails, it is open for another cool-down, else it closes."""
        self.fail_times(3)
        for end in (self.breaker.failed, self.breaker.abandoned, self.breaker.succeeded):
            self.clock.advance(10)
            self.assertEqual((self.breaker.admits(), self.breaker.admits()), (True, False))
            end()
            if end == self.breaker.failed:
                self.assertFalse(self.breaker.admits())
        self.assertTrue(self.breaker.admits() and self.breaker.admits())

    def test_waits(self):
        """They double, half of each is random; what is final or takes too long is given up."""
        policy = RetryPolicy(attempts=5, base_s=1, max_wait_s=6)
        for failure, attempt, jitter, wait_s in (
            (Failure("server"), 1, 1.0, 1),
            (Failure("server"), 2, 1.0, 2),
            (Failure("server"), 2, 0.0, 1),
            (Failure("server"), 4, 1.0, 6),
            (Failure("server"), 5, 0, None),
            (Failure("auth"), 1, 0, None),
            (Failure("bad_response"), 2, 0, None),
            (Failure("rate_limit", 429, 7.0), 1, 0, None),
            (Failure("rate_limit", 429, 5.0), 1, 0, 5.0),
        ):
            with self.subTest(failure=failure, attempt=attempt):
                self.assertEqual(policy.wait_s(failure, attempt, jitter), wait_s)


class TestBook(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.path = Path(folder, "profiles.json")
        self.book = self.models()

    def models(self):
        return Models(RetryPolicy(), Clock().seconds, self.path)

    def taught(self, profile, outcome, said="", **more):
        if isinstance(outcome, str):
            outcome = Failure(outcome, 400, said=said)
        request = ModelRequest(model="m", **more)
        return self.book.of("m").taught(profile, request, outcome)

    def test_it_is_kept(self):
        """What was learned outlives a restart; a guess does not."""
        profile = Profile(no_system=True, without=("stop",))
        self.book.keep("m", profile)
        self.assertEqual(self.models().of("m").profile, profile)
        self.assertEqual(profile.said(), ["takes no system role", "refuses the field `stop`"])
        self.book.keep("n", plainest(UNKNOWN))
        self.assertTrue(self.book.of("n").profile.no_tools)
        self.assertEqual(self.models().of("n").profile, UNKNOWN)

    def test_files_that_cannot_be_used(self):
        """A damaged one counts as none; what cannot be written holds until the restart."""
        for text in ("{", "[1]", '{"m": 5, "n": {"without": 3, "odd": 1}}'):
            self.path.write_text(text)
            book = self.models()
            self.assertEqual((book.of("m").profile, book.of("n").profile), (UNKNOWN, UNKNOWN))
        self.path = self.path / "no" / "folder.json"
        book = self.models()
        book.keep("m", Profile(no_tools=True))
        self.assertTrue(book.of("m").profile.no_tools)

    def test_an_unknown_refusal(self):
        """The plainest shape is tried once, and again only after the model answered in one."""
        for shape in (plainest(UNKNOWN), UNKNOWN):
            self.assertEqual(self.taught(UNKNOWN, "bad_request", "no"), shape)
        self.book.keep("m", Profile(no_tools=True))
        self.assertNotEqual(self.taught(UNKNOWN, "bad_request", "no"), UNKNOWN)

    def test_what_outcomes_teach(self):
        """Refusals teach what their words say; thoughts that use up a reply ask for room first."""
        said = "Jinja Exception: System role not supported"
        empty = ModelReply(content="", finish_reason="length")
        sent = {"stop": ("\n",), "extra": {"top_k": 5}, "thinking": "off"}
        for before, outcome, text, after in (
            (UNKNOWN, "auth", said, UNKNOWN),
            (UNKNOWN, "server", "down", UNKNOWN),
            (UNKNOWN, ModelReply(content="Hello."), "", UNKNOWN),
            (UNKNOWN, "server", said, Profile(no_system=True)),
            (UNKNOWN, empty, "", Profile(thinks=True)),
            (Profile(thinks=True), empty, "", Profile(thinks=True, thinks_less=True)),
            *(
                (UNKNOWN, "bad_request", f"unknown field {name}", Profile(without=(name,)))
                for name in ("stop", "top_k", "reasoning_effort")
            ),
        ):
            with self.subTest(before=before, outcome=outcome, text=text):
                self.assertEqual(self.taught(before, outcome, text, **sent), after)
