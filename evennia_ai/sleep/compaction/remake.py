"""Summaries made again: behind an emergency's extract, or without what was forgotten.

`StateHandler.owed` names them. A record keeps its id and its sources; only what it says changes,
and with it the marker, the journal entry and the summaries above, which are owed from then on. No
message moves. Each is stored by itself, the deepest first, so a later run goes on where one ended.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from twisted.internet.defer import CancelledError, inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import ModelError, SpendError
from evennia_ai.history.frames import SYNTHESIS_TITLE
from evennia_ai.history.records import (
    COMMITTED,
    EMPTIED,
    ROLLED_BACK,
    CompactionRecord,
    SummaryRecord,
)
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.llm_interaction.summary import summary_levels
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.protocol import Assistant
from evennia_ai.rag_memory.journal_entry import JournalEntry, synthesis_id
from evennia_ai.sleep.compaction.compact import WAIT_S, Locked, at_work, longer, summary_cap
from evennia_ai.sleep.compaction.due import BETTER
from evennia_ai.sleep.compaction.extraction import Extraction, Extractor, write_notes
from evennia_ai.sleep.compaction.folding import Fold
from evennia_ai.sleep.compaction.plan import Plan
from evennia_ai.sleep.compaction.report import Failed, Outcome, Skipped
from evennia_ai.sleep.compaction.rollback import put_texts

# Tries in vain, with the facts extracted, after which the summaries stay as they are.
MOST_TRIES = 6


def next_owed(script: Assistant, tried: Collection[str] = ()) -> SummaryRecord | None:
    """The deepest summary to make again that was not tried; None if there is none."""
    owed = script.state.owed.keys() - set(tried)
    records = [r for r in script.history.summaries() if r.id in owed and r.status != ROLLED_BACK]
    ids = {record.id for record in records}
    return next((record for record in records if ids.isdisjoint(record.child_ids)), None)


@inlineCallbacks
def remake(
    script: Assistant,
    record: SummaryRecord,
    written: ModelReply | None = None,
    locked: Locked | None = None,
    needs_model: bool = False,
) -> Steps[None]:
    """Make a summary again from its messages, or from the summaries below it, and store it.

    Args:
        script: The assistant's script.
        record: What it is now.
        written: A reply that may hold it already.
        locked: Calls a function that no turn may come between; by default as `TurnLock.run_here`.
        needs_model: Whether the offline model's summary is none; the former text is kept then.

    Returns:
        A Deferred that fails with `ModelError` where no level gives a summary.
    """
    history = script.history
    cap = summary_cap(script, Plan((), (), history.messages()))
    fold = Fold(script, record.audience, (), cap, generation=record.generation)
    if written:
        fold.extraction.summaries[record.audience] = written
    if record.segment:
        segment = history.segment(record.segment)
        if segment is None:
            raise ModelError(f"archive segment `{record.segment}` is missing")
        fold.leaving = segment.messages
        summary, text = yield fold.recent()
    else:
        below = filter(None, map(history.summary, record.child_ids))
        summary, text = yield fold.merged(list(below))
    if needs_model and any(made.model == OFFLINE_MODEL for made in fold.summaries):
        raise ModelError("no model gave a summary")
    new = replace(
        record,
        text=text.text,
        level=summary.level,
        coverage=round(text.share, 4),
        unsupported=summary.unsupported,
        extra={
            **record.extra,
            "model": summary.model,
            "prompt_tokens": summary.prompt_tokens,
            **({"former": record.text} if needs_model else {}),
        },
    )
    locked = locked or script.runtime.lock.run_here
    yield locked(partial(_store, script, record, new))


def _store(script: Assistant, former: SummaryRecord, new: SummaryRecord) -> None:
    """Put a summary into the place of its former self, wherever that is shown."""
    script.runtime.lock.holder()
    history, journal, entry_id = script.history, script.journal, synthesis_id(new.id)
    if history.summary(former.id) != former:
        raise ModelError("the summary was changed meanwhile")

    def corrected(entry: JournalEntry) -> JournalEntry:
        is_meant = entry.id == entry_id and not entry.withdrawn
        return replace(entry, content=f"{SYNTHESIS_TITLE} {new.text}") if is_meant else entry

    with history.store.transaction():
        script.at_commit_step("remake")
        history.save_summary(new)
        put_texts(script, {new.id: new.text})
        for entry in journal.rewrite(corrected, journal.pages_with([entry_id])):
            history.store.on_commit(partial(script.memory.remember_entry, entry))
        above = (r for r in history.summaries() if new.id in r.child_ids)
        owed = {r.id: True for r in above if r.status != ROLLED_BACK} | script.state.owed
        script.state.owed = {key: value for key, value in owed.items() if key != new.id}
        script.at_commit_step("remade")


def is_better_due(script: Assistant) -> bool:
    """Whether better summaries, or the facts behind them, are owed and may be tried now."""
    config, (_, at) = script.config, script.runtime.better_tries
    if not script.state.owed or script.now() < at:
        return False
    if all(script.state.owed.values()) and summary_levels(script)[0][1] == OFFLINE_MODEL:
        return False
    if not (config.compact_enabled and config.compact_auto) or script.state.hold:
        return False
    if script.limits().only_talks or script.spend.own_wait_s():
        return False
    return not script.over_spend()


@inlineCallbacks
def better_summaries(
    script: Assistant, locked: Locked | None = None
) -> Steps[Outcome | dict[str, int]]:
    """Extract facts behind emergencies, and have a model make the owed summaries again.

    `locked` runs something that no turn may come between; by default as `TurnLock.run_here`.
    Fires with ``{"remade"}``, how many, or why there is none.
    """
    if not is_better_due(script):
        return Skipped("no better summary is due")
    locked, count = locked or script.runtime.lock.run_here, 0
    try:
        with at_work(script, BETTER):
            written = yield _facts(script, locked)
            while summary_levels(script)[0][1] != OFFLINE_MODEL and (record := next_owed(script)):
                yield script.breathe()
                better = record.text != EMPTIED  # any text is better than none
                yield remake(script, record, written.get(record.id), locked, needs_model=better)
                count += 1
    except CancelledError:
        raise
    except SpendError as error:  # asleep it does not wait for the next call: the next dream goes on
        tries, _ = script.runtime.better_tries
        script.runtime.better_tries = tries, script.now() + WAIT_S
        return Failed(str(error))
    except Exception as error:
        tries, _ = script.runtime.better_tries = longer(script.runtime.better_tries, script.now())
        if not isinstance(error, ModelError):
            raise
        if tries >= MOST_TRIES and all(script.state.owed.values()):
            script.trouble(f"summaries that were to be made again stay as they are: {error}")
            _close(script, gives_up=True)
        return Failed(str(error))
    _close(script)
    script.audit("better summaries", remade=count)
    return {"remade": count}


def _close(script: Assistant, gives_up: bool = False) -> None:
    """Owe only what can still be made; once it `gives_up`, only the summaries without a text."""
    records = [r for r in script.history.summaries() if r.status != ROLLED_BACK]
    left = {r.id for r in records if r.text == EMPTIED or not gives_up}
    script.state.owed = {key: is_seen for key, is_seen in script.state.owed.items() if key in left}
    script.runtime.better_tries = (0, 0.0)


@inlineCallbacks
def _facts(script: Assistant, locked: Locked) -> Steps[dict[str, ModelReply]]:
    """Extract facts from the messages that left with emergencies, once, and store them.

    Fires with the summaries with which the passes closed, by the ids of the extracts.
    """
    history, written = script.history, dict[str, ModelReply]()
    for record in history.compactions():
        new = [each for each in record.summaries if script.state.owed.get(each) is False]
        if not new or record.status != COMMITTED:
            continue
        extracts = filter(None, map(history.summary, new))
        segments = {each.id: history.segment(each.segment) for each in extracts if each.segment}
        parts = {key: segment.messages for key, segment in segments.items() if segment}
        extractor = Extractor(script, BETTER, summarises=True)
        extraction: Extraction = yield extractor.run(parts)
        yield locked(partial(_store_facts, script, record, extraction, new))
        if extraction.error:
            raise ModelError(extraction.error)
        written |= extraction.summaries
    return written


def _store_facts(
    script: Assistant, record: CompactionRecord, extraction: Extraction, extracts: list[str]
) -> None:
    """Store what was extracted behind an emergency; a rollback of that one takes it back."""
    script.runtime.lock.holder()
    with script.history.store.transaction():
        if ids := write_notes(script, extraction.notes):
            script.history.save_compaction(replace(record, entries=(*record.entries, *ids)))
        if not extraction.error:
            script.state.owed = {**script.state.owed, **dict.fromkeys(extracts, True)}
