"""`aibudget`: what an assistant's prompts hold."""

from evennia_ai.commands.base import AssistantCommand
from evennia_ai.llm_interaction.prompt import draft_prompt
from evennia_ai.staff.show import request_lines
from evennia_ai.turns.tools.memory import newest_turn


class CmdAIBudget(AssistantCommand):
    """
    show what an assistant's prompts hold

    Usage:
      aibudget [<assistant>]

    Shows the tokens of each region in the prompt of the newest turn, their
    total, and the limit. Reserve is the room kept for the reply. What was said
    is not shown. Without a name it means the only assistant here.

    The newest requests, what takes the most room, and what can be done about
    it are on the assistant's page 'Budget' of the web site.

    See also: aistatus, aiconfig, compact, ai/why
    """

    key = "aibudget"
    locks = "cmd:perm(Builder);admin:perm(Admin)"

    def do(self) -> None:
        script = self.assistant()
        event = newest_turn(script.seen(self.audience))
        if event is None:
            budget = draft_prompt(script).budget
            lines = [str(budget), "No turn was logged yet: this is what the next prompt holds."]
            return self.show(lines + [f"Note: {note}" for note in budget.notes])
        self.show(request_lines(event))
