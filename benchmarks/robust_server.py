"""The start/stop module of `robust_turn`: fails the n-th commit after a file asks for it."""

from pathlib import Path

from django.conf import settings
from django.db import OperationalError, connection

ASKED = Path(settings.GAME_DIR) / "fail_commit"


def at_server_start() -> None:
    """Count the commits of this connection from the moment that the file appears."""
    connection.ensure_connection()
    commit, left = connection._commit, [0]

    def failing() -> None:
        if ASKED.exists():
            left[0] = int(ASKED.read_text() or 1)
            ASKED.unlink()
        if left[0]:
            left[0] -= 1
            if not left[0]:
                raise OperationalError("disk I/O error")
        commit()

    connection._commit = failing
