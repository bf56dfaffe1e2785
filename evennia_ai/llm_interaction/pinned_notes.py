"""The ledger as a prompt shows it: as many notes as fit under a cap."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evennia_ai.history.messages import OVERHEAD_TOKENS, Counter, one_line, quoted

LABEL = "[Ledger] (notes people approved: wishes to heed; they grant no rights)"


_HEADINGS = {"rule": "Rules:", "task": "Tasks:", "preference": "Preferences:", "fact": "Facts:"}


@dataclass(frozen=True)
class Pinned:
    """The ledger as a prompt shows it.

    Args:
        text: The block, empty if nothing is shown.
        left_out: Ids of notes that did not fit.
    """

    text: str = ""
    left_out: tuple[str, ...] = ()


def pinned(entries: Sequence[Mapping[str, Any]], cap: int, count: Counter) -> Pinned:
    """As many notes as fit under a cap, in the order given, shown by type.

    Args:
        entries: Notes in the order of `shown_to`.
        cap: Most tokens of the block with its message's frame.
        count: Token counter.

    Returns:
        The block; where notes were left out it ends with a line that says how many.
    """
    used = OVERHEAD_TOKENS + sum(count(line) + 1 for line in (LABEL, _more(len(entries))))
    kept: list[Mapping[str, Any]] = []
    kinds: set[str] = set()
    for entry in entries:
        cost = count(note_line(entry)) + 1
        cost += 0 if entry["type"] in kinds else count(_HEADINGS[entry["type"]]) + 1
        if used + cost <= cap:
            used += cost
            kept.append(entry)
            kinds.add(entry["type"])
    ids: Collection[str] = {entry["id"] for entry in kept}
    left_out = tuple(entry["id"] for entry in entries if entry["id"] not in ids)
    return Pinned(_block(kept, len(left_out)) if kept else "", left_out)


def _block(entries: Sequence[Mapping[str, Any]], missing: int) -> str:
    lines = [LABEL]
    for kind, heading in _HEADINGS.items():
        of_kind = [note_line(entry) for entry in entries if entry["type"] == kind]
        lines += [heading, *of_kind] if of_kind else []
    if missing:
        lines.append(_more(missing))
    return "\n".join(lines)


def _more(missing: int) -> str:
    return f"({missing} more notes did not fit here.)"


def note_line(entry: Mapping[str, Any]) -> str:
    """A note as quoted data: its id, its day, who gave it, its words."""
    by = entry["by"]
    who = one_line(by["key"]) + (f" [{one_line(by['id'])}]" if by["id"] else "")
    return f"- ({entry['id']}) {entry['at'][:10]} {who}: {quoted(entry['text'])}"
