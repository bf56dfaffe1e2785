"""Finding model servers on this machine: four programs' pages, and servers that misbehave."""

import os
import unittest
from unittest import mock

from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.servers import LIMIT_S, MOST_MODELS, find_servers
from evennia_ai.llm_interaction.values import ModelRequest
from tests.local_servers import ALL, LM_STUDIO, VLLM, hang, moved, serving, timed, trickle
from tests.waiting import wait_for

NO_LISTS = (
    b"<!doctype html><title>It works</title>",
    b"",
    b"\xff\xfe",
    b"[" * 100_000,
    [{"id": "x"}],
    {"models": []},
    {"data": "none"},
    {"data": {"id": "x"}},
    "x",
    lambda handler: handler.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n"),
    lambda handler: handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"),
    lambda handler: None,
    moved,
)


class TestFindServers(unittest.TestCase):
    def test_the_settings_of_each_program_lead_to_its_model(self):
        """Each is found by its list, and with the printed lines its model answers."""
        with serving(*ALL) as servers:
            found = find_servers()
            names = ["Ollama", "llama.cpp's server", "LM Studio", "vLLM"]
            self.assertEqual([server.name for server in found], names)
            self.assertEqual([len(server.models) for server in found], [2, 1, 1, 1])
            for server, local in zip(servers, found, strict=True):
                with self.subTest(local.name):
                    self.check_lines(server, local.settings(local.models[0]))

    def check_lines(self, server, lines):
        values = {}
        exec("\n".join(lines), values)
        model = values["EVENNIA_AI_LLM_MODEL"]
        client = ModelClient(api_base=values["EVENNIA_AI_LLM_API_BASE"], home_model=model)
        said = ({"role": "user", "content": "Hi"},)
        reply = wait_for(client.complete(ModelRequest(model=model, messages=said)), 60)
        self.assertEqual(reply.content, "Good evening.")
        [asked] = {body["model"] for _, body in server.requests if body and "messages" in body}
        self.assertEqual(asked, server.pages["/v1/models"]["data"][0]["id"])

    def test_servers_that_hang_delay_nobody_else(self):
        """One says nothing, one sends a byte now and then: the search ends all the same."""
        silent, slow = {"/v1/models": hang}, {"/v1/models": trickle}
        with serving(silent, slow, LM_STUDIO):
            found, seconds = timed(find_servers)
        self.assertEqual([server.name for server in found], ["LM Studio"])
        self.assertLess(seconds, LIMIT_S + 1)

    def test_what_is_no_list_of_models_is_no_server(self):
        """Pages of other programs, damaged ones, and a redirect, which is not followed."""
        for page in NO_LISTS:
            with self.subTest(page=str(page)[:40]), serving({"/v1/models": page}) as [server]:
                self.assertEqual(find_servers(), [])
                self.assertEqual(len(server.requests), 1)

    def test_names_that_cannot_be_typed_are_left_out(self):
        """Of a list only such names count as models, and not thousands of them."""
        odd = [5, None, {}, {"id": 5}, {"id": ""}, {"id": "x" * 500}, {"id": "a\x1b[2Jb"}]
        good = [{"id": f"m'{number}"} for number in range(2 * MOST_MODELS)]
        with serving({"/v1/models": {"data": odd + good}}):
            [server] = find_servers()
        self.assertEqual(server.models, tuple(f"ollama_chat/m'{n}" for n in range(MOST_MODELS)))
        line, _ = server.settings(server.models[0])
        self.assertEqual(line, """EVENNIA_AI_LLM_MODEL = "ollama_chat/m'0\"""")

    def test_a_server_without_models(self):
        """Some list null where they have none."""
        for none in (None, []):
            with serving({"/v1/models": {"object": "list", "data": none}}):
                [server] = find_servers()
                self.assertEqual(server.models, ())

    def test_no_proxy_is_asked(self):
        """A proxy of the environment stands before no server of this machine."""
        with serving(VLLM) as [server]:
            proxy = dict.fromkeys(("http_proxy", "HTTP_PROXY"), "http://127.0.0.1:1")
            with mock.patch.dict(os.environ, {**proxy, "no_proxy": "", "NO_PROXY": ""}):
                self.assertEqual(len(find_servers()), 1)
            self.assertEqual(server.requests, [("/v1/models", None)])

    def test_nobody_listens(self):
        """The usual case is quick."""
        with serving(VLLM) as [server]:
            server.shutdown()
            server.server_close()
            found, seconds = timed(find_servers)
        self.assertEqual(found, [])
        self.assertLess(seconds, LIMIT_S)
