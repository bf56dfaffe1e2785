"""Hooks that Evennia calls when the Server starts and stops."""

import os
import time
from pathlib import Path

from django.conf import settings

_LOADED_AT = time.time()


def at_server_init():
    """Called first, while the Server starts."""


def at_server_start():
    """Called whenever the Server has started."""
    from typeclasses.npcs import start_rounds
    from world.build import build_world

    build_world()
    start_rounds()
    if not _is_about_to_restart():
        _ready_file().write_text(f"{os.getpid()}\n", encoding="ascii")


def at_server_stop():
    """Called just before the Server stops."""
    _ready_file().unlink(missing_ok=True)


def at_server_reload_start():
    """Called after a reload."""


def at_server_reload_stop():
    """Called before a reload."""


def at_server_cold_start():
    """Called after a shutdown or a reset."""


def at_server_cold_stop():
    """Called before a shutdown or a reset."""


def _ready_file():
    """Return the file that `evennia-ai start` waits for; it holds the Server's process id."""
    return Path(settings.GAME_DIR) / "server" / "ready"


def _is_about_to_restart():
    """Return whether this is the first start of a new game; Evennia then restarts once."""
    from evennia.server.models import ServerConfig

    # A time to come is of an earlier start, before the machine's clock was set back.
    return _LOADED_AT < (ServerConfig.objects.conf("server_epoch") or 0) <= time.time()
