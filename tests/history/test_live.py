"""The history handler on a store in memory: pages, adoption, the record of ids."""

import time
import unittest
from dataclasses import replace

from evennia_ai.history.live import PAGE_MESSAGES, HistoryHandler
from evennia_ai.history.messages import IdSource, Message, utc_iso
from evennia_ai.history.pages import ASIDE
from evennia_ai.history.pairs import INTERRUPTED, cut_points
from evennia_ai.history.verification import EMPTY_DIGEST, digest_add
from evennia_ai.testing import MemoryStore


def words(text):
    """A counter that needs no vocabulary."""
    return len(text.split())


class TestHistoryHandler(unittest.TestCase):
    """Reading, storing, adopting."""

    def setUp(self):
        self.store = MemoryStore()
        self.history = self.handler()

    def handler(self):
        return HistoryHandler(self.store, lambda: words, lambda: 0.0)

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

    def test_damaged_values_are_put_aside(self):
        """What is no list of messages is kept elsewhere before it is written over."""
        self.store.set("conversation_history", "gone wrong")
        self.say("still here")
        self.assertEqual([m.content for m in self.history.messages()], ["still here"])
        self.assertEqual(self.store.get("conversation_history", ASIDE), ["gone wrong"])

    def test_tokens_by_audience(self):
        """The widest of all views counts."""
        self.say("all may hear this")
        secret = Message("user", "a b c", audience="private:o1.x")
        self.history.append([secret])
        self.assertEqual(self.history.widest_tokens(), 15)

    def test_a_late_result_stands_by_its_call(self):
        """Results stand behind their call and its others, so that a cut is possible behind them."""
        handed = []
        self.history = HistoryHandler(self.store, lambda: words, lambda: 0.0, handed.extend)
        calls = [
            {"id": each, "type": "function", "function": {"name": "look", "arguments": "{}"}}
            for each in ("c1", "c2", "c3")
        ]
        owner = Message("assistant", "", audience="private:o1.x")
        self.history.append(
            [replace(owner, tool_calls=tuple(calls), metadata={"context": "awake"})]
        )
        self.history.append([Message("tool", "a door", tool_call_id="c2")])
        self.say(*(f"line {n}" for n in range(40)))
        self.history.append([replace(owner, tool_calls=tuple(calls[:1]))])
        handed.clear()
        self.assertEqual(self.handler().heal(), 3)
        other = self.handler()
        messages = other.messages()
        ids = [message.tool_call_id for message in messages]
        self.assertEqual(ids[1:4], ["c2", "c1", "c3"])
        self.assertEqual(ids[-1], "c1")
        self.assertEqual(messages[2].audience, "private:o1.x")
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
