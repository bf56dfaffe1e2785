"""The pages of character cards and of lore: what builders without a shell need."""

import re
import time

from twisted.internet.defer import inlineCallbacks

from evennia_ai.assistant_character import BODY
from evennia_ai.assistant_script import all_assistants
from evennia_ai.background import Steps
from evennia_ai.cards.container import FILE_BYTES, PNG
from evennia_ai.errors import Refusal
from evennia_ai.game.lore import lore
from evennia_ai.game.seeing import stable_id
from evennia_ai.services import on_disk
from evennia_ai.staff.cards import (
    described,
    file_data,
    file_names,
    keep_file,
    make_of_card,
    usable_card,
)
from evennia_ai.staff.lore import add_fact, change, fact_line, found_lines, know_text
from evennia_ai.web.site import Shown, Visit


@inlineCallbacks
def cards(visit: Visit) -> Steps[Shown]:
    """The files in the folder of cards, and what one of them holds."""
    names, chosen = (yield on_disk(file_names)), visit.asked.get("file", "")
    kind, lines = "", list[str]()
    if chosen:
        data = yield file_data(chosen)
        kind, lines = yield on_disk(described, data, time.time())
    return {"names": names, "chosen": chosen, "kind": kind, "lines": lines}


@inlineCallbacks
def picture(visit: Visit) -> Steps[bytes]:
    """The picture that a card came in."""
    data: bytes = yield file_data(visit.asked.get("file", ""))
    if not data.startswith(PNG):
        raise Refusal("This file is no PNG.")
    return data


@inlineCallbacks
def change_cards(visit: Visit) -> Steps[str]:
    """Keep a file that was sent, or make an assistant of one; fires with a sentence."""
    if visit.sent["act"] == "upload":
        kept: str = yield take_file(visit)
        return kept
    file = visit.sent.get("file", "")
    bodies = (body for body in visit.account.get_all_puppets() if body.location)
    maker = next(bodies, None)
    if maker is None:
        raise Refusal("Go into the game first: the new assistant stands where your character is.")
    card = yield usable_card(file, visit.sent.get("name", "").strip())
    return " ".join(make_of_card(maker, card, file, BODY)[:1]) + f" It is in {maker.location.key}."


@inlineCallbacks
def take_file(visit: Visit) -> Steps[str]:
    """Keep a file that was sent, if it is one to be imported; fires with a sentence."""
    name, data = next(iter(visit.files.items()), ("", b""))
    if not data:
        raise Refusal("Choose a file first.")
    if len(data) > FILE_BYTES:
        raise Refusal(f"The file is larger than {FILE_BYTES:,} bytes.")
    name = re.sub(r"[^\w. -]+", "_", name).lstrip(". ")[-80:]
    yield on_disk(described, data, time.time(), "any name")
    path = yield keep_file(name, data)
    return f"{path.name} is there. Look at it here: the page says how it is taken in."


@inlineCallbacks
def books(visit: Visit) -> Steps[Shown]:
    """All books with their facts, and what a line would find."""
    scripts = all_assistants()
    asked, line = visit.asked.get("assistant", ""), visit.asked.get("q", "").strip()[:400]
    script = next((each for each in scripts if str(each.pk) == asked), None)
    lines = list[str]()
    if script is not None and line:
        lines = yield found_lines(script.obj, line)
    shown = [
        {
            "name": book.name,
            "know": know_text(book.know),
            "tell": book.tell,
            "facts": [{"id": f.id, "line": fact_line(f), "on": f.on} for f in book.facts],
        }
        for book in lore().books().values()
    ]
    names = [(str(each.pk), each.own_name) for each in scripts]
    return {"books": shown, "names": names, "asked": asked, "q": line, "lines": lines}


def change_books(visit: Visit) -> str:
    """Add a fact, or switch one on or off; returns a sentence."""
    sent = visit.sent
    act, wanted = sent["act"], sent.get("id", "")
    if act == "add":
        by = stable_id(visit.account)
        fact = add_fact(sent.get("book", ""), sent.get("keys", ""), sent.get("text", ""), by)
        return f"Added: {fact_line(fact)}"
    return change(wanted, on=act == "on")
