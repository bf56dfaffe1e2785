"""`aistatus`: the state of an assistant."""

from evennia_ai.commands.base import AssistantCommand
from evennia_ai.staff.status import status_or_trouble


class CmdAIStatus(AssistantCommand):
    """
    show the state of an assistant

    Usage:
      aistatus [<assistant>]

    Shows what it is doing, how full its context is, what sets its limit and
    when it compacts, what its last prompt contained, what is stored, its last compaction and sleep,
    counters since the server started, and every problem: invalid configuration
    values, limits that do not fit, the last trouble. A trouble with the model is
    cleared when a later turn succeeds. Without a name it means the only
    assistant here.

    See also: ai, aiconfig, aihistory
    """

    key = "aistatus"
    locks = "cmd:perm(Builder)"

    def do(self) -> None:
        self.show(status_or_trouble(self.assistant(self.args)))
