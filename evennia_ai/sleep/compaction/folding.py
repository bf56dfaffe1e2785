"""Folding: the summaries of one scope's part of a compaction, tier by tier.

A new recent summary is made from raw messages, and the former ones go into the long-term summary.
Recent summaries hang in a tree of fan-in 8 (`sleep.compaction.cascade`); the long-term summary is
made from the topmost nodes, never from its own former text.
"""

import textwrap
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.history.archive import ARCHIVE, SUMMARIES
from evennia_ai.history.audience import visible
from evennia_ai.history.frames import SUMMARY_TITLE, SYNTHESIS_TITLE
from evennia_ai.history.items import items_of, source_items
from evennia_ai.history.messages import Message, new_id, total_tokens, utc_iso
from evennia_ai.history.pairs import said_and_done
from evennia_ai.history.records import (
    ABSORBED,
    LIVE,
    ROLLED_BACK,
    UNSUMMARISED,
    Segment,
    SummaryRecord,
)
from evennia_ai.llm_interaction.summary import LEVELS, Summary, summarise, summarise_lines
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.protocol import Assistant
from evennia_ai.rag_memory.journal_entry import SYNTHESIS, synthesis_id
from evennia_ai.sleep.compaction.cascade import Node, due_groups, topmost
from evennia_ai.sleep.compaction.coverage import Covered, covered

SYNTHESIS_IMPORTANCE = 7
NO_SUMMARY = "A few lines, archived without a summary."
# Newest journal entries in which a thing may be kept besides the summary.
JOURNAL_ENTRIES = 200
# Journal entries that take up names a summary had no room for.
OVERFLOW_CHARS = 1500
# A record names so many of the things a model's text left out; it counts all of them.
LOST_NAMED = 200


@dataclass
class Fold:
    """One scope's part of a compaction, ready to be committed.

    Args:
        leaving: Raw messages, oldest first.
        segment: Id of the archive segment to make of them; empty if they are archived already.
        cap: Most tokens of one of its summaries.
        markers: The new summary messages, long-term first.
        records: Summary records to write, new and changed, by id.
        entries: Fields of the journal entries to make.
        summaries: All that models made, for the figures.
        coverage: Share of names, numbers and quotes that is kept of what leaves.
        generation: How many times this scope's history was folded, this time included.
        query: Names in what left, by which it can be found again.
        sealed: The archive segment itself.
    """

    scope: str
    leaving: tuple[Message, ...]
    segment: str
    cap: int
    markers: list[Message] = field(default_factory=list)
    records: dict[str, SummaryRecord] = field(default_factory=dict)
    entries: list[dict[str, Any]] = field(default_factory=list)
    summaries: list[Summary] = field(default_factory=list)
    coverage: float = 1.0
    generation: int = 1
    query: str = ""
    sealed: Segment | None = None

    def put(self, record: SummaryRecord) -> SummaryRecord:
        """Note a record to write; returns it."""
        self.records[record.id] = record
        return record

    def absorb(self, records: Sequence[SummaryRecord], by: str) -> None:
        """Note that a summary took these over."""
        for record in records:
            self.put(replace(record, status=ABSORBED, absorbed_by=by))

    @property
    def level(self) -> str:
        """The lowest level that was needed."""
        return max((s.level for s in self.summaries), key=LEVELS.index, default=LEVELS[0])


@inlineCallbacks
def fold(
    script: Assistant,
    scope: str,
    leaving: Sequence[Message],
    cap: int,
    notes: Sequence[str] = (),
    instructions: str | None = None,
    written: ModelReply | None = None,
) -> Generator[Deferred[Any], Any, Fold]:
    """Make the summaries of one scope's part, of which nothing is stored yet.

    Args:
        script: The assistant's script.
        scope: The audience of what leaves.
        leaving: Its messages, oldest first.
        cap: Most tokens of one summary.
        notes: What the extraction before it saves of them.
        instructions: Additional instructions for the summary.
        written: A reply that may hold the recent summary already.

    Returns:
        A Deferred that fires with a `Fold`, or fails with `ModelError` when no level gave a
        summary.
    """
    made = Fold(scope, tuple(leaving), new_id("g"), cap)
    former = in_use(script, scope)
    made.generation = 1 + sum(record.tier == "recent" for record in former)
    record = yield recent(script, made, notes, instructions, written)
    yield cascade(script, made, former)
    made.markers.append(marker_of(script, made, record, len(made.leaving)))
    yield _seal(script, made, record)
    return made


@inlineCallbacks
def archived(
    script: Assistant, scope: str, leaving: Sequence[Message]
) -> Generator[Deferred[Any], Any, Fold]:
    """A scope with too few lines for a summary: they are archived, and search finds them.

    Fires with a `Fold` whose only record is one that no marker shows.
    """
    made = Fold(scope, tuple(leaving), new_id("g"), 0)
    record = new_record(script, made, Summary("", "", LEVELS[0]), Covered(NO_SUMMARY), UNSUMMARISED)
    yield _seal(script, made, record)
    return made


@inlineCallbacks
def recent(
    script: Assistant,
    made: Fold,
    notes: Sequence[str] = (),
    instructions: str | None = None,
    written: ModelReply | None = None,
) -> Generator[Deferred[Any], Any, SummaryRecord]:
    """The recent summary of what leaves with a fold, and its journal entries; put into the fold.

    The other arguments are those of `fold`.
    """
    told = script.memory.quarantine.messages(made.leaving)
    summary = yield summarise(script, told, instructions, made.cap, written)
    held = yield retained(script, made, told, summary.text, notes)
    record = new_record(script, made, summary, held, "recent")
    made.summaries.append(summary)
    made.coverage = held.share
    made.query = made.query or " ".join(held.named)
    synthesis = {
        "id": synthesis_id(record.id),
        "content": f"{SYNTHESIS_TITLE} {record.text}",
        "source_type": SYNTHESIS,
        "importance": SYNTHESIS_IMPORTANCE,
        "tags": ["compaction", "synthesis"],
        "audience": made.scope,
        "source_message_ids": list(record.source_ids),
    }
    made.entries += [synthesis, *_overflow_entries(made, record, held)]
    return record


@inlineCallbacks
def _seal(
    script: Assistant, made: Fold, record: SummaryRecord
) -> Generator[Deferred[Any], Any, None]:
    """Make the archive segment, and what else can be done before the commit, which is one piece."""
    script.history.store.preload(made.records, SUMMARIES)
    script.history.store.preload([made.segment], ARCHIVE)
    made.sealed = yield script.mind.work(Segment.sealed, made.segment, record.id, made.leaving)


@inlineCallbacks
def retained(
    script: Assistant,
    made: Fold,
    source: Sequence[Message] | str,
    text: str,
    notes: Sequence[str] = (),
) -> Generator[Deferred[Any], Any, Covered]:
    """Fires with a summary's text and what of its source it must not lose, as `covered` finds it.

    The source are messages or other summaries' texts; `notes` are texts that the journal gets
    together with the summary.
    """
    own, traits = script.obj.key.lower(), script.tools.traits
    names = [profile.name for profile in script.entities.profiles().values()]
    names = [name for name in names if name.lower() != own]
    if isinstance(source, str):
        found = yield script.mind.work(items_of, source, names)
    else:
        said = said_and_done(source, traits)
        found = yield script.mind.work(source_items, said, traits, names)
    items = [item for item in found if item.text.lower() != own]
    elsewhere = [*notes, *_elsewhere(script, made.scope)]
    held: Covered = yield script.mind.work(
        covered, items, text, elsewhere, made.cap, script.counter
    )
    return held


def _elsewhere(script: Assistant, scope: str) -> list[str]:
    """Texts in which a thing is kept besides the summary: journal and ledger.

    Entries that repeat a summary do not count: with them a merge of summaries could drop all.
    """
    notes = [note.text for note in script.ledger.shown(scope)]
    return notes + [
        entry.content
        for entry in script.journal.recent(JOURNAL_ENTRIES)
        if visible(entry.audience, scope) and not entry.withdrawn and entry.source_type != SYNTHESIS
    ]


def in_use(script: Assistant, scope: str) -> list[SummaryRecord]:
    """A scope's summaries, oldest first, without those rolled back."""
    return [
        r
        for r in script.history.summaries()
        if r.audience == scope and r.status != ROLLED_BACK and r.tier != UNSUMMARISED
    ]


@inlineCallbacks
def cascade(
    script: Assistant, made: Fold, former: Sequence[SummaryRecord]
) -> Generator[Deferred[Any], Any, None]:
    """Merge the former recent summaries into the long-term one."""
    older = {r.id: r for r in former if r.tier in ("recent", "node")}
    if not older:
        return
    nodes = [_node(record) for record in older.values()]
    while groups := due_groups(nodes):
        for group in groups:
            record = yield _merge(script, made, [older[i] for i in group], "node")
            record = made.put(replace(record, tree_level=1 + _node(older[group[0]]).level))
            older[record.id] = record
            nodes.append(_node(record))
    roots = [older[root] for root in topmost(nodes)]
    long = yield _merge(script, made, roots, "long")
    made.absorb([r for r in former if r.tier == "long" and r.status == LIVE], long.id)
    count = sum(len(r.source_ids) for r in older.values() if r.tier != "node")
    made.markers.append(marker_of(script, made, long, count))


def _node(record: SummaryRecord) -> Node:
    return Node(record.id, record.tree_level, record.child_ids if record.tree_level else ())


@inlineCallbacks
def _merge(
    script: Assistant, made: Fold, children: Sequence[SummaryRecord], tier: str
) -> Generator[Deferred[Any], Any, SummaryRecord]:
    """A summary of summaries, which absorbs them."""
    summary, held = yield merged(script, made, children)
    made.summaries += [summary] if summary.model else []
    record = new_record(script, made, summary, held, tier, children)
    made.entries += _overflow_entries(made, record, held)
    made.absorb(children, record.id)
    return record


@inlineCallbacks
def merged(
    script: Assistant, made: Fold, children: Sequence[SummaryRecord]
) -> Generator[Deferred[Any], Any, tuple[Summary, Covered]]:
    """Fires with summaries as one: their texts as they are if they fit, else a model's."""
    texts = [f"[{r.created_at[:16].replace('T', ' ')}] {r.text}" for r in children]
    whole = "\n".join(texts)
    if script.count(whole) <= made.cap:
        # As good as the worst of them.
        levels = [r.level for r in children if r.level in LEVELS]
        summary = Summary(whole, "", max(levels, key=LEVELS.index, default=LEVELS[0]))
        share = min((r.coverage for r in children if r.coverage is not None), default=1.0)
        return summary, Covered(whole, share)
    summary = yield summarise_lines(script, texts, cap=made.cap)
    source = "\n".join(r.text for r in children)  # the times in front are no facts
    held = yield retained(script, made, source, summary.text)
    return summary, held


def new_record(
    script: Assistant,
    made: Fold,
    summary: Summary,
    held: Covered,
    tier: str,
    children: Sequence[SummaryRecord] = (),
) -> SummaryRecord:
    """The record of a summary of what leaves, or of its children; put into the fold."""
    record = SummaryRecord(
        id=new_id("s"),
        tier=tier,
        status=LIVE,
        created_at=utc_iso(script.now()),
        audience=made.scope,
        text=held.text,
        source_ids=() if children else tuple(m.id for m in made.leaving),
        child_ids=tuple(child.id for child in children),
        segment=None if children else made.segment,
        level=summary.level,
        generation=made.generation,
        coverage=round(held.share, 4),
        unsupported=summary.unsupported,
        extra={
            "model": summary.model,
            "prompt_tokens": summary.prompt_tokens,
            "rejected": list(summary.rejected),
            "lost": [item.text for item in held.lost][:LOST_NAMED],
            "lost_count": len(held.lost),
        },
    )
    return made.put(record)


def marker_of(script: Assistant, made: Fold, record: SummaryRecord, count: int) -> Message:
    """The message that stands in the history for what left."""
    leaving, at = made.leaving, record.created_at
    tools = {m.name for m in leaving if m.role == "tool" and m.name}
    marker = Message(
        "system",
        f"{SUMMARY_TITLE}\n{record.text}",
        id=new_id("m"),
        created_at=at,
        audience=made.scope,
        channel="summary",
        metadata={
            "type": "compaction",
            "tier": record.tier,
            "compacted_count": count,
            "compacted_at": at,
            "original_token_count": total_tokens(leaving),
            "summary_token_count": script.count(record.text),
            "summary_id": record.id,
            "source_ids": list(record.source_ids or record.child_ids),
            "tools_used": sorted(tools),
            "generation": made.generation,
        },
    )
    return marker.counted(script.count)


def _overflow_entries(made: Fold, record: SummaryRecord, held: Covered) -> list[dict[str, Any]]:
    texts = textwrap.wrap("; ".join(item.text for item in held.overflow), OVERFLOW_CHARS)
    return [
        {
            "content": f"Also mentioned in what was folded into {record.id}: {text}",
            "source_type": "coverage",
            "importance": 4,
            "tags": ["compaction", "coverage"],
            "audience": made.scope,
            "source_message_ids": [m.id for m in made.leaving],
        }
        for text in texts
    ]
