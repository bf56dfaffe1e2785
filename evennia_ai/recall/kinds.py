"""Kinds of things and what belongs to them: `pet` asks for the raven too.

A small hand-made lexicon of everyday and tavern life. Static vectors know that `raven` and
`crow` are near; that both answer a question about animals they hardly know.
"""

import json
from functools import cache
from pathlib import Path

from evennia_ai.language.words import stem

_FILE = Path(__file__).resolve().parent / "kinds.json"


@cache
def members_by_kind() -> dict[str, frozenset[str]]:
    """Stems of what belongs to a kind, by the stem of each of the kind's names."""
    found: dict[str, set[str]] = {}
    for names, members in json.loads(_FILE.read_text(encoding="utf-8")).items():
        stems = {stem(member) for member in members.split()}
        for name in names.split():
            found.setdefault(stem(name), set()).update(stems)
    return {name: frozenset(stems) for name, stems in found.items()}


def members(word: str) -> tuple[str, ...]:
    """Stems of what belongs to the kind a word names, sorted; empty if it names none."""
    return tuple(sorted(members_by_kind().get(stem(word), ())))
