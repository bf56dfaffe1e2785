"""The console script ``evennia-ai``: make, start and stop a game, or add to an existing one.

A user's mistake is reported in one line with exit code 2. A game that does not start prints the
end of its logs with exit code 1, and a file that cannot be written is named. None of these shows a
traceback.
"""

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evennia_ai import __version__
from evennia_ai.cli import card
from evennia_ai.cli.install import install
from evennia_ai.cli.launcher import run_in
from evennia_ai.cli.new import create_game, game_folder, is_game
from evennia_ai.cli.run import (
    ADMIN,
    PASSWORD_FILE,
    PROGRAM,
    GameError,
    start_game,
    stop_game,
)
from evennia_ai.errors import AssistantError
from evennia_ai.llm_interaction.servers import KINDS, find_servers

_EXAMPLES = {
    "new": (
        "evennia-ai new mygame              make a game in ./mygame and start it",
        "evennia-ai new mygame --model      show how to use a model of this machine, too",
        "TELNET_PORT=4010 WEBSERVER_PORT=4011 WEBSOCKET_PORT=4012 evennia-ai new mygame",
    ),
    "start": ("evennia-ai start mygame", "evennia-ai start               in the game's folder"),
    "stop": ("evennia-ai stop mygame", "evennia-ai stop                in the game's folder"),
    "install": (
        "evennia-ai install mygame          show the edits, change nothing",
        "evennia-ai install mygame --apply  make them",
    ),
    "card": (
        "evennia-ai card show nia.png               say what it holds, and what is used",
        "evennia-ai card convert nia.png nia.json   write it in another format",
    ),
    "doctor": ("evennia-ai doctor mygame", "evennia-ai doctor              in the game's folder"),
}
_UNWRITABLE = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EPERM)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the console script; returns its exit code."""
    args = _parser().parse_args(argv)
    try:
        return args.run(args) or 0
    except AssistantError as error:
        print(f"evennia-ai: {error}", file=sys.stderr)
        if isinstance(error, GameError):
            return 1
        return 2
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        print(f"evennia-ai: {error}. Has the disk room, and can it be written?", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("evennia-ai: interrupted.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="evennia-ai",
        description="A living AI assistant for Evennia games.",
        epilog="For example: evennia-ai new mygame. More examples: evennia-ai new --help",
    )
    parser.add_argument("--version", action="version", version=f"evennia-ai {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    new = _command(commands, "new", _new, "make a game with an assistant in it, and start it")
    new.add_argument("folder", help="the folder to make; its name is the game's")
    new.add_argument("--no-start", action="store_true", help="only make the folder")
    new.add_argument("--reuse", action="store_true", help="use the game if it already exists")
    new.add_argument(
        "--model",
        action="store_true",
        help="look for model servers on this machine, and show the settings for their models",
    )
    says = "show and convert character cards"
    card.add_actions(_command(commands, "card", None, says))
    for name, run, says in (
        ("start", _start_and_show, "start a game made by `new`"),
        ("stop", _stop, "stop a game"),
        (
            "install",
            lambda a: install(game_folder(a.folder), a.apply),
            "add assistants to a game: show or make the edits",
        ),
        ("doctor", lambda a: run_in(game_folder(a.folder)), "check a game and suggest remedies"),
    ):
        command = _command(commands, name, run, says)
        command.add_argument("folder", nargs="?", default=".", help="the game (default: here)")
        if name == "install":
            hint = "make the edits (backups are kept)"
            command.add_argument("--apply", action="store_true", help=hint)
    return parser


def _command(commands: Any, name: str, run: Callable[..., Any] | None, says: str) -> Any:
    """A subcommand whose help ends with examples."""
    command = commands.add_parser(
        name,
        help=says,
        description=f"{says[0].upper()}{says[1:]}.",
        epilog="\n  ".join(["examples:", *_EXAMPLES[name]]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run)
    return command


def _new(args: argparse.Namespace) -> None:
    """Make a game, start it, and print the settings for models of servers on this machine."""
    folder = Path(args.folder)
    if args.reuse and is_game(folder):
        print(f"Using the game in {folder}")
    else:
        folder = create_game(folder)
        print(f"Made the game in {folder}")
    if args.no_start:
        print(f"Start it with: evennia-ai start {args.folder}")
    else:
        _start_and_show(args)
    if not args.model:
        return
    servers = find_servers()
    if not servers:
        ports = ", ".join(f"{kind.name} (port {kind.port})" for kind in KINDS)
        print(f"\nNo model server answers on this machine. Looked for: {ports}.")
        print(f"Start one, then type: evennia-ai doctor {args.folder}")
    for server in servers:
        print(f"\n{server.name} answers at {server.api_base}.")
        if not server.models:
            print("It has no model yet: get one, then type: evennia-ai doctor", args.folder)
            continue
        path = f"{args.folder}/server/conf/secret_settings.py"
        print(f"To use a model, add its two lines to {path}, then restart the game:")
        for model in server.models:
            print("", *server.settings(model), sep="\n  ")


def _stop(args: argparse.Namespace) -> None:
    folder = Path(args.folder)
    if not folder.exists():
        return print(f"{folder} does not exist: nothing to stop.")
    ran = stop_game(game_folder(folder))
    print(f"The game in {folder} {'has stopped' if ran else 'was not running'}.")


def _start_and_show(args: argparse.Namespace) -> None:
    """Start a game; print how to connect, what to try, which model speaks and its limits."""
    folder = game_folder(args.folder)
    connection = start_game(folder, say=lambda line: print(line, flush=True))
    ports = connection.ports
    stop = f"{PROGRAM} stop {os.path.relpath(folder)}"
    password = connection.password or f"(unknown: {PASSWORD_FILE} is missing)"
    lines = [
        "",
        "The game is running." if connection.started else "The game was already running.",
        "",
        f"  Telnet:         telnet localhost {ports.telnet}",
        f"  Web client:     http://localhost:{ports.webserver}/webclient/",
        f"  Staff's pages:  http://localhost:{ports.webserver}/ai/",
        f"  Account:        {ADMIN}",
        f"  Password:       {password}",
        f"  At the telnet prompt:  connect {ADMIN} {connection.password or '<password>'}",
        "",
        "Aria stands in The Gilded Lantern. Three lines to try there:",
        "",
        "  say Aria, please remember that my boat is called Heron.",
        "  say Aria, what is my boat called?",
        "  help ai",
        "",
        "Asking the model for a word ...",
    ]
    print("\n".join(lines), flush=True)
    run_in(folder, "doctor('model', 'spend')")
    print(f"\nStop the game with `{stop}`; its logs are in {folder}/server/logs.", flush=True)


if __name__ == "__main__":
    sys.exit(main())
