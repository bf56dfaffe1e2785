"""`aijournal`: what an assistant found worth keeping."""

from collections.abc import Iterator, Sequence

from twisted.internet.task import cooperate

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.commands.base import AssistantCommand
from evennia_ai.history.frames import SYNTHESIS_TITLE
from evennia_ai.rag_memory.journal_entry import JournalEntry
from evennia_ai.staff.show import Slices, as_record, audience_mark, moment

_SLICE = 50


class CmdAIJournal(AssistantCommand):
    """
    read an assistant's journal

    Usage:
      aijournal [<assistant>]
      aijournal/search [<assistant>] = <words>

    Switches:
      search - entries that hold all of these words

    The newest entries come first, each with its time, its id, its importance
    from 1 to 10 and, if it is not public, who may know it. The assistant no
    longer finds an entry marked withdrawn.

    See also: aimemory, aihistory
    """

    key = "aijournal"
    locks = "cmd:perm(Admin);admin:perm(Admin)"
    switches_known = ("search",)

    def do(self) -> None:
        script = self.assistant()
        count = script.obj.journal.count()
        self._list(script, Slices(count, self.seen(script).stretch), f"{count}")

    def do_search(self) -> None:
        script = self.assistant()
        words = self.words("aijournal/search <assistant> = <words>")
        found: list[JournalEntry] = []

        def search() -> Iterator[None]:
            for number, entry in enumerate(self.seen(script).every_entry()):
                text = entry.content.lower() if entry else ""
                if entry and all(word in text for word in words.lower().split()):
                    found.append(entry)
                if number % _SLICE == 0:
                    yield  # to the reactor

        def tell(_: object) -> None:
            entries = sorted(found, key=lambda e: e.timestamp, reverse=True)
            self._list(script, entries, f"with `{words}`: {len(entries)}")

        self.viewer.later(cooperate(search()).whenDone(), tell, "The search")

    def _list(self, script: AssistantScript, entries: Sequence[JournalEntry], which: str) -> None:
        name = script.obj.key
        head = f"Journal of {name}, newest first, {which}:"
        empty = f"There is nothing in the journal of {name}"
        empty += f" {which.split(':')[0]}." if which.startswith("with") else " yet."
        self.viewer.listing(entries, entry_line, head, empty)


def entry_line(entry: JournalEntry) -> str:
    """One entry: time, id, importance, audience, text."""
    mark = ("withdrawn: " if entry.withdrawn else "") + audience_mark(entry.audience)
    head = f"{moment(entry.timestamp)} {entry.id} importance {entry.importance}"
    text = entry.content.removeprefix(SYNTHESIS_TITLE).lstrip()
    return as_record(f"{head}: {mark}{text.partition(chr(10))[0] if entry.withdrawn else text}")
