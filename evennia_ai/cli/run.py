"""Start and stop a game from the command line without asking questions.

A game has started when its Server says so, not when the launcher does: the very first start
restarts the Server once, and a fault in the game's code shows only in its logs.
"""

import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from evennia_ai.cli.ports import (
    HIGHEST,
    VARIABLES,
    GamePorts,
    busy,
    game_ports,
    is_free,
    record,
    with_free_inner_ports,
)
from evennia_ai.errors import AssistantError, ConfigError
from evennia_ai.processes import is_running, kill, pids, tidy, wait_for

# As it was typed: a virtual environment may not be active.
PROGRAM = os.path.relpath(sys.argv[0])
ADMIN = "admin"
PASSWORD_VARIABLE = "EVENNIA_AI_DEMO_PASSWORD"
PASSWORD_FILE = "admin_password.txt"
READY_FILE = Path("server") / "ready"
LOGS = ("server.log", "portal.log")
# How long a game that is dead, or logs an error while it starts, may still become ready.
_GRACE_S = 15.0

_LAUNCHER = (sys.executable, "-c", "from evennia.server.evennia_launcher import main; main()")
# `evennia migrate` will not do: its exit code is 0 even when the settings cannot be loaded.
_PREPARE = """
import os, sys, django
django.setup()
from django.core.management import call_command
call_command("migrate", interactive=False, verbosity=0)
from evennia.accounts.models import AccountDB
for account in AccountDB.objects.filter(username__in=sys.argv[1:]):
    account.set_password(os.environ["EVENNIA_SUPERUSER_PASSWORD"])
    account.save()
"""


class GameError(AssistantError):
    """A game could not be started or stopped; the message holds the end of its logs."""


@dataclass(frozen=True)
class Connection:
    """How to reach a running game."""

    ports: GamePorts
    password: str | None  # of the account `admin`; None if it is unknown
    started: bool  # False if the game was running already


def start_game(
    game_dir: str | os.PathLike[str],
    environ: Mapping[str, str] = os.environ,
    say: Callable[[str], None] = print,
    timeout_s: float = 180.0,
) -> Connection:
    """Bring the database up to date, start the game and wait until it takes connections.

    The environment holds its ports and password; `say` is called with each line of progress.
    Raises `ConfigError` if one of them cannot be used, `GameError` if the game does not come up.
    """
    folder = Path(game_dir).resolve()
    old_errors, output = _tracebacks(folder), ""
    if is_running(folder):
        ports = game_ports(folder, environ)
        # A Portal without a Server for so long is no reload: its Server was killed.
        if not wait_for(lambda: "server" in pids(folder), _GRACE_S):
            say("The game's Portal runs without a Server. Starting the Server ...")
            output = _launch(folder, environ, ports)
        _wait_until_ready(folder, ports, timeout_s, output, old_errors)
        return Connection(ports, stored_password(folder), started=False)
    tidy(folder)
    ports = _startable_ports(folder, environ)
    password, is_new = admin_password(folder, environ)
    # With these Evennia creates its first account without asking.
    environ = {
        **environ,
        "EVENNIA_SUPERUSER_USERNAME": ADMIN,
        "EVENNIA_SUPERUSER_PASSWORD": password,
        "EVENNIA_SUPERUSER_EMAIL": "admin@example.com",
    }
    say("Preparing the database (half a minute) ...")
    command = [sys.executable, "-W", "ignore", "-c", _PREPARE]
    if is_new:
        command.append(ADMIN)
    code, output = _run(command, folder, environ)
    if code:
        last = output.strip().rpartition("\n")[2]
        if last.startswith("django.db.utils."):  # its traceback would only hide the reason
            why = f"{last.partition(': ')[2]}. Type `evennia-ai doctor` in its folder."
            raise GameError(f"The database of `{folder}` cannot be used: {why}")
        raise GameError(f"The database of `{folder}` could not be prepared:\n{output}")
    say("Starting the game (half a minute; the first time a minute) ...")
    (folder / READY_FILE).unlink(missing_ok=True)
    output = _launch(folder, environ, ports)
    _wait_until_ready(folder, ports, timeout_s, output, old_errors)
    return Connection(ports, password, started=True)


def stop_game(game_dir: str | os.PathLike[str], environ: Mapping[str, str] = os.environ) -> bool:
    """Stop a game, by SIGKILL if need be, and remove its pid files; returns whether it ran.

    Raises `GameError` if a process survives SIGKILL.
    """
    folder = Path(game_dir).resolve()
    ran = is_running(folder)
    if ran:
        _run([*_LAUNCHER, "stop"], folder, environ, timeout_s=40.0)
        if not wait_for(lambda: not is_running(folder), 20.0):
            kill(folder)
        if not wait_for(lambda: not is_running(folder), 10.0):
            hint = f"end its processes by hand: {pids(folder)}."
            raise GameError(f"`{folder.name}` cannot be stopped; {hint}")
    tidy(folder)
    (folder / READY_FILE).unlink(missing_ok=True)
    return ran


def stored_password(game_dir: str | os.PathLike[str]) -> str | None:
    """The admin's password from the game's folder; None if it is not there."""
    try:
        return (Path(game_dir) / PASSWORD_FILE).read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def admin_password(folder: Path, environ: Mapping[str, str]) -> tuple[str, bool]:
    """The admin's password: from the environment, the game's folder, or generated.

    Also returns whether it differs from the one in the game's folder. Raises `ConfigError` if it
    could not be typed at a telnet login.
    """
    stored = stored_password(folder)
    password = environ.get(PASSWORD_VARIABLE) or stored or secrets.token_urlsafe(9)
    if re.search(r"[\s\"|;]", password) or not password.isprintable():
        wrong = f"`{PASSWORD_VARIABLE}` must not contain spaces, quotes, `|` or `;`"
        raise ConfigError(f"{wrong}: it could not be typed at a telnet login.")
    if password != stored:
        path = folder / PASSWORD_FILE
        path.touch()
        path.chmod(0o600)  # before it holds anything; an older file may be readable to others
        path.write_text(password + "\n", encoding="utf-8")
    return password, password != stored


def is_ready(folder: Path) -> bool:
    """Whether the running Server has recorded that it is up and its world is built."""
    try:
        noted = (folder / READY_FILE).read_text(encoding="ascii").strip()
    except OSError:
        return False
    return noted == str(pids(folder).get("server"))


def log_tail(folder: Path, lines: int = 25) -> str:
    """The last lines of the game's logs, for an error message."""
    parts = []
    for name in LOGS:
        path = folder / "server" / "logs" / name
        if path.exists():
            text = path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
            parts.append("\n".join([f"--- {name}", *text]))
    return "\n".join(parts) or "The game has written no logs yet."


def _startable_ports(folder: Path, environ: Mapping[str, str]) -> GamePorts:
    """The game's ports, after checking that nothing else uses them."""
    ports = game_ports(folder, environ)
    # A game that was just killed may hold its ports for a moment.
    wait_for(lambda: not busy(ports), timeout_s=5.0)
    if taken := busy(ports):
        names = ", ".join(f"{port} ({VARIABLES[name]})" for name, port in taken.items())
        rows = (GamePorts(first, first + 1, first + 2) for first in range(4010, HIGHEST - 2, 10))
        free = next(row for row in rows if not busy(row)).public()
        values = " ".join(f"{VARIABLES[name]}={port}" for name, port in free.items())
        start = f"{PROGRAM} start {os.path.relpath(folder)}"
        raise ConfigError(
            f"Something else listens on port {names}. Stop it, or start the game on ports that are "
            f"free:\n  {values} {start}"
        )
    ports = with_free_inner_ports(ports)
    record(folder, ports)
    return ports


def _launch(folder: Path, environ: Mapping[str, str], ports: GamePorts) -> str:
    """Run `evennia start` until there is a Server; returns what the last run printed.

    On a busy machine the launcher gives up on a Portal that takes more than ten seconds to load.
    When the Portal listens, another run starts the Server.
    """
    output = ""
    for _ in range(3):
        _, output = _run([*_LAUNCHER, "start"], folder, environ)
        gave_up = "timed out" in output and "server" not in pids(folder)
        if not gave_up or not wait_for(lambda: not is_free(ports.amp), timeout_s=60.0):
            break
    return output


def _run(
    command: list[str], folder: Path, environ: Mapping[str, str], timeout_s: float = 300.0
) -> tuple[int, str]:
    """Run a command in the game's folder, without a terminal.

    The output goes through a file: daemons that the command starts would keep a pipe open.
    Returns the exit code (1 if it took too long) and the end of what it printed.
    """
    # This interpreter's `twistd` comes first; a virtual environment may not be active.
    scripts = str(Path(sys.executable).parent)
    env = {
        **environ,
        "PATH": os.pathsep.join([scripts, environ.get("PATH", os.defpath)]),
        "DJANGO_SETTINGS_MODULE": "server.conf.settings",
    }
    with tempfile.TemporaryFile() as output:
        try:
            code = subprocess.run(
                command,
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            code = 1
            output.write(f"It took more than {timeout_s:.0f} s.\n".encode())
        output.seek(0)
        return code, output.read().decode("utf-8", "replace")[-4000:]


def _wait_until_ready(
    folder: Path, ports: GamePorts, timeout_s: float, said: str, old_errors: int
) -> None:
    """Wait until a game answers; not as long once it is dead or has logged a new error.

    `said` is what the launcher printed.
    """
    end = time.monotonic() + timeout_s
    while not is_ready(folder) or is_free(ports.telnet):
        now = time.monotonic()
        if not is_running(folder) or _tracebacks(folder) > old_errors:
            end = min(end, now + _GRACE_S)
        if now > end:
            logged = f"{said}{log_tail(folder)}"
            raise GameError(f"The game does not answer on port {ports.telnet}.\n{logged}")
        time.sleep(0.3)


def _tracebacks(folder: Path) -> int:
    """How many tracebacks the Server's log holds."""
    try:
        log = (folder / "server" / "logs" / LOGS[0]).read_bytes()
    except OSError:
        return 0
    return log.count(b"Traceback")
