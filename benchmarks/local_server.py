"""Serve a model's GGUF file on this machine with llama.cpp, for benchmarks with a real model.

    python -m benchmarks.local_server WEIGHTS.gguf [--port 8080] [--window 8192]

Needs `pip install '.[bench]'`. It speaks OpenAI's protocol and serves until it is killed.
"""

import argparse
import importlib.util
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WINDOW = 8_192


@contextmanager
def serving(server: str) -> Iterator[str]:
    """The address of a server as it is, or that of one for a GGUF file, which ends with the block.

    Prints why, and ends the program, where the file cannot be served.
    """
    if server.startswith("http"):
        yield server
        return
    if importlib.util.find_spec("xllamacpp") is None:
        print("skipped: a GGUF file needs `pip install '.[bench]'`")
        sys.exit(0)
    if not Path(server).is_file():
        print(f"skipped: `{server}` is neither an address nor a file")
        sys.exit(0)
    command = [sys.executable, "-m", "benchmarks.local_server", server, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights")
    parser.add_argument("--port", type=int, default=8080, help="0 for a free one")
    parser.add_argument("--window", type=int, default=WINDOW)
    asked = parser.parse_args()
    from xllamacpp import CommonParams, Server

    params = CommonParams()
    params.model.path, params.use_jinja = asked.weights, True
    params.n_ctx, params.n_parallel = asked.window, 1
    params.hostnames, params.port = ["127.0.0.1"], asked.port
    server = Server(params)  # it serves from threads of its own
    print(f"{server.listening_address.rstrip('/')}/v1", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
