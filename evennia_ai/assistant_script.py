"""The assistant's script: its timer, turn lock and modes, and what services ask of a game.

Wiring, no logic.
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import DatabaseError, DataError, Error, IntegrityError, connection
from evennia import AccountDB, DefaultScript
from evennia.locks.lockhandler import get_all_lockfuncs
from evennia.utils import logger
from evennia.utils.utils import lazy_property
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred, DeferredList, succeed

from evennia_ai import conf, services
from evennia_ai.errors import ModelError
from evennia_ai.feature import Feature, listed_features, usable_tools
from evennia_ai.game.evennia_internals import AttributeStore, restart_timer
from evennia_ai.game.greeting import WAIT_S, greet
from evennia_ai.game.hearing import noticed_event, subscribe
from evennia_ai.game.seeing import face_of, find, manners_of, plain, speaker_of, stable_id
from evennia_ai.game.world import GameHandler, hidden_holder, literal
from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.messages import FACE, ROOM, SPEECH, Message, Speaker
from evennia_ai.kinds import Allowed
from evennia_ai.llm_interaction.budget import TokenBudget
from evennia_ai.llm_interaction.contexts import SPOKEN
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.llm_interaction.tokens import TokenCounter
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.models import Call, Event
from evennia_ai.options import OWN_LIMITS, Layer
from evennia_ai.rag_memory.finder import scope_of_texts
from evennia_ai.sleep import run_sleep_tick
from evennia_ai.sleep.compaction.behind import begin_behind
from evennia_ai.sleep.compaction.rules import due_behind
from evennia_ai.turns.assistant import SCRIPT, VERSION, VERSION_KEY
from evennia_ai.turns.runtime import (
    CUE_CHARS,
    REPEATED_S,
    RUNTIMES,
    UNJUDGED,
    Cue,
    Trouble,
    by_speaker,
    resolved,
    wants_answer,
)
from evennia_ai.turns.spend_book import FORGOTTEN, SharedSpend
from evennia_ai.turns.tick import Living
from evennia_ai.turns.tools.base import ToolRegistry
from evennia_ai.turns.turn_taking import replied

if TYPE_CHECKING:
    from evennia import DefaultObject
    from evennia.typeclasses.models import TypedObject
    from twisted.python.failure import Failure


# What a tick may have done for the next one to follow at once, if somebody waits for an answer.
GOES_ON = ("turn", "heard", "over budget", "cooldown", "late", "dreamt")
# What a tick may have done without storing anything.
RESTS = ("idle", "asleep", "disabled")
# Who has waited this part of `thinking_after_s` by a clock that is not the timer's is shown a sign.
SIGN_SHARE = 0.95
# Longest text of what is noted.
_LONG = 300
# Events that wait while they cannot be stored.
MOST_WAITING = 2_000


def shared_spend() -> SharedSpend:
    """What all assistants have spent, and the calls that go on."""

    def make() -> SharedSpend:
        caps, hidden = partial(conf.setting, "SPEND_CAPS"), partial(hidden_holder, begins=FORGOTTEN)
        return SharedSpend(Call.objects, caps, conf.runs_here, hidden)

    return services.kept("spend", make)


def _tell(text: str, is_meant: Callable[[AccountDB], bool]) -> None:
    """Send a line to those accounts online that are meant."""
    for account in filter(is_meant, AccountDB.objects.get_connected_accounts()):
        account.msg(literal(text))


def _is_admin(account: AccountDB) -> bool:
    """Whether an account is an admin now; a quelled superuser is one."""
    return bool(account.is_superuser or account.check_permstring("Admin"))


def waiting_events() -> list[Event]:
    """What happened and is not stored yet, oldest first."""
    return services.kept("events", list)


def write_events() -> None:
    """Store what happened since the last call; the Server calls it every few seconds.

    While the database cannot be reached or written, the newest `MOST_WAITING` wait.
    """
    events = waiting_events()
    if not events:
        return
    try:
        Event.objects.keep(events)
        events.clear()
    except Error as error:
        logger.log_err(f"[ai] cannot store what happened: {error}")
        del events[:-MOST_WAITING]
        if isinstance(error, DataError | IntegrityError):
            events.clear()  # the database would never take them
        for event in events:
            event.pk = None  # it may have one of a row that is not there


def all_assistants() -> "list[AssistantScript]":
    """The scripts of all assistants, one for each body, by name."""
    found = [script for script in all_scripts() if script.is_embodied]
    return sorted(found, key=lambda script: (script.obj.key.lower(), script.pk))


def all_scripts() -> "list[AssistantScript]":
    """All scripts of assistants, also idle ones: without a body, or the second one on a body."""
    return list(AssistantScript.objects.all_family().order_by("pk"))


class AssistantScript(Living, DefaultScript):
    """Makes the character it sits on a living assistant.

    Everything it is lives in Attributes; `aiconfig` lists those that are for hands.
    """

    deleting: "Deferred[Any] | None" = None  # fires when its derived data are gone

    now = staticmethod(time.time)
    breathe = staticmethod(services.breathe)
    cannot_store = DatabaseError
    # What `Assistant` says of each.
    runtime = property(lambda self: RUNTIMES[self.scope])
    game = property(lambda self: GameHandler(self.obj))
    model_name = property(lambda self: self.config.llm_model or conf.model_name())
    count = property(lambda self: TokenCounter(self.model_name))
    mind = property(lambda self: services.mind())
    moderator = property(lambda self: services.moderator())
    shared_spend = property(lambda self: shared_spend())

    @lazy_property
    def scope(self) -> str:
        """The assistant's own stable id, under which its memory is filed."""
        return stable_id(self)

    @lazy_property
    def store(self) -> AttributeStore:
        """The script's Attributes."""
        return AttributeStore(self, SCRIPT)

    @lazy_property
    def features(self) -> tuple[Feature, ...]:
        """The features that the game lists."""
        return listed_features(lambda error: self.trouble(str(error)))

    known_features = property(lambda self: listed_features(more=conf.SHIPPED))

    @lazy_property
    def tools(self) -> ToolRegistry:
        """What the assistant can do."""
        found = usable_tools(self.features, lambda error: self.trouble(str(error)))
        return ToolRegistry(found, lambda: self.config.tool_levels)

    @property
    def allowed(self) -> Allowed:
        """What options may name."""
        locks = set(get_all_lockfuncs())
        return Allowed(conf.allowed_models(), set(self.tools.tools), locks, fields=True)

    def shared_options(self) -> tuple[Layer, ...]:
        """The options of ``EVENNIA_AI_OPTIONS`` for its body's typeclasses, tags and prototype."""
        groups, body = conf.setting("OPTIONS"), self.obj
        if not groups or body is None:
            return ()
        names = {f"{each.__module__}.{each.__qualname__}" for each in type(body).mro()}
        names.update(body.tags.all())  # a prototype is one of them
        allowed = Allowed(lock_functions=set(get_all_lockfuncs()))
        return tuple(
            Layer(f'EVENNIA_AI_OPTIONS["{group}"]', values, allowed)
            for group, values in groups.items()
            if group in names or group.lower() in names
        )

    def who(self, person: Any) -> Speaker:
        """Name and stable id of a person, who may be given as an object of the game."""
        if isinstance(person, Speaker):
            return person
        return speaker_of(person, self.obj)

    def note_reply(self, to: str) -> None:
        """Note that somebody (stable id) was answered, so that the talk goes on."""
        if self.obj.location is not None:
            manners = manners_of(self.obj.location)
            manners.talk = replied(manners.talk, self.obj.stable_id, to, self.now())

    def log(self, text: str, warning: bool = False) -> None:
        """A line in the server log that names the assistant."""
        log = logger.log_info
        if warning:
            log = logger.log_warn
        log(f"[ai] {self.key}: {text}")

    def tell_staff(self, text: str, logged: str | None = None) -> None:
        """Log a line, or `logged` in its place, and send it to admins online."""
        line = " ".join(text.splitlines())
        self.log(logged or line)
        _tell(line, _is_admin)

    def may_change(self, person: "DefaultObject") -> bool:
        """Whether somebody may change this assistant, by its body's locks."""
        return bool(self.obj.access(person, "control") or self.obj.access(person, "edit"))

    def tell_controllers(self, text: str, known_to: str) -> None:
        """Send a line to admins online; if `known_to` is public, to all who may change it."""

        def may_know(account: AccountDB) -> bool:
            if _is_admin(account):
                return True
            return known_to == PUBLIC and any(map(self.may_change, account.get_all_puppets()))

        _tell(text, may_know)

    def alert(self, text: str) -> None:
        """As `trouble`, and send a line to the admins who are online."""
        self.trouble(text)
        _tell(f"{(self.obj or self).key}: {text}", _is_admin)

    def trouble(self, text: str) -> None:
        """Log something staff should know and show it in `aistatus`."""
        self.log(text, warning=True)
        self.runtime.trouble = Trouble(text, self.now())
        self.runtime.counts["troubles"] += 1
        self.audit("trouble", text=text)

    def log_error(self, what: str, error: BaseException, trace: str = "") -> None:
        """Count, log and show in `aistatus` an error that was survived.

        The same error again is counted, but logged, with its trace, only after `REPEATED_S`: on a
        full disk every tick fails. What was under way for an assistant that is deleted meanwhile
        fails, too, and concerns nobody.
        """
        if self.pk is None:
            return
        runtime, now, text = self.runtime, self.now(), f"{what}: {error or type(error).__name__}"
        runtime.logged = {e: at for e, at in runtime.logged.items() if now - at < REPEATED_S}
        runtime.counts["errors"] += 1
        if text in runtime.logged:
            return
        runtime.logged[text] = now
        runtime.trouble = Trouble(text, now, isinstance(error, ModelError))
        shown = f"{type(error).__name__}: {error}"
        logger.log_err(f"[ai] {self.key}: {what}: {shown}")
        if trace:
            self.log(trace, warning=True)
        self.audit("error", what=what, error=shown)

    def storing_failed(self, error: DatabaseError) -> None:
        """Nothing can be stored: show it to those who wait, and alert staff, once until it can."""
        if self.runtime.cannot_store:
            return
        self.runtime.cannot_store = True
        self.alert(
            f"the game's database cannot be written ({error}). What is said is kept in memory and "
            "answered when it can be; a restart before that loses it. Is the disk full?"
        )
        for group in by_speaker(filter(wants_answer, self.runtime.pending())):
            self.show_to(group, "trouble")

    def storing_works(self) -> None:
        """A tick went well; tell staff if nothing could be stored before."""
        if self.runtime.cannot_store:
            self.runtime.cannot_store = False
            self.tell_staff(f"{self.obj.key}: the game's database can be written again")

    def audit(self, kind: str, **fields: Any) -> None:
        """Note what happened; `write_events` stores it, so that nobody waits for that.

        Long texts are cut. There must be neither prompts nor keys in them.
        """
        long = {key: each[:_LONG] for key, each in fields.items() if isinstance(each, str)}
        text = json.dumps(fields | long, default=str)
        waiting_events().append(Event(at=self.now(), assistant=self.key, kind=kind, text=text))

    def spent(self, reply: ModelReply, purpose: str, budget: TokenBudget | None = None) -> None:
        """Log one model call, with the budget of its prompt."""
        self.runtime.counts["calls"] += 1
        figures: dict[str, Any] = {
            "cost": reply.cost,
            "seconds": round(reply.seconds, 3),
            "attempts": reply.attempts,
            "cached": reply.cached_tokens,
        }
        if purpose in SPOKEN:
            figures["fell_back"] = reply.model == OFFLINE_MODEL != self.model_name
        if budget is not None:
            figures |= {"budget": str(budget), "left_out": budget.left_out}
            figures["trigger"] = budget.trigger
        self.audit("call", purpose=purpose, model=reply.model, tokens=reply.tokens, **figures)

    @property
    def extracts_memories(self) -> bool:
        """Whether a model turns journal entries into memories: switched on, able, under the cap."""
        able = self.model_name != OFFLINE_MODEL and self.config.llm_api == "chat"
        is_on = conf.setting("MEM0_CONFIG").get("infer") is True
        return is_on and able and not self.over_spend() and not self.limits().only_talks

    def at_first_save(self, **kwargs: Any) -> None:
        """Called once it is saved. A body has one script; Evennia's `copy` makes a second one."""
        super().at_first_save(**kwargs)
        first = getattr(self.obj, "assistant", None)
        if self.pk and first not in (None, self):
            self.obj.begin_life()
            self.delete()

    def at_script_creation(self) -> None:
        """Called once, when the script is made."""
        self.desc = "AI assistant"
        self.interval = self.tick_interval_s
        self.persistent = True
        self.start_delay = True
        self.attributes.add(VERSION_KEY, VERSION)

    @property
    def is_embodied(self) -> bool:
        """Whether it is the script of an assistant's body; of two on one body only the first is."""
        first = getattr(self.obj, "assistant", None)
        return first is not None and first.pk == self.pk

    @property
    def ready(self) -> bool:
        """Whether everything is loaded and it can be used."""
        return services.ready()

    @property
    def enabled(self) -> bool:
        """Whether it thinks: not switched off, in a body, and nobody puppets that body."""
        is_on = self.db.enabled is not False
        return bool(is_on and self.is_embodied and not self.obj.has_account)

    def access(
        self, accessing_obj: "TypedObject", access_type: str = "read", **kwargs: Any
    ) -> bool:
        """Evennia's check; who may change the body may change these Attributes by `set/script`."""
        if super().access(accessing_obj, access_type, **kwargs):
            return True
        if self.obj is None or access_type not in ("control", "edit"):
            return False
        return bool(self.obj.access(accessing_obj, access_type))

    def at_repeat(self, **kwargs: Any) -> None:
        """Called by the timer, which an exception would stop."""
        if self.pk and not self.runtime.ends:
            self.survived("tick", self.at_tick, None)

    def at_tick(self) -> "Deferred[Any]":
        """One tick; fires with a word for what it did. Errors are logged and counted.

        While another tick runs, it only saves what was heard.
        """
        runtime = self.runtime
        if runtime.lock.running is not None:
            runtime.counts["late"] += 1
            self._save_queue()
            return succeed("late")
        runtime.counts["ticks"] += 1
        if runtime.called is not None:  # this is the tick that was planned
            if runtime.called.active():
                runtime.called.cancel()
            runtime.called = None

        def tick() -> "Deferred[str]":
            with self.state.pinned():  # until the tick first waits for something
                return self.tick()

        def ended(result: str) -> str:
            self.survived("the end of a tick", lambda: self._follow_up(result), None)
            return result

        done = runtime.lock.run(tick)
        done.addErrback(self._tick_failed)
        done.addCallback(ended)
        self._save_queue()  # the tick may wait a long time before it stores what was heard
        outcome: Deferred[Any] = Deferred(lambda _: done.cancel())
        done.addBoth(outcome.callback)
        return outcome

    def _save_queue(self) -> None:
        self.survived("saving the queue", self.save_queue, None)

    def _tick_failed(self, failure: "Failure") -> str:
        if failure.check(CancelledError):
            return "cancelled"
        self.log_error("tick", failure.value, failure.getTraceback())
        if isinstance(failure.value, DatabaseError):
            if not connection.in_atomic_block:  # the next use makes a new one
                self.survived("closing", connection.close_if_unusable_or_obsolete, None)
            self.survived("telling staff", lambda: self.storing_failed(failure.value), None)
        return "error"

    def _follow_up(self, result: str) -> None:
        """After a tick: compact if it is time, and tick at once if somebody waits."""
        with self.state.pinned():
            self.runtime.counts[f"tick {result}"] += 1
            is_done = result not in ("error", "cancelled")
            if is_done and result not in RESTS:
                self.survived("telling staff", self.storing_works, None)
            self._save_queue()
            if is_done:
                self.survived("a compaction", lambda: due_behind(self) and begin_behind(self), None)
            if result in GOES_ON and self.runtime.is_called():
                self._tick_soon()

    def _tick_soon(self) -> None:
        """Begin a tick as soon as the reply cooldown lets it, unless one is about to begin."""

        def begin(_: object) -> None:
            if self.pk and self.runtime.called is not None:  # else the timer was faster
                self.runtime.called = None
                self.at_tick()

        runtime = self.runtime
        if runtime.lock.running is None and runtime.called is None:
            since = max(0.0, self.now() - runtime.last_turn_at)
            rest = max(0.0, self.reply_cooldown_s - since)
            runtime.called = reactor.callLater(rest, lambda: self.breathe().addCallback(begin))

    def _run_sleep_tick(self) -> "Deferred[dict[str, Any]]":
        """Run the sleep cycle now; fires with one entry a step."""
        return run_sleep_tick(self, self.obj)

    def hear(self, event: Message) -> None:
        """Queue what the body heard; what it is to answer begins a tick at once.

        Where the game moderates, what was said waits in the queue until it has passed.
        """

        def resolve_moves() -> None:
            if self.pk:  # the moves that were heard just now have ended
                self.runtime.queue[:] = resolved(self.runtime.queue, self.game.here())

        is_speech = event.channel in SPEECH
        if is_speech:
            self.runtime.languages.hear(event.speaker_id, event.content)
        moderates = is_speech and self.moderator is not None
        # Who pages need not be here; of those who are here only players make it speak again.
        by_player = event.channel == "page" or self.game.here().get(event.speaker_id, False)
        metadata = dict(event.metadata)
        if moderates:
            metadata[UNJUDGED] = True
        if event.channel != "page" and self.obj.location is not None:
            metadata[ROOM] = stable_id(self.obj.location)
        speaker = find(event.speaker_id)
        if speaker is not None and (face := face_of(speaker, self.obj)) != event.speaker_id:
            metadata[FACE] = face
        self.runtime.hear(replace(event, metadata=metadata), self.now(), by_player)
        self._save_queue()  # a kill of the Server comes without notice
        with self.state.pinned():
            if event.channel == "move":
                greeting = partial(greet, self.obj, event.speaker_id)
                reactor.callLater(0, self.survived, "a move", resolve_moves, None)
                reactor.callLater(WAIT_S, self.survived, "greeting", greeting, False)
            if moderates:
                self.moderate(event)
            elif wants_answer(event):
                self.called()

    def notice(
        self, text: str, from_obj: "TypedObject | None" = None, audience: str = PUBLIC
    ) -> None:
        """Let it know what no hook tells: an announcement, weather, an event of the game.

        It remembers the text and answers it never.

        Args:
            text: What happens, as one would see it.
            from_obj: Who or what causes it, if that is known.
            audience: Who may learn of it: ``public``, ``staff``, or those that
                `history.audience.private` names by their stable ids.
        """
        self.hear(noticed_event(self.obj, text, from_obj, audience))

    def cue(self, text: str) -> str:
        """Give it a reason to speak unasked, as ``the bell tolls``; see the option `initiative`.

        It may say or pose something about it within five minutes, or nothing. Returns why it would
        not just now, empty if it would.
        """
        self.runtime.cue = Cue(" ".join(plain(text).split())[:CUE_CHARS], self.now())
        return self.why_not()

    def called(self) -> None:
        """Begin a tick soon, because something heard is to be answered."""
        self._tick_soon()
        if self.emote("thinking") and self.enabled:
            reactor.callLater(self.thinking_after_s, self._sign)

    def _sign(self) -> None:
        """Show that it thinks, once to each who has waited long enough for an answer."""
        if not self.pk or not self.emote("thinking"):
            return
        runtime, shown = self.runtime, set()
        for group in by_speaker(filter(wants_answer, runtime.pending())):
            first = group.events[0]
            waited_s = runtime.waited_s(first, self.now())
            if group.key in runtime.signed or waited_s < SIGN_SHARE * self.thinking_after_s:
                continue
            runtime.signed.add(group.key)
            if group.audience not in shown:
                shown.add(group.audience)
                self.show_to(group, "thinking")

    def pose(self, occasion: str) -> None:
        """Show the emote of an occasion to the players present."""
        if self.obj and self.obj.location and (emote := self.emote(occasion)):
            self.act_out(emote)

    def stop_thinking(self) -> bool:
        """Cancel the turn in flight, and a compaction beside it; returns whether there was one.

        Exclusive work goes on, as half of it would be worse than none: forgetting, a rollback, an
        export.
        """
        has_stopped, lock = self.runtime.summaries.stop(), self.runtime.lock
        if lock.running is None or lock.is_exclusive:
            return has_stopped
        lock.running.cancel()
        return True

    def at_server_start(self) -> None:
        """Repair what a crash left; the rest follows when everything is loaded."""
        self.survived("starting the timer", lambda: restart_timer(self), None)

        def repair() -> None:
            self.repair_at_start()
            if self.is_embodied:
                subscribe(self.obj)
            if self.ready:
                self.repair_when_ready()

        self.survived("repairs at the start", repair, None)

    def at_server_reload(self) -> None:
        """Save what is only in memory. An exception would stop the reload of the whole game."""
        self.runtime.ends = True
        self._save_queue()

    at_server_shutdown = at_server_reload

    def at_script_delete(self) -> bool:
        """Stop thinking, and delete what is kept of it beside its Attributes."""
        self.stop_thinking()
        planned = self.runtime.called
        if planned is not None and planned.active():
            planned.cancel()
        recall, memories, scope = self.mind.recall, self.mind.memories, self.scope
        owned = memories.ids(scope).addCallback(lambda ids: memories.delete(scope, ids))
        deletions = (recall.clear(scope), recall.clear(scope_of_texts(scope)), owned)

        def failed(failure: "Failure") -> None:
            left = f"memories of the deleted {self.key} are left over"
            logger.log_err(f"[ai] {left}: {failure.value}")

        self.deleting = DeferredList([each.addErrback(failed) for each in deletions])
        self.shared_spend.keep_limits(scope, dict.fromkeys(OWN_LIMITS))
        RUNTIMES.pop(scope, None)
        return True
