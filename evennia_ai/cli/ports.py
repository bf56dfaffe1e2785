"""Which ports a game listens on, stored so that every process of the game agrees on them.

Players use three ports: telnet, web and websocket. Evennia needs two more on loopback: between
its Portal and its Server (AMP), and for the Server's half of the web site. These two are the first
free ones behind the telnet port, so that several games run on one machine. The choice is stored in
``server/ports.json``: a later ``evennia reload`` may lack the variables.
"""

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from evennia_ai.errors import ConfigError
from evennia_ai.processes import is_running

VARIABLES = {"telnet": "TELNET_PORT", "webserver": "WEBSERVER_PORT", "websocket": "WEBSOCKET_PORT"}
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
    try:
        stored = GamePorts(**json.loads(_path(game_dir).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        stored = None
    if stored and is_running(game_dir):
        return stored
    wanted = {}
    for name, variable in VARIABLES.items():
        if text := environ.get(variable, "").strip():
            if not text.isdecimal() or not 1 <= int(text) <= HIGHEST:
                raise ConfigError(f"`{variable}` is `{text}`: set a port number, 1 to {HIGHEST}.")
            wanted[name] = int(text)
    ports = replace(stored or GamePorts(), **wanted)
    if len({*ports.public().values()}) < len(VARIABLES):
        raise ConfigError(
            f"Two of {', '.join(f'`{name}`' for name in VARIABLES.values())} are the same "
            f"({', '.join(map(str, ports.public().values()))}): choose different ones."
        )
    if stored is None or ports != stored:
        ports = with_free_inner_ports(ports)
        record(game_dir, ports)
    return ports


def with_free_inner_ports(ports: GamePorts) -> GamePorts:
    """The same public ports, with the two inner ones moved to free ones."""
    first = ports.telnet + GamePorts.internal - GamePorts.telnet
    numbers = (*range(first, HIGHEST + 1), *range(1024, ports.telnet))
    public = set(ports.public().values())
    free = (port for port in numbers if port not in public and is_free(port))
    return replace(ports, internal=next(free), amp=next(free))


def busy(ports: GamePorts) -> dict[str, int]:
    """The public ports that are in use, by name."""
    return {name: port for name, port in ports.public().items() if not is_free(port)}


def is_free(port: int) -> bool:
    """Whether a server could listen on a loopback port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def record(game_dir: str | os.PathLike[str], ports: GamePorts) -> None:
    """Store the ports, by a rename, so that no process reads an incomplete file."""
    path = _path(game_dir)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(asdict(ports), indent=2) + "\n", encoding="utf-8")
    draft.replace(path)


def _path(game_dir: str | os.PathLike[str]) -> Path:
    return Path(game_dir) / "server" / "ports.json"
