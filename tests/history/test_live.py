"""The history handler on a store in memory: pages, adoption, the record of ids."""

import time
import unittest
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.live import OLDER, PAGE_MESSAGES, PAGE_PLACES, HistoryHandler
from evennia_ai.history.messages import (
    EMPTY_DIGEST,
    OVERHEAD_TOKENS,
    IdSource,
    Message,
    digest_add,
    utc_iso,
)
from tests.fake import MemoryStore
from tests.strategies import FEW


class TestHistoryHandler(unittest.TestCase):
    def setUp(self):
        self.store = MemoryStore()
        self.history = self.handler()

    def handler(self, *told):
        return HistoryHandler(self.store, lambda: len, lambda: 0.0, *told)

    def say(self, *texts):
        return self.history.append([Message("user", text) for text in texts])

    def test_a_turn_writes_the_page_only(self):
        """Until the page is full, the large Attribute is not touched."""
        for n in range(PAGE_MESSAGES - 1):
            self.say(f"line {n}")
        self.assertIsNone(self.store.get("conversation_history"))
        self.say("the last of the page")
        self.assertEqual(len(self.store.get("conversation_history")), PAGE_MESSAGES)
        self.assertEqual(self.store.get("conversation_tail")["messages"], [])

    @FEW
    @given(st.randoms(use_true_random=False), st.integers(0, PAGE_PLACES + 30))
    def test_pages_read_as_one(self, chance, count):
        """Whatever is taken out, changed or put in, another handler reads the same in order."""
        self.setUp()
        self.say(*(f"line {n}" for n in range(count)))
        for share in (0.9, 0.2):
            before = self.history.messages()
            kept = [message for message in before if chance.random() < share]
            self.history.replace(kept)
            self.assertEqual(self.handler().messages(), tuple(kept))
            self.history.replace(before)  # as a rollback does
            self.assertEqual(self.handler().messages(), before)
            if chance.random() < 0.5:
                self.history.replace(kept)
            self.say("one more")
            if chance.random() < 0.5:
                self.history = self.handler()
        stored = [self.store.get(key, OLDER) for key in self.store.keys(OLDER)]
        newest = self.store.get("conversation_history") or []
        tail = (self.store.get("conversation_tail") or {"messages": []})["messages"]
        ids = [raw["id"] for raw in chain(*stored, newest, tail)]
        self.assertEqual(ids, [m.id for m in self.handler().messages()])
        self.assertTrue(all(len(page) <= PAGE_PLACES for page in stored))

    def test_hand_written_messages_are_adopted(self):
        """Ids, times and counts are stamped, once, and stored."""
        self.store.set("conversation_history", [{"role": "user", "content": "by hand"}])
        (message,) = self.history.messages()
        self.assertEqual(message.created_at, utc_iso(0.0))
        self.assertEqual(self.handler().messages(), (message,))
        self.assertEqual(self.history.recorded, (1, digest_add(EMPTY_DIGEST, [message.id])))

    def test_tokens_by_audience(self):
        """The widest of all views counts."""
        self.say("for all")
        self.history.append([Message("user", "a b", audience="private:o1.x")])
        texts = len("someone: for all") + len("someone: a b")
        self.assertEqual(self.history.widest_tokens(), texts + 2 * OVERHEAD_TOKENS)

    def test_new_ids_sort_behind_what_is_stored(self):
        """Ids tell what came later, so they go on behind the newest message on any clock."""
        ahead = IdSource(now=lambda: time.time() + 5)("m")
        self.store.set("conversation_history", [Message("user", "Hello", id=ahead).to_dict()])
        [later] = self.say("Again")
        self.assertGreater(later.id, ahead)
