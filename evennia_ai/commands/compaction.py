"""`compact`: compact an assistant's history, roll back, verify, switch on and off."""

from evennia_ai.background import Steps
from evennia_ai.commands.base import AssistantCommand
from evennia_ai.errors import Refusal
from evennia_ai.history.verification import verify
from evennia_ai.sleep.compaction.compact import Skipped
from evennia_ai.sleep.compaction.rollback import latest, rollback_compaction
from evennia_ai.staff.acts import outcome_line
from evennia_ai.staff.show import counted, moment
from evennia_ai.staff.status import compaction_state


class CmdCompact(AssistantCommand):
    """
    summarise the older part of an assistant's history

    Usage:
      compact [<assistant>] [= <instructions for the summary>]
      compact/rollback [<assistant>] [= yes]
      compact/verify [<assistant>]
      compact/on [<assistant>]
      compact/off [<assistant>]

    Switches:
      rollback - undo the latest compaction; says first what that would do
      verify   - prove that no message was lost, or name what is wrong
      on       - allow compaction, by command and automatically
      off      - stop all compaction; the raw history is shown as far as it fits

    Nothing is lost: the messages that leave are archived word for word, see
    'aihistory/expand'. The newest messages stay as they are (the option
    compact_preserve_window), and so does private talk that is too short for a
    summary. Before it compacts, the assistant saves facts into its journal. If
    it is in the middle of a turn, compaction starts when the turn ends.

    A rollback makes the messages live again. Automatic compaction then waits
    until you compact by hand or the context is full. A rollback takes no id:
    you can undo only the latest compaction, then the one before it. To confirm
    it, type the command again with '= yes' within a minute.

    '@compact-memories' does the same; without a name it is the only assistant here.

    See also: aihistory, aistatus, aiconfig
    """

    key = "compact"
    aliases = ("@compact-memories",)
    admin_switches = ("", "rollback", "verify", "on", "off")

    def do(self) -> Steps[None]:
        acts = self.acts()
        script, name = acts.script, acts.script.own_name
        if not script.config.compact_enabled:
            raise Refusal(outcome_line(name, Skipped("compaction disabled")))
        begins = f"{name} begins to compact its history"
        if script.runtime.lock.running is not None:
            begins += " when its turn is over"
        self.tell(f"{begins}.")
        self.tell((yield acts.compacted(self.rhs or None)))

    def do_rollback(self) -> Steps[None]:
        script = self.assistant()
        record = latest(script.history)
        if left := record.report.compacted_messages:
            undone = f"{counted(left, 'message')} would be live again."
        else:
            masked = counted(len(record.masked), "old tool output")
            undone = f"{masked} would be shown in full again."
        question = f"Take back the compaction of {moment(record.at)} (UTC)? {undone}"
        name = script.own_name
        if not self.confirms(f"rollback {record.id}", question, self.lhs or name):
            return
        # Refused if it is not the latest any more once the turn is over.
        report = yield script.run_exclusive(lambda: rollback_compaction(script, record.id))
        text = (
            f"Taken back: compaction {record.id} of {name}, which is at {report['new_tokens']:,} "
            f"tokens again. Compaction of {name}: {compaction_state(script)}."
        )
        script.log(text)
        self.tell(text)

    def do_verify(self) -> Steps[None]:
        script = self.assistant()
        evidence = yield script.history.gathered_evidence()
        violations = yield script.mind.work(verify, evidence)
        name, (count, _) = script.own_name, script.history.recorded
        segments = counted(script.history.segment_count(), "archive segment")
        lines = [f"{each.kind}: {each.detail}" for each in violations]
        head = f"{name}: {counted(len(lines), 'violation')}:"
        if not lines:
            head = (
                f"{name}: proven. Every message ever recorded ({count:,}) is live or in the "
                f"archive ({segments}), and its checksum matches."
            )
        self.show([head, *lines])

    def do_on(self) -> None:
        """Switch compaction on, or off by that switch."""
        script = self.assistant()
        script.state.configure({"compact_enabled": self.switch == "on"})
        script.log(f"{self.caller.key} switches compaction {self.switch}")
        text = f"Compaction of {script.own_name}: {compaction_state(script)}."
        if self.switch == "off":
            text += " What does not fit its context is left out of its prompt, and stays stored."
        self.tell(text)

    do_off = do_on
