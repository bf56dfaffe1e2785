"""What is taken of character cards and lorebooks, and what is left.

``python -m benchmarks.cards FOLDER`` prints a table of all files of a folder as JSON.
"""

import json
import sys
from collections import Counter
from pathlib import Path

from evennia_ai.cards.books import read_book
from evennia_ai.cards.card import read_card
from evennia_ai.cards.container import read
from evennia_ai.errors import Refusal


def row_of(file: Path) -> dict[str, object]:
    """What becomes of one file."""
    try:
        contents = read(file.read_bytes())
        if isinstance(contents.value, dict) and "entries" in contents.value:
            book = read_book(contents.value)
            return {"file": file.name, "book": book.notes[0], "notes": book.notes[1:]}
        card = read_card(contents.value, "" if contents.value.get("name") != "" else "Nameless")
    except Refusal as error:
        return {"file": file.name, "refused": str(error)}
    book = card.lore()
    return {
        "file": file.name,
        "name": card.name,
        "form": contents.form,
        "taken": card.taken,
        "shown": list(card.about),
        "left": card.left,
        "persona": len(card.persona),
        "examples": len(card.examples),
        "greetings": len(card.greetings),
        "book": book.notes[0] if book.notes else "",
        "notes": [*contents.notes, *card.notes],
    }


def main() -> None:
    """Print the table, and how often each field was taken and left."""
    files = sorted(each for each in Path(sys.argv[1]).rglob("*") if each.is_file())
    rows = [row_of(file) for file in files]
    counts = {
        kind: Counter(name for row in rows for name in row.get(kind, ()))  # type: ignore[attr-defined]
        for kind in ("taken", "shown", "left")
    }
    print(json.dumps({"files": rows, "fields": counts}, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
