"""Everything an assistant is, as one JSON file, and back."""

import json
import re
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, StringConstraints
from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai import services
from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps
from evennia_ai.errors import ConfigError, Refusal
from evennia_ai.game.evennia_internals import AttributeStore, is_life
from evennia_ai.history.messages import utc_iso
from evennia_ai.options import OPTIONS, check_option
from evennia_ai.privacy.export import export_folder, write_export
from evennia_ai.staff.configuration import Tuning
from evennia_ai.turns.assistant import QUEUE, SCRIPT
from evennia_ai.turns.waiting import KEY as WAITING

# What an imported assistant does not take: it begins switched on, with nothing waiting and with
# nobody of another game to report to.
NOT_TAKEN = frozenset(("enabled", QUEUE, WAITING))
_Id = Annotated[str, StringConstraints(pattern=r"^[os]\d+\.\w+$")]


@inlineCallbacks
def export_assistant(script: AssistantScript) -> Steps[Path]:
    """Write what it is and every stored Attribute, opened, to a file; fires with its path.

    The file is in ``server/ai_exports`` of the game. Data are read on the reactor thread in slices
    and written on another one; fails with `OSError`. Call it under the turn lock
    (`script.run_exclusive`), so that nothing changes meanwhile.
    """
    body, attributes = script.obj, dict[str, list[Any]]()
    data = {
        "exported_at": utc_iso(script.now()),
        "ids": [script.scope, body.stable_id],
        "name": body.key,
        "typeclass": body.typeclass_path,
        "location": getattr(body.location, "key", None),
        "description": str(body.db.desc or ""),
        "aliases": sorted(body.aliases.all()),
        "tags": sorted(body.tags.all(return_key_and_category=True), key=str),
        "permissions": sorted(body.permissions.all()),
        "locks": str(body.locks),
        "attributes": attributes,
    }

    def collected() -> Iterator[None]:
        for whose, owner in (("script", script), ("body", body)):
            store, stored = AttributeStore(owner), attributes.setdefault(whose, [])
            rows = owner.db_attributes.filter(db_attrtype__isnull=True).order_by("pk")
            for key, category in rows.values_list("db_key", "db_category"):
                value = _plain(store.get(key, category))
                stored.append({"key": key, "category": category, "value": value})
                yield

    yield script.runtime.lock.run_steps(collected())
    at = time.strftime("%Y%m%d-%H%M%S", time.gmtime(script.now()))
    name = re.sub(r"[^\w-]+", "_", body.key) or "assistant"
    path: Path = yield write_export(f"{name}-{script.obj.pk}-{at}.json", data)
    return path


@inlineCallbacks
def export_and_delete(script: AssistantScript) -> Steps[Path]:
    """Write an assistant to a file, then delete body, script and derived data.

    Fires with the file's path. If the file cannot be written it fails, and nothing is deleted.
    """
    stays = f"{script.own_name} was not deleted"
    try:
        path = yield export_assistant(script)
    except OSError as error:
        raise Refusal(f"{stays}: the export cannot be written: {error}") from error
    if not script.obj.delete():
        raise Refusal(f"{stays}: Evennia refused that for its body; see its `at_object_delete`.")
    yield script.deleting
    return path


def _plain(value: object) -> Any:
    """A stored value as JSON can hold it; game objects by their names."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset | deque):
        return [_plain(each) for each in value]
    if isinstance(value, str | int | float | None):
        return value
    return str(value)


class Row(BaseModel):
    """A stored Attribute."""

    key: str
    category: str | None = None
    value: Any = None


class Rows(BaseModel):
    """The stored Attributes of an assistant."""

    script: list[Row] = []
    body: list[Row] = []


class Exported(BaseModel):
    """An assistant as it stands in a file."""

    # Of its script and of its body.
    ids: tuple[_Id, _Id]
    name: str = ""
    typeclass: str = ""
    description: str = ""
    attributes: Rows

    def with_ids(self, *ids: str) -> "Exported":
        """The same with other ids, wherever they stand in it."""
        text = json.dumps(self.model_dump())
        for old, new in zip(self.ids, ids, strict=True):
            text = text.replace(old, new)
        return Exported.model_validate(json.loads(text))


def read_export(name: str) -> "Deferred[Exported]":
    """Fires with an exported assistant from a file in ``server/ai_exports``."""

    def read() -> Exported:
        path = export_folder() / Path(name.strip()).name
        try:
            data = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
            return Exported.model_validate(data)
        except OSError as error:
            files = ", ".join(sorted(each.name for each in path.parent.glob("*.json"))) or "none"
            raise Refusal(f"`{path}` cannot be read. Files there: {files}.") from error
        except ValueError as error:  # of JSON, or of pydantic
            raise Refusal(f"`{path.name}` is no export of an assistant.") from error

    return services.on_disk(read)


@inlineCallbacks
def import_assistant(
    script: AssistantScript, old: Exported, file: str, by: str
) -> Steps[list[str]]:
    """Give a new assistant the options and the life of an exported one; fires with a report.

    Call it under the turn lock. Rights, locks and what the game's own code stored are not taken.
    """
    body, options, left = script.obj, dict[str, Any](), list[str]()
    new = yield services.on_disk(old.with_ids, script.scope, body.stable_id)
    report = [f"{body.key} has what stands in {file}."]

    def restored() -> Iterator[None]:
        for owner, stored in ((script, new.attributes.script), (body, new.attributes.body)):
            store = AttributeStore(owner)
            for row in stored:
                if row.category is None and row.key in OPTIONS:
                    try:
                        options[row.key] = check_option(row.key, row.value, script.allowed)
                    except ConfigError as error:
                        report.append(f"Not taken: {error}")
                elif is_life(row.key, row.category) or (row.category, row.key) in SCRIPT:
                    if NOT_TAKEN.isdisjoint((row.key, row.category)):
                        store.set(row.key, row.value, row.category)
                elif owner is body and row.key != "desc" and row.category is None:
                    left.append(row.key)
                yield
        Tuning(script, by, is_admin=True).set(options)

    yield script.runtime.lock.run_steps(restored())
    if left:
        report.append(f"Not taken, as it is the game's own: {', '.join(left)}.")
    body.db.desc = new.description or body.db.desc
    script.audit("imported", file=file, by=by)
    return report
