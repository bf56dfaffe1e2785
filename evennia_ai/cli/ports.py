"""Which ports a game listens on, stored so that every process of the game agrees on them.

Players use three ports: telnet, web and websocket. Evennia needs two more on loopback: between
its Portal and its Server (AMP), and for the Server's half of the web site. If the three differ
from Evennia's defaults, the two move too, so that several games run on one machine. The choice is
stored in ``server/ports.json``: a later ``evennia reload`` may lack the variables.
"""

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from evennia_ai.errors import ConfigError
from evennia_ai.processes import is_running

VARIABLES = {"telnet": "TELNET_PORT", "webserver": "WEBSERVER_PORT", "websocket": "WEBSOCKET_PORT"}
LOOPBACK = "127.0.0.1"
HIGHEST = 65535


@dataclass(frozen=True)
class GamePorts:
    """The five TCP ports of a game; the defaults are Evennia's own."""

    telnet: int = 4000
    webserver: int = 4001
    websocket: int = 4002
    internal: int = 4005
    amp: int = 4006

    def public(self) -> dict[str, int]:
        """The ports players use, by name."""
        return {name: getattr(self, name) for name in VARIABLES}


def game_ports(
    game_dir: str | os.PathLike[str], environ: Mapping[str, str] = os.environ
) -> GamePorts:
    """The ports of a game; called by the game's settings in each of its processes.

    The environment overrides the stored ports, and those override Evennia's defaults. While the
    game runs only the stored ports count: its Portal is listening on them. Raises `ConfigError` if
    a variable is no port number, or two are the same.
    """
    recorded = load(game_dir)
    if recorded and is_running(game_dir):
        return recorded
    ports = _wanted(environ, recorded or GamePorts())
    if ports != recorded:
        ports = with_free_inner_ports(ports)
        record(game_dir, ports)
    return ports


def with_free_inner_ports(ports: GamePorts) -> GamePorts:
    """The same public ports, with the two inner ones moved to free ones."""
    taken = set(ports.public().values())
    internal = _next_free(ports.internal, taken)
    return replace(ports, internal=internal, amp=_next_free(ports.amp, {*taken, internal}))


def free_public_ports(lowest: int) -> GamePorts:
    """Ports whose three public ones are free and in a row, as Evennia's, from `lowest` upwards."""
    for telnet in range(lowest, HIGHEST - len(VARIABLES), 10):
        ports = GamePorts(telnet, telnet + 1, telnet + 2)
        if not busy(ports):
            return ports
    raise ConfigError("No free ports were found on this machine: stop some servers.")


def busy(ports: GamePorts) -> dict[str, int]:
    """The public ports that are in use, by name."""
    return {name: port for name, port in ports.public().items() if not is_free(port)}


def is_free(port: int) -> bool:
    """Whether a server could listen on a loopback port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def load(game_dir: str | os.PathLike[str]) -> GamePorts | None:
    """The stored ports; None if there are none, or they cannot be read."""
    try:
        raw = json.loads(_path(game_dir).read_text(encoding="utf-8"))
        return GamePorts(**{field.name: int(raw[field.name]) for field in fields(GamePorts)})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def record(game_dir: str | os.PathLike[str], ports: GamePorts) -> None:
    """Store the ports, by a rename, so that no process reads an incomplete file."""
    path = _path(game_dir)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(asdict(ports), indent=2) + "\n", encoding="utf-8")
    draft.replace(path)


def _path(game_dir: str | os.PathLike[str]) -> Path:
    return Path(game_dir) / "server" / "ports.json"


def _wanted(environ: Mapping[str, str], base: GamePorts) -> GamePorts:
    wanted = {}
    for name, variable in VARIABLES.items():
        if not environ.get(variable):
            continue
        text = environ[variable].strip()
        if not text.isdecimal() or not 1 <= int(text) <= HIGHEST:
            raise ConfigError(f"`{variable}` is `{text}`: set a port number, 1 to {HIGHEST}.")
        wanted[name] = int(text)
    ports = replace(base, **wanted)
    if len(set(ports.public().values())) < len(VARIABLES):
        raise ConfigError(
            f"Two of {', '.join(f'`{name}`' for name in VARIABLES.values())} are the same "
            f"({', '.join(str(port) for port in ports.public().values())}): choose different ones."
        )
    if ports.public() == base.public():
        return base
    # Inner ports are as far from the telnet port as Evennia's own are from 4000.
    offset = ports.telnet - GamePorts.telnet
    return replace(ports, internal=GamePorts.internal + offset, amp=GamePorts.amp + offset)


def _next_free(port: int, taken: set[int]) -> int:
    """The first free port from `port` upwards; after the highest, from 1024."""
    for candidate in (*range(port, HIGHEST + 1), *range(1024, port)):
        if candidate not in taken and is_free(candidate):
            return candidate
    raise ConfigError("No free port was found on this machine: stop some servers.")
