"""The plan of a compaction, and the tree of summaries."""

import unittest
from collections import Counter
from math import log

from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.history.archive import SummaryRecord
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import (
    Message,
    cut_points,
    is_talk,
    pairing,
    widest_view_tokens,
)
from evennia_ai.llm_interaction.budget import Room
from evennia_ai.sleep.compaction.plan import (
    FAN_IN,
    FEW_LINES,
    due_groups,
    plan_compaction,
    roots,
)
from tests.strategies import MANY, heard, histories, numbered, result

A, B = private(["o1.a"]), private(["o2.b"])
windows = st.integers(1, 12)
keeps = st.one_of(st.just(0), st.integers(0, 12_000))
rooms = st.one_of(st.none(), st.builds(Room, st.integers(1, 40_000), st.just(0), st.just(0)))
plans = given(histories(), windows, rooms, keeps)


def raw_of(messages):
    return [message for message in messages if not message.is_summary]


def sized(*tokens, **fields):
    """Heard lines of these token counts."""
    return numbered([heard(tokens=each, **fields) for each in tokens])


def of_kept(tokens):
    """A room that keeps so many tokens of messages."""
    return next(r for n in range(10**6) if (r := Room(n, 0, 0)).kept == tokens)


class TestPlanByExample(unittest.TestCase):
    def leaving(self, history, *args, **options):
        return [m.id for m in plan_compaction(history, *args, few_lines=1, **options).leaving]

    def test_a_window_counts_talk(self):
        """Arrivals and results leave with the talk around them; what a tool says is talk."""
        function = {"name": "say", "arguments": '{"text": "hello"}'}
        said = Message("assistant", "", tool_calls=({"id": "c1", "function": function},))
        history = numbered(
            [heard(), heard(), heard(channel="arrive"), said, result("c1"), heard(channel="leave")]
        )
        self.assertEqual([is_talk(m) for m in history], [True, True, False, True, False, False])
        self.assertEqual(self.leaving(history, 2), ["m0"])
        self.assertEqual(self.leaving(history, 1), ["m0", "m1", "m2"])

    def test_how_much_leaves(self):
        """Window and tokens to keep, no message too many; more where they have no room."""
        history = sized(10, 10, 10, 10)
        for window, options, count in (
            (4, {}, 0),
            (0, {}, 4),
            (1, {"keep_tokens": 15}, 2),
            (1, {"keep_tokens": 99}, 0),
            (3, {"room": of_kept(20)}, 2),
            (3, {"room": of_kept(1)}, 3),
        ):
            self.assertEqual(len(self.leaving(history, window, **options)), count)
        self.assertEqual(plan_compaction((), 2).leaving, ())

    def test_few_lines_of_a_scope_stay(self):
        """A summary would be as long; they leave without one where there is no room for them."""
        history = numbered(
            [heard(audience=A, tokens=50)]
            + [heard(audience=B, tokens=50) for _ in range(FEW_LINES)]
            + [heard(tokens=50) for _ in range(FEW_LINES + 2)]
        )
        plan = plan_compaction(history, 2)
        self.assertEqual((tuple(plan.parts), plan.summarised), ((PUBLIC, B), (PUBLIC, B)))
        self.assertEqual([m.id for m in plan.staying], ["m0", "m11", "m12"])
        for options in ({"archive_before": "9999"}, {"room": of_kept(99)}):
            plan = plan_compaction(history, 2, **options)
            self.assertEqual(plan.unsummarised, frozenset([A]))
            self.assertEqual(plan.summarised, (PUBLIC, B))


class TestPlanProperties(unittest.TestCase):
    @MANY
    @plans
    def test_everything_is_somewhere(self, history, window, room, keep):
        """Each message leaves or stays, and only once."""
        plan = plan_compaction(history, window, room, keep)
        parts = [*plan.leaving, *plan.staying]
        self.assertCountEqual([id(m) for m in parts], [id(m) for m in raw_of(history)])
        self.assertFalse(any(m.is_summary for m in plan.leaving))
        self.assertEqual(sum(map(len, plan.parts.values())), len(plan.leaving))

    @MANY
    @plans
    def test_the_window_stays(self, history, window, room, keep):
        """The newest lines are kept, unless there is no room; then what is kept has room."""
        plan = plan_compaction(history, window, room, keep)
        kept, raw = raw_of(plan.staying), raw_of(history)
        newest = [m for m in raw if is_talk(m)][-window:]
        if room is None:
            self.assertLessEqual({m.id for m in newest}, {m.id for m in kept})
        elif widest_view_tokens(kept) > room.kept:
            points = [point for point in cut_points(raw) if point < len(raw)]
            self.assertEqual(kept, raw[points[-1] :] if points else raw)

    @MANY
    @plans
    def test_the_cut_parts_no_pair(self, history, window, room, keep):
        """No call is parted from results behind it but by what is held back for its scope."""
        plan = plan_compaction(history, window, room, keep)
        raw, left = raw_of(history), {id(m) for m in plan.leaving}
        cut = max((n for n, m in enumerate(raw, 1) if id(m) in left), default=0)
        held = {id(m) for m in raw[:cut]} - left
        for answer, caller in pairing(raw).items():
            ends = {id(raw[answer]), id(raw[caller])}
            stand_together = all(m.role == "tool" for m in raw[caller + 1 : answer])
            if stand_together and not ends & held:
                self.assertIn(len(ends & left), (0, len(ends)))


# A forest of 1,000 leaves is grown in some milliseconds; twenty of any size are enough.
SOME = settings(max_examples=20)


def summary(key, level=0, children=()):
    texts = dict.fromkeys(("created_at", "audience", "text"), "")
    children = tuple(children)
    return SummaryRecord(id=key, tier="node", tree_level=level, child_ids=children, **texts)


def leaves(number):
    return [summary(f"r{i}") for i in range(number)]


def covers(forest, key):
    """The leaves below a summary, oldest first."""
    below = forest[key].child_ids
    return sum((covers(forest, each) for each in below), ()) if below else (key,)


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
        levels = {each.id: each.tree_level for each in forest}
        for each in forest:
            self.assertLessEqual({levels[key] for key in each.child_ids}, {each.tree_level - 1})

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
