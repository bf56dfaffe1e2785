"""Compactions behind the ticks of an assistant that is awake: nobody waits for them.

One runs at a time. It takes the turn lock only between turns, and whatever takes the lock for
itself cancels it (`assistant.runtime.Runtime`).
"""

from collections.abc import Generator
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks

from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL, context_usage
from evennia_ai.protocol import Assistant, Character
from evennia_ai.sleep.compaction.better import better_summaries, is_better_due
from evennia_ai.sleep.compaction.compact import compact_conversation_history, extract_first
from evennia_ai.sleep.compaction.triggers import (
    count_fires,
    is_held_up,
    make_plan,
    wants_compaction,
    worth_a_try,
)

EMERGENCY = "emergency"


def better_follows(script: Assistant) -> bool:
    """Whether an emergency is to use the offline extract, as a better summary can follow it.

    Not where the offline model is all there is, nor over a spend cap.
    """
    config = script.config
    models = {script.model_name, config.compact_model or script.model_name}
    return config.compact_background and models != {OFFLINE_MODEL} and not script.over_spend()


def begin_behind(script: Assistant, character: Character) -> bool:
    """Begin a compaction in the background if one is due and none runs; returns whether it did.

    Call it when a tick has ended.
    """
    config, runtime = script.config, script.runtime
    if not config.compact_background or runtime.behind is not None:
        return False
    if not (script.ready and script.enabled) or script.state.mode != "awake":
        return False
    trigger = _due(script)
    if not trigger:
        return False
    runtime.run_behind(lambda: _behind(script, character, trigger), trigger)
    return True


def _due(script: Assistant) -> str:
    """What fires now; empty if nothing does."""
    config, runtime = script.config, script.runtime
    asleep, awake = config.compact_sleep_threshold, config.compact_emergency_threshold
    asked, by_count = runtime.compaction_requested, count_fires(script)
    if is_emergency_due(script):
        return EMERGENCY
    if script.is_flooded():
        return ""  # model calls wait for a lull
    if is_better_due(script):
        return "better"
    if not wants_compaction(script, asleep):
        runtime.compaction_requested = False
        return ""
    share = context_usage(script)
    if script.is_called() and not by_count and share < (asleep + awake) / 2:
        return ""
    messages, known = script.history.messages(), runtime.nothing_due
    if known is not None and known[0] is messages and known[1] is config:
        return ""
    plan = make_plan(script, automatic=True)
    is_vain = not worth_a_try(script, asleep) or is_held_up(script, asleep, plan)
    if plan.empty or (is_vain and not by_count):
        runtime.nothing_due = messages, config
        return ""
    runtime.compaction_requested = False
    return "request" if asked else "count" if by_count and share < asleep else "background"


def is_emergency_due(script: Assistant) -> bool:
    """Whether the context is so full that room is made at once, without waiting for a line."""
    threshold = script.config.compact_emergency_threshold
    if not wants_compaction(script, threshold, by_count=False) or not better_follows(script):
        return False
    messages, known = script.history.messages(), script.runtime.nothing_due
    if known is not None and known[0] is messages and known[1] is script.config:
        return False
    plan = make_plan(script, automatic=False, threshold=threshold)
    is_vain = not worth_a_try(script, threshold) or is_held_up(script, threshold, plan)
    return not (plan.empty or is_vain)


@inlineCallbacks
def _behind(
    script: Assistant, character: Character, trigger: str
) -> Generator[Deferred[Any], Any, None]:
    """One compaction; what it fails with is logged."""
    try:
        yield script.breathe()
        if trigger == "better":
            yield better_summaries(script, character, beside=True)
            return
        if trigger == EMERGENCY:
            yield compact_conversation_history(
                script,
                character,
                force=True,
                threshold=script.config.compact_emergency_threshold,
                trigger=EMERGENCY,
                beside=True,
                extracts=True,
            )
            return
        threshold = script.config.compact_sleep_threshold
        most = script.config.pre_compact_max_iterations
        plan = make_plan(script, automatic=True)
        yield script.breathe()
        yield extract_first(script, character, plan, threshold, most, trigger, beside=True)
        yield script.breathe()
        yield compact_conversation_history(script, character, trigger=trigger, beside=True)
    except CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - the ticks go on
        script.log_error("compaction in the background", error)
