"""Which command sends the line that is heard now, and to whom: what Evennia's hooks leave out.

`origin_of_line` is the only place of the package that looks at the call stack. It looks for the
command that runs and for Evennia's own ways of sending to a room, by the parameters that these
document, and at nothing else of what a game's functions hold.

Whoever sends to each listener by `msg` tells the package so by a wrapper of Evennia's `msg`, which
notes each line for a moment: so a line of Evennia's type `say` that goes to a table is the table's.
"""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from types import FrameType
from typing import TYPE_CHECKING, Any

from evennia import Command, ObjectDB
from evennia.objects.objects import DefaultObject
from evennia.utils.utils import make_iter

from evennia_ai.game.seeing import plain

if TYPE_CHECKING:
    from evennia.typeclasses.models import TypedObject

_DEPTH = 40
# Hooks in which Evennia tells a room who enters and leaves the game.
_COMING = ("at_post_puppet", "at_post_unpuppet")
# Evennia's emotes, each listener of which is shown other names.
_EMOTES = ("send_emote", "evennia.contrib.rpg.rpsystem.rpsystem")
# A line reaches all its listeners within this time, one after the other.
SAME_LINE_S = 0.5


@dataclass(frozen=True)
class Origin:
    """Where a line comes from.

    Attributes:
        caller: Who typed the command that sends it; None if no command does.
        key: The command's name.
        typed: The command's arguments, and what of them stands behind an equals sign.
        is_for_room: Whether it is sent to a room by `msg_contents`, or said by Evennia's `at_say`.
        excluded: Whom `msg_contents` leaves out.
        receivers: Whom Evennia's `at_say` whispers to, or an emote of `rpsystem` is shown to.
        is_coming: Whether Evennia tells that somebody enters or leaves the game.
    """

    caller: "TypedObject | None" = None
    key: str = ""
    typed: tuple[str, ...] = ()
    is_for_room: bool = False
    excluded: tuple[Any, ...] = ()
    receivers: tuple[Any, ...] | None = None
    is_coming: bool = False


def origin_of_line(listener: DefaultObject) -> Origin:
    """The origin of the line that a listener's `at_msg_receive` was called with."""
    frame, origin = sys._getframe(1), Origin()
    is_own = True  # whether a frame belongs to this line, and not to one that led to it
    for _ in range(_DEPTH):
        if frame is None or frame.f_globals.get("__name__", "").startswith("twisted."):
            break
        sender = frame.f_locals.get("self")
        if isinstance(sender, Command):
            return _typed(origin, sender)
        is_own &= frame.f_code is not DefaultObject.msg.__code__ or sender is listener
        if is_own:
            origin = _sent_by(frame, listener, origin)
        frame = frame.f_back
    return origin


def _sent_by(frame: FrameType, listener: DefaultObject, origin: Origin) -> Origin:
    """An origin with what one of Evennia's own functions shows of a line, by its parameters."""
    name, local = frame.f_code.co_name, frame.f_locals
    if name == "msg_contents" and local.get("self") is listener.location:
        left_out = tuple(make_iter(local.get("exclude") or ()))
        return replace(origin, is_for_room=True, excluded=left_out)
    if frame.f_code is DefaultObject.at_say.__code__:
        if local["kwargs"].get("whisper"):
            return replace(origin, receivers=tuple(make_iter(local["receivers"] or ())))
        # It leaves out those whom it tells in other words.
        return replace(origin, is_for_room=True, excluded=())
    if (name, frame.f_globals.get("__name__")) == _EMOTES:
        return replace(origin, receivers=tuple(local["receivers"]))
    return replace(origin, is_coming=True) if name in _COMING else origin


def _typed(origin: Origin, command: Command) -> Origin:
    """An origin with the command that it is of."""
    caller = command.caller
    if not isinstance(caller, ObjectDB):  # an account
        caller = getattr(getattr(command, "session", None), "puppet", None) or caller
    parts = [getattr(command, name, None) for name in ("args", "rhs")]
    typed = tuple(filter(None, (plain(part) for part in parts if isinstance(part, str))))
    return replace(origin, caller=caller, key=str(command.key), typed=typed)


def line_and_type(text: object) -> tuple[str, object]:
    """A message's plain line and Evennia's type of it: it is a text, or a text and its options."""
    parts = list(text) if isinstance(text, tuple | list) else [text]
    options = parts[1] if len(parts) > 1 and isinstance(parts[1], dict) else {}
    return plain(parts[0] if parts else ""), options.get("type")


@dataclass(frozen=True)
class _Sent:
    """A line that somebody was sent."""

    listener: DefaultObject
    text: object
    at: float


_sent: "deque[_Sent]" = deque()
_overheard: "list[tuple[DefaultObject, list[tuple[str, object]]]]" = []


def receivers_of(words: str, kind: object) -> set[DefaultObject]:
    """Who was just sent a line of a type (as `say`) that holds some words, and else by no rule."""
    said, receivers = words.casefold(), set()
    for sent in _sent:
        line, its_kind = line_and_type(sent.text)
        if its_kind == kind and said in line.casefold():
            receivers.add(sent.listener)
    return receivers


@contextmanager
def overheard(body: DefaultObject) -> Iterator[list[tuple[str, object]]]:
    """What others than a body are sent meanwhile: lines and Evennia's types of them.

    What is overheard within this is not part of it.
    """
    lines: list[tuple[str, object]] = []
    entry = (body, lines)
    _overheard.append(entry)
    try:
        yield lines
    finally:
        _overheard[:] = [each for each in _overheard if each is not entry]


def _noted(send: Callable[..., Any]) -> Callable[..., Any]:
    """Evennia's `msg`, which notes what it sends."""

    @wraps(send)
    def msg(self: DefaultObject, text: object = None, *args: Any, **kwargs: Any) -> Any:
        now = time.monotonic()
        while _sent and _sent[0].at < now - SAME_LINE_S:
            _sent.popleft()
        if isinstance(text, tuple | list) and len(text) > 1:  # only these have a type
            _sent.append(_Sent(self, text, now))
        if _overheard and _overheard[-1][0] is not self:
            _overheard[-1][1].append(line_and_type(text))
        return send(self, text, *args, **kwargs)

    return msg


DefaultObject.msg = _noted(DefaultObject.msg)
