"""Lore in a game: where its books are kept, who passes their locks, and the game's own texts.

Books lie on one global script, an Attribute each. What the option `knows` names, help entries and
rooms, is read anew after `FRESH_S`, never copied.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from evennia import DefaultObject, ScriptDB
from evennia.help.filehelp import FILE_HELP_ENTRIES
from evennia.help.models import HelpEntry
from evennia.utils import logger
from evennia.utils.create import create_script
from twisted.internet.defer import gatherResults, inlineCallbacks

from evennia_ai.background import Steps
from evennia_ai.cards.books import EVERYBODY, Book, Fact
from evennia_ai.game.evennia_internals import AttributeStore, passes
from evennia_ai.game.seeing import described, find, name_of, plain, rooms_from, stable_id
from evennia_ai.history.audience import is_private, members
from evennia_ai.language.words import telling_words
from evennia_ai.rag_memory.entities import bare
from evennia_ai.rag_memory.finder import (
    SECRET,
    UNKNOWN,
    Bars,
    Finder,
    Parts,
    Verdict,
    parts_of,
    scope_of_texts,
)
from evennia_ai.rag_memory.memory import Memory
from evennia_ai.recall.values import Query, Turn
from evennia_ai.services import kept, mind

SCRIPT, CATEGORY = "ai_world", "ai_lore"
# Most facts that a line finds by meaning alone, and their least score.
NEAR, LEAST = 3, 0.001
# Room for lore in a prompt.
MOST_TOKENS = 300
_FREE = {"default": True, "no_superuser_bypass": True}
FRESH_S, HELP_CHARS, ROOM_CHARS, ROOMS = 300.0, 600, 300, 60


class Lore:
    """The books of a game. One for the whole game: `lore()`.

    Only this process writes them, so they are read once and after each change.
    """

    def __init__(self) -> None:
        self._store: AttributeStore | None = None
        self._books: dict[str, Book] | None = None
        self._parts: Parts = {}
        self._indexed: dict[str, dict[str, Turn]] = {}
        self._replaced = 0

    def books(self) -> dict[str, Book]:
        """All books by name in lower case; the same object as long as nothing changes."""
        is_gone = self._store is not None and self._store.obj.pk is None
        if self._books is not None and not is_gone:
            return self._books
        store: AttributeStore | None = None
        books = dict[str, Book]()
        for script in ScriptDB.objects.filter(db_key=SCRIPT, db_obj=None)[:1]:
            store = AttributeStore(script)
            for name in store.keys(CATEGORY):
                if book := Book.if_readable(store.get(name, CATEGORY)):
                    books[name] = book
        self._store, self._books = store, books  # all is read
        self._parts = parts_of(self.facts())
        return books

    def facts(self) -> list[Fact]:
        """All facts, each with the locks that hold for it."""
        return [fact for book in self.books().values() for fact in book.locked()]

    def save(self, book: Book) -> None:
        """Store a book, or another state of it; one without facts is removed.

        What it has no more, or under other locks, is taken out of the index.
        """
        name, new = book.name.lower(), parts_of(book.locked())
        before = self.books().get(name, replace(book, facts=()))
        for locks, turns in parts_of(before.locked()).items():
            if gone := turns.keys() - new.get(locks, {}).keys():
                scope = _scope(*locks)
                self._indexed.pop(scope, None)
                Memory(scope, mind().recall, _report).forget(gone)
        self._books = None  # read again, also after a rollback
        store = self._store or AttributeStore(create_script(key=SCRIPT, persistent=True))
        if book.facts:
            store.set(name, book.to_dict(), CATEGORY)
        else:
            store.delete(name, CATEGORY)

    def forget(self, people: Collection[str]) -> None:
        """Remove who typed a fact, of these people (stable ids)."""
        for book in list(self.books().values()):
            facts = tuple(
                replace(fact, source="") if fact.source in people else fact for fact in book.facts
            )
            if facts != book.facts:
                self.save(replace(book, facts=facts))

    @inlineCallbacks
    def near(
        self, scope: str, own: Sequence[Fact], bars: Bars, line: str
    ) -> Steps[dict[str, float]]:
        """Fires with the scores of facts near a line in meaning, by their ids.

        Facts with the same locks have a scope of their own in the recall index: no search rests on
        a fact that may not be used. What is new is indexed behind the line. `own` are texts of
        the game that the assistant of that `scope` knows; `bars` is as in `Finder.find`.
        """
        recall, searches = mind().recall, list[Any]()

        def added(count: int | None, scope: str) -> None:
            if count is None:  # it could not be written: the next line tries again
                self._indexed.pop(scope, None)

        if self._replaced != recall.replaced:  # another index, which holds none of it
            self._replaced = recall.replaced
            self._indexed.clear()
        self.books()
        texts = scope_of_texts(scope)
        parts = [(texts, "", parts_of(own).get((EVERYBODY, ""), {}))]
        parts += [(_scope(*locks), bars(*locks), turns) for locks, turns in self._parts.items()]
        for each, why_not, turns in parts:
            memory = Memory(each, recall, _report)
            if self._indexed.get(each) != turns:
                self._indexed[each] = turns
                if each == texts:  # what was in it before may be from another start
                    memory.clear()
                memory.add(turns.values()).addCallback(added, each)
            if turns and not why_not:
                searches.append(memory.found(Query(line, NEAR)))
        together = gatherResults(searches, consumeErrors=True)
        together.addErrback(lambda failure: failure.value.subFailure)
        hits = [hit for each in (yield together) for hit in each]
        return {h.turn_id: h.score for h in hits if h.matches and h.score >= LEAST}


def _scope(know: str, tell: str) -> str:
    """The scope of the recall index for facts with these locks."""
    return f"lore {know} {tell}"


def _report(what: str, error: BaseException) -> None:
    logger.log_err(f"evennia_ai: {what}: {error!r}")


def lore() -> Lore:
    """The books of the game."""
    return kept("lore", Lore)


@inlineCallbacks
def verdicts(body: DefaultObject, text: str, line: str, audience: str) -> Steps[list[Verdict]]:
    """Fires with what a turn for an audience finds in the game's lore; see `Finder.find`.

    Keys are looked for in `text`, meaning in the `line` that is answered.
    """
    script, (own, finder) = body.assistant, known_facts(body)

    def bars(know: str, tell: str) -> str:
        if not knows(body, know):
            return UNKNOWN
        if tell and not tells(tell, audience):
            return SECRET
        return ""

    near: dict[str, float] = {}
    if telling_words(line, [body.key]):
        near = yield lore().near(script.scope, own, bars, line)
        own, finder = known_facts(body)
    return finder.find(text, bars, MOST_TOKENS, script.count, near)


def knows(body: DefaultObject, know: str) -> bool:
    """Whether a body passes the lock of a fact."""
    kind, _, value = know.partition(":")
    if kind == EVERYBODY:
        return True
    if kind == "npc":
        return stable_id(body) == value
    if kind == "place":
        places = (each for each in (body.location, body.home) if each is not None)
        return value in map(stable_id, places)
    return kind == "lock" and passes(body, f"lore:{value}", body)


def tells(tell: str, audience: str) -> bool:
    """Whether a fact for some ears may enter a turn: it is private, and all of them pass."""
    circle = [find(each) for each in members(audience)]
    lock = f"lore:{tell}"
    return is_private(audience) and all(each and passes(each, lock, each) for each in circle)


def known_facts(body: DefaultObject) -> tuple[list[Fact], Finder]:
    """The texts of the game that the option `knows` names, as facts; what finds them and books."""
    wanted, books, now = body.assistant.config.knows, lore().books(), time.monotonic()
    before, own = body.ndb.ai_facts, list[Fact]()
    if before and before[:2] == (wanted, books) and now - before[2] <= FRESH_S:
        return before[3]  # type: ignore[no-any-return]
    for kind, _, value in (source.partition(":") for source in wanted):
        if kind == "help":
            own += _help(body, value.strip())
        else:
            own += _rooms(body, int(value))
    facts = own, Finder([*own, *lore().facts()])
    body.ndb.ai_facts = wanted, books, now, facts
    return facts


def _help(body: DefaultObject, category: str) -> Iterator[Fact]:
    """Help entries of a category that a body may read, of the database and of files."""
    for entry in (*HelpEntry.objects.all(), *FILE_HELP_ENTRIES.all()):
        is_meant = entry.help_category.lower() == category.lower()
        if is_meant and entry.locks.check(body, "read", **_FREE):
            aliases = entry.aliases
            if not isinstance(aliases, list):
                aliases = aliases.all()
            text = plain(entry.entrytext)[:HELP_CHARS]
            yield Fact((entry.key, *aliases), text, id=f"help-{entry.key}", know=EVERYBODY)


def _rooms(body: DefaultObject, far: int) -> Iterator[Fact]:
    """Rooms around a body's home, as far as it may walk, with the way there."""
    home = body.home or body.location
    if home is None:
        return
    for room, path in islice(rooms_from(home, body, True), ROOMS):
        if len(path) > far:
            return
        name, text = name_of(room, body), described(room, body)[:ROOM_CHARS]
        says = f"{name}: {text}"
        if path:
            way = ", ".join(name_of(each, body) for each in path)
            says += f" The way from {name_of(home, body)}: {way}."
        yield Fact((bare(name),), says, id=f"room-{room.id}", know=EVERYBODY)
