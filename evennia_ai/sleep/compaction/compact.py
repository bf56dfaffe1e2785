"""One compaction: fold the older part of a history into summaries without losing a message.

The order: is it allowed and due, the plan, masking if that is enough, summaries scope by scope, one
commit, what follows from it. Nothing is stored until all is there.

Awake, the reply that is a scope's summary holds its notes, too. Asleep, and where somebody waits
(`compact_background` off), an extraction comes before it (`extract`).
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
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
from evennia_ai.llm_interaction.summary import LEVELS
from evennia_ai.llm_interaction.values import OFFLINE_MODEL
from evennia_ai.protocol import Assistant, Character
from evennia_ai.sleep.compaction.due import (
    COUNT,
    MANUAL,
    SLEEP,
    firing,
    make_plan,
    threshold,
    usage_of,
    why_not,
)
from evennia_ai.sleep.compaction.extraction import extract
from evennia_ai.sleep.compaction.folding import Fold, commit
from evennia_ai.sleep.compaction.plan import Plan

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
    name, report = str((script.obj or script).key), record.report
    logged = replace(record, report=replace(report, query=""))
    acts: list[Callable[[], None]] = [
        lambda: script.audit("compaction", trigger=record.trigger, **as_result(Done(record))),
        lambda: script.tell_staff(report_line(name, record), report_line(name, logged)),
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
    trigger: str  # what fired (`due.TRIGGERS`)
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
        usage = usage_of(script, widest_view_tokens(history))
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
