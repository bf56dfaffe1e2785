"""Ids go on behind those that are stored, whatever the clock says."""

import time
import unittest

from evennia_ai.history.live import HistoryHandler
from evennia_ai.history.messages import IdSource, Message, widest_view_tokens
from evennia_ai.testing import MemoryStore
from tests.strategies import heard


class TestFollow(unittest.TestCase):
    """A source of ids that was told of a stored one."""

    def test_ids_sort_behind_a_known_one(self):
        """Where the clock was set back, new ids still sort behind the known one."""
        known = IdSource(now=lambda: 2_000.0)("m")
        late = IdSource(now=lambda: 1_000.0)
        self.assertLess(late("m"), known)
        late.follow(known)
        self.assertGreater(late("m"), known)


class TestLoaded(unittest.TestCase):
    """A history that is loaded after the clock was set back."""

    def test_new_ids_sort_behind_what_is_stored(self):
        """Ids tell what came later, so they go on behind the newest message."""
        ahead, store = IdSource(now=lambda: time.time() + 5)("m"), MemoryStore()
        store.set("conversation_history", [Message("user", "Hello", id=ahead).to_dict()])
        history = HistoryHandler(store, lambda: len)
        history.messages()
        [later] = history.append([Message("user", "Again")])
        self.assertGreater(later.id, ahead)


class TestWidestView(unittest.TestCase):
    """The largest view of a history."""

    def test_private_talk_counts_for_its_parties_only(self):
        """Public tokens count for all, private ones for those they are between."""
        history = [
            heard(audience="public", tokens=10),
            heard(audience="private:o1.a", tokens=7),
            heard(audience="private:o2.b", tokens=3),
            heard(audience="public"),
        ]
        self.assertEqual(widest_view_tokens(history), 17)
        self.assertEqual(widest_view_tokens([]), 0)
