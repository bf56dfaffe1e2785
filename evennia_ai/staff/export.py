"""Everything an assistant is, or keeps of one player, as one JSON file."""

import json
import re
import time
from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.task import cooperate

from evennia_ai import services
from evennia_ai.assistant_script import AssistantScript
from evennia_ai.game.evennia_internals import AttributeStore
from evennia_ai.history.audience import private, visible
from evennia_ai.history.forgetting import is_by
from evennia_ai.history.messages import utc_iso
from evennia_ai.privacy.queue import export_folder
from evennia_ai.turns.options import OPTIONS

if TYPE_CHECKING:
    from evennia.typeclasses.models import TypedObject

# Journal entries looked at before others get their turn on the reactor.
_SLICE = 100


@inlineCallbacks
def export_assistant(script: AssistantScript) -> Generator["Deferred[Any]", Any, Path]:
    """Write readable sections and every stored Attribute to a file; fires with its path.

    The file is in ``server/ai_exports`` of the game. Data are read on the reactor thread in slices
    and written on another one; fails with `OSError`. Call it under the turn lock
    (`script.run_exclusive`), so that nothing changes meanwhile.
    """
    data: dict[str, Any] = {}
    yield cooperate(_collected(script, data)).whenDone()
    at = time.strftime("%Y%m%d-%H%M%S", time.gmtime(script.now()))
    name = re.sub(r"[^\w-]+", "_", script.obj.key) or "assistant"
    path = export_folder() / f"{name}-{script.obj.pk}-{at}.json"
    yield services.on_disk(_write, path, data)
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
        compactions=[record.to_dict() for record in script.history.compactions()],
        archive=[],
        summaries=[],
        journal=[],
    )
    history = script.history
    summaries = filter(None, map(history.summary, history.summary_ids()))
    for items, found in (
        (data["archive"], (segment.to_dict() for segment in history.segments())),
        (data["summaries"], (record.to_dict() for record in summaries)),
        (data["journal"], (entry.to_dict() for entry in body.journal.all())),
        (data["attributes"]["script"], _attributes(script)),
        (data["attributes"]["body"], _attributes(body)),
    ):
        for item in found:
            items.append(item)
            yield
    data["journal"].sort(key=lambda entry: str(entry["timestamp"]))


@inlineCallbacks
def export_player(
    scripts: Iterable[AssistantScript], people: Collection[str]
) -> Generator["Deferred[Any]", Any, Path]:
    """Write what assistants keep of a player to a file; fires with its path.

    That is what they said, their notes, and what was observed or written down of that and of them,
    as far as they may know it; no summaries, which hold words of others too.
    `people` are the stable ids of the player's characters and account. The file takes the place of
    an earlier one; `aiforget` deletes it.
    """
    now = time.time()
    data: dict[str, Any] = {"exported_at": utc_iso(now)}
    data |= {"people": list(people), "assistants": {}}
    yield cooperate(_of_player(scripts, people, data["assistants"])).whenDone()
    path = export_folder() / f"player-{min(people)}.json"
    yield services.on_disk(_write, path, data)
    return path


def _of_player(
    scripts: Iterable[AssistantScript], people: Collection[str], data: dict[str, Any]
) -> Iterator[None]:
    """Fill `data` with a section for each assistant, a slice at each step."""
    for script in scripts:
        history, body, said = script.history, script.obj, dict[str, Any]()
        for segment in history.segments():
            said |= {m.id: m.to_dict() for m in segment.messages if is_by(m, people)}
            yield
        said |= {m.id: m.to_dict() for m in history.messages() if is_by(m, people)}

        def may_know(audience: str) -> bool:
            return any(visible(audience, private([each])) for each in people)

        notes = [
            note.to_dict()
            for note in script.ledger.everything()
            if note.by.id in people or (set(people) & set(note.about) and may_know(note.audience))
        ]
        observations = [
            item.text
            for each in people
            if (profile := body.entities.get(each))
            for item in body.entities.whole(profile).observations
            if may_know(item.audience)
        ]
        entries = []
        for number, entry in enumerate(body.journal.all()):
            rests = not said.keys().isdisjoint(entry.source_message_ids)
            if rests and entry.may_consolidate and may_know(entry.audience):
                entries.append(entry.to_dict())
            if number % _SLICE == 0:
                yield
        data[f"{body.key} (#{body.pk})"] = {
            "said": sorted(said.values(), key=lambda message: str(message.get("created_at"))),
            "notes": notes,
            "observations": observations,
            "journal": sorted(entries, key=lambda entry: str(entry["timestamp"])),
        }


def _attributes(owner: "TypedObject") -> Iterator[dict[str, Any]]:
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


def _write(path: Path, data: dict[str, Any]) -> None:
    """Write the file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    text = json.dumps(data, ensure_ascii=False, indent=1, default=str)
    draft.write_bytes(text.encode("utf-8", "surrogatepass"))
    draft.replace(path)
