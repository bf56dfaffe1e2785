"""The client asks the configured server for its window, and learns from what it is refused."""

import asyncio
import json
import socket

from twisted.internet.task import Clock

from evennia_ai.errors import WindowError
from evennia_ai.llm_interaction.servers import (
    KOBOLD,
    LOADED,
    MODELS,
    NAMED,
    PROPS,
    SHOWN,
    STUDIO,
    TABBY,
    Window,
    ask_server,
)
from tests import loopback
from tests.llm_interaction.test_client import KEY, LoopbackCase
from tests.loopback import RESET, failure

PROPS_4096 = {"default_generation_settings": {"n_ctx": 4096}}


class TestLookup(LoopbackCase):
    def asked(self, url=None):
        """What a server says, asked outside a client."""
        return asyncio.run(ask_server(url or self.server.url, KEY, "any"))

    def test_llama_and_vllm(self):
        """llama.cpp is asked with the key; vLLM lists models; the least of the answers counts."""
        self.server.pages["/props"] = PROPS_4096
        self.assertEqual(self.asked(), Window(4096, PROPS))
        self.assertEqual(self.server.lookups[0].headers["authorization"], f"Bearer {KEY}")
        self.server.pages["/v1/models"] = {"data": [{"id": "any", "max_model_len": 2048}]}
        self.assertEqual(self.asked(), Window(2048, MODELS))

    def test_ollama(self):
        """A model's page has its largest window, the list of loaded ones the one in use."""
        self.server.pages["/api/show"] = {"model_info": {"llama.context_length": 131072}}
        self.assertEqual(self.asked(), Window(131072, SHOWN))
        (shown,) = (each for each in self.server.lookups if each.path == "/api/show")
        self.assertEqual(shown.body, {"model": "any"})
        loaded = {"models": [{"name": "any:latest", "context_length": 4096}]}
        self.server.pages["/api/ps"] = loaded
        self.assertEqual(self.asked(), Window(4096, LOADED))

    def test_other_servers(self):
        """LM Studio, KoboldCpp and TabbyAPI say it on pages of their own."""
        loaded = {"id": "any", "state": "loaded", "loaded_context_length": 6144}
        for path, page, window in (
            ("/api/v0/models", {"data": [loaded]}, Window(6144, STUDIO)),
            ("/api/extra/true_max_context_length", {"value": 7168}, Window(7168, KOBOLD)),
            ("/v1/model", {"id": "any", "parameters": {"max_seq_len": 5120}}, Window(5120, TABBY)),
        ):
            with self.subTest(path):
                self.server.pages.clear()
                self.server.pages[path] = page
                self.assertEqual(self.asked(), window)

    def test_a_router(self):
        """llama.cpp's router is asked for the model by name."""
        self.server.pages["/props"] = PROPS_4096
        self.asked()
        self.assertIn("/props?model=any", [lookup.path for lookup in self.server.lookups])

    def test_a_server_without_a_word_on_windows(self):
        """It says nothing, as one that is down, or may be loading a model."""
        self.assertEqual(self.asked(), None)
        self.server.pages.update({"/props": ["x"], "/v1/models": "y", "/api/ps": 3})
        self.assertEqual(self.asked(), None)
        self.server.page_status = 503
        self.assertEqual(self.asked(), None)
        self.assertEqual(self.asked("http://127.0.0.1:9/v1"), None)

    def test_a_server_that_hangs(self):
        """The wait for a server that accepts and never answers is bounded."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            answer = self.asked(f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
            self.assertIsNone(answer)


class TestLearning(LoopbackCase):
    def refused(self, prompt_tokens, **fields):
        """Ask for what is too large; returns the model whose window it is."""
        with self.assertRaises(WindowError) as caught:
            self.ask(prompt_tokens=prompt_tokens, **fields)
        self.assertEqual(caught.exception.kind, "context_window")
        return caught.exception.model

    def learned(self, model="any"):
        """The window, and where the figure comes from."""
        window = self.client.facts(model).window
        return (window.tokens, window.source) if window else (None, "")

    def test_asked_once_and_again(self):
        """A server is asked at first use, after a broken connection, and some minutes later."""
        clock = Clock()
        self.client = self.new_client(clock=clock.seconds)
        self.server.pages["/props"] = PROPS_4096
        for _ in range(3):
            self.ask()
        self.assertEqual((len(self.server.lookups), self.learned()), (7, (4096, PROPS)))
        self.server.pages["/props"] = {"default_generation_settings": {"n_ctx": 2048}}
        self.server.script(RESET, RESET, RESET)
        self.fail()
        self.assertEqual(self.learned()[0], 4096)
        self.ask()
        self.assertEqual((len(self.server.lookups), self.learned()), (14, (2048, PROPS)))
        clock.advance(301)
        self.ask()
        self.assertEqual(len(self.server.lookups), 21)

    def test_what_an_error_names(self):
        """An overflow names the window."""
        error = {"type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 4000}
        body = json.dumps({"error": {"message": "it exceeds the available context size", **error}})
        self.server.script(loopback.Answer(status=400, raw=body))
        self.assertEqual(self.refused(7200), "any")
        self.assertEqual(self.learned(), (4000, NAMED))
        self.assertEqual(len(self.server.requests), 1)
        # A shorter prompt comes before another model.
        self.server.script(loopback.too_long())
        self.assertEqual(self.refused(3000, fallback_models=("small",)), "any")
        self.assertEqual(len(self.server.requests), 2)

    def test_no_room(self):
        """No model gets a request larger than its window, a fallback neither; it is named."""
        listed = [{"id": "any", "max_model_len": 9000}, {"id": "small", "max_model_len": 3000}]
        self.server.pages["/v1/models"] = {"data": listed}
        self.server.script(failure(401))
        self.assertEqual(self.refused(2980, fallback_models=("small",)), "small")
        self.assertEqual([body["model"] for body in self.server.bodies], ["any"])
        self.server.script(failure(401))
        self.assertEqual(self.ask(prompt_tokens=2900, fallback_models=("small",)).model, "small")
        self.refused(9500)
        self.assertEqual(len(self.server.requests), 3)
