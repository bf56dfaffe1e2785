"""`aibudget`: what an assistant's prompts hold, and what takes the most."""

from evennia_ai.commands.base import AssistantCommand
from evennia_ai.history.messages import utc_iso
from evennia_ai.llm_interaction.contributors import contributors, newest_turn
from evennia_ai.llm_interaction.prompt import draft_prompt
from evennia_ai.staff.show import (
    as_record,
    audience_mark,
    counted,
    cuts,
    escaped,
    moment,
    request_text,
)

SHOWN = 20


class CmdAIBudget(AssistantCommand):
    """
    show what an assistant's prompts hold

    Usage:
      aibudget [<assistant>]
      aibudget/log [<assistant>]
      aibudget/contributors [<assistant>]

    Switches:
      log          - the newest requests to its model: when, what for, tokens of
                     each region, what was left out and why, what started the
                     compaction that a summary belongs to, tokens in and out,
                     those of them that the provider had cached, and the cost
      contributors - the regions, messages, notes and tools that take the most,
                     with what can be done about each

    Without a switch it shows the tokens of each region in the prompt of the
    newest turn, their total, and the limit. Reserve is the room kept for the
    reply. No command of this family shows what was said. Without a name it
    means the only assistant here.

    See also: aistatus, aiconfig, compact, ai/why
    """

    key = "aibudget"
    locks = "cmd:perm(Builder);admin:perm(Admin)"

    def do(self) -> None:
        script = self.assistant()
        event = newest_turn(script, self.audience)
        if event is None:
            budget = draft_prompt(script, script.obj).budget
            lines = [str(budget), "No turn was logged yet: this is what the next prompt holds."]
            return self.tell_records(lines + [f"Note: {note}" for note in budget.notes])
        lines = [str(event), f"{moment(utc_iso(event.at))} UTC, model {event.model}", *cuts(event)]
        self.tell_records(lines)

    def do_log(self) -> None:
        script = self.assistant()
        newest, name = self.seen(script).requests()[::-1][:SHOWN], script.obj.key
        head = f"The newest {counted(len(newest), 'request')} of {name}, newest first (UTC):"
        self.listing(
            newest,
            lambda event: as_record(request_text(event)),
            head,
            f"{name} has asked no model yet.",
        )

    def do_contributors(self) -> None:
        script = self.assistant()
        found = contributors(script, self.audience)
        heads = ("What", "Id", "Tokens", "What can be done")
        rows = [
            (f"{audience_mark(e.audience)}{e.what}", e.id, f"{e.tokens:,}", e.advice) for e in found
        ]
        head = escaped(f"What takes the most of {script.obj.key}'s context:")
        self.page(f"{head}\n{self.table(heads, rows)}")
