"""Running the game's own commands as an assistant's body, to their end."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

from evennia import Command
from evennia.commands.cmdhandler import cmdhandler
from evennia.utils.evmenu import InputCmdSet
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from evennia_ai.game.evennia_internals import has_failed
from evennia_ai.protocol import Told

if TYPE_CHECKING:
    from evennia import DefaultCharacter

T = TypeVar("T")
# A command that waits longer, as for an answer that nobody types, counts as ended.
MOST_S = 30.0
# What a body is told of a command that raised an error.
FAILED = "The command `{}` has failed."


def then(ended: T | Deferred[T], follow: Callable[[T], Any]) -> Any:
    """What follows from an act's result, at once or when it has ended."""
    if isinstance(ended, Deferred):
        return ended.addCallback(follow)
    return follow(ended)


def in_order(acts: Iterable[Callable[[], Told]], told: tuple[str, ...] = ()) -> Told:
    """Do one act after the other, each when the one before has ended."""
    rest = iter(acts)
    act = next(rest, None)
    if act is None:
        return told
    followed: Told = then(act(), lambda lines: in_order(rest, (*told, *lines)))
    return followed


@contextmanager
def told_meanwhile(body: "DefaultCharacter", lines: list[str]) -> Iterator[None]:
    """Add to some lines what a body alone is told meanwhile: what a game says to whoever types."""
    before, body.ndb.ai_told = body.ndb.ai_told, lines
    try:
        yield
    finally:
        body.ndb.ai_told = before


def _overheard(
    steps: Generator[Any, Any, Any],
    body: "DefaultCharacter",
    lines: list[str],
    end: Callable[[object], object],
) -> Iterator[Any]:
    """The same steps; what the body alone is told in each is added, and `end` gets the outcome."""
    answer, outcome = None, None
    try:
        while True:
            with told_meanwhile(body, lines):
                wanted = steps.send(answer)
            answer = yield wanted
    except StopIteration:
        return
    except Exception:
        outcome = Failure()
        raise
    finally:
        end(outcome)


def run_command(body: "DefaultCharacter", command: Command, arguments: str) -> Told:
    """Run a command as a body once, to its end; what the body alone is told by it.

    No parser, nick or stack of commands sees the arguments. A command whose `func` yields, or
    returns a Deferred, has ended when that function has, or after `MOST_S`; what others tell the
    body in between is no part of it. Of an error, which Evennia logs, it is told that the command
    has failed.
    """
    command, lines, ended = copy(command), list[str](), Deferred[tuple[str, ...]]()
    command.retain_instance = True  # else Evennia runs a copy
    func, waits = command.func, False
    failed = FAILED.format(command.key)

    def end(outcome: object = None) -> object:
        if isinstance(outcome, Failure):
            lines.append(failed)
        if not ended.called:
            ended.callback(tuple(failed if has_failed(line) else line for line in lines))
        return outcome

    def run() -> Any:
        nonlocal waits
        result = func()
        waits = isinstance(result, Generator | Deferred)
        if isinstance(result, Deferred):
            result.addBoth(end)
        return _overheard(result, body, lines, end) if isinstance(result, Generator) else result

    command.func = run
    with told_meanwhile(body, lines):
        running = cmdhandler(body, f" {arguments}", callertype="object", cmdobj=command)
    running.addBoth(lambda _: None if waits else end())
    if ended.called:
        return tuple(ended.result)

    def give_up(*_: object) -> tuple[str, ...]:
        if body.ndb._getinput is not None:  # nobody will answer what it asks
            body.cmdset.remove(InputCmdSet)
            del body.ndb._getinput
        return tuple(lines)

    return ended.addTimeout(MOST_S, reactor, give_up)
