"""Stale summaries made again: those emptied, as something in them was forgotten or taken back.

`StateHandler.stale` names them. A record keeps its id and its sources; only what it says changes,
and with it the marker, the journal entry and the summaries above, which are stale from then on. No
message moves. Each is stored by itself, the deepest first, so a later run goes on where one ended.
"""

from dataclasses import replace
from functools import partial

from twisted.internet.defer import CancelledError, inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import ModelError
from evennia_ai.history.archive import SummaryRecord
from evennia_ai.history.frames import SYNTHESIS_TITLE
from evennia_ai.llm_interaction.summary import NOTHING_SAID
from evennia_ai.protocol import Assistant
from evennia_ai.rag_memory.journal import JournalEntry, synthesis_id
from evennia_ai.sleep.compaction.compact import longer, summary_cap
from evennia_ai.sleep.compaction.folding import Fold, empty_unused
from evennia_ai.sleep.compaction.plan import STALE, Plan

DAY_S = 86_400.0
# Stale summaries that are made again in a day at most, those apart of which nothing is left.
STALE_A_DAY = 12
# From one to the next.
PAUSE_S = 60.0


def is_stale_due(script: Assistant) -> bool:
    """Whether a summary is stale and may be made again now: a few a day, one at a time.

    Also where automatic compactions are off: it mends what forgetting emptied.
    """
    now, times = script.now(), _of_the_day(script)
    if not script.state.stale or now < script.runtime.stale_waits[1]:
        return False
    if len(times) >= STALE_A_DAY or (times and now < times[-1] + PAUSE_S):
        return False
    if not script.config.compact_enabled or script.state.hold:
        return False
    return not script.limits().only_talks and not script.over_spend()


def _of_the_day(script: Assistant) -> list[float]:
    """When summaries were made again in the last day."""
    return [at for at in script.state.remade if 0 <= script.now() - at < DAY_S]


@inlineCallbacks
def remake_next(script: Assistant) -> Steps[None]:
    """Make the deepest stale summary again, and store it between two turns.

    What fails is tried again later, each time later.
    """
    runtime, stale = script.runtime, set(script.state.stale)
    records = [r for r in script.history.summaries() if r.id in stale and not r.rolled_back]
    ids = {record.id for record in records}
    record = next((record for record in records if ids.isdisjoint(record.child_ids)), None)
    if record is None:  # rolled back meanwhile
        script.state.stale = []
        return
    try:
        new = yield _made_again(script, record)
        yield script.between_turns(partial(_store, script, record, new))
    except CancelledError:
        raise
    except Exception as error:
        runtime.stale_waits = longer(runtime.stale_waits, script.now())  # its calls are paid for
        if not isinstance(error, ModelError):
            raise
        script.log_error("making a summary again", error)
        return
    runtime.stale_waits = 0, 0.0


@inlineCallbacks
def _made_again(script: Assistant, record: SummaryRecord) -> Steps[SummaryRecord]:
    """Fires with a summary made of its messages, or of the summaries below it.

    Fails with `ModelError` where no level gives one.
    """
    history = script.history
    talk = tuple(message for message in history.messages() if not message.is_summary)
    cap = summary_cap(script, Plan((), talk))
    fold = Fold(script, record.audience, (), cap, STALE, generation=record.generation)
    if record.segments:
        segments = list(filter(None, map(history.segment, record.segments)))
        if len(segments) < len(record.segments):
            raise ModelError("an archive segment is missing")
        fold.leaving = tuple(message for segment in segments for message in segment.messages)
        summary, text = yield fold.recent()
    else:
        below = filter(None, map(history.summary, record.child_ids))
        summary, text = yield fold.merged(list(below))
    extra = {"model": summary.model, "prompt_tokens": summary.prompt_tokens}
    return replace(
        record,
        text=text.text,
        without=fold.without,
        level=summary.level,
        coverage=round(text.share, 4),
        unsupported=summary.unsupported,
        extra={**record.extra, **extra},
    )


def _store(script: Assistant, former: SummaryRecord, new: SummaryRecord) -> None:
    """Put a summary into the place of its former self, wherever that is shown."""
    script.runtime.lock.holder()
    history, journal, entry_id = script.history, script.journal, synthesis_id(new.id)
    if history.summary(former.id) != former:
        raise ModelError("the summary was changed meanwhile")

    def corrected(entry: JournalEntry) -> JournalEntry:
        is_meant = entry.id == entry_id and not entry.withdrawn
        content = f"{SYNTHESIS_TITLE} {new.text}"
        new_entry = replace(entry, content=content, source_message_ids=new.rests_on)
        return new_entry if is_meant else entry

    with history.store.transaction():
        script.at_commit_step("remake")
        history.save_summary(new)
        history.replace_talk(history.messages())
        for entry in journal.rewrite(corrected, journal.pages_with([entry_id])):
            history.store.on_commit(partial(script.memory.remember_entry, entry))
        above = [r for r in history.summaries() if new.id in r.child_ids]
        stale = [*script.state.stale, *(r.id for r in above if not r.rolled_back)]
        script.state.stale = [key for key in dict.fromkeys(stale) if key != new.id]
        if new.text != NOTHING_SAID:
            script.state.remade = [*_of_the_day(script), script.now()]
        empty_unused(script)  # what was taken back while a model was writing
        script.at_commit_step("remade")
