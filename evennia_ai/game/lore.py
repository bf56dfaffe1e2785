"""Lore in a game: where its books are kept, who passes their locks, and the game's own texts.

Books lie on one global script, an Attribute each. What the option `knows` names, help entries and
rooms, is read anew after `FRESH_S`, never copied.
"""

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evennia import ScriptDB
from evennia.help.filehelp import FILE_HELP_ENTRIES
from evennia.help.models import HelpEntry
from evennia.utils.create import create_script

from evennia_ai.game.evennia_internals import AttributeStore
from evennia_ai.game.identity import find, stable_id
from evennia_ai.game.seeing import described, name_of, plain, seen
from evennia_ai.history.audience import is_private, members
from evennia_ai.rag_memory.lore import EVERYBODY, Finder, Known, LoreBook, Verdict
from evennia_ai.services import kept

if TYPE_CHECKING:
    from evennia import DefaultObject

SCRIPT, CATEGORY = "ai_world", "ai_lore"
_FREE = {"default": True, "no_superuser_bypass": True}
FRESH_S, HELP_CHARS, ROOM_CHARS, ROOMS = 300.0, 600, 300, 60


class Lore:
    """The books of a game. One for the whole game: `lore()`."""

    def __init__(self) -> None:
        self._read: tuple[object, dict[str, LoreBook]] = (None, {})
        self.overruns: dict[str, int] = {}

    def _store(self, makes: bool = False) -> AttributeStore | None:
        """The Attributes of the script that holds the books; None if there is none yet."""
        script = ScriptDB.objects.filter(db_key=SCRIPT, db_obj=None).first()
        if script is None and makes:
            script = create_script(key=SCRIPT, persistent=True)
        return AttributeStore(script) if script is not None else None

    def books(self) -> dict[str, LoreBook]:
        """All books by name; the same object as long as nothing changes."""
        store = self._store()
        names = store.keys(CATEGORY) if store else ()
        stamps = (names, store.stamps(names, CATEGORY) if store else ())
        if self._read[0] != stamps:
            books = (LoreBook.if_readable(store.get(name, CATEGORY)) for name in names)
            self._read = stamps, {book.name: book for book in books if book}
        return self._read[1]

    def fact(self, wanted: str) -> Known | None:
        """A fact by its id, with the locks that hold for it."""
        facts = (fact for book in self.books().values() for fact in book.locked())
        return next((fact for fact in facts if fact.id == wanted), None)

    def save(self, book: LoreBook) -> None:
        """Store a book, or another state of it."""
        self._store(makes=True).set(book.name.lower(), book.to_dict(), CATEGORY)

    def delete(self, book: LoreBook) -> None:
        """Remove a book."""
        self._store(makes=True).delete(book.name.lower(), CATEGORY)

    def forget(self, people: Collection[str]) -> None:
        """Remove who typed a fact, of these people (stable ids)."""
        for book in list(self.books().values()):
            facts = tuple(
                replace(fact, source="") if fact.source in people else fact for fact in book.facts
            )
            if facts != book.facts:
                self.save(replace(book, facts=facts))


def lore() -> Lore:
    """The books of the game."""
    return kept("lore", Lore)


def verdicts(
    body: "DefaultObject", text: str, audience: str, room: int, count: Callable[[str], int]
) -> list[Verdict]:
    """What a line finds in the game's lore for a turn's audience; see `Finder.find`."""
    script, books, own = body.assistant, lore().books(), own_texts(body)

    def off(fact: Known) -> None:
        script.audit("lore key off", fact=fact.id)

    before = body.ndb.ai_finder
    if before is None or before[0] is not books or before[1] is not own:
        facts = [*own, *(fact for book in books.values() for fact in book.locked())]
        before = body.ndb.ai_finder = (books, own, Finder(facts, off, lore().overruns))
    finder = before[2]
    return finder.find(
        text, lambda know: knows(body, know), lambda tell: tells(tell, audience), room, count
    )


def knows(body: "DefaultObject", know: str) -> bool:
    """Whether a body passes the lock of a fact."""
    kind, _, value = know.partition(":")
    if kind == EVERYBODY:
        return True
    if kind == "npc":
        return stable_id(body) == value
    if kind == "place":
        places = (each for each in (body.location, body.home) if each is not None)
        return value in map(stable_id, places)
    return kind == "lock" and passes(body, value)


def tells(tell: str, audience: str) -> bool:
    """Whether a fact for some ears may enter a turn: it is private, and all of them pass."""
    circle = [find(each) for each in members(audience)]
    return is_private(audience) and all(each is not None and passes(each, tell) for each in circle)


def passes(somebody: "DefaultObject", lock: str) -> bool:
    """Whether somebody passes a lock, a superuser not more than others."""
    options = {"no_superuser_bypass": True, "default": False, "access_type": "lore"}
    return bool(somebody.locks.check_lockstring(somebody, f"lore:{lock}", **options))


def own_texts(body: "DefaultObject") -> list[Known]:
    """The texts of the game that the option `knows` names, as facts."""
    wanted, now = body.assistant.config.knows, time.monotonic()
    before = body.ndb.ai_texts
    if before is None or before[0] != wanted or now - before[1] > FRESH_S:
        facts = [fact for source in wanted for fact in _texts(body, source)]
        before = body.ndb.ai_texts = (wanted, now, facts)
    return before[2]  # type: ignore[no-any-return]


def _texts(body: "DefaultObject", source: str) -> Iterator[Known]:
    kind, _, value = source.partition(":")
    yield from _help(body, value) if kind == "help" else _rooms(body, int(value))


def _help(body: "DefaultObject", category: str) -> Iterator[Known]:
    """Help entries of a category that a body may read, of the database and of files."""
    for entry in (*HelpEntry.objects.all(), *FILE_HELP_ENTRIES.all()):
        is_meant = entry.help_category.lower() == category.lower()
        if is_meant and entry.locks.check(body, "read", **_FREE):
            aliases = entry.aliases if isinstance(entry.aliases, list) else entry.aliases.all()
            text = plain(entry.entrytext)[:HELP_CHARS]
            yield Known((entry.key, *aliases), text, id=f"help:{entry.key}", know=EVERYBODY)


def _rooms(body: "DefaultObject", far: int) -> Iterator[Known]:
    """Rooms around a body's home, as far as it may walk, with the way there."""
    home = body.home or body.location
    ways = {home: ""} if home is not None else {}
    edge = list(ways)
    for _ in range(far):
        edge = [there for here in edge for there in _next(body, here, ways)]
    for room in list(ways)[:ROOMS]:
        name, way = name_of(room, body), ways[room]
        text = described(room, body)[:ROOM_CHARS]
        says = f"{name}: {text}" + (f" The way from {name_of(home, body)}: {way}." if way else "")
        key = name.removeprefix("The ").removeprefix("the ")
        yield Known((key,), says, id=f"room:{room.id}", know=EVERYBODY)


def _next(body: "DefaultObject", here: "DefaultObject", ways: dict[Any, str]) -> list[Any]:
    """Rooms that are new behind the exits of one, noted in `ways`."""
    rooms = []
    for way in seen(here, body):
        there, is_open = way.destination, way.locks.check(body, "traverse", **_FREE)
        if there is not None and there not in ways and is_open:
            ways[there] = ", ".join(filter(None, (ways[here], name_of(way, body))))
            rooms.append(there)
    return rooms
