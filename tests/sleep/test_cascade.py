"""The tree of summaries: what is merged when, and how many summaries a word passes."""

import unittest
from collections import Counter
from math import log

from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.history.records import LIVE, SummaryRecord
from evennia_ai.sleep.compaction.plan import FAN_IN, due_groups, roots

# A forest of 1,000 leaves is grown in some milliseconds; twenty of any size are enough.
SOME = settings(max_examples=20)


def summary(key, level=0, children=()):
    """A summary of the tree."""
    texts = dict.fromkeys(("created_at", "audience", "text"), "")
    children = tuple(children)
    return SummaryRecord(
        id=key, tier="node", status=LIVE, tree_level=level, child_ids=children, **texts
    )


def leaves(number):
    return [summary(f"r{i}") for i in range(number)]


def covers(forest, key):
    """The leaves below a summary, oldest first."""
    below = forest[key].child_ids
    return sum((covers(forest, each) for each in below), ()) if below else (key,)


def depth(parents, leaf):
    """How many summaries a word of a leaf has passed on its way to its root."""
    return 1 + depth(parents, parents[leaf]) if leaf in parents else 1


def merged(forest):
    """The forest after all that is due was merged, and how many rounds it took."""
    rounds = 0
    while groups := due_groups(forest):
        for group in groups:
            key = f"n{len(forest)}"
            node = summary(key, group[0].tree_level + 1, [each.id for each in group])
            forest = [*forest, node]
        rounds += 1
    return forest, rounds


class TestForest(unittest.TestCase):
    """What holds for any number of compactions."""

    def bounded(self, forest, number):
        """Every leaf is below one root, in order, within log₈ n + 2 summaries."""
        by_id = {each.id: each for each in forest}
        below = [leaf for root in roots(forest) for leaf in covers(by_id, root.id)]
        self.assertEqual(below, [f"r{i}" for i in range(number)])
        widths = Counter(root.tree_level for root in roots(forest))
        self.assertTrue(all(width < FAN_IN for width in widths.values()))
        nodes = [each.child_ids for each in forest if each.tree_level]
        self.assertTrue(all(len(children) == FAN_IN for children in nodes))
        height = max(each.tree_level for each in forest)
        self.assertLessEqual(FAN_IN**height, number)
        parents = {child: each.id for each in forest for child in each.child_ids}
        deepest = max(depth(parents, f"r{i}") for i in {0, number // 2, number - 1})
        self.assertLessEqual(deepest, height + 1)
        self.assertLessEqual(deepest + 1, log(number, FAN_IN) + 2 + 1e-9)

    @SOME
    @given(st.integers(1, 1000))
    def test_merged_after_each(self, number):
        """The bound holds when groups are merged as they fall due."""
        forest = []
        for leaf in leaves(number):
            forest, _ = merged([*forest, leaf])
        self.bounded(forest, number)

    @SOME
    @given(st.integers(1, 1000))
    def test_merged_at_once(self, number):
        """It holds when none was merged for long, in one round a level."""
        forest, rounds = merged(leaves(number))
        self.bounded(forest, number)
        self.assertLessEqual(rounds, log(number, FAN_IN) + 1)

    def test_damaged(self):
        """Missing children are passed over, and rings end."""
        self.assertEqual(due_groups([]), [])
        orphan = summary("n", 1, ["gone"])
        self.assertEqual([each.id for each in roots([*leaves(1), orphan])], ["n", "r0"])
        self.assertEqual(roots([summary("a", 1, ["b"]), summary("b", 1, ["a"])]), [])
