"""Running the game's own commands as an assistant's body, to their end."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from copy import copy
from functools import wraps
from typing import TYPE_CHECKING, Any

from evennia import Command
from evennia.commands.cmdhandler import cmdhandler
from evennia.utils.evmenu import InputCmdSet
from twisted.internet import reactor
from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.python.failure import Failure

from evennia_ai.game.evennia_internals import has_failed

if TYPE_CHECKING:
    from evennia import DefaultCharacter

# A command that waits longer, as for an answer that nobody types, counts as ended.
MOST_S = 30.0
# What a body is told of a command that raised an error.
FAILED = "The command `{}` has failed."


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
def told_meanwhile(body: "DefaultCharacter") -> Iterator[list[str]]:
    """Lines that a body alone is told meanwhile: what a game says to whoever types."""
    lines: list[str] = []
    body.ndb.ai_told = [*(body.ndb.ai_told or ()), lines]
    try:
        yield lines
    finally:
        body.ndb.ai_told = [each for each in body.ndb.ai_told if each is not lines] or None


@act
def run_command(body: "DefaultCharacter", command: Command, arguments: str) -> Any:
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
        return _to_the_end(result, end) if isinstance(result, Generator) else result

    def give_up(*_: object) -> bool:
        if body.ndb._getinput is not None:  # nobody will answer what it asks
            body.cmdset.remove(InputCmdSet)
            del body.ndb._getinput
        return False

    command.func = run
    with told_meanwhile(body) as lines:
        running = cmdhandler(body, f" {arguments}", callertype="object", cmdobj=command)
        running.addBoth(lambda _: None if waits else end())
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
