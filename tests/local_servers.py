"""Servers on loopback whose pages are those of Ollama, llama.cpp, LM Studio and vLLM."""

import json
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

from evennia_ai.llm_interaction import servers

_KINDS = servers.KINDS
_CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "any",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Good evening."},
        }
    ],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
}
_OLLAMA_CHAT = {
    "model": "qwen2.5:1.5b",
    "created_at": "2026-01-01T00:00:00Z",
    "message": {"role": "assistant", "content": "Good evening."},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 9,
    "eval_count": 3,
}


def _listed(*names, **fields):
    rows = [{"id": name, "object": "model", "created": 1, **fields} for name in names]
    return {"object": "list", "data": rows}


OLLAMA = {
    "/v1/models": _listed("qwen2.5:1.5b", "llama3.2:latest", owned_by="library"),
    "/api/chat": _OLLAMA_CHAT,
    "/api/show": {"details": {}, "model_info": {}, "capabilities": ["completion"]},
}
LLAMA_CPP = {
    "/v1/models": {
        "models": [{"name": "qwen.gguf", "model": "qwen.gguf", "type": "model"}],
        **_listed("/srv/qwen.gguf", owned_by="llamacpp", meta={"n_ctx_train": 32768}),
    },
    "/v1/chat/completions": _CHAT,
}
LM_STUDIO = {
    "/v1/models": _listed("qwen2.5-7b-instruct", owned_by="organization_owner"),
    "/v1/chat/completions": _CHAT,
}
VLLM = {
    "/v1/models": _listed("Qwen/Qwen2.5-1.5B-Instruct", owned_by="vllm", max_model_len=32768),
    "/v1/chat/completions": _CHAT,
}
ALL = (OLLAMA, LLAMA_CPP, LM_STUDIO, VLLM)


def hang(handler):
    """Say nothing for longer than anybody waits."""
    handler.server.ends.wait(20)


def trickle(handler):
    """Send a byte of the head now and then, for longer than anybody waits."""
    for _ in range(200):
        handler.wfile.write(b"H")
        if handler.server.ends.wait(0.1):
            return


def moved(handler):
    """Send a caller to another address of this server."""
    handler.send_response(302)
    handler.send_header("Location", "/elsewhere")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        """Print nothing."""

    def do_GET(self):
        self.answer(None)

    def do_POST(self):
        self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def answer(self, body):
        self.server.requests.append((self.path, body))
        page = self.server.pages.get(self.path)
        if callable(page):
            page(self)
            return
        raw = page if isinstance(page, bytes) else json.dumps(page).encode()
        self.send_response(404 if page is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


class ModelServer(ThreadingHTTPServer):
    """A server with pages by path: values of JSON, bytes, or functions of the handler."""

    daemon_threads = True

    def __init__(self, pages):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages, self.requests, self.ends = pages, [], threading.Event()
        threading.Thread(target=self.serve_forever, args=[0.02], daemon=True).start()

    def handle_error(self, request, client_address):
        """A client that left is none of the tests' business."""

    def __exit__(self, *_):
        self.ends.set()
        self.shutdown()
        self.server_close()


@contextmanager
def serving(*pages):
    """Serve pages at the ports where the first kinds of servers are looked for; the servers."""
    with ExitStack() as stack:
        running = [stack.enter_context(ModelServer(each)) for each in pages]
        pairs = zip(_KINDS, running, strict=False)
        kinds = tuple(replace(kind, port=server.server_port) for kind, server in pairs)
        stack.enter_context(mock.patch.object(servers, "KINDS", kinds))
        yield running


def timed(function):
    """What a function returns, and the seconds it took."""
    began = time.monotonic()
    return function(), time.monotonic() - began
