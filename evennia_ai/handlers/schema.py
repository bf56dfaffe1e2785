"""The version of what is stored, and the migrations that bring older data up to it.

A migration takes the script and changes its Attributes (and its body's) from one version to the
next. Each runs in a transaction at server start, once.
"""

from collections.abc import Callable
from typing import Any

from evennia_ai.core.messages import SCHEMA_VERSION

VERSION_KEY = "schema_version"


def adopt_unversioned(script: Any) -> None:
    """From data without a version (hand-made, or none): every message and entry made complete."""
    history = script.history
    history.messages()
    history.checkpoint()
    if script.obj is not None:
        journal = script.obj.journal
        store = journal.store
        if store.get("journal") is not None:
            store.set("journal", journal.newest_page())


MIGRATIONS: dict[int, Callable[[Any], None]] = {0: adopt_unversioned}


def migrate(script: Any) -> int:
    """Bring a script's data to `SCHEMA_VERSION`.

    Returns:
        How many migrations ran; 0 if the data were current. Data of a newer version of the
        package are left alone.
    """
    store = script.history.store
    version = store.get(VERSION_KEY, default=0)
    version = version if isinstance(version, int) else 0
    ran = 0
    while version < SCHEMA_VERSION:
        with store.transaction():
            MIGRATIONS[version](script)
            version += 1
            store.set(VERSION_KEY, version)
        ran += 1
    return ran
