"""Where a file's arrays lie: a folder beside it, with one for each scope."""

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import IO

from evennia_ai.processes import locked

_LOCK = "lock"


class ArraysFolder:
    """The folder `<file>.arrays`; one process at a time uses it, others do without.

    What it holds can be made anew from the file.
    """

    def __init__(self, path: str):
        self._path = None if path == ":memory:" else Path(f"{path}.arrays")
        self._lock: IO[bytes] | None = None

    def take(self, stamps: Collection[str]) -> bool:
        """Whether it is ours, from now on; the folders of unknown scopes are deleted then."""
        if self._path is None or self._lock is not None:
            return self._lock is not None
        try:
            self._path.mkdir(mode=0o700, exist_ok=True)
            self._lock = locked(self._path / _LOCK)
        except OSError:
            return False  # the disk is full, or the folder is somebody else's
        if self._lock is None:
            return False
        for file in self._path.iterdir():
            if file.name not in (_LOCK, *stamps):
                shutil.rmtree(file, ignore_errors=True)
        return True

    def of(self, stamp: str) -> Path:
        """The folder of a scope; made if missing."""
        assert self._path is not None
        folder = self._path / stamp
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def delete(self, stamp: str) -> None:
        """Delete the folder of a scope if it is ours."""
        if self._path is not None and self._lock is not None:
            shutil.rmtree(self._path / stamp, ignore_errors=True)

    def close(self) -> None:
        """Leave it to others."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
