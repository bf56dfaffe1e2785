"""The game's commands: which one sends the line that is heard now, and running one as a body.

`origin_of_line` is the only place of the package that looks at the call stack. It looks for the
command that runs, by whose method a function is, and for Evennia's own ways of sending to a room,
by the parameters that these document. No variable of a game's function is looked at.
"""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import wraps
from types import FrameType
from typing import Any

from evennia import Command, DefaultCharacter, ObjectDB
from evennia.commands.cmdhandler import cmdhandler
from evennia.objects.objects import DefaultObject
from evennia.typeclasses.models import TypedObject
from evennia.utils.evmenu import InputCmdSet
from evennia.utils.utils import make_iter
from twisted.internet import reactor
from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.python.failure import Failure

from evennia_ai.game.evennia_internals import has_failed
from evennia_ai.game.seeing import plain

_DEPTH = 40
# Hooks in which Evennia tells a room who enters and leaves the game.
_COMING = ("at_post_puppet", "at_post_unpuppet")
# Evennia's emotes, each listener of which is shown other names.
_EMOTES = ("send_emote", "evennia.contrib.rpg.rpsystem.rpsystem")
# A command that waits longer, as for an answer that nobody types, counts as ended.
MOST_S = 30.0
# What a body is told of a command that raised an error.
FAILED = "The command `{}` has failed."


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

    caller: TypedObject | None = None
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
        sender = None
        if frame.f_code.co_varnames[:1] == ("self",):
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
    if name in _COMING:
        return replace(origin, is_coming=True)
    return origin


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
    match text:
        case [line, {**options}, *_]:
            return plain(line), options.get("type")
        case [line, *_]:
            return plain(line), None
    return plain(text), None


def act(function: Callable[..., Generator[Any, Any, Any]]) -> Callable[..., Any]:
    """Make a function of an act whose steps may wait.

    It returns what the act gives, or raises its error; where a step waits, a Deferred of that.
    """
    steps = inlineCallbacks(function)

    @wraps(function)
    def begin(*args: Any, **kwargs: Any) -> Any:
        done = steps(*args, **kwargs)
        if not done.called:
            return done
        outcomes: list[Any] = []
        done.addBoth(outcomes.append)
        if isinstance(outcomes[0], Failure):
            outcomes[0].raiseException()
        return outcomes[0]

    return begin


@contextmanager
def told_meanwhile(body: DefaultCharacter) -> Iterator[list[str]]:
    """Lines that a body alone is told meanwhile: what a game says to whoever types."""
    lines: list[str] = []
    body.ndb.ai_told = [*(body.ndb.ai_told or ()), lines]
    try:
        yield lines
    finally:
        body.ndb.ai_told = [each for each in body.ndb.ai_told if each is not lines] or None


@act
def run_command(body: DefaultCharacter, command: Command, arguments: str) -> Any:
    """Run a command as a body once, to its end; what the body alone is told by it.

    No parser, nick or stack of commands sees the arguments. A command whose `func` yields, or
    returns a Deferred, has ended when that function has, or after `MOST_S`. Of an error, which
    Evennia logs, it is told that the command has failed.
    """
    command, ended = copy(command), Deferred[bool]()
    command.retain_instance = True  # else Evennia runs a copy
    func, waits, failed = command.func, False, FAILED.format(command.key)

    def end(outcome: object = None) -> object:
        if not ended.called:
            ended.callback(isinstance(outcome, Failure))
        return outcome

    def run() -> Any:
        nonlocal waits
        result = func()
        waits = isinstance(result, Generator | Deferred)
        if isinstance(result, Deferred):
            result.addBoth(end)
        if isinstance(result, Generator):
            return _to_the_end(result, end)
        return result

    def give_up(*_: object) -> bool:
        if body.ndb._getinput is not None:  # nobody will answer what it asks
            body.cmdset.remove(InputCmdSet)
            del body.ndb._getinput
        return False

    command.func = run
    with told_meanwhile(body) as lines:
        running = cmdhandler(body, f" {arguments}", callertype="object", cmdobj=command)
        running.addBoth(lambda _: waits or end())
        if (yield ended.addTimeout(MOST_S, reactor, give_up)):
            lines.append(failed)
    return tuple(failed if has_failed(line) else line for line in lines)


def _to_the_end(
    steps: Generator[Any, Any, Any], end: Callable[[object], object]
) -> Generator[Any, Any, Any]:
    """The same steps; `end` gets their outcome."""
    outcome = None
    try:
        yield from steps
    except Exception:
        outcome = Failure()
        raise
    finally:
        end(outcome)
