"""A reply's tool calls, before they are stored and run: bounded, readable, in batches."""

import json
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

Call = Mapping[str, Any]
# More calls than this in one reply are a runaway.
MOST_CALLS = 32
# Longer arguments are no arguments of any tool here; they must be readable JSON all the same.
ARGUMENT_CHARS = 100_000


def bounded(calls: Sequence[Call]) -> tuple[tuple[Call, ...], int]:
    """The first calls of a reply, and how many were left out."""
    return tuple(calls[:MOST_CALLS]), max(0, len(calls) - MOST_CALLS)


def storable_call(call: Call) -> dict[str, Any]:
    """A call whose arguments are the text of a JSON object, as providers want them sent back.

    What cannot be read is kept as a text in such an object; what is longer than
    `ARGUMENT_CHARS` keeps its beginning.
    """
    function = call.get("function")
    function = dict(function) if isinstance(function, Mapping) else {}
    raw = function.get("arguments")
    text = raw if isinstance(raw, str) else json.dumps(raw if raw is not None else {})
    if len(text) > ARGUMENT_CHARS or not _is_object(text):
        text = json.dumps({"unreadable": text[:ARGUMENT_CHARS]}, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": text}}


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def batches(
    calls: Sequence[Call], ending: Set[str], addressee: Callable[[Call], str | None]
) -> tuple[tuple[Call, ...], ...]:
    """Calls as they are stored and run together: each batch is of interest to one person at most.

    Calls of tools that end the turn come last, so that what stands behind them is still done.

    Args:
        calls: The calls of one reply.
        ending: Names of the tools that end a turn.
        addressee: Gives whom alone a call is for, or None.
    """
    ordered = sorted(calls, key=lambda call: call["function"].get("name") in ending)
    found: list[list[Call]] = []
    current: str | None = None
    for call in ordered:
        person = addressee(call)
        if not found or (person and current and person != current):
            found.append([])
        current = person or current
        found[-1].append(call)
    return tuple(tuple(batch) for batch in found)
