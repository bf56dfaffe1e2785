"""The tools by which an assistant looks at its own context."""

import json
import unittest

from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.sleep.compaction import compact_conversation_history
from evennia_ai.testing import call
from tests.fake import FakeAssistant
from tests.models import ScriptedModel
from tests.waiting import wait_for

BOB, CORA = private(["o2.b"]), private(["o3.c"])


def lines(count, word, **fields):
    """Heard lines, each some 60 tokens long."""
    bob = Speaker("Bob", "o2.b")
    return [Message("user", f"{word} {n} " * 20, speaker=bob, **fields) for n in range(count)]


class TestContextTools(unittest.TestCase):
    """A fake assistant with public talk, some of Bob's and some of Cora's."""

    def setUp(self):
        self.model = ScriptedModel(default="They talked of many things.")
        self.aria = FakeAssistant(self.model, max_context_tokens=8000, compact_preserve_window=4)
        self.aria.history.append(lines(12, "barrel"))

    def use(self, name, audience="public"):
        """What a tool gives in a turn for an audience."""
        self.model.answers = [call(name), "So it is."]
        wait_for(self.aria.run_turn(TurnRequest(audience=audience)))
        results = [m for m in self.aria.history.messages() if m.role == "tool"]
        return results[-1].content

    def assert_for_cora(self, name, words):
        """A tool shows them to Cora alone."""
        for audience, is_shown in (("public", False), (BOB, False), (CORA, True)):
            self.assertEqual(words in self.use(name, audience), is_shown, audience)

    def compact(self):
        done = wait_for(compact_conversation_history(self.aria, self.aria.obj, force=True))
        self.assertTrue(done["success"], done)

    def test_snapshot(self):
        """It tells the share, the tokens and the regions of the turn's prompt, for its audience."""
        told = self.use("context_snapshot")
        event = self.aria.prompts.events()[0]
        self.assertIn(f"{event.total / 8000:.0%} full: {event.total:,} of 8,000 tokens", told)
        self.assertIn("word for word: 12.", told)
        self.assertIn(str(event), told)
        self.assertLess(len(told), 600)
        self.aria.history.append(lines(7, "secret", audience=CORA))
        for audience, count in (("public", 13), (BOB, 14), (CORA, 21)):
            self.assertIn(f"word for word: {count}.", self.use("context_snapshot", audience))

    def test_snapshot_of_what_is_not_there(self):
        """It tells what summaries stand for and what had no room."""
        self.compact()
        self.assertIn("Summaries: 1, of 8 older messages", self.use("context_snapshot"))
        self.aria.history.append(lines(200, "gold"))
        left_out = r"for lack of room: [1-9][\d,]*"
        self.assertRegex(self.use("context_snapshot"), left_out)

    def test_contributors(self):
        """The largest regions and messages by id, in few words."""
        big = Message("user", "barrel " * 900, speaker=Speaker("Bob", "o2.b"))
        (big,) = self.aria.history.append([big])
        told = json.loads(self.use("list_contributors"))["largest"]
        self.assertLessEqual(len(told), 8)
        self.assertIn({"what": "message", "id": big.id, "tokens": big.tokens}, told)
        self.assertIn("region History", [each["what"] for each in told])
        self.assertEqual(told, sorted(told, key=lambda each: -each["tokens"]))

    def test_contributors_of_its_audience(self):
        """A private message is listed to its own circle and to nobody else."""
        big = Message("user", "secret " * 900, speaker=Speaker("Cora", "o3.c"), audience=CORA)
        (big,) = self.aria.history.append([big])
        self.assert_for_cora("list_contributors", big.id)
        self.assertNotIn("secret", self.use("list_contributors", CORA))

    def test_summaries(self):
        """Each is listed with its id, its tier and how many messages it stands for."""
        self.compact()
        told = json.loads(self.use("trace_summaries"))
        (record,) = self.aria.history.summaries()
        self.assertEqual(told["older"], 0)
        (summary,) = told["summaries"]
        self.assertEqual((summary["id"], summary["messages"]), (record.id, 8))
        self.assertTrue(summary["in_prompt"])
        self.assertNotIn("many things", json.dumps(told))

    def test_summaries_of_its_audience(self):
        """Summaries of private talk do not exist for others."""
        self.aria.history.append(lines(30, "secret", audience=CORA))
        self.compact()
        first = next(r.id for r in self.aria.history.summaries() if r.audience == CORA)
        self.assert_for_cora("trace_summaries", first)
