"""What staff read of an evening: no arrivals, greetings or tool calls, and figures that add up."""

import json
from dataclasses import replace

from evennia_ai.history.messages import Message, Speaker
from evennia_ai.history.pairs import said_and_done
from evennia_ai.llm_interaction.offline.summary import summarise
from evennia_ai.llm_interaction.summary import message_lines
from evennia_ai.sleep.compaction.report import report_line
from evennia_ai.testing import call
from tests.memory_assistant import MemoryWorldTest

FACTS = {
    "Tilda": ("my boat is called Heron", "the ferry leaves at dawn", "I owe Bram nine crowns"),
    "Bram": ("the smithy burnt down in May", "Ysolde keeps two grey mares", "my son is at Norvik"),
}


def evening():
    """Two players come, greet, tell and ask; the assistant notes, searches and answers; they go."""
    lines = []
    for who, facts in FACTS.items():
        by = Speaker(who, f"o{len(who)}.a")

        def heard(text, channel="say", by=by):
            return Message("user", text, speaker=by, channel=channel)

        lines += [heard(f"{who} arrives to The Lantern from The Yard.", "arrive")]
        lines += [
            heard("Hello Aria!"),
            Message("assistant", "Good evening, friend.", channel="say"),
        ]
        for fact in facts:
            lines.append(heard(f"Aria, {fact}."))
            for tool, result in (
                ("add_journal_entry", "Entry e1 written."),
                ("search_memory", json.dumps({"results": [{"id": "m77", "text": "old"}]})),
            ):
                calls = call(tool, content=fact, query=fact)
                lines.append(Message("assistant", "", tool_calls=tuple(calls), channel="say"))
                found = {"tool_call_id": calls[0]["id"], "name": tool, "channel": "tool"}
                lines.append(Message("tool", result, **found))
            lines.append(Message("assistant", "I'll remember that.", channel="say"))
        lines += [heard("Goodbye!"), heard(f"{who} leaves for The Yard.", "leave")]
    return lines


class TestEvening(MemoryWorldTest):
    """The offline model sums an evening up."""

    unwanted = ("arrives", "leaves for", "Hello", "Good evening", "Goodbye", "{", "results", "m77")

    def test_the_summary(self):
        """It tells what was told, sentence by sentence, and nothing else."""
        said = said_and_done(evening(), self.script.tools.traits)
        text = summarise("\n".join(message_lines(said)))
        for fact in ("boat is called Heron", "burnt down in May", "nine crowns", "two grey mares"):
            self.assertIn(fact, text)
        for unwanted in (*self.unwanted, "add_journal_entry", "remember that"):
            self.assertNotIn(unwanted, text)

    def test_the_figures(self):
        """What left and what stayed are all there was; the tokens are those of the history."""
        self.script.history.append(evening())
        before, tokens = len(self.script.history.messages()), self.script.history.tokens()
        self.assertTrue(self.compact()["success"])
        record = self.script.history.last_compaction()
        report = record.report
        self.assertEqual(report.compacted_messages + report.preserved_messages, before)
        self.assertEqual(report.original_tokens, tokens)
        self.assertEqual(report.new_tokens, self.script.history.tokens())
        kept = [m for m in self.script.history.messages() if not m.is_summary]
        self.assertEqual(len(kept), report.preserved_messages)
        line = report_line("Aria", record)
        self.assertIn(f"{tokens:,} to {report.new_tokens:,} tokens", line)
        for unwanted in self.unwanted:
            self.assertNotIn(unwanted, line)
        self.assertNotIn("faded", line)
        later = replace(record, report=replace(report, generation=3))
        self.assertIn(
            "may have faded; the raw words are in the archive", report_line("Aria", later)
        )
        self.assert_proven()
