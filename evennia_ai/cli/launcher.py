"""`evennia ai ...`: the package's commands of Evennia's launcher.

`apps.py` adds ``EXTRA_LAUNCHER_COMMANDS["ai"] = "evennia_ai.cli.launcher.main"``. The launcher
calls it with the words after ``evennia ai``, Django set up and the reactor not running.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.python.failure import Failure

from evennia_ai.errors import AssistantError

USAGE = """evennia ai doctor    check this game's assistants and suggest remedies
evennia ai remove    export every assistant to a file, then delete it with all it remembers"""


def main(*args: str) -> None:
    """Run ``evennia ai <args>`` and end the process; its exit code is 1 on a fault."""
    if args and (work := {"doctor": doctor, "remove": remove}.get(args[0])):
        sys.exit(1 if work() else 0)
    print(USAGE)
    sys.exit(0 if not args or args[0] in ("help", "--help", "-h") else 2)


def doctor() -> int:
    """Run all checks on the game of the loaded settings, print them; returns how many faults."""
    import evennia
    from django.db import DatabaseError

    unread: DatabaseError | None = None
    try:
        evennia._init()  # the launcher skips this for extra commands; a second call does nothing
    except DatabaseError as error:  # Evennia reads the database as it is loaded
        unread = error
    # Only now are the names that the package imports from `evennia` more than None.
    from evennia_ai.staff.doctor import report, run_checks, unreadable

    if unread is not None:
        print(report([replace(unreadable(unread), name="database")]), flush=True)
        return 1
    found = _run(lambda: run_checks(in_game=False))
    print(report(found), flush=True)
    return sum(check.ok is False for check in found)


def _run(work: Callable[[], Deferred[Any]]) -> Any:
    """Run the reactor until a Deferred fires; its result."""
    from twisted.internet import reactor

    results: list[Any] = []

    def begin() -> None:
        work().addBoth(results.append).addBoth(lambda _: reactor.stop())

    reactor.callWhenRunning(begin)
    reactor.run()
    [result] = results or [Failure(AssistantError("It was interrupted."))]
    if isinstance(result, Failure):
        result.raiseException()
    return result


def remove() -> int:
    """Export and delete every assistant of a game that is not running; returns how many stayed."""
    import evennia

    evennia._init()
    from evennia_ai.assistant_script import all_assistants
    from evennia_ai.game.evennia_internals import SpendRows
    from evennia_ai.staff.export import export_and_delete

    @inlineCallbacks
    def work() -> Any:
        stayed = 0
        for script in all_assistants():
            name = script.obj.key
            try:
                path = yield export_and_delete(script)
                print(f"{name} is deleted. Its export is in {path}", flush=True)
            except AssistantError as error:
                stayed += 1
                print(f"{name} was not deleted: {error}", flush=True)
        for holder in () if stayed else SpendRows().all():
            SpendRows().save(holder, "")
        return stayed

    return int(_run(work))


def run_in(game_dir: Path, function: str = "doctor") -> int:
    """`evennia-ai doctor` and the like, from outside the game's folder; returns the exit code."""
    source = (
        "import django, sys; django.setup();"
        f"from evennia_ai.cli.launcher import {function}; sys.exit(1 if {function}() else 0)"
    )
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "server.conf.settings"}
    command = [sys.executable, "-W", "ignore", "-c", source]
    return subprocess.run(command, cwd=game_dir, env=environ, check=False).returncode
