"""Summaries of what is larger than a summariser's window, and answers that are none."""

import unittest

from evennia_ai.core.messages import new_id
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL, context_caps
from evennia_ai.llm_interaction.summary import MESSAGES_TITLE, summarise
from evennia_ai.testing import ScriptedModel
from tests.memory_assistant import MemoryWorld, count
from tests.waiting import wait_for

FACT = "Mirabel owes Bram twelve crowns."


class Windows(ScriptedModel):
    """A scripted model with a window for each name."""

    def __init__(self, windows, **options):
        super().__init__(**options)
        self.windows = windows

    def window(self, model):
        """The window of this name."""
        return self.windows.get(model)


def lines(number, words=30):
    """So many heard lines."""
    return [
        {"id": new_id("m"), "role": "user", "content": f"line {n}: " + "word " * words}
        for n in range(number)
    ]


class TestSummarise(unittest.TestCase):
    """One summary, however many requests it takes."""

    def world(self, model, **config):
        return MemoryWorld(model, **config)

    def summarise(self, world, messages):
        return wait_for(summarise(world.script, messages))

    def sizes(self, world):
        """Tokens of each request with room for its reply."""
        return [
            sum(count(m["content"]) for m in request.messages) + request.max_tokens
            for request in world.model.requests
        ]

    def test_each_request_fits_the_smallest_window(self):
        """A compact model and a fallback with small windows get chunks that fit both."""
        model = Windows({"small/one": 3000, "tiny/two": 2000}, default=FACT)
        world = self.world(model, compact_model="small/one", llm_fallback_models=["tiny/two"])
        messages = lines(200)
        self.summarise(world, messages)
        self.assertLessEqual(max(self.sizes(world)), 2000)
        shown = "\n".join(r.messages[1]["content"] for r in model.requests)
        for number in range(200):
            self.assertIn(f"line {number}:", shown)

    def test_the_speakers_window_does_not_bind_the_summariser(self):
        """A summariser of its own is given what it can hold."""
        model = Windows({"scripted/model": 3000, "large/one": 90_000}, default=FACT)
        world = self.world(model, compact_model="large/one")
        self.summarise(world, lines(200))
        self.assertEqual(len(model.requests), 1)

    def test_summaries_of_chunks_are_chunked_too(self):
        """Where even the chunks' summaries exceed the window they are folded in turns."""
        model = Windows({"scripted/model": 2000}, default=lambda request: "deed " * 150)
        world = self.world(model)
        summary = self.summarise(world, lines(1200))
        self.assertLessEqual(max(self.sizes(world)), 2000)
        self.assertLessEqual(count(summary.text), context_caps(world.script).summary)

    def test_summaries_that_do_not_get_fewer_end(self):
        """A window with hardly any room ends in one last request."""
        model = Windows({"scripted/model": 900}, default=lambda request: "deed " * 60)
        world = self.world(model)
        self.assertTrue(self.summarise(world, lines(40)).text)

    def answered(self, answer):
        """The level taken when the model answers so."""

        def default(request):
            return FACT if request.model == OFFLINE_MODEL else answer(request)

        return self.summarise(self.world(ScriptedModel(default=default)), lines(40))

    def test_growing_is_no_summary(self):
        """An answer as long as its source is not taken, though it could be cut."""
        summary = self.answered(lambda request: "word " * 5000)
        self.assertEqual((summary.level, summary.text), ("extractive", FACT))
        self.assertIn("not shorter", summary.rejected[0])

    def test_an_echo_is_no_summary(self):
        """Nor is the request itself, cut off where the reply's limit is."""
        summary = self.answered(lambda request: request.messages[1]["content"][:900])
        self.assertEqual(summary.level, "extractive")
        self.assertIn("echo", summary.rejected[0])
        self.assertNotIn(MESSAGES_TITLE, summary.text)
