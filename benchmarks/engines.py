"""The servers that a larger game uses, for benchmarks: PostgreSQL, model servers, LiteLLM's proxy.

All of them listen on this machine alone, keep what they store in a folder that goes with them, and
tell what they did.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import psycopg

from tests import postgres
from tests.e2e.ports import free_ports

KEY = "sk-bench"
# LiteLLM imports for half a minute, longer beside other work.
START_S = 300.0
# The name that the games ask for, and that of the two servers behind it.
MODEL, SERVED = "tavern", "openai/loopback"
COUNTED = ("xact_commit", "tup_inserted", "tup_updated", "tup_deleted", "deadlocks")


class ModelServers:
    """Scripted model servers, each a process of its own (`benchmarks.talker`).

    Args:
        count: How many.
        slots: How many requests each of them answers at a time.
    """

    def __init__(self, count: int, slots: int):
        self.ports = free_ports(count)
        self._slots = slots
        self._before: list[dict[str, int]] = [{} for _ in self.ports]
        self._processes = [self._start(port) for port in self.ports]

    def _start(self, port: int) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "benchmarks.talker", "--port", str(port)]
        command += ["--slots", str(self._slots), "--exact"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()  # it serves
        return process

    @property
    def urls(self) -> list[str]:
        """Their addresses."""
        return [f"http://127.0.0.1:{port}/v1" for port in self.ports]

    def kill(self, number: int) -> None:
        """End one at once, with all that it is answering."""
        self._before[number] = self._did(number)
        self._processes[number].kill()
        self._processes[number].wait()

    def restart(self, number: int) -> None:
        """Start one again that was killed."""
        self._processes[number] = self._start(self.ports[number])

    def _did(self, number: int) -> dict[str, int]:
        now = _get(self.ports[number], "/figures")
        return {name: count + self._before[number].get(name, 0) for name, count in now.items()}

    def figures(self) -> list[dict[str, int]]:
        """Of each: requests that came, and how many of them waited for a slot."""
        return [self._did(number) for number in range(len(self.ports))]

    def stop(self) -> None:
        """End all of them."""
        for process in self._processes:
            process.kill()
            process.wait()


def _get(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as page:
        return json.load(page)


class Proxy:
    """LiteLLM's proxy before model servers.

    Args:
        program: The program `litellm` of an environment with `litellm[proxy]`.
        urls: The servers' addresses.
    """

    def __init__(self, program: str, urls: list[str]):
        self._folder = tempfile.TemporaryDirectory(prefix="evennia-ai-proxy-")
        (self.port,) = free_ports(1)
        config = Path(self._folder.name, "litellm.yaml")
        config.write_text(json.dumps(config_of(urls)), encoding="utf-8")  # JSON is YAML
        command = [program, "--config", str(config), "--host", "127.0.0.1"]
        environ = {"LITELLM_MASTER_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        self._log = Path(self._folder.name, "log")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "--port", str(self.port)],
                env={**os.environ, **environ},
                cwd=self._folder.name,
                stdout=log,
                stderr=log,
            )
        self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + START_S
        while True:
            try:
                _get(self.port, "/health/liveliness")
                return
            except OSError as error:
                if self._process.poll() is not None or time.monotonic() > end:
                    said = self._log.read_text(errors="replace")[-2000:]
                    self.stop()
                    raise RuntimeError(f"the proxy did not start: {said}") from error
                time.sleep(0.5)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


def config_of(urls: list[str]) -> dict[str, Any]:
    """The proxy's configuration: one model, served by all of these servers.

    A request that fails goes to another server at once, and a server that failed rests a while.
    """
    served = [{"model": SERVED, "api_base": url, "api_key": "none"} for url in urls]
    return {
        "model_list": [{"model_name": MODEL, "litellm_params": each} for each in served],
        "router_settings": {"num_retries": 2, "allowed_fails": 1, "cooldown_time": 30},
        "general_settings": {"master_key": "os.environ/LITELLM_MASTER_KEY"},
    }


class Database:
    """A PostgreSQL with pgvector, and what each of its databases did."""

    def __init__(self) -> None:
        self.server = postgres.Server()
        self.most_connections = 0

    def settings(self, name: str, is_default: bool, has_memory: bool) -> str:
        """Make a database; returns settings of a game that uses it.

        Args:
            name: The database's name.
            is_default: Whether the game's own tables are there.
            has_memory: Whether its long-term memory is there.
        """
        url = self.server.new_database(name)
        database = {"ENGINE": "django.db.backends.postgresql", "NAME": name, "USER": postgres.USER}
        database["HOST"] = str(self.server.folder)
        address = f"{url}&options=-c%20hnsw.iterative_scan%3Dstrict_order"
        store = {"provider": "pgvector", "config": {"connection_string": address}}
        lines = [f'DATABASES = {{"default": {database!r}}}'] if is_default else []
        if has_memory:
            lines.append(f'EVENNIA_AI_MEM0_CONFIG = {{"vector_store": {store!r}}}')
        return "\n".join(lines)

    def look(self) -> None:
        """Note how many connections there are, if there were never more."""
        query = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        ((count,),) = self._rows(postgres.USER, query)
        self.most_connections = max(self.most_connections, count - 1)

    def figures(self, name: str) -> dict[str, Any]:
        """What a database did and holds."""
        ((*counts, size),) = self._rows(
            name,
            f"SELECT {', '.join(COUNTED)}, pg_database_size(datname) / 1000000"
            " FROM pg_stat_database WHERE datname = current_database()",
        )
        tables = self._rows(name, "SELECT relname, n_live_tup FROM pg_stat_user_tables")
        rows = {table: count for table, count in tables if count}
        return {**dict(zip(COUNTED, counts, strict=True)), "megabytes": size, "rows": rows}

    def _rows(self, name: str, query: str) -> list[Any]:
        with psycopg.connect(self.server.url(name)) as connection:
            return connection.execute(query).fetchall()

    def stop(self) -> None:
        """End it and delete what it holds."""
        self.server.stop()
