"""What a rollback makes of a history."""

import unittest
from dataclasses import replace

from evennia_ai.history.messages import Message
from evennia_ai.history.pairs import hidden, order_before, with_archived
from evennia_ai.history.records import CompactionRecord, Segment
from evennia_ai.sleep.compaction.rollback import plan_rollback
from tests.strategies import heard, numbered


def compaction(stored):
    """A compaction's record of what is stored."""
    return CompactionRecord.from_dict({"id": "c1", "at": "", "trigger": "", **stored})


class TestPlanRollback(unittest.TestCase):
    """The live history after it."""

    def test_what_left_comes_back_before_what_stayed(self):
        """Leaving messages stand first."""
        first, second, newest = numbered([heard(content=word) for word in "abc"])
        record = compaction({"leaving": ["m0", "m1"]})
        segment = Segment.sealed("g1", "s1", [first, second])
        undone = plan_rollback([newest], record, [segment])
        self.assertEqual(undone.history, (first, second, newest))
        self.assertEqual(undone.restored, 2)

    def test_what_stayed_between_is_between_again(self):
        """Where something stayed between what left, all stand in their old order, news behind."""
        left, stayed, also_left, answer, newest = numbered([heard(content=w) for w in "abcde"])
        answer = replace(answer, role="tool")
        marker = Message("system", "", id="x", metadata={"type": "compaction"})
        order = order_before([marker, left, stayed, also_left], [left, also_left])
        record = compaction({"leaving": ["m0", "m2"], "markers_before": [], "order": order})
        segments = [Segment.sealed("g1", "s1", [left, also_left])]
        undone = plan_rollback([stayed, answer], record, segments)
        self.assertEqual(undone.history, (left, stayed, answer, also_left))
        undone = plan_rollback([stayed, newest], record, segments)
        self.assertEqual(undone.history, (left, stayed, also_left, newest))
        undone = plan_rollback([answer, stayed], record, segments)
        self.assertEqual(undone.history, (left, answer, stayed, also_left))
        undone = plan_rollback([newest], record, segments)
        self.assertEqual(undone.history, (left, also_left, newest))

    def test_no_order_where_the_oldest_left(self):
        """What leaves from the front needs no order."""
        history = numbered([heard(content=word) for word in "abc"])
        self.assertEqual(order_before(history, history[:2]), ())


class TestWithArchived(unittest.TestCase):
    """What left, put before and between what is live."""

    def test_behind_what_may_not_be_seen(self):
        """What was put in behind a hidden message stands where that one stood."""
        small, left, secret, edited, newest = numbered([heard(content=w) for w in "abcde"])
        first = ([left], ["m0", "m1", "m2"])  # `small` and `secret` stayed
        second = ([secret, edited], ["m0", "m2", "m3", "m4"])
        live = [small, newest]
        every = [small, left, secret, edited, newest]
        self.assertEqual(with_archived([second, first], live), every)
        second = ([hidden("m2"), edited], ["m0", "m2", "m3", "m4"])
        without = [small, left, edited, newest]
        self.assertEqual(with_archived([second, first], live), without)

    def test_behind_its_call(self):
        """A late result stands behind its call, whatever hidden message came between."""
        call, left, news, answer = numbered([heard(content=w) for w in "abcd"])
        answer = replace(answer, role="tool")
        part = ([left], ["m1", "m0"])
        shown = with_archived([part], [call, hidden("m2"), answer])
        self.assertEqual(shown, [left, call, answer])
        self.assertEqual(with_archived([part], [call, news]), [left, call, news])

    def test_nothing_in_between(self):
        """Parts without an order stand before all that came later."""
        ones, others, newest = numbered([heard(content=w) for w in "abc"])
        self.assertEqual(
            with_archived([([others], []), ([ones], [])], [newest]), [ones, others, newest]
        )
