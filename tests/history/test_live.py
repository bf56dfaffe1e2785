"""The history handler on a store in memory: pages, adoption, the record of ids."""

import time
import unittest

from evennia_ai.history.live import PAGE_MESSAGES, HistoryHandler
from evennia_ai.history.messages import OVERHEAD_TOKENS, IdSource, Message, utc_iso
from evennia_ai.history.pairs import INTERRUPTED, cut_points
from evennia_ai.history.verification import EMPTY_DIGEST, digest_add
from evennia_ai.testing import MemoryStore
from tests.strategies import calls, result


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

    def test_a_late_result_stands_by_its_call(self):
        """Results stand behind their call and its others, so that a cut is possible behind them."""
        handed = []
        self.history = self.handler(handed.extend)
        secret = "private:o1.x"
        asked = calls("c1", "c2", "c3", audience=secret, metadata={"context": "awake"})
        self.history.append([asked, result("c2")])
        self.say(*(f"line {n}" for n in range(40)))
        self.history.append([calls("c1", audience=secret)])
        handed.clear()
        self.assertEqual(self.handler().heal(), 3)
        other = self.handler()
        messages = other.messages()
        ids = [message.tool_call_id for message in messages]
        self.assertEqual(ids[1:4], ["c2", "c1", "c3"])
        self.assertEqual(ids[-1], "c1")
        self.assertEqual(messages[2].audience, secret)
        self.assertEqual(messages[2].metadata, {"context": "awake"})
        self.assertEqual(messages[2].content, INTERRUPTED)
        self.assertIn(4, cut_points(messages))
        self.assertIn(30, cut_points(messages))
        raw = [message.id for message in messages]
        self.assertEqual(other.recorded, (len(raw), digest_add(EMPTY_DIGEST, raw)))
        self.history.messages()  # notices what another handler wrote, and tells of it
        handed.clear()
        self.assertEqual(self.history.heal(), 0)
        self.assertEqual(handed, [])

    def test_new_ids_sort_behind_what_is_stored(self):
        """Ids tell what came later, so they go on behind the newest message on any clock."""
        ahead = IdSource(now=lambda: time.time() + 5)("m")
        self.store.set("conversation_history", [Message("user", "Hello", id=ahead).to_dict()])
        [later] = self.say("Again")
        self.assertGreater(later.id, ahead)
