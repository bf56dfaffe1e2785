"""`aicard`: characters of other programs, in and out."""

import time
from functools import partial

from evennia import search_object

from evennia_ai.background import Steps
from evennia_ai.commands.base import AssistantCommand, named
from evennia_ai.errors import Refusal, only_one
from evennia_ai.game.seeing import is_person
from evennia_ai.services import on_disk
from evennia_ai.staff.bodies import body_class
from evennia_ai.staff.cards import (
    described,
    export_card,
    file_data,
    file_names,
    make_of_card,
    take_card,
    take_chat,
    usable_card,
)


class CmdAICard(AssistantCommand):
    """
    make assistants of character cards, and cards of assistants

    Usage:
      aicard
      aicard/show <file>
      aicard/import <file>[:<typeclass>] [= <name>]
      aicard/export <assistant> [= json, png or charx]
      aicard/chat <assistant> = <file>, <player's character>[, <name in it>]

    Switches:
      show   - what a file holds, what of it is used and what is not
      import - a new assistant in this room, with the persona, greetings,
               examples and lore of a card. If it is here already, it takes the
               card after a question, and keeps its memories
      export - write the card of an assistant into a file. No talk and no
               memory goes along

      chat   - an old talk of this player with the character, from another
               program, into an assistant without a history; private to the two.
               If the character has another name in the file, say it

    Without a switch it lists the files in the folder server/ai_cards of the
    game; the page /ai/cards/ puts them there. PNG, CHARX, JSON and YAML are
    read. What the card tells a model to do (system_prompt) is kept, never used.

    See also: ai, aiconfig
    """

    key = "aicard"
    locks = "cmd:perm(Builder);admin:perm(Admin)"

    def do(self) -> Steps[None]:
        self.show((yield on_disk(file_names)), "There are no files yet.")

    def do_show(self) -> Steps[None]:
        data = yield file_data(self.args)
        _, lines = yield on_disk(described, data, time.time())
        self.show(lines)

    def do_import(self) -> Steps[None]:
        file, _, typeclass = self.lhs.partition(":")
        typeclass, file = body_class(typeclass.strip()), file.strip()
        card = yield usable_card(file, self.rhs or "")
        if named(card.name) is not None:
            script = self.own_assistant(card.name)
            if not self.repeats(f"card {script.pk} {file}"):
                replaced = "persona, examples, greetings and lore are replaced, memories stay"
                raise Refusal(
                    f"{card.name} is here already: its {replaced}. Type it again to confirm."
                )
            return self.show(take_card(script, card, file, self.caller.key))
        self.show(make_of_card(self.caller, card, file, typeclass))

    def do_export(self) -> Steps[None]:
        path = yield export_card(self.own_assistant(), self.rhs or "")
        self.tell(f"Written: {path}")

    def do_chat(self) -> Steps[None]:
        file, name, named, *more = (*map(str.strip, self.words().split(",")), "", "")
        if not name or any(more):
            raise Refusal(self.usage)
        found = [each for each in search_object(name, exact=True) if is_person(each)]
        nobody, many = f"There is no character `{name}`.", "There are several; say the #id."
        person, script = only_one(found, nobody, many), self.own_assistant()
        by = self.caller.key
        take = partial(take_chat, script, person, file, by, named)
        self.show((yield script.run_exclusive(take)))
