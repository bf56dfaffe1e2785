"""One compaction: fold the older part of a history into summaries without losing a message.

The order: is it allowed and due, the plan, masking if that is enough, summaries scope by scope, one
commit, what follows from it. `sleep.compaction.rules` says when one is due.

A new recent summary is made from raw messages, and the former ones go into the long-term summary.
Recent summaries hang in a tree of fan-in 8 (`plan.due_groups`); the long-term summary is made from
the topmost nodes, never from its own former text.

What is large is written before the commit, as drafts, which nothing reads. The commit stores
everything together, or nothing. Each step has a name. A crash or an exception between any two
leaves everything as it was, in the database and in Evennia's caches.

Awake, the reply that is a scope's summary holds its notes, too. Asleep, and where somebody waits
(`compact_background` off), an extraction comes before it (`extract`).
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import ModelError
from evennia_ai.history.archive import (
    EMPTIED,
    LONG,
    SEGMENT_MESSAGES,
    UNSUMMARISED,
    CompactionRecord,
    Report,
    Segment,
    SummaryRecord,
    resting_on,
)
from evennia_ai.history.audience import PUBLIC, Views, visible
from evennia_ai.history.live import HistoryHandler
from evennia_ai.history.messages import (
    SYNTHESIS_TITLE,
    Message,
    is_maskable,
    masked,
    new_id,
    one_line,
    rendered,
    said_and_done,
    tool_calls,
    total_tokens,
    unmasked,
    utc_iso,
    widest_view_tokens,
)
from evennia_ai.llm_interaction.budget import Limits
from evennia_ai.llm_interaction.facts import Covered, covered, source_facts
from evennia_ai.llm_interaction.summary import (
    LEVELS,
    NOTHING_SAID,
    Summariser,
    Summary,
)
from evennia_ai.llm_interaction.tool_calls import spoken_text
from evennia_ai.llm_interaction.values import OFFLINE_MODEL
from evennia_ai.rag_memory.entity_store import Character
from evennia_ai.rag_memory.journal import SYNTHESIS, JournalEntry, synthesis_id
from evennia_ai.sleep.compaction.extraction import (
    EMERGENCY_MAX_ITERATIONS,
    ENTRY,
    JOURNAL_ENTRIES,
    Extraction,
    Note,
    grounded,
    write_notes,
)
from evennia_ai.sleep.compaction.plan import (
    BACKGROUND,
    COUNT,
    EMERGENCY,
    FEW_LINES,
    MANUAL,
    REQUEST,
    SLEEP,
    Plan,
    due_groups,
    plan_compaction,
    roots,
)
from evennia_ai.sleep.compaction.rules import firing, threshold, why_not
from evennia_ai.sleep.sleeper import Nightly, Sleeper

# Lines of scopes with too few for a summary are archived once they are so old.
FEW_STAY = timedelta(weeks=4)
# A time (ISO 8601) before which everything is old.
ALL = "9999"
# From this generation on, detail may have faded.
FADING_GENERATION = 3
# Masks are enough if they bring usage this far under the trigger.
HEADROOM = 0.9
# The first wait after a try in vain, in seconds; each further one is four times as long.
WAIT_S, MOST_WAIT_S = 60.0, 3600.0
# Staff are told once so many have failed in a row.
TELL_AFTER = 3
SYNTHESIS_IMPORTANCE = 7
NO_SUMMARY = "A few lines, archived without a summary."
# A record names so many of the things a model's text left out.
LOST_NAMED = 200


def due(script: Sleeper, *triggers: str) -> "Compaction | None":
    """The compaction of the first of these triggers that fires, if it has something to do."""
    job = Compaction(script, firing(script, *triggers))
    if job.trigger and job.plan.leaving:
        return job
    return None


def summary_cap(
    limits: Limits, live: Iterable[Message], staying: Sequence[Message], scopes: Collection[str]
) -> int:
    """Most tokens of each summary, so that all that one reader sees share their part of the room.

    A reader sees two tiers of each scope: of those that get a summary now, and of earlier ones.
    """
    markers = (message for message in live if message.is_summary)
    shown = {PUBLIC, *scopes, *(marker.audience for marker in markers)}
    tiers = 2 * Views(dict.fromkeys(shown, 1)).widest
    return min(limits.caps.summary, limits.room.summary_cap(widest_view_tokens(staying), tiers))


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


def report_line(name: str, record: CompactionRecord) -> str:
    """One line: how much, from what to what, how well, and where the raw words are."""
    report = record.report
    tokens = f"{report.original_tokens:,} to {report.new_tokens:,} tokens"
    if count := report.masked_messages:
        outputs = "old tool output" if count == 1 else "old tool outputs"
        return (
            f"{name} masked {count} {outputs} ({record.trigger}): {tokens}. Nothing was summarised."
        )
    between = ""
    if report.left_from:
        start, end = (at[:16].replace("T", " ") for at in (report.left_from, report.left_until))
        between = f" of {start} to {end} UTC"
    line = (
        f"{name} compacted {report.compacted_messages} messages{between} ({record.trigger}): "
        f"{tokens}, level {report.level}, {report.coverage:.0%} of names, numbers and quotes kept "
        f"in summary, journal or ledger. Raw words: aihistory/expand {name} = {report.summary_id}; "
        f"by their words: aihistory/search {name} = {report.query or '<words>'}."
    )
    if report.unsupported:
        line += f" Names, numbers or quotes that nobody said: {report.unsupported}."
    if report.generation >= FADING_GENERATION:
        line += (
            f" This is generation {report.generation}: detail may have faded; "
            "the raw words are in the archive."
        )
    return line


def compact_conversation_history(
    script: Sleeper, character: Character, force: bool = False, instructions: str | None = None
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
    """One compaction of an assistant's history; with what it made, of which nothing is stored."""

    script: Sleeper
    trigger: str  # what fired, as `plan.MANUAL`
    instructions: str | None = None  # additional instructions for the summary
    noted: bool = False  # whether the models that summarise note facts, too
    is_awaited: bool = True  # whether what holds the turn lock waits for it
    cap: int = 0  # most tokens of one of its summaries
    notes: list[Note] = field(default_factory=list)  # what models noted
    former: list[SummaryRecord] = field(default_factory=list)  # the summaries that it builds on
    records: list[SummaryRecord] = field(default_factory=list)  # those to write
    summaries: list[Summary] = field(default_factory=list)  # all that models made, for the figures
    # What leaves, by the ids of the segments to make of it.
    parts: dict[str, Sequence[Message]] = field(default_factory=dict)
    query: str = ""  # names in public talk that left, by which it can be found again

    @cached_property
    def plan(self) -> Plan:
        """What to do, as of when it was first asked for.

        In sleep and in the background a share of the limit is kept as well as the window. By count
        just those lines leave for which there is a window.
        """
        script, trigger = self.script, self.trigger
        config, history, room = script.config, script.history.messages(), script.limits().room
        if trigger == COUNT and config.immediate_window and config.recent_window:
            # One stays over, as more than the two windows hold fires.
            few = min(FEW_LINES, config.recent_window)
            window = config.immediate_window + 1
            return plan_compaction(history, window, room, archive_before=ALL, few_lines=few)
        keep = 0
        if trigger in (SLEEP, BACKGROUND, REQUEST):
            keep = int(script.compact_preserve_token_share * config.max_context_tokens)
        before = datetime.fromtimestamp(script.now(), UTC) - FEW_STAY
        window = config.compact_preserve_window
        return plan_compaction(history, window, room, keep, before.isoformat())

    @inlineCallbacks
    def extract(self, stops: Callable[[], bool] = lambda: False) -> Steps[Skipped | dict[str, Any]]:
        """The extraction before a compaction, if one follows that calls a model; with its report.

        What it notes is written at once. It ends early once `stops` returns true.
        """
        script, plan = self.script, self.plan
        if not plan.leaving or not script.config.compact_enabled or script.over_spend():
            return Skipped("no compaction will follow that calls a model")
        if self._masked_history() is not None:
            return Skipped("masking old tool outputs makes enough room")
        leaving = [m for m in plan.leaving if m.audience not in plan.unsummarised]
        most = script.config.pre_compact_max_iterations
        if self.trigger == EMERGENCY:
            most = EMERGENCY_MAX_ITERATIONS
        report: dict[str, Any] = yield Extraction(script, self.trigger, most, stops).run(leaving)
        return report

    @inlineCallbacks
    def extract_and_run(self) -> Steps[Outcome]:
        """The extraction and the compaction, for those who wait for both."""
        yield self.extract()
        yield self.script.breathe()
        outcome: Outcome = yield self.run()
        return outcome

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
        except ModelError as error:
            script.log_error("compaction", error)
            outcome = Failed(str(error))
        except Exception:
            self._wait_longer()
            raise
        # In vain, too, is one after which what fired it would fire again at once.
        is_vain = isinstance(outcome, Failed)
        if isinstance(outcome, Done) and self.trigger != MANUAL:
            is_vain = not why_not(script, self.trigger)
        if is_vain:
            self._wait_longer()
        elif isinstance(outcome, Done):
            script.runtime.summaries.waits = 0, 0.0
        return outcome

    def _wait_longer(self) -> None:
        """Let automatic compactions wait after one that failed, longer each time."""
        if self.trigger == MANUAL:
            return
        script, now = self.script, self.script.now()
        waits = longer(script.runtime.summaries.waits, now)
        script.runtime.summaries.waits = waits
        if waits[0] == TELL_AFTER:
            script.alert(
                f"{TELL_AFTER} compactions in a row failed or made too little room; the next one "
                f"is tried in {(waits[1] - now) / 60:.0f} minutes. See `aistatus`."
            )

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
        self.script.runtime.summaries.is_requested = False
        if not self.plan.leaving:
            return Skipped("history within preserve window")
        if (masks := self._masked_history()) is None:
            return None
        history, ids = masks
        report = Report(level="masked", masked_messages=len(ids), preserved_messages=len(history))
        return self._store(history, report, tuple(ids))

    def _masked_history(self) -> tuple[list[Message], list[str]] | None:
        """The history with old tool outputs masked, and their ids; None if that is not enough.

        Masks are no relief if there are too many messages, or somebody wants a summary.
        """
        script = self.script
        if self.trigger in (COUNT, MANUAL):
            return None
        ids = sorted(message.id for message in self.plan.leaving if is_maskable(message))
        at, history = utc_iso(script.now()), list[Message]()
        for message in script.history.messages():
            if message.id in ids and is_maskable(message):
                message = masked(message, at, script.count)
            history.append(message)
        usage = script.usage(widest_view_tokens(history))
        if not ids or usage >= threshold(script.config, self.trigger) * HEADROOM:
            return None
        return history, ids

    @inlineCallbacks
    def _summarise(self) -> Steps[Outcome]:
        """Summaries first, then the commit; fails with `ModelError` where no level gave one."""
        script, plan, config = self.script, self.plan, self.script.config
        history = script.history
        self.cap = summary_cap(script.limits(), history.messages(), plan.staying, plan.summarised)
        # A base model and the offline one give no notes beside a summary, nor does one that was
        # told otherwise: there the next night takes notes.
        self.noted = (
            self.noted
            and not (self.instructions or config.compact_prompt)
            and config.llm_api == "chat"
            and config.pre_compact_extraction_enabled
            and (config.compact_model or script.model_name) != OFFLINE_MODEL
        )
        yield script.breathe()
        for scope, part in plan.parts.items():
            if scope in plan.unsummarised:
                # Too few lines for a summary: search finds them, and no marker shows the record.
                nothing = Summary("", "", LEVELS[0])
                text = Covered(NO_SUMMARY)
                self.records.append(self._record(scope, nothing, text, UNSUMMARISED, part))
            else:
                yield self._fold(scope, part)
                yield script.breathe()
        for _ in history.drop_drafts():
            yield script.breathe()
        # What is large is written now, each in a turn of the reactor, as drafts.
        for record in self.records:
            for key in record.segments:
                segment = yield script.mind.work(
                    Segment.sealed, key, record.id, tuple(self.parts[key])
                )
                script.at_commit_step("segment")
                history.draft(segment)
                yield script.breathe()
            script.at_commit_step("summary")
            history.draft(record)
            yield script.breathe()
        if not script.config.compact_enabled:  # switched off while the model was writing
            return Skipped("compaction disabled")
        outcome: Outcome = yield self._locked(self._commit)
        return outcome

    @inlineCallbacks
    def _fold(self, scope: str, leaving: Sequence[Message]) -> Steps[None]:
        """Make the summaries of a scope; fails with `ModelError` when no level gave one."""
        former = self._earlier[scope]
        self.former += former
        self.records.append((yield self.recent(scope, leaving)))
        older = [record for record in former if record.tier != LONG]
        if not older:
            return
        while groups := due_groups(older):
            for group in groups:
                node = yield self.merged(scope, group, "node", group[0].tree_level + 1)
                older.append(node)
                self.records.append(node)
                yield self.script.breathe()
        self.records.append((yield self.merged(scope, roots(older), LONG)))

    @cached_property
    def _earlier(self) -> dict[str, list[SummaryRecord]]:
        """The summaries that were there before, by their scopes, oldest first."""
        earlier = defaultdict[str, list[SummaryRecord]](list)
        for record in self.script.history.summaries():
            if not record.rolled_back and record.tier != UNSUMMARISED:
                earlier[record.audience].append(record)
        return earlier

    @inlineCallbacks
    def recent(self, scope: str, messages: Sequence[Message]) -> Steps[SummaryRecord]:
        """Fires with the record of a summary of messages of a scope, oldest first."""
        script = self.script
        told = script.memory.quarantine.messages(messages)
        maker = Summariser(script, self.instructions, self.cap, self.noted, self.trigger)
        summary: Summary = yield maker.of_messages(told)
        self.summaries.append(summary)
        owners = dict(enumerate(said_and_done(told, script.tools.traits), 1))
        for each in summary.notes:
            note = Note(ENTRY, {"content": each.text, "about": each.about}, scope)
            note = yield grounded(
                script.mind.work, script.journal, note, each.lines, owners, self.notes
            )
            if isinstance(note, Note):
                self.notes.append(note)
        text: Covered = yield self._covered(scope, told, summary.text)
        if scope == PUBLIC:
            self.query = " ".join(text.named)
        used = {message.id for message in told}
        record = self._record(scope, summary, text, "recent", messages)
        return replace(record, without=tuple(m.id for m in messages if m.id not in used))

    @inlineCallbacks
    def merged(
        self, scope: str, children: Sequence[SummaryRecord], tier: str, tree_level: int = 0
    ) -> Steps[SummaryRecord]:
        """Fires with the record of a summary of summaries.

        It is their texts as they are if they fit, else a model's.
        """
        told = [record for record in children if record.text != NOTHING_SAID]
        texts = [f"[{r.created_at[:16].replace('T', ' ')}] {r.text}" for r in told]
        whole = "\n".join(texts) or NOTHING_SAID
        if self.script.count(whole) <= self.cap:
            # As good as the worst of them.
            levels = [LEVELS[0], *(r.level for r in told if r.level in LEVELS)]
            share = min((r.coverage for r in told if r.coverage is not None), default=1.0)
            summary = Summary(whole, "", max(levels, key=LEVELS.index))
            text = Covered(whole, share)
        else:
            maker = Summariser(self.script, cap=self.cap, trigger=self.trigger)
            summary = yield maker.of_lines(texts)
            self.summaries.append(summary)
            source = "\n".join(r.text for r in told)  # the times in front are no facts
            text = yield self._covered(scope, source, summary.text)
        record = self._record(scope, summary, text, tier)
        return replace(record, child_ids=tuple(r.id for r in children), tree_level=tree_level)

    @inlineCallbacks
    def _covered(self, scope: str, source: Sequence[Message] | str, text: str) -> Steps[Covered]:
        """Fires with a summary's text and what it must not lose of messages or summaries' texts."""
        script, own = self.script, self.script.obj.key.lower()
        names = [name for name in script.entities.everybody() if name.lower() != own]
        elsewhere = [note.text for note in script.seen(scope).pinned()]
        # Entries that repeat a summary do not count: with them a merge of summaries could drop all.
        elsewhere += [
            entry.content
            for entry in script.journal.recent(JOURNAL_ENTRIES)
            if visible(entry.audience, scope) and not entry.withdrawn
            if entry.source_type != SYNTHESIS
        ]
        if not isinstance(source, str):
            elsewhere += [note.text for note in self.notes if visible(note.scope, scope)]
            said = [m for m in said_and_done(source, script.tools.traits) if m.role != "tool"]
            names += dict.fromkeys(one_line(m.speaker_name) for m in said)
            rows = [f"{one_line(m.speaker_name)}: {m.content}" for m in said]
            rows += [spoken_text(call["function"]) for m in said for call in tool_calls(m)]
            source = "\n".join(rows)
        wanted = yield script.mind.work(source_facts, source, names)
        wanted = [fact for fact in wanted if fact.text.lower() != own]
        result: Covered = yield script.mind.work(
            covered, wanted, text, elsewhere, self.cap, script.count
        )
        return result

    def _record(
        self,
        scope: str,
        summary: Summary,
        text: Covered,
        tier: str,
        leaving: Sequence[Message] = (),
    ) -> SummaryRecord:
        """The record of a summary, of what leaves if it is one of messages."""
        starts = range(0, len(leaving), SEGMENT_MESSAGES)
        parts = {new_id("g"): leaving[start : start + SEGMENT_MESSAGES] for start in starts}
        self.parts |= parts
        generation = 1
        if tier != UNSUMMARISED:
            generation += sum(former.tier == "recent" for former in self._earlier[scope])
        return SummaryRecord(
            id=new_id("s"),
            tier=tier,
            created_at=utc_iso(self.script.now()),
            audience=scope,
            text=text.text,
            source_ids=tuple(message.id for message in leaving),
            segments={key: len(part) for key, part in parts.items()},
            level=summary.level,
            generation=generation,
            coverage=round(text.share, 4),
            unsupported=summary.unsupported,
            extra={
                "model": summary.model,
                "prompt_tokens": summary.prompt_tokens,
                "lost": list(text.lost[:LOST_NAMED]),
                "original_tokens": total_tokens(leaving),
                "tools_used": sorted({m.name for m in leaving if m.role == "tool" and m.name}),
            },
        )

    def _commit(self) -> Outcome:
        """Carry the plan out. The history may have grown meanwhile; it is read again."""
        script, leaving, history = self.script, self.plan.leaving, self.script.history
        script.runtime.lock.holder()
        if any(history.summary(record.id) != record for record in self.former):
            return Failed("a summary that was to be merged was changed meanwhile; try again")
        live = {message.id: message for message in history.messages()}
        if any(message.id not in live for message in leaving):
            return Failed(
                "what was to leave has left meanwhile, by another compaction or a rollback"
            )

        def told(message: Message) -> object:  # a mask or a new token count is no change
            return message.audience, rendered(unmasked(message))

        pairs = [(message, live.pop(message.id)) for message in leaving]
        if any(now != planned and told(now) != told(planned) for planned, now in pairs):
            return Failed("a message that was to leave was changed meanwhile; try again")
        recent = [record for record in self.records if record.tier == "recent"]
        report = Report(
            compacted_messages=len(leaving),
            left_from=leaving[0].created_at,
            left_until=leaving[-1].created_at,
            preserved_messages=len(self.plan.staying),
            summary_ids=tuple(record.id for record in recent or self.records[:1]),
            level=max((s.level for s in self.summaries), key=LEVELS.index, default=LEVELS[0]),
            coverage=round(min((r.coverage or 0.0 for r in recent), default=1.0), 3),
            unsupported=sum(summary.unsupported for summary in self.summaries),
            generation=max(record.generation for record in self.records),
            query=self.query,
            prompt_tokens=sum(summary.prompt_tokens for summary in self.summaries),
            completion_tokens=sum(summary.completion_tokens for summary in self.summaries),
        )
        return self._store([*live.values()], report)

    def _store(
        self, messages: Sequence[Message], report: Report, masked: tuple[str, ...] = ()
    ) -> Done:
        """Store everything in one transaction, calling `at_commit_step` before each step.

        `messages` are the new live talk. Raises what a step raised, with nothing changed.
        """
        script, history, step = self.script, self.script.history, self.script.at_commit_step
        state, before, records = script.state, history.tokens(), self.records
        ids = tuple(record.id for record in records)
        with history.store.transaction():
            step("archive")
            history.keep_drafts([key for record in records for key in record.segments], ids)
            step("history")
            history.replace_talk(messages)
            report = replace(report, original_tokens=before, new_tokens=history.tokens())
            step("notes")
            entries = [*state.extracted, *write_notes(script, self.notes)]
            step("journal")
            syntheses = [synthesis_of(record) for record in records if record.tier == "recent"]
            script.journal.put(*syntheses)
            entries += [entry.id for entry in syntheses]
            step("record")
            record = CompactionRecord(
                id=new_id("c"),
                at=utc_iso(script.now()),
                trigger=self.trigger,
                report=report,
                masked=masked,
                summaries=ids,
                entries=tuple(entries),
            )
            history.save_compaction(record)
            state.extracted = []
            # Under a hold, only a manual compaction or an overflow gets here.
            state.hold = False
            step("last_compaction")
            history.note_last_compaction()
            # What was taken back while a model was writing.
            empty_unused(history, state, script.memory.quarantine.lines)
            step("done")
        # It is committed, whatever fails now. The log gets the report without the names by which
        # what left is found again.
        logged = replace(record, report=replace(record.report, query=""))
        result, name = as_result(Done(record)), str((script.obj or script).key)
        for act in (
            partial(script.audit, "compaction", trigger=record.trigger, **result),
            lambda: script.log(report_line(name, logged)),
            lambda: script.pose("compact"),
        ):
            script.survived("announcing a compaction", act, None)
        return Done(record)


def longer(waits: tuple[int, float], now: float) -> tuple[int, float]:
    """Tries in vain and when the next one may be made, after one more in vain."""
    return waits[0] + 1, now + min(MOST_WAIT_S, WAIT_S * 4 ** waits[0])


def synthesis_of(record: SummaryRecord) -> JournalEntry:
    """The journal entry that repeats a summary."""
    return JournalEntry(
        synthesis_id(record.id),
        record.created_at,
        f"{SYNTHESIS_TITLE} {record.text}",
        SYNTHESIS_IMPORTANCE,
        SYNTHESIS,
        tags=("compaction", "synthesis"),
        source_message_ids=record.rests_on,
        audience=record.audience,
    )


def empty_summaries(
    history: HistoryHandler, state: Nightly, records: Collection[SummaryRecord]
) -> None:
    """Empty summaries, wherever they are shown; they are made again in a lull (`remake`)."""
    with history.store.transaction():
        for record in records:
            extra = {**record.extra, "lost": []}
            history.save_summary(replace(record, text=EMPTIED, extra=extra))
        history.replace_talk(history.messages())
        ids = [record.id for record in records]
        state.stale = list(dict.fromkeys((*state.stale, *ids)))


def empty_unused(history: HistoryHandler, state: Nightly, lines: Collection[str]) -> None:
    """Empty the summaries that were made from lines that are taken back."""
    if not lines:
        return
    records = {r.id: r for r in history.summaries() if not r.rolled_back}
    reached = resting_on(lines, {key: record.rests_on for key, record in records.items()})
    full = [
        record
        for key, record in records.items()
        if key in reached and record.tier != UNSUMMARISED and record.text != EMPTIED
    ]
    if full:
        empty_summaries(history, state, full)
