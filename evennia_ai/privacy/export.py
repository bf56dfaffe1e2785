"""A player's copy: what assistants keep of one player, as one JSON file."""

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.task import cooperate

from evennia_ai import services
from evennia_ai.background import Steps
from evennia_ai.history.audience import private, visible
from evennia_ai.history.messages import is_by, utc_iso

if TYPE_CHECKING:
    from evennia_ai.assistant_script import AssistantScript

# How the files with copies for players begin.
_COPY = "player-"


def export_folder() -> Path:
    """Where exports are written: ``server/ai_exports`` of the game."""
    return Path(settings.GAME_DIR) / "server" / "ai_exports"


def write_export(name: str, data: Mapping[str, Any]) -> "Deferred[Path]":
    """Write a file of this name on a thread, whole or not at all; fires with its path."""
    path = export_folder() / name

    def write() -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".part")
        text = json.dumps(data, ensure_ascii=False, indent=1, default=str)
        draft.write_bytes(text.encode("utf-8", "surrogatepass"))
        return draft.replace(path)

    done: Deferred[Path] = services.on_disk(write)
    return done


def delete_exports(people: Collection[str]) -> None:
    """Delete every exported file that names one of these people (stable ids).

    Copies for players go too: what was observed of them may rest on anybody's words.
    """
    folder, ids = export_folder(), [f'"{person}"'.encode() for person in people]
    for path in folder.rglob("*") if folder.is_dir() else ():
        if path.is_file() and (
            path.name.startswith(_COPY) or any(each in path.read_bytes() for each in ids)
        ):
            path.unlink()


@inlineCallbacks
def export_player(scripts: "Iterable[AssistantScript]", people: Collection[str]) -> Steps[Path]:
    """Write what assistants keep of a player to a file; fires with its path.

    That is what they said, their notes, what features keep of them, and what was observed or
    written down of that and of them, as far as they may know it; no summaries, which hold words of
    others too.
    `people` are the stable ids of the player's characters and account. The file takes the place of
    an earlier one; `aiforget` deletes it.
    """
    data: dict[str, Any] = {"exported_at": utc_iso(time.time())}
    data |= {"people": list(people), "assistants": {}}
    yield cooperate(_of_player(scripts, people, data["assistants"])).whenDone()
    path: Path = yield write_export(f"{_COPY}{min(people)}.json", data)
    return path


def _of_player(
    scripts: "Iterable[AssistantScript]", people: Collection[str], data: dict[str, Any]
) -> Iterator[None]:
    """Fill `data` with a section for each assistant, a slice at each step."""

    def may_know(audience: str) -> bool:
        return any(visible(audience, private([each])) for each in people)

    for script in scripts:
        history, body, said = script.history, script.obj, dict[str, Any]()
        for segment in history.segments():
            said |= {m.id: m.to_dict() for m in segment.messages if is_by(m, people)}
            yield
        said |= {m.id: m.to_dict() for m in history.messages() if is_by(m, people)}
        entries = []
        for entry in body.journal.all():
            rests = not said.keys().isdisjoint(entry.source_message_ids)
            if rests and entry.may_consolidate and may_know(entry.audience):
                entries.append(entry.to_dict())
            yield
        data[f"{body.key} (#{body.pk})"] = {
            "said": sorted(said.values(), key=lambda message: str(message.get("created_at"))),
            "notes": [
                note.to_dict()
                for note in script.ledger.everything()
                if note.by.id in people
                or (not set(people).isdisjoint(note.about) and may_know(note.audience))
            ],
            "observations": [
                item.text
                for profile in filter(None, map(body.entities.get, people))
                for item in body.entities.whole(profile).observations
                if may_know(item.audience)
            ],
            "journal": sorted(entries, key=lambda entry: str(entry["timestamp"])),
            **{
                feature.name: list(feature.export(script, people, may_know))
                for feature in script.known_features
            },
        }
