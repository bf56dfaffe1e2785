"""The history of figures behind the staff's charts: prompts, spend by day.

It is derived and bounded, in an SQLite file of its own: no Attribute grows with it, and what the
charts show may be lost without harm. A thread writes and reads, one thing after the other.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from evennia_ai.history.messages import utc_iso
from evennia_ai.llm_interaction.budget import REGIONS, TokenBudget
from evennia_ai.llm_interaction.values import ModelReply

_log = Logger("evennia_ai")
# So long prompts and spend are kept.
PROMPT_DAYS, KEPT_DAYS = 30, 400
# Most rows of prompts in all: about 60 MB.
MOST_PROMPTS = 200_000
# After so many rows old ones are thinned out.
_THINNED_EVERY = 1_000
_DAY_S = 86_400.0
_TABLES = """
CREATE TABLE IF NOT EXISTS prompts (at REAL, assistant TEXT, purpose TEXT, sizes TEXT,
    most INTEGER, share REAL);
CREATE INDEX IF NOT EXISTS prompts_by_time ON prompts (assistant, at);
CREATE TABLE IF NOT EXISTS spend (day TEXT, assistant TEXT, purpose TEXT, model TEXT, account TEXT,
    calls INTEGER, prompt INTEGER, reply INTEGER, cached INTEGER, cost REAL, unpriced INTEGER,
    PRIMARY KEY (day, assistant, purpose, model, account));
"""
_SUMS = ("calls", "prompt", "reply", "cached", "cost", "unpriced")
_ADD_UP = f"ON CONFLICT DO UPDATE SET {', '.join(f'{s} = {s} + excluded.{s}' for s in _SUMS)}"
_ADD = {
    "prompts": "INSERT INTO prompts VALUES (?, ?, ?, ?, ?, ?)",
    "spend": f"INSERT INTO spend VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?) {_ADD_UP}",
}
_TO_NOBODY = f"""INSERT INTO spend SELECT day, assistant, purpose, model, '', {", ".join(_SUMS)}
    FROM spend WHERE account = ? {_ADD_UP}"""
# What spend can be added up by.
SPEND_BY = ("day", "assistant", "purpose", "model", "account")


@dataclass(frozen=True)
class SpendFigure:
    """Calls added up: `of` is a day, assistant, purpose, model or account, as was asked for."""

    of: str
    calls: int
    prompt_tokens: int
    reply_tokens: int
    cached_tokens: int
    cost: float  # US dollars of the calls whose price is known
    unpriced: int  # how many calls have no known price


@dataclass
class Figures:
    """The figures in a file."""

    path: Path  # made when first needed; a damaged one is replaced
    # Runs a function with arguments off the reactor thread, in order.
    on_thread: Callable[..., "Deferred[Any]"]
    _writes: int = 0

    def note_prompt(self, scope: str, event: TokenBudget) -> None:
        """Note the budget of a request that is made by the assistant of a scope."""
        sizes = ",".join(map(str, event.sizes))
        row = (event.at, scope, event.purpose, sizes, event.limit, event.usage)
        self._note("prompts", row)

    def note_spend(
        self, scope: str, purpose: str, account: str, reply: ModelReply, at: float
    ) -> None:
        """Note what a call cost that a scope's assistant made for an account, or for nobody.

        `at` is in seconds since the epoch.
        """
        tokens = (reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens)
        cost = (reply.cost or 0.0, int(reply.cost is None))
        row = (utc_iso(at)[:10], scope, purpose, reply.model, account, *tokens, *cost)
        self._note("spend", row)

    def _note(self, table: str, row: tuple[Any, ...]) -> None:
        self.on_thread(self._write, table, row).addErrback(_lost)

    def prompts(self, scope: str, since: float) -> "Deferred[list[TokenBudget]]":
        """Fires with the prompts of a scope since epoch seconds `since`, oldest first."""
        ask = "SELECT at, purpose, sizes, most, share FROM prompts"
        ask += " WHERE assistant = ? AND at >= ? ORDER BY at"
        found = self.on_thread(self._read, ask, (scope, since))
        return found.addCallback(lambda rows: list(starmap(_prompt, rows)))

    def spend(self, by: str, since: str) -> "Deferred[list[SpendFigure]]":
        """Fires with what was spent since a day (``2026-05-17``), added up by one of `SPEND_BY`."""
        sums = ", ".join(f"sum({each})" for each in _SUMS)
        order = by if by == "day" else "sum(cost) DESC, sum(prompt) DESC"
        ask = f"SELECT {by}, {sums} FROM spend WHERE day >= ? GROUP BY {by} ORDER BY {order}"
        found = self.on_thread(self._read, ask, (since,))
        return found.addCallback(lambda rows: [SpendFigure(*row) for row in rows])

    def forget(self, accounts: Iterable[str]) -> "Deferred[Any]":
        """Fires when no row names these accounts; what they cost stays in the sums."""
        return self.on_thread(self._forget, tuple(accounts))

    # On the thread.

    def _write(self, table: str, row: tuple[Any, ...]) -> None:
        with closing(self._opened()) as file, file:
            file.execute(_ADD[table], row)
            self._writes += 1
            if self._writes % _THINNED_EVERY != 1:
                return
            [newest] = file.execute("SELECT max(at) FROM prompts").fetchone()
            if newest is None:
                return
            file.execute("DELETE FROM prompts WHERE at < ?", (newest - PROMPT_DAYS * _DAY_S,))
            file.execute(
                "DELETE FROM prompts WHERE rowid NOT IN "
                "(SELECT rowid FROM prompts ORDER BY at DESC LIMIT ?)",
                (MOST_PROMPTS,),
            )
            oldest = utc_iso(newest - KEPT_DAYS * _DAY_S)[:10]
            file.execute("DELETE FROM spend WHERE day < ?", (oldest,))

    def _read(self, ask: str, values: Sequence[Any]) -> list[Any]:
        with closing(self._opened()) as file:
            return file.execute(ask, values).fetchall()

    def _forget(self, accounts: Sequence[str]) -> None:
        with closing(self._opened()) as file, file:
            for account in accounts:
                file.execute(_TO_NOBODY, (account,))
                file.execute("DELETE FROM spend WHERE account = ?", (account,))

    def _opened(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return _with_tables(self.path)
        except sqlite3.DatabaseError:
            self.path.unlink(missing_ok=True)
            return _with_tables(self.path)


def _lost(failure: Failure) -> None:
    failure.trap(sqlite3.Error, OSError)  # type: ignore[no-untyped-call] # as on a full disk
    _log.error("a figure for the charts is not written: {why}", why=str(failure.value))


def _with_tables(path: Path) -> sqlite3.Connection:
    file = sqlite3.connect(path, timeout=5.0)
    try:
        file.executescript(f"PRAGMA secure_delete = ON; PRAGMA synchronous = OFF; {_TABLES}")
    except sqlite3.Error:
        file.close()
        raise
    return file


def _prompt(at: float, purpose: str, sizes: str, limit: int, usage: float) -> TokenBudget:
    places = tuple(map(int, sizes.split(",")))
    return TokenBudget(at=at, purpose=purpose, model="", sizes=places, limit=limit, usage=usage)


def stacked(figures: Sequence[TokenBudget]) -> dict[str, list[float]]:
    """Prompts as columns of a chart: times, tokens of each region, limits."""
    columns: dict[str, list[float]] = {"at": [figure.at for figure in figures]}
    for place, region in enumerate(REGIONS):
        columns[region] = [dict(enumerate(figure.sizes)).get(place, 0) for figure in figures]
    return {**columns, "limit": [figure.limit for figure in figures]}
