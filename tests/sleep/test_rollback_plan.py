"""What a rollback makes of a history and of entity profiles."""

import unittest
from dataclasses import replace

from evennia_ai.history.messages import Message
from evennia_ai.history.pairs import hidden, order_before, with_archived
from evennia_ai.history.records import CompactionRecord, Segment
from evennia_ai.sleep.compaction.rollback_plan import (
    plan_rollback,
    profile_without,
    without_extraction,
)
from tests.strategies import heard, numbered

KNOWN = {"id": "o7", "name": "Bob", "observations": [{"id": "b1", "source": "m1"}]}


def compaction(stored):
    """A compaction's record of what is stored."""
    return CompactionRecord.from_dict("c1", stored)


def seen(*observations, **fields):
    """Bob's profile with these observations as ``(id, source)``."""
    rows = [{"id": id_, "source": source} for id_, source in observations]
    return {**KNOWN, **fields, "observations": rows}


class TestPlanRollback(unittest.TestCase):
    """The live history after it."""

    def test_what_left_comes_back_before_what_stayed(self):
        """Leaving messages stand first; the extraction's own are taken out."""
        first, second, noted, newest = numbered([heard(content=word) for word in "abcd"])
        record = CompactionRecord.from_dict(
            "c1", {"leaving": ["m0", "m1"], "extraction": {"messages": ["m2"]}}
        )
        segment = Segment.sealed("g1", "s1", [first, second])
        undone = plan_rollback([noted, newest], record, [segment])
        self.assertEqual(undone.history, (first, second, newest))
        self.assertEqual(undone.withdrawn, (noted,))

    def test_what_stayed_between_is_between_again(self):
        """Where something stayed between what left, all stand in their old order, news behind."""
        left, stayed, also_left, answer, newest = numbered([heard(content=w) for w in "abcde"])
        answer = replace(answer, role="tool")
        marker = Message("system", "", id="x", metadata={"type": "compaction"})
        order = order_before([marker, left, stayed, also_left], [left, also_left])
        record = CompactionRecord.from_dict(
            "c1", {"leaving": ["m0", "m2"], "markers_before": [], "order": order}
        )
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

    def test_markers_of_an_old_record_stay(self):
        """A record that does not say which markers stood before leaves those that are there."""
        (line,) = numbered([heard(content="a")])
        marker = Message(
            "system", "[CONTEXT SUMMARY] So it went.", id="x", metadata={"type": "compaction"}
        )
        self.assertEqual(
            plan_rollback([marker, line], compaction({}), []).history,
            (marker, line),
        )
        undone = plan_rollback([marker, line], compaction({"markers_before": []}), [])
        self.assertEqual(undone.history, (line,))


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


class TestProfileWithout(unittest.TestCase):
    """A profile after it."""

    def test_nothing_came_since(self):
        """The former profile is back as it was, or gone where it was new."""
        now = seen(("b1", "m1"), ("b2", "c9"), aliases=["Rob"])
        self.assertEqual(profile_without(now, KNOWN, now, ["c9"]), KNOWN)
        new = seen(("b2", "c9"))
        self.assertIsNone(profile_without(new, None, new, ["c9"]))
        self.assertIsNone(profile_without(new, None, None, ["c9"]))

    def test_what_came_since_stays(self):
        """Observations, names, aliases and links from elsewhere stay; the extraction's go."""
        before = {**KNOWN, "aliases": ["Bobby"], "relationship": "a guest"}
        after = seen(("b1", "m1"), ("b2", "c9"), aliases=["Bobby", "Rob"], relationship="friend")
        now = seen(
            ("b1", "m1"),
            ("b2", "c9"),
            ("b3", "m8"),
            aliases=["Bobby", "Rob", "Bo"],
            relationship="friend",
            memory_links=["v1"],
            name="Robert",
        )
        expected = seen(
            ("b1", "m1"),
            ("b3", "m8"),
            aliases=["Bobby", "Bo"],
            relationship="a guest",
            memory_links=["v1"],
            name="Robert",
        )
        self.assertEqual(profile_without(now, before, after, ["c9"]), expected)

    def test_a_new_profile_that_others_use_stays(self):
        """One the extraction made is kept where something rests on it since."""
        after = seen(("b2", "c9"))
        now = {**seen(("b2", "c9")), "memory_links": ["v1"]}
        expected = {**now, "observations": []}
        self.assertEqual(profile_without(now, None, after, ["c9"]), expected)

    def test_a_bare_profile_stays(self):
        """One of which only a name was known is back with its name, not gone."""
        before = {**KNOWN, "observations": []}
        after = seen(("b2", "c9"))
        now = {**after, "relationship": "friend"}
        expected = {**before, "relationship": "friend"}
        self.assertEqual(profile_without(now, before, after, ["c9"]), expected)

    def test_no_former_state_is_known(self):
        """Of a profile joined since, only what rests on the extraction goes."""
        now = seen(("b1", "m1"), ("b2", "c9"), aliases=["Rob"])
        self.assertEqual(without_extraction(now, ["c9"]), seen(("b1", "m1"), aliases=["Rob"]))

    def test_what_it_superseded_or_repeated_is_as_before(self):
        """An older observation holds again; one superseded by later words stays superseded."""
        old = [{"id": each, "source": "m1", "status": "current"} for each in ("b1", "b2", "b3")]
        before = {**KNOWN, "observations": old}
        now_observations = [
            {**old[0], "status": "superseded", "superseded_by": "x1"},
            {**old[1], "status": "superseded", "superseded_by": "y1"},
            {**old[2], "sources": ["m1", "c9"], "times": 2},
            {"id": "x1", "source": "m4", "sources": ["m4", "c9"], "status": "current"},
            {"id": "y1", "source": "m8", "status": "current"},
        ]
        now = {**KNOWN, "observations": now_observations}
        kept = profile_without(now, before, None, ["c9"])["observations"]
        self.assertEqual(kept, [old[0], now_observations[1], old[2], now_observations[4]])
