"""The lines that `search_memory` and `expand_memory` answered."""

from collections.abc import Iterator, Mapping
from typing import Any

from evennia_ai.offline.lines import (
    JOURNAL,
    LEDGER,
    MAX_CHARS,
    MEMORY,
    MESSAGE,
    SUMMARY,
    Line,
    heard_lines,
    told_lines,
)
from evennia_ai.offline.transcript import loaded, text_of

_SOURCE_OF = {
    "message": MESSAGE,
    "journal": JOURNAL,
    "ledger": LEDGER,
    "memory": MEMORY,
    "summary": SUMMARY,
    "experience": SUMMARY,
}
_MAX_ROWS = 200


def found_lines(result: str) -> list[Line]:
    """The lines a result holds, best first; empty for anything else."""
    answer = loaded(result)
    items = answer.get("results")
    if "text" in answer:
        around = answer.get("around")
        items = [answer, *(around if isinstance(around, list) else ())]
    found: list[Line] = []
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping):
            found.extend(_found(item))
    return found


def _found(item: Mapping[str, Any]) -> Iterator[Line]:
    text = text_of(item.get("text"))[:MAX_CHARS]
    memory_id, at = str(item.get("id") or ""), str(item.get("at") or "")
    who = item.get("speaker")
    who = str(who.get("key") or "") if isinstance(who, Mapping) else str(who or "")
    source = _SOURCE_OF.get(str(item.get("kind", "message")), MEMORY)
    if source in (MESSAGE, LEDGER):
        said = Line(who, text) if who else next(heard_lines(text, -1), None)
        if said:
            yield Line(said.who, said.text, "says", memory_id, at, source=source)
        return
    for row in text.splitlines()[:_MAX_ROWS]:
        yield from told_lines(row, memory_id, at, source)
