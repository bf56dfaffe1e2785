"""Players who asked to be forgotten: requests that survive a crash.

A request names people by ids only. It is stored until every assistant, the exports, the audit log
and the free pages of the game's database hold nothing of what they said; the next start goes on
with what a crash or an error left.
"""

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db.models import Q
from evennia.accounts.models import AccountDB
from evennia.comms.models import Msg
from evennia.objects.objects import DefaultObject
from evennia.server.models import ServerConfig
from evennia.utils import logger
from twisted.internet.defer import Deferred, DeferredLock, inlineCallbacks
from twisted.internet.task import cooperate

from evennia_ai import services
from evennia_ai.assistant_character import AssistantMixin
from evennia_ai.assistant_script import shared_spend, waiting_events, write_events
from evennia_ai.background import Steps
from evennia_ai.feature import unknown_features
from evennia_ai.game.evennia_internals import AttributeStore
from evennia_ai.game.lore import lore
from evennia_ai.game.seeing import find, stable_id
from evennia_ai.game.world import holder_of
from evennia_ai.history.messages import new_id
from evennia_ai.history.stored import Stored
from evennia_ai.history.verification import verify
from evennia_ai.models import Event
from evennia_ai.privacy.caches import clear_caches
from evennia_ai.privacy.export import delete_exports
from evennia_ai.privacy.forget import forget_people
from evennia_ai.privacy.secure_erase import erase_free_pages
from evennia_ai.rag_memory.entity_store import EntityHandler
from evennia_ai.rag_memory.journal import JournalHandler
from evennia_ai.turns.assistant import BODY
from evennia_ai.turns.tools.execution import drop_calls

if TYPE_CHECKING:
    from evennia_ai.assistant_script import AssistantScript

KEY = "evennia_ai_forgetting"
# Where time and report of the last request are kept, on the account or character that asked.
REPORT = ("forgotten", "evennia_ai")
_running = DeferredLock()


@dataclass(frozen=True)
class Request(Stored):
    """Somebody who is to be forgotten."""

    people: tuple[str, ...]  # stable ids of the account and its characters
    at: str  # when it was asked for, UTC ISO 8601
    until: str  # an id: messages with a later one were said after it was asked for, and stay
    asker: str  # stable id of who asked and gets the report


class Remains:
    """What is left of an assistant's body: what the object that its script sits on has kept."""

    def __init__(self, script: "AssistantScript"):
        owner = script.obj or script
        self.key, self.stable_id = str(owner.key), stable_id(owner)
        self.journal = JournalHandler(AttributeStore(owner, BODY))
        self.entities = EntityHandler(AttributeStore(owner, BODY))


def queued() -> list[Request]:
    """The requests that are not carried out yet, oldest first."""
    stored = ServerConfig.objects.conf(KEY, default="") or "[]"
    return list(map(Request.from_dict, json.loads(stored)))


def enqueue(
    people: Collection[str], at: str, asker: str, scripts: "Collection[AssistantScript]"
) -> None:
    """Store a request, which `forget_queued` carries out.

    All that these assistants (`scripts`) have heard by now has earlier ids than the request, also
    where the clock was set back: to load a history lets later ids sort behind its own.
    """
    for script in scripts:
        script.survived("a request to forget", script.history.messages, ())
    request = Request(tuple(people), at, new_id("m"), asker)
    for script in scripts:  # who is being answered now hears no more of it
        script.runtime.forget(request.people, request.until)
    _save([*queued(), request])


def is_running() -> bool:
    """Whether requests are being carried out now."""
    return bool(_running.locked)


def _save(requests: Iterable[Request]) -> None:
    # A text, because Evennia returns lists as objects that are tied to their row.
    listed = [request.to_dict() for request in requests]
    ServerConfig.objects.conf(KEY, json.dumps(listed), delete=not listed)


@inlineCallbacks
def forget_queued(scripts: "Callable[[], list[AssistantScript]]") -> Steps[None]:
    """Carry out all queued requests, one after the other; fires when each was tried.

    `scripts` returns all scripts of assistants, also idle ones. While a run is at work, which takes
    what is queued meanwhile too, there is no second one.
    """
    if is_running():
        return
    yield _running.acquire()
    try:
        tried: list[Request] = []
        while waiting := [request for request in queued() if request not in tried]:
            tried.append(waiting[0])
            yield ForgettingJob(waiting[0], scripts()).run()
    finally:
        _running.release()


class ForgettingJob:
    """Carries out one request; what fails is logged, and the request stays queued."""

    def __init__(self, request: Request, scripts: "list[AssistantScript]"):
        self.request, self.scripts = request, scripts
        self._failures: list[str] = []

    def at_step(self, name: str) -> None:
        """Called before each step that concerns the whole game."""

    @inlineCallbacks
    def run(self) -> Steps[None]:
        """Do everything, tell who asked, and take the request off the queue if it is done."""
        people, proven = self.request.people, []
        for script in self.scripts:  # at once, or somebody answers what waits
            script.survived("forgetting what waits", partial(self._drop_waiting, script), None)
        for script in self.scripts:
            yield self._tried(name_of(script), self._forget, script)
        self.at_step("forget files")
        yield self._tried("exports", services.on_disk, delete_exports, people)
        found = (each for each in map(find, people) if isinstance(each, AccountDB))
        holders = [*people, *map(holder_of, found)]
        yield self._tried("spend", shared_spend().forget, holders)
        yield self._tried("lore", lore().forget, people)
        write_events()
        waiting_events().clear()  # what cannot be stored now must not be stored later
        yield self._tried("the search index", services.mind().recall.erase)
        yield self._tried("the log", lambda: cooperate(Event.objects.forget(people)).whenDone())
        clear_caches()
        yield self._tried("caches", services.mind().work, clear_caches)
        self.at_step("forget database")
        erased: str | None = yield self._tried("database", erase_free_pages)
        for script in self.scripts:
            if (yield self._tried(name_of(script), self._is_proven, script)):
                proven.append(script)
        self._tell(self._report(proven, erased))
        if not self._failures:
            self.at_step("forget done")
            _save([other for other in queued() if other != self.request])

    def _drop_waiting(self, script: "AssistantScript") -> None:
        script.runtime.forget(self.request.people, self.request.until)
        script.save_queue()

    @inlineCallbacks
    def _forget(self, script: "AssistantScript") -> Steps[None]:
        """All that one assistant remembers; its turns go on between the parts of it."""
        request = self.request

        def begin() -> "Deferred[dict[str, int]]":
            self._drop_waiting(script)
            drop_calls(script, request.people)
            return forget_people(
                script,
                Remains(script),
                request.people,
                request.at,
                request.until,
                partial(self._clear_pages, script.obj),
            )

        counts: dict[str, int] = yield script.run_exclusive(begin)
        script.audit("forgotten", **counts)

    def _clear_pages(
        self, body: DefaultObject | None, takes: Callable[[str], bool]
    ) -> Iterator[None]:
        """Delete pages to or from them, and those that repeat what goes, one at each step.

        A page of theirs that another player got, too, stays.
        """
        if body is None:
            return
        people = {*self.request.people}
        with_it = Q(db_sender_objects=body) | Q(db_receivers_objects=body)
        for page in Msg.objects.filter(with_it).distinct():
            if body in page.senders:
                is_theirs = not people.isdisjoint(map(stable_id, page.receivers))
                goes = is_theirs or takes(page.message)
            else:
                is_theirs = not people.isdisjoint(map(stable_id, page.senders))
                goes = is_theirs and all(isinstance(to, AssistantMixin) for to in page.receivers)
            if goes:
                page.delete()
            yield

    @inlineCallbacks
    def _is_proven(self, script: "AssistantScript") -> Steps[bool]:
        evidence = yield script.history.gathered_evidence()
        return not (yield script.mind.work(verify, evidence))

    @inlineCallbacks
    def _tried(self, what: str, work: Callable[..., Any], *args: Any) -> Steps[Any]:
        """The result of some work, or None if it failed, which is logged and told."""
        try:
            result = yield work(*args)
        except Exception as error:  # noqa: BLE001 - one broken assistant must not stop the others
            logger.log_err(f"[ai] forgetting: {what}: {type(error).__name__}: {error}")
            if what not in self._failures:
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

    def _report(self, proven: "Collection[AssistantScript]", erased: str | None) -> str:
        """What the one who asked is told.

        Args:
            proven: The assistants whose histories are proven.
            erased: What became of deleted rows in the database; None if that failed.
        """
        if self._failures:
            return (
                f"Not everything is forgotten yet: {', '.join(self._failures)} could not be "
                "cleared. It is tried again at the next start of the server, or when you type "
                "`aiforget` again after ten minutes."
            )
        graves = [at for script in self.scripts for at in script.history.tombstones().values()]
        lines = [
            f"Forgotten: {graves.count(self.request.at)} messages, yours and those "
            "made from them, and all that rests on them. What others said stays."
        ]
        if proven:
            lines.append(
                f"Proven by `compact/verify` for {', '.join(map(name_of, proven))}: only these "
                "messages are gone; a tombstone with id and time stands for each."
            )
        if damaged := ", ".join(name_of(each) for each in self.scripts if each not in proven):
            lines.append(f"Not proven for {damaged}: its history is damaged; tell staff.")
        for script in self.scripts:
            if features := ", ".join(unknown_features(script, script.known_features)):
                lines.append(
                    f"Not looked at is what {features} left with {name_of(script)}: the game does "
                    "not have this any more; tell staff."
                )
        return " ".join(filter(None, [*lines, erased]))


def name_of(script: "AssistantScript") -> str:
    """How a report calls an assistant: an idle script by its number."""
    if script.is_embodied:
        return str(script.obj.key)
    return f"{script.key} (idle script #{script.pk})"
