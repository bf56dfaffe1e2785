"""Folding: the summaries of one audience's part of a compaction, tier by tier.

With the strategy `cascade` a new recent summary is made from raw messages, and the former one
waterfalls into the long-term summary. Recent summaries hang in a tree of fan-in 8
(`sleep.compaction.cascade`); the long-term summary is made from the topmost nodes, never from
its own former text. With `single` there is one summary, made from the former one and the raw
messages.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks

from evennia_ai.history.frames import SUMMARY_TITLE, SYNTHESIS_TITLE
from evennia_ai.history.messages import (
    SCHEMA_VERSION,
    Message,
    new_id,
    total_tokens,
    utc_iso,
)
from evennia_ai.llm_interaction.prompt import context_caps
from evennia_ai.llm_interaction.summary import LEVELS, Summary, summarise, summarise_lines
from evennia_ai.protocol import Assistant, Character
from evennia_ai.sleep.compaction.cascade import Node, depth, due_groups, topmost
from evennia_ai.sleep.compaction.plan import Plan
from evennia_ai.sleep.compaction.retention import drift
from evennia_ai.sleep.compaction.retention_gate import Kept, retained

Record = dict[str, Any]
SYNTHESIS_IMPORTANCE = 7
# Journal entries that take up names a summary had no room for.
OVERFLOW_CHARS = 1500
# The oldest recent summaries whose facts are looked for in each long-term summary.
DRIFT_SUMMARIES = 8
# A record names so many of the things a model's text left out; it counts all of them.
LOST_NAMED = 200


@dataclass
class Fold:
    """One audience's part of a compaction, ready to be committed.

    Args:
        audience: Whose.
        leaving: Raw messages, oldest first.
        segment: Id of their archive segment.
        markers: The new summary messages, long-term first.
        records: Summary records to write, new and changed, by id.
        entries: Fields of the journal entries to make, `content` among them.
        summaries: All that models made, for the figures.
        score: Share of names, numbers and quoted words kept by the new recent summary, the
            journal or the ledger.
        in_summary: Share of them kept by the summary itself.
        drift: Share of those of the oldest recent summaries that the long-term one holds no more.
        generation: How many times this audience's history was folded, this time included.
        query: Words that find again what left: names in it.
    """

    audience: str
    leaving: tuple[Message, ...]
    segment: str
    markers: list[Message] = field(default_factory=list)
    records: dict[str, Record] = field(default_factory=dict)
    entries: list[dict[str, Any]] = field(default_factory=list)
    summaries: list[Summary] = field(default_factory=list)
    score: float = 1.0
    in_summary: float = 1.0
    drift: float = 0.0
    generation: int = 1
    query: str = ""

    @property
    def summary_id(self) -> str:
        """The id of the new recent summary."""
        return str(self.markers[-1].metadata["summary_id"])

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

    Returns:
        A Deferred that fires with a `Fold`; nothing is stored yet. Fails with `ModelError` when
        no level gave a summary.
    """
    made = Fold(audience, plan.part(audience), new_id("g"))
    known = script.history.summaries(lambda r: _counts(r, audience))
    made.generation = 1 + sum(record["tier"] in ("recent", "single") for record in known)
    single = script.config.compact_strategy == "single"
    previous = plan.previous(audience)
    earlier = "\n".join(summary_text(marker) for marker in previous) if single else ""
    summary = yield summarise(script, made.leaving, earlier, instructions)
    kept = yield retained(script, character, made.leaving, earlier, summary, audience, instructions)
    record = _new_record(script, made, summary, kept, "single" if single else "recent")
    made.summaries += filter(None, (summary, kept.asked_again))
    made.score, made.in_summary, made.query = kept.score, kept.in_summary, " ".join(kept.named)
    if single:
        former = [r for r in known if r["status"] == "live"]
        record["earlier_ids"] = [r["id"] for r in former]
        _absorb(made, former, record["id"])
    else:
        yield _cascade(script, character, made, known)
    earlier_count = sum(m.metadata.get("compacted_count", 0) for m in previous) if single else 0
    made.markers.append(_marker(script, made, record, len(made.leaving) + earlier_count))
    made.entries += _entries(made, record, kept)
    return made


def _counts(record: Mapping[str, Any], audience: str) -> bool:
    return record["audience"] == audience and record["status"] != "rolled back"


@inlineCallbacks
def _cascade(
    script: Assistant, character: Character, made: Fold, known: Sequence[Record]
) -> Generator[Deferred[Any], Any, None]:
    """Let the former recent summaries waterfall into the long-term one."""
    older = {r["id"]: r for r in known if r["tier"] in ("recent", "node", "single")}
    if not older:
        return
    nodes = [_node(record) for record in older.values()]
    while groups := due_groups(nodes):
        for group in groups:
            record = yield _merge(script, character, made, [older[i] for i in group], "node")
            record["tree_level"] = 1 + _node(older[group[0]]).level
            older[record["id"]] = record
            nodes.append(_node(record))
    roots = [older[root] for root in topmost(nodes)]
    long = yield _merge(script, character, made, roots, "long")
    long["depth"] = 1 + max(depth(nodes, node.id) for node in nodes if node.level == 0)
    oldest = [r["text"] for r in older.values() if r["tier"] != "node"][:DRIFT_SUMMARIES]
    made.drift = long["drift"] = yield script.mind.work(drift, oldest, long["text"])
    _absorb(made, [r for r in known if r["tier"] == "long" and r["status"] == "live"], long["id"])
    count = sum(len(r["source_ids"]) for r in older.values() if r["tier"] != "node")
    made.markers.append(_marker(script, made, long, count))


def _node(record: Mapping[str, Any]) -> Node:
    level = record.get("tree_level", 0)
    return Node(record["id"], level, tuple(record["child_ids"]) if level else ())


@inlineCallbacks
def _merge(
    script: Assistant,
    character: Character,
    made: Fold,
    children: Sequence[Record],
    tier: str,
) -> Generator[Deferred[Any], Any, Record]:
    """A summary of summaries: their texts as they are where they fit, else by a model."""
    texts = [f"[{r['created_at'][:16].replace('T', ' ')}] {r['text']}" for r in children]
    cap = context_caps(script).summary
    whole = "\n".join(texts)
    if script.count(whole) <= cap:
        summary, kept = _joined(whole, children)
    else:
        summary = yield summarise_lines(script, texts)
        source = "\n".join(r["text"] for r in children)  # the times in front are no facts
        kept = yield retained(script, character, (), source, summary, made.audience)
        made.summaries += filter(None, (summary, kept.asked_again))
    record = _new_record(script, made, summary, kept, tier)
    record["child_ids"] = [child["id"] for child in children]
    record["source_ids"], record["segment"] = [], None
    made.entries += _overflow_entries(made, record, kept)
    _absorb(made, children, record["id"])
    return record


def _joined(text: str, children: Sequence[Record]) -> tuple[Summary, Kept]:
    """Summaries as they are, one after the other: as good as the least of them."""
    known = [r["level"] for r in children if r["level"] in LEVELS]
    level = max(known, key=LEVELS.index, default=LEVELS[0])
    score, in_summary = (_least(children, name) for name in ("retention", "in_summary"))
    return Summary(text, "", level), Kept(text, score, in_summary)


def _least(records: Sequence[Record], name: str) -> float:
    return min((r[name] for r in records if r.get(name) is not None), default=1.0)


def _absorb(made: Fold, records: Sequence[Record], by: str) -> None:
    """Note that records live on in another one."""
    for record in records:
        record.update(status="absorbed", absorbed_by=by)
        made.records[record["id"]] = record


def _new_record(script: Assistant, made: Fold, summary: Summary, kept: Kept, tier: str) -> Record:
    record = {
        "version": SCHEMA_VERSION,
        "id": new_id("s"),
        "tier": tier,
        "status": "live",
        "created_at": utc_iso(script.now()),
        "audience": made.audience,
        "text": kept.text,
        "source_ids": [m.id for m in made.leaving],
        "child_ids": [],
        "segment": made.segment,
        "model": summary.model,
        "level": summary.level,
        "prompt_tokens": summary.prompt_tokens,
        "rejected": list(summary.rejected),
        "retention": round(kept.score, 4),
        "in_summary": round(kept.in_summary, 4),
        "lost": [item.text for item in kept.lost][:LOST_NAMED],
        "lost_count": len(kept.lost),
        "generation": made.generation,
    }
    made.records[record["id"]] = record
    return record


def _marker(script: Assistant, made: Fold, record: Record, count: int) -> Message:
    """The message that stands in the history for what left."""
    leaving, at = made.leaving, record["created_at"]
    tools = {m.name for m in leaving if m.role == "tool" and m.name}
    marker = Message(
        "system",
        f"{SUMMARY_TITLE}\n{record['text']}",
        id=new_id("m"),
        created_at=at,
        audience=made.audience,
        channel="summary",
        metadata={
            "type": "compaction",
            "tier": record["tier"],
            "compacted_count": count,
            "compacted_at": at,
            "original_token_count": total_tokens(leaving),
            "summary_token_count": script.count(record["text"]),
            "summary_id": record["id"],
            "source_ids": record["source_ids"] or record["child_ids"],
            "tools_used": sorted(tools),
            "generation": made.generation,
        },
    )
    return marker.counted(script.count)


def summary_text(marker: Message) -> str:
    """The text of a marker without its title."""
    return marker.content.removeprefix(SUMMARY_TITLE).strip()


def _entries(made: Fold, record: Record, kept: Kept) -> list[dict[str, Any]]:
    """The synthesis entry, and those for what the summary had no room for."""
    synthesis = {
        "id": f"compact_{record['id'][1:]}",
        "content": f"{SYNTHESIS_TITLE} {record['text']}",
        "source_type": "compaction",
        "importance": SYNTHESIS_IMPORTANCE,
        "tags": ["compaction", "synthesis"],
        "audience": made.audience,
        "source_message_ids": record["source_ids"],
    }
    return [synthesis, *_overflow_entries(made, record, kept)]


def _overflow_entries(made: Fold, record: Record, kept: Kept) -> list[dict[str, Any]]:
    texts, line = [], ""
    for item in kept.overflow:
        if len(line) + len(item.text) > OVERFLOW_CHARS:
            texts.append(line)
            line = ""
        line = f"{line}; {item.text}" if line else item.text
    return [
        {
            "content": f"Also mentioned in what was folded into {record['id']}: {text}",
            "source_type": "retention",
            "importance": 4,
            "tags": ["compaction", "retention"],
            "audience": made.audience,
            "source_message_ids": [m.id for m in made.leaving],
        }
        for text in (*texts, line)
        if text
    ]
