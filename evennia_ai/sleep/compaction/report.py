"""What a compaction came to: its outcome, and how staff, players and logs are told."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from evennia_ai.history.records import CompactionRecord
from evennia_ai.protocol import Assistant

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
