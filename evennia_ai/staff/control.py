"""What staff switch at an assistant, for `ai`, `compact` and the page of its state."""

from twisted.internet.defer import inlineCallbacks

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.background import Steps
from evennia_ai.errors import Refusal
from evennia_ai.sleep.compaction.compact import (
    Compaction,
    Done,
    Failed,
    Outcome,
    Skipped,
    report_line,
)
from evennia_ai.sleep.compaction.plan import MANUAL
from evennia_ai.staff.show import counted

_REASONS = {
    "compaction disabled": "compaction is off; compact/on switches it on",
    "no history": "it has no history yet",
    "history within preserve window": "all of its history lies within the kept lines",
}


def switch(script: AssistantScript, on: bool) -> str:
    """Switch it on, or off with the turn that it thinks about; returns a sentence."""
    name = script.obj.key
    script.store.set("enabled", on)
    if on:
        if not script.is_active:
            script.start()
        return f"{name} is switched on."
    cancelled = " Its current turn is cancelled." if script.stop_thinking() else ""
    script.runtime.give_up()
    script.save_queue()
    return f"{name} is switched off.{cancelled} It still hears what is said."


def put_to_sleep(script: AssistantScript, sleeps: bool) -> str:
    """Send it to sleep, or wake it; returns a sentence."""
    name = script.obj.key
    if (script.state.mode == "sleep") == sleeps:
        raise Refusal(f"{name} is {'asleep' if sleeps else 'awake'} already.")
    act, says = (script.fall_asleep, "falls asleep") if sleeps else (script.wake, "wakes up")
    act()
    off = "" if script.enabled else " (It is switched off and does not think.)"
    return f"{name} {says}.{off}"


@inlineCallbacks
def compact_now(
    script: AssistantScript, instructions: str | None = None
) -> Steps[tuple[Outcome, str]]:
    """A manual compaction, whose models note facts, too.

    Over the spend limit there are no notes, and the summary is extractive. A pause after a rollback
    also ends if there is nothing to compact, but not if the compaction fails. Fires with the
    outcome and a sentence on what else was done.
    """
    job = Compaction(script, MANUAL, instructions=instructions, noted=True)
    outcome = yield job.run()
    if isinstance(outcome, Skipped) and script.config.compact_enabled and script.state.hold:
        script.state.hold = False
        return outcome, " The pause after the rollback is over."
    facts = counted(job.facts, "entry")
    return outcome, f" Saved into the journal: {facts}." if job.facts else ""


def outcome_line(name: str, outcome: Outcome) -> str:
    """The outcome of a compaction, in a sentence."""
    if isinstance(outcome, Done):
        return report_line(name, outcome.record)
    if isinstance(outcome, Failed):
        why = f"summary generation failed ({outcome.detail})"
        return f"{name} did not compact: {why}. Nothing was changed."
    return f"{name} did not compact: {_REASONS.get(outcome.reason, outcome.reason)}."
