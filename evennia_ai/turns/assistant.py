"""What an assistant in a game and a fake one have in common: its handlers, made at first use."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import Any, Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from evennia_ai import conf
from evennia_ai.errors import ModelError, ToolError
from evennia_ai.feature import CATEGORIES, Feature
from evennia_ai.history.live import HistoryHandler
from evennia_ai.history.messages import ANSWERED, ASKER, Message, Speaker
from evennia_ai.history.stored import Cache, Store, Stored, records
from evennia_ai.kinds import Allowed
from evennia_ai.language.tables import AUTO, language_of, language_of_most, line_in
from evennia_ai.llm_interaction.budget import (
    PLAIN_SUMMARY_TOKENS,
    TAIL_TOKENS,
    BudgetLog,
    Caps,
    Limits,
)
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE
from evennia_ai.llm_interaction.values import TurnReport, TurnRequest
from evennia_ai.options import EMOTES, AssistantConfig, Layer
from evennia_ai.rag_memory.backend import MemoryBackend
from evennia_ai.rag_memory.entity_store import Character, EntityHandler
from evennia_ai.rag_memory.journal import JournalHandler
from evennia_ai.rag_memory.ledger import LedgerHandler
from evennia_ai.rag_memory.memory import LifeMemory, RecallJobs
from evennia_ai.rag_memory.seen import Quarantine, Seen
from evennia_ai.recall.values import seconds
from evennia_ai.sleep.compaction.compact import check_room
from evennia_ai.turns.agent_loop import run_turn
from evennia_ai.turns.moderation import Moderator, moderate
from evennia_ai.turns.runtime import UNJUDGED, Group, Runtime, Unanswered, by_speaker, wants_answer
from evennia_ai.turns.spend import SharedSpend, SpendHandler
from evennia_ai.turns.state import StateHandler
from evennia_ai.turns.surroundings import Game
from evennia_ai.turns.tools.execution import ToolRegistry

# While no model answers, those who wait are shown so at most this often.
TROUBLE_SHOWN_S = 60.0
# Time that a restart may take without making what was heard before it too old to answer.
RESTART_S = 60.0
# Newest lines of somebody that tell their language.
HEARD_LAST = 50

T = TypeVar("T")
R = TypeVar("R", bound=Stored)


class Mind(Protocol):
    """What computes or waits for it; `mind.mind.Mind` says what each does."""

    model: ModelClient
    memories: MemoryBackend
    recall: RecallJobs
    down: set[str]

    def work(self, function: Callable[..., T], /, *given: Any, **named: Any) -> Deferred[T]:
        """Call a function that only computes, on a thread."""


class Assistant:
    """What services know of an assistant; a game or a fake brings the attributes without a value.

    Attributes:
        pk: Its database id; None once it is deleted.
        scope: The stable id under which its memory is filed.
        enabled: Whether it thinks: switched on, in a body, and nobody puppets that body.
        ready: Whether everything slow is loaded, so that ticks may think.
        runtime: What is in memory while the server runs.
        mind: What computes or waits for it.
        features: Those that the game lists.
        known_features: Those, and all others that ship: what they have stored is forgotten, too.
        moderator: Asks the game's own function what may be heard and said; None if there is none.
        count: Tokens of a short text for its model; long ones are counted by way of `mind.work`.
        breathe: Lets others have a turn between two steps of long work; fires when that is over.
        tick_interval_s: Time between two ticks. A question begins one at once.
        cannot_store: The error that tells that nothing can be stored now.
        thinking_after_s: Wait for an answer after which the emote `thinking` is shown.
        stale_after_s: Age of a line that is remembered, but not answered.
    """

    key: str
    pk: int | None
    scope: str
    obj: Character
    enabled: bool
    ready: bool
    store: Store
    runtime: Runtime
    mind: Mind
    game: Game
    tools: ToolRegistry
    features: Sequence[Feature]
    known_features: Sequence[Feature]
    moderator: Moderator | None
    shared_spend: SharedSpend
    model_name: str
    count: Callable[[str], int]
    allowed: Allowed
    extracts_memories: bool
    now: Callable[[], float]
    shared_options: Callable[[], tuple[Layer, ...]]
    breathe: Callable[[], Deferred[None]]
    called: Callable[[], None]
    pose: Callable[[str], None]
    note_reply: Callable[[str], None]
    trouble: Callable[[str], None]
    alert: Callable[[str], None]
    log: Callable[..., None]
    tell_staff: Callable[..., None]
    audit: Callable[..., None]
    spent: Callable[..., None]
    log_error: Callable[[str, BaseException], None]
    tell_controllers: Callable[[str, str], None]
    storing_failed: Callable[[Any], None]

    cannot_store: type[Exception] | tuple[()] = ()
    tick_interval_s = 2
    reply_cooldown_s = 1.0
    thinking_after_s = 2.0
    stale_after_s = 90.0
    summary_max_tokens = 800
    compact_preserve_token_share = 0.2

    @cached_property
    def state(self) -> StateHandler:
        """Mode, signals, configuration."""
        return StateHandler(self)

    @cached_property
    def history(self) -> HistoryHandler:
        """The conversation and its archive."""
        return HistoryHandler(
            self.store,
            lambda: self.count,
            lambda: self.now(),
            lambda messages: self.memory.remember_messages(messages),
        )

    @cached_property
    def ledger(self) -> LedgerHandler:
        """Notes people approved, pinned into every prompt."""
        return LedgerHandler(self.store, lambda: self.now())

    @cached_property
    def records(self) -> Callable[[str, type[R]], Cache[R]]:
        """What a feature stores of it: records by the feature's name and their kind."""
        made: Any = cache(lambda name, kind: records(self.store, CATEGORIES + name, kind))
        return made  # type: ignore[no-any-return]

    def who(self, person: Any) -> Speaker:
        """Name and stable id of a person; a game knows them by their objects, too."""
        known: Speaker = person
        return known

    @cached_property
    def spend(self) -> SpendHandler:
        """What its calls cost, and the one way to a model."""
        return SpendHandler(self, self.shared_spend)

    @property
    def budgets(self) -> BudgetLog:
        """The token budgets of its requests."""
        return self.runtime.budgets

    @cached_property
    def memory(self) -> LifeMemory:
        """Everything heard, said or written, to be found again."""
        return LifeMemory(
            self.scope,
            self.mind.recall,
            lambda: self.mind.memories,
            self.log_error,
            self.now,
            entities=lambda: self.entities,
            notes=lambda: self.ledger.entries(),
            on_new_index=lambda: self.memory.mend(whole=True),
            traits=lambda: self.tools.traits,
            may_embed=lambda texts: self.spend.may_embed(texts),
            quarantine=Quarantine(self),
            work=self.mind.work,
            history=lambda: self.history,
            journal=lambda: self.journal,
            state=lambda: self.state,
            exists=lambda: self.pk is not None,
            log=self.log,
        )

    @property
    def journal(self) -> JournalHandler:
        """What the body wrote down."""
        return self.obj.journal

    @property
    def entities(self) -> EntityHandler:
        """What the body knows of people, places and things."""
        return self.obj.entities

    def seen(self, audience: str, trusted: bool = False) -> Seen:
        """The read gate: what a viewer may see of its life."""
        return Seen(self, audience, trusted)

    @property
    def config(self) -> AssistantConfig:
        """The configuration now."""
        return self.state.config()

    def limits(self, model: str = "") -> Limits:
        """What holds for the requests to a model, its own by default, as it is known now."""
        config, name = self.config, model or self.model_name
        is_base, summary = config.llm_api == "completion", self.summary_max_tokens
        caps = Caps(
            config.memory_inject_tokens,
            TAIL_TOKENS,
            config.reply_reserve_tokens,
            min(summary, PLAIN_SUMMARY_TOKENS) if is_base else summary,
            config.ledger_max_tokens,
        )
        facts, call = self.mind.model.facts(name), self.spend.call_limits.get("tokens")
        fixed = self.runtime.fixed_tokens
        return Limits(name, facts, config.max_context_tokens, call, caps, fixed, is_base)

    def usage(self, history_tokens: int | None = None) -> float:
        """The share of its room that history, summaries and queued events take; constant time.

        Of the history it is the largest view any one audience has, or would be so many tokens.
        """
        tokens = self.history.widest_tokens() if history_tokens is None else history_tokens
        return self.limits().room.usage(tokens + self.runtime.queued_tokens())

    def fall_asleep(self) -> None:
        """Go to sleep; the next tick dreams."""
        self.state.set_mode("sleep", "sleeping")
        self.pose("sleep")
        self.log("falls asleep")

    def wake(self) -> None:
        """Wake up."""
        self.state.set_mode("sleep", "waking")
        self.pose("wake")
        self.state.set_mode("awake")
        self.runtime.last_turn_at = 0.0
        self.runtime.last_heard_at = self.now()
        self.log("wakes up")

    def run_turn(self, request: TurnRequest) -> Deferred[TurnReport]:
        """Think and act until done; see `turns.agent_loop.run_turn`."""
        return run_turn(self, request)

    def run_exclusive(self, function: Callable[[], Any]) -> Deferred[Any]:
        """Run something while no tick runs, after the one in flight; fires with its result.

        A compaction in the background is cancelled before it begins.
        """

        def alone() -> Any:
            self.runtime.stop_behind()
            return function()

        return self.runtime.lock.run_next(alone)

    def survived(self, what: str, function: Callable[[], T], otherwise: T) -> T:
        """What a function returns; if it raises, the error is logged, and `otherwise` returned.

        For hooks of Evennia and lists of assistants: a fault of one must not stop the others. Of a
        Deferred, too, the error is logged.
        """
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 - logged and shown in `aistatus`
            self.log_error(what, error)
            return otherwise
        if isinstance(result, Deferred):

            def failed(failure: Failure) -> None:
                if failure.value is not None:
                    self.log_error(what, failure.value)

            result.addErrback(failed)
        return result

    def of_features(self, ask: Callable[[Feature], T]) -> list[T | None]:
        """What each feature answers; None for one that raises, which is logged."""
        return [
            self.survived(f"the feature {feature.name}", partial(ask, feature), None)
            for feature in self.features
        ]

    def between_turns(self, function: Callable[[], Any]) -> Deferred[Any]:
        """As `run_exclusive`, for something short, beside a compaction in the background."""

        def answer(result: Any) -> Any:
            if self.runtime.is_called():  # a tick that was skipped meanwhile has to follow
                self.called()
            return result

        return self.runtime.lock.run_next(function).addBoth(answer)

    def on_mind(self, turn: TurnRequest, present: Mapping[str, str]) -> list[str]:
        """What features add to a prompt, a line each."""
        added = self.of_features(lambda each: [*each.lines(self, turn, present)])
        return [line for lines in added for line in lines or ()]

    def model_failed(self, error: ModelError, request: TurnRequest) -> None:
        """No model answered: show it to those who wait, and alert staff once for a model."""
        name, fallback = self.model_name, self.config.llm_offline_fallback
        if name not in self.mind.down:
            self.mind.down.add(name)
            instead = "the offline model answers" if fallback else "what was asked is tried again"
            self.alert(f"no model answers ({error}); {instead} until one does")
            self.runtime.error_passes = True
        else:
            self.log(f"no model answers: {error}", warning=True)
        runtime = self.runtime
        runtime.counts["model failures"] += 1
        is_due = not fallback or self.now() - runtime.trouble_shown_at > TROUBLE_SHOWN_S
        emote = self.emote("trouble", request.asker or "")
        if emote and is_due:
            runtime.trouble_shown_at = self.now()
            self.game.show(emote, request.audience, request.channel, request.asker)

    def model_answered(self) -> None:
        """A model answered; tell staff if it had been down."""
        if self.model_name in self.mind.down:
            self.mind.down.discard(self.model_name)
            self.tell_staff(f"{self.obj.key}: the model answers again")

    def turn_failed(self, error: Exception, group: Group, is_shown: bool) -> None:
        """A turn broke off: keep the question, show it to who asked, unless it `is_shown`.

        What cannot be stored is tried again for as long as that lasts, and told as such.
        """
        runtime, is_model = self.runtime, isinstance(error, ModelError)
        if not is_model:  # staff know of a model that is down
            self.log_error("turn", error)
        if isinstance(error, self.cannot_store):
            runtime.postpone(group, self.now(), gives_up=False)
            self.survived("telling staff", partial(self.storing_failed, error), None)
            return
        runtime.error_passes = True
        known = runtime.unanswered.get(group.key)
        if not runtime.postpone(group, self.now()):
            tell = self.trouble if is_model else self.alert
            tell(f"gave up answering {group.events[-1].speaker_name}, after several tries: {error}")
        elif not is_shown and (known is None or known.group != group):
            runtime.trouble_shown_at = self.now()
            self.show_to(group, "trouble")

    def emote(self, occasion: str, person: str = "") -> str | None:
        """What players see of it at an occasion: its own words, else those of its language.

        `person` is the stable id of whom it is for, if it is for one.
        """
        emote = self.config.emotes[occasion]
        if emote is None or emote != EMOTES[occasion]:
            return emote
        return self.own_notice(occasion, person)

    def own_notice(self, kind: str, person: str = "", **slots: str) -> str:
        """A notice to players in its own language.

        If that is "auto", in the one that the `person` whom it is for (stable id) has spoken, else
        that of its text, else the one heard last, else the game's.
        """
        language = self.config.language
        if language == AUTO:
            language = (
                self._language_with(person)
                or language_of(slots.get("text", ""))
                or self.runtime.language
                or conf.game_language()
            )
        return line_in(language, kind, **slots)

    def _language_with(self, person: str) -> str:
        """The code of the language that somebody has spoken; empty if none is known."""
        if not person or person in self.runtime.languages:
            return self.runtime.languages.get(person, "")
        said = (m.content for m in self.history.messages() if m.speaker_id == person)
        return language_of_most(deque(said, HEARD_LAST))

    def act_out(self, text: str) -> None:
        """Pose of its own accord; where the game refuses that, staff see it."""
        try:
            told = self.game.emote(text)
        except ToolError as error:
            self.trouble(f"could not pose: {error}")
            return
        if isinstance(told, Deferred):
            told.addErrback(lambda failure: self.trouble(failure.getErrorMessage()))

    def show_to(self, group: Group, occasion: str) -> None:
        """Show its emote of an occasion, if any, to those who may know what a group asked."""
        last = group.events[-1]
        if emote := self.emote(occasion, last.speaker_id):
            self.game.show(emote, group.audience, last.channel, last.speaker_id or None)

    def over_spend(self) -> bool:
        """Whether a cap lets no call be made for the assistant itself."""
        return self.spend.reached() is not None

    def save_queue(self) -> None:
        """Save what was heard but not stored or not answered yet, if that changed."""
        if not self.runtime.queue_saved:
            self.state.save_queue(self.runtime.pending())
            self.runtime.queue_saved = True

    def at_commit_step(self, name: str) -> None:
        """Called before each step of a commit; an exception undoes the commit."""

    def repair_at_start(self) -> None:
        """Clear the signal of an extraction, end a dream, and restore what was heard."""
        self.state.signals = {}
        if self.state.phase in ("dreaming", "waking"):
            self.state.set_mode("sleep", "sleeping")
        self._restore_queue()

    def repair_when_ready(self) -> None:
        """Repair compactions and the index."""
        self.memory.empty_outbox()
        self.memory.mend()
        check_room(self)

    def _restore_queue(self) -> None:
        """Queue again what was heard but not stored, and turns that were not finished."""
        saved = self.state.load_queue()
        if not saved:
            return  # the history need not be read yet
        now, fresh_s = self.now(), self.stale_after_s + RESTART_S
        for event in saved:  # what waited for a short restart is as fresh as if just heard
            waited = now - (seconds(event.created_at) or now)
            heard = now if waited <= fresh_s else now - waited
            self.runtime.waiting[event.id] = (heard, self.runtime.lock.worked_s)
        stored = self.history.by_ids(event.id for event in saved)
        known = {message.id for message in (*stored, *self.runtime.queue)}
        lost = [event for event in saved if event.id not in known]
        self.runtime.queue = [*lost, *self.runtime.queue]
        self.runtime.queue_saved = False
        for event in lost:
            if UNJUDGED in event.metadata:
                moderate(self, event)
        live = {message.id: message for message in self.history.messages()}
        for group in by_speaker(m for m in stored if m.id in live and wants_answer(m)):
            newest = group.events[-1].id
            later = (message for id, message in live.items() if id > newest)
            used = self.memory.quarantine.messages(later)  # an answer that was taken back is none
            if not any(_answers(message, group) for message in used):
                self.runtime.unanswered[group.key] = Unanswered(group, 1, now)


def _answers(message: Message, group: Group) -> bool:
    """Whether a message ended a turn for a group: words, or the result of an ending tool."""
    meta, (audience, speaker) = message.metadata, group.key
    if meta.get(ASKER, speaker) != speaker or meta.get("context") not in (None, CONTEXT_AWAKE):
        return False
    if message.role == "assistant":
        return message.audience == audience and not message.tool_calls
    return message.role == "tool" and bool(meta.get(ANSWERED) == audience)
