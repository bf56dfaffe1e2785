"""`evennia-ai model pull` against a server on loopback that speaks the hub's protocol."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from evennia_ai.llm_interaction.local_models.files import installed, place_of
from tests.gguf_files import header

ROOT = Path(__file__).resolve().parents[3]
NAME = "hf:owner/Small-GGUF:Q4_K_M"
WEIGHTS = header() + bytes(range(256)) * 80_000  # the client takes 10 MB at a time
# The client reads the hub's address when it is imported: each pull is a process.
PULL = """
import sys, time
from pathlib import Path
from evennia_ai.errors import LocalModelError
from evennia_ai.llm_interaction.local_models import pull
folder, room, memory, *names = sys.argv[1:]
time.sleep = lambda seconds: None  # the client pauses before it tries again
room, memory = int(room), int(memory)
if room:
    pull.shutil.disk_usage = lambda path: type("Usage", (), {"free": room})
for name in names:
    try:
        print(pull.pull(name, Path(folder), free=lambda: memory or None))
    except LocalModelError as error:
        print("refused:", error)
"""


class Hub(BaseHTTPRequestHandler):
    """A repository with two files."""

    def do_GET(self):
        self.server.requests.append((self.path, self.headers.get("Range")))
        if self.path.startswith("/api/models/owner/Small-GGUF"):
            digest = hashlib.sha256(WEIGHTS).hexdigest()
            lfs = {"size": len(WEIGHTS), "sha256": digest, "pointerSize": 135}
            files = [
                {"rfilename": f"Small-{kind}.gguf", "size": len(WEIGHTS), "lfs": lfs}
                for kind in ("Q4_K_M", "Q8_0", "F16-00001-of-00002")
            ]
            body = json.dumps({"id": "owner/Small-GGUF", "siblings": files}).encode()
            return self._send(200, body)
        if not self.path.startswith("/owner/Small-GGUF/resolve/main/Small-Q4_K_M.gguf"):
            return self._send(404, b"{}")
        begin = int((self.headers.get("Range") or "bytes=0-")[6:].rstrip("-"))
        body = self.server.weights[begin:]
        extra = {"Content-Range": f"bytes {begin}-{len(WEIGHTS) - 1}/{len(WEIGHTS)}"}
        return self._send(206 if begin else 200, body, extra if begin else {})

    do_HEAD = do_GET

    def _send(self, status, body, headers=None):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            sent = body[: self.server.most] if "resolve" in self.path else body
            self.wfile.write(sent)
            if len(sent) < len(body):
                self.server.most = self.server.next_most
                self.close_connection = True

    def log_message(self, *args):
        """Quiet."""


class TestPull(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory())) / "ai_models"
        self.hub = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
        self.hub.requests, self.hub.weights = [], WEIGHTS
        self.hub.most = self.hub.next_most = len(WEIGHTS)
        threading.Thread(target=self.hub.serve_forever, daemon=True).start()
        self.addCleanup(self.hub.server_close)
        self.addCleanup(self.hub.shutdown)

    def pull(self, *names, room=0, memory=0):
        """What a pull of one model prints on its last line, and of more on all lines."""
        env = {**os.environ, "HF_ENDPOINT": f"http://127.0.0.1:{self.hub.server_port}"}
        env |= {"HF_HUB_DOWNLOAD_TIMEOUT": "5", "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1"}
        command = [sys.executable, "-c", PULL, self.folder, str(room), str(memory)]
        command += names or [NAME]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        self.assertNotIn("Traceback", done.stderr)
        return done.stdout if names else done.stdout.strip().rpartition("\n")[2]

    def test_a_pulled_model_is_installed(self):
        """The file of the quantisation arrives whole under its name; nothing else is left."""
        shown = self.pull()
        self.assertEqual(shown, str(place_of(NAME, self.folder)))
        self.assertEqual(place_of(NAME, self.folder).read_bytes(), WEIGHTS)
        self.assertEqual([path.suffix for path in self.folder.iterdir()], [".gguf"])
        self.assertIn(NAME, installed(self.folder))
        asked = len(self.hub.requests)
        self.assertEqual(self.pull(), shown)
        self.assertEqual(len(self.hub.requests), asked)

    def test_an_interrupted_pull_goes_on(self):
        """What had arrived is kept and not asked for again."""
        self.hub.most, self.hub.next_most = 15_000_000, 0
        shown = self.pull()
        self.assertIn("are kept", shown)
        part = place_of(NAME, self.folder).with_suffix(".part")
        have = part.stat().st_size
        self.assertGreater(have, 0)
        self.hub.requests.clear()
        self.hub.most = self.hub.next_most = len(WEIGHTS)
        self.pull()
        self.assertEqual(place_of(NAME, self.folder).read_bytes(), WEIGHTS)
        self.assertIn(f"bytes={have}-", [ranged for _, ranged in self.hub.requests])

    def test_a_wrong_checksum_is_refused(self):
        """Damaged weights are deleted; the next pull gets them again."""
        self.hub.weights = WEIGHTS[:-1] + b"!"
        self.assertIn("wrong checksum", self.pull())
        self.assertEqual(list(self.folder.iterdir()), [])
        self.hub.weights = WEIGHTS
        self.assertNotIn("refused", self.pull())

    def test_what_does_not_fit_is_refused_with_the_figures(self):
        """Disk and memory are compared before a byte is fetched."""
        disk = "needs 20 MB of disk space and 200 MB to spare; 100 MB are free"
        self.assertIn(disk, self.pull(room=100_000_000))
        memory = "needs more than 20 MB of memory; 15 MB are free"
        self.assertIn(memory, self.pull(memory=15_000_000))
        self.assertFalse(any("resolve" in path for path, _ in self.hub.requests))

    def test_other_names_are_refused(self):
        """An unknown quantisation is answered with those there are, an unknown repository too."""
        of_one = (f"hf:owner/Small-GGUF:{wanted}" for wanted in ("Q2_K", "F16"))
        q2, f16, none, odd = self.pull(*of_one, "hf:owner/None:Q4", "hf:owner:Q4").splitlines()
        self.assertIn("Small-Q8_0.gguf", q2)
        self.assertIn("no file of one part", f16)
        self.assertIn("does not show `owner/None`", none)
        self.assertIn("is not the name of a model", odd)
