"""Running the game's own commands as an assistant's body, to their end."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from evennia import Command
from evennia.commands.cmdhandler import cmdhandler
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from evennia import DefaultCharacter

# What goes on, or None if it has ended already.
Pending = Deferred[Any] | None
# A command that waits longer, as for an answer that nobody types, counts as ended.
MOST_S = 30.0


def in_order(acts: Iterable[Callable[[], Pending]]) -> Pending:
    """Do one act after the other, each when the one before has ended."""
    rest = iter(acts)
    for act in rest:
        pending = act()
        if pending is not None:
            return pending.addCallback(lambda _: in_order(rest))
    return None


def pending_only(deferred: Deferred[Any]) -> Pending:
    """A Deferred that has not fired; None for one that has, whose error is raised."""
    if not deferred.called:
        return deferred
    outcome: list[object] = []
    deferred.addBoth(outcome.append)
    if isinstance(outcome[0], Failure):
        outcome[0].raiseException()
    return None


@contextmanager
def told_meanwhile(body: "DefaultCharacter") -> Iterator[list[str]]:
    """What a body alone is told meanwhile: what a game says to whoever types."""
    before, body.ndb.ai_told = body.ndb.ai_told, []
    try:
        yield body.ndb.ai_told
    finally:
        body.ndb.ai_told = before


def run_command(body: "DefaultCharacter", command: Command, arguments: str) -> Deferred[bool]:
    """Run a command as a body; fires when it has ended, with whether it raised no error.

    No parser, nick or stack of commands sees the arguments. A command whose `func` yields has ended
    when that function has, or after `MOST_S`.
    """
    command, done = copy(command), Deferred[bool]()
    command.retain_instance = True  # else Evennia runs a copy
    own, has_begun = command.func, []

    def end(is_fine: bool) -> None:
        if not done.called:
            done.callback(is_fine)

    def run_waiting() -> Iterator[Any]:
        has_begun.append(True)
        is_fine = False
        try:
            yield from own()
            is_fine = True
        finally:
            end(is_fine)

    def run() -> None:
        has_begun.append(True)
        is_fine = False
        try:
            own()
            is_fine = True
        finally:
            end(is_fine)

    command.func = run_waiting if inspect.isgeneratorfunction(own) else run
    running = cmdhandler(body, f" {arguments}", callertype="object", cmdobj=command)
    # Its `at_pre_cmd` may end it before it begins.
    running.addBoth(lambda _: None if has_begun else end(True))
    if not done.called:
        done.addTimeout(MOST_S, reactor, lambda result, timeout: True)
    return done
