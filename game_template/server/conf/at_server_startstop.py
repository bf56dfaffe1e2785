"""Hooks that Evennia calls as the Server starts and stops."""

import os
import time
from pathlib import Path

from django.conf import settings

_LOADED_AT = time.time()


def at_server_init():
    """First, while the Server starts."""


def at_server_start():
    """Whenever the Server has started, for whatever reason."""
    from typeclasses.npcs import start_rounds
    from world.build import build_world

    build_world()
    start_rounds()
    if not _is_about_to_restart():
        _ready_file().write_text(f"{os.getpid()}\n", encoding="ascii")


def at_server_stop():
    """Just before the Server stops, for whatever reason."""
    _ready_file().unlink(missing_ok=True)


def at_server_reload_start():
    """After a reload."""


def at_server_reload_stop():
    """Before a reload."""


def at_server_cold_start():
    """After a shutdown or a reset."""


def at_server_cold_stop():
    """Before a shutdown or a reset."""


def _ready_file():
    """Names the Server process that is up, its world built; `evennia-ai start` waits for it."""
    return Path(settings.GAME_DIR) / "server" / "ready"


def _is_about_to_restart():
    """Whether this is the first boot of a new game, after which Evennia restarts once."""
    from evennia.server.models import ServerConfig

    return (ServerConfig.objects.conf("server_epoch") or 0) > _LOADED_AT
