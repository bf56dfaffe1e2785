"""`aijournal`: what an assistant found worth keeping."""

from evennia_ai.commands.base import AssistantCommand
from evennia_ai.history.frames import SYNTHESIS_TITLE
from evennia_ai.rag_memory.journal_entry import JournalEntry
from evennia_ai.staff.show import Slices, as_record, audience_mark, moment


class CmdAIJournal(AssistantCommand):
    """
    read an assistant's journal

    Usage:
      aijournal [<assistant>]

    The newest entries come first, each with its time, its id, its importance
    from 1 to 10 and, if it is not public, who may know it. The assistant no
    longer finds an entry marked withdrawn.

    To search it, type: aimemory <assistant> = <words>

    See also: aimemory, aihistory
    """

    key = "aijournal"

    def do(self) -> None:
        script = self.assistant()
        name, count = script.obj.key, script.obj.journal.count()
        entries = Slices(count, self.seen(script).stretch)
        head = f"Journal of {name}, newest first, {count}:"
        empty = f"There is nothing in the journal of {name} yet."
        self.listing(entries, entry_line, head, empty)


def entry_line(entry: JournalEntry) -> str:
    """One entry: time, id, importance, audience, text."""
    mark = ("withdrawn: " if entry.withdrawn else "") + audience_mark(entry.audience)
    head = f"{moment(entry.timestamp)} {entry.id} importance {entry.importance}"
    text = entry.content.removeprefix(SYNTHESIS_TITLE).lstrip()
    return as_record(f"{head}: {mark}{text.partition(chr(10))[0] if entry.withdrawn else text}")
