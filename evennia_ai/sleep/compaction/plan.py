"""The plan of a compaction: what leaves the live history, what stays, and who may know it.

Pure: messages in, decisions out. Handlers carry them out.
"""

from bisect import bisect
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.messages import Message, total_tokens
from evennia_ai.history.pairs import cut_points, pairing
from evennia_ai.llm_interaction.contexts import CONTEXT_PRE_COMPACTION

# Compactions in a row of no use after which the automatic ones are stopped.
STALLS_TO_STOP = 3


@dataclass(frozen=True)
class Plan:
    """What a compaction would do.

    Args:
        leaving: Raw messages to archive, oldest first.
        folded: Older summary markers that the new summaries take up.
        staying: The rest of the history, oldest first: other markers, then raw messages.
        shrunk: Whether fewer messages are kept than asked for, as more would not fit.
        held: Staying raw messages old enough to leave, but too few of a private circle.
        by_count: How many are to leave where a count trigger fired, also when some of them are
            held back later; 0 in any other compaction.
    """

    leaving: tuple[Message, ...]
    folded: tuple[Message, ...]
    staying: tuple[Message, ...]
    shrunk: bool = False
    held: tuple[Message, ...] = ()
    by_count: int = 0

    @property
    def audiences(self) -> tuple[str, ...]:
        """Audiences of what leaves, public first, the others in order of appearance."""
        seen = dict.fromkeys(message.audience for message in self.leaving)
        return tuple(sorted(seen, key=lambda audience: audience != PUBLIC))

    def part(self, audience: str) -> tuple[Message, ...]:
        """The raw messages of one audience that leave."""
        return tuple(m for m in self.leaving if m.audience == audience)

    def previous(self, audience: str) -> tuple[Message, ...]:
        """The folded markers of one audience."""
        return tuple(m for m in self.folded if m.audience == audience)

    def without(self, audiences: Collection[str]) -> "Plan":
        """The same plan with what these audiences' part of it would take staying."""
        back = tuple(m for m in self.leaving if m.audience in audiences)
        unfolded = tuple(m for m in self.folded if m.audience in audiences)
        markers = tuple(m for m in self.staying if m.is_summary)
        raw = tuple(m for m in self.staying if not m.is_summary)
        return replace(
            self,
            leaving=tuple(m for m in self.leaving if m.audience not in audiences),
            folded=tuple(m for m in self.folded if m.audience not in audiences),
            staying=markers + unfolded + back + raw,
            held=self.held + back,
        )

    def small_parts(self, least_tokens: int) -> tuple[str, ...]:
        """Private audiences whose part holds fewer tokens, so that a summary saves next to none."""
        free = [each for each in self.audiences if each not in (PUBLIC, *self.tied)]
        return tuple(each for each in free if total_tokens(self.part(each)) < least_tokens)

    @property
    def tied(self) -> frozenset[str]:
        """Audiences that leave together: a tool call of one has its result in another."""
        owners = [message.audience for message in self.leaving]
        pairs = [{owners[index] for index in pair} for pair in pairing(self.leaving).items()]
        return frozenset[str]().union(*(pair for pair in pairs if len(pair) > 1))

    @property
    def missed(self) -> bool:
        """Whether a count trigger gained little: less than half of what was to leave does."""
        return 2 * len(self.leaving) < self.by_count

    @property
    def empty(self) -> bool:
        """Whether nothing would leave."""
        return not self.leaving


def plan_compaction(
    history: Sequence[Message],
    preserve_window: int,
    keep_tokens: int = 0,
    capacity_tokens: int | None = None,
    least_tokens: int = 0,
    count_cut: int = 0,
) -> Plan:
    """Decide what leaves.

    Args:
        history: All live messages, oldest first, markers among them.
        preserve_window: Raw messages to keep at least. Those of an extraction count for half of
            it at most, or after a long one the talk would be gone from view.
        keep_tokens: Tokens of the newest raw messages to keep at least, if that is more.
        capacity_tokens: Most the kept raw messages may hold; overrides both. None: no cap.
        least_tokens: What a private audience's part must hold to leave: many who each said a
            line in confidence would cost a model's call each, for summaries as long as the lines.
        count_cut: Where a compaction by count cuts, as `cut_by_count` returns it; then no more
            leaves than it takes for a legal cut there, whatever is to be kept. 0 for any other.

    Returns:
        A plan; `empty` if the history lies within what is to be kept.
    """
    markers = tuple(message for message in history if message.is_summary)
    raw = tuple(message for message in history if not message.is_summary)
    wanted = count_cut or _wanted_cut(raw, preserve_window, keep_tokens)
    later = count_cut > 0
    cut = _legal_cut(raw, wanted, capacity_tokens, later)
    leaving = raw[:cut]
    touched = {message.audience for message in leaving}
    folded = tuple(marker for marker in markers if marker.audience in touched)
    others = tuple(marker for marker in markers if marker.audience not in touched)
    shrunk = cut > _legal_cut(raw, wanted, None, later)
    plan = Plan(leaving, folded, others + raw[cut:], shrunk)
    plan = plan.without(plan.small_parts(least_tokens))
    return replace(plan, by_count=len(plan.leaving) if later else 0)


def cut_by_count(
    history: Sequence[Message], preserve_window: int, leaving: int, least_tokens: int = 0
) -> int:
    """Index of the first raw message to keep, so that just so many older ones can leave.

    What stays before it for its circle said too little is not counted, or each compaction would
    fold that many fewer, in the end none. Nor is what an extraction left, on either side: one
    goes before each compaction, so that with small windows it alone would call for the next.

    Args:
        history: All live messages, oldest first.
        preserve_window: Raw messages to keep.
        leaving: How many are to leave, not counting those of an extraction.
        least_tokens: What a private audience's part must hold to leave.

    Returns:
        An index among the raw messages; 0 where fewer can leave.
    """
    raw = [message for message in history if not message.is_summary]
    counted = [index for index, message in enumerate(raw) if not is_extraction(message)]
    said, tokens, able = Counter[str](), Counter[str](), 0
    for index, message in enumerate(raw[: _nth_newest(counted, preserve_window)]):
        owner = message.audience
        could = owner == PUBLIC or tokens[owner] >= least_tokens
        counts = int(not is_extraction(message))
        said[owner] += counts
        tokens[owner] += message.tokens
        if owner == PUBLIC or tokens[owner] >= least_tokens:
            able += counts if could else said[owner]
        if able >= leaving:
            return index + 1
    return 0


def _wanted_cut(raw: Sequence[Message], window: int, keep_tokens: int) -> int:
    """Index of the first message to keep: by count, or further back by tokens."""
    extraction = [index for index, m in enumerate(raw) if is_extraction(m)]
    uncounted = set(extraction[: max(0, len(extraction) - window // 2)])
    counted = [index for index in range(len(raw)) if index not in uncounted]
    by_count = _nth_newest(counted, window)
    kept, index = total_tokens(raw[by_count:]), by_count
    while index > 0 and kept < keep_tokens:
        index -= 1
        kept += raw[index].tokens
    return index


def _nth_newest(indices: Sequence[int], count: int) -> int:
    """The index from which on there are so many of these; 0 where there are no more."""
    return indices[-count] if len(indices) > count else 0


def is_extraction(message: Message) -> bool:
    """Whether a message is a call or a result of a pre-compaction extraction."""
    return message.metadata.get("context") == CONTEXT_PRE_COMPACTION


def _legal_cut(
    raw: Sequence[Message], wanted: int, capacity: int | None, later: bool = False
) -> int:
    """The legal cut nearest before `wanted`, or the first later one whose rest fits.

    If `later`, the nearest behind it, unless nothing would stay.
    """
    points = cut_points(raw)
    before = max(point for point in points if point <= wanted)
    if later:
        before = next((point for point in points if wanted <= point < len(raw)), before)
    if capacity is None:
        return before
    # The newest turn is never cut away: what is too large in it is shortened when rendered.
    points = tuple(point for point in points if point < len(raw)) or (0,)
    left = total_tokens(raw[before:])
    position = before
    for point in (point for point in points if point >= before):
        left -= total_tokens(raw[position:point])
        position = point
        if left <= capacity:
            return point
    return position


def windows(messages: Sequence[Message], room_tokens: int) -> list[tuple[Message, ...]]:
    """A history in parts, oldest first, that hold at most so many tokens each.

    No tool call is parted from its result: a part that holds nothing but such messages may be
    larger. No messages make one empty part.
    """
    parts: list[tuple[Message, ...]] = []
    start = end = held = 0
    for point in cut_points(messages)[1:]:
        more = total_tokens(messages[end:point])
        if end > start and held + more > room_tokens:
            parts.append(tuple(messages[start:end]))
            start, held = end, 0
        end, held = point, held + more
    return [*parts, tuple(messages[start:])]


def circle_windows(
    messages: Sequence[Message], audience: str, room_tokens: int
) -> list[tuple[Message, ...]]:
    """What one private circle said, in parts as of `windows`, with what was said around it.

    There are no more parts than the circle's own words need; others' messages that it may see, the
    nearest first, only fill the room that is left in each.
    """
    turns = [messages[start:end] for start, end in pairwise(cut_points(messages))]
    own = [n for n, turn in enumerate(turns) if any(m.audience == audience for m in turn)]
    place = {message.id: n for n, turn in enumerate(turns) for message in turn}
    parts = windows([message for n in own for message in turns[n]], room_tokens)
    filled = []
    for part in parts:
        within = sorted({place[message.id] for message in part})
        others = sorted(set(range(len(turns))).difference(own), key=lambda n: _gap(n, within))
        room = room_tokens - total_tokens(part)
        for n in others:
            room -= total_tokens(turns[n])
            if room < 0:
                break
            within.append(n)
        filled.append(tuple(message for n in sorted(within) for message in turns[n]))
    return filled


def _gap(place: int, others: Sequence[int]) -> int:
    """How far a place is from the nearest of the others, which are sorted."""
    after = bisect(others, place)
    return min(abs(place - other) for other in others[max(0, after - 1) : after + 1])


def spliced(
    current: Sequence[Message], plan: Plan, summaries: Sequence[Message]
) -> tuple[Message, ...]:
    """The history after a compaction, by ids: new markers, other markers, then all the rest.

    Messages that arrived since the plan was made stay, in order.
    """
    gone = {message.id for message in plan.leaving + plan.folded}
    rest = [message for message in current if message.id not in gone]
    markers = [message for message in rest if message.is_summary]
    raw = [message for message in rest if not message.is_summary]
    ordered = sorted([*summaries, *markers], key=lambda marker: marker.audience != PUBLIC)
    return tuple(ordered + raw)
