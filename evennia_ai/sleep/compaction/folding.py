"""Folding: the summaries of one scope's part of a compaction, tier by tier, and their commit.

A new recent summary is made from raw messages, and the former ones go into the long-term summary.
Recent summaries hang in a tree of fan-in 8 (`plan.due_groups`); the long-term summary is
made from the topmost nodes, never from its own former text.

What is large is written before the commit, as drafts, which nothing reads. The commit stores
everything together, or nothing. Each step has a name. A crash or an exception between any two
leaves everything as it was, in the database and in Evennia's caches.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from twisted.internet.defer import inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.history.archive import (
    EMPTIED,
    LONG,
    SEGMENT_MESSAGES,
    UNSUMMARISED,
    CompactionRecord,
    Segment,
    SummaryRecord,
    resting_on,
)
from evennia_ai.history.audience import visible
from evennia_ai.history.frames import SYNTHESIS_TITLE, one_line
from evennia_ai.history.messages import (
    MEMORIES,
    Message,
    new_id,
    said_and_done,
    tool_calls,
    total_tokens,
    utc_iso,
)
from evennia_ai.language.words import words
from evennia_ai.llm_interaction.facts import Covered, covered, source_facts
from evennia_ai.llm_interaction.summary import (
    LEVELS,
    NOTHING_SAID,
    Summary,
    summarise,
    summarise_lines,
)
from evennia_ai.llm_interaction.tool_calls import spoken_text
from evennia_ai.protocol import Assistant
from evennia_ai.rag_memory.entities import observe
from evennia_ai.rag_memory.journal import SYNTHESIS, JournalEntry, score_importance, synthesis_id
from evennia_ai.rag_memory.provenance import statement_of, supporting
from evennia_ai.sleep.compaction.plan import due_groups, roots

# The two tools that note something, and the argument in which they name lines.
ENTRY, OBSERVATION, LINES = "add_journal_entry", "update_entity_observation", "lines"


@dataclass(frozen=True)
class Note:
    """One thing to keep: a journal entry, or what was learned of somebody or something."""

    tool: str
    fields: Mapping[str, Any]  # the arguments of the tool, checked
    scope: str  # who may know it
    sources: tuple[str, ...] = ()  # ids of the messages it rests on
    at: str = ""  # when it was said, UTC ISO 8601; empty if no message bears it out
    told_by: str = ""  # name of the only person who said it, of somebody else

    @property
    def text(self) -> str:
        """What it says."""
        return str(self.fields["content" if self.tool == ENTRY else "observation"])


@inlineCallbacks
def grounded(
    script: Assistant,
    note: Note,
    lines: Iterable[int],
    owners: Mapping[int, Message],
    others: Iterable[Note],
) -> Steps[Note | str]:
    """Fires with a note and what it rests on, or with why it is not kept.

    Args:
        script: The assistant's script.
        note: The note, of one scope.
        lines: The numbers of the lines that it cites.
        owners: The messages of that scope by their numbers.
        others: Notes that were taken before.
    """
    cited = [owners[number] for number in lines if number in owners]
    at = max((message.created_at for message in cited), default="")
    if not cited:  # it named no lines: those that share most of its words, the best first
        cited = yield script.mind.work(_bearing_out, note.text, [*owners.values()])
        at = cited[0].created_at if cited else ""
    if _is_recalled(cited):
        return "That repeats a memory; nobody said it now."
    if _is_known(script, note, others):
        return "That is in your journal already."
    said = [message for message in cited if message.role == "user"]
    tellers = {m.speaker_name for m in said if m.speaker_name}
    is_other = all(m.speaker_name != note.fields.get("entity") for m in said)
    return replace(
        note,
        sources=tuple(dict.fromkeys(message.id for message in cited)),
        at=at,
        told_by=tellers.pop() if len(tellers) == 1 and is_other else "",
    )


def _is_known(script: Assistant, note: Note, others: Iterable[Note]) -> bool:
    """Whether the journal, or another note, says the same in these words, or goes on so."""
    texts = [n.text for n in others if n.tool == note.tool and visible(n.scope, note.scope)]
    if note.tool == ENTRY:
        entries = script.journal.recent(JOURNAL_ENTRIES)
        texts += [
            e.content for e in entries if visible(e.audience, note.scope) and e.may_consolidate
        ]
    told = words(note.text)
    return bool(told) and any(words(text)[: len(told)] == told for text in texts)


def _bearing_out(text: str, lines: Sequence[Message]) -> list[Message]:
    """What bears a note out: statements of people, else what was said from memory; best first."""
    said = {m.id: m for m in lines if m.role == "user" and statement_of(m).content}
    own = {m.id: m for m in lines if m.role == "assistant" and m.metadata.get(MEMORIES)}
    best = supporting(text, [statement_of(m) for m in said.values()]) or supporting(
        text, own.values()
    )
    return [(said | own)[key] for key in best]


def _is_recalled(cited: Sequence[Message]) -> bool:
    """Whether a note rests on what the assistant said from memory, and on questions, alone."""
    own = [message for message in cited if message.role == "assistant"]
    asked = [message for message in cited if message.role == "user"]
    return (
        bool(own)
        and all(message.metadata.get(MEMORIES) for message in own)
        and not any(statement_of(message).content for message in asked)
    )


def write_notes(script: Assistant, notes: Sequence[Note]) -> list[str]:
    """Write notes; returns the ids by which a rollback finds them.

    These are an id that all that is written has among its sources, and those of the entries.
    """
    if not notes:
        return []
    extraction_id, now = new_id("x"), script.now()
    entries, entities = list[JournalEntry](), script.entities
    for note in notes:
        sources = (*note.sources, extraction_id)
        if note.tool == ENTRY:
            importance = note.fields.get("importance") or score_importance(note.text)
            about = note.fields.get("about")
            entry = script.journal.new(
                note.text,
                importance=importance,
                entities=(about,) if about else (),
                audience=note.scope,
                source_message_ids=sources,
            )
            entries.append(entry)
            continue
        fact = dict(note.fields)
        name, text = str(fact.pop("entity")), str(fact.pop("observation"))
        here = script.game.identify(name)
        profile = entities.met(here, name, now, sources, note.scope)
        fact["told_by"] = note.told_by if profile.kind == "person" else ""
        at = note.at or now
        entities.put({profile.id: observe(profile, text, at, sources, note.scope, **fact)})
    script.journal.put(*entries)
    return [extraction_id, *(entry.id for entry in entries)]


SYNTHESIS_IMPORTANCE = 7
NO_SUMMARY = "A few lines, archived without a summary."
# Newest journal entries in which a thing may be kept besides the summary.
JOURNAL_ENTRIES = 200
# A record names so many of the things a model's text left out.
LOST_NAMED = 200


@dataclass
class Fold:
    """One scope's part of a compaction, of which nothing is stored yet."""

    script: Assistant
    scope: str
    leaving: tuple[Message, ...]  # raw messages, oldest first
    cap: int = 0  # most tokens of one of its summaries
    trigger: str = ""  # what fired, as `plan.MANUAL`
    instructions: str | None = None  # additional instructions for the summary
    noted: bool = False  # whether the model that summarises the messages notes facts, too
    notes: list[Note] = field(default_factory=list)  # what it noted
    without: tuple[str, ...] = ()  # messages that leave and are not used
    former: list[SummaryRecord] = field(default_factory=list)  # the summaries before it
    # The summary records to write, by id.
    records: dict[str, SummaryRecord] = field(default_factory=dict)
    entries: list[JournalEntry] = field(default_factory=list)  # the journal entries to write
    summaries: list[Summary] = field(default_factory=list)  # all that models made, for the figures
    coverage: float = 1.0  # share of names, numbers and quotes that is kept of what leaves
    generation: int = 1  # how many times this scope's history was folded, this time included
    query: str = ""  # names in what left, by which it can be found again

    @inlineCallbacks
    def fold(self) -> Steps[None]:
        """Make the summaries; fails with `ModelError` when no level gave one."""
        self.former = [
            record
            for record in self.script.history.summaries()
            if record.audience == self.scope and not record.rolled_back
            if record.tier != UNSUMMARISED
        ]
        self.generation = 1 + sum(record.tier == "recent" for record in self.former)
        summary, text = yield self.recent()
        record = self._record(summary, text, "recent")
        self.entries.append(self._synthesis(record))
        yield self._cascade()

    def archive(self) -> None:
        """Too few lines for a summary: they are archived, and search finds them.

        The only record is one that no marker shows.
        """
        nothing = Summary("", "", LEVELS[0])
        self._record(nothing, Covered(NO_SUMMARY), UNSUMMARISED)

    @inlineCallbacks
    def recent(self) -> Steps[tuple[Summary, Covered]]:
        """Fires with the summary of the messages, and its text with what it must not lose."""
        script = self.script
        told = script.memory.quarantine.messages(self.leaving)
        used = {message.id for message in told}
        self.without = tuple(m.id for m in self.leaving if m.id not in used)
        summary: Summary = yield summarise(
            script, told, self.instructions, self.cap, self.noted, self.trigger
        )
        owners = dict(enumerate(said_and_done(told, script.tools.traits), 1))
        for each in summary.notes:
            note = Note(ENTRY, {"content": each.text, "about": each.about}, self.scope)
            kept = yield grounded(script, note, each.lines, owners, self.notes)
            if isinstance(kept, Note):
                self.notes.append(kept)
        text = yield self._covered(told, summary.text)
        self.summaries.append(summary)
        self.coverage, self.query = text.share, " ".join(text.named)
        return summary, text

    @inlineCallbacks
    def merged(self, children: Sequence[SummaryRecord]) -> Steps[tuple[Summary, Covered]]:
        """Fires with summaries as one: their texts as they are if they fit, else a model's."""
        children = [record for record in children if record.text != NOTHING_SAID]
        if not children:
            return Summary(NOTHING_SAID, "", LEVELS[0]), Covered(NOTHING_SAID)
        texts = [f"[{r.created_at[:16].replace('T', ' ')}] {r.text}" for r in children]
        whole = "\n".join(texts)
        if self.script.count(whole) <= self.cap:
            # As good as the worst of them.
            levels = [LEVELS[0], *(r.level for r in children if r.level in LEVELS)]
            share = min((r.coverage for r in children if r.coverage is not None), default=1.0)
            return Summary(whole, "", max(levels, key=LEVELS.index)), Covered(whole, share)
        summary: Summary = yield summarise_lines(
            self.script, texts, cap=self.cap, trigger=self.trigger
        )
        self.summaries.append(summary)
        source = "\n".join(r.text for r in children)  # the times in front are no facts
        text = yield self._covered(source, summary.text)
        return summary, text

    @inlineCallbacks
    def _covered(self, source: Sequence[Message] | str, text: str) -> Steps[Covered]:
        """Fires with a summary's text and what it must not lose of messages or summaries' texts."""
        script, own = self.script, self.script.obj.key.lower()
        names = [name for name in script.entities.everybody() if name.lower() != own]
        elsewhere = [note.text for note in script.seen(self.scope).pinned()]
        # Entries that repeat a summary do not count: with them a merge of summaries could drop all.
        elsewhere += [
            entry.content
            for entry in script.journal.recent(JOURNAL_ENTRIES)
            if visible(entry.audience, self.scope) and not entry.withdrawn
            if entry.source_type != SYNTHESIS
        ]
        if not isinstance(source, str):
            elsewhere += [note.text for note in self.notes]
            said = [m for m in said_and_done(source, script.tools.traits) if m.role != "tool"]
            names += dict.fromkeys(one_line(m.speaker_name) for m in said)
            rows = [f"{one_line(m.speaker_name)}: {m.content}" for m in said]
            rows += [
                spoken_text(call.get("function") or {}) for m in said for call in tool_calls(m)
            ]
            source = "\n".join(rows)
        wanted = yield script.mind.work(source_facts, source, names)
        wanted = [fact for fact in wanted if fact.text.lower() != own]
        result: Covered = yield script.mind.work(
            covered, wanted, text, elsewhere, self.cap, script.count
        )
        return result

    @inlineCallbacks
    def _cascade(self) -> Steps[None]:
        """Merge the former recent summaries into the long-term one."""
        older = [r for r in self.former if r.tier in ("recent", "node")]
        if not older:
            return
        while groups := due_groups(older):
            for group in groups:
                older.append((yield self._merge(group, "node", group[0].tree_level + 1)))
        yield self._merge(roots(older), LONG)

    @inlineCallbacks
    def _merge(
        self, children: Sequence[SummaryRecord], tier: str, level: int = 0
    ) -> Steps[SummaryRecord]:
        """A summary of summaries."""
        summary, text = yield self.merged(children)
        return self._record(summary, text, tier, children, level)

    def _record(
        self,
        summary: Summary,
        text: Covered,
        tier: str,
        children: Sequence[SummaryRecord] = (),
        tree_level: int = 0,
    ) -> SummaryRecord:
        """The record of a summary of what leaves, or of its children, to be written."""
        record = SummaryRecord(
            id=new_id("s"),
            tier=tier,
            created_at=utc_iso(self.script.now()),
            audience=self.scope,
            text=text.text,
            source_ids=() if children else tuple(m.id for m in self.leaving),
            without=() if children else self.without,
            child_ids=tuple(child.id for child in children),
            segments={} if children else {key: len(part) for key, part in self.parts.items()},
            level=summary.level,
            generation=self.generation,
            tree_level=tree_level,
            coverage=round(text.share, 4),
            unsupported=summary.unsupported,
            extra={
                "model": summary.model,
                "prompt_tokens": summary.prompt_tokens,
                "rejected": list(summary.rejected),
                "lost": list(text.lost[:LOST_NAMED]),
                "original_tokens": total_tokens(self.leaving),
                "tools_used": sorted({m.name for m in self.leaving if m.role == "tool" and m.name}),
            },
        )
        self.records[record.id] = record
        return record

    def _synthesis(self, record: SummaryRecord) -> JournalEntry:
        """The journal entry that repeats a summary."""
        return JournalEntry(
            synthesis_id(record.id),
            utc_iso(self.script.now()),
            f"{SYNTHESIS_TITLE} {record.text}",
            SYNTHESIS_IMPORTANCE,
            SYNTHESIS,
            tags=("compaction", "synthesis"),
            source_message_ids=record.rests_on,
            audience=self.scope,
        )

    @inlineCallbacks
    def draft(self) -> Steps[None]:
        """Write segments and summaries, each in a turn of the reactor, as drafts."""
        script = self.script
        for record in self.records.values():
            for key in record.segments:
                segment = yield script.mind.work(Segment.sealed, key, record.id, self.parts[key])
                script.at_commit_step("segment")
                script.history.draft(segment)
                yield script.breathe()
            script.at_commit_step("summary")
            script.history.draft(record)
            yield script.breathe()

    @cached_property
    def parts(self) -> dict[str, tuple[Message, ...]]:
        """What leaves, by the ids of the segments to make of it."""
        starts = range(0, len(self.leaving), SEGMENT_MESSAGES)
        return {new_id("g"): self.leaving[start : start + SEGMENT_MESSAGES] for start in starts}


def commit(
    script: Assistant,
    messages: Sequence[Message],
    folds: Sequence[Fold],
    record: CompactionRecord,
) -> CompactionRecord:
    """Store what a compaction made in one transaction, calling `at_commit_step` before each step.

    `messages` are the new live talk. Returns the record with what a rollback needs; raises what
    a step raised, with nothing changed.
    """
    history, step = script.history, script.at_commit_step
    summaries = tuple(summary_id for fold in folds for summary_id in fold.records)
    report = replace(record.report, original_tokens=history.tokens())
    with history.store.transaction():
        step("archive")
        history.keep_drafts([key for fold in folds for key in fold.parts], summaries)
        step("history")
        history.replace_talk(messages)
        report = replace(report, new_tokens=history.tokens())
        step("notes")
        notes = [note for fold in folds for note in fold.notes]
        entries = [*script.state.extracted, *write_notes(script, notes)]
        step("journal")
        syntheses = [entry for fold in folds for entry in fold.entries]
        script.journal.put(*syntheses)
        entries += [entry.id for entry in syntheses]
        step("record")
        record = replace(record, summaries=summaries, entries=tuple(entries), report=report)
        history.save_compaction(record)
        script.state.extracted = script.state.looked_through = []
        # Under a hold, only a manual compaction or an overflow gets here.
        script.state.hold = False
        step("last_compaction")
        history.note_last_compaction()
        empty_unused(script)  # what was taken back while a model was writing
        step("done")
    return record


def empty_summaries(script: Assistant, records: Collection[SummaryRecord]) -> None:
    """Empty summaries, wherever they are shown; they are made again in a lull (`remake`)."""
    history = script.history
    with history.store.transaction():
        for record in records:
            extra = {**record.extra, "lost": [], "rejected": []}
            history.save_summary(replace(record, text=EMPTIED, extra=extra))
        history.replace_talk(history.messages())
        ids = [record.id for record in records]
        script.state.stale = list(dict.fromkeys((*script.state.stale, *ids)))


def empty_unused(script: Assistant) -> None:
    """Empty the summaries that were made from lines that are taken back."""
    if not (lines := script.memory.quarantine.lines):
        return
    records = {r.id: r for r in script.history.summaries() if not r.rolled_back}
    made_with = [key for key, record in records.items() if not lines.isdisjoint(record.rests_on)]
    below = {key: record.child_ids for key, record in records.items()}
    made = (records[each] for each in resting_on(made_with, below))
    if full := [r for r in made if r.tier != UNSUMMARISED and r.text != EMPTIED]:
        empty_summaries(script, full)
