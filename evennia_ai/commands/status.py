"""`aistatus`: the state of an assistant."""

from typing import Any

from evennia_ai.commands.base import AssistantCommand
from evennia_ai.history.messages import utc_iso
from evennia_ai.staff.show import ago, as_records, counted, moment
from evennia_ai.staff.status import UNCONSOLIDATED_SHOWN, facts_or_trouble, status_facts


class CmdAIStatus(AssistantCommand):
    """
    show the state of an assistant

    Usage:
      aistatus [<assistant>]

    Shows what it is doing, how full its context is, what sets its limit and
    when it compacts, what its last prompt contained, what is stored, its last compaction and sleep,
    counters since the server started, and every problem: invalid configuration
    values, caps that do not fit, the last trouble. A trouble with the model is
    cleared when a later turn succeeds. Without a name it means the only
    assistant here.

    See also: ai, aiconfig, aihistory
    """

    key = "aistatus"
    locks = "cmd:perm(Builder)"

    def do(self) -> None:
        """Show the status, a line for each fact."""
        facts = facts_or_trouble(status_facts, self.assistant(self.args))
        self.viewer.page(as_records(status_lines(facts)))


def status_lines(facts: dict[str, Any]) -> list[str]:
    """The facts of `status_facts` as lines for people."""
    if "broken" in facts:
        hint = "`ai/doctor` looks for damaged Attributes; the server log says more."
        return [f"{facts['name']} is broken.", f"Last trouble: {facts['broken']}", hint]
    switched = "yes" if facts["enabled"] else "no (ai/start switches it on)"
    if facts["puppeted"]:
        switched += "; somebody puppets the body, so it does not think"
    if not facts["timer"]:
        switched += "; its timer is stopped"
    counts = ", ".join(f"{name} {count}" for name, count in facts["counts"].items())
    stored, spent = facts["stored"], facts["spent_today"]
    waiting = stored["unconsolidated"]
    more = " or more" if waiting >= UNCONSOLIDATED_SHOWN else ""
    return [
        f"{facts['name']} ({facts['room']})",
        f"Mode: {facts['mode']}" + (f", {facts['phase']}" if facts["phase"] else ""),
        f"Enabled: {switched}",
        f"Model: {facts['model']}",
        f"Tool calls: {facts['tool_protocol']}",
        f"Mind: {facts['mind']}",
        f"Thinking now: {'yes' if facts['thinking'] else 'no'}",
        *_context_lines(facts["context"]),
        f"Messages: {stored['live_messages']} live ({stored['live_tokens']:,} tokens), "
        f"{stored['archived_messages']} archived in "
        f"{counted(stored['archive_segments'], 'segment')}",
        f"Summaries: {stored['summaries']}",
        f"Journal: {stored['journal_entries']} entries, {waiting}{more} not yet consolidated",
        f"Entity profiles: {stored['entity_profiles']}",
        f"Queue: {facts['queue']} heard, not yet thought about",
        *_waiting_lines(facts),
        f"Spent today: {spent['calls']} calls, {spent['tokens']:,} tokens, ${spent['cost']:.4f}",
        *_compaction_lines(facts["last_compaction"]),
        *_sleep_lines(facts["last_sleep"]),
        f"Since the server started: {counts or 'nothing yet'}",
        f"Last trouble: {facts['last_trouble'] or 'none'}"
        + (f" ({ago(facts['last_trouble_age_s'])})" if facts["last_trouble"] else ""),
        *(f"Wrong setting: {problem}" for problem in facts["problems"]),
        *(f"Warning: {warning}" for warning in facts["warnings"]),
    ]


def _waiting_lines(facts: dict[str, Any]) -> list[str]:
    count = facts["waiting_calls"]
    what = f"Waiting for approval: {counted(count, 'call')} (ai/approve {facts['name']})"
    return [what] if count else []


def _context_lines(context: dict[str, Any]) -> list[str]:
    limit = f"{context['limit_tokens']:,} tokens ({context['limit_source']})"
    used = f"{context['usage']:.1%} of {limit}"
    at = ""
    if context["compaction"].startswith("on"):  # else the triggers do not fire
        at = (
            f"; asleep at {context['sleep_threshold']:.0%}, "
            f"at once at {context['emergency_threshold']:.0%}"
        )
    lines = [f"Context: {used}", f"Compaction: {context['compaction']}{at}"]
    lines.append(f"Last prompt: {context['last_prompt'] or 'none since the server started'}")
    if context["left_out"]:
        lines.append(f"Left out of it: {context['left_out']} oldest messages")
    return lines + [f"Note: {note}" for note in context["notes"]]


def _compaction_lines(last: dict[str, Any]) -> list[str]:
    if not last:
        return ["Last compaction: never"]
    head = f"Last compaction: {moment(last['at'])}"
    tokens = f"{last['original_tokens']:,} to {last['new_tokens']:,} tokens"
    if last["level"] == "masked":
        outputs = counted(last["masked_messages"], "old tool output")
        return [f"{head}, {outputs} masked, {tokens}, nothing summarised"]
    messages = counted(last["compacted_messages"], "message")
    made = f"level {last['level']}, summary {last['summary_id']}"
    return [f"{head}, {messages}, {tokens}, {made}"]


def _sleep_lines(last: dict[str, Any]) -> list[str]:
    if not last:
        return ["Last sleep: never"]
    lines = [f"Last sleep: {moment(utc_iso(last.get('at', 0)))}"]
    for name, entry in last.get("steps", {}).items():
        if not entry.get("success", True):
            outcome = f"failed: {entry.get('error', 'no reason given')}"
        elif entry.get("skipped"):
            outcome = f"skipped: {entry.get('reason', '')}"
        else:
            hidden = ("success", "skipped", "token_usage", "summary_ids")
            figures = (f"{key} {value}" for key, value in entry.items() if key not in hidden)
            outcome = ", ".join(figures) or "done"
        lines.append(f"  {name}: {outcome}")
    return lines
