"""Traces of model calls, sent to a collector by LiteLLM's callback."""

import os
import subprocess
import sys
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import ModuleType

from evennia_ai.llm_interaction.tracing import Tracing, missing_package
from tests.loopback import Answer, LoopbackServer

SECRET = "the-cellar-key-is-under-the-stone"
REPLY = "I-never-tell-of-the-stone"
CALL = f"""
import sys
from twisted.internet import task
from twisted.internet.defer import inlineCallbacks
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.tracing import Tracing
from evennia_ai.llm_interaction.values import ModelRequest

@inlineCallbacks
def main(reactor):
    tracing = Tracing.from_setting(["otel", *sys.argv[2:]])
    client = ModelClient(sys.argv[1], "none", "openai/m", tracing=tracing)
    yield client.warm_up()
    said = ({{"role": "user", "content": {SECRET!r}}},)
    reply = yield client.complete(ModelRequest(messages=said, model="openai/m", timeout_s=60.0))
    print(reply.content)
    yield task.deferLater(reactor, 2.0)

task.react(main)
"""


class Collector:
    """A server that takes traces by OTLP over HTTP and keeps what it got."""

    def __init__(self) -> None:
        self.got: list[tuple[str, bytes]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler):  # noqa: N802, N805 - of `http.server`
                length = int(handler.headers.get("Content-Length", 0))
                self.got.append((handler.path, handler.rfile.read(length)))
                handler.send_response(200)
                handler.end_headers()

            def log_message(handler, *args):  # noqa: N805
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1/traces"


class TestTracing(unittest.TestCase):
    """Off by default, without texts by default."""

    def test_settings(self):
        """Only known callbacks are switched on, and texts by their name alone."""
        self.assertEqual(Tracing.from_setting(["nobody", "texts"]), Tracing((), True))
        self.assertFalse(Tracing.from_setting(["otel"]).texts)

    def test_lists_of_litellm(self):
        """Langfuse's callback stands where LiteLLM looks for it; texts stay here by default."""
        litellm = ModuleType("litellm")
        Tracing(("otel", "langfuse")).switch_on(litellm)
        self.assertEqual(litellm.callbacks, ["otel"])
        self.assertEqual(litellm.success_callback, ["langfuse"])
        self.assertEqual(litellm.failure_callback, ["langfuse"])
        self.assertTrue(litellm.turn_off_message_logging)
        Tracing(("otel",), texts=True).switch_on(litellm)
        self.assertFalse(litellm.turn_off_message_logging)
        Tracing((), texts=True).switch_on(litellm)
        self.assertTrue(litellm.turn_off_message_logging)

    @unittest.skipUnless(not missing_package("otel"), "the extra `otel` is not installed")
    def test_a_collector(self):
        """A call reaches the collector, without its texts; with them if the setting says so."""
        for texts in (False, True):
            with self.subTest(texts=texts), LoopbackServer(lambda _: Answer(REPLY)) as model:
                collector = Collector()
                done = subprocess.run(
                    [sys.executable, "-W", "ignore", "-c", CALL, model.url, str(texts)],
                    env={
                        **os.environ,
                        "OTEL_EXPORTER": "otlp_http",
                        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.address,
                        "OTEL_BSP_SCHEDULE_DELAY": "200",
                    },
                    capture_output=True,
                    text=True,
                    timeout=180,
                    check=False,
                )
                collector.server.shutdown()
                self.assertIn(REPLY, done.stdout, done.stderr)
                sent = b"".join(body for _, body in collector.got)
                self.assertIn(b"openai", sent, done.stderr)
                for text in (SECRET, REPLY):
                    self.assertEqual(text.encode() in sent, texts)
                self.assertNotIn(b"rehearsal", sent)
