"""Read a game's database and memory files without the package that wrote them.

`upgrade.py` compares two such records. Attributes are read as Evennia stores them, by a process
next to the game, and files by `sqlite3`. Neither imports a module of the package, which a later
version may have moved.
"""

import base64
import binascii
import io
import json
import pickle
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.e2e.game import Game

# Reads every Attribute of every object, and the objects.
SOURCE = """
import json
from collections import deque
from collections.abc import Mapping, Set
from evennia.accounts.models import AccountDB
from evennia.comms.models import ChannelDB
from evennia.objects.models import ObjectDB
from evennia.scripts.models import ScriptDB
from evennia.typeclasses.attributes import Attribute

def plain(value):
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, deque)):
        return [plain(each) for each in value]
    if isinstance(value, (Set, frozenset)):
        return sorted((plain(each) for each in value), key=repr)
    return value if isinstance(value, (str, int, float, type(None))) else repr(value)

fields = ("pk", "db_key", "db_category", "db_strvalue", "db_value", "db_lock_storage")
values = {row[0]: row[1:] for row in Attribute.objects.values_list(*fields)}
found = {"objects": {}, "attributes": {}}
for model in (AccountDB, ChannelDB, ObjectDB, ScriptDB):
    name = model.__name__
    for row in model.objects.order_by("pk").values():
        found["objects"][f"{name} {row['id']}"] = {
            key: plain(value) for key, value in row.items() if key.startswith("db_")
        }
    links = model.db_attributes.through.objects
    for owner, pk in links.values_list(f"{name.lower()}_id", "attribute_id"):
        key, category, text, value, locks = values[pk]
        kept = {"value": plain(value), "text": text, "locks": locks}
        found["attributes"][f"{name} {owner}: {category or ''}/{key}"] = kept
    tags = model.db_tags.through.objects
    names = (f"{name.lower()}_id", "tag__db_key", "tag__db_category", "tag__db_tagtype")
    for owner, *tag in tags.values_list(*names):
        found["objects"][f"{name} {owner}"].setdefault("tags", []).append(tag)
for each in found["objects"].values():
    each.get("tags", []).sort(key=repr)
print("\\n" + json.dumps(found))
"""
NAMED = re.compile(r"evennia_ai(?:\.\w+)+")
SCRIPT = "evennia_ai.assistant_script.AssistantScript"
Record = dict[str, Any]


def recorded(game: Game) -> Record:
    """Return everything that is stored in a game.

    Args:
        game: It may be running. What is only in its memory is then missing.

    Returns:
        ``{"objects", "attributes", "memories", "index"}``: rows and Attributes by their owner's
        kind and id, Mem0's memories by id, and items of the recall index by scope and id.
    """
    found: Record = json.loads(game.python(SOURCE).splitlines()[-1])
    folder = game.folder / "server" / "ai_memory"
    return {**found, "memories": _memories(folder), "index": _index(folder)}


def _memories(folder: Path) -> dict[str, Any]:
    """Return Mem0's own record of each memory: its history and its text."""
    rows = _rows(
        folder / "mem0" / "history.db",
        "SELECT memory_id, event, new_memory, is_deleted FROM history ORDER BY memory_id, id",
    )
    points: dict[str, Any] = {}
    for path in sorted((folder / "mem0").glob("qdrant/collection/*/storage.sqlite")):
        for (blob,) in _rows(path, "SELECT point FROM points"):
            point = pickle.loads(blob)
            points[f"{path.parent.name} {point.id}"] = json.loads(
                json.dumps(point.payload, sort_keys=True, default=str)
            )
    return {"told": [list(row) for row in rows], "points": points}


def _index(folder: Path) -> dict[str, Any]:
    rows = _rows(
        folder / "recall.sqlite3",
        "SELECT name, id, speaker, text, at, session, audience, kind"
        " FROM turns JOIN scopes ON turns.scope = scopes.number",
    )
    return {f"{row[0]} {row[1]}": list(row[2:]) for row in rows}


def _rows(path: Path, query: str) -> list[Any]:
    if not path.exists():
        return []
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        return connection.execute(query).fetchall()


# -- what is in a record ---------------------------------------------------------------------------


def assistants(record: Record) -> dict[str, str]:
    """Return the rows of the assistants' scripts, by the bodies' names, as `ScriptDB 3`."""
    objects = record["objects"]
    return {
        objects[f"ObjectDB {row['db_obj_id']}"]["db_key"]: name
        for name, row in objects.items()
        if row.get("db_typeclass_path") == SCRIPT
    }


def body_of(record: Record, script: str) -> str:
    """Return the row of the body of an assistant's script."""
    return f"ObjectDB {record['objects'][script]['db_obj_id']}"


def attributes_of(record: Record, owner: str, category: str | None = None) -> dict[str, Any]:
    """Return an owner's stored values by category and key, or by key in one category."""
    start = f"{owner}: " if category is None else f"{owner}: {category}/"
    kept = record["attributes"].items()
    return {name[len(start) :]: each["value"] for name, each in kept if name.startswith(start)}


def parts(record: Record, name: str = "Aria") -> dict[str, dict[str, Any]]:
    """Return what an assistant has stored, by part and id, for counting and comparing."""
    script = assistants(record)[name]
    body = body_of(record, script)
    live = [
        attributes_of(record, script).get(f"/conversation_{key}") for key in ("history", "tail")
    ]
    archive = attributes_of(record, script, "ai_archive")
    journal = [
        attributes_of(record, body, "ai_journal"),
        attributes_of(record, body).get("/journal"),
    ]
    ledger = [attributes_of(record, script, each) for each in ("ai_ledger", "ai_ledger_closed")]
    known = attributes_of(record, body).get("/entity_profiles") or {}
    return {
        "live_messages": _by_id(live, "role"),
        "archived_messages": _by_id(archive, "role"),
        "archive_segments": archive,
        "journal_entries": _by_id(journal, "source_type"),
        "consolidated": dict.fromkeys(sorted(set(_consolidated(journal))), True),
        "ledger_notes": _by_id(ledger, "state"),
        "entity_profiles": dict(known.get("profiles") or {}),
        "summaries": attributes_of(record, script, "ai_summaries"),
        "compactions": attributes_of(record, script, "ai_compactions"),
    }


def _by_id(value: Any, key: str) -> dict[str, Any]:
    """Return all dicts that have an id and another key, at any depth."""
    return {each["id"]: each for each in _dicts(value) if "id" in each and key in each}


def _dicts(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
    inner = value.values() if isinstance(value, Mapping) else value
    for each in inner if isinstance(value, Mapping | list) else ():
        yield from _dicts(each)


def _consolidated(journal: Any) -> Iterator[str]:
    for page in _dicts(journal):
        if "entries" in page:
            yield from map(str, page.get("consolidated_entry_ids") or ())


# -- paths that must stay importable ---------------------------------------------------------------


def paths_in_files(folder: Path) -> dict[str, list[str]]:
    """Return each dotted path of the package in a game's own files, with the files."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if path.suffix not in (".py", ".md", ".txt", ".html") or "logs" in inner.parts:
            continue
        for name in sorted(_named(path.read_text(encoding="utf-8", errors="replace"))):
            found.setdefault(name, []).append(str(inner))
    return dict(sorted(found.items()))


def _named(text: str) -> set[str]:
    found = set(NAMED.findall(text))
    for module, names in re.findall(r"from (evennia_ai[\w.]*) import ([\w, ]+)", text):
        found.discard(module)
        found |= {f"{module}.{name.split()[0]}" for name in names.split(",") if name.strip()}
    return found | ({"evennia_ai"} if re.search(r"[\"']evennia_ai[\"']", text) else set())


def paths_in_database(folder: Path) -> dict[str, list[str]]:
    """Return each dotted path of the package in the database, with its columns.

    A class that a pickled value names is listed in ``pickled table.column``.
    """
    found: dict[str, set[str]] = {}
    database = folder / "server" / "evennia.db3"
    for (table,) in _rows(database, "SELECT name FROM sqlite_master WHERE type = 'table'"):
        with closing(sqlite3.connect(database)) as connection:
            cursor = connection.execute(f'SELECT * FROM "{table}"')
            columns = [each[0] for each in cursor.description]
            for row in cursor:
                for column, value in zip(columns, row, strict=True):
                    for name, how in _in_cell(value):
                        found.setdefault(name, set()).add(f"{how}{table}.{column}")
    return {name: sorted(places) for name, places in sorted(found.items())}


def _in_cell(value: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(value, str | bytes) or len(value) < 4:
        return
    raw = value if isinstance(value, bytes) else value.encode()
    data = unpacked(raw)
    for name in NAMED.findall(raw.decode("latin-1")):
        yield name, ""
    if data is None:
        return
    for name in NAMED.findall(data.decode("latin-1")):
        yield name, "text in "
    for name in pickled_names(data):
        if name.startswith("evennia_ai"):
            yield name, "pickled "


def unpacked(raw: bytes) -> bytes | None:
    """Return the pickle in a cell, which Evennia may have put in base64, or None."""
    for data in (raw, _decoded(raw)):
        if data[:1] == b"\x80" and data[-1:] == b".":
            return data
    return None


def _decoded(raw: bytes) -> bytes:
    try:
        return base64.b64decode(raw, validate=True)
    except (binascii.Error, ValueError):
        return b""


class _Names(pickle.Unpickler):
    """Records each class and function that a pickle names."""

    def __init__(self, data: bytes):
        super().__init__(io.BytesIO(data))
        self.names: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        """Look a class up, as unpickling does."""
        self.names.add(f"{module}.{name}")
        return super().find_class(module, name)


def pickled_names(data: bytes) -> set[str]:
    """Return the classes and functions that a pickle names and needs."""
    reader = _Names(data)
    reader.load()
    return reader.names
