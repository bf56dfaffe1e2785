"""The version of what is stored, and the migrations that bring older data up to it.

A migration takes the script and changes its Attributes (and its body's) from one version to the
next. Each runs in a transaction at server start, once.
"""

from collections.abc import Callable
from typing import Any

from evennia_ai.assistant.runtime import LiveAssistant

VERSION_KEY = "schema_version"
# Of an assistant's data as a whole; each stored value has a version of its own shape besides.
DATA_VERSION = 2


def adopt_unversioned(script: LiveAssistant) -> None:
    """From data without a version (hand-made, or none): every message and entry made complete."""
    history = script.history
    history.messages()
    history.checkpoint()
    if script.obj is not None:
        script.journal.store_complete()


def page_closed_notes(script: LiveAssistant) -> None:
    """From a ledger that held all notes ever taken: the closed ones go into pages."""
    script.ledger.page_closed()


MIGRATIONS: dict[int, Callable[[Any], None]] = {0: adopt_unversioned, 1: page_closed_notes}


def migrate(script: LiveAssistant) -> int:
    """Bring a script's data to `DATA_VERSION`; returns how many migrations ran.

    Data of a newer version of the package are left alone.
    """
    store = script.history.store
    version = store.get(VERSION_KEY, default=0)
    version = version if isinstance(version, int) else 0
    ran = 0
    while version < DATA_VERSION:
        with store.transaction():
            MIGRATIONS[version](script)
            version += 1
            store.set(VERSION_KEY, version)
        ran += 1
    return ran
