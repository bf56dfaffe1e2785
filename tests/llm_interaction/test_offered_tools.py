"""Whether a model is offered tools: a trial decides, once."""

import threading
import unittest

from evennia_ai.errors import ModelError
from evennia_ai.history.messages import Message
from evennia_ai.llm_interaction import wire
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.contexts import TOOL_RULES
from evennia_ai.llm_interaction.prompt import NO_REPEATS, TEMPERATURE
from evennia_ai.llm_interaction.values import (
    FORM,
    ONLY_SPEAKS,
    SPEAKS_AND_CALLS,
    ModelRequest,
    TurnRequest,
)
from evennia_ai.sleep.compaction import run_pre_compaction_extraction
from evennia_ai.testing import call
from tests import loopback
from tests.fake import FakeAssistant
from tests.loopback import LoopbackServer
from tests.models import ScriptedModel
from tests.waiting import pump_until, wait_for
from tests.wire_case import QUICK

MODEL = "openai/any"


class TestTrial(unittest.TestCase):
    def server(self, **options):
        server = LoopbackServer(lambda body: loopback.text("Aye."), **options).start()
        self.addCleanup(server.stop)
        return server

    def client(self, server, **options):
        client = ModelClient(api_base=server.url, api_key="sk-test", **options)
        wait_for(client.warm_up())
        return client

    def sent(self, **fields):
        """What a server of the game's own gets for a request."""
        server = self.server()
        request = ModelRequest(**{"model": MODEL, "prompt": "Hi", **fields})
        wait_for(self.client(server).complete(request))
        return server.bodies[-1]

    def test_what_is_found_is_kept(self):
        """A trial is made once: native calls first, then the form; its tokens are reported."""
        for options, trials, speech in (
            ({}, 3, SPEAKS_AND_CALLS),
            ({"takes_form": True}, 3, SPEAKS_AND_CALLS),
            ({"drops_tools": True, "takes_form": True}, 6, FORM),
            ({"drops_tools": True}, 6, ONLY_SPEAKS),
        ):
            server = self.server(**options)
            client = self.client(server, home_model=MODEL)
            self.assertIsNone(client.facts(MODEL).calls_tools)
            reply = wait_for(client.trial(MODEL))
            self.assertEqual((reply.content, reply.attempts), ("", trials))
            self.assertGreater(reply.prompt_tokens, 300 * trials)
            facts = client.facts(MODEL)
            self.assertEqual((facts.speech, facts.calls_tools), (speech, speech != ONLY_SPEAKS))
            self.assertEqual((server.trials, server.requests), (trials, []))
            self.assertEqual(wait_for(client.trial(MODEL)).attempts, 0)
            self.assertEqual(server.trials, trials)

    def test_a_call_that_began_before_it(self):
        """Its end takes nothing back of what a trial has found meanwhile."""
        goes_on = threading.Event()
        server = LoopbackServer(lambda body: goes_on.wait(60) and loopback.text("Aye.")).start()
        self.addCleanup(server.stop)
        client = self.client(server)
        reply = client.complete(ModelRequest(model=MODEL, prompt="Hi"))
        wait_for(client.trial(MODEL))
        goes_on.set()
        self.assertEqual(wait_for(reply).content, "Aye.")
        self.assertTrue(client.facts(MODEL).calls_tools)

    def test_a_server_that_is_down(self):
        """What cannot be tried is unknown; what cannot be asked for is no way to call tools."""
        server = self.server()
        client = self.client(server, pause_s=QUICK)
        server.stop()
        with self.assertRaises(ModelError):
            wait_for(client.trial(MODEL))
        self.assertIsNone(client.facts(MODEL).calls_tools)

    def test_a_pause_goes_on(self):
        """A trial that succeeds ends no pause of a model, which another call was asked for."""
        server = self.server()
        client = self.client(server)
        done, model = client.trial(MODEL), client.models[MODEL]
        pump_until(lambda: server.trials)
        model.rest(60.0)
        wait_for(done)
        self.assertGreater(model.rest_s, 0)
        self.assertIsNone(client.facts(MODEL).calls_tools)

    def test_nothing_is_known_before_a_trial(self):
        """Not even of a server that is configured."""
        self.assertIsNone(ModelClient(api_base="http://127.0.0.1:1").facts(MODEL).calls_tools)

    def test_sampling_options_are_sent(self):
        """All of them reach a server of the game's own; none is sent that was not set."""
        sampling = {"top_p": 0.9, "frequency_penalty": 0.5, "presence_penalty": 0.4}
        sampling |= {"repeat_penalty": 1.1, "temperature": 0.7, "min_p": 0.1}
        for api in ("chat", "completion"):
            body = self.sent(api=api, extra=sampling)
            self.assertEqual({name: body.get(name) for name in sampling}, sampling)
        self.assertTrue(set(self.sent()).isdisjoint(sampling))
        # Claude's newer models refuse a temperature together with `top_p`.
        for temperature, top_p in ((0.7, None), (None, 0.9)):
            extra = {"temperature": temperature, "top_p": 0.9}
            body = self.sent(model="openai/claude-x", extra=extra)
            self.assertEqual((body.get("temperature"), body.get("top_p")), (temperature, top_p))

    def test_thinking_and_fields_of_own_servers(self):
        """LiteLLM's fields for providers; a template's own for servers of the game's own."""
        on, off = ({"chat_template_kwargs": {"enable_thinking": value}} for value in (True, False))
        for thinking, extra, is_own, wanted in (
            ("default", {}, True, {}),
            ("off", {}, False, {"reasoning_effort": "none"}),
            ("high", {}, False, {"reasoning_effort": "high"}),
            ("off", {}, True, {"extra_body": off}),
            ("low", {}, True, {"reasoning_effort": "low", "extra_body": on}),
            ("default", {"min_p": 0.1, "seed": 4}, False, {"seed": 4}),
            ("default", {"min_p": 0.1}, True, {"extra_body": {"min_p": 0.1}}),
        ):
            request = ModelRequest(model=MODEL, thinking=thinking, extra=extra)
            where = wire.Endpoint(MODEL, "openai", "http://gpu.lan:8080/v1" if is_own else None)
            self.assertEqual(wire.further_fields(request, where), wanted)
        self.assertEqual(
            self.sent(thinking="off")["chat_template_kwargs"], off["chat_template_kwargs"]
        )


class TestOfferedTools(unittest.TestCase):
    def aria(self, calls_tools=None, answers=(), **config):
        return FakeAssistant(ScriptedModel(answers, calls_tools=calls_tools), **config)

    def test_what_decides(self):
        """The trial; before it a model only speaks, and base models always. It is said in words."""
        for calls_tools, config, wanted, words in (
            (None, {}, False, "until it has been tried"),
            (True, {}, True, "words and tool calls"),
            (False, {}, False, "orders are read"),
            (True, {"llm_api": "completion"}, False, "orders are read"),
            (False, {"model_name": "offline/extractive"}, True, "words and tool calls"),
        ):
            limits = self.aria(calls_tools, **config).limits()
            self.assertEqual(limits.calls_tools, wanted)
            self.assertIn(words, limits.speech)

    def test_a_call_that_nobody_offered(self):
        """A model that calls all the same goes on with its call as it made it, in that turn."""
        aria = self.aria(None, [call("look"), "Aye."])
        self.asked(aria)
        first, second = aria.mind.model.requests
        self.assertEqual(first.tools, ())
        self.assertEqual([tool["function"]["name"] for tool in second.tools], ["look"])
        self.assertEqual([m["role"] for m in second.messages][-2:], ["assistant", "tool"])
        aria.mind.model.answers = ["Aye, indeed."]
        later = self.asked(aria)
        self.assertEqual(later.tools, ())
        self.assertNotIn("tool", [message["role"] for message in later.messages])

    def asked(self, aria):
        aria.history.append([Message("user", "Hello, Aria!")])
        aria.run_turn(TurnRequest())
        return aria.mind.model.requests[-1]

    def test_what_is_offered(self):
        """All tools and their rules, or none of both, whatever its window."""
        for calls_tools in (True, False):
            for tokens in (50_000, 8_000):
                asked = self.asked(self.aria(calls_tools, ["Aye."], max_context_tokens=tokens))
                names = [tool["function"]["name"] for tool in asked.tools]
                self.assertEqual("give" in names, calls_tools)
                self.assertEqual(bool(names), calls_tools)
                self.assertEqual(TOOL_RULES in asked.messages[0]["content"], calls_tools)
                self.assertEqual(asked.extra, {"temperature": TEMPERATURE})

    def test_importance_is_for_extractions(self):
        """Talk does not ask how important a note is; an extraction does, and for the lines."""
        registry = self.aria(True, []).tools
        talk = registry.tools["add_journal_entry"].schema()["function"]["parameters"]["properties"]
        self.assertEqual({*talk}, {"content"})
        (entry,) = (
            each["function"]["parameters"]["properties"]
            for each in registry.note_schemas()
            if each["function"]["name"] == "add_journal_entry"
        )
        self.assertEqual({*entry}, {"content", "importance", "lines"})

    def test_options_win(self):
        """What the owner sets is sent as it is set."""
        extra = {"repeat_penalty": 1.3, "temperature": 0.9}
        asked = self.asked(self.aria(True, ["Aye."], llm_extra=extra))
        self.assertEqual(asked.extra, extra)

    def test_a_call_of_a_model_without_tools(self):
        """A call that it writes all the same is judged like any call, and is not spoken."""
        answer = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'
        aria = self.aria(False, [answer, "A fine room."])
        self.asked(aria)
        self.assertEqual([text for _, text in aria.game.said], ["A fine room."])

    def test_a_base_model_speaks(self):
        """Its prompt ends with its own opened line."""
        aria = self.aria(None, ["A fine room."], llm_api="completion")
        asked = self.asked(aria)
        self.assertTrue(asked.prompt.endswith('\nAria says: "'))
        self.assertEqual([text for _, text in aria.game.said], ["A fine room."])

    def test_a_base_model_goes_on(self):
        """It is shown the card's examples alone, and told not to repeat itself, in talk only."""
        for examples, spoken in (("", 0), ("Odo: Ho, Aria!\nAria: Ho, Odo.", 1)):
            for extra in ({}, {"presence_penalty": 0, "top_k": 5}):
                options = {"llm_api": "completion", "examples": examples, "llm_extra": extra}
                asked = self.asked(self.aria(None, ["A fine room."], **options))
                self.assertEqual(asked.prompt.count("Aria says:"), spoken + 1)
                ours = {"temperature": TEMPERATURE, **NO_REPEATS}
                self.assertEqual(asked.extra, {**ours, **extra})

    def test_a_base_model_extracts_facts(self):
        """Each whole line is a journal entry, and the pass is over."""
        answer = " Bram owes Ilse four silver.\n- The well is dry.\n- Wen"
        aria = self.aria(None, [answer], llm_api="completion")
        aria.history.append([Message("user", "I owe Ilse four silver. The well is dry.")] * 5)
        wait_for(run_pre_compaction_extraction(aria, aria.obj))
        [asked] = aria.mind.model.requests
        self.assertTrue(asked.prompt.endswith("\n-"))
        written = [entry.content for entry in aria.obj.journal.recent(5)]
        self.assertEqual(asked.extra, {})
        self.assertEqual(written, ["Bram owes Ilse four silver.", "The well is dry."])
