"""Acts on the game's lore, as `ailore` and its page do them: facts, locks, books in and out."""

from dataclasses import replace
from typing import Any

from evennia import DefaultObject
from evennia.locks.lockhandler import get_all_lockfuncs
from twisted.internet.defer import inlineCallbacks

from evennia_ai.assistant_script import AssistantScript, all_assistants
from evennia_ai.background import Steps
from evennia_ai.cards.books import (
    EVERYBODY,
    FACTS,
    NOBODY_HEARS,
    TEXT_CHARS,
    Book,
    Fact,
    is_pattern,
    read_book,
)
from evennia_ai.cards.cleaning import storable
from evennia_ai.errors import ConfigError, Refusal
from evennia_ai.game.lore import MOST_TOKENS, knows, lore, own_texts, verdicts
from evennia_ai.game.seeing import find, stable_id
from evennia_ai.history.audience import PUBLIC
from evennia_ai.kinds import LOCK, Allowed, parsed
from evennia_ai.rag_memory.lore import next_id

BOOKS, NAME_CHARS = 100, 60
_ALL = ("everybody", "all", "all()")
# The `know` of who is not made yet.
NOBODY = "npc:"
# The `know` and `tell` that hold for a fact, and whether it is on.
_Locks = tuple[str, str, bool]


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
    raw |= {"extensions": {}, "insertion_order": 0, "use_regex": any(map(is_pattern, raw["keys"]))}
    read, notes = read_book({"entries": [raw]})
    if not read.facts:
        raise Refusal(f"No fact: {notes[1].partition(': ')[2]}.")
    if len(text) > TEXT_CHARS:
        raise Refusal(f"A fact has at most {TEXT_CHARS:,} characters.")
    book, number = book_for(name), next_id(lore().books().values())
    if len(book.facts) >= FACTS:
        raise Refusal(f"A book has at most {FACTS} facts.")
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
        if len(lore().books()) >= BOOKS:
            raise Refusal(f"There are {BOOKS} books already.")
        return Book(name, know=know or EVERYBODY)
    if know and before.know != know:
        raise Refusal(
            f"There is a book {before.name} that is not this assistant's own: "
            f"import under another name (`= <name>`), or type ailore/delete {before.name}."
        )
    return before


def take_book(
    read: Book, book: Book, source: str, is_of_card: bool = False
) -> tuple[Book, list[str]]:
    """Fill a book (`book_for`) with one that was read; returns it, and what is to be said about it.

    Nothing that is locked or off here is known or told to more than before, also under another
    name: a text that is here already takes the locks it has here, where the file has none; a fact
    whose locks would let others pass is off. If a fact that staff had locked or switched off is not
    in the file with the same text, any new one may be it: all new ones are off. What a card says
    is known to its assistant alone.
    """
    if not read.facts:
        raise Refusal("The file has no fact that can be used; nothing was changed.")
    is_new = book.name.lower() not in lore().books()
    limit = (EVERYBODY, "", True) if is_new else (book.know, book.tell, True)
    of_book = _valid(read.know, read.tell)
    secrets = {_plain(fact): fact for fact in book.facts if fact.know or fact.tell or not fact.on}
    for entry in read.facts:
        secrets.pop(_plain(entry), None)
    here = _locks_here(book, is_of_card)
    if is_new:
        know = book.know if is_of_card else of_book[0] or book.know
        book = replace(book, know=know, tell=of_book[1])
    facts = []
    for number, entry in enumerate(read.facts, next_id(lore().books().values())):
        twins = here.get(_plain(entry), [])
        of_entry = _valid(entry.know, entry.tell)
        know, tell = of_entry[0] or of_book[0] or EVERYBODY, of_entry[1] or of_book[1]
        theirs = (book.know if is_of_card else know, tell)
        both = [_both(each, theirs) for each in twins or [limit] if each[2]]
        locks = [each for each in both if None not in each]
        is_on = bool(locks) and entry.on and (bool(twins) or not secrets)
        know, tell = min(locks or twins or [limit], key=lambda each: each != theirs)[:2]
        fact = replace(entry, on=is_on, id=f"w{number}", source=source)
        know, tell = ("" if know == book.know else know), ("" if tell == book.tell else tell)
        facts.append(replace(fact, know=know, tell=tell))
    notes = []
    if secrets:
        names = "; ".join(f"({f.id}) {', '.join(f.keys)[:60]}" for f in secrets.values())
        notes = [f"Locked or switched off before, and not in this file as they were: {names}."]
    if off := [fact.id for fact, raw in zip(facts, read.facts, strict=True) if raw.on > fact.on]:
        why = "they may be those, are off here, or have other locks here"
        notes.append(f"Off until you look at them, as {why}: {', '.join(off)}.")
    if unheard := [fact.id for fact in facts if (fact.tell or book.tell) == NOBODY_HEARS]:
        why = "as their locks say so or cannot be read"
        notes.append(f"Told to nobody, {why}: {', '.join(unheard)}.")
    book = replace(book, facts=tuple(facts), original=read.original)
    lore().save(book)
    return book, notes


def _locks_here(book: Book, is_of_card: bool) -> dict[str, list[_Locks]]:
    """The locks of all texts in a book of this name, or in others.

    What others know by cards of their own is open to a card.
    """
    own: dict[str, list[_Locks]] = {}
    others: dict[str, list[_Locks]] = {}
    for each in lore().books().values():
        here = own if each.name == book.name else others
        is_open = is_of_card and know_text(each.know).lower() == each.name.lower()
        for raw, fact in zip(each.facts, each.locked(), strict=True):
            know = book.know if is_open and not raw.know else fact.know
            here.setdefault(_plain(fact), []).append((know, fact.tell, fact.on))
    return others | own


def _both(here: _Locks, theirs: tuple[str, str]) -> tuple[str | None, str | None]:
    """Locks that let no more pass than either; None in place of two that differ."""
    know, tell = (
        a if b in ("", EVERYBODY, a) else b if a in ("", EVERYBODY) else None
        for a, b in zip(here, theirs, strict=False)
    )
    return know, tell


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
        return know, _lock(tell) if tell and tell.lower() not in _ALL else ""
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
    return f"{f'Fact {fact.id} of' if fact else 'Book'} {book.name} is changed."


def delete(wanted: str) -> str:
    """Delete a fact or a book; returns what is gone."""
    book, fact = place_of(wanted)
    lore().save(replace(book, facts=tuple(f for f in book.facts if fact not in (None, f))))
    return f"{f'Fact {fact.id}' if fact else f'Book {book.name}'} is deleted."


def _lock(text: str) -> str:
    """A lock that was typed or came in a file; raises `ConfigError`."""
    return str(parsed("lock", LOCK, text, Allowed(lock_functions=set(get_all_lockfuncs()))))


def set_know(wanted: str, text: str, place: DefaultObject | None) -> str:
    """Say who knows a fact or the facts of a book; returns a sentence.

    `text` is `everybody`, an assistant's name, `here` (whoever is or lives in `place`), or a lock.
    """
    word = text.strip().lower()
    bodies = (script.obj for script in all_assistants() if script.obj.key.lower() == word)
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
    tell = "" if text.strip().lower() in _ALL else _lock(text.strip())
    return f"{change(wanted, tell=tell)} Told to {tell or 'everybody'}."


def know_text(know: str) -> str:
    """Who knows a fact, in words."""
    kind, _, value = know.partition(":")
    if kind in ("npc", "place"):
        body = find(value)
        name = body.key if body is not None else "somebody who is gone"
        return name if kind == "npc" else f"whoever is or lives in {name}"
    return value or "everybody"


def fact_line(fact: Fact) -> str:
    """A fact with its keys and locks, on one line."""
    marks = [f"known to {know_text(fact.know)}"] if fact.know else []
    marks += [f"told to {fact.tell}"] if fact.tell else []
    marks += ["always"] if fact.always else []
    marks += [] if fact.on else ["off"]
    text = f"({fact.id}) {', '.join(fact.keys) or 'no key'}: {' '.join(fact.text.split())}"
    return text + (f" [{'; '.join(marks)}]" if marks else "")


@inlineCallbacks
def found_lines(script: AssistantScript, line: str) -> Steps[list[str]]:
    """Fires with what a line said aloud finds, why, and why not."""
    lines = []
    for verdict in (yield verdicts(script.obj, line, line, PUBLIC)):
        keys = ", ".join(verdict.keys) or ("always" if verdict.fact.always else "meaning")
        why_not = verdict.why_not.format(name=script.obj.key) or "used"
        lines.append(f"{why_not}: {fact_line(verdict.fact)} (by {keys})")
    return lines or ["No fact is found: no key is in this line, and none is near in meaning."]


def known_lines(script: AssistantScript) -> list[str]:
    """All that an assistant knows as lore, with tokens."""
    books = lore().books().values()
    facts = [f for book in books for f in book.locked() if f.on and knows(script.obj, f.know)]
    facts += own_texts(script.obj)
    total = sum(script.count(fact.text) for fact in facts)
    lines = [f"{fact_line(fact)} ({script.count(fact.text)} tokens)" for fact in facts]
    head = f"{script.obj.key} knows {len(facts)} facts, {total:,} tokens"
    return [f"{head}; at most {MOST_TOKENS} in a prompt.", *lines]
