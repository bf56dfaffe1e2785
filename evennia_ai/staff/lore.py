"""Acts on the game's lore, as `ailore` and its page do them: facts, locks, books in and out."""

from dataclasses import replace
from typing import Any

from evennia import DefaultObject
from evennia.locks.lockhandler import get_all_lockfuncs
from twisted.internet.defer import inlineCallbacks

from evennia_ai.assistant_script import all_assistants
from evennia_ai.background import Steps
from evennia_ai.cards.books import (
    EVERYBODY,
    NOBODY_HEARS,
    TEXT_CHARS,
    Book,
    Fact,
    read_book,
)
from evennia_ai.cards.cleaning import storable
from evennia_ai.errors import ConfigError, Refusal
from evennia_ai.game.lore import knows, lore, verdicts
from evennia_ai.game.seeing import find, stable_id
from evennia_ai.history.audience import PUBLIC
from evennia_ai.kinds import Allowed, Lock, Values
from evennia_ai.rag_memory.finder import next_id
from evennia_ai.staff.show import phrase

NAME_CHARS = 60
_ALL = ("everybody", "all", "all()")
# The `know` of who is not made yet.
NOBODY = "npc:"


def book_named(name: str) -> Book:
    """A book by its name in any case; `Refusal` if there is none."""
    books = lore().books()
    if (book := books.get(name.strip().lower())) is None:
        names = ", ".join(each.name for each in books.values()) or "none"
        raise Refusal(f"There is no book `{name}`. Books: {names}.")
    return book


def place_of(wanted: str) -> tuple[Book, Fact | None]:
    """The book of this name, or the fact of this id with its book."""
    for book in lore().books().values():
        for fact in book.facts:
            if fact.id == wanted.strip().lower():
                return book, fact
    return book_named(wanted), None


def add_fact(name: str, keys: str, text: str, by: str) -> Fact:
    """Add a fact to a book, which is made if there is none; `by` is a stable id."""
    raw = {"keys": [key.strip() for key in keys.split(",")], "content": text, "enabled": True}
    raw |= {"extensions": {}, "insertion_order": 0, "use_regex": False}
    read, notes = read_book({"entries": [raw]})
    if not read.facts:
        raise Refusal(f"No fact: {notes[1].partition(': ')[2]}.")
    if len(text) > TEXT_CHARS:
        raise Refusal(f"A fact has at most {TEXT_CHARS:,} characters.")
    book, number = book_for(name), next_id(lore().books().values())
    fact = replace(read.facts[0], id=f"w{number}", source=by)
    lore().save(replace(book, facts=(*book.facts, fact)))
    return fact


def book_for(name: str, know: str = "") -> Book:
    """The book of this name, or a new one.

    `know` is the assistant whose book it must be; `Refusal` if it is another's.
    """
    if (before := lore().books().get(name.strip().lower())) is None:
        name = " ".join(storable(name).split())
        if not name or len(name) > NAME_CHARS or set(name) & set("=:/,"):
            raise Refusal(f"A book's name has up to {NAME_CHARS} characters, and none of = : / ,")
        return Book(name, know=know or EVERYBODY)
    if know and before.know != know:
        if is_gone(before.know):
            return replace(before, know=know)
        raise Refusal(
            f"There is a book {before.name} that is not this assistant's own: "
            f"import under another name (`= <name>`), or type ailore/delete {before.name}."
        )
    return before


def own_book(body: DefaultObject) -> Book | None:
    """The book that only this assistant knows, with the facts that it knows itself."""
    mine = f"npc:{stable_id(body)}"
    book = next((book for book in lore().books().values() if book.know == mine), None)
    if book is None:
        return None
    facts = tuple(f for f in book.facts if not f.know or knows(body, f.know))
    return replace(book, facts=facts, know=EVERYBODY)


def take_book(
    read: Book, book: Book, source: str, is_of_card: bool = False
) -> tuple[Book, list[str]]:
    """Fill a book (`book_for`) with one that was read; returns it, and what is to be said about it.

    An import opens nothing: a book that has locks, or a fact that is off, is not replaced, and a
    text that is locked or off in another book is off until somebody looks at it. What a card says
    is known to its assistant alone.
    """
    if not read.facts:
        raise Refusal("The file has no fact that can be used; nothing was changed.")
    books = lore().books()
    barred = {
        name: {_plain(fact) for fact in each.facts if _is_barred(each, fact, is_of_card)}
        for name, each in books.items()
    }
    if barred.get(book.name.lower()):
        raise Refusal(
            f"{book.name} has locks, or facts that are off. Import under another name, or type "
            f"ailore/delete {book.name} first."
        )
    texts = set[str]().union(*barred.values())
    know, tell = _valid(read.know, read.tell)
    if is_of_card:
        know = book.know
    book = replace(book, know=know or EVERYBODY, tell=tell, original=read.original)
    facts, off, unheard = list[Fact](), list[str](), list[str]()
    for number, entry in enumerate(read.facts, next_id(books.values())):
        know, tell = _valid(entry.know, entry.tell)
        if is_of_card:
            know = ""
        name, is_off = f"w{number}", entry.on and _plain(entry) in texts
        is_on = entry.on and not is_off
        facts.append(replace(entry, id=name, source=source, know=know, tell=tell, on=is_on))
        if is_off:
            off.append(name)
        if (tell or book.tell) == NOBODY_HEARS:
            unheard.append(name)
    lore().save(book := replace(book, facts=tuple(facts)))
    notes = {
        "Off until you look at them, as these texts are locked or off in another book": off,
        "Told to nobody, as their locks say so or cannot be read": unheard,
    }
    return book, [f"{what}: {', '.join(ids)}." for what, ids in notes.items() if ids]


def _is_barred(book: Book, fact: Fact, is_of_card: bool) -> bool:
    """Whether a fact of a book is off, or a lock keeps it from somebody.

    To a card it is open what assistants know by cards of their own. What only somebody or a place
    knew that is gone is open to all imports.
    """
    is_own = is_of_card and not fact.know and know_text(book.know).lower() == book.name.lower()
    known_to = fact.know or book.know
    is_known = is_own or known_to == EVERYBODY or is_gone(known_to)
    return not (fact.on and is_known) or bool(fact.tell or book.tell)


def is_gone(know: str) -> bool:
    """Whether only one assistant or place knew it, which is gone."""
    kind, _, value = know.partition(":")
    return kind in ("npc", "place") and bool(value) and find(value) is None


def _plain(fact: Fact) -> str:
    return " ".join(fact.text.split()).casefold()


def _valid(know: str, tell: str) -> tuple[str, str]:
    """The `know` and `tell` of a file, empty without any; one that is wrong lets nobody pass."""
    kind, _, value = know.partition(":")
    try:
        if know.lower() in _ALL:
            know = EVERYBODY
        elif know and kind not in ("npc", "place"):
            know = f"lock:{_lock(value if kind == 'lock' else know)}"
        return know, _tell(tell)
    except ConfigError:
        return f"lock:{NOBODY_HEARS}", NOBODY_HEARS


def change(wanted: str, **values: Any) -> str:
    """Change a fact or the locks of a book; returns what it is now."""
    book, fact = place_of(wanted)
    if fact is None and "on" not in values:
        lore().save(replace(book, **values))
    else:
        facts = (replace(f, **values) if fact in (None, f) else f for f in book.facts)
        lore().save(replace(book, facts=tuple(facts)))
    state = {True: "on", False: "off"}.get(values.get("on"), "changed")
    what = f"Fact {fact.id} of" if fact else "Book"
    return f"{what} {book.name} is {state}."


def delete(wanted: str) -> str:
    """Delete a fact or a book; returns what is gone."""
    book, fact = place_of(wanted)
    lore().save(replace(book, facts=tuple(f for f in book.facts if fact not in (None, f))))
    what = f"Fact {fact.id}" if fact else f"Book {book.name}"
    return f"{what} is deleted."


def _tell(text: str) -> str:
    return "" if text.strip().lower() in ("", *_ALL) else _lock(text.strip())


class _Lock(Values):
    lock: Lock


def _lock(text: str) -> str:
    """A lock that was typed or came in a file; raises `ConfigError`."""
    return str(_Lock.parsed("lock", text, Allowed(lock_functions=set(get_all_lockfuncs()))))


def set_know(wanted: str, text: str, place: DefaultObject | None) -> str:
    """Say who knows a fact or the facts of a book; returns a sentence.

    `text` is `everybody`, an assistant's name, `here` (whoever is or lives in `place`), or a lock.
    """
    word = text.strip().lower()
    bodies = (script.obj for script in all_assistants() if script.own_name.lower() == word)
    if word in _ALL:
        know = EVERYBODY
    elif word == "here" and place is not None:
        know = f"place:{stable_id(place)}"
    elif (body := next(bodies, None)) is not None:
        know = f"npc:{body.stable_id}"
    else:
        know = f"lock:{_lock(text.strip())}"
    return f"{change(wanted, know=know)} Known to {know_text(know)}."


def set_tell(wanted: str, text: str) -> str:
    """Say who may hear a fact or a book: `everybody`, or a lock; returns a sentence."""
    tell = _tell(text)
    return f"{change(wanted, tell=tell)} Told to {tell or 'everybody'}."


def know_text(know: str) -> str:
    """Who knows a fact, in words."""
    kind, _, value = know.partition(":")
    if kind in ("npc", "place"):
        body = find(value)
        name = getattr(body, "key", "somebody who is gone")
        return name if kind == "npc" else f"whoever is or lives in {name}"
    return value or "everybody"


def fact_line(fact: Fact) -> str:
    """A fact with its keys and locks, on one line."""
    marks = {
        f"known to {know_text(fact.know)}": fact.know,
        f"told to {fact.tell}": fact.tell,
        "always": fact.always,
        "off": not fact.on,
    }
    text = f"({fact.id}) {', '.join(fact.keys) or 'no key'}: {' '.join(fact.text.split())}"
    shown = "; ".join(mark for mark, holds in marks.items() if holds)
    return text + phrase(" [{}]", shown)


@inlineCallbacks
def found_lines(body: DefaultObject, line: str) -> Steps[list[str]]:
    """Fires with what a line said aloud finds for an assistant, why, and why not."""
    lines = []
    for verdict in (yield verdicts(body, line, line, PUBLIC)):
        keys = ", ".join(verdict.keys) or ("always" if verdict.fact.always else "meaning")
        why_not = verdict.why_not.format(name=body.key) or "used"
        lines.append(f"{why_not}: {fact_line(verdict.fact)} (by {keys})")
    return lines or ["No fact is found: no key is in this line, and none is near in meaning."]
