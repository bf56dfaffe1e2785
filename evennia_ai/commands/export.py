"""Everything an assistant is, as one JSON file."""

import json
import re
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.task import cooperate

from evennia_ai import services
from evennia_ai.assistant.config import OPTIONS
from evennia_ai.assistant.evennia_internals import AttributeStore
from evennia_ai.history.messages import SCHEMA_VERSION, utc_iso
from evennia_ai.protocol import Assistant


def export_folder() -> Path:
    """Where exports are written."""
    return Path(settings.GAME_DIR) / "server" / "ai_exports"


@inlineCallbacks
def export_assistant(
    script: Assistant, folder: Path | None = None
) -> Generator["Deferred[Any]", Any, Path]:
    """Write all an assistant is: readable sections, then every Attribute as it is stored.

    Data are read on the reactor thread in slices, and written on another. Call it under the turn
    lock (`script.run_exclusive`), so that nothing moves meanwhile.

    Args:
        script: The assistant's script.
        folder: Where to write; `export_folder()` if None.

    Returns:
        A Deferred that fires with the file's path, or fails with `OSError`.
    """
    data: dict[str, Any] = {}
    yield cooperate(_collected(script, data)).whenDone()
    at = time.strftime("%Y%m%d-%H%M%S", time.gmtime(script.now()))
    name = re.sub(r"[^\w-]+", "_", script.obj.key) or "assistant"
    path = (folder or export_folder()) / f"{name}-{script.obj.pk}-{at}.json"
    yield services.on_disk(_write, path, data)
    return path


def _collected(script: Assistant, data: dict[str, Any]) -> Iterator[None]:
    """Fill `data`, a slice at each step."""
    body = script.obj
    data.update(
        version=SCHEMA_VERSION,
        exported_at=utc_iso(script.now()),
        name=body.key,
        typeclass=body.typeclass_path,
        location=body.location.key if body.location else None,
        description=str(body.db.desc or ""),
        config={name: getattr(script.config, name) for name in OPTIONS},
        state={"mode": script.state.mode, "last_compaction": script.state.last_compaction},
        history=[message.to_dict() for message in script.history.messages()],
        queue=[event.to_dict() for event in script.runtime.queue],
        entities={k: p.to_dict() for k, p in body.entities.profiles().items()},
        ledger=[note.to_dict() for note in script.ledger.everything()],
        aliases=sorted(body.aliases.all()),
        tags=sorted(body.tags.all(return_key_and_category=True), key=str),
        permissions=sorted(body.permissions.all()),
        locks=str(body.locks),
        attributes={"script": [], "body": []},
        compactions=[],
        archive=[],
        summaries=[],
        journal=[],
    )
    yield
    for segment in script.history.segments():
        data["archive"].append(segment.to_dict())
        yield
    for summary_id in script.history.summary_ids():
        if record := script.history.summary(summary_id):
            data["summaries"].append(record.to_dict())
        yield
    data["compactions"] += [record.to_dict() for record in script.history.compactions()]
    yield
    for number, entry in enumerate(body.journal.all()):
        data["journal"].append(entry.to_dict())
        if number % 50 == 0:
            yield
    data["journal"].sort(key=lambda entry: str(entry["timestamp"]))
    for name, owner in (("script", script), ("body", body)):
        for attribute in _attributes(owner):
            data["attributes"][name].append(attribute)
            yield


def _attributes(owner: Any) -> Iterator[dict[str, Any]]:
    """Every Attribute of an object, one loaded at a time, its value as plain data."""
    store = AttributeStore(owner)
    rows = owner.db_attributes.filter(db_attrtype__isnull=True).order_by("pk")
    for key, category in rows.values_list("db_key", "db_category"):
        yield {"key": key, "category": category, "value": _plain(store.get(key, category))}


def _plain(value: Any) -> Any:
    """A stored value as JSON can hold it; game objects by their names."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset | deque):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | float | None) else str(value)


def _write(path: Path, data: dict[str, Any]) -> None:
    """Write the file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    text = json.dumps(data, ensure_ascii=False, indent=1, default=str)
    draft.write_bytes(text.encode("utf-8", "surrogatepass"))
    draft.replace(path)
