"""`airemember`: notes a player wants an assistant to keep in mind always."""

from evennia_ai.commands.base import AssistantCommand
from evennia_ai.game.seeing import speaker_of, stable_id
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.rag_memory.ledger import FACT, PROPOSED, RULE, WITHDRAWN, Note, living_of
from evennia_ai.staff.acts import note_called
from evennia_ai.staff.show import audience_mark, escaped, moment


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
        if self.rhs:
            return self.do_rule(FACT)
        notes, name = self._notes(), self.assistant().obj.key
        head = f"What {name} never forgets about you ({len(notes)}):"
        self.listing(notes[::-1], note_text, head, f"{name} has no notes about you.")

    def do_rule(self, kind: str = RULE) -> None:
        """Add a note of a kind, for all or between the two; what staff write is for all."""
        text, acts = self.words(), self.acts()
        is_public = self.switch == "public" or (self.is_admin and self.switch != "private")
        note = acts.note(text, kind, is_public, self.is_admin)
        shown = f"({note.id}, {note.kind}): {note.text}"
        answer = f"{acts.script.own_name} will keep this in mind {shown}"
        if note.state == PROPOSED:
            answer = f"Proposed {shown}\nIt waits until staff approve it."
        elif note.audience != PUBLIC:
            answer += "\nIt stays between the two of you."
        self.tell(answer)

    def do_public(self) -> None:
        """Add a note for all, or for the two alone by that switch."""
        self.do_rule(FACT)

    do_private = do_public

    def do_forget(self) -> None:
        note, script = note_called(self._notes(), self.words()), self.assistant()
        script.ledger.change(note.id, WITHDRAWN, speaker_of(self.caller, script.obj))
        self.tell(f"{script.own_name} no longer uses note {note.id}.")

    def _notes(self) -> list[Note]:
        """The caller's notes."""
        own = stable_id(self.caller)
        return living_of(self.assistant().seen(private([own])).notes(), own)


def note_text(note: Note) -> str:
    """One note: id, state, type, when, by whom, and its words."""
    by = f"{moment(note.at)} by {note.by.key}"
    if note.decided_by:
        by += f", {note.state} by {note.decided_by.key}"
    if note.superseded_by:
        by += f" (now {note.superseded_by})"
    head = f"{note.id} {note.state} {note.kind}, {by}"
    return escaped(f"{head}: {audience_mark(note.audience)}{note.text}")
