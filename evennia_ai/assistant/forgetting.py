"""Players who asked to be forgotten: a queue of requests that survives a crash.

A request names people by their stable ids only. It stays queued until every assistant, the exports,
the audit log and the free pages of the game's database hold nothing of what they said; the next
start goes on with what a crash or an error left.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection
from evennia.comms.models import Msg
from evennia.server.models import ServerConfig
from evennia.utils import logger
from twisted.internet.defer import Deferred, DeferredLock, inlineCallbacks, succeed

from evennia_ai import conf, services
from evennia_ai.assistant.identity import find, stable_id
from evennia_ai.history.forgetting import OwnWords
from evennia_ai.history.verification import verify
from evennia_ai.sleep.forgetting import forget_people, remake_summary
from evennia_ai.tools.approval import drop_calls

if TYPE_CHECKING:
    from evennia.typeclasses.models import TypedObject

    from evennia_ai.assistant_script import AssistantScript

KEY = "evennia_ai_forgetting"
# Where time and report of the last request are kept, on the account or character that asked.
REPORT = ("forgotten", "evennia_ai")
# Fields of a line of the audit log that hold no talk.
_NO_TALK = ("at", "kind", "assistant")
# How long the database waits for the one that rewrites it, seconds.
_REWRITE_S = 600
_running = DeferredLock()


@dataclass(frozen=True)
class Request:
    """Somebody who is to be forgotten.

    Args:
        people: Stable ids of the account and its characters.
        until: When it was asked for, UTC ISO 8601.
        asker: Stable id of who asked and gets the report.
    """

    people: tuple[str, ...]
    until: str
    asker: str


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
    return [Request(tuple(each["people"]), each["until"], each["asker"]) for each in known]


def enqueue(request: Request) -> None:
    """Queue a request; `forget_queued` carries it out."""
    _save([*queued(), request])


def _dequeue(request: Request) -> None:
    _save([other for other in queued() if other != request])


def _save(requests: Iterable[Request]) -> None:
    # A text, because Evennia returns lists as objects that are tied to their row.
    listed = [asdict(request) for request in requests]
    ServerConfig.objects.conf(KEY, json.dumps(listed), delete=not listed)


def forget_queued(assistants: "Callable[[], list[AssistantScript]]") -> "Deferred[None]":
    """Carry out all queued requests, one after the other; fires when each was tried.

    `assistants` returns the scripts of all assistants. While a run is at work, which takes what is
    queued meanwhile too, there is no second one.
    """

    @inlineCallbacks
    def carry_out() -> Generator["Deferred[Any]", Any, None]:
        tried: list[Request] = []
        while waiting := [request for request in queued() if request not in tried]:
            tried.append(waiting[0])
            yield ForgettingJob(waiting[0], assistants()).run()

    return succeed(None) if _running.locked else _running.run(carry_out)


class ForgettingJob:
    """Carries out one request; what fails is logged, and the request stays queued."""

    def __init__(self, request: Request, scripts: "list[AssistantScript]"):
        self.request, self.scripts = request, scripts
        self._failures: list[str] = []

    def at_step(self, name: str) -> None:
        """Called before each step that concerns the whole game."""

    @inlineCallbacks
    def run(self) -> Generator["Deferred[Any]", Any, None]:
        """Do everything, tell who asked, and take the request off the queue if it is done."""
        people, until = self.request.people, self.request.until
        for script in self.scripts:
            yield self._tried(script.obj.key, self._forget, script)
        self.at_step("forget exports")
        folder = export_folder()
        yield self._tried("exports", services.on_disk, delete_exports, folder, people)
        self.at_step("forget database")
        is_erased = yield self._tried("database", erase_free_pages)
        forgotten, proof = 0, []
        for script in self.scripts:
            wrong = yield self._tried(script.obj.key, violations, script)
            proof.append((script.obj.key, len(wrong or ())))
            forgotten += sum(at >= until for at in script.history.tombstones().values())
        self._tell(report(forgotten, is_erased, proof, self._failures))
        if not self._failures:
            self.at_step("forget done")
            _dequeue(self.request)

    @inlineCallbacks
    def _forget(self, script: "AssistantScript") -> Generator["Deferred[Any]", Any, None]:
        """All that one assistant remembers; its turns go on between the parts of it."""
        people, until = self.request.people, self.request.until

        def begin() -> "Deferred[dict[str, int]]":
            script.runtime.forget(people, until)
            script.save_queue()
            drop_calls(script, people)
            delete_pages(script, people)
            return forget_people(script, script.obj, people, until, self._clear_log)

        counts: dict[str, int] = yield script.run_exclusive(begin)
        is_left = True
        while is_left:
            is_left = yield script.run_exclusive(lambda: remake_summary(script, script.obj))
        script.audit("forgotten", **counts)

    def _clear_log(self, own: OwnWords) -> "Deferred[int]":
        self.at_step("forget log")
        return services.on_disk(clear_log, conf.log_path(), own, self.request.people)

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
            value = {"at": self.request.until, "text": text}
            asker.attributes.add(REPORT[0], value, category=REPORT[1])
            asker.msg(text)


def report(
    forgotten: int,
    is_erased: bool | None,
    proof: Collection[tuple[str, int]],
    failures: Collection[str],
) -> str:
    """What the one who asked is told when a request was carried out.

    Args:
        forgotten: How many messages have tombstones since.
        is_erased: Whether the database was rewritten.
        proof: Names of assistants, and how many violations their proofs found.
        failures: What could not be cleared.
    """
    if failures:
        return (
            f"Not everything is forgotten yet: {', '.join(dict.fromkeys(failures))} could not be "
            "cleared. It is tried again at the next start of the server, or when you type "
            "`aiforget` again."
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
    lines.append(
        "The database file was rewritten without its free pages."
        if is_erased
        else "The database is no SQLite file: its administrator must clear old versions of rows."
    )
    return " ".join(lines)


@inlineCallbacks
def violations(script: "AssistantScript") -> Generator["Deferred[Any]", Any, Any]:
    """Fires with what the proof of an assistant's history finds wrong."""
    evidence = yield script.history.gathered_evidence()
    found = yield script.mind.work(verify, evidence)
    return found


def delete_pages(script: "AssistantScript", people: Collection[str]) -> None:
    """Delete the pages that an assistant sent these people: Evennia keeps them as messages."""
    for person in map(find, people):
        if person is not None and person._meta.concrete_model._meta.model_name == "accountdb":
            Msg.objects.filter(db_sender_objects=script.obj, db_receivers_accounts=person).delete()


def export_folder() -> Path:
    """Where exports are written."""
    return Path(settings.GAME_DIR) / "server" / "ai_exports"


def delete_exports(folder: Path, people: Collection[str]) -> list[str]:
    """Delete every exported file that names one of these people by stable id; returns which."""
    wanted = [f'"{person}"'.encode() for person in people]
    gone = []
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and _holds(path, wanted):
            path.unlink()
            gone.append(path.name)
    return gone


def _holds(path: Path, wanted: Iterable[bytes]) -> bool:
    data = path.read_bytes()
    return any(each in data for each in wanted)


def clear_log(path: Path, own: OwnWords, people: Collection[str]) -> int:
    """Redact texts of the audit log that repeat the own words of people, and drop their reports.

    Returns how many lines were changed.
    """
    if not path.exists():
        return 0
    changed, draft = 0, path.with_name(f"{path.name}.part")
    with path.open("rb") as log, draft.open("wb") as new:
        for line in log:
            kept = _line_left(line, own, people)
            changed += kept != line
            new.write(kept)
    draft.replace(path)
    return changed


def _line_left(line: bytes, own: OwnWords, people: Collection[str]) -> bytes:
    text = line.decode("utf-8", "replace")
    try:
        fields = json.loads(text)
    except ValueError:
        return b"" if own.are_in(text) else line  # a damaged line
    if isinstance(fields, dict) and fields.get("by") in people:
        return b""
    if not isinstance(fields, dict) or not own.are_in(fields):
        return line
    left = {k: v if k in _NO_TALK else own.redacted(v) for k, v in fields.items()}
    return (json.dumps(left, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


@inlineCallbacks
def erase_free_pages() -> Generator["Deferred[Any]", Any, bool]:
    """Rewrite the game's SQLite file, so that nothing of what was deleted is left in it.

    It runs on a thread; a statement of the game waits meanwhile, about a second for each 100 MB.
    Fires with False if the database is another one, or in memory.
    """
    name = str(connection.settings_dict["NAME"])
    if connection.vendor != "sqlite" or not Path(name).is_file():
        return False
    with _patient():
        yield services.on_disk(rewrite_database, Path(name))
    return True


@contextmanager
def _patient() -> Iterator[None]:
    """Let the game's own connection wait for the rewriting, instead of failing after seconds."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        [before] = cursor.fetchone()
        cursor.execute(f"PRAGMA busy_timeout = {_REWRITE_S * 1000}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {before}")


def rewrite_database(path: Path) -> None:
    """Rewrite a SQLite file without its free pages, and empty its log."""
    with closing(sqlite3.connect(path, timeout=_REWRITE_S, isolation_level=None)) as database:
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
