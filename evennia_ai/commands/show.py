"""Showing things to people: escaped, paged, and readable by a screen reader.

Text of players and models never goes into a table: Evennia's tables undo the escaping.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.conf import settings
from django.core.paginator import Paginator
from evennia.utils.evmore import EvMore
from evennia.utils.evtable import EvTable
from twisted.internet.defer import Deferred

from evennia_ai.assistant.game import literal
from evennia_ai.assistant.identity import find
from evennia_ai.errors import AssistantError
from evennia_ai.history.audience import STAFF, is_private, members

PAGE_ITEMS = 12
_NARROWEST, _USUAL_WIDTH = 40, 78
# Letters of Persian and Hindi, and the parts of an emoji, are joined or kept apart by these.
_JOINERS = "\u200c\u200d"
# Stands before each further line of a record.
_CONTINUED = "\n    | "


def escaped(text: Any) -> str:
    """A stored text as it is, without colour, links or inline functions; tabs become spaces."""
    return literal("".join(c if _is_shown(c) else " " for c in str(text)))


def as_record(text: Any) -> str:
    """One record of a listing, escaped; its further lines are marked, lest one pass for another."""
    return escaped(str(text).replace("\n", _CONTINUED))


def as_records(records: Iterable[Any]) -> str:
    """Records one below the other, each as `as_record` shows it."""
    return "\n".join(map(as_record, records))


def as_json(value: Any) -> str:
    """A value as JSON, escaped; what cannot be seen is written as JSON's escapes."""
    text = json.dumps(value, ensure_ascii=False, indent=1, default=str)
    return literal("".join(c if _is_shown(c) else json.dumps(c)[1:-1] for c in text))


def _is_shown(char: str) -> bool:
    return char.isprintable() or char == "\n" or char in _JOINERS


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 message``, ``1,200 messages``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def cell(text: Any) -> str:
    """A text for a table's cell: one line, without anything Evennia reads as markup."""
    shown = str(text).replace("|", "¦")
    if settings.FUNCPARSER_PARSE_OUTGOING_MESSAGES_ENABLED:
        shown = shown.replace("$", "")
    return " ".join(shown.split())


def moment(iso: str) -> str:
    """A stored time, to the minute: ``2026-01-31 18:05``."""
    return str(iso)[:16].replace("T", " ")


def audience_mark(audience: str) -> str:
    """How a listing marks what is not public: ``[private: Bob] ``, ``[staff] ``, or nothing."""
    if audience == STAFF:
        return "[staff] "
    if not is_private(audience):
        return ""
    return f"[private: {', '.join(sorted(map(_name_of, members(audience))))}] "


def _name_of(identifier: str) -> str:
    somebody = find(identifier)
    return str(somebody.key) if somebody is not None else identifier


class ListPager(EvMore):
    """Evennia's pager over a sequence, of which each page is made when it is turned to.

    Args:
        caller: Who reads.
        items: A sequence that can be sliced.
        shown: Makes a page's text of its items.
        **options: As for `EvMore`.
    """

    def __init__(self, caller: Any, items: Any, shown: Callable[[Any], str], **options: Any):
        self._shown = shown
        super().__init__(caller, Paginator(items, PAGE_ITEMS), **options)

    def page_formatter(self, page: Any) -> str:
        """The text of one page; `EvMore` drops a formatter given as an argument."""
        return self._shown(page)


class Viewer:
    """The one who typed a command, to be told things then or later.

    Args:
        caller: The character or account.
        session: The session the command came from, or None.
    """

    def __init__(self, caller: Any, session: Any = None):
        self.caller = caller
        self.session = session

    @property
    def reads_aloud(self) -> bool:
        """Whether a screen reader is used."""
        return bool(self.session and self.session.protocol_flags.get("SCREENREADER"))

    @property
    def width(self) -> int:
        """Columns of the screen."""
        flags = self.session.protocol_flags if self.session else {}
        return max(_NARROWEST, flags.get("SCREENWIDTH", {0: _USUAL_WIDTH}).get(0, _USUAL_WIDTH))

    def tell(self, text: str) -> None:
        """Send a text that is escaped already."""
        self.caller.msg(text)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
        """Rows under heads; for a screen reader a line each, ``Name: Aria. Mode: awake``."""
        if self.reads_aloud:
            pairs = ([f"{h}: {cell(v)}." for h, v in zip(heads, row, strict=True)] for row in rows)
            return "\n".join(" ".join(line) for line in pairs)
        table = EvTable(*heads, border="header", maxwidth=self.width)
        for row in rows:
            table.add_row(*map(cell, row))
        return str(table)

    def page(self, text: str) -> None:
        """Show a text page by page."""
        if self._can_page:
            EvMore(self.caller, text, session=self.session)
        else:
            self.tell(text)

    def listing(
        self, items: Sequence[Any], line: Callable[[Any], str], head: str, empty: str
    ) -> None:
        """Show items page by page; only those of a page are made into text.

        Args:
            items: A sequence; slices of it are taken as pages are turned.
            line: Makes an item's text, escaped.
            head: Stands above each page.
            empty: Shown instead if there are none.
        """
        if not len(items):
            return self.tell(empty)

        def shown(page: Any) -> str:
            return "\n".join([head, *map(line, page)])

        if self._can_page:
            ListPager(self.caller, items, shown, session=self.session)
        else:
            self.tell(shown(items[:PAGE_ITEMS]))

    @property
    def _can_page(self) -> bool:
        return self.session is not None and bool(self.caller.sessions.get())

    def later(self, work: "Deferred[Any]", tell: Callable[[Any], Any], what: str) -> None:
        """Report when a Deferred fires; its errors are logged and told in one line.

        Args:
            work: What is under way.
            tell: Called with its result, on the reactor thread.
            what: What it is, for the error line.
        """
        work.addCallback(tell).addErrback(self._failed, what)

    def _failed(self, failure: Any, what: str) -> None:
        from evennia.utils import logger

        error = failure.value
        if isinstance(error, AssistantError):
            self.tell(escaped(f"{what} failed: {error}"))
            return
        logger.log_err(f"[ai] {what}: {failure.getTraceback()}")
        self.tell(escaped(f"{what} failed: {type(error).__name__}. The server log says more."))
