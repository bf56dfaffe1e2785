"""`evennia ai ...`: the package's commands of Evennia's launcher.

`apps.py` adds ``EXTRA_LAUNCHER_COMMANDS["ai"] = "evennia_ai.cli.launcher.main"``. The launcher
calls it with the words after ``evennia ai``, Django set up and the reactor not running.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.python.failure import Failure

from evennia_ai.cli.install import BACKUP, lines_left
from evennia_ai.errors import AssistantError
from evennia_ai.processes import is_running

if TYPE_CHECKING:
    from evennia_ai.assistant_script import AssistantScript
    from evennia_ai.cards.books import Book

USAGE = """In the game's folder:

evennia ai doctor    check this game's assistants and suggest remedies
evennia ai remove    export every assistant and book of lore to a file, then delete it; the
                     game must be stopped, and it asks first
evennia ai remove --yes    the same without a question"""


def main(*args: str) -> None:
    """Run ``evennia ai <args>`` and end the process; its exit code is 1 on a fault."""
    if args == ("doctor",):
        faults = doctor()
    elif args in (("remove",), ("remove", "--yes")):
        faults = remove(is_sure="--yes" in args)
    else:
        print(USAGE)
        sys.exit(0 if not args or args[0] in ("help", "--help", "-h") else 2)
    sys.exit(faults > 0)


def doctor(*names: str) -> int:
    """Run the checks on the game of the loaded settings, and print each finding as it is made.

    `names` are the checks to run, all if there are none. Returns how many faults there are.
    """
    from django.conf import settings

    if not names:
        print(f"Checking {settings.GAME_DIR} (half a minute at most) ...", flush=True)
    import evennia
    from django.db import DatabaseError

    unread: DatabaseError | None = None
    try:
        evennia._init()  # the launcher skips this for extra commands; a second call does nothing
    except DatabaseError as error:  # Evennia reads the database as it is loaded
        unread = error
    # Only now are the names that the package imports from `evennia` more than None.
    from evennia_ai.staff.doctor import CHECKS, Check, name_of, run_checks, unreadable, verdict

    shown: list[Check] = []

    def show(finding: Check) -> None:
        shown.append(finding)
        print(finding.line(), flush=True)

    def work() -> Deferred[Any]:
        return run_checks(in_game=False, which=which, show=show)

    if unread is not None:
        findings = [replace(unreadable(unread), name="database")]
        show(findings[0])
    else:
        which = [check for check in CHECKS if not names or name_of(check) in names]
        findings = _run(work)
    if not names:
        print(verdict(findings), flush=True)
    return sum(finding.ok is False for finding in findings)


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


def remove(is_sure: bool = False) -> int:
    """Export and delete assistants and lore of a game that is not running; returns how many stayed.

    It asks before it deletes anything, unless `is_sure`. Without a yes, and while the game runs,
    all of them stay.
    """
    import evennia
    from django.conf import settings
    from django.db import DatabaseError

    try:
        evennia._init()
        from evennia_ai.assistant_script import all_assistants

        scripts = list(all_assistants())
    except DatabaseError as error:
        print(f"The assistants cannot be read from the game's database: {error}")
        return 1
    if is_running(settings.GAME_DIR):
        print("The game is running: stop it first. Nothing was deleted.")
        return 1
    from evennia_ai.game.lore import lore
    from evennia_ai.models import clear_tables
    from evennia_ai.staff.cards import export_book
    from evennia_ai.staff.export import export_and_delete

    books = list(lore().books().values())
    _show(scripts, books)
    if not (is_sure or _is_confirmed()):
        print("Nothing was deleted. To delete without a question: evennia ai remove --yes")
        return 1

    @inlineCallbacks
    def work() -> Any:
        stayed = 0
        for script in scripts:
            name = script.own_name
            try:
                path = yield script.run_exclusive(partial(export_and_delete, script))
                print(f"{name} is deleted. Its export is in {path}", flush=True)
            except AssistantError as error:
                stayed += 1
                print(error, flush=True)
        if stayed:
            return stayed
        for book in books:
            path = yield export_book(book)
            lore().save(replace(book, facts=()))
            print(f"The lore {book.name} is deleted. It is in {path}", flush=True)
        clear_tables()
        return 0

    stayed = int(_run(work))
    if not stayed and (lines := list(lines_left(Path(settings.GAME_DIR)))):
        print("Now take these lines out of the game's files by hand; of a file that you have not")
        print(f"changed since the installation, move the copy back, as settings.py{BACKUP}:")
        print(*lines, sep="\n", flush=True)
    return stayed


def _show(scripts: "Sequence[AssistantScript]", books: "Sequence[Book]") -> None:
    """Print what will be deleted, and where it is written first."""
    from evennia_ai import conf
    from evennia_ai.privacy.export import export_folder

    held = [script.own_name for script in scripts]
    lore = [book.name for book in books]
    print("To be deleted:")
    print(f"  Assistants, with talk, memories and options: {', '.join(held) or 'none'}.")
    print(f"    Each is written to {export_folder()} first; ai/import reads it back.")
    print(f"  Lore: {', '.join(lore) or 'none'}.")
    print(f"    Each book is written to {conf.cards_dir()} first; ailore/import reads it back.")
    print("  The log, and the record of what model calls cost.", flush=True)


def _is_confirmed() -> bool:
    """Whether somebody types yes."""
    try:
        return input('Type "yes" to delete them: ').strip().lower() == "yes"
    except EOFError:
        return False


def run_in(game_dir: Path, call: str = "doctor()") -> int:
    """Call a function of this module from outside the game's folder; returns the exit code."""
    source = (
        "import django, sys; django.setup();"
        f"from evennia_ai.cli import launcher; sys.exit(1 if launcher.{call} else 0)"
    )
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "server.conf.settings"}
    command = [sys.executable, "-W", "ignore", "-c", source]
    return subprocess.run(command, cwd=game_dir, env=environ, check=False).returncode
