"""Work on summaries behind the ticks: nobody waits for it.

One piece runs at a time: a compaction of an assistant that is awake, or a stale summary that is
made again. It takes the turn lock only between turns, and whatever takes the lock for itself
cancels it (`assistant.runtime.Runtime`).
"""

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.protocol import Assistant
from evennia_ai.sleep.compaction.compact import Compaction, Outcome, Skipped, due
from evennia_ai.sleep.compaction.plan import BACKGROUND, COUNT, EMERGENCY, REQUEST, STALE
from evennia_ai.sleep.compaction.remake import is_stale_due, remake_next


def begin_behind(script: Assistant) -> bool:
    """Begin work in the background if some is due and none runs; returns whether it did.

    Call it when a tick has ended.
    """
    if script.runtime.behind is not None or not (script.ready and script.enabled):
        return False
    if (job := _due(script)) is not None:
        compact_behind(script, job)
        return True
    if not is_stale_due(script):
        return False
    _run(script, STALE, lambda: remake_next(script))
    return True


def compact_behind(script: Assistant, job: Compaction) -> None:
    """Begin a compaction in the background, in the place of what runs there."""
    script.runtime.stop_behind()
    job.noted, job.is_awaited = True, False
    _run(script, job.trigger, job.run)


def compact_asleep(script: Assistant, job: Compaction) -> "Deferred[Outcome]":
    """Run a compaction for which a sleeper waits; fires with its outcome.

    Once somebody speaks to the sleeper it fires with `Skipped`, so that it wakes, and the
    compaction goes on in the background.
    """
    runtime = script.runtime

    def stopped(_: object) -> None:
        runtime.stop_behind()

    waiting: Deferred[Outcome] = Deferred(stopped)

    def called() -> None:
        job.is_awaited = False
        if not waiting.called:
            waiting.callback(Skipped("it goes on in the background, as somebody spoke"))

    def ended(result: Any) -> Any:
        if runtime.on_call is called:
            runtime.on_call = None
        if waiting.called:
            return result
        waiting.callback(result)
        return None

    runtime.stop_behind()
    runtime.on_call = called
    _run(script, job.trigger, lambda: job.run().addBoth(ended))
    if runtime.behind is not None:
        runtime.behind[0].addErrback(ended)  # stopped before it began
    return waiting


def _due(script: Assistant) -> Compaction | None:
    """The compaction that fires now; all but an emergency wait for a lull."""
    config = script.config
    if not config.compact_background or script.state.mode != "awake":
        return None
    if emergency := due(script, EMERGENCY):
        return emergency
    job = due(script, COUNT, REQUEST, BACKGROUND)
    half = (config.compact_sleep_threshold + config.compact_emergency_threshold) / 2
    is_early = script.runtime.is_called() and script.usage() < half
    return None if job is not None and job.trigger != COUNT and is_early else job


def _run(script: Assistant, trigger: str, work: Callable[[], Deferred[Any]]) -> None:
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

    script.runtime.run_behind(run, trigger)
