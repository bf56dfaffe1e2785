"""The tree of summaries: what is merged when, and how many summaries a word passes."""

import unittest
from collections import Counter
from math import log

from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.sleep.compaction.cascade import FAN_IN, Node, due_groups, topmost

# A forest of 1,000 leaves is grown in some milliseconds; twenty of any size are enough.
SOME = settings(max_examples=20, deadline=None)


def leaves(number):
    return [Node(f"r{i}", 0) for i in range(number)]


def covers(nodes, root):
    """The leaves below a node, oldest first."""
    found = {node.id: node for node in nodes}
    below = found[root].children
    return sum((covers(nodes, each) for each in below), ()) if below else (root,)


def depth(nodes, leaf):
    """How many summaries a word of a leaf has passed on its way to its root."""
    parents = {child: node.id for node in nodes for child in node.children}
    return 1 + depth(nodes, parents[leaf]) if leaf in parents else 1


def merged(nodes):
    """The nodes after all that is due was merged, and how many rounds it took."""
    rounds = 0
    while groups := due_groups(nodes):
        level = {node.id: node.level for node in nodes}
        new = [Node(f"n{len(nodes) + i}", level[g[0]] + 1, g) for i, g in enumerate(groups)]
        nodes, rounds = [*nodes, *new], rounds + 1
    return nodes, rounds


def grown(number):
    """The forest after `number` compactions, merged after each."""
    nodes = []
    for leaf in leaves(number):
        nodes, _ = merged([*nodes, leaf])
    return nodes


class TestByExample(unittest.TestCase):
    """Small forests."""

    def test_nothing(self):
        """No summary, no root and nothing due."""
        self.assertEqual((topmost([]), due_groups([])), ((), ()))

    def test_seven_wait(self):
        """Seven recent summaries are roots; the eighth makes a group of all."""
        ids = tuple(f"r{i}" for i in range(8))
        self.assertEqual(topmost(leaves(7)), ids[:7])
        self.assertEqual(due_groups(leaves(7)), ())
        self.assertEqual(due_groups(leaves(8)), (ids,))

    def test_lowest_level_first(self):
        """Groups of several levels come lowest first, the oldest of each level together."""
        upper = [Node(f"u{i}", 1, (f"x{i}",)) for i in range(9)]
        below, above = due_groups([*upper, *leaves(17)])[:2], due_groups([*upper, *leaves(17)])[2]
        self.assertEqual([group[0] for group in below], ["r0", "r8"])
        self.assertEqual(above, tuple(f"u{i}" for i in range(8)))

    def test_roots_in_time(self):
        """A merged node stands where its leaves stood, before what came later."""
        nodes = [*leaves(10), Node("n", 1, tuple(f"r{i}" for i in range(8)))]
        self.assertEqual(topmost(nodes), ("n", "r8", "r9"))
        self.assertEqual(covers(nodes, "n"), tuple(f"r{i}" for i in range(8)))
        self.assertEqual(covers(nodes, "r9"), ("r9",))
        self.assertEqual((depth(nodes, "r0"), depth(nodes, "r9")), (2, 1))

    def test_damaged(self):
        """Missing children are passed over, and rings end."""
        orphan = Node("n", 1, ("gone",))
        self.assertEqual(topmost([*leaves(1), orphan]), ("n", "r0"))
        ring = [Node("a", 1, ("b",)), Node("b", 1, ("a",))]
        self.assertEqual(topmost(ring), ())


class TestForest(unittest.TestCase):
    """What holds for any number of compactions."""

    def bounded(self, nodes, number):
        """Every leaf is below one root, in order, within log₈ n + 2 summaries."""
        roots = topmost(nodes)
        below = [leaf for root in roots for leaf in covers(nodes, root)]
        self.assertEqual(below, [f"r{i}" for i in range(number)])
        level = {node.id: node.level for node in nodes}
        widths = Counter(level[root] for root in roots)
        self.assertTrue(all(width < FAN_IN for width in widths.values()))
        height = max(level.values())
        self.assertLessEqual(FAN_IN**height, number)
        deepest = max(depth(nodes, f"r{i}") for i in {0, number // 2, number - 1})
        self.assertLessEqual(deepest, height + 1)
        self.assertLessEqual(deepest + 1, log(number, FAN_IN) + 2 + 1e-9)

    @SOME
    @given(st.integers(1, 1000))
    def test_merged_after_each(self, number):
        """The bound holds when groups are merged as they fall due."""
        self.bounded(grown(number), number)

    @SOME
    @given(st.integers(1, 1000))
    def test_merged_at_once(self, number):
        """It holds when none was merged for long, in one round a level."""
        nodes, rounds = merged(leaves(number))
        self.bounded(nodes, number)
        self.assertLessEqual(rounds, log(number, FAN_IN) + 1)

    @SOME
    @given(st.integers(1, 1000))
    def test_nothing_new_nothing_due(self, number):
        """A forest that was merged stays as it is: each node is made once."""
        nodes = grown(number)
        self.assertEqual(due_groups(nodes), ())
        made = [node.children for node in nodes if node.level]
        self.assertEqual(len(made), len(set(made)))
        self.assertTrue(all(len(children) == FAN_IN for children in made))

    def test_every_size_up_to_a_thousand(self):
        """The deepest leaf of n has passed floor(log₈ n) + 1 summaries, for each n."""
        nodes = []
        for number, leaf in enumerate(leaves(1000), 1):
            nodes, _ = merged([*nodes, leaf])
            height = max(node.level for node in nodes)
            self.assertTrue(FAN_IN**height <= number < FAN_IN ** (height + 1))
            self.assertEqual(depth(nodes, "r0"), height + 1)
