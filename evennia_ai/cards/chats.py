"""Old talk from other programs: SillyTavern's JSONL, and plain lines ``Name: text``.

Every line of a file is counted: taken, damaged, hidden or empty. The order stays as it is.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from evennia_ai.cards.cleaning import storable
from evennia_ai.errors import Refusal

LINES, LINE_CHARS = 20_000, 20_000
NOT_READ = "this is no chat that is read: SillyTavern's JSONL, or lines `Name: text`"
# How other programs write a time, without the blanks and marks between its parts.
_FORMATS = ("%Y-%m-%d@%Hh%Mm%Ss", "%Y-%m-%d%Hh%Mm%Ss", "%B%d%Y%I:%M%p", "%B%d%Y%I:%M:%S%p")
_NAMED = re.compile(r"([^:\n{}<>\[\]]{1,60}): ?(.*)")
# Times before this are none: a number of small size is an index.
_FIRST = 946_684_800.0
_STEP_S = 1.0


@dataclass(frozen=True, slots=True)
class OldLine:
    """A line of an old talk.

    Args:
        is_own: Whether the character said it, not the player.
        text: What was said.
        at: When, in seconds since the epoch; 0 if it is not known.
    """

    is_own: bool
    text: str
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Chat:
    """The lines of an old talk, each with a time, and what is to be said about it."""

    lines: tuple[OldLine, ...]
    note: str


def read_chat(data: bytes, own: str, now: float) -> Chat:
    """A talk with the character called `own`; raises `Refusal` for other files.

    Lines without a time get one from their neighbours; `now` is the last there can be.
    """
    text = storable(data.decode("utf-8-sig", "replace"))
    rows = [row for row in text.splitlines() if row.strip()]
    if len(rows) > LINES:
        raise Refusal(f"the chat has {len(rows):,} lines; {LINES:,} are allowed")
    is_json = bool(rows) and rows[0].lstrip().startswith("{")
    counts = dict.fromkeys(("damaged", "hidden", "empty", "shortened"), 0)
    lines = list(_json_lines(rows, counts) if is_json else _named_lines(rows, own, counts))
    if not lines:
        raise Refusal(NOT_READ)
    guessed = sum(not line.at for line in lines)
    said = [f"{len(lines)} lines taken", *(f"{n} {what}" for what, n in counts.items() if n)]
    note = ", ".join(said)
    note += f"; dates of {guessed} lines guessed from their neighbours" if guessed else ""
    return Chat(tuple(_timed(lines, now)), note)


def _json_lines(rows: list[str], counts: dict[str, int]) -> Iterator[OldLine]:
    for number, row in enumerate(rows):
        try:
            item = json.loads(row)
        except (ValueError, RecursionError):
            item = None
        if number == 0 and isinstance(item, dict) and "mes" not in item:
            continue  # the head
        text = _text(item)
        if text is None:
            counts["damaged"] += 1
        elif item.get("is_system") is True:
            counts["hidden"] += 1
        elif not text.strip():
            counts["empty"] += 1
        else:
            counts["shortened"] += len(text) > LINE_CHARS
            is_own = item.get("is_user") is not True
            yield OldLine(is_own, text[:LINE_CHARS], _time(item.get("send_date")))


def _text(item: Any) -> str | None:
    """The text of a line of JSON; Chub puts it one level deeper."""
    text = item.get("mes") if isinstance(item, dict) else None
    text = text.get("message") if isinstance(text, dict) else text
    return storable(text) if isinstance(text, str) else None


def _named_lines(rows: list[str], own: str, counts: dict[str, int]) -> Iterator[OldLine]:
    for row in rows:
        found = _NAMED.fullmatch(row.strip())
        if found is None:
            counts["damaged"] += 1
        elif not found[2].strip():
            counts["empty"] += 1
        else:
            yield OldLine(found[1].strip().casefold() == own.casefold(), found[2][:LINE_CHARS])
    if counts["damaged"] > len(rows) // 2:
        raise Refusal(NOT_READ)


def _time(value: Any) -> float:
    """A time in seconds since the epoch, however it is written; 0 for none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value / 1000 if 10**11 < value < 10**14 else value
        return float(seconds) if _FIRST < seconds < 10**10 else 0.0
    text = value if isinstance(value, str) else ""
    short = re.sub(r"\d+ms$", "", re.sub(r"[\s,]+", "", text))
    for form in ("", *_FORMATS):
        try:
            at = datetime.strptime(short, form) if form else datetime.fromisoformat(text)
        except ValueError:
            continue
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return at.timestamp() if at.year >= 2000 else 0.0
    return 0.0


def _timed(lines: list[OldLine], now: float) -> list[OldLine]:
    """Lines with times that never go back, none later than now."""
    first = next((line.at for line in lines if line.at), now)
    before = min(first, now) - len(lines) * _STEP_S
    timed = []
    for line in lines:
        before = min(now, max(before, line.at or before + _STEP_S))
        timed.append(replace(line, at=before))
    return timed
