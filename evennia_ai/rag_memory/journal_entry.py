"""One entry of the journal, where entries come from, and how important one is."""

from dataclasses import dataclass

import regex

from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.stored import Stored
from evennia_ai.language.script import size
from evennia_ai.language.words import asks
from evennia_ai.recall.values import Turn, seconds

# Source of an entry that the assistant chose to write.
OWN = "assistant"
# Source of an entry that repeats what was just found in memory.
RECALLED = "recalled"
# Source of an entry that a compaction made of its summary.
SYNTHESIS = "compaction"
# Sources of entries that only repeat or sum up what stands elsewhere.
DERIVED_SOURCES = (RECALLED, SYNTHESIS)
# Characters of an id behind its prefix (`history.messages.IdSource`).
ID_CHARS = 15
# For so many days everything stays in retrieval; from this importance on an entry stays at any age.
DAY_S, KEEP_DAYS, MIN_IMPORTANCE = 86400.0, 30.0, 4
DEFAULT_IMPORTANCE, LEAST_IMPORTANCE, MOST_IMPORTANCE = 5, 1, 10
# A plain statement: below the journal's default of 5, and it stays in retrieval for ever.
BASE = 4
# Words of a text that may hold more than one fact; characters that are read.
MANY_WORDS, MAX_CHARACTERS = 12, 4000


@dataclass(frozen=True, slots=True)
class JournalEntry(Stored):
    """What the assistant found worth keeping."""

    id: str  # sorts by time
    timestamp: str  # when it was written, UTC ISO 8601
    content: str
    importance: int = DEFAULT_IMPORTANCE  # 1 to 10
    source_type: str = OWN  # ``assistant`` (it chose to), one of `DERIVED_SOURCES`, or ``import``
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()  # names or ids of those it is about
    # Ids of the messages it rests on, and of the extraction that made it.
    source_message_ids: tuple[str, ...] = ()
    audience: str = PUBLIC
    withdrawn: bool = False  # whether it was taken back: kept, but neither found nor consolidated

    @property
    def tombstone(self) -> "JournalEntry":
        """What is left of it when it is forgotten: id and time, in its place, without words."""
        return JournalEntry(self.id, self.timestamp, "", audience=self.audience, withdrawn=True)

    @property
    def may_consolidate(self) -> bool:
        """Whether it may become a memory: neither derived nor taken back."""
        return self.source_type not in DERIVED_SOURCES and not self.withdrawn

    def is_worn(self, now: float) -> bool:
        """Whether it is old, by a readable time, and of a low importance."""
        old = 0 < seconds(self.timestamp) < now - KEEP_DAYS * DAY_S
        return self.importance < MIN_IMPORTANCE and old

    def is_indexed(self, now: float) -> bool:
        """Whether it takes part in retrieval at a time, seconds since the epoch."""
        is_empty = self.source_type == RECALLED or self.withdrawn or not self.content.strip()
        return not is_empty and not self.is_worn(now)

    @property
    def turn(self) -> Turn:
        """It as a turn for the index."""
        kind = "summary" if self.source_type == SYNTHESIS else "journal"
        return Turn(self.id, "", self.content, self.timestamp, None, self.audience, kind)


def bounded(importance: float | None) -> int:
    """An importance from 1 to 10; the middle without one."""
    if importance is None:
        return DEFAULT_IMPORTANCE
    return int(min(MOST_IMPORTANCE, max(LEAST_IMPORTANCE, importance)))


def synthesis_id(summary_id: str) -> str:
    """The id of the entry that a compaction made of a summary."""
    return f"compact_{summary_id[1:]}"


def score_importance(text: str) -> int:
    """How important a text is for memory, from 1 (chatter) to 10, where the model gave no number.

    A statement stays in retrieval for ever, a question does not, in whatever words; numbers and
    length count for more.
    """
    text = text[:MAX_CHARACTERS]
    count = size(text)
    if not count:
        return LEAST_IMPORTANCE
    has_number = regex.search(r"\p{Nd}", text) is not None
    return bounded(BASE + has_number + (count >= MANY_WORDS) - 2 * asks(text))
