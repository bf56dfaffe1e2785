"""The plan of a compaction: what leaves the live history, what stays, and who may know it.

Pure: messages in, decisions out. What leaves is parted by scope, that is by audience: whoever was
party to a line reads its summary, and no request holds the lines of two scopes.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from evennia_ai.history.archive import SummaryRecord
from evennia_ai.history.audience import PUBLIC, Views
from evennia_ai.history.messages import (
    Message,
    cut_points,
    is_talk,
    total_tokens,
    widest_view_tokens,
)
from evennia_ai.llm_interaction.budget import Room

# What starts a compaction.
MANUAL, EMERGENCY, COUNT, REQUEST, BACKGROUND, SLEEP = (
    "manual",
    "emergency",
    "count",
    "request",
    "background",
    "sleep",
)
# What is at work where a summary is made again that forgetting touched.
STALE = "stale"
# A scope of which fewer lines would leave gets no summary: it would be about as long as they are.
FEW_LINES = 5
# Summaries of one level that are merged into one of the next. A recent summary is made from raw
# messages and is a leaf; the long-term one is made from the roots. So of n leaves at most 7 roots a
# level remain, and a word has passed log₈ n + 2 summaries at most.
FAN_IN = 8


@dataclass(frozen=True)
class Plan:
    """What a compaction would do."""

    leaving: tuple[Message, ...]  # raw messages to archive, oldest first
    staying: tuple[Message, ...]  # those that stay
    # Scopes with too few lines for a summary; theirs are only archived.
    unsummarised: frozenset[str] = frozenset()

    @property
    def parts(self) -> dict[str, list[Message]]:
        """What leaves by scope: public first, the others in order of appearance."""
        parts: dict[str, list[Message]] = {}
        for message in sorted(self.leaving, key=lambda message: message.audience != PUBLIC):
            parts.setdefault(message.audience, []).append(message)
        return parts

    @property
    def summarised(self) -> tuple[str, ...]:
        """Those of the scopes that get a summary."""
        return tuple(scope for scope in self.parts if scope not in self.unsummarised)


def plan_compaction(
    history: Sequence[Message],
    window: int,
    room: Room | None = None,
    keep_tokens: int = 0,
    archive_before: str = "",
    few_lines: int = FEW_LINES,
) -> Plan:
    """Decide what leaves.

    Args:
        history: All live messages, oldest first; markers of summaries are none.
        window: Lines of talk to keep; other messages leave with the talk around them.
        room: Where the result must lie under its target; fewer lines are kept for that, but never
            less than the newest exchange. None: no cap.
        keep_tokens: Tokens of the newest messages to keep at least, if that is more than the
            window.
        archive_before: Lines of scopes with few of them are archived if they are older (ISO 8601).
        few_lines: How many lines of a scope are enough for a summary.

    Returns:
        A plan; nothing leaves if the history lies within what is to be kept.
    """
    raw = tuple(message for message in history if not message.is_summary)
    most = room.kept if room else None
    cut = _legal_cut(raw, _wanted_cut(raw, window, keep_tokens), most)
    lines = Counter(message.audience for message in raw[:cut] if is_talk(message))
    few = {m.audience for m in raw[:cut] if lines[m.audience] < few_lines}
    held = tuple(m for m in raw[:cut] if m.audience in few and m.created_at >= archive_before)
    if most is not None and widest_view_tokens((*held, *raw[cut:])) > most:
        held = ()
    back = {message.id for message in held}
    leaving = tuple(m for m in raw[:cut] if m.id not in back)
    alone = few.intersection(message.audience for message in leaving)
    return Plan(leaving, (*held, *raw[cut:]), frozenset(alone))


def _wanted_cut(raw: Sequence[Message], window: int, keep_tokens: int) -> int:
    """Index of the first message to keep: by lines of talk, or further back by tokens."""
    talk = [index for index, message in enumerate(raw) if is_talk(message)]
    index = 0
    if window == 0:
        index = len(raw)
    elif window < len(talk):
        index = talk[-window]
    kept = total_tokens(raw[index:])
    while index > 0 and kept < keep_tokens:
        index -= 1
        kept += raw[index].tokens
    return index


def _legal_cut(raw: Sequence[Message], wanted: int, most: int | None) -> int:
    """The legal cut nearest before `wanted`, or the first later one whose rest fits.

    The newest exchange is never cut away: what is too large in it is shortened when rendered.
    """
    points = cut_points(raw)
    position = max(point for point in points if point <= wanted)
    if most is None:
        return position
    later = [point for point in points if position < point < len(raw)]
    views, fits = Views(), len(raw)
    for message in reversed(raw):  # the more stays, the more there is for somebody
        views.add(message.audience, message.tokens)
        if views.widest > most:
            break
        fits -= 1
    return next((point for point in (position, *later) if point >= fits), [position, *later][-1])


def roots(summaries: Iterable[SummaryRecord]) -> list[SummaryRecord]:
    """The summaries no other was made from, in the order of what they stand for.

    `summaries` are leaves and nodes, those of one level oldest first. As the oldest of a level are
    merged, a higher root stands for older talk.
    """
    forest = list(summaries)
    merged = {child for summary in forest for child in summary.child_ids}
    left = [summary for summary in forest if summary.id not in merged]
    return sorted(left, key=lambda summary: -summary.tree_level)


def due_groups(summaries: Iterable[SummaryRecord]) -> list[list[SummaryRecord]]:
    """Roots that must be merged now, each group of `FAN_IN` into a node one level higher.

    Applied again with the new nodes, until nothing is due, at most `FAN_IN` - 1 roots a level
    remain; each merge lowers the number of roots, so that it ends.
    """
    groups = []
    for _, level in groupby(roots(summaries), key=lambda summary: summary.tree_level):
        same = list(level)
        whole = len(same) - len(same) % FAN_IN
        groups += [same[start : start + FAN_IN] for start in range(0, whole, FAN_IN)]
    return groups
