"""Folding: the summaries of one audience's part of a compaction, tier by tier.

With the strategy `cascade` a new recent summary is made from raw messages, and the former ones
go into the long-term summary. Recent summaries hang in a tree of fan-in 8
(`sleep.compaction.cascade`); the long-term summary is made from the topmost nodes, never from
its own former text. With `single` there is one summary, made from the former one and the raw
messages.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.history.archive import ARCHIVE, SUMMARIES
from evennia_ai.history.frames import SUMMARY_TITLE, SYNTHESIS_TITLE
from evennia_ai.history.messages import (
    Message,
    new_id,
    total_tokens,
    utc_iso,
)
from evennia_ai.history.records import (
    ABSORBED,
    LIVE,
    ROLLED_BACK,
    Segment,
    SummaryRecord,
    replaced_ids,
)
from evennia_ai.llm_interaction.continuation import summary_continuation
from evennia_ai.llm_interaction.prompt import context_caps
from evennia_ai.llm_interaction.summary import LEVELS, Summary, summarise, summarise_lines
from evennia_ai.protocol import Assistant, Character
from evennia_ai.sleep.compaction.cascade import Node, depth, due_groups, topmost
from evennia_ai.sleep.compaction.plan import Plan
from evennia_ai.sleep.compaction.retention import drift
from evennia_ai.sleep.compaction.retention_gate import Kept, retained

SYNTHESIS_IMPORTANCE = 7
# Journal entries that take up names a summary had no room for.
OVERFLOW_CHARS = 1500
# The oldest recent summaries whose facts each long-term summary is checked for.
DRIFT_SUMMARIES = 8
# A record names so many of the things a model's text left out; it counts all of them.
LOST_NAMED = 200


@dataclass
class Fold:
    """One audience's part of a compaction, ready to be committed.

    `score` and `in_summary` are those of the new recent summary's `Kept`.

    Args:
        leaving: Raw messages, oldest first.
        segment: Id of the archive segment to make of them; empty if they are archived already.
        markers: The new summary messages, long-term first.
        records: Summary records to write, new and changed, by id.
        entries: Fields of the journal entries to make.
        summaries: All that models made, for the figures.
        drift: Share of those of the oldest recent summaries that the long-term one has lost.
        generation: How many times this audience's history was folded, this time included.
        query: Names in what left, by which it can be found again.
        corrected: New texts of summaries' journal entries, by the ids of the summaries.
        sealed: The archive segment itself.
    """

    audience: str
    leaving: tuple[Message, ...]
    segment: str
    markers: list[Message] = field(default_factory=list)
    records: dict[str, SummaryRecord] = field(default_factory=dict)
    entries: list[dict[str, Any]] = field(default_factory=list)
    summaries: list[Summary] = field(default_factory=list)
    score: float = 1.0
    in_summary: float = 1.0
    drift: float = 0.0
    generation: int = 1
    query: str = ""
    corrected: dict[str, str] = field(default_factory=dict)
    sealed: Segment | None = None

    @property
    def summary_id(self) -> str:
        """The id of the new recent summary."""
        return str(self.markers[-1].metadata["summary_id"])

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
        return max((s.level for s in self.summaries), key=LEVELS.index)


@inlineCallbacks
def fold(
    script: Assistant,
    character: Character,
    plan: Plan,
    audience: str,
    instructions: str | None = None,
) -> Generator[Deferred[Any], Any, Fold]:
    """Make the summaries of one audience's part.

    Fires with a `Fold`, of which nothing is stored yet, or fails with `ModelError` when no level
    gave a summary.
    """
    made = Fold(audience, plan.part(audience), new_id("g"))
    known = in_use(script, audience)
    made.generation = 1 + sum(record.tier in ("recent", "single") for record in known)
    single = script.config.compact_strategy == "single"
    previous = plan.previous(audience)
    earlier = "\n".join(summary_text(marker) for marker in previous) if single else ""
    told = script.memory.quarantine.messages(made.leaving)
    warm = summary_continuation(script, character, told, earlier, instructions)
    summary = yield summarise(script, told, earlier, instructions, warm)
    kept = yield retained(script, character, told, earlier, summary, audience, instructions)
    record = new_record(script, made, summary, kept, "single" if single else "recent")
    made.summaries += filter(None, (summary, kept.asked_again))
    made.score, made.in_summary, made.query = kept.score, kept.in_summary, " ".join(kept.named)
    count = len(made.leaving)
    if single:
        former = [r for r in known if r.status == LIVE]
        record = made.put(replace(record, earlier_ids=tuple(r.id for r in former)))
        made.absorb(former, record.id)
        count += sum(marker.metadata.get("compacted_count", 0) for marker in previous)
    else:
        yield cascade(script, character, made, known)
    made.markers.append(marker_of(script, made, record, count))
    synthesis = {
        "id": f"compact_{record.id[1:]}",
        "content": f"{SYNTHESIS_TITLE} {record.text}",
        "source_type": "compaction",
        "importance": SYNTHESIS_IMPORTANCE,
        "tags": ["compaction", "synthesis"],
        "audience": audience,
        "source_message_ids": list(record.source_ids),
    }
    made.entries += [synthesis, *_overflow_entries(made, record, kept)]
    # What can be done before the commit, which is one piece of work for the reactor.
    script.history.store.preload(made.records, SUMMARIES)
    script.history.store.preload([made.segment], ARCHIVE)
    made.sealed = yield script.mind.work(Segment.sealed, made.segment, record.id, made.leaving)
    return made


def in_use(script: Assistant, audience: str) -> list[SummaryRecord]:
    """An audience's summaries, oldest first, without those rolled back or replaced.

    One that stands in another's place stands where that was.
    """
    records = script.history.summaries()
    replaced = replaced_ids(records)
    known = [
        r
        for r in records
        if r.audience == audience and r.status != ROLLED_BACK and r.id not in replaced
    ]
    return sorted(known, key=lambda r: min((*r.replaces, r.id)))


@inlineCallbacks
def cascade(
    script: Assistant, character: Character, made: Fold, known: Sequence[SummaryRecord]
) -> Generator[Deferred[Any], Any, None]:
    """Merge the former recent summaries into the long-term one."""
    older = {r.id: r for r in known if r.tier in ("recent", "node", "single")}
    if not older:
        return
    nodes = [_node(record) for record in older.values()]
    while groups := due_groups(nodes):
        for group in groups:
            record = yield _merge(script, character, made, [older[i] for i in group], "node")
            record = made.put(replace(record, tree_level=1 + _node(older[group[0]]).level))
            older[record.id] = record
            nodes.append(_node(record))
    roots = [older[root] for root in topmost(nodes)]
    long = yield _merge(script, character, made, roots, "long")
    passed = 1 + max(depth(nodes, node.id) for node in nodes if node.level == 0)
    oldest = [r.text for r in older.values() if r.tier != "node"][:DRIFT_SUMMARIES]
    made.drift = yield script.mind.work(drift, oldest, long.text)
    long = made.put(replace(long, drift=made.drift, extra={**long.extra, "depth": passed}))
    made.absorb([r for r in known if r.tier == "long" and r.status == LIVE], long.id)
    count = sum(len(r.source_ids) for r in older.values() if r.tier != "node")
    made.markers.append(marker_of(script, made, long, count))


def _node(record: SummaryRecord) -> Node:
    return Node(record.id, record.tree_level, record.child_ids if record.tree_level else ())


@inlineCallbacks
def _merge(
    script: Assistant,
    character: Character,
    made: Fold,
    children: Sequence[SummaryRecord],
    tier: str,
) -> Generator[Deferred[Any], Any, SummaryRecord]:
    """A summary of summaries: their texts as they are if they fit, else written by a model."""
    texts = [f"[{r.created_at[:16].replace('T', ' ')}] {r.text}" for r in children]
    whole = "\n".join(texts)
    if script.count(whole) <= context_caps(script).summary:
        # As good as the worst of them.
        known = [r.level for r in children if r.level in LEVELS]
        summary = Summary(whole, "", max(known, key=LEVELS.index, default=LEVELS[0]))
        score = min((r.retention for r in children if r.retention is not None), default=1.0)
        least = min((r.in_summary for r in children if r.in_summary is not None), default=1.0)
        kept = Kept(whole, score, least)
    else:
        summary = yield summarise_lines(script, texts)
        source = "\n".join(r.text for r in children)  # the times in front are no facts
        kept = yield retained(script, character, (), source, summary, made.audience)
        made.summaries += filter(None, (summary, kept.asked_again))
    record = new_record(script, made, summary, kept, tier, children)
    made.entries += _overflow_entries(made, record, kept)
    made.absorb(children, record.id)
    return record


def new_record(
    script: Assistant,
    made: Fold,
    summary: Summary,
    kept: Kept,
    tier: str,
    children: Sequence[SummaryRecord] = (),
) -> SummaryRecord:
    """The record of a summary of what leaves, or of its children."""
    again = kept.asked_again
    record = SummaryRecord(
        id=new_id("s"),
        tier=tier,
        status=LIVE,
        created_at=utc_iso(script.now()),
        audience=made.audience,
        text=kept.text,
        source_ids=() if children else tuple(m.id for m in made.leaving),
        child_ids=tuple(child.id for child in children),
        segment=None if children else made.segment,
        level=summary.level,
        generation=made.generation,
        retention=round(kept.score, 4),
        in_summary=round(kept.in_summary, 4),
        unsupported=summary.unsupported + (again.unsupported if again else 0),
        extra={
            "model": summary.model,
            "prompt_tokens": summary.prompt_tokens,
            "rejected": list(summary.rejected),
            "lost": [item.text for item in kept.lost][:LOST_NAMED],
            "lost_count": len(kept.lost),
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
        audience=made.audience,
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


def summary_text(marker: Message) -> str:
    """The text of a marker without its title."""
    return marker.content.removeprefix(SUMMARY_TITLE).strip()


def _overflow_entries(made: Fold, record: SummaryRecord, kept: Kept) -> list[dict[str, Any]]:
    texts, line = [], ""
    for item in kept.overflow:
        if len(line) + len(item.text) > OVERFLOW_CHARS:
            texts.append(line)
            line = ""
        line = f"{line}; {item.text}" if line else item.text
    return [
        {
            "content": f"Also mentioned in what was folded into {record.id}: {text}",
            "source_type": "retention",
            "importance": 4,
            "tags": ["compaction", "retention"],
            "audience": made.audience,
            "source_message_ids": [m.id for m in made.leaving],
        }
        for text in (*texts, line)
        if text
    ]
