"""What Evennia calls when the server starts and stops: `startstop`, imported with the first call.

Evennia imports the modules of `AT_SERVER_STARTSTOP_MODULE` in each of its commands as well, which
call nothing of them.
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(import_module("evennia_ai.startstop"), name)
