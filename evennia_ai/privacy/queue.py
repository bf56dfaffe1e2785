"""Players who asked to be forgotten: a queue of requests that survives a crash.

A request names people and their messages by ids only. It stays queued until every assistant, the
exports, the audit log and the free pages of the game's database hold nothing of what they said; the
next start goes on with what a crash or an error left.
"""

import json
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from evennia.comms.models import Msg
from evennia.server.models import ServerConfig
from evennia.utils import logger
from twisted.internet.defer import Deferred, DeferredLock, inlineCallbacks, succeed

from evennia_ai import conf, services
from evennia_ai.game.evennia_internals import AttributeStore
from evennia_ai.game.identity import find, stable_id
from evennia_ai.history.archive import ARCHIVE
from evennia_ai.history.audience import without_people
from evennia_ai.history.forgetting import REDACTED, Heard, OwnWords, is_by
from evennia_ai.history.records import as_dict
from evennia_ai.history.verification import verify
from evennia_ai.privacy.forgetting import forget_people, remake_summary, words_to_forget
from evennia_ai.privacy.secure_erase import erase_free_pages
from evennia_ai.rag_memory.journal import JournalHandler
from evennia_ai.rag_memory.profiles import EntityHandler
from evennia_ai.turns.schema import BODY
from evennia_ai.turns.tools.approval import drop_calls

if TYPE_CHECKING:
    from evennia.typeclasses.models import TypedObject

    from evennia_ai.assistant_script import AssistantScript
    from evennia_ai.protocol import Character

KEY = "evennia_ai_forgetting"
# Where time and report of the last request are kept, on the account or character that asked.
REPORT = ("forgotten", "evennia_ai")
# Fields of a line of the audit log that may repeat talk. What somebody else reported is theirs.
_TALK = ("text", "what", "error", "why", "query", "lines")
_running = DeferredLock()


@dataclass(frozen=True)
class Request:
    """Somebody who is to be forgotten.

    Args:
        people: Stable ids of the account and its characters.
        at: When it was asked for, UTC ISO 8601.
        asker: Stable id of who asked and gets the report.
        heard: What had been heard from them then, by the scopes of assistants. Of any other
            assistant, all that they said goes.
    """

    people: tuple[str, ...]
    at: str
    asker: str
    heard: Mapping[str, Heard] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "Request":
        """From what is stored, also by an earlier version, which noted only a time `until`."""
        known = as_dict(raw.get("heard")).items()
        heard = {scope: Heard.from_dict(as_dict(each)) for scope, each in known}
        return cls(tuple(raw["people"]), raw.get("at") or raw["until"], raw["asker"], heard)

    def to_dict(self) -> dict[str, Any]:
        """The plain dict that is stored."""
        heard = {scope: each.to_dict() for scope, each in self.heard.items()}
        return {"people": list(self.people), "at": self.at, "asker": self.asker, "heard": heard}


class Remains:
    """The body of a script that sits on none: what the object it sits on, if any, has kept."""

    def __init__(self, script: "AssistantScript"):
        owner = script.obj or script
        self.key, self.stable_id = str(owner.key), stable_id(owner)
        self.journal = JournalHandler(AttributeStore(owner, BODY))
        self.entities = EntityHandler(AttributeStore(owner, BODY))


def people_of(somebody: "TypedObject") -> tuple[str, ...]:
    """The stable ids of an account, or of a character's, with all its characters."""
    account = somebody if hasattr(somebody, "characters") else getattr(somebody, "account", None)
    found = [somebody]
    if account is not None:
        found += [account, *account.characters.all()]
    return tuple(dict.fromkeys(map(stable_id, found)))


def queued() -> list[Request]:
    """The requests that are not carried out yet, oldest first."""
    known = json.loads(ServerConfig.objects.conf(KEY, default="") or "[]")
    return [Request.from_dict(each) for each in known]


def enqueue(request: Request) -> bool:
    """Queue a request, which `forget_queued` carries out; False if one of the people waits already.

    So there is one request a person at most.
    """
    waiting = queued()
    if any(set(request.people) & set(other.people) for other in waiting):
        return False
    _save([*waiting, request])
    return True


def heard_by(script: "AssistantScript", people: Collection[str]) -> Heard:
    """What a script's assistant has heard from these people until now."""
    said = (*script.history.messages(), *script.runtime.pending())
    segments = script.history.store.keys(ARCHIVE)
    ids = frozenset(message.id for message in said if is_by(message, people))
    return Heard(ids, segments[-1] if segments else "")


def is_running() -> bool:
    """Whether requests are being carried out now."""
    return bool(_running.locked)


def _dequeue(request: Request) -> None:
    _save([other for other in queued() if other != request])


def _save(requests: Iterable[Request]) -> None:
    # A text, because Evennia returns lists as objects that are tied to their row.
    listed = [request.to_dict() for request in requests]
    ServerConfig.objects.conf(KEY, json.dumps(listed), delete=not listed)


def forget_queued(scripts: "Callable[[], list[AssistantScript]]") -> "Deferred[None]":
    """Carry out all queued requests, one after the other; fires when each was tried.

    `scripts` returns all scripts of assistants, also idle ones. While a run is at work, which takes
    what is queued meanwhile too, there is no second one.
    """

    @inlineCallbacks
    def carry_out() -> Generator["Deferred[Any]", Any, None]:
        tried: list[Request] = []
        while waiting := [request for request in queued() if request not in tried]:
            tried.append(waiting[0])
            yield ForgettingJob(waiting[0], scripts()).run()

    return succeed(None) if _running.locked else _running.run(carry_out)


class ForgettingJob:
    """Carries out one request; what fails is logged, and the request stays queued.

    The words that only these people used are collected first, as long as all their messages are
    there: they tell what else goes, also from the files that all assistants share.
    """

    def __init__(self, request: Request, scripts: "list[AssistantScript]"):
        self.request, self.scripts = request, scripts
        self._failures: list[str] = []

    def at_step(self, name: str) -> None:
        """Called before each step that concerns the whole game."""

    @inlineCallbacks
    def run(self) -> Generator["Deferred[Any]", Any, None]:
        """Do everything, tell who asked, and take the request off the queue if it is done."""
        people = self.request.people
        for script in self.scripts:  # at once, or somebody answers what waits
            script.survived("forgetting what waits", partial(self._drop_waiting, script), None)
        words: dict[str, OwnWords] = {}
        found = []
        for script in self.scripts:
            own = yield self._tried(name_of(script), self._words, script)
            if own is not None:
                found.append(script)
                same_name = words.get(script.key, OwnWords())
                words[script.key] = OwnWords(own.items | same_name.items)
        self.at_step("forget log")
        yield self._tried("the log", services.on_disk, clear_log, conf.log_path(), words, people)
        self.at_step("forget exports")
        own = OwnWords(frozenset().union(*(each.items for each in words.values())))
        folder = export_folder()
        yield self._tried("exports", services.on_disk, delete_exports, folder, own, people)
        # As long as one of these files holds their words, the messages that tell which must stay.
        is_safe = not {"the log", "exports"}.intersection(self._failures)
        for script in found if is_safe else ():
            yield self._tried(name_of(script), self._forget, script)
        self.at_step("forget log again")  # talk and compactions went on meanwhile
        yield self._tried("the log", services.on_disk, clear_log, conf.log_path(), words, people)
        yield self._tried("figures", services.figures().forget, people)
        self.at_step("forget database")
        erased = yield self._tried("database", erase_free_pages)
        forgotten, proof = 0, []
        for script in self.scripts:
            wrong = yield self._tried(name_of(script), violations, script)
            proof.append((name_of(script), len(wrong or ())))
            forgotten += list(script.history.tombstones().values()).count(self.request.at)
        self._tell(report(forgotten, erased, proof, self._failures))
        if not self._failures:
            self.at_step("forget done")
            _dequeue(self.request)

    def _drop_waiting(self, script: "AssistantScript") -> None:
        script.runtime.forget(self.request.people, self.request.heard.get(script.scope))
        script.save_queue()

    def _words(self, script: "AssistantScript") -> "Deferred[OwnWords]":
        heard = self.request.heard.get(script.scope)
        return words_to_forget(script, body_of(script), self.request.people, heard)

    @inlineCallbacks
    def _forget(self, script: "AssistantScript") -> Generator["Deferred[Any]", Any, None]:
        """All that one assistant remembers; its turns go on between the parts of it."""
        people, heard = self.request.people, self.request.heard.get(script.scope)
        body = body_of(script)

        def begin() -> "Deferred[dict[str, int]]":
            self._drop_waiting(script)
            drop_calls(script, people)
            delete_pages(script, people)
            return forget_people(script, body, people, self.request.at, heard)

        counts: dict[str, int] = yield script.run_exclusive(begin)
        is_left = True
        while is_left:
            is_left = yield script.run_exclusive(lambda: remake_summary(script, body))
        script.audit("forgotten", **counts)

    @inlineCallbacks
    def _tried(
        self, what: str, work: Callable[..., Any], *args: Any
    ) -> Generator["Deferred[Any]", Any, Any]:
        """The result of some work, or None if it failed, which is logged and told."""
        try:
            result = yield work(*args)
        except Exception as error:  # noqa: BLE001 - one broken assistant must not stop the others
            logger.log_err(f"[ai] forgetting: {what}: {type(error).__name__}: {error}")
            self._failures.append(what)
            return None
        return result

    def _tell(self, text: str) -> None:
        asker = find(self.request.asker)
        if asker is not None:
            at = "" if self._failures else self.request.at
            value = {"at": at, "text": text, "tried_at": time.time()}
            asker.attributes.add(REPORT[0], value, category=REPORT[1])
            asker.msg(text)


def body_of(script: "AssistantScript") -> "Character":
    """The body of an assistant, or what stands for one where a script has none."""
    body: Any = script.obj
    return body if getattr(type(body), "is_assistant_body", False) else Remains(script)


def name_of(script: "AssistantScript") -> str:
    """How a report calls an assistant: an idle script by its number."""
    return str(script.obj.key) if script.is_embodied else f"{script.key} (idle script #{script.pk})"


def report(
    forgotten: int,
    erased: str | None,
    proof: Collection[tuple[str, int]],
    failures: Collection[str],
) -> str:
    """What the one who asked is told when a request was carried out.

    Args:
        forgotten: How many messages have tombstones since.
        erased: What became of deleted rows in the database; None if that failed.
        proof: Names of assistants, and how many violations their proofs found.
        failures: What could not be cleared.
    """
    if failures:
        return (
            f"Not everything is forgotten yet: {', '.join(dict.fromkeys(failures))} could not be "
            "cleared. It is tried again at the next start of the server, or when you type "
            "`aiforget` again after ten minutes."
        )
    lines = [
        f"Forgotten: {forgotten} messages and all that was made from them. Messages of others and "
        "what others said stay."
    ]
    if proven := [name for name, wrong in proof if not wrong]:
        lines.append(
            f"Proven by `compact/verify` for {', '.join(proven)}: only these messages are gone; "
            "a tombstone with id and time stands for each."
        )
    if damaged := [name for name, wrong in proof if wrong]:
        lines.append(f"Not proven for {', '.join(damaged)}: its history is damaged; tell staff.")
    return " ".join([*lines, *([erased] if erased else [])])


@inlineCallbacks
def violations(script: "AssistantScript") -> Generator["Deferred[Any]", Any, Any]:
    """Fires with what the proof of an assistant's history finds wrong."""
    evidence = yield script.history.gathered_evidence()
    found = yield script.mind.work(verify, evidence)
    return found


def delete_pages(script: "AssistantScript", people: Collection[str]) -> None:
    """Delete the pages that an assistant sent these people: Evennia keeps them as messages."""
    for person in map(find, people) if script.obj else ():
        if person is not None and person._meta.concrete_model._meta.model_name == "accountdb":
            Msg.objects.filter(db_sender_objects=script.obj, db_receivers_accounts=person).delete()


def export_folder() -> Path:
    """Where exports are written."""
    return Path(settings.GAME_DIR) / "server" / "ai_exports"


def delete_exports(folder: Path, own: OwnWords, people: Collection[str]) -> list[str]:
    """Delete every exported file that names one of these people by stable id, or holds own words.

    Returns which.
    """
    wanted = [f'"{person}"'.encode() for person in people]
    gone = []
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file():
            data = path.read_bytes()
            if any(each in data for each in wanted) or own.are_in(data.decode("utf-8", "replace")):
                path.unlink()
                gone.append(path.name)
    return gone


def clear_log(path: Path, words: Mapping[str, OwnWords], people: Collection[str]) -> int:
    """Redact own words of people in the audit log's talk, and drop their names and reports.

    Args:
        path: The log.
        words: Their own words, by the name of the assistant that heard them.
        people: Their stable ids.

    Returns:
        How many lines were changed.
    """
    if not path.exists():
        return 0
    all_words = OwnWords(frozenset().union(*(own.items for own in words.values())))
    changed, draft = 0, path.with_name(f"{path.name}.part")
    with path.open("rb") as log, draft.open("wb") as new:
        for line in log:
            kept = _line_left(line, words, all_words, people)
            changed += kept != line
            new.write(kept)
    draft.replace(path)
    return changed


def _line_left(
    line: bytes, words: Mapping[str, OwnWords], all_words: OwnWords, people: Collection[str]
) -> bytes:
    text = line.decode("utf-8", "replace")
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        return all_words.redacted(text).encode() if all_words.are_in(text) else line
    if fields.get("by") in people:
        return b""
    own = words.get(str(fields.get("assistant")), all_words)
    left = {key: own.redacted(value) if key in _TALK else value for key, value in fields.items()}
    speakers = fields.get("speakers")
    if isinstance(speakers, list) and isinstance(left.get("lines"), list):
        lines = zip_longest(left["lines"], speakers[: len(left["lines"])])
        left["lines"] = [REDACTED if by in people else said for said, by in lines]
    if isinstance(left.get("audience"), str):
        left["audience"] = without_people(left["audience"], people)
    if left == fields:
        return line
    return (json.dumps(left, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
