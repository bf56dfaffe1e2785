"""One compaction: fold the older part of a history into summaries without losing a message.

The order: is it allowed and due, the plan, masking if that is enough, summaries scope by scope, one
commit, what follows from it. Nothing is stored until all is there. When one is due is said by one
list of rules, which every caller asks (`why_not`).

Awake, the reply that is a scope's summary holds its notes, too. Asleep, and where somebody waits
(`compact_background` off), an extraction comes before it (`extract`).
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import ModelError
from evennia_ai.history.archive import CompactionRecord, Report
from evennia_ai.history.audience import PUBLIC, widest_of
from evennia_ai.history.messages import (
    Message,
    is_maskable,
    masked,
    new_id,
    rendered,
    unmasked,
    utc_iso,
    widest_view_tokens,
)
from evennia_ai.llm_interaction.prompt import measure_fixed
from evennia_ai.llm_interaction.summary import LEVELS
from evennia_ai.llm_interaction.values import OFFLINE_MODEL
from evennia_ai.llm_interaction.windows import USABLE_TOKENS
from evennia_ai.protocol import Assistant, Character
from evennia_ai.sleep.compaction.extraction import extract
from evennia_ai.sleep.compaction.folding import Fold, commit
from evennia_ai.sleep.compaction.plan import (
    BACKGROUND,
    COUNT,
    EMERGENCY,
    FEW_LINES,
    MANUAL,
    REQUEST,
    SLEEP,
    Plan,
    plan_compaction,
)

# Lines of scopes with too few for a summary are archived once they are so old.
FEW_STAY = timedelta(weeks=4)
# A time (ISO 8601) before which everything is old.
ALL = "9999"
# A limit that falls below this share of what it was is looked at again.
MUCH_LESS = 0.8


def threshold(script: Assistant, trigger: str) -> float:
    """The usage from which a trigger fires."""
    if trigger == EMERGENCY:
        return script.config.compact_emergency_threshold
    return script.config.compact_sleep_threshold


def why_not(script: Assistant, trigger: str) -> str:
    """Why no compaction may be made that this trigger starts; empty if one may."""
    config = script.config
    if not config.compact_enabled:
        return "compaction disabled"
    if not script.history.messages():
        return "no history"
    if script.limits().only_talks:
        return "the model's window is too small"
    if trigger == MANUAL:
        return ""
    if not config.compact_auto:
        return "automatic compaction is off"
    usage, least = script.usage(), threshold(script, trigger)
    if trigger == COUNT and not _by_count(script):
        return "the windows hold all lines"
    if trigger == REQUEST and not script.runtime.compaction_requested:
        return "the assistant did not ask for it"
    if trigger != COUNT and usage < least:
        return f"below threshold ({usage:.1%} < {least:.1%})"
    held = script.state.hold and usage < 1.0
    return "automatic compaction is held after a rollback" if held else ""


def _by_count(script: Assistant) -> bool:
    """Whether more lines of talk stand there than the two windows hold."""
    config = script.config
    if config.immediate_window is None or config.recent_window is None:
        return False
    return script.history.lines() > config.immediate_window + config.recent_window


def firing(script: Assistant, *triggers: str) -> str:
    """The first of these triggers that fires; empty if none does. Constant time.

    None fires while compactions wait after failures.
    """
    if script.now() < script.runtime.compaction_waits[1]:
        return ""
    return next((each for each in triggers if not why_not(script, each)), "")


def make_plan(script: Assistant, trigger: str = MANUAL) -> Plan:
    """The plan of a compaction that this trigger started.

    In sleep and in the background a share of the limit is kept as well as the window. By count
    just those lines leave for which there is a window.
    """
    config, history = script.config, script.history.messages()
    room, before = script.limits().room, datetime.fromtimestamp(script.now(), UTC) - FEW_STAY
    if trigger == COUNT and config.immediate_window and config.recent_window:
        # One stays over, as more than the two windows hold fires.
        few = min(FEW_LINES, config.recent_window)
        window = config.immediate_window + 1
        return plan_compaction(history, window, room, archive_before=ALL, few_lines=few)
    keep = 0
    if trigger in (SLEEP, BACKGROUND, REQUEST):
        keep = int(script.compact_preserve_token_share * config.max_context_tokens)
    window = config.compact_preserve_window
    return plan_compaction(history, window, room, keep, before.isoformat())


def check_room(script: Assistant) -> None:
    """Say it if there is no room: at the start, for a new configuration, for a smaller limit."""
    checked, limit = script.runtime.room_for, script.limits().tokens
    if checked and checked[0] == script.config and limit > MUCH_LESS * checked[1]:
        return
    script.runtime.room_for = script.config, limit
    measure_fixed(script, script.obj)
    if reason := no_room(script):
        if script.limits().only_talks:
            script.alert(reason)
        else:
            script.trouble(reason)


def no_room(script: Assistant) -> str:
    """Why there is no room for a talk, with the numbers and what to change; empty if there is."""
    room, limits = script.limits().room, script.limits()
    if limits.only_talks:
        return (
            f"the window of {limits.model} is too small: {limits.facts.window}. Under "
            f"{USABLE_TOKENS:,} tokens the assistant answers, and does nothing else: no summaries, "
            "no notes, no tools. Give the model's server a larger window, 8,192 tokens or more."
        )
    if not room.is_too_small:
        return ""
    source, remedy = limits.source
    left = max(0, room.limit - room.fixed - room.reserved)
    return (
        f"there is hardly room to talk: of {room.limit:,} tokens rules, tools and ledger take "
        f"{room.fixed:,}, reply, memories and the present {room.reserved:,}, which leaves {left:,} "
        f"({source} sets the limit). {remedy}, or switch tools off by `tool_levels`."
    )


# From this generation on, detail may have faded.
FADING_GENERATION = 3


@dataclass(frozen=True)
class Done:
    """It was made; the record says what."""

    record: CompactionRecord


@dataclass(frozen=True)
class Skipped:
    """There was nothing to do."""

    reason: str


@dataclass(frozen=True)
class Failed:
    """Nothing was changed."""

    detail: str


Outcome = Done | Skipped | Failed


def as_result(outcome: Outcome) -> dict[str, Any]:
    """The dict that `compact_conversation_history` fires with."""
    if isinstance(outcome, Skipped):
        return {"success": True, "skipped": True, "reason": outcome.reason}
    if isinstance(outcome, Failed):
        error = {"error": "summary generation failed", "detail": outcome.detail}
        return {"success": False, "skipped": False, **error}
    report = outcome.record.report
    return {
        "success": True,
        "skipped": False,
        "compaction_id": outcome.record.id,
        "summary_id": report.summary_id,
        "reduction_pct": report.reduction_pct,
        "token_usage": {
            "prompt_tokens": report.prompt_tokens,
            "completion_tokens": report.completion_tokens,
        },
        **asdict(report),
    }


def announce(script: Assistant, record: CompactionRecord) -> Done:
    """Announce a compaction that is committed; it stands, whatever fails here.

    The log gets the report without the names by which what left is found again.
    """
    name = str((script.obj or script).key)
    logged = replace(record, report=replace(record.report, query=""))
    acts: list[Callable[[], None]] = [
        lambda: script.audit("compaction", trigger=record.trigger, **as_result(Done(record))),
        lambda: script.log(report_line(name, logged)),
        lambda: script.pose("compact"),
    ]
    for act in acts:
        script.survived("announcing a compaction", act, None)
    return Done(record)


def report_line(name: str, record: CompactionRecord) -> str:
    """One line: how much, from what to what, how well, and where the raw words are."""
    report = record.report
    tokens = f"{report.original_tokens:,} to {report.new_tokens:,} tokens"
    if count := report.masked_messages:
        outputs = "old tool output" if count == 1 else "old tool outputs"
        return (
            f"{name} masked {count} {outputs} ({record.trigger}): {tokens}. Nothing was summarised."
        )
    quality = f"{tokens}, level {report.level}, {report.coverage:.0%} of names, numbers and quotes"
    raw = f"Raw words: aihistory/expand {name} = {report.summary_id}"
    between = ""
    if report.left_from:
        start, end = (at[:16].replace("T", " ") for at in (report.left_from, report.left_until))
        between = f" of {start} to {end} UTC"
    parts = [
        f"{name} compacted {report.compacted_messages} messages{between} ({record.trigger}): "
        f"{quality} kept in summary, journal or ledger.",
        f"{raw}; by their words: aihistory/search {name} = {report.query or '<words>'}.",
    ]
    if report.unsupported:
        parts.append(f"Names, numbers or quotes that nobody said: {report.unsupported}.")
    if report.generation >= FADING_GENERATION:
        parts.append(
            f"This is generation {report.generation}: detail may have faded; "
            "the raw words are in the archive."
        )
    return " ".join(parts)


# Masks are enough if they bring usage this far under the trigger.
HEADROOM = 0.9
# The first wait after a try in vain, in seconds; each further one is four times as long.
WAIT_S, MOST_WAIT_S = 60.0, 3600.0
# Staff are told once so many have failed in a row.
TELL_AFTER = 3


def compact_conversation_history(
    script: Assistant, character: Character, force: bool = False, instructions: str | None = None
) -> "Deferred[dict[str, Any]]":
    """Fold the older part of the history into summaries.

    It runs under the turn lock of the caller, or takes it if it is free.

    Args:
        script: The assistant's script.
        character: Its body.
        force: Skip the threshold; never `compact_enabled` nor the preserve window.
        instructions: Additional instructions for the summary.

    Returns:
        A Deferred that fires with a dict: `success`, `skipped` and `reason`, or `error`, or the
        figures of what was done. Nothing is raised for a failing model.
    """
    trigger = MANUAL if force else SLEEP
    job = Compaction(script, trigger, instructions=instructions)
    return script.runtime.lock.run_here(job.run).addCallback(as_result)


@dataclass
class Compaction:
    """One compaction of an assistant's history."""

    script: Assistant
    trigger: str  # what fired, as `plan.MANUAL`
    instructions: str | None = None  # additional instructions for the summary
    noted: bool = False  # whether the models that summarise note facts, too
    facts: int = 0  # journal entries made of these notes
    is_awaited: bool = True  # whether what holds the turn lock waits for it

    @cached_property
    def plan(self) -> Plan:
        """What to do, as of when it was first asked for."""
        return make_plan(self.script, self.trigger)

    @inlineCallbacks
    def extract(self, stops: Callable[[], bool] = lambda: False) -> Steps[Skipped | dict[str, Any]]:
        """The extraction before a compaction, if one follows that calls a model; with its report.

        What it notes is written at once. It ends early once `stops` returns true; the next one goes
        on there.
        """
        script, plan = self.script, self.plan
        if plan.empty or not script.config.compact_enabled or script.over_spend():
            return Skipped("no compaction will follow that calls a model")
        if self._masked_history() is not None:
            return Skipped("masking old tool outputs makes enough room")
        leaving = [m for m in plan.leaving if m.audience not in plan.unsummarised]
        report: dict[str, Any] = yield extract(script, leaving, self.trigger, stops=stops)
        return report

    @inlineCallbacks
    def extract_and_run(self) -> Steps[Outcome]:
        """The extraction and the compaction, for those who wait for both."""
        yield self.extract()
        yield self.script.breathe()
        outcome: Outcome = yield self.run()
        return outcome

    def _takes_notes(self) -> bool:
        """Whether notes can be asked for in the same reply as a summary.

        Not of a base model, nor of the offline one; nor where somebody wrote what the summariser is
        to do: there the next night takes notes.
        """
        config = self.script.config
        if not self.noted or self.instructions or config.compact_prompt:
            return False
        if config.llm_api != "chat" or not config.pre_compact_extraction_enabled:
            return False
        return (config.compact_model or self.script.model_name) != OFFLINE_MODEL

    @inlineCallbacks
    def run(self) -> Steps[Outcome]:
        """Fires with the outcome; nothing is raised for a failing model."""
        script = self.script
        try:
            outcome: Outcome | None = yield self._locked(self._begin)
            if outcome is None:
                yield script.breathe()
                outcome = yield self._summarise()
        except CancelledError:
            raise  # somebody stopped it: that says nothing about its use
        except Exception:
            if self.trigger != MANUAL:
                wait_longer(script)
            raise
        if isinstance(outcome, Skipped):
            return outcome
        # In vain, too, is one after which what fired it would fire again at once.
        is_in_vain = isinstance(outcome, Failed) or not why_not(script, self.trigger)
        if self.trigger != MANUAL and is_in_vain:
            wait_longer(script)
        elif isinstance(outcome, Done):
            script.runtime.compaction_waits = 0, 0.0
        return outcome

    def _locked(self, function: Callable[[], Any]) -> "Deferred[Any]":
        """Run something short that no turn may come between."""
        if self.is_awaited:
            return self.script.runtime.lock.run_here(function)
        return self.script.between_turns(function)

    def _begin(self) -> Outcome | None:
        """The outcome if there is nothing to summarise; masks are committed."""
        self.script.runtime.lock.holder()
        if reason := why_not(self.script, self.trigger):
            return Skipped(reason)
        self.script.runtime.compaction_requested = False
        plan = self.plan
        if plan.empty:
            return Skipped("history within preserve window")
        if (masks := self._masked_history()) is None:
            return None
        history, ids = masks
        report = Report(
            level="masked",
            masked_messages=len(ids),
            preserved_messages=len(history),
        )
        record = self._record(report, masked=tuple(ids))
        return announce(self.script, commit(self.script, history, (), record))

    def _masked_history(self) -> tuple[list[Message], list[str]] | None:
        """The history with old tool outputs masked, and their ids; None if that is not enough.

        Masks are no relief if there are too many messages, or somebody wants a summary.
        """
        script, plan = self.script, self.plan
        if self.trigger in (COUNT, MANUAL):
            return None
        at, leaving = utc_iso(script.now()), {message.id for message in plan.leaving}
        live = script.history.messages()
        ids = {m.id for m in live if m.id in leaving and is_maskable(m)}
        history = [masked(m, at, script.count) if m.id in ids else m for m in live]
        usage = script.usage(widest_view_tokens(history))
        if not ids or usage >= threshold(script, self.trigger) * HEADROOM:
            return None
        return history, sorted(ids)

    def _record(self, report: Report, **fields: Any) -> CompactionRecord:
        at = utc_iso(self.script.now())
        return CompactionRecord(
            id=new_id("c"), at=at, trigger=self.trigger, report=report, **fields
        )

    @inlineCallbacks
    def _summarise(self) -> Steps[Outcome]:
        """Summaries first, then the commit."""
        script, plan = self.script, self.plan
        cap, folds = summary_cap(script, plan), list[Fold]()
        noted = self._takes_notes()
        try:
            yield script.breathe()
            for scope in plan.scopes:
                fold = Fold(script, scope, plan.part(scope), cap, self.trigger)
                fold.instructions, fold.noted = self.instructions, noted
                if scope in plan.unsummarised:
                    fold.archive()
                else:
                    yield fold.fold()
                    yield script.breathe()
                folds.append(fold)
            for _ in script.history.drop_drafts():
                yield script.breathe()
            for fold in folds:
                yield fold.draft()
            if not script.config.compact_enabled:  # switched off while the model was writing
                return Skipped("compaction disabled")
            outcome: Outcome = yield self._locked(partial(self._commit, plan, folds))
            return outcome
        except ModelError as error:
            script.log_error("compaction", error)
            return Failed(str(error))

    def _commit(self, plan: Plan, folds: Sequence[Fold]) -> Outcome:
        """Carry the plan out. The history may have grown meanwhile; it is read again."""
        script, live = self.script, self.script.history.messages()
        script.runtime.lock.holder()
        if overtaken := _overtaken(script, plan, folds):
            return Failed(overtaken)
        gone = {message.id for message in plan.leaving}
        staying = [message for message in live if message.id not in gone]
        records = [record for fold in folds for record in fold.records.values()]
        recent = [record.id for record in records if record.tier == "recent"]
        summaries = [summary for fold in folds for summary in fold.summaries]
        report = Report(
            compacted_messages=len(plan.leaving),
            left_from=plan.leaving[0].created_at,
            left_until=plan.leaving[-1].created_at,
            preserved_messages=len(plan.staying),
            summary_ids=tuple(recent or [records[0].id]),
            level=max((s.level for s in summaries), key=LEVELS.index, default=LEVELS[0]),
            coverage=round(min(fold.coverage for fold in folds), 3),
            unsupported=sum(summary.unsupported for summary in summaries),
            generation=max(fold.generation for fold in folds),
            query=next((fold.query for fold in folds if fold.scope == PUBLIC), ""),
            prompt_tokens=sum(s.prompt_tokens for s in summaries),
            completion_tokens=sum(s.completion_tokens for s in summaries),
        )
        record = commit(script, staying, folds, self._record(report))
        self.facts = sum(len(fold.notes) for fold in folds)
        return announce(script, record)


def due(script: Assistant, *triggers: str) -> Compaction | None:
    """The compaction of the first of these triggers that fires, if it has something to do."""
    job = Compaction(script, firing(script, *triggers))
    return job if job.trigger and not job.plan.empty else None


def longer(waits: tuple[int, float], now: float) -> tuple[int, float]:
    """Tries in vain and when the next one may be made, after one more in vain."""
    return waits[0] + 1, now + min(MOST_WAIT_S, WAIT_S * 4 ** waits[0])


def wait_longer(script: Assistant) -> None:
    """Let automatic compactions wait after one that failed, longer each time."""
    now = script.now()
    tries, until = script.runtime.compaction_waits = longer(script.runtime.compaction_waits, now)
    if tries == TELL_AFTER:
        script.alert(
            f"{tries} compactions in a row failed or made too little room; the next one is tried "
            f"in {(until - now) / 60:.0f} minutes. See `aistatus`."
        )


def summary_cap(script: Assistant, plan: Plan) -> int:
    """Most tokens of each summary, so that all that one reader sees share their part of the room.

    A reader sees two tiers of each scope.
    """
    markers = (message for message in script.history.messages() if message.is_summary)
    scopes = {PUBLIC, *plan.summarised, *(marker.audience for marker in markers)}
    kept = widest_view_tokens(plan.staying)
    most = script.limits().room.summary_cap(kept, 2 * widest_of(dict.fromkeys(scopes, 1)))
    return min(script.limits().caps.summary, most)


def _overtaken(script: Assistant, plan: Plan, folds: Sequence[Fold]) -> str:
    """Why a plan no longer fits the history; empty if it does.

    A mask or a new token count of a message is no change.
    """
    known = {message.id: message for message in script.history.messages()}
    if any(script.history.summary(r.id) != r for fold in folds for r in fold.former):
        return "a summary that was to be merged was changed meanwhile; try again"
    for message in plan.leaving:
        now = known.get(message.id)
        if now is None:
            return "what was to leave has left meanwhile, by another compaction or a rollback"
        if now != message and (
            now.audience != message.audience
            or rendered(unmasked(now)) != rendered(unmasked(message))
        ):
            return "a message that was to leave was changed meanwhile; try again"
    return ""
