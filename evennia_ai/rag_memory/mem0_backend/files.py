"""The files under the store's folder: locks, damage, and text that must be gone for good."""

import shutil
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import chain, count
from pathlib import Path

_DAMAGED = ".damaged-"
# Variables of one SQL statement; SQLite's limit was 999 before 3.32.
_SQL_BATCH = 500


def is_locked(folder: Path) -> bool:
    """Whether another Qdrant client holds the folder; Qdrant itself notices too late."""
    lock_path = folder / ".lock"
    if not lock_path.exists():
        return False
    import portalocker

    with open(lock_path, "r+") as lock_file:
        try:
            portalocker.lock(
                lock_file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING
            )
        except portalocker.exceptions.LockException:
            return True
        portalocker.unlock(lock_file)
    return False


def is_sound_database(path: Path) -> bool:
    """Whether a file is missing or a readable SQLite database."""
    if not path.exists():
        return True
    try:
        with closing(sqlite3.connect(path)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise  # busy or unreadable, which says nothing about its content
        return False


def inodes(paths: Iterable[Path]) -> dict[Path, int]:
    """Which files stand at some paths, by their inodes; those that are missing are left out."""
    return {path: path.stat().st_ino for path in paths if path.exists()}


def move_aside(path: Path, now: float | None = None) -> Path:
    """Rename a damaged file or folder, so that nothing is lost; returns where it is now."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    names = chain([stamp], (f"{stamp}-{number}" for number in count(2)))
    targets = (path.with_name(f"{path.name}{_DAMAGED}{name}") for name in names)
    return path.rename(next(target for target in targets if not target.exists()))


def drop_damaged(directory: Path) -> int:
    """Delete everything that was moved aside (the journal has it all); returns how many."""
    copies = list(directory.glob(f"*{_DAMAGED}*"))
    for copy in copies:
        shutil.rmtree(copy) if copy.is_dir() else copy.unlink()
    return len(copies)


def forget_rows(history: Path, memory_ids: Sequence[str], session_scope: str) -> int:
    """Delete what Mem0's history database keeps of deleted memories; returns how many rows.

    Table `history` keeps the text of each memory, also after a deletion; `messages` keeps the last
    texts of a scope without their memory ids, so all of `session_scope` are deleted.
    """
    if not history.exists():
        return 0
    gone = 0
    with closing(sqlite3.connect(history)) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        with connection:
            for start in range(0, len(memory_ids), _SQL_BATCH):
                batch = list(memory_ids[start : start + _SQL_BATCH])
                marks = ",".join("?" * len(batch))
                sql = f"DELETE FROM history WHERE memory_id IN ({marks})"
                gone += connection.execute(sql, batch).rowcount
            # Mem0 sets a run apart by more text behind the scope's.
            sql = "DELETE FROM messages WHERE session_scope = ? OR substr(session_scope, 1, ?) = ?"
            run = f"{session_scope}&"
            gone += connection.execute(sql, (session_scope, len(run), run)).rowcount
    return gone


def forget_leftovers(history: Path) -> None:
    """Delete rows of memories whose deletion was cut short by a crash."""
    with closing(sqlite3.connect(history)) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        with connection:
            connection.execute(
                "DELETE FROM history WHERE memory_id IN"
                " (SELECT memory_id FROM history WHERE is_deleted = 1)"
            )


def scrub(databases: Iterable[Path], erases_by_itself: bool | None = None) -> int:
    """Rewrite SQLite databases whose free pages hold deleted text; returns how many.

    None if SQLite was built to erase what it deletes (`erases_by_itself`; None asks it).
    """
    if erases_by_itself is None:
        with closing(sqlite3.connect(":memory:")) as connection:
            # 2 is "fast", which spares the free pages and so the text.
            erases_by_itself = connection.execute("PRAGMA secure_delete").fetchone()[0] == 1
    rewritten = 0
    for path in () if erases_by_itself else databases:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("VACUUM")
        rewritten += 1
    return rewritten
