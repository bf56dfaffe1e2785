"""The assistant's script: its timer, its turn lock and its modes. Wiring, no logic."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import DatabaseError, connection
from evennia import DefaultScript
from evennia.utils import logger
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred, DeferredList, succeed

from evennia_ai import services
from evennia_ai.game.evennia_internals import restart_timer
from evennia_ai.game.greeting import WAIT_S, greet
from evennia_ai.game.hearing import noticed_event, subscribe
from evennia_ai.game.ports import AssistantPorts
from evennia_ai.game.seeing import face_of, find, plain, stable_id
from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.messages import FACE, ROOM, SPEECH, Message
from evennia_ai.options import OWN_LIMITS
from evennia_ai.rag_memory.finder import scope_of_texts
from evennia_ai.sleep import run_sleep_tick
from evennia_ai.sleep.compaction.behind import begin_behind
from evennia_ai.turns.assistant import VERSION, VERSION_KEY
from evennia_ai.turns.runtime import (
    CUE_CHARS,
    RUNTIMES,
    UNJUDGED,
    Cue,
    by_speaker,
    resolved,
    wants_answer,
)
from evennia_ai.turns.tick import Tick, why_not

if TYPE_CHECKING:
    from evennia.typeclasses.models import TypedObject
    from twisted.python.failure import Failure

T = TypeVar("T")

# What a tick may have done for the next one to follow at once, if somebody waits for an answer.
GOES_ON = ("turn", "heard", "over budget", "cooldown", "late", "dreamt")
# What a tick may have done without storing anything.
RESTS = ("idle", "asleep", "disabled")
# Who has waited this part of `thinking_after_s` by a clock that is not the timer's is shown a sign.
SIGN_SHARE = 0.95


def all_assistants() -> "list[AssistantScript]":
    """The scripts of all assistants, one for each body, by name."""
    found = [script for script in all_scripts() if script.is_embodied]
    return sorted(found, key=lambda script: (script.obj.key.lower(), script.pk))


def all_scripts() -> "list[AssistantScript]":
    """All scripts of assistants, also idle ones: without a body, or the second one on a body."""
    return list(AssistantScript.objects.all_family().order_by("pk"))


class AssistantScript(AssistantPorts, DefaultScript):
    """Makes the character it sits on a living assistant.

    Everything it is lives in Attributes; `aiconfig` lists those that are for hands.
    """

    deleting: "Deferred[Any] | None" = None  # fires when its derived data are gone

    def at_first_save(self, **kwargs: Any) -> None:
        """Called once it is saved. A body has one script; Evennia's `copy` makes a second one."""
        super().at_first_save(**kwargs)
        if self.pk and self._assistant_of_body() not in (None, self):
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
        first = self._assistant_of_body()
        return first is not None and first.pk == self.pk

    def _assistant_of_body(self) -> "AssistantScript | None":
        is_body = getattr(type(self.obj), "is_assistant_body", False)
        return self.obj.assistant if is_body else None

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
        body = self.obj if access_type in ("control", "edit") else None
        return bool(body and body.access(accessing_obj, access_type))

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
                return Tick(self).run()

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
                self.survived("a compaction", lambda: begin_behind(self), None)
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
            rest = self.reply_cooldown_s - max(0.0, self.now() - runtime.last_turn_at)
            rest = max(0.0, rest)
            runtime.called = reactor.callLater(rest, lambda: self.breathe().addCallback(begin))

    def _run_sleep_tick(self) -> "Deferred[dict[str, Any]]":
        """Run the sleep cycle now; fires with one entry a step."""
        return run_sleep_tick(self, self.obj)

    def hear(self, event: Message) -> None:
        """Queue what the body heard; what it is to answer begins a tick at once.

        Where the game moderates, what was said waits in the queue until it has passed.
        """
        is_speech = event.channel in SPEECH
        if is_speech:
            self.runtime.hear_language(event)
        moderates = is_speech and self.moderator is not None
        # Who pages need not be here; of those who are here only players make it speak again.
        by_player = event.channel == "page" or self.game.here().get(event.speaker_id, False)
        metadata = {**event.metadata, **({UNJUDGED: True} if moderates else {})}
        if event.channel != "page" and self.obj.location is not None:
            metadata[ROOM] = stable_id(self.obj.location)
        speaker = find(event.speaker_id)
        if speaker is not None and (face := face_of(speaker, self.obj)) != event.speaker_id:
            metadata[FACE] = face
        self.runtime.hear(replace(event, metadata=metadata), self.now(), by_player)
        self._save_queue()  # a kill of the Server comes without notice
        with self.state.pinned():
            if event.channel == "move":
                reactor.callLater(0, self.survived, "a move", self._resolve_moves, None)
            if event.channel == "move" and self.config.greetings:
                greeting = partial(greet, self, event.speaker_id)
                reactor.callLater(WAIT_S, self.survived, "greeting", greeting, False)
            if moderates:
                self.moderate(event)
            elif wants_answer(event):
                self.called()

    def _resolve_moves(self) -> None:
        """Turn moves that were heard just now into arrivals and departures: all have ended."""
        if self.pk:
            self.runtime.queue[:] = resolved(self.runtime.queue, self.game.here())

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
        return why_not(self)

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
        emote = self.emote(occasion)
        if emote and self.obj and self.obj.location:
            self.act_out(emote)

    def stop_thinking(self) -> bool:
        """Cancel the turn in flight, and a compaction beside it; returns whether there was one.

        Exclusive work goes on, as half of it would be worse than none: forgetting, a rollback, an
        export.
        """
        has_stopped = self.runtime.stop_behind()
        lock = self.runtime.lock
        if lock.running is None or lock.is_exclusive:
            return has_stopped
        lock.running.cancel()
        return True

    def at_server_start(self) -> None:
        """Repair what a crash left; the rest follows when everything is loaded."""
        self.survived("starting the timer", lambda: restart_timer(self), None)
        self.survived("repairs at the start", self._repair, None)

    def _repair(self) -> None:
        self.repair_at_start()
        if self.is_embodied:
            subscribe(self.obj)
        if self.ready:
            self.repair_when_ready()

    def at_server_reload(self) -> None:
        """Save what is only in memory. An exception would stop the reload of the whole game."""
        self.runtime.ends = True
        self._save_queue()
        self.survived("saving the history", self.history.checkpoint, None)

    at_server_shutdown = at_server_reload

    def at_script_delete(self) -> bool:
        """Stop thinking, and delete what is kept of it beside its Attributes."""
        self.stop_thinking()
        planned = self.runtime.called
        if planned is not None and planned.active():
            planned.cancel()
        self.deleting = self._delete_derived()
        self.shared_spend.keep_limits(self.scope, dict.fromkeys(OWN_LIMITS))
        RUNTIMES.pop(stable_id(self), None)
        return True

    def _delete_derived(self) -> "Deferred[Any]":
        """Delete it from the search index and from semantic memory; what fails is logged."""
        recall, memories, scope = self.mind.recall, self.mind.memories, self.scope
        owned = memories.ids(scope).addCallback(lambda ids: memories.delete(scope, ids))
        deletions = (recall.clear(scope), recall.clear(scope_of_texts(scope)), owned)
        return DeferredList([each.addErrback(self._not_deleted) for each in deletions])

    def _not_deleted(self, failure: "Failure") -> None:
        logger.log_err(f"[ai] memories of the deleted {self.key} are left over: {failure.value}")
