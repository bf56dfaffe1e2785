"""A model's window that is smaller than what is configured, over real HTTP."""

import json

from django.test import override_settings

from evennia_ai import conf, services
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.servers import HALVED, NAMED, PROPS
from evennia_ai.llm_interaction.summary import Summariser
from evennia_ai.sleep.compaction import compact_conversation_history, run_pre_compaction_extraction
from evennia_ai.sleep.compaction.rules import check_room, no_room
from tests import loopback
from tests.loopback import Answer, LoopbackServer, count_tokens
from tests.steps import verify_history
from tests.waiting import wait_for
from tests.wire_case import QUICK, WireTest

WINDOW = 4096


def llama_error(tokens, window):
    """What llama.cpp answers to a prompt larger than its window."""
    error = {"code": 400, "message": "the request exceeds the available context size"}
    return error | {"type": "exceed_context_size_error", "n_prompt_tokens": tokens, "n_ctx": window}


def vague_error(tokens, window):
    """An error that names no figure."""
    return {"message": "Input is too long for requested model."}


class SmallServer(LoopbackServer):
    """A server that counts tokens, `factor` times as many as we do, and refuses what is too large.

    Args:
        window: Its window in its own tokens.
        factor: Its tokens for one of ours.
        error: Makes the body of a refusal from the prompt's tokens and the window.
        with_reply: Whether prompt and reply must fit, as vLLM has it, or the prompt alone.
    """

    def __init__(self, window=WINDOW, factor=1.0, error=llama_error, with_reply=False):
        super().__init__(self._answered)
        self.window, self.factor, self.error = window, factor, error
        self.with_reply, self.refused = with_reply, []

    def _answered(self, body):
        tokens, number = round(count_tokens(body) * self.factor), len(self.requests)
        if tokens + body["max_tokens"] * self.with_reply > self.window:
            self.refused.append(tokens)
            return Answer(status=400, raw=json.dumps({"error": self.error(tokens, self.window)}))
        said = f"Reply number {number}, about the {number * 7} goats."
        if body["messages"][0]["content"].startswith("You summarise"):
            said = "They talked of the harvest."
        return loopback.text(said, usage={"prompt_tokens": tokens})


class SmallWindow(WireTest):
    """An assistant configured for 100,000 tokens whose model's window is 4,096."""

    LONG = 150

    def setUp(self):
        super().setUp()
        self.configure(max_context_tokens=100_000, reply_cooldown_s=0)

    def serve(self, names=None, **options):
        """Put a small server in place of the game's model, which may name a window if asked."""
        self.small = SmallServer(**options).start()
        self.addCleanup(self.small.stop)
        client = ModelClient(api_base=self.small.url, home_model=conf.model_name(), pause_s=QUICK)
        services.use(model=client)
        if names:
            self.small.pages["/props"] = {"default_generation_settings": {"n_ctx": names}}
        wait_for(client.warm_up())
        # Its trial is over before anybody speaks.
        wait_for(client.trial(self.script.model_name))

    def live(self, turns):
        """So many turns; returns after which of them the server had refused how many requests."""
        refused = []
        for number in range(turns):
            text = f"Aria, what of the {number * 13} geese on pond {number}? " * 4
            self.assertEqual(self.talk(text), "turn")
            self.assertTrue(self.script.runtime.lock.running is None)
            refused.append(len(self.small.refused))
        return refused

    def said(self):
        """How many replies the model gave that were said."""
        return sum("Reply number" in text for text in self.recorded_contents("assistant"))

    def assert_one_overflow(self, guesses=0):
        """The first turn is answered though the model refused it, and no later one is refused.

        `guesses` are refusals more that a window which nobody names may take.
        """
        self.fill(self.LONG, words=60)
        refused = self.live(12)
        self.assertGreater(refused[0], 0)
        self.assertLessEqual(refused[-1], refused[0] + guesses, refused)
        self.assertEqual(self.said(), 12)
        self.assertEqual(self.script.runtime.counts["model failures"], 0)
        self.assertGreater(len(self.script.history.compactions()), 0)
        self.assertEqual(verify_history(self.script), ())


class TestOverflow(SmallWindow):
    def test_named_window(self):
        """llama.cpp names its window: one refused request, twelve turns with a compaction."""
        self.serve()
        self.assert_one_overflow()
        self.assertEqual(len(self.small.refused), 1)
        self.assertIn(NAMED, self.script.limits().facts.window.source)

    def test_another_counter(self):
        """A server that counts 1.37 tokens for one of ours, and the reply with the prompt."""
        self.serve(factor=1.37, with_reply=True)
        self.assert_one_overflow(guesses=1)
        self.assertLess(self.script.limits().tokens, WINDOW / 1.37)

    def test_no_figures(self):
        """A server that names nothing: the prompt is halved until it fits, in the same turn."""
        self.serve(error=vague_error)
        self.assert_one_overflow(guesses=1)
        self.assertIn(HALVED, self.script.limits().facts.window.source)


class TestAskedFirst(SmallWindow):
    def test_no_overflow_at_all(self):
        """A server that says its window gets no request that is too large, from the first on."""
        self.serve(names=WINDOW)
        self.fill(self.LONG, words=60)
        self.live(8)
        self.assertEqual(self.small.refused, [])
        self.assertIn(PROPS, self.script.limits().facts.window.source)

    def test_what_compaction_cannot_reach(self):
        """What the window is too small for names the window, not an option that would not help."""
        self.configure(persona="You keep a tavern with forty painted doors. " * 25)
        self.serve(names=2100)
        self.fill(30, words=60)
        check_room(self.script)
        reason = no_room(self.script.limits())
        self.assertEqual(self.script.runtime.trouble.text, reason)
        self.assertIn(f"the window of scripted/model, by {PROPS} sets the limit", reason)
        self.assertIn("Give the model's server a larger window", reason)
        self.assertNotIn("max_context_tokens", reason)

    def test_a_window_that_shrinks(self):
        """A server started anew with less refuses one request, whichever is the first too large."""
        self.serve(window=16_384, names=16_384)
        self.fill(self.LONG, words=60)
        self.live(2)
        self.small.window = WINDOW
        refused = self.live(5)
        self.assertEqual(refused[-1], 1, refused)
        self.assertEqual(self.said(), 7)


class TestSummaries(SmallWindow):
    def test_a_summary_is_asked_in_smaller_parts(self):
        """The first request is refused, then all of the source is in requests that succeed."""
        self.serve()
        messages = self.fill(self.LONG, words=60)
        summary = wait_for(Summariser(self.script).of_messages(messages))
        self.assertEqual((summary.level, len(self.small.refused)), ("main", 1))
        sent = "".join(r.body["messages"][-1]["content"] for r in self.small.succeeded)
        for message in messages:
            self.assertIn(message.content.split(":")[0], sent)

    def test_a_model_that_rests(self):
        """A summary waits for its model, rather than take the offline extract."""
        self.serve()
        messages = self.fill(20, words=30)
        model = self.script.mind.model.models[f"openai/{conf.model_name()}"]
        model.rest(0.5)
        summary = wait_for(Summariser(self.script).of_messages(messages))
        self.assertEqual((summary.level, model.rest_s), ("main", 0))

    def test_an_extraction_and_a_compaction(self):
        """Both recover from a refusal, and what leaves was shown to the extraction."""
        self.serve()
        self.fill(self.LONG, words=60)
        done = wait_for(run_pre_compaction_extraction(self.script, self.aria))
        self.assertTrue(done["success"], done)
        done = wait_for(compact_conversation_history(self.script, self.aria, force=True))
        self.assertTrue(done["success"], done)
        self.assertEqual(done["level"], "main")
        self.assertEqual(len(self.small.refused), 1)


class TestFallback(SmallWindow):
    @override_settings(EVENNIA_AI_MODELS=["large", "small"])
    def test_a_smaller_fallback(self):
        """A fallback with a small window gets a prompt that fits, and none that is too large."""
        self.serve(window=3000)
        self.configure(llm_model="large", llm_fallback_models=["small"])
        listed = [{"id": "large", "max_model_len": 64_000}, {"id": "small", "max_model_len": 3000}]
        self.small.pages["/v1/models"] = {"data": listed}
        answered = self.small.respond

        def respond(body):
            return loopback.failure(500) if body["model"] == "large" else answered(body)

        self.small.respond = respond
        self.fill(60, words=60)
        self.talk("Aria, what of the geese?")
        self.assertEqual((self.small.refused, self.said()), ([], 1))
        asked = [body["model"] for body in self.small.bodies]
        self.assertEqual((set(asked[:-1]), asked[-1]), ({"large"}, "small"))
        self.assertEqual(self.script.limits().tokens, 64_000)
