"""Running the game's own commands as an assistant's body, to their end."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from evennia import Command
from evennia.commands.cmdhandler import cmdhandler
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from evennia_ai.game.evennia_internals import has_failed
from evennia_ai.protocol import Told

if TYPE_CHECKING:
    from evennia import DefaultCharacter

# A command that waits longer, as for an answer that nobody types, counts as ended.
MOST_S = 30.0


def in_order(acts: Iterable[Callable[[], Told]], told: tuple[str, ...] = ()) -> Told:
    """Do one act after the other, each when the one before has ended."""
    rest = iter(acts)
    act = next(rest, None)
    if act is None:
        return told
    lines = act()
    if isinstance(lines, Deferred):
        return lines.addCallback(lambda ended: in_order(rest, (*told, *ended)))
    return in_order(rest, (*told, *lines))


@contextmanager
def told_meanwhile(body: "DefaultCharacter") -> Iterator[list[str]]:
    """What a body alone is told meanwhile: what a game says to whoever types."""
    before, body.ndb.ai_told = body.ndb.ai_told, []
    try:
        yield body.ndb.ai_told
    finally:
        body.ndb.ai_told = before


def run_command(body: "DefaultCharacter", command: Command, arguments: str) -> Told:
    """Run a command as a body once, to its end; what the body alone is told by it.

    No parser, nick or stack of commands sees the arguments. A command whose `func` yields has ended
    when that function has, or after `MOST_S`; what others tell the body in between is no part of
    it. Of an error, which Evennia logs, it is told that the command has failed.
    """
    command, lines, ended = copy(command), list[str](), Deferred[tuple[str, ...]]()
    command.retain_instance = True  # else Evennia runs a copy
    func, waits = command.func, False
    failed = f"The command `{command.key}` has failed."

    def end() -> None:
        if not ended.called:
            ended.callback(tuple(failed if has_failed(line) else line for line in lines))

    def in_steps(steps: Generator[Any, Any, Any]) -> Iterator[Any]:
        answer = None
        try:
            while True:
                with told_meanwhile(body) as told:
                    wanted = steps.send(answer)
                lines.extend(told)
                answer = yield wanted
        except StopIteration:
            lines.extend(told)
        except Exception:
            lines.extend([*told, failed])
            raise
        finally:
            end()

    def run() -> Any:
        nonlocal waits
        result = func()
        if isinstance(result, Generator):
            waits = True
            return in_steps(result)
        return result

    command.func = run
    with told_meanwhile(body) as told:
        running = cmdhandler(body, f" {arguments}", callertype="object", cmdobj=command)
    # What came before the command's own steps, such as of its `at_pre_cmd`.
    lines[:0] = told
    running.addBoth(lambda _: None if waits else end())
    if ended.called:
        return tuple(ended.result)
    return ended.addTimeout(MOST_S, reactor, lambda *_: tuple(lines))
