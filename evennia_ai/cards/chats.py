"""Old talk from other programs: SillyTavern's JSONL, and plain lines ``Name: text``.

Every line of a file is counted: taken, damaged, hidden or empty. The order stays as it is.
"""

import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from evennia_ai.cards.cleaning import storable
from evennia_ai.cards.container import whole_number
from evennia_ai.errors import Refusal

LINES, LINE_CHARS = 20_000, 20_000
NOT_READ = "this is no chat that is read: SillyTavern's JSONL, or lines `Name: text`"
# How other programs write a time, without the blanks and marks between its parts.
_FORMATS = ("%Y-%m-%d@%Hh%Mm%Ss", "%Y-%m-%d%Hh%Mm%Ss", "%B%d%Y%I:%M%p", "%B%d%Y%I:%M:%S%p")
# Longer values hold no time.
_TIME_CHARS = 60
_NAMED = re.compile(r"([^:\n{}<>\[\]]{1,60}): ?(.*)")
# Times before this are none: a number of small size is an index.
_FIRST = 946_684_800.0
_STEP_S = 1.0


@dataclass(frozen=True, slots=True)
class OldLine:
    """A line of an old talk."""

    is_own: bool  # whether the character said it, not the player
    text: str  # what was said
    at: float = 0.0  # when, in seconds since the epoch; 0 if it is not known


def read_chat(data: bytes, own: str, now: float) -> tuple[list[OldLine], str]:
    """A talk with the character called `own`, and what is to be said about it.

    Raises `Refusal` for other files. Lines without a time get one from their neighbours; `now` is
    the last there can be.
    """
    text = storable(data.decode("utf-8-sig", "replace"))
    rows = [row for row in text.splitlines() if row.strip()]
    if len(rows) > LINES:
        raise Refusal(f"the chat has {len(rows):,} lines; {LINES:,} are allowed")
    is_json = bool(rows) and rows[0].lstrip().startswith("{")
    counts = dict.fromkeys(("damaged", "hidden", "empty", "shortened"), 0)
    lines: list[OldLine] = []
    for number, row in enumerate(rows):
        line = _json_line(row) if is_json else _named_line(row, own)
        if isinstance(line, OldLine):
            counts["shortened"] += len(line.text) > LINE_CHARS
            lines.append(replace(line, text=line.text[:LINE_CHARS]))
        elif number or line != "head":
            counts["damaged" if line == "head" else line] += 1
    if not lines or (not is_json and counts["damaged"] > len(rows) // 2):
        raise Refusal(NOT_READ)
    guessed = sum(not line.at for line in lines)
    said = [f"{len(lines)} lines taken", *(f"{n} {what}" for what, n in counts.items() if n)]
    note = f"; dates of {guessed} lines guessed from their neighbours" if guessed else ""
    return _timed(lines, now), ", ".join(said) + note


def _json_line(row: str) -> OldLine | str:
    """A line of JSON, or what else it is; Chub puts the text one level deeper."""
    try:
        item = json.loads(row, parse_int=whole_number)
    except (ValueError, RecursionError):
        item = None
    text = item.get("mes") if isinstance(item, dict) else None
    text = text.get("message") if isinstance(text, dict) else text
    if not isinstance(text, str):
        return "head" if isinstance(item, dict) and "mes" not in item else "damaged"
    if item.get("is_system") is True:
        return "hidden"
    line = OldLine(item.get("is_user") is not True, storable(text), _time(item.get("send_date")))
    return line if line.text.strip() else "empty"


def _named_line(row: str, own: str) -> OldLine | str:
    named = _NAMED.fullmatch(row.strip())
    if named is None or not named[2].strip():
        return "empty" if named else "damaged"
    return OldLine(named[1].strip().casefold() == own.casefold(), named[2])


def _time(value: Any) -> float:
    """A time in seconds since the epoch, however it is written; 0 for none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value / 1000 if 10**11 < value < 10**14 else value
        return float(seconds) if _FIRST < seconds < 10**10 else 0.0
    text = value if isinstance(value, str) and len(value) <= _TIME_CHARS else ""
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
