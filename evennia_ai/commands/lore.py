"""`ailore`: facts of the world, who knows them, and who may hear them."""

import re

from evennia_ai.background import Steps
from evennia_ai.cards.books import read_book
from evennia_ai.commands.base import AssistantCommand
from evennia_ai.errors import Refusal
from evennia_ai.game.lore import lore
from evennia_ai.game.seeing import stable_id
from evennia_ai.services import on_disk
from evennia_ai.staff import lore as acts
from evennia_ai.staff.cards import card_contents, export_book
from evennia_ai.staff.show import as_record, counted, phrase


class CmdAILore(AssistantCommand):
    """
    facts of the world that assistants know

    Usage:
      ailore
      ailore/list <book>
      ailore/add <book> = <keys>: <text>
      ailore/know <id or book> = everybody, <assistant>, here or <lock>
      ailore/tell <id or book> = everybody or <lock>
      ailore/on <id or book>
      ailore/off <id or book>
      ailore/delete <id or book> [= yes]
      ailore/import <file> [= <book>]
      ailore/export <book>
      ailore/test <assistant> = <line>

    Switches:
      list   - the facts of a book
      add    - a fact, found when one of its keys (words or phrases, separated by
               commas) is said in any form; makes the book if there is none
      know   - which assistants know it: by a lock, as tag(guard) or tag(thief),
               checked on the assistant; 'here': who is or lives in this room
      tell   - who may hear it: a lock, as tag(smuggler), checked on the people.
               Such a fact is used in whispers, pages and private rooms alone,
               where everybody passes
      off    - use it no more; on - use it again
      import - the lorebook of another program, from server/ai_cards
      export - write a book into that folder
      test   - what a line finds, by which key, and why the rest is not used;
               also of help entries and rooms that its option 'knows' names

    See also: aicard, aiconfig
    """

    key = "ailore"
    locks = "cmd:perm(Builder);admin:perm(Admin)"

    def do(self) -> None:
        books = lore().books().values()
        rows = [
            f"{b.name}: {counted(len(b.facts), 'fact')}, known to {acts.know_text(b.know)}"
            for b in books
        ]
        self.show(rows, "There is no lore yet. See: help ailore")

    def do_list(self) -> None:
        book = acts.book_named(self.args)
        told = phrase(", told to {}", book.tell)
        head = f"{book.name}, known to {acts.know_text(book.know)}{told}:"
        self.listing(book.facts, lambda fact: as_record(acts.fact_line(fact)), head, head)

    def do_add(self) -> None:
        keys, colon, text = self.words().partition(":")
        if not colon:
            raise Refusal(self.usage)
        fact = acts.add_fact(self.lhs, keys, text, stable_id(self.caller))
        self.tell(f"Added: {acts.fact_line(fact)}")

    def do_know(self) -> None:
        self.tell(acts.set_know(self.lhs, self.words(), getattr(self.caller, "location", None)))

    def do_tell(self) -> None:
        self.tell(acts.set_tell(self.lhs, self.words()))

    def do_on(self) -> None:
        """Use it again, or no more by that switch."""
        self.tell(acts.change(self.args, on=self.switch == "on"))

    do_off = do_on

    def do_delete(self) -> None:
        book, fact = acts.place_of(self.lhs)
        what = (
            acts.fact_line(fact)
            if fact
            else f"the book {book.name} of {counted(len(book.facts), 'fact')}"
        )
        if self.confirms(f"lore {self.lhs}", f"Delete {what}?", self.lhs):
            self.tell(acts.delete(self.lhs))

    def do_import(self) -> Steps[None]:
        contents = yield card_contents(self.lhs)
        read, said = yield on_disk(read_book, contents.value)
        stem = re.sub(r"[=:/,.]", " ", self.lhs.rpartition(".")[0])
        name = (self.rhs or read.name or stem).strip()
        if name.lower() in lore().books() and not self.repeats(f"book {name} {self.lhs}"):
            raise Refusal(f"There is a book {name} already. Type it again to replace its facts.")
        book, notes = acts.take_book(read, acts.book_for(name), self.lhs)
        self.show([f"{book.name}: {said[0]}.", *notes, *said[1:]])

    def do_export(self) -> Steps[None]:
        path = yield export_book(acts.book_named(self.args))
        self.tell(f"Written: {path}")

    def do_test(self) -> Steps[None]:
        lines = yield acts.found_lines(self.assistant().obj, self.words())
        self.show(lines)
