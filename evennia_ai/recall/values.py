"""What goes into the recall index and what comes out."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from evennia_ai.history.messages import MOST_SECONDS
from evennia_ai.language.words import storable

Moment = float | int | str | datetime | date | None

# Of a stored search result: hits, characters of each, characters of a result without hits.
BRIEF_HITS, BRIEF_TEXT_CHARS, BRIEF_CHARS = 3, 40, 200


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing said, written or summarised, as it goes into the index."""

    id: str  # unique within its scope; adding it again replaces the old turn
    speaker: str
    text: str
    # Seconds since the epoch, or an ISO 8601 text, a date or datetime. Anything else counts as the
    # epoch.
    at: Moment
    # Name or number of the talk it belongs to. Without one, a pause of more than half an hour
    # begins a new talk.
    session: str | int | None = None
    audience: str | None = None  # as `evennia_ai.history.audience` writes it; None is public
    kind: str = "message"  # ``message``, ``journal``, ``summary`` or ``tool`` (a tool's output)


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing found."""

    turn_id: str
    # 0 to 1: how probably it answers the query; comparable between queries only roughly.
    score: float
    speaker: str
    text: str
    at: float | str | None  # as it was given to `add` (dates and datetimes as ISO 8601)
    # The turn's kind; also ``memory`` (of semantic memory), ``observation`` (of a profile) and
    # ``ledger`` (a note).
    kind: str = "message"
    session: str | None = None
    audience: str = "public"
    # Whether it holds a word of the query in any form, or is by or of somebody the query names.
    matches: bool = True
    sources: tuple[str, ...] = ()  # ids of what an observation rests on

    @property
    def line(self) -> str:
        """Speaker and text, as words are looked for."""
        return f"{self.speaker} {self.text}"

    def to_dict(self) -> dict[str, str]:
        """As tools show it to a model: ``{"id", "kind", "speaker", "at", "text"}``.

        Times to the second; empty fields, and the kind of a message, are left out.
        """
        kind = "" if self.kind == "message" else self.kind
        at = str(self.at or "")[:19]
        shown = {"id": self.turn_id, "kind": kind, "speaker": self.speaker, "at": at}
        return {**{key: value for key, value in shown.items() if value}, "text": self.text}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Hit":
        """A hit from its `to_dict`; fields that are missing or no text are empty."""
        kept = {
            key: value
            for key in ("id", "kind", "speaker", "at", "text")
            if isinstance(value := data.get(key), str)
        }
        turn_id, speaker, text = (kept.get(key, "") for key in ("id", "speaker", "text"))
        return cls(turn_id, 0.0, speaker, text, kept.get("at"), kept.get("kind") or "message")


def brief(result: str) -> str:
    """A result of searching or opening memory as it is kept: ids with the first words of each.

    What is found stands in memory already; kept whole, every question would add it once more.
    """
    try:
        found = json.loads(result)
    except ValueError:
        found = None
    items: Any = None
    if isinstance(found, dict):
        items = [found] if "text" in found else found.get("results")
    if not isinstance(items, list) or not items:
        return result[:BRIEF_CHARS]
    rows = []
    for hit in (Hit.from_dict(item) for item in items[:BRIEF_HITS] if isinstance(item, dict)):
        text = " ".join(hit.text[: 2 * BRIEF_TEXT_CHARS].split())
        if len(text) > BRIEF_TEXT_CHARS:
            text = f"{text[:BRIEF_TEXT_CHARS].rstrip()}…"
        rows.append({"id": hit.turn_id, "text": text})
    return json.dumps({"results": rows}, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Query:
    """What an assistant's memory is searched for."""

    text: str
    limit: int = 10  # most hits
    audience: str = "public"  # who will be told; only what they may know is found
    exclude: Collection[str] = ()  # ids of turns to leave out
    own_name: str = ""  # the assistant's name, where few of its own lines are wanted
    observations: bool = False  # whether to search profiles too
    tools: bool = False  # whether to search the outputs of tools too


def stored_moment(moment: Moment) -> float | str | None:
    """A moment as it is stored: numbers as they are, all else as text; None for no number."""
    if isinstance(moment, int | float):
        if abs(moment) < MOST_SECONDS:
            return float(moment)
        return None
    if moment is None:
        return None
    return storable(str(moment))
