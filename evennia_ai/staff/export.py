"""Everything an assistant is, as one JSON file, and back."""

import json
import re
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evennia import DefaultObject
from evennia.typeclasses.models import TypedObject
from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai import services
from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps
from evennia_ai.cards.books import exported, read_book
from evennia_ai.errors import AssistantError, ConfigError, Refusal
from evennia_ai.game.evennia_internals import AttributeStore, is_life
from evennia_ai.game.lore import lore
from evennia_ai.game.seeing import find
from evennia_ai.history.messages import utc_iso
from evennia_ai.history.stored import as_dict, as_dicts, as_text, as_texts
from evennia_ai.privacy.export import export_folder, write_export
from evennia_ai.staff.configuration import set_options
from evennia_ai.staff.lore import book_for, own_book, take_book
from evennia_ai.turns.options import OPTIONS, check_option
from evennia_ai.turns.state import SCRIPT
from evennia_ai.turns.tools.waiting import KEY as WAITING

# What an imported assistant does not take: it begins switched on, with nothing waiting and with
# nobody of another game to report to.
NOT_TAKEN = ("enabled", "event_queue", WAITING)
_ID = re.compile(r"[os]\d+\.\w+")


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

    Fires with the file's path. If the file cannot be written it fails, and nothing is deleted.
    """
    try:
        path = yield export_assistant(script)
    except OSError as error:
        raise Refusal(f"The export cannot be written: {error}") from error
    if not script.obj.delete():
        raise Refusal("Evennia refused to delete the body; see its `at_object_delete`.")
    return path


def _collected(script: AssistantScript, data: dict[str, Any]) -> Iterator[None]:
    """Fill `data`, a slice at each step."""
    body = script.obj
    book = own_book(body)
    data.update(
        exported_at=utc_iso(script.now()),
        ids=[script.scope, body.stable_id],
        lore=exported(book) if book else None,
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


def read_export(name: str, ids: Sequence[str] = ()) -> "Deferred[dict[str, Any]]":
    """Fires with an exported assistant from a file in ``server/ai_exports``.

    `ids` of the script and the body take the place of those of the assistant that was exported.
    """

    def load() -> dict[str, Any]:
        path = export_folder() / Path(name.strip()).name
        try:
            text = path.read_bytes().decode("utf-8", "surrogatepass")
            data = as_dict(json.loads(text))
        except OSError as error:
            files = ", ".join(sorted(each.name for each in path.parent.glob("*.json"))) or "none"
            raise Refusal(f"`{path}` cannot be read. Files there: {files}.") from error
        except ValueError as error:
            raise Refusal(f"`{path.name}` is no JSON file: {error}.") from error
        before = as_texts(data.get("ids"))
        is_whole = len(before) == 2 and isinstance(data.get("attributes"), dict)
        if not is_whole or not all(map(_ID.fullmatch, before)):
            raise Refusal(f"`{path.name}` is no export of an assistant.")
        for old, new in zip(before, ids, strict=False):
            text = text.replace(old, new)
        return {**json.loads(text), "ids": before} if ids else data

    done: Deferred[dict[str, Any]] = services.on_disk(load)
    return done


@inlineCallbacks
def import_assistant(script: AssistantScript, file: str, by: str) -> Steps[list[str]]:
    """Give a new assistant the options and the life that stand in a file; fires with a report.

    Call it under the turn lock. Rights, locks and what the game's own code stored are not taken.
    """
    body = script.obj
    data = yield read_export(file, (script.scope, body.stable_id))
    report = [f"{body.key} has what stands in {file}."]
    yield script.runtime.lock.run_steps(_restored(script, as_dict(data["attributes"]), by, report))
    if description := as_text(data.get("description")):
        body.db.desc = description
    _take_lore(body, str(data["ids"][1]), data.get("lore"), file, report)
    script.audit("imported", file=file, by=by)
    return report


def _restored(
    script: AssistantScript, attributes: Mapping[str, Any], by: str, report: list[str]
) -> Iterator[None]:
    """Store the Attributes of an export, one at each step."""
    options, left = dict[str, Any](), list[str]()
    for whose, owner in (("script", script), ("body", script.obj)):
        store = AttributeStore(owner)
        for row in as_dicts(attributes.get(whose)):
            key, category, value = as_text(row.get("key")), row.get("category"), row.get("value")
            if category is None and key in OPTIONS:
                options[key] = value
            elif key in NOT_TAKEN:
                continue
            elif is_life(key, category) or (category, key) in SCRIPT:
                store.set(key, value, category)
            elif whose == "body" and key != "desc" and category is None:
                left.append(key)
            yield
    for name in list(options):
        try:
            options[name] = check_option(name, options[name], script.allowed)
        except ConfigError as error:
            report.append(f"Not taken: {error}")
            del options[name]
    set_options(script, options, by, is_admin=True)
    if left:
        report.append(f"Not taken, as it is the game's own: {', '.join(left)}.")


def _take_lore(body: DefaultObject, old: str, raw: Any, file: str, report: list[str]) -> None:
    """Give a body the lore that an assistant had for itself, if that assistant is gone."""
    mine = f"npc:{body.stable_id}"
    there = [book for book in lore().books().values() if book.know == f"npc:{old}"]
    if there and find(old) is None:
        lore().save(replace(there[0], know=mine))
    elif raw:
        read, _ = read_book(raw)
        try:
            report += take_book(read, book_for(read.name, mine), file, is_of_card=True)[1]
        except AssistantError as error:
            report.append(f"Its lore was not taken: {error}")
