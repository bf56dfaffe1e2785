"""A model's process with `LoopbackServer` in place of llama.cpp: ``python -m tests.fake_engine``.

It takes the same arguments as `evennia_ai.llm_interaction.local_models.process`.
"""

import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps

from evennia_ai.llm_interaction.local_models import process


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self._send(200, {"status": "ok"})

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Authorization") != f"Bearer {self.server.key}":
            return self._send(401, {"error": {"message": "no key"}})
        message = {"role": "assistant", "content": "Good evening."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        return self._send(
            200,
            {
                "id": "1",
                "object": "chat.completion",
                "created": 1,
                "model": self.server.model,
                "choices": [choice],
                "usage": usage,
            },
        )

    def _send(self, status, value):
        body = dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve(job, weights):
    """Answer every request with a greeting."""
    if "broken" in job.model:
        raise ValueError("this model cannot be loaded")
    server = ThreadingHTTPServer((process.LOOPBACK, 0), _Handler)
    server.key, server.model = job.key, job.model
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("llama_model_loader: loaded", flush=True)
    return server.server_address[1]


if __name__ == "__main__":
    if "mute" in sys.argv[2]:
        os._exit(9)
    code = process.main(engine=serve)
    time.sleep(0.1)
    os._exit(code)
