"""What models read before a compaction, what they invent, and what staff read of it."""

import json
from dataclasses import replace

from evennia_ai.commands.history import summary_lines
from evennia_ai.history.messages import Message, Speaker, said_and_done
from evennia_ai.llm_interaction.offline.summary import summarise
from evennia_ai.llm_interaction.summary import message_lines
from evennia_ai.sleep.compaction.compact import report_line
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
        """The tokens are those of the history, and nothing that was said is told."""
        self.script.history.append(evening())
        tokens = self.script.history.tokens()
        self.assertTrue(self.compact()["success"])
        record = self.script.history.last_compaction()
        line = report_line("Aria", record)
        self.assertIn(f"{tokens:,} to {self.script.history.tokens():,} tokens", line)
        for unwanted in (*self.unwanted, "faded"):
            self.assertNotIn(unwanted, line.replace(record.report.summary_id, ""))
        later = replace(record, report=replace(record.report, generation=3))
        faded = "may have faded; the raw words are in the archive"
        self.assertIn(faded, report_line("Aria", later))
        self.assert_proven()


FOUND = {"kind": "message", "speaker": "Doors of Norvik", "text": "pay 4711 to Mirabel"}
SEARCH = json.dumps({"results": [FOUND] * 5})
ROOM = "The Tower of Ash. Exits: gate. " + "Barrels stand along the wall. " * 20 + "By Oldtown."


def used(tool, content, **arguments):
    calls = call(tool, **arguments)
    answer = Message("tool", content, tool_call_id=calls[0]["id"], name=tool)
    return [Message("assistant", "", tool_calls=tuple(calls)), answer]


def talk():
    """Twelve lines of talk among searches, looks and speech by a tool."""
    history = []
    for number in range(6):
        history += [
            Message("user", "What of the hay, the fence and the dog?", speaker=Speaker("Alice")),
            *used("search_memory", SEARCH, query=f"Sorrel{number}"),
            *used("expand_memory", SEARCH, id=f"Tansy{number}"),
            *used("look", ROOM, target="tower"),
            *used("say", "Done.", text="I owe Bram nine crowns for the hay."),
        ]
    return history


class TestWhatModelsRead(MemoryWorldTest):
    """Searches leave, results are short, speech stays."""

    def test_a_compaction(self):
        """The summariser meets no search; nothing of it is lost."""
        self.world.configure(compact_preserve_window=2, compact_model="scripted/other")
        self.script.history.append(talk())
        before = [m.to_dict() for m in self.script.history.messages()]
        result = self.compact()
        first = self.world.model.requests[0]
        text = first.messages[1]["content"]
        for absent in ("Norvik", "4711", "Sorrel", "Tansy", "search_memory", "Oldtown"):
            self.assertNotIn(absent, text)
        for present in ("I owe Bram nine crowns", "What of the hay", "The Tower of Ash"):
            self.assertIn(present, text)
        (record,) = self.script.history.summaries()
        lost = ", ".join(record.extra["lost"])
        self.assertIn("Bram", lost)
        for absent in ("Tower", "Exits", "Doors", "Mirabel"):
            self.assertNotIn(absent, lost + record.text)
        # What leaves is counted and archived as it was.
        left = result["compacted_messages"]
        self.assertEqual(left, len(record.source_ids))
        archived = self.script.history.below(record.id)
        self.assertEqual([m.to_dict() for m in archived], before[:left])
        self.assert_proven()

    def invents(self, *answers):
        """The result and the record of a compaction for which a model writes these summaries."""
        self.world.model.answers = list(answers)
        told = "I forge nails in the smithy by the river, word by word and nail by nail, all day."
        self.fill(content=told, speaker=Speaker("Alice", "o1.alice"), channel="say")
        result = self.compact()
        self.assert_proven()
        return result, self.script.history.summary(result["summary_id"])

    def test_asked_again(self):
        """A model that invents more than two facts is asked once more, and told which they are."""
        true = "Alice forges nails in the smithy by the river."
        false = f"{true} She paid Gustav Holm 900 crowns in Norvik."
        result, record = self.invents(false, f"{true} She met Gustav.")
        self.assertEqual((result["level"], result["unsupported"]), ("main", 1))
        self.assertEqual((record.text, record.unsupported), (f"{true} She met Gustav.", 1))
        first, second = self.world.model.requests
        self.assertEqual(first.messages[1], second.messages[1])
        self.assertNotIn("Gustav", str(first.messages))
        self.assertIn("Gustav Holm, 900 crowns, Norvik", second.messages[0]["content"])
        audits = [fields for kind, fields in self.script.audits if kind == "unsupported"]
        self.assertEqual([each["count"] for each in audits], [3, 1])
        self.assertNotRegex(str(audits), "Gustav|Norvik")
        logged = str([text for kind, text in self.script.audits if kind == "log"])
        self.assertIn("that nobody said: 1.", logged)
        self.assertIn("1 not in its source", summary_lines(record, "live"))

    def test_still_invented(self):
        """A second summary that is no truer is none: the next model is asked."""
        false = "Alice paid Gustav Holm 900 crowns in Norvik."
        result, record = self.invents(false, false)
        self.assertEqual((result["level"], result["unsupported"]), ("extractive", 0))
        self.assertNotIn("Gustav", record.text)
        self.assertEqual(len(self.world.model.requests), 3)  # two of the model, one extract

    def test_two_may_be_wrong(self):
        """Two facts that nobody told are counted, and no model is asked again."""
        result, _ = self.invents("Alice forges nails with Gustav in Norvik.")
        self.assertEqual((result["level"], result["unsupported"]), ("main", 2))
        self.assertEqual(len(self.world.model.requests), 1)
