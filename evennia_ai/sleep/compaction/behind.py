"""Work on summaries behind the ticks: nobody waits for it.

One piece runs at a time: a compaction of an assistant that is awake, or a stale summary that is
made again. It takes the turn lock only between turns, and whatever takes the lock for itself
cancels it (`sleep.sleeper.SummaryWork`).

Stale summaries are those emptied, as something in them was forgotten or taken back
(`StateHandler.stale`). A record keeps its id and its sources; only what it says changes, and with
it the marker, the journal entry and the summaries above, which are stale from then on. No message
moves. Each is stored by itself, the deepest first, so a later run goes on where one ended.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.errors import ModelError
from evennia_ai.history.archive import SummaryRecord
from evennia_ai.llm_interaction.summary import NOTHING_SAID
from evennia_ai.rag_memory.journal import JournalEntry
from evennia_ai.sleep.compaction.compact import (
    Compaction,
    Outcome,
    Skipped,
    empty_unused,
    longer,
    summary_cap,
    synthesis_of,
)
from evennia_ai.sleep.compaction.plan import STALE
from evennia_ai.sleep.compaction.rules import due_behind, of_the_day
from evennia_ai.sleep.sleeper import Sleeper


def begin_behind(script: Sleeper) -> bool:
    """Begin work in the background if some is due and none runs; returns whether it did.

    Call it when a tick has ended.
    """
    for trigger in due_behind(script):
        if trigger == STALE:
            _run(script, STALE, Remaking(script).run)
            return True
        job = Compaction(script, trigger)
        if job.plan.leaving:
            compact_behind(job)
            return True
    return False


def compact_behind(job: Compaction) -> None:
    """Begin a compaction in the background, in the place of what runs there."""
    job.script.runtime.summaries.stop()
    job.noted, job.is_awaited = True, False
    _run(job.script, job.trigger, job.run)


def compact_asleep(job: Compaction) -> "Deferred[Outcome]":
    """Run a compaction for which a sleeper waits; fires with its outcome.

    Once somebody speaks to the sleeper it fires with `Skipped`, so that it wakes, and the
    compaction goes on in the background.
    """
    work = job.script.runtime.summaries

    def stopped(_: object) -> None:
        work.stop()

    waiting: Deferred[Outcome] = Deferred(stopped)

    def called() -> None:
        job.is_awaited, work.on_call = False, None
        waiting.callback(Skipped("it goes on in the background, as somebody spoke"))

    def ended(result: Any) -> Any:
        if waiting.called:
            return result
        work.on_call = None
        waiting.callback(result)
        return None

    work.stop()
    work.on_call = called
    _run(job.script, job.trigger, lambda: job.run().addBoth(ended))
    if work.running is not None:
        work.running[0].addErrback(ended)  # stopped before it began
    return waiting


def _run(script: Sleeper, trigger: str, work: Callable[[], Deferred[Any]]) -> None:
    """Run something in the background; what it fails with is logged, as the ticks go on."""

    @inlineCallbacks
    def run() -> Steps[None]:
        try:
            yield script.breathe()
            yield work()
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001
            script.log_error("work in the background", error)

    script.runtime.summaries.run(run, trigger)


@dataclass(frozen=True)
class Remaking:
    """Makes the stale summaries of an assistant again, one at a time."""

    script: Sleeper

    @inlineCallbacks
    def run(self) -> Steps[None]:
        """Make the deepest stale summary again, and store it between two turns.

        What fails is tried again later, each time later.
        """
        script, work = self.script, self.script.runtime.summaries
        stale = set(script.state.stale)
        records = [r for r in script.history.summaries() if r.id in stale and not r.rolled_back]
        ids = {record.id for record in records}
        record = next((record for record in records if ids.isdisjoint(record.child_ids)), None)
        if record is None:  # rolled back meanwhile
            script.state.stale = []
            return
        try:
            new = yield self._made(record)
            yield script.between_turns(partial(self._store, record, new))
        except CancelledError:
            raise
        except Exception as error:
            # Its calls are paid for.
            work.remake_waits = longer(work.remake_waits, script.now())
            if not isinstance(error, ModelError):
                raise
            script.log_error("making a summary again", error)
            return
        work.remake_waits = 0, 0.0

    @inlineCallbacks
    def _made(self, record: SummaryRecord) -> Steps[SummaryRecord]:
        """Fires with a summary made of its messages, or of the summaries below it.

        Fails with `ModelError` where no level gives one.
        """
        script, history = self.script, self.script.history
        job = Compaction(script, STALE)
        live = history.messages()
        talk = [message for message in live if not message.is_summary]
        job.cap = summary_cap(script.limits(), live, talk, ())
        if record.segments:
            segments = list(filter(None, map(history.segment, record.segments)))
            if len(segments) < len(record.segments):
                raise ModelError("an archive segment is missing")
            messages = [message for segment in segments for message in segment.messages]
            new = yield job.recent(record.audience, messages)
        else:
            below = list(filter(None, map(history.summary, record.child_ids)))
            new = yield job.merged(record.audience, below, record.tier)
        made_by = {key: new.extra[key] for key in ("model", "prompt_tokens")}
        return replace(
            record,
            text=new.text,
            without=new.without,
            level=new.level,
            coverage=new.coverage,
            unsupported=new.unsupported,
            extra={**record.extra, **made_by},
        )

    def _store(self, former: SummaryRecord, new: SummaryRecord) -> None:
        """Put a summary into the place of its former self, wherever that is shown."""
        script = self.script
        script.runtime.lock.holder()
        history, journal, state = script.history, script.journal, script.state
        synthesis = synthesis_of(new)
        if history.summary(former.id) != former:
            raise ModelError("the summary was changed meanwhile")

        def corrected(entry: JournalEntry) -> JournalEntry:
            if entry.id == synthesis.id and not entry.withdrawn:
                return synthesis
            return entry

        with history.store.transaction():
            script.at_commit_step("remake")
            history.save_summary(new)
            history.replace_talk(history.messages())
            for entry in journal.rewrite(corrected, journal.pages_with([synthesis.id])):
                history.store.on_commit(partial(script.memory.remember_entry, entry))
            above = [
                r.id for r in history.summaries() if new.id in r.child_ids and not r.rolled_back
            ]
            stale = dict.fromkeys([*state.stale, *above])
            state.stale = [key for key in stale if key != new.id]
            if new.text != NOTHING_SAID:
                now = script.now()
                state.remade = [*of_the_day(state.remade, now), now]
            # What was taken back while a model was writing.
            empty_unused(history, state, script.memory.quarantine.lines)
            script.at_commit_step("remade")
