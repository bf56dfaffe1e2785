"""A real Evennia database in a temporary file, with assistants, for benchmarks."""

import os
import tempfile
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django
from django.conf import settings

from evennia_ai import services
from evennia_ai.background import Worker
from evennia_ai.mind.mind import IndexFile
from evennia_ai.mind.remote import RemoteMind
from evennia_ai.rag_memory.memory import RecallJobs
from tests.memories import MemorySemanticStore
from tests.models import ScriptedModel

CHARACTER = "evennia_ai.assistant_character.AssistantCharacter"


@contextmanager
def world(model: Any = None, process: Mapping[str, Any] | None = None):
    """Set Evennia up on a fresh SQLite file; return a function that makes an assistant.

    Args:
        model: The model client; by default a scripted one that says nothing.
        process: Settings for a mind in a process of its own, with Mem0, instead of these parts.
    """
    with tempfile.TemporaryDirectory() as folder:
        _configure(Path(folder))
        services.reset()
        if process is not None:
            mind = _remote(Path(folder), process)
            services.use(mind=mind, ready=True, server=True)
            yield _make_assistant
            mind.end()
            mind.close()
            services.reset()
            return
        index = IndexFile(Path(folder) / "recall.sqlite3")
        services.use(
            model=model or ScriptedModel(),
            memories=MemorySemanticStore(),
            recall=RecallJobs(Worker("bench-recall"), index),
            ready=True,
        )
        yield _make_assistant
        services.reset()


def _remote(folder: Path, settings: Mapping[str, Any]) -> Any:
    told = {"DATA_DIR": str(folder), **settings}
    return RemoteMind(folder / "server" / "mind", told, folder / "mind.log")


def _configure(folder: Path) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    os.environ["EVENNIA_AI_LLM_MODEL"] = "scripted/model"
    settings.DATABASES["default"]["NAME"] = str(folder / "evennia.db3")
    settings.LOG_DIR = str(folder)
    django.setup()
    from django.core.management import call_command
    from django.db import connection

    with connection.cursor() as cursor:
        for pragma in settings.SQLITE3_PRAGMAS:
            cursor.execute(pragma)
    call_command("migrate", verbosity=0)
    import evennia

    evennia._init()


def _make_assistant(name: str = "Aria") -> tuple[Any, Any]:
    """Make an assistant in its own room with its timer stopped; return script and body."""
    from evennia import create_object

    room = create_object("evennia.objects.objects.DefaultRoom", key=f"Room of {name}")
    body = create_object(CHARACTER, key=name, location=room)
    body.assistant.stop()
    return body.assistant, body
