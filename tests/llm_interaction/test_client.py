import json
import os
import time
import unittest
from unittest.mock import patch

from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent

from evennia_ai.errors import ModelError
from evennia_ai.llm_interaction import wire
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.dialects import MOST_CHARS
from evennia_ai.llm_interaction.values import READ_AHEAD, ModelReply, ModelRequest, probe_request
from evennia_ai.turns.tools.base import Text, function_schema
from tests import loopback
from tests.loopback import HANG, RESET, TRUNCATED, LoopbackServer, failure, rate_limited, text
from tests.waiting import pump_until, wait_for

KEY = "sk-very-secret-0123456789"
SAID = "the dragon sleeps under the mill"
QUICK = 0.04
TOOL = function_schema("say", "Speak.", {"text": Text("What to say.")})


def request(**fields):
    """A small request; `fields` override."""
    asked = {"model": "any", "messages": ({"role": "user", "content": SAID},), "prompt": SAID}
    return ModelRequest(**{**asked, "timeout_s": 5.0, "max_tokens": 50, **fields})


class LoopbackCase(unittest.TestCase):
    """A server, and a client that speaks to it over real HTTP."""

    @classmethod
    def setUpClass(cls):
        wait_for(ModelClient().warm_up())

    def setUp(self):
        self.server = LoopbackServer().start()
        self.addCleanup(self.server.stop)
        self.client = self.new_client()

    def new_client(self, **options):
        made = ModelClient(
            **{"api_base": self.server.url, "api_key": KEY, "pause_s": QUICK, **options}
        )
        self.addCleanup(made.cancel_all)
        return made

    def ask(self, **fields) -> ModelReply:
        return wait_for(self.client.complete(request(**fields)))

    def fail(self, msg=None, **fields):
        if msg is not None:
            return super().fail(msg)
        with self.assertRaises(ModelError) as caught:
            self.ask(**fields)
        return caught.exception


class TestReplies(LoopbackCase):
    def test_a_plain_reply(self):
        """A reply comes with its text, its tokens, the model that gave it and the time it took.

        A server without usage figures does not make a call look free.
        """
        self.server.script(text("Good evening."))
        reply = self.ask()
        self.assertEqual((reply.content, reply.tool_calls), ("Good evening.", ()))
        self.assertEqual((reply.model, reply.attempts, reply.finish_reason), ("any", 1, "stop"))
        self.assertEqual(reply.prompt_tokens, loopback.count_tokens(self.server.bodies[0]))
        self.assertEqual(reply.completion_tokens, 3)
        self.assertGreater(reply.seconds, 0)
        self.server.script(text("Hello there.", usage={"prompt_tokens": 0, "completion_tokens": 0}))
        reply = self.ask(prompt_tokens=9)
        self.assertEqual((reply.prompt_tokens, reply.completion_tokens), (9, 3))

    def test_what_is_sent(self):
        """What is set, to a configured address under the bare name it has there, and no more."""
        for name in ("any", "some-maker/some-model"):
            self.ask(model=name)
            body = self.server.bodies[-1]
            self.assertEqual(body["model"], name)
            self.assertEqual(set(body), {"model", "messages", "max_tokens"})
        self.assertEqual(self.server.requests[0].headers["authorization"], f"Bearer {KEY}")
        self.ask(tools=(TOOL,), stop=("\n",), extra={"temperature": 0.0})
        body = self.server.bodies[-1]
        self.assertEqual((body["tools"], body["stop"], body["temperature"]), ([TOOL], ["\n"], 0.0))

    def test_completion_mode(self):
        """A base model gets the transcript, without any chat wrapper, and its stop texts."""
        self.server.script(text("and she said no."))
        reply = self.ask(api="completion", stop=("\nBob:",))
        sent = self.server.requests[0]
        self.assertEqual(reply.content, "and she said no.")
        self.assertEqual(sent.path, "/v1/completions")
        self.assertEqual((sent.body["prompt"], sent.body["stop"]), (SAID, ["\nBob:"]))
        self.assertNotIn("messages", sent.body)
        self.server.script(text('Good evening," she says.'))  # by a server that knows no stops
        self.assertEqual(self.ask(api="completion", stop=('"',)).content, "Good evening")
        refused = failure(400, "Unrecognized request argument supplied: stop")
        self.server.script(refused, text('Good evening." Bob says: "Hm.'))
        self.assertEqual(self.ask(api="completion", stop=('"',)).content, "Good evening.")
        self.assertNotIn("stop", self.server.bodies[-1])

    def test_tool_calls(self):
        """Calls arrive in the chat format, bad JSON in arguments mended."""
        for answer, name, arguments in (
            (loopback.bad_arguments("say"), "say", '{"text": "Hel"}'),
            (loopback.unknown_tool(), "launch_rocket", '{"target": "moon"}'),
        ):
            self.server.script(answer)
            (made,) = self.ask(tools=(TOOL,), called={"say": "text"}).tool_calls
            self.assertEqual(made["function"], {"name": name, "arguments": arguments})
            self.assertEqual(made["type"], "function")

    def test_call_ids_are_made_unique(self):
        """Null, empty and repeated ids, also ones used earlier in the talk, are replaced."""
        made = [loopback.call("say", {}, call_id) for call_id in (None, "", "a", "a", "old")]
        old = {"role": "assistant", "content": None, "tool_calls": made[-1:]}
        result = {"role": "tool", "tool_call_id": "old", "content": "ok"}
        self.server.script(loopback.calls(*made))
        calls = self.ask(messages=(old, result), tools=(TOOL,)).tool_calls
        ids = [call["id"] for call in calls]
        self.assertEqual(len(set(ids) | {"old", ""}), 7)
        self.assertEqual(ids[2], "a")

    def test_empty_reply_is_a_reply(self):
        """No content and no calls is not an error and is not asked for again."""
        for answer in (loopback.EMPTY, text(None)):
            self.server.script(answer)
            reply = self.ask()
            self.assertEqual((reply.content, reply.tool_calls, reply.attempts), ("", (), 1))

    def test_huge_reply(self):
        """Of 200,000 words the beginning arrives."""
        self.server.script(loopback.huge(200_000))
        reply = self.ask(timeout_s=20)
        self.assertEqual(len(reply.content), MOST_CHARS)

    def test_cached_tokens_are_priced_apart(self):
        """Tokens that the provider had cached are counted, and cost what LiteLLM lists for them."""
        usage = {"prompt_tokens": 1000, "completion_tokens": 10}
        cached = {**usage, "prompt_tokens_details": {"cached_tokens": 800}}
        self.server.script(text("Hi.", usage=usage), text("Hi.", usage=cached))
        self.client = self.new_client(home_model="openai/gpt-4o")
        plain, cheap = (self.ask(model="openai/gpt-4o") for _ in range(2))
        self.assertEqual((plain.cached_tokens, cheap.cached_tokens), (0, 800))
        prompt, _ = self.client.facts("openai/gpt-4o").price
        self.assertTrue(0 < plain.cost - cheap.cost < 800 * prompt)


class TestFaults(LoopbackCase):
    # answer, kind, retryable, HTTP calls made
    FAULTS = (
        (RESET, "connection", True, 2),
        (TRUNCATED, "bad_response", True, 2),
        (loopback.NO_CHOICES, "bad_response", True, 2),
        (rate_limited(), "rate_limit", True, 2),
        (failure(500), "server", True, 2),
        (failure(503), "server", True, 2),
        (failure(408), "timeout", True, 2),
        (failure(400), "bad_request", False, 2),
        (failure(401), "auth", False, 1),
        (failure(403), "auth", False, 1),
        (failure(404), "not_found", False, 1),
        (loopback.too_long(), "context_window", False, 1),
    )

    def test_each_fault_has_its_kind_and_number_of_attempts(self):
        """Every fault ends in a `ModelError` of its kind; only what may pass is tried again.

        One fault, then an answer: the caller sees the answer and two attempts.
        """
        for answer, kind, retryable, tries in self.FAULTS:
            for api in ("chat", "completion"):
                with self.subTest(kind=kind, status=answer.status, fault=answer.fault, api=api):
                    self.client = self.new_client()
                    self.server.requests.clear()
                    self.server.script(*[answer] * tries)
                    error = self.fail(api=api)
                    self.assertEqual((error.kind, error.retryable), (kind, retryable))
                    self.assertEqual(len(self.server.requests), tries)
                    self.assertEqual(self.server.succeeded, [])
                    if retryable:
                        self.client = self.new_client()
                        self.server.script(answer, text("Here."))
                        reply = self.ask(api=api)
                        self.assertEqual((reply.content, reply.attempts), ("Here.", 2))

    def test_hanging_server(self):
        """A server that never answers costs the stated time, no more, and sees us leave."""
        self.server.respond = lambda body: HANG
        error = self.fail(timeout_s=0.3)
        self.assertEqual((error.kind, error.retryable), ("timeout", True))
        pump_until(lambda: all(record.client_left for record in self.server.requests))

    def test_nobody_listens(self):
        """A closed port is a connection error that names the setting to look at."""
        self.client = self.new_client(api_base="http://127.0.0.1:9/v1")
        error = self.fail()
        self.assertEqual(error.kind, "connection")
        self.assertIn("EVENNIA_AI_LLM_API_BASE", str(error))

    def test_odd_bodies(self):
        """Whatever a server calls an answer, the caller gets a reply or a `ModelError`."""
        message = '{"choices": [{"index": 0, "message": %s}]}'
        for raw in (
            "<html>Welcome</html>",
            "",
            "null",
            "[]",
            "7",
            '{"error": "busy"}',
            '{"choices": null}',
            '{"choices": [null]}',
            '{"choices": [{}]}',
            message % "null",
            message % '{"content": 5}',
            message % '{"content": [{"type": "text", "text": "hi"}]}',
            message % '{"tool_calls": "x"}',
            message % '{"tool_calls": [null]}',
            message % '{"tool_calls": [{"id": "a"}]}',
            message % '{"tool_calls": [{"function": {"name": null, "arguments": null}}]}',
            message % '{"tool_calls": [{"function": {"name": "say", "arguments": {"text": 1}}}]}',
        ):
            for api in ("chat", "completion"):
                with self.subTest(raw=raw, api=api):
                    self.server.respond = lambda body, raw=raw: text("", raw=raw)
                    try:
                        self.assertIsInstance(self.ask(api=api).content, str)
                    except ModelError as error:
                        self.assertIn(error.kind, ("bad_response", "bad_request", "server"))

    def test_no_proxy_stands_before_loopback(self):
        """The server is reached, whatever proxy the environment names."""
        dead = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY"), "http://127.0.0.1:9")
        with patch.dict(os.environ, {**dead, "NO_PROXY": "intranet", "no_proxy": ""}):
            self.client = self.new_client()
            self.ask()
            self.assertTrue(os.environ["NO_PROXY"].startswith("intranet,"))

    def test_one_time_limit(self):
        """All tries at all models together take the request's time at most, whatever hangs."""
        self.server.respond = lambda body: HANG
        for fields in (
            {"within_s": 0.6},
            {"within_s": 0.6, "fallback_models": ("b", "c")},
            {"within_s": 5.0, "timeout_s": 0.3, "has_next": True},
        ):
            with self.subTest(fields):
                self.client = self.new_client()
                began = time.monotonic()
                self.assertEqual(self.fail(**fields).kind, "timeout")
                self.assertLess(time.monotonic() - began, 1.2)

    def test_half_of_the_time(self):
        """While another level waits, a try gets half of what is left, and a hung model one try."""
        self.server.respond = lambda body: HANG if body["model"] == "a" else text("B")
        for asked, most_s in (({"fallback_models": ("b",)}, 0.9), ({"has_next": True}, 0.9)):
            with self.subTest(asked):
                self.client, began = self.new_client(), time.monotonic()
                self.server.requests.clear()
                asked = {"model": "a", "within_s": 1.2, **asked}
                if "has_next" in asked:
                    self.fail(**asked)
                    self.assertEqual(len(self.server.requests), 1)
                    self.assertEqual(self.fail(**asked).kind, "breaker_open")
                else:
                    self.assertEqual(self.ask(**asked).model, "b")
                self.assertLess(time.monotonic() - began, most_s + 0.4)

    def test_no_wait_beyond_the_time(self):
        """A server that wants more than the time that is left is not waited for."""
        self.server.script(rate_limited(3))
        self.assertEqual(self.ask(fallback_models=("b",), within_s=4.0).model, "b")

    def test_reading_ahead_teaches_nothing(self):
        """A reply of one token that is a thought is no sign that thoughts use up replies."""
        self.server.respond = lambda body: text("<think>")
        self.ask(purpose=READ_AHEAD, max_tokens=2)
        self.assertEqual(self.client.facts("any").profile, ())
        self.assertEqual(len(self.server.requests), 1)


class TestProfiles(LoopbackCase):
    """What a model cannot do is met in the same call, and remembered."""

    RULES = (
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": SAID},
    )

    def refuse(self, is_refused, said, status=400):
        """Let the server refuse some requests."""

        def respond(body):
            refused = is_refused(body)
            return failure(status, message=said) if refused else text("Here.")

        self.server.respond = respond

    def test_a_refused_shape(self):
        """It is asked again at once in another shape, and later in that one."""
        said = "System role not supported"
        self.refuse(lambda body: body["messages"][0]["role"] == "system", said, 500)
        for attempts in (2, 1):
            self.assertEqual(self.ask(messages=self.RULES).attempts, attempts)
            self.assertIn(
                "takes no system role, or wants user and assistant to alternate",
                self.client.facts("any").profile,
            )

    def test_several_refusals(self):
        """One after the other is met."""
        self.refuse(lambda body: "tools" in body, "this model does not support tools")
        inner = self.server.respond
        self.server.respond = lambda body: (
            failure(400, message="roles must alternate")
            if [m["role"] for m in body["messages"]].count("user") > 1
            else inner(body)
        )
        said = ({"role": "user", "content": "One."}, {"role": "user", "content": "Two."})
        self.assertEqual(self.ask(messages=said, tools=(TOOL,)).content, "Here.")
        self.assertFalse(self.client.facts("any").calls_tools)
        self.assertEqual(len(self.client.facts("any").profile), 2)

    def test_an_unknown_refusal(self):
        """The plainest shape is tried, once a request."""
        self.refuse(lambda body: body["messages"][0]["role"] == "system", "nonsense 17")
        self.assertEqual(self.ask(messages=self.RULES).content, "Here.")
        self.refuse(lambda body: True, "nonsense 18")
        self.fail(model="other")
        before = len(self.server.requests)
        self.fail(model="other")
        self.assertEqual(len(self.server.requests), before + 2)

    def test_an_unknown_refusal_of_a_large_prompt(self):
        """It is no overflow: nothing is learned of the window."""
        self.refuse(lambda body: True, "nonsense 19")
        self.assertEqual(self.fail(prompt_tokens=9_000).kind, "bad_request")
        self.assertIsNone(self.client.facts("any").window)

    def test_a_refusal_that_quotes_the_prompt(self):
        """Words of the request in an error are no word on the window."""
        for said in (
            "This model's maximum context length is 1500 tokens.",
            'They wrote: "n_ctx": 512, prompt is too long',
            "prompt too long;\nthe context length is 2,048",
        ):
            line = f"Alice says: {said} Aria, how is that?"
            asked = ({"role": "system", "content": "Be kind."}, {"role": "user", "content": line})
            for quoted in (line, json.dumps(line), json.dumps(asked), said):
                with self.subTest(quoted):
                    self.client = self.new_client()
                    self.refuse(lambda body: True, f"Invalid request near: {quoted}")
                    self.assertEqual(
                        self.fail(messages=asked, prompt_tokens=90).kind, "bad_request"
                    )
                    self.assertIsNone(self.client.facts("any").window)
            self.refuse(lambda body: True, f"{line} context length is 9000 tokens")
            self.assertEqual(self.fail(messages=asked, prompt_tokens=10_000).kind, "context_window")
            self.assertEqual(self.client.facts("any").window.tokens, 9_000)

    def test_an_unknown_refusal_keeps_the_window(self):
        """What an overflow has named holds, whatever else is refused later."""
        self.refuse(lambda body: True, "This model's maximum context length is 8192 tokens.")
        self.fail(prompt_tokens=9_000)
        self.refuse(lambda body: True, "nonsense 20")
        for size in (3_000, 5_000, 100):
            self.assertEqual(self.fail(prompt_tokens=size).kind, "bad_request")
        self.assertEqual(self.client.facts("any").window.tokens, 8_192)

    def test_usage_figures(self):
        """Whatever a server counts of prompts, nothing is learned of the window."""
        for counts in ((1_000, 1_000, 1_000), (50_000, 60_000, 70_000), (4_080, 4_090, 4_085)):
            for theirs, ours in zip(counts, (9_000, 3_000, 12_000), strict=True):
                self.server.script(text("Here.", usage={"prompt_tokens": theirs}))
                self.ask(prompt_tokens=ours)
            self.assertIsNone(self.client.facts("any").window)

    def test_thoughts_that_use_up_the_reply(self):
        """It is asked for with more room; what was paid for in vain is counted."""

        def respond(body):
            if body["max_tokens"] > 100:
                return text("Here.")
            return text("<think>Who is this?", finish_reason="length")

        self.server.respond = respond
        first, second = self.ask(), self.ask()
        self.assertEqual((first.content, first.attempts), ("Here.", 2))
        self.assertEqual((second.content, second.attempts), ("Here.", 1))
        self.assertGreater(first.prompt_tokens, second.prompt_tokens)

    def test_nothing_but_thoughts(self):
        """With thinking off, too, or tokens of which nothing came: the next model answers."""
        for lost in (text("<think>Hm.</think>"), text("", usage={"completion_tokens": 90})):
            self.server.respond = lambda body, lost=lost: (
                text("There.") if body["model"] == "other" else lost
            )
            self.assertEqual(self.ask(fallback_models=("other",)).content, "There.")
            self.assertEqual(self.fail().kind, "empty")

    def test_what_is_no_reply(self):
        """A refusal, a filter and an error inside an answer speak no text; the next one answers."""
        message = '{"role": "assistant", "content": "The stew is ho"%s}'
        choice = '{"choices": [{"index": 0, "message": %s, "finish_reason": "%s"%s}]}'
        for raw in (
            choice % (message % ', "refusal": "No."', "stop", ""),
            choice % (message % "", "content_filter", ""),
            choice % (message % "", "error", ', "error": {"code": 502, "message": "Upstream"}'),
            choice % (message % "", "MALFORMED_FUNCTION_CALL", ""),
            choice % (message % "", "insufficient_system_resource", ""),
            choice.replace("]}", '], "error": {"code": 429, "message": "Provider returned error"}}')
            % (message % "", "stop", ""),
        ):
            with self.subTest(raw):
                self.server.respond = lambda body, raw=raw: (
                    text("There.") if body["model"] == "other" else text("", raw=raw)
                )
                self.assertEqual(self.ask(fallback_models=("other",)).content, "There.")

    def test_no_credit(self):
        """One call; then the model is left alone for a while, and asked again."""
        clock = Clock()
        self.client = self.new_client(clock=clock.seconds)
        self.refuse(lambda body: True, "Insufficient credits.", 402)
        self.assertEqual(self.fail().kind, "credit")
        self.assertEqual(self.fail().kind, "breaker_open")
        self.assertEqual(len(self.server.requests), 1)
        self.refuse(lambda body: False, "")
        clock.advance(50)
        self.assertEqual(self.ask().content, "Here.")


class TestFallbacks(LoopbackCase):
    def test_seconds_are_honoured(self):
        """The second call comes no sooner than the server asked, by the server's own clock."""
        self.server.script(rate_limited(0.6), text("Here."))
        self.assertEqual(self.ask().content, "Here.")
        first, second = self.server.requests
        self.assertGreaterEqual(second.at - first.at, 0.6)

    def test_too_long_a_wait_goes_to_the_next_model(self):
        """Nobody waits an hour: the fallback is asked at once, and the model left alone."""
        self.server.script(rate_limited(3600))
        reply = self.ask(fallback_models=("other",))
        self.assertEqual(reply.model, "other")
        self.ask(fallback_models=("other",))
        asked = [body["model"] for body in self.server.bodies]
        self.assertEqual(asked, ["any", "other", "other"])

    def test_models_are_asked_in_order(self):
        """Fallbacks come in their order, and the reply says which one answered."""
        self.server.respond = lambda body: text("C") if body["model"] == "c" else failure(404)
        reply = self.ask(model="a", fallback_models=("b", "c", "d"))
        self.assertEqual((reply.model, reply.content, reply.attempts), ("c", "C", 3))
        self.assertEqual([body["model"] for body in self.server.bodies], ["a", "b", "c"])

    def test_all_fail(self):
        """The error has the main model's kind and names each model once."""
        self.server.respond = lambda body: failure(401 if body["model"] == "a" else 404)
        error = self.fail(model="a", fallback_models=("b",))
        self.assertEqual((error.kind, error.retryable), ("auth", False))
        self.assertIn("`a`", str(error))
        self.assertIn("`b`", str(error))

    def test_a_hanging_model_leaves_time_for_the_next(self):
        """However long the main model hangs, the fallback is asked within the total time."""
        self.server.respond = lambda body: HANG if body["model"] == "a" else text("B")
        self.assertEqual(self.ask(model="a", fallback_models=("b",), timeout_s=0.5).model, "b")

    def test_the_offline_model_answers_when_all_are_down(self):
        """The offline model is asked without the address, also when the time is used up."""
        self.server.respond = lambda body: HANG
        reply = self.ask(fallback_models=("offline/extractive",), timeout_s=0.2)
        self.assertEqual((reply.model, reply.cost), ("offline/extractive", 0.0))
        self.assertEqual({body["model"] for body in self.server.bodies}, {"any"})

    def test_the_offline_model_needs_no_server(self):
        """With no address and no key at all, in either way of calling, it answers."""
        self.client = ModelClient()
        for api in ("chat", "completion"):
            self.assertTrue(self.ask(model="offline/extractive", api=api).model)

    def test_keys_go_to_their_own_provider_only(self):
        """Address and key are for the home model's provider; others get neither.

        A server without a key gets "none". Without an address a bare name is LiteLLM's to resolve.
        """
        import litellm

        here, offline = "http://127.0.0.1:1/v1", "offline/extractive"
        for model, home, base, key, sent in (
            ("anthropic/claude-x", "local", here, KEY, (None, None)),
            ("openai/small", "openai/large", here, KEY, (here, KEY)),
            ("anthropic/claude-x", "anthropic/claude-y", here, KEY, (here, KEY)),
            ("gpt-4o", "gpt-4o", None, KEY, (None, KEY)),
            ("anthropic/claude-x", "gpt-4o", None, KEY, (None, None)),
            ("gpt-4o", "openai/gpt-4o", None, KEY, (None, KEY)),
            ("x", "x", here, None, (here, "none")),
            (offline, offline, here, KEY, (None, None)),
            ("openai/small", offline, here, KEY, (here, KEY)),
            ("openai/small", offline, None, KEY, (None, None)),
            ("anthropic/claude-x", offline, here, KEY, (None, None)),
        ):
            with self.subTest(model=model, home=home, base=base):
                where = wire.endpoint(litellm, model, home, base, key)
                self.assertEqual((where.api_base, where.api_key), sent)


class TestBreakerAndCancellation(LoopbackCase):
    def test_open_goes_straight_to_the_fallback(self):
        """A model that fails twice is not asked at all for a while, where another answers."""
        clock = Clock()
        self.client = self.new_client(clock=clock.seconds)
        self.server.respond = lambda body: failure(500) if body["model"] == "a" else text("B")
        for waited_s, times in ((0, 2), (0, 2), (9, 2), (1, 4)):
            clock.advance(waited_s)
            self.assertEqual(self.ask(model="a", fallback_models=("b",)).model, "b")
            self.assertEqual([body["model"] for body in self.server.bodies].count("a"), times)
        self.assertEqual(self.fail(model="a", within_s=5.0).kind, "breaker_open")
        clock.advance(10)
        for _ in range(3):
            self.assertEqual(self.fail(model="a").kind, "server")

    def test_the_only_model_is_waited_for(self):
        """A rest that ends in time costs a request nothing where no other level would answer."""
        for asked, kind in (({}, ""), ({"has_next": True}, "breaker_open")):
            with self.subTest(asked):
                self.client.models["openai/any"].rest(0.4)
                began = time.monotonic()
                if kind:
                    self.assertEqual(self.fail(**asked).kind, kind)
                    continue
                self.assertEqual(self.ask(**asked).attempts, 1)
                self.assertGreaterEqual(time.monotonic() - began, 0.4)

    def test_bad_requests_do_not_open_it(self):
        """A request that is refused as such says nothing against the model."""
        self.server.respond = lambda body: failure(400)
        for _ in range(7):
            self.assertEqual(self.fail(model="a").kind, "bad_request")

    def cancelled(self, call):
        """Cancel a call, and see that it ends so."""
        call.cancel()
        with self.assertRaises(CancelledError):
            wait_for(call)

    def test_cancelling_closes_the_connection(self):
        """A cancelled call fails with `CancelledError`, and the server sees the client leave."""
        self.server.respond = lambda body: HANG
        call = self.client.complete(request(fallback_models=("other",)))
        pump_until(lambda: self.server.requests)
        self.cancelled(call)
        pump_until(lambda: self.server.requests[0].client_left)
        self.assertEqual(len(self.server.requests), 1)

    def test_cancel_all(self):
        """All calls in flight are cancelled and counted; later calls work."""
        self.server.script(*[HANG] * 3)
        calls = [self.client.complete(request()) for _ in range(3)]
        pump_until(lambda: len(self.server.requests) == 3)
        self.assertEqual(self.client.cancel_all(), 3)
        for call in calls:
            with self.assertRaises(CancelledError):
                wait_for(call)
        self.assertEqual(self.client.cancel_all(), 0)
        self.assertEqual(self.ask().content, SAID)

    def test_cancelling_between_attempts(self):
        """A call that waits to be made again is not made again once cancelled."""
        self.server.script(rate_limited(1))
        call = self.client.complete(request())
        pump_until(lambda: self.server.requests and self.server.requests[0].status == 429)
        self.cancelled(call)
        end = time.monotonic() + 1.3
        pump_until(lambda: time.monotonic() > end)
        self.assertEqual(len(self.server.requests), 1)


class TestSecretsAndProbes(LoopbackCase):
    ANSWERS = (failure(401, f"Bad key {KEY} for: {SAID}"), failure(500, f"{SAID} {KEY}"), RESET)

    def test_neither_key_nor_prompt_is_told(self):
        """No error, its causes included, no log line and no repr holds the key or the prompt."""
        told = [repr(self.client), repr(request())]
        with capturedLogs() as events, self.assertLogs(level=1) as logs:
            for answer in self.ANSWERS:
                self.server.respond = lambda body, answer=answer: answer
                error = self.fail()
                told += [str(error), repr(error), repr(error.__cause__), repr(error.__context__)]
            pump_until(lambda: len(events) >= 3)
        told += [formatEvent(event) or repr(event) for event in events]
        for line in [*told, *logs.output]:
            self.assertNotIn(KEY, line)
            self.assertNotIn(SAID, line)

    def test_masking(self):
        """Given keys, and what has the shape of one, are masked; the text is one short line."""
        said = wire.masked(f"key {KEY}\nor sk-other-987654 Bearer abc.def " + "x" * 999, KEY, None)
        self.assertEqual(said[:27], "key *** or *** Bearer *** x")
        self.assertEqual(len(said), 300)

    def test_probe_of_a_model_that_does_not(self):
        """A failing probe says what is wrong in one line, with the key masked, after one try."""
        self.server.script(failure(401, f"Bad key {KEY}"))
        with self.assertRaisesRegex(ModelError, "EVENNIA_AI_LLM_API_KEY") as caught:
            wait_for(self.client.complete(probe_request("any")))
        self.assertEqual(caught.exception.kind, "auth")
        self.assertNotIn(KEY, str(caught.exception))
        self.assertEqual(len(self.server.requests), 1)

    def test_probe_of_a_model_that_rests(self):
        """Who asks for a probe gets one, and its success ends the rest."""
        self.server.script(failure(402))
        self.fail()
        self.assertEqual(self.fail().kind, "breaker_open")
        self.assertTrue(wait_for(self.client.complete(probe_request("any"))).content)
        self.assertLessEqual(self.server.bodies[-1]["max_tokens"], 16)
        self.assertEqual(self.ask().model, "any")

    def test_cache_marks(self):
        """Claude gets marks at the rules, before the newest message and at it; others none."""
        messages = [{"role": "system", "content": "rules"}]
        messages += [{"role": role, "content": role} for role in ("user", "assistant", "user")]
        self.ask(model="openrouter/anthropic/Claude-3.5-sonnet", messages=tuple(messages))
        shown = [message["content"] for message in self.server.bodies[-1]["messages"]]
        marked = [place for place, content in enumerate(shown) if isinstance(content, list)]
        self.assertEqual(marked, [0, 2, 3])
        part = {"type": "text", "text": "rules", "cache_control": {"type": "ephemeral"}}
        self.assertEqual(shown[0], [part])
        self.ask(messages=tuple(messages))
        self.assertEqual(self.server.bodies[-1]["messages"], messages)
