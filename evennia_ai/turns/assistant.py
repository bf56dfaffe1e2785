"""An assistant as its tools, its features and services know it: what it stores and can look up.

An odd value in one of its Attributes counts as nothing stored, and is put aside (`history.stored`)
before something else is written in its place. `turns.agent_loop.Agent` asks a model, too.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, cached_property, partial
from operator import is_not
from typing import Any, Generic, Literal, Protocol, TypeVar

from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks
from twisted.python.failure import Failure

from evennia_ai import conf
from evennia_ai.background import Steps
from evennia_ai.errors import ConfigError, ToolError
from evennia_ai.history.audience import is_private
from evennia_ai.history.live import HistoryHandler
from evennia_ai.history.messages import ANSWERED, ASKER, Message, Speaker, seconds
from evennia_ai.history.stored import (
    Cache,
    Reader,
    Store,
    Stored,
    Unreadable,
    as_dict,
    as_plain,
    each_readable,
    reader_of,
    records,
)
from evennia_ai.kinds import Allowed
from evennia_ai.language.tables import AUTO, language_of, language_of_most, line_in
from evennia_ai.language.words import storable
from evennia_ai.life import Tools
from evennia_ai.llm_interaction.budget import (
    PLAIN_SUMMARY_TOKENS,
    TAIL_TOKENS,
    Caps,
    Limits,
    PromptLog,
)
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE
from evennia_ai.options import (
    EMOTES,
    OPTIONS,
    OWN_LIMITS,
    AssistantConfig,
    Configuration,
    Layer,
    check_option,
    configured,
)
from evennia_ai.rag_memory.backend import MemoryBackend
from evennia_ai.rag_memory.entity_store import Character, EntityHandler
from evennia_ai.rag_memory.journal import JournalHandler
from evennia_ai.rag_memory.ledger import LedgerHandler, Note
from evennia_ai.rag_memory.memory import LifeMemory, RecallJobs
from evennia_ai.rag_memory.seen import KEY as QUARANTINE
from evennia_ai.rag_memory.seen import Quarantined, Seen
from evennia_ai.sleep.sleeper import SleepReport
from evennia_ai.turns.moderation import ALERT_EVERY_S, Moderator, where
from evennia_ai.turns.runtime import (
    UNJUDGED,
    Group,
    Runtime,
    Unanswered,
    Used,
    by_speaker,
    wants_answer,
)
from evennia_ai.turns.spend_book import SharedSpend, lifts
from evennia_ai.turns.surroundings import Game
from evennia_ai.turns.waiting import KEY as WAITING
from evennia_ai.turns.waiting import WaitingCalls

T = TypeVar("T")
R = TypeVar("R", bound=Stored)
# How the categories of Attributes begin in which features store what they store.
FEATURES = "ai_feature_"
# Time that a restart may take without making what was heard before it too old to answer.
RESTART_S = 60.0
# Newest lines of somebody that tell their language.
HEARD_LAST = 50
_UNSET = object()
# The shape of what assistants store. A release that changes it counts up, and brings what older
# ones stored up to date.
VERSION = 1
VERSION_KEY = "schema_version"
AWAKE, SLEEP = "awake", "sleep"
# The category of the pages on which heard lines wait, and how many one holds: a further line writes
# the newest page, not the whole queue.
QUEUE, QUEUE_PAGE = "ai_queue", 16
Place = tuple[str | None, str]


# What the Attributes of the script hold that this package writes and others may change.
_KINDS: Mapping[str, Any] = {
    "enabled": bool,
    "dreamt": bool,
    "compaction_hold": bool,
    "operating_mode": Literal["awake", "sleep"],
    "sleep_phase": Literal["sleeping", "dreaming", "waking"],
    "summaries_stale": list[str],
    "summaries_remade": list[float],
    "conversation_begun": str,
    "context_signals": dict[str, Any],
    "routine_done": str,
    "routine_alert": str,
    "compaction_outbox": list[str],
    "nights_done": dict[str, Any],
    WAITING: WaitingCalls,
    "initiative_used": Used,
    QUARANTINE: Quarantined,
    "greeted": dict[str, Any],
    "last_extraction": list[str],
    "last_compaction": dict[str, Any],
    "last_sleep": SleepReport,
}
SCRIPT: Mapping[Place, Reader] = {(None, key): reader_of(kind) for key, kind in _KINDS.items()}
# What is read as a whole, and put aside where it cannot be.
BODY: Mapping[Place, Reader] = {(None, "journal"): reader_of(dict[str, Any])}
# Attributes that are loaded together with the options, in one query.
RUNTIME_KEYS = (*_KINDS, "conversation_history", "conversation_tail")


def is_sound(read: Reader, value: object) -> bool:
    """Whether a stored value can be used; None counts as nothing stored."""
    try:
        if value is not None:
            read(value)
    except Unreadable:
        return False
    return True


class Kept(Generic[T]):
    """An Attribute of the script as a value.

    It is `empty` where nothing is stored that can be read, and written only where that changes it.
    """

    def __init__(self, key: str, empty: T):
        self._key, self._empty = key, empty

    def __get__(self, state: "StateHandler", owner: object) -> T:
        value = state.store.get(self._key)
        if value is None:
            return self._empty
        try:
            stored: T = SCRIPT[None, self._key](value)
            return stored
        except Unreadable:
            return self._empty

    def __set__(self, state: "StateHandler", value: T) -> None:
        if value != Kept.__get__(self, state, None):
            state.store.set(self._key, as_plain(value))


class KeptIds(Kept[list[str]]):
    """A list of many ids, in one text: Evennia copies each text of a list when it stores it."""

    def __get__(self, state: "StateHandler", owner: object) -> list[str]:
        return " ".join(super().__get__(state, owner)).split()

    def __set__(self, state: "StateHandler", value: list[str]) -> None:
        super().__set__(state, list(filter(None, [" ".join(value)])))


class StateHandler:
    """Reads and writes the script's runtime and configuration Attributes."""

    mode: Kept[str] = Kept("operating_mode", AWAKE)  # ``awake`` or ``sleep``
    phase = Kept[str | None]("sleep_phase", None)  # in sleep; None awake
    dreamt = Kept("dreamt", False)  # whether the memory steps ran in this sleep
    # Whether automatic compaction waits for a manual one, after a rollback.
    hold = Kept("compaction_hold", False)
    signals = Kept[dict[str, Any]]("context_signals", {})  # context signals that are set
    last_sleep = Kept("last_sleep", SleepReport())
    extracted = Kept[list[str]]("last_extraction", [])  # ids, since the last compaction
    # Ids of summaries that were emptied, as something was forgotten, to be made again.
    stale = Kept[list[str]]("summaries_stale", [])
    # When such were made again in the last day, seconds since the epoch.
    remade = Kept[list[float]]("summaries_remade", [])
    # Ids that rollbacks withdrew and that must still leave index and semantic memory.
    outbox = KeptIds("compaction_outbox", [])
    # How far the nights have come, by step: a page of the journal, or seconds since the epoch.
    nights = Kept[dict[str, Any]]("nights_done", {})
    routine = Kept("routine_done", "")  # the entry of its routine that it did last
    routine_alert = Kept("routine_alert", "")  # the one that staff were told it cannot follow
    waiting = Kept(WAITING, WaitingCalls())  # calls of tools that wait for approval
    unasked = Kept("initiative_used", Used())  # when it spoke unasked of late

    def __init__(self, assistant: "Assistant"):
        self._assistant, self.store = assistant, assistant.store
        self._reported: set[tuple[str, str]] = set()
        self._stamps: tuple[object, ...] | None = None
        self._shared: tuple[Layer, ...] = ()
        self.configuration = Configuration()  # as it was last read
        self._pinned: AssistantConfig | None = None
        self._queue: dict[str, list[Message]] | None = None  # the saved queue, by pages
        self.store.preload((*OPTIONS, *RUNTIME_KEYS))

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Read the configuration only once during synchronous work."""
        before = self._pinned
        self._pinned = self.config()
        try:
            yield
        finally:
            self._pinned = before

    def config(self) -> AssistantConfig:
        """The configuration now; read again when an Attribute was changed."""
        if self._pinned is not None:
            return self._pinned
        assistant = self._assistant
        limits = assistant.shared_spend.limits_of(assistant.scope)
        layers = assistant.shared_options()
        stamps, before = (*self.store.stamps(OPTIONS), limits), self._stamps
        # Where a feature has brought options, the limits no longer stand where they stood.
        if before is None or layers != self._shared or any(map(is_not, before, stamps)):
            self._stamps, self._shared = stamps, layers
            self.configuration = self._read(layers, limits)
            for problem in self.configuration.problems:
                if (problem.name, problem.value) not in self._reported:
                    self._reported.add((problem.name, problem.value))
                    self._assistant.trouble(str(problem))
        return self.configuration.config

    def _read(self, layers: tuple[Layer, ...], limits: Mapping[str, float]) -> Configuration:
        values = {name: self.store.get(name, default=_UNSET) for name in OPTIONS}
        own = {name: value for name, value in values.items() if value is not _UNSET}
        result = configured(*layers, Layer("set here", own, self._assistant.allowed))
        caps = result.config.spend_caps
        bounds = {**configured(*layers).config.spend_caps, **limits}
        kept = {name: cap for name, cap in bounds.items() if lifts(cap, caps.get(name))}
        config = result.config.model_copy(update={"spend_caps": {**caps, **kept}})
        return replace(result, config=config)

    def own(self, name: str) -> Any:
        """An option as it is stored for this assistant, in a form that can be used; else None."""
        try:
            return check_option(name, self.store.get(name))
        except ConfigError:
            return None

    def set_mode(self, mode: str, phase: str | None = None) -> None:
        """Change mode and phase together."""
        with self.store.transaction():
            self.mode, self.phase = mode, phase
            if mode == AWAKE:
                self.dreamt = False

    def load_queue(self) -> list[Message]:
        """Events that were heard but not yet in the history when they were last saved.

        One put in by hand is no event: it could be an order in the name of somebody else.
        """
        return [event for page in self._load_pages().values() for event in page]

    def _load_pages(self) -> dict[str, list[Message]]:
        """The stored pages of the queue; the key of each is the id of a line on it."""
        pages = {}
        for key in self.store.keys(QUEUE):
            pages[key] = each_readable(self.store.get_own(key, QUEUE), Message.from_dict, [])
        return pages

    def save_queue(self, events: Sequence[Message]) -> None:
        """Save the events not yet in the history: the pages on which something changed."""
        before = self._queue
        if before is None:
            before = self._load_pages()
        waiting, pages = {event.id: event for event in events}, dict[str, list[Message]]()
        for key, page in before.items():
            pages[key] = [waiting.pop(event.id) for event in page if event.id in waiting]
        newest = max(pages, default="")
        for event in waiting.values():
            if not newest or len(pages[newest]) >= QUEUE_PAGE:
                newest = event.id
            pages.setdefault(newest, []).append(event)
        # The newest stays where it is empty, so that the next line need not make an Attribute.
        left = {key: page for key, page in pages.items() if page or key == newest}
        self._queue = None  # what is stored, if a transaction around this is rolled back
        with self.store.transaction():
            self.store.delete_all(pages.keys() - left.keys(), QUEUE)
            for key, page in left.items():
                if page != before.get(key):
                    self.store.set(key, as_plain(page), QUEUE)
        self.store.on_commit(partial(setattr, self, "_queue", left))

    def configure(self, values: Mapping[str, object], unset: Collection[str] = ()) -> None:
        """Store options, as `check_option` returns them; those `unset` take their default."""
        with self.store.transaction():
            for name, value in values.items():
                self.store.set(name, value)
            for name in unset:
                self.store.delete(name)
            if "spend_caps" in values or "spend_caps" in unset:
                self._keep_limits(as_dict(values.get("spend_caps")))

    def configure_as(self, other: "StateHandler") -> None:
        """Take over the options that another assistant has set."""
        names = [name for name in OPTIONS if other.store.stamp(name) is not None]
        self.configure({name: other.store.get(name) for name in names})
        self._keep_limits(other.config().spend_caps)

    def _keep_limits(self, caps: Mapping[str, float | None]) -> None:
        """Keep caps where Evennia's commands do not reach them."""
        limits = {name: caps.get(name) for name in OWN_LIMITS}
        self._assistant.shared_spend.keep_limits(self._assistant.scope, limits)


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
        tools: What it can do.
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
    tools: Tools
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
    may_embed: Callable[[Iterable[str]], bool]
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
        made: Any = cache(lambda name, kind: records(self.store, FEATURES + name, kind))
        return made  # type: ignore[no-any-return]

    def who(self, person: Any) -> Speaker:
        """Name and stable id of a person; a game knows them by their objects, too."""
        known: Speaker = person
        return known

    @property
    def prompts(self) -> PromptLog:
        """Its newest requests."""
        return self.runtime.prompts

    @cached_property
    def memory(self) -> LifeMemory:
        """Everything heard, said or written, to be found again."""
        return LifeMemory(self)

    @property
    def journal(self) -> JournalHandler:
        """What the body wrote down."""
        return self.obj.journal

    @property
    def entities(self) -> EntityHandler:
        """What the body knows of people, places and things."""
        return self.obj.entities

    @property
    def own_name(self) -> str:
        """The name of its body."""
        return self.obj.key

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
        if is_base:
            summary = min(summary, PLAIN_SUMMARY_TOKENS)
        caps = Caps(
            config.memory_inject_tokens,
            TAIL_TOKENS,
            config.reply_reserve_tokens,
            summary,
            config.ledger_max_tokens,
        )
        call = self.shared_spend.call_limits(config.spend_caps).get("tokens")
        facts = self.mind.model.facts(name)
        fixed = self.prompts.fixed_tokens
        return Limits(name, facts, config.max_context_tokens, call, caps, fixed, is_base)

    def usage(self, history_tokens: int | None = None) -> float:
        """The share of its room that history, summaries and queued events take; constant time.

        Of the history it is the largest view any one audience has, or would be so many tokens.
        """
        if history_tokens is None:
            history_tokens = self.history.widest_tokens()
        return self.limits().room.usage(history_tokens + self.runtime.queued_tokens())

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

    def run_exclusive(self, function: Callable[[], Any]) -> Deferred[Any]:
        """Run something while no tick runs, after the one in flight; fires with its result.

        A compaction in the background is cancelled before it begins.
        """

        def alone() -> Any:
            self.runtime.summaries.stop()
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

    def between_turns(self, function: Callable[[], Any]) -> Deferred[Any]:
        """As `run_exclusive`, for something short, beside a compaction in the background."""

        def answer(result: Any) -> Any:
            if self.runtime.is_called():  # a tick that was skipped meanwhile has to follow
                self.called()
            return result

        return self.runtime.lock.run_next(function).addBoth(answer)

    @inlineCallbacks
    def moderate(self, event: Message) -> Steps[None]:
        """Have a queued event judged; it stays in its place in the queue, or leaves it."""
        speaker = Speaker(event.speaker_name, event.speaker_id)
        is_secret = is_private(event.audience)
        text = yield self.judge("heard", event.content, speaker, event.channel, is_secret)
        self.runtime.judged(event.id, text)
        if self.pk and self.runtime.is_called():
            self.called()

    def judge_said(self, text: str, channel: str, private: bool) -> Deferred[str]:
        """Fires with what may be said instead of a text: the same, another, or an empty one."""
        speaker = Speaker(self.obj.key, self.obj.stable_id)
        return self.judge("said", text, speaker, channel, private)

    @inlineCallbacks
    def judge(
        self, kind: str, text: str, speaker: Speaker, channel: str, private: bool
    ) -> Steps[str]:
        """Fires with the text to go on with, empty if it is refused; fails only if cancelled.

        Where the function fails, what was heard passes, as everybody there heard it too, and
        nothing is said. The audit log never gets the text: `aiforget` would not find it there.
        """
        moderator = self.moderator
        if moderator is None:  # the setting was removed while the event waited in the saved queue
            return text
        facts = {"speaker_id": speaker.id, "channel": channel, "private": private}
        about = {"kind": kind, "assistant": self.key, "speaker": speaker.key, **facts}
        try:
            answer = yield moderator.ask(text, about)
        except (GeneratorExit, CancelledError):
            raise  # the server stops; the next start asks again
        except BaseException as error:  # noqa: BLE001 - a game's own function may raise anything
            why = where(error)
            self.audit("moderation", verdict="failed", of=kind, **facts, why=why)
            if self.now() - moderator.told_at > ALERT_EVERY_S:
                moderator.told_at = self.now()
                told = (
                    f"moderation failed ({why}): while it does, what is heard passes and nothing "
                    "is said. Later failures are in the audit log."
                )
                self.survived("telling staff", lambda: self.alert(told), None)
            if kind != "heard":
                text = ""
            return text
        passed, verdict = "", "refused"
        if answer and answer.strip():
            passed, verdict = storable(answer), "replaced"
        if passed != text:
            self.audit("moderation", verdict=verdict, of=kind, **facts)
        return passed

    def emote(self, occasion: str, person: str = "") -> str | None:
        """What players see of it at an occasion: its own words, else those of its language.

        `person` is the stable id of whom it is for, if it is for one.
        """
        emote = self.config.emotes[occasion]
        if emote is None or emote != EMOTES[occasion]:
            return emote
        return self.own_notice(occasion, person)

    def report_proposal(self, note: Note) -> None:
        """Tell admins online that a note waits for approval."""
        command = f"(aimemory/approve {self.obj.key} = {note.id})"
        self.tell_staff(
            f"a note waits for approval: {note.text} {command}",
            f"a note waits for approval {command}",
        )

    def own_notice(self, kind: str, person: str = "", **slots: str) -> str:
        """A notice to players in its own language.

        If that is "auto", in the one that the `person` whom it is for (stable id) has spoken, else
        that of its text, else the one heard last, else the game's.
        """
        language, languages = self.config.language, self.runtime.languages
        if language == AUTO:
            spoken = languages.of.get(person, "")
            if person and person not in languages.of:
                said = (m.content for m in self.history.messages() if m.speaker_id == person)
                spoken = language_of_most(deque(said, HEARD_LAST))
            language = (
                spoken
                or language_of(slots.get("text", ""))
                or languages.last
                or conf.game_language()
            )
        return line_in(language, kind, **slots)

    def act_out(self, text: str) -> None:
        """Pose of its own accord; where the game refuses that, staff see it."""
        try:
            told = self.game.emote(text)
        except ToolError as error:
            self.trouble(f"could not pose: {error}")
            return
        if isinstance(told, Deferred):
            told.addErrback(lambda failure: self.trouble(failure.getErrorMessage()))

    def show(self, occasion: str, audience: str, channel: str, asker: str | None) -> None:
        """Show its emote of an occasion, if any, to those who may know what somebody asked."""
        if emote := self.emote(occasion, asker or ""):
            self.game.show(emote, audience, channel, asker)

    def show_to(self, group: Group, occasion: str) -> None:
        """As `show`, for what a group asked."""
        last = group.events[-1]
        self.show(occasion, group.audience, last.channel, last.speaker_id or None)

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
        saved = self.state.load_queue()
        if not saved:
            return  # the history need not be read yet
        now, fresh_s = self.now(), self.stale_after_s + RESTART_S
        for event in saved:  # what waited for a short restart is as fresh as if just heard
            heard = seconds(event.created_at) or now
            if now - heard <= fresh_s:
                heard = now
            self.runtime.waiting[event.id] = (heard, self.runtime.lock.worked_s)
        stored = self.history.by_ids(event.id for event in saved)
        known = {message.id for message in (*stored, *self.runtime.queue)}
        lost = [event for event in saved if event.id not in known]
        self.runtime.queue = [*lost, *self.runtime.queue]
        self.runtime.queue_saved = False
        for event in lost:
            if UNJUDGED in event.metadata:
                self.moderate(event)
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
