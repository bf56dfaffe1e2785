"""What all assistants of a game share: the mind, and a thread for the game's own files.

The mind is made at first use and closed when the server stops. `use` puts another one, or other
parts, in its place: for tests and for games that bring their own.
"""

import socket
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from twisted.internet.defer import Deferred, succeed

from evennia_ai import background, conf
from evennia_ai.background import Worker
from evennia_ai.mind import mind as local
from evennia_ai.mind.mind import Mind
from evennia_ai.mind.remote import RemoteMind
from evennia_ai.rag_memory.backend import MemoryBackend
from evennia_ai.turns.moderation import Moderator

P = ParamSpec("P")
T = TypeVar("T")


def memory_backend() -> MemoryBackend:
    """The memory back end of the settings, or one that says why it cannot be used."""
    return local.memory_backend(conf.mind_settings())


_parts: dict[str, Any] = {}


def kept(name: str, make: Callable[[], T]) -> T:
    """What assistants share under a name, made at first use."""
    if name not in _parts:
        _parts[name] = make()
    part: T = _parts[name]
    return part


def mind() -> Mind:
    """The game's mind.

    Only the Server uses a process: other commands must not disturb it. Without Unix sockets, as on
    Windows, it does the work on threads, as those do.
    """

    def make() -> Any:
        settings = conf.mind_settings()
        if _parts.get("server") and hasattr(socket, "AF_UNIX"):
            return RemoteMind(conf.mind_dir(), settings, conf.mind_log(), conf.allowed_models())
        return local.make_mind(settings)

    shared: Mind = kept("mind", make)
    return shared


def moderator() -> Moderator | None:
    """What asks the function of ``EVENNIA_AI_MODERATE``; None if the game has none."""
    path = conf.setting("MODERATE")
    if path is None:
        return None
    return kept(f"moderator {path}", lambda: Moderator(conf.moderate_function))


def use(**parts: object) -> None:
    """Put parts in place: `mind`, or what `Mind` takes, by its names; or note a fact.

    `ready` is whether ticks may think, `server` whether this process is the Server.
    """
    for name, part in parts.items():
        if name in ("mind", "ready", "server"):
            _parts[name] = part
        else:
            setattr(mind(), name, part)


def reset() -> None:
    """Forget everything, without closing it."""
    _parts.clear()


def breathe() -> "Deferred[None]":
    """Let others have a turn between two steps of long work; at once where nobody plays."""
    if _parts.get("server"):
        return background.pause()
    return succeed(None)


def ready() -> bool:
    """Whether everything slow is loaded and assistants are repaired: ticks may think."""
    return bool(_parts.get("ready"))


def on_disk(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "Deferred[T]":
    """Read or write a file of the game on a daemon thread, in order; fires with the result."""
    return kept("disk", lambda: Worker("evennia-ai-disk")).submit(function, *args, **kwargs)


def warm_up() -> "Deferred[None]":
    """Load what is slow on background threads; fires when it is there."""
    if (judge := moderator()) is not None:
        judge.warm_up()
    if ready():
        return succeed(None)
    return mind().warm_up(conf.model_name())


def leave() -> None:
    """The Server restarts: let calls in flight go on where they can, and cancel none of them."""
    if "mind" in _parts:
        _parts["mind"].leave()


def end() -> None:
    """The game stops: let nothing of it go on after `close`."""
    if "mind" in _parts:
        _parts["mind"].end()


def close() -> "Deferred[None]":
    """Cancel calls and release files; fires when that is done."""
    if "mind" not in _parts:
        return succeed(None)
    closed: Deferred[None] = _parts.pop("mind").close()
    return closed
