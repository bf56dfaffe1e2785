"""What is known of each model: when it is left alone, what it was taught, what of it is kept."""

import tempfile
import unittest
from pathlib import Path

from twisted.internet.task import Clock

from evennia_ai.llm_interaction.failures import Failure
from evennia_ai.llm_interaction.models import Model, Models, RetryPolicy
from evennia_ai.llm_interaction.profiles import UNKNOWN, Profile, plainest, taught
from evennia_ai.llm_interaction.values import ModelReply, ModelRequest


class TestRest(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        policy = RetryPolicy(threshold=3, cooldown_s=10)
        self.model = Model(policy, self.clock.seconds)

    def fail_times(self, times):
        for _ in range(times):
            self.model.failed()

    def test_failures_in_a_row(self):
        """A model rests after some of them; a success between them starts the count anew."""
        self.fail_times(2)
        self.model.succeeded()
        self.fail_times(2)
        self.assertFalse(self.model.is_resting)
        self.model.failed()
        self.clock.advance(9.9)
        self.assertTrue(self.model.is_resting)

    def test_after_a_rest(self):
        """One failure is enough for the next rest; a success ends them."""
        self.fail_times(3)
        self.clock.advance(10)
        self.assertFalse(self.model.is_resting)
        self.model.failed()
        self.assertTrue(self.model.is_resting)
        self.model.succeeded()
        self.model.failed()
        self.assertFalse(self.model.is_resting)

    def test_waits(self):
        """They double, half of each is random; what is final or takes too long is given up."""
        policy = RetryPolicy(attempts=5, base_s=1, max_wait_s=6)
        for failure, attempt, least_s, most_s in (
            (Failure("server"), 1, 0.5, 1),
            (Failure("server"), 2, 1, 2),
            (Failure("rate_limit", 429, 5.0), 1, 5, 5),
        ):
            with self.subTest(failure=failure, attempt=attempt):
                wait_s = policy.wait_s(failure, attempt)
                self.assertTrue(least_s <= wait_s <= most_s, wait_s)
        for failure, attempt in (
            (Failure("server"), 5),
            (Failure("auth"), 1),
            (Failure("bad_response"), 2),
            (Failure("rate_limit", 429, 7.0), 1),
        ):
            self.assertIsNone(policy.wait_s(failure, attempt), failure)


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
        return taught(profile, request, outcome)

    def test_it_is_kept(self):
        """What was learned outlives a restart; a guess does not."""
        profile = Profile(flags=("short_ids", "stop"))
        self.book.keep("m", profile)
        self.assertEqual(self.models().of("m").profile, profile)
        self.assertEqual(profile.said(), ["wants short ids of calls", "refuses the field `stop`"])
        self.book.keep("n", plainest(UNKNOWN))
        self.assertIn("no_tools", self.book.of("n").profile.flags)
        self.assertEqual(self.models().of("n").profile, UNKNOWN)

    def test_files_that_cannot_be_used(self):
        """A damaged one counts as none; what cannot be written holds until the restart."""
        for text in ("{", "[1]", '{"m": 5, "n": {"flags": 3, "odd": 1}}'):
            self.path.write_text(text)
            book = self.models()
            self.assertEqual((book.of("m").profile, book.of("n").profile), (UNKNOWN, UNKNOWN))
        self.path = self.path / "no" / "folder.json"
        book = self.models()
        book.keep("m", Profile(flags=("no_tools",)))
        self.assertEqual(book.of("m").profile.flags, ("no_tools",))

    def test_an_unknown_refusal(self):
        """It teaches the plainest shape; where that is refused, too, nothing."""
        shape = self.taught(UNKNOWN, "bad_request", "no")
        self.assertEqual(shape, plainest(UNKNOWN))
        self.assertEqual(self.taught(shape, "bad_request", "no"), shape)

    def test_what_outcomes_teach(self):
        """Refusals teach what their words say; so does a reply that thoughts used up."""
        said = "Jinja Exception: System role not supported"
        empty = ModelReply(content="", finish_reason="length")
        sent = {"stop": ("\n",), "extra": {"top_k": 5}, "thinking": "off"}
        for before, outcome, text, after in (
            (UNKNOWN, "auth", said, UNKNOWN),
            (UNKNOWN, "server", "down", UNKNOWN),
            (UNKNOWN, ModelReply(content="Hello."), "", UNKNOWN),
            (UNKNOWN, "server", said, Profile(flags=("strict",))),
            (UNKNOWN, empty, "", Profile(flags=("thinks",))),
            (Profile(flags=("thinks",)), empty, "", Profile(flags=("thinks",))),
            *(
                (UNKNOWN, "bad_request", f"unknown field {name}", Profile(flags=(name,)))
                for name in ("stop", "top_k", "reasoning_effort")
            ),
        ):
            with self.subTest(before=before, outcome=outcome, text=text):
                self.assertEqual(self.taught(before, outcome, text, **sent), after)
