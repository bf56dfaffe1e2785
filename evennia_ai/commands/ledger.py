"""`airemember`: notes a player wants an assistant to keep in mind always."""

from evennia_ai.assistant_script import AssistantScript
from evennia_ai.commands.base import AssistantCommand
from evennia_ai.game.seeing import speaker_of, stable_id
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.rag_memory.ledger import (
    APPROVED,
    FACT,
    PROPOSED,
    RULE,
    WITHDRAWN,
    Note,
    living_of,
    people_named,
)
from evennia_ai.staff.acts import note_called
from evennia_ai.staff.show import audience_mark, escaped, moment
from evennia_ai.turns.tools.journal import report_proposal


class CmdAIRemember(AssistantCommand):
    """
    give an assistant a note that it never forgets

    Usage:
      airemember <assistant> = <text>
      airemember/public <assistant> = <text>
      airemember/private <assistant> = <text>
      airemember/rule <assistant> = <text>
      airemember <assistant>
      airemember/forget <assistant> = <id>

    Switches:
      public  - ask staff to let it tell the note to anyone
      private - keep the note between the two of you, as without a switch
      rule    - a note that stands before your others
      forget  - withdraw one of your notes

    A note is private: the assistant sees it whenever it talks with you alone,
    by whisper or page, and tells it to nobody else. It is valid at once. A
    public note is seen in every talk and waits until staff approve it. Notes
    of staff are public, unless they say otherwise, and valid at once. A private
    note takes the place of your public one of the same words. You may have 30
    notes. Without a text, the command lists your notes.

    See also: aierrand, aiforget
    """

    key = "airemember"
    locks = "cmd:all();admin:perm(Admin)"

    def do(self) -> None:
        script = self.assistant()
        if self.rhs:
            return self._add(script, self.rhs, is_public=self.is_admin)
        own, name = stable_id(self.caller), script.obj.key
        notes = living_of(script.seen(private([own])).notes(), own)
        head = f"What {name} never forgets about you ({len(notes)}):"
        self.listing(notes[::-1], note_text, head, f"{name} has no notes about you.")

    def do_private(self) -> None:
        text = self.words()
        self._add(self.assistant(), text, is_public=False)

    def do_public(self) -> None:
        text = self.words()
        self._add(self.assistant(), text, is_public=True)

    def do_rule(self) -> None:
        text = self.words()
        self._add(self.assistant(), text, is_public=self.is_admin, kind=RULE)

    def do_forget(self) -> None:
        wanted = self.words()
        script, own = self.assistant(), stable_id(self.caller)
        note = note_called(living_of(script.seen(private([own])).notes(), own), wanted)
        script.ledger.change(note.id, WITHDRAWN, speaker_of(self.caller, script.obj))
        self.tell(f"{script.obj.key} no longer uses note {note.id}.")

    def _add(self, script: AssistantScript, text: str, is_public: bool, kind: str = FACT) -> None:
        by = speaker_of(self.caller, script.obj)
        waits = is_public and not self.is_admin
        named = people_named(text, script.game.people_in(text))
        note = script.ledger.add(
            text,
            by,
            state=PROPOSED if waits else APPROVED,
            kind=kind,
            staff=is_public and not waits,
            about=named if is_public else [by.id],
            audience=PUBLIC if is_public else private([by.id]),
        )
        shown = f"({note.id}, {note.kind}): {note.text}"
        if note.state == PROPOSED:
            report_proposal(script, note)
            answer = f"Proposed {shown}\nIt waits until staff approve it."
        else:
            between = "" if note.audience == PUBLIC else "\nIt stays between the two of you."
            answer = f"{script.obj.key} will keep this in mind {shown}{between}"
        self.tell(answer)


def note_text(note: Note) -> str:
    """One note: id, state, type, when, by whom, and its words."""
    by = f"{moment(note.at)} by {note.by.key}"
    if note.decided_by:
        by += f", {note.state} by {note.decided_by.key}"
    if note.superseded_by:
        by += f" (now {note.superseded_by})"
    head = f"{note.id} {note.state} {note.kind}, {by}"
    return escaped(f"{head}: {audience_mark(note.audience)}{note.text}")
