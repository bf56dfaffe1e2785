"""What a rollback makes of a history and of entity profiles."""

import unittest

from evennia_ai.core.rollback import plan_rollback, profile_without
from tests.strategies import heard, numbered

KNOWN = {"id": "o7", "name": "Bob", "observations": [{"id": "b1", "source": "m1"}]}


def seen(*observations, **fields):
    """Bob's profile with these observations as ``(id, source)``."""
    rows = [{"id": id_, "source": source} for id_, source in observations]
    return {**KNOWN, **fields, "observations": rows}


class TestPlanRollback(unittest.TestCase):
    """The live history after it."""

    def test_what_left_comes_back_before_what_stayed(self):
        """Leaving messages stand first; the extraction's own are taken out."""
        first, second, noted, newest = numbered([heard(content=word) for word in "abcd"])
        record = {"leaving": ["m0", "m1"], "extraction": {"messages": ["m2"]}}
        undone = plan_rollback([noted, newest], record, [{"messages": [first, second]}])
        self.assertEqual(undone.history, (first, second, newest))
        self.assertEqual(undone.withdrawn, (noted,))

    def test_markers_of_an_old_record_stay(self):
        """A record that does not say which markers stood before leaves those that are there."""
        (line,) = numbered([heard(content="a")])
        marker = {
            "id": "x",
            "role": "system",
            "content": "[CONTEXT SUMMARY] So it went.",
            "metadata": {"type": "compaction"},
        }
        self.assertEqual(plan_rollback([marker, line], {}, []).history, (marker, line))
        undone = plan_rollback([marker, line], {"markers_before": []}, [])
        self.assertEqual(undone.history, (line,))


class TestProfileWithout(unittest.TestCase):
    """A profile after it."""

    def test_nothing_came_since(self):
        """The former profile is back as it was, or gone where it was new."""
        now = seen(("b1", "m1"), ("b2", "c9"), name="Robert")
        self.assertEqual(profile_without(now, KNOWN, ["c9"]), KNOWN)
        self.assertIsNone(profile_without(seen(("b2", "c9")), None, ["c9"]))

    def test_what_came_since_stays(self):
        """Observations from elsewhere stay, the extraction's go, the older are as before."""
        now = seen(("b1", "changed"), ("b2", "c9"), ("b3", "m8"), name="Robert")
        expected = seen(("b1", "m1"), ("b3", "m8"), name="Robert")
        self.assertEqual(profile_without(now, KNOWN, ["c9"]), expected)
