"""Where the Server and the mind's process meet: a folder with a socket, a secret and a lock."""

import contextlib
import hashlib
import os
import secrets
import socket
import stat
import tempfile
from pathlib import Path
from typing import IO, Any, cast

from twisted.internet.address import IPv4Address
from twisted.internet.interfaces import IConnector, IListeningPort
from twisted.internet.protocol import ClientFactory, ServerFactory

from evennia_ai.errors import ConfigError
from evennia_ai.processes import locked

# Bytes of the longest path of a Unix socket: 107 on Linux, 103 on macOS.
_LONGEST = 100
LOCAL = "127.0.0.1"


class MindFolder:
    """The folder of one game's mind.

    Args:
        path: The folder; made when missing, for the game's user alone.
        unix: Whether to meet on a Unix socket; else on a loopback port.
    """

    def __init__(self, path: Path, unix: bool = hasattr(socket, "AF_UNIX")):
        self.path, self.is_unix = path.resolve(), unix
        self._lock: IO[bytes] | None = None

    def prepare(self) -> None:
        """Make the folders; `ConfigError` if one belongs to somebody else."""
        for folder in {self.path, self.socket.parent}:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = folder.lstat()
            if hasattr(os, "getuid") and (
                not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid()
            ):
                raise ConfigError(f"`{folder}` must be a folder of the game's user.")
            if stat.S_IMODE(found.st_mode) & 0o077:
                folder.chmod(0o700)
        (self.path / ".gitignore").write_text("*\n", encoding="ascii")

    @property
    def socket(self) -> Path:
        """The Unix socket; in a folder under the system's temporary one if its path is too long."""
        near = self.path / "socket"
        if len(os.fsencode(near)) <= _LONGEST:
            return near
        mark = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        user = os.getuid() if hasattr(os, "getuid") else "user"
        return Path(tempfile.gettempdir()) / f"evennia-ai-{user}-{mark}" / "socket"

    @property
    def _port_file(self) -> Path:
        return self.path / "port"

    def secret(self) -> str:
        """What both sides know; made when missing."""
        file = self.path / "secret"
        with contextlib.suppress(FileNotFoundError):
            if known := file.read_text(encoding="ascii").strip():
                return known
        made, fresh = secrets.token_hex(32), file.with_name(f"secret.{os.getpid()}")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as stream:
            stream.write(made)
        fresh.replace(file)
        return made

    def lock(self) -> bool:
        """Take the lock for as long as this process lives; False if another one holds it."""
        self._lock = locked(self.path / "lock")
        return self._lock is not None

    def listen(self, reactor: Any, factory: ServerFactory) -> IListeningPort:
        """Take connections. Whoever holds the lock removes a socket that a crash left behind."""
        port: IListeningPort
        if self.is_unix:
            self.socket.unlink(missing_ok=True)
            port = reactor.listenUNIX(str(self.socket), factory, mode=0o600)
        else:
            port = reactor.listenTCP(0, factory, interface=LOCAL)
            host = port.getHost()  # type: ignore[misc]
            fresh = self._port_file.with_name("port.new")
            fresh.write_text(str(cast(IPv4Address, host).port), encoding="ascii")
            fresh.replace(self._port_file)
        return port

    def connect(self, reactor: Any, factory: ClientFactory, timeout_s: float) -> IConnector | None:
        """Connect; None if there is nothing to connect to."""
        connector: IConnector
        if self.is_unix:
            if not self.socket.exists():
                return None
            connector = reactor.connectUNIX(str(self.socket), factory, timeout_s)
            return connector
        try:
            port = int(self._port_file.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None
        connector = reactor.connectTCP(LOCAL, port, factory, timeout_s)
        return connector

    def exists(self) -> bool:
        """Whether the place to meet is still there."""
        return (self.socket if self.is_unix else self._port_file).exists()
