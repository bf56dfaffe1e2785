"""What is known of each model: when it is left alone, what it was taught, what of it is kept."""

import tempfile
import unittest
from pathlib import Path

from twisted.internet.task import Clock

from evennia_ai.llm_interaction.failures import Failure
from evennia_ai.llm_interaction.models import Model, Models
from evennia_ai.llm_interaction.profiles import UNKNOWN, ModelProfile, plainest, taught
from evennia_ai.llm_interaction.values import ModelReply, ModelRequest


class TestRest(unittest.TestCase):
    def test_a_rest(self):
        """It ends by itself; a longer one holds, and none is longer than five minutes."""
        clock = Clock()
        model = Model(clock.seconds)
        for rest_s, waited_s, is_resting in ((10, 0, True), (5, 9, True), (0, 2, False)):
            model.rest(rest_s)
            clock.advance(waited_s)
            self.assertIs(model.rest_s > 0, is_resting)
        model.rest(9_999)
        clock.advance(301)
        self.assertEqual(model.rest_s, 0)


class TestBook(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.path = Path(folder, "profiles.json")
        self.book = self.models()

    def models(self):
        return Models(Clock().seconds, self.path)

    def taught(self, profile, outcome, said="", **more):
        if isinstance(outcome, str):
            outcome = Failure(outcome, 400, said=said)
        request = ModelRequest(model="m", **more)
        return taught(profile, request, outcome)

    def test_it_is_kept(self):
        """What was learned outlives a restart; a guess does not."""
        profile = ModelProfile(flags=("short_ids", "stop"))
        self.book.keep("m", profile)
        self.assertEqual(self.models()["m"].profile, profile)
        self.assertEqual(profile.said(), ["wants short ids of calls", "refuses the field `stop`"])
        self.book.keep("n", plainest(UNKNOWN))
        self.assertIn("no_tools", self.book["n"].profile.flags)
        self.assertEqual(self.models()["n"].profile, UNKNOWN)

    def test_files_that_cannot_be_used(self):
        """A damaged one counts as none; what cannot be written holds until the restart."""
        for text in ("{", "[1]", '{"m": 5, "n": {"flags": 3, "odd": 1}}'):
            self.path.write_text(text)
            book = self.models()
            self.assertEqual((book["m"].profile, book["n"].profile), (UNKNOWN, UNKNOWN))
        self.path = self.path / "no" / "folder.json"
        book = self.models()
        book.keep("m", ModelProfile(flags=("no_tools",)))
        self.assertEqual(book["m"].profile.flags, ("no_tools",))

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
            (UNKNOWN, "server", said, ModelProfile(flags=("strict",))),
            (UNKNOWN, empty, "", ModelProfile(flags=("thinks",))),
            (ModelProfile(flags=("thinks",)), empty, "", ModelProfile(flags=("thinks",))),
            *(
                (UNKNOWN, "bad_request", f"unknown field {name}", ModelProfile(flags=(name,)))
                for name in ("stop", "top_k", "reasoning_effort")
            ),
        ):
            with self.subTest(before=before, outcome=outcome, text=text):
                self.assertEqual(self.taught(before, outcome, text, **sent), after)
