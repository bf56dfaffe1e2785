"""A real game for a test: made from the template, started on free ports, gone at the end."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import evennia

from evennia_ai import processes
from evennia_ai.cli import run
from evennia_ai.cli.new import create_game
from evennia_ai.cli.ports import game_ports
from tests.e2e.ports import free_ports
from tests.e2e.telnet import Telnet

REPOSITORY = Path(__file__).resolve().parents[2]
PASSWORD = "correct-horse-9"


def environment(base, env):
    """This process's environment with free ports, without settings of its own tests or a model.

    Args:
        base: A folder without Python modules.
        env: Variables added to it.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("EVENNIA", "DJANGO_"))
    }
    telnet, web, websocket = free_ports(3)
    return {
        **kept,
        # Evennia's launcher overwrites the second entry of sys.path, hence the first one.
        "PYTHONPATH": os.pathsep.join([str(base), str(REPOSITORY)]),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")]),
        "TELNET_PORT": str(telnet),
        "WEBSERVER_PORT": str(web),
        "WEBSOCKET_PORT": str(websocket),
        run.PASSWORD_VARIABLE: PASSWORD,
        # The players of tests and benchmarks do not pause between their lines.
        "EVENNIA_AI_SPEND_CAPS": '{"player": {"calls_minute": 100000}}',
        **env,
    }


class Game:
    """A game in a folder of its own; use it in a ``with`` statement.

    Args:
        env: Variables added to the game's environment.
        settings: Python source appended to its settings.
        files: Paths in the game's folder, and the texts to write there.
        keep: Leave the folder where it is at the end.
        start: Start it on entering.
    """

    def __init__(self, env=None, settings="", files=None, keep=False, start=True):
        self.base = Path(tempfile.mkdtemp(prefix="evennia-ai-game-"))
        self.folder = self.base / "game"
        self.environ = environment(self.base, env or {})
        self._settings = settings
        self._files = files or {}
        self._keep = keep
        self._start = start

    def __enter__(self):
        try:
            create_game(self.folder)
            with open(self.folder / "server/conf/settings.py", "a", encoding="utf-8") as file:
                file.write("\n" + self._settings + "\n")
            for path, text in self._files.items():
                (self.folder / path).write_text(text, encoding="utf-8")
            if self._start:
                self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info):
        try:
            self.stop()
        finally:
            processes.kill(self.folder)
            if not self._keep:
                shutil.rmtree(self.base, ignore_errors=True)

    @property
    def ports(self):
        """The game's ports."""
        return game_ports(self.folder, self.environ)

    def start(self, timeout_s=180.0):
        """Start it and wait until it takes connections."""
        return run.start_game(self.folder, self.environ, lambda line: None, timeout_s)

    def stop(self):
        """Stop it as its owner would."""
        return run.stop_game(self.folder, self.environ)

    def restart(self):
        """Stop it and start it again."""
        self.stop()
        return self.start()

    def kill_hard(self):
        """End Server and Portal with SIGKILL, as a crash of the machine would."""
        processes.kill(self.folder)
        self.wait_until(lambda: not processes.is_running(self.folder), 10)

    def kill_server(self):
        """End the Server alone with SIGKILL; Portal and its connections live on."""
        os.kill(processes.pids(self.folder)["server"], signal.SIGKILL)
        self.wait_for_death()

    def wait_until(self, condition, timeout_s=60.0):
        """Wait until something is so; the error shows the logs."""
        if not processes.wait_for(condition, timeout_s):
            raise AssertionError(f"The game is not as it should be.\n{self.logs()}")

    def wait_for_death(self):
        """Wait until there is no Server, however it ends."""
        self.wait_until(lambda: not processes.pids(self.folder).get("server"))

    def start_server(self):
        """Start the Server beside a Portal that lives, by the command Portal itself would use.

        It takes less than half the time of `evennia start`, which loads Evennia in a process of
        its own first. Returns the new process's id once its world is built.
        """
        self.spawn_server()
        self.wait_until(lambda: run.is_ready(self.folder))
        return processes.pids(self.folder)["server"]

    def spawn_server(self):
        """Start the Server and wait for nothing."""
        processes.tidy(self.folder)
        command = [
            str(Path(sys.executable).parent / "twistd"),
            f"--python={Path(evennia.__file__).parent / 'server' / 'server.py'}",
            "--logger=evennia.utils.logger.GetServerLogObserver",
            f"--pidfile={processes.pid_file(self.folder, 'server')}",
        ]
        path = os.pathsep.join([str(self.folder), self.environ["PYTHONPATH"]])
        with open(self.folder / "server" / "logs" / "server.log", "a", encoding="utf-8") as log:
            self._run(command, 300, log, PYTHONPATH=path).check_returncode()

    def _run(self, command, timeout_s, output, errors=subprocess.STDOUT, **env):
        """Run something in the game's folder."""
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**self.environ, "DJANGO_SETTINGS_MODULE": "server.conf.settings", **env},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def reload(self, timeout_s=90.0):
        """`evennia reload`, and wait until a new Server says that it is up."""
        before = processes.pids(self.folder).get("server")
        self.evennia("reload")

        def is_new():
            now = processes.pids(self.folder).get("server")
            return now not in (None, before) and run.is_ready(self.folder)

        self.wait_until(is_new, timeout_s)

    def evennia(self, *args, timeout_s=120.0):
        """Run an `evennia` command in the game's folder; returns what it printed."""
        code = "from evennia.server.evennia_launcher import main; main()"
        with tempfile.TemporaryFile("w+") as output:
            self._run([sys.executable, "-c", code, *args], timeout_s, output)
            output.seek(0)
            return output.read()

    def python(self, source, timeout_s=120.0):
        """Run source with Django set up in the game's folder; returns what it printed.

        A process beside the game: it sees the database, not the running Server's caches.
        """
        setup = "import django; django.setup(); import evennia; evennia._init()\n"
        command = [sys.executable, "-W", "ignore", "-c", setup + source]
        done = self._run(command, timeout_s, subprocess.PIPE, subprocess.PIPE)
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)
        return done.stdout

    def admin(self, timeout_s=20.0):
        """A telnet connection logged in as the owner."""
        player = Telnet(self.ports.telnet, timeout_s=timeout_s)
        player.login(run.ADMIN, self.environ[run.PASSWORD_VARIABLE])
        return player

    def player(self, name, password="quite-a-long-1", timeout_s=20.0):
        """A telnet connection of a new player."""
        player = Telnet(self.ports.telnet, timeout_s=timeout_s)
        player.create(name, password)
        return player

    def logs(self, lines=60):
        """The end of the game's logs."""
        return run.log_tail(self.folder, lines)

    def log(self, name="server.log"):
        """The whole of one log."""
        path = self.folder / "server" / "logs" / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
