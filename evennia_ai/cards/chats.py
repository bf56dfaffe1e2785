"""Old talk from other programs: SillyTavern's JSONL, and plain lines ``Name: text``.

Every line of a file is counted: taken, damaged, hidden or empty. The order stays as it is. A
line is whose name it has, also in talk of many.
"""

import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from evennia_ai.cards.cleaning import as_name, storable
from evennia_ai.cards.container import whole_number
from evennia_ai.errors import Refusal

LINES, LINE_CHARS = 20_000, 20_000
READ = "SillyTavern's JSONL, or lines `Name: text`"
NOT_READ = f"this is no chat that is read: {READ}"
# Names that a refusal lists.
NAMES = 12
# How other programs write a time, without the blanks and marks between its parts.
_FORMATS = ("%Y-%m-%d@%Hh%Mm%Ss", "%Y-%m-%d%Hh%Mm%Ss", "%B%d%Y%I:%M%p", "%B%d%Y%I:%M:%S%p")
# Longer values hold no time.
_TIME_CHARS = 60
_NAMED = re.compile(r"([^:：\n{}<>\[\]]{1,60})[:：] ?(.*)")
# Times before this are none: a number of small size is an index.
_FIRST = 946_684_800.0
_STEP_S = 1.0


@dataclass(frozen=True, slots=True)
class OldLine:
    """A line of an old talk."""

    name: str  # whose it is, as the file says; empty if it does not
    text: str  # what was said
    at: float = 0.0  # when, in seconds since the epoch; 0 if it is not known
    by_player: bool = False  # whether the file says that the player wrote it


@dataclass(frozen=True, slots=True)
class OldChat:
    """A talk, oldest line first, and what is to be said about its file."""

    lines: tuple[OldLine, ...]
    note: str

    @property
    def names(self) -> str:
        """Who said most lines, and how many: ``Aria (12), Bram (3)``."""
        counts = Counter(line.name for line in self.lines)
        return ", ".join(f"{name or 'nobody'} ({n})" for name, n in counts.most_common(NAMES))

    def speakers(self, own: str, player: str) -> list[str]:
        """Who said each line: `own`, `player`, or somebody else, by the name in the file.

        Without marks of the player's lines, in a talk of two the other one is the player. Lines
        without a name are `own` where nobody but the player has one. Raises `Refusal`, with the
        names in it, if no line is by `own`, and if both have one name.
        """
        if _is_called(own, player):
            raise Refusal(
                f"the assistant and the player are both called `{own}`: give the assistant another "
                "name in the file, and say that name"
            )
        counts = Counter(line.name for line in self.lines if not line.by_player)
        others = [name for name in counts if not _is_called(name, own)]
        has_player = any(line.by_player for line in self.lines)
        if has_player and others == [""]:
            others = []
        if len(others) == len(counts):
            raise Refusal(f"no line of this chat is by `{own}`; it has lines by {self.names}")
        is_pair = len(others) == 1 and not has_player
        cast = dict.fromkeys(counts, own)
        for name in others:
            cast[name] = name or player
            if is_pair or _is_called(name, player):
                cast[name] = player
        return [player if line.by_player else cast[line.name] for line in self.lines]


def _is_called(name: str, wanted: str) -> bool:
    return name.strip().casefold() == wanted.strip().casefold()


def read_chat(data: bytes, now: float) -> OldChat:
    """The talk of a file.

    Raises `Refusal` for other files. Lines without a time get one from their neighbours; `now` is
    the last there can be.
    """
    text = storable(data.decode("utf-8-sig", "replace"))
    rows = [row for row in text.splitlines() if row.strip()]
    if len(rows) > LINES:
        raise Refusal(f"the chat has {len(rows):,} lines; {LINES:,} are allowed")
    is_json = bool(rows) and rows[0].lstrip().startswith("{")
    read_line = _named_line
    if is_json:
        read_line = _json_line
    counts = dict.fromkeys(("damaged", "hidden", "empty", "shortened"), 0)
    lines: list[OldLine] = []
    for number, row in enumerate(rows):
        line = read_line(row)
        if isinstance(line, OldLine):
            counts["shortened"] += len(line.text) > LINE_CHARS
            lines.append(replace(line, text=line.text[:LINE_CHARS]))
        elif line != "head":
            counts[line] += 1
        elif number:  # a head is the first row alone
            counts["damaged"] += 1
    if not lines or (not is_json and counts["damaged"] > len(rows) // 2):
        raise Refusal(NOT_READ)
    note = ", ".join(
        [f"{len(lines)} lines taken", *(f"{n} {what}" for what, n in counts.items() if n)]
    )
    if guessed := sum(not line.at for line in lines):
        note += f"; dates of {guessed} lines guessed from their neighbours"
    # Times never go back, and none is later than now.
    first = next((line.at for line in lines if line.at), now)
    before = min(first, now) - len(lines) * _STEP_S
    for number, line in enumerate(lines):
        before = min(now, max(before, line.at or before + _STEP_S))
        lines[number] = replace(line, at=before)
    return OldChat(tuple(lines), note)


def _json_line(row: str) -> OldLine | str:
    """A line of JSON, or what else it is; Chub puts the text one level deeper."""
    try:
        item = json.loads(row, parse_int=whole_number)
    except (ValueError, RecursionError):
        return "damaged"
    if not isinstance(item, dict):
        return "damaged"
    if "mes" not in item:
        return "head"
    text, name = item["mes"], item.get("name")
    if isinstance(text, dict):
        text = text.get("message")
    if not isinstance(text, str):
        return "damaged"
    if item.get("is_system") is True:
        return "hidden"
    text = storable(text)
    if not text.strip():
        return "empty"
    if not isinstance(name, str):
        name = ""
    return OldLine(as_name(name), text, _time(item.get("send_date")), item.get("is_user") is True)


def _named_line(row: str) -> OldLine | str:
    named = _NAMED.fullmatch(row.strip())
    if named is None:
        return "damaged"
    if not named[2].strip():
        return "empty"
    return OldLine(as_name(named[1]), named[2])


def _time(value: Any) -> float:
    """A time in seconds since the epoch, however it is written; 0 for none."""
    if isinstance(value, str) and len(value) <= _TIME_CHARS:
        short = re.sub(r"\d+ms$", "", re.sub(r"[\s,]+", "", value))
        reads = [partial(datetime.fromisoformat, value)]
        reads += [partial(datetime.strptime, short, form) for form in _FORMATS]
        for read in reads:
            with suppress(ValueError):
                at = read()
                value = at.replace(tzinfo=at.tzinfo or UTC).timestamp()
                break
    if not isinstance(value, int | float) or isinstance(value, bool):
        return 0.0
    if 10**11 < value < 10**14:  # milliseconds
        value = value / 1000
    if _FIRST < value < 10**10:
        return float(value)
    return 0.0
