"""As much of a long text as there is room for: what a query is about."""

import re

from evennia_ai.language.script import places
from evennia_ai.language.tables import table_of
from evennia_ai.language.words import stem

CUT = "…"
_SENTENCE = re.compile(r"[.!?؟۔।]\s+|[。！？]")


def excerpt(text: str, query: str, room: int) -> str:
    """The part of a text that shares most with a query, in at most `room` characters.

    Whole lines, or else the part of the best with most of the query's words. An ellipsis marks a
    cut.
    """
    rows = [row for row in text.splitlines() if row.strip()]
    if len(text) <= room or not rows:
        return text[:room]
    wanted = set(_compared(query).values())
    best = sorted(range(len(rows)), key=lambda at: -len(wanted & set(_compared(rows[at]).values())))
    kept: list[int] = []
    left = room
    for at in best:
        if len(rows[at]) < left:
            kept.append(at)
            left -= len(rows[at]) + 1
    if kept[:1] != best[:1]:
        return _part(rows[best[0]], wanted, room)
    return "\n".join(rows[at] for at in sorted(kept))


def _part(row: str, wanted: set[str], room: int) -> str:
    """The part of a line with most of the wanted words, from shortly before the first of them."""
    if len(row) <= room:
        return row
    shared = {at: word for at, word in _compared(row).items() if word in wanted}
    width = room - 2 * len(CUT) - 1
    lead = width // 3

    def held(at: int) -> int:
        return len({word for place, word in shared.items() if at <= place < at + width - lead})

    first = max(shared, key=lambda at: (held(at), -at), default=0)
    if held(first) > 1:  # the last place from which they all are there: they stand together
        nearer = (at for at in shared if first < at < first + width - lead)
        first = max((at for at in nearer if held(at) == held(first)), default=first)
    if first + width - lead <= width:
        return row[: room - len(CUT)] + CUT
    start = min(first - lead, len(row) - width)
    if sentence := _SENTENCE.search(row, start, first):
        start, head = sentence.end(), f"{CUT} "
    else:
        start, head = row.find(" ", start, first) + 1 or start, CUT
    tail = CUT if start + width < len(row) else ""
    return f"{head}{row[start : start + width]}{tail}"


def _compared(text: str) -> dict[int, str]:
    """The stems of a text's words, without common ones, by where they begin."""
    table = table_of(text)
    common = table.words("stop") | table.words("small")
    return {at: stem(word, table.code) for at, word in places(text) if word not in common}
