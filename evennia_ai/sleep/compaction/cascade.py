"""The cascade of summaries: a forest in which each node stands for `FAN_IN` summaries below it.

A recent summary is made from raw messages and is a leaf. Eight roots of one level are merged
into a node one level higher, so that n leaves have at most 7 roots a level and a tree of height
⌊log₈ n⌋. The long-term summary is made from the roots: a word has passed one summary at the
leaf, one for each level above it and the long-term one, log₈ n + 2 at most.
"""

from collections.abc import Iterable
from itertools import groupby

from evennia_ai.history.records import SummaryRecord

FAN_IN = 8


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
