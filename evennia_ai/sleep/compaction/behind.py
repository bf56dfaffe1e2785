"""Compactions behind the ticks of an assistant that is awake: nobody waits for them.

One runs at a time. It takes the turn lock only between turns, and whatever takes the lock for
itself cancels it (`assistant.runtime.Runtime`).
"""

from twisted.internet.defer import CancelledError, inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.protocol import Assistant
from evennia_ai.sleep.compaction.compact import Compaction, due
from evennia_ai.sleep.compaction.due import BACKGROUND, BETTER, COUNT, EMERGENCY, REQUEST
from evennia_ai.sleep.compaction.remake import better_summaries, is_better_due


def better_follows(script: Assistant) -> bool:
    """Whether an emergency is to use the offline extract, as a better summary can follow it.

    Not where the offline model is all there is, nor over a spend limit.
    """
    config = script.config
    own = script.model_name
    models = {own, config.compact_model or own, *config.llm_fallback_models}
    return config.compact_background and models != {OFFLINE_MODEL} and not script.over_spend()


def begin_behind(script: Assistant) -> bool:
    """Begin a compaction in the background if one is due and none runs; returns whether it did.

    Call it when a tick has ended.
    """
    config, runtime = script.config, script.runtime
    if not config.compact_background or runtime.behind is not None:
        return False
    if not (script.ready and script.enabled) or script.state.mode != "awake":
        return False
    if (work := _due(script)) is None:
        return False
    trigger = work if isinstance(work, str) else work.trigger
    runtime.run_behind(lambda: _behind(script, work), trigger)
    return True


def _due(script: Assistant) -> Compaction | str | None:
    """What fires now: a compaction, or better summaries (`BETTER`); None if nothing does."""
    config = script.config
    if (emergency := due(script, EMERGENCY)) and better_follows(script):
        emergency.extracts = True
        return emergency
    if script.is_flooded():
        return None  # model calls wait for a lull
    if is_better_due(script):
        return BETTER
    job = due(script, COUNT, REQUEST, BACKGROUND)
    half = (config.compact_sleep_threshold + config.compact_emergency_threshold) / 2
    is_early = script.runtime.is_called() and script.usage() < half
    if job is None or (job.trigger != COUNT and is_early):
        return None
    script.runtime.compaction_requested = False
    return job


@inlineCallbacks
def _behind(script: Assistant, work: Compaction | str) -> Steps[None]:
    """One compaction; what it fails with is logged."""
    try:
        yield script.breathe()
        if isinstance(work, str):
            yield better_summaries(script, script.between_turns)
        else:
            work.locked = script.between_turns
            yield work.extract_and_run()
    except CancelledError:
        script.runtime.compacted_at = float("-inf")  # nothing came of it: it may begin again
        raise
    except Exception as error:  # noqa: BLE001 - the ticks go on
        script.log_error("compaction in the background", error)
