"""Everything an assistant is, as one JSON file."""

import re
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evennia.typeclasses.models import TypedObject
from twisted.internet.defer import inlineCallbacks

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps
from evennia_ai.errors import Refusal
from evennia_ai.game.deletions import delete_queued, enqueue
from evennia_ai.game.evennia_internals import AttributeStore
from evennia_ai.history.messages import utc_iso
from evennia_ai.privacy.export import write_export
from evennia_ai.turns.options import OPTIONS


@inlineCallbacks
def export_assistant(script: AssistantScript) -> Steps[Path]:
    """Write what it is and every stored Attribute, opened, to a file; fires with its path.

    The file is in ``server/ai_exports`` of the game. Data are read on the reactor thread in slices
    and written on another one; fails with `OSError`. Call it under the turn lock
    (`script.run_exclusive`), so that nothing changes meanwhile.
    """
    data: dict[str, Any] = {}
    yield script.runtime.lock.run_steps(_collected(script, data))
    at = time.strftime("%Y%m%d-%H%M%S", time.gmtime(script.now()))
    name = re.sub(r"[^\w-]+", "_", script.obj.key) or "assistant"
    path: Path = yield write_export(f"{name}-{script.obj.pk}-{at}.json", data)
    return path


@inlineCallbacks
def export_and_delete(script: AssistantScript) -> Steps[Path]:
    """Write an assistant to a file, then delete body, script and derived data.

    Fires with the file's path. If the file cannot be written it fails, and nothing is deleted. The
    next start deletes what a crash or a failing store leaves.
    """
    try:
        path = yield export_assistant(script)
    except OSError as error:
        raise Refusal(f"The export cannot be written: {error}") from error
    enqueue(script.scope)
    is_deleted = script.obj.delete()
    yield delete_queued()
    if not is_deleted:
        raise Refusal("Evennia refused to delete the body; see its `at_object_delete`.")
    return path


def _collected(script: AssistantScript, data: dict[str, Any]) -> Iterator[None]:
    """Fill `data`, a slice at each step."""
    body = script.obj
    data.update(
        exported_at=utc_iso(script.now()),
        name=body.key,
        typeclass=body.typeclass_path,
        location=body.location.key if body.location else None,
        description=str(body.db.desc or ""),
        config={name: getattr(script.config, name) for name in OPTIONS},
        aliases=sorted(body.aliases.all()),
        tags=sorted(body.tags.all(return_key_and_category=True), key=str),
        permissions=sorted(body.permissions.all()),
        locks=str(body.locks),
        attributes={"script": [], "body": []},
    )
    for whose, owner in (("script", script), ("body", body)):
        for attribute in _attributes(owner):
            data["attributes"][whose].append(attribute)
            yield


def _attributes(owner: TypedObject) -> Iterator[dict[str, Any]]:
    """Every Attribute of an object, one loaded at a time, its value as plain data."""
    store = AttributeStore(owner)
    rows = owner.db_attributes.filter(db_attrtype__isnull=True).order_by("pk")
    for key, category in rows.values_list("db_key", "db_category"):
        yield {"key": key, "category": category, "value": _plain(store.get(key, category))}


def _plain(value: object) -> Any:
    """A stored value as JSON can hold it; game objects by their names."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset | deque):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | float | None) else str(value)
