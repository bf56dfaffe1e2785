"""Play a small game and keep what it stored, for the test that loads it with later versions.

Usage: python -m scripts.store_game [path]

Run it once for each release, before the version number goes up, in an environment with the oldest
supported Python and Evennia and an editable installation of this checkout. It writes the game's
database, and the files of memory beside it, to `tests/stored/<version>.tar.xz`. What was said
there is in `tests/e2e/stored.py`. Takes two minutes.
"""

import sqlite3
import sys
import tarfile
from pathlib import Path

from evennia_ai import __version__
from tests.e2e.game import Game
from tests.e2e.stored import PERSONA, SAID, STORED, WANTS

SETTINGS = "CREATION_THROTTLE_LIMIT = None\nLOGIN_THROTTLE_LIMIT = None"


def play(game):
    """Alice and Bob talk with Aria, who is compacted and dreams."""
    admin = game.admin(60)
    players = {name: game.player(name, timeout_s=60) for name in ("Alice", "Bob")}
    admin.ask(f"aiconfig Aria persona = {PERSONA}", "persona")
    admin.ask("aiconfig Aria compact_preserve_window = 4", "compact_preserve_window")
    for name, line in SAID:
        reply = r"Aria (says|whispers)" if "Aria" in line else "You say"
        players[name].ask(line, reply, 120)
    players["Alice"].ask(f"airemember Aria = {WANTS}", "keep this in mind")
    admin.ask("compact Aria", r"Aria compacted [1-9]", 60)
    admin.ask("ai/sleep Aria", "falls asleep")
    memories = game.folder / "server" / "ai_memory"
    game.wait_until(lambda: any(map(holds_talk, memories.rglob("mem0/**/*.sqlite"))), 180)
    admin.ask("ai/wake Aria", "wakes up|awake already")


def holds_talk(file):
    """Whether memories of the talk are in a file."""
    return b"Heron" in file.read_bytes()


def pack(game, path):
    """Write the database, without free pages, and the assistants' memory to an archive."""
    server = game.folder / "server"
    with sqlite3.connect(server / "evennia.db3") as database:
        database.execute("VACUUM")
    database.close()
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:xz", preset=9) as archive:
        for name in ("evennia.db3", "ai_memory"):
            archive.add(server / name, name, filter=anonymous)


def anonymous(member):
    """A member of the archive without the names and the times of this machine."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def main(path):
    """Play, stop, pack."""
    with Game(settings=SETTINGS) as game:
        play(game)
        game.stop()
        pack(game, path)
    print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else STORED / f"{__version__}.tar.xz")
