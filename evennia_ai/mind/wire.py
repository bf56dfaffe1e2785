"""What the Server and the mind's process send each other: pickled values in frames, on a socket.

Both ends are processes of one game, and the socket stands in a folder that only the game's user may
enter: nobody else can write to it. Even so, only plain values are sent and read: what JSON knows,
sets, dates, the dataclasses and errors of this package, and the functions of `WORK`. Pickle brings
them back as they were; text of players and models is text in it, whatever it says.
"""

import io
import os
import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from datetime import date, timedelta, timezone
from pathlib import Path
from types import FunctionType
from typing import Any

from twisted.internet.protocol import Factory, connectionDone
from twisted.protocols.basic import Int32StringReceiver
from twisted.python.failure import Failure

from evennia_ai.errors import AssistantError, ConfigError

# The functions that `Mind.work` may call in the mind's process: they compute, and only compute, on
# plain values. A function that is not listed runs on a thread of the Server.
WORK = frozenset(
    f"evennia_ai.{name}"
    for name in (
        "llm_interaction.budget.packed",
        "llm_interaction.facts.covered",
        "llm_interaction.facts.source_facts",
        "llm_interaction.summary.finished",
        "llm_interaction.tokens.count_tokens",
        "privacy.caches.clear_caches",
        "recall.embedding.dimensions",
    )
)
# Bytes of the largest frame.
MAX_FRAME = 64 * 2**20
# Bytes of the longest path of a Unix socket: 107 on Linux, 103 on macOS.
_LONGEST_PATH = 103
_PLAIN = {
    "builtins": {"dict", "frozenset", "list", "set", "str"},
    "datetime": {"date", "datetime", "timedelta", "timezone"},
}
_KNOWN = (type, AssistantError, date, timedelta, timezone)


def is_work(function: Any) -> bool:
    """Whether a function is one of `WORK`."""
    place = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    return ".".join(place) in WORK


class _Pickler(pickle.Pickler):
    """Writes plain values; other mappings and collections become dicts and lists."""

    def reducer_override(self, value: Any) -> Any:
        """How to write what pickle does not know by itself."""
        if is_dataclass(value) or isinstance(value, _KNOWN):
            return NotImplemented
        if isinstance(value, FunctionType) and is_work(value):
            return NotImplemented
        if isinstance(value, str):
            return str, (str.__str__(value),)
        if isinstance(value, Mapping):
            return dict, (dict(value),)
        if isinstance(value, Iterable):
            return list, (list(value),)
        raise TypeError(f"`{type(value).__name__}` is no plain value")


class _Unpickler(pickle.Unpickler):
    """Reads plain values; raises `UnpicklingError` for anything else."""

    def find_class(self, module: str, name: str) -> Any:
        """A class that a value may have, or a function of `WORK`."""
        if name in _PLAIN.get(module, ()) or f"{module}.{name}" in WORK:
            return super().find_class(module, name)
        if module.startswith("evennia_ai."):
            kind = super().find_class(module, name)
            if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, AssistantError)):
                return kind
        raise pickle.UnpicklingError(f"`{module}.{name}` is no plain value")


def dumps(value: object) -> bytes:
    """A value as bytes; `TypeError` or `ValueError` for one that cannot be sent."""
    stream = io.BytesIO()
    try:
        _Pickler(stream, protocol=5).dump(value)
    except (pickle.PicklingError, RecursionError, AttributeError) as error:
        raise ValueError(f"no plain value: {error}") from error
    if stream.tell() > MAX_FRAME:
        raise ValueError(f"too large, more than {MAX_FRAME // 2**20} MB")
    return stream.getvalue()


def loads(data: bytes) -> Any:
    """The value that `dumps` made bytes of."""
    return _Unpickler(io.BytesIO(data)).load()


class Wire(Int32StringReceiver):
    """One end of a connection. `received` and `lost` are the owner's.

    What cannot be read raises, and Twisted then logs it and ends the connection.
    """

    MAX_LENGTH = MAX_FRAME
    transport: Any  # Twisted's interfaces have no types of their own

    def __init__(self, received: Callable[["Wire", Any], object], lost: Callable[["Wire"], object]):
        self._received, self._lost = received, lost

    def stringReceived(self, string: bytes) -> None:
        """Hand on a value."""
        self._received(self, loads(string))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Tell the owner."""
        self._lost(self)

    def send(self, data: bytes) -> None:
        """Send a value that was dumped."""
        self.sendString(data)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Close the connection once everything is sent."""
        self.transport.loseConnection()


def wires(received: Callable[[Wire, Any], object], lost: Callable[[Wire], object]) -> Factory:
    """A factory of `Wire` that logs nothing."""
    factory: Factory = Factory.forProtocol(lambda: Wire(received, lost))  # type: ignore[no-untyped-call]
    factory.noisy = False
    return factory


def socket_path(folder: Path) -> str:
    """The socket in a game's folder for it, which is made, for the game's user alone.

    The path is relative to the working folder if that is shorter. `ConfigError` if it is too long.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # refused if it is somebody else's
    (folder / ".gitignore").write_text("*\n", encoding="ascii")
    socket = folder.resolve() / "socket"
    path = min(str(socket), os.path.relpath(socket), key=len)
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise ConfigError(f"`{path}` is too long for a socket: start the game from its own folder.")
    return path
