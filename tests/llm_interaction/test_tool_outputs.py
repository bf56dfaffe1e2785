"""What tools gave out is found by who looks for it, and comes up nowhere else."""

import json
import unittest

from evennia_ai.history.messages import Message, Speaker, new_id
from evennia_ai.rag_memory.memory import OUTPUTS
from evennia_ai.recall import RecallIndex
from evennia_ai.recall.values import Query
from evennia_ai.testing import call
from tests.memory_assistant import MemoryWorld
from tests.waiting import wait_for

HALBERD = "A rusted halberd leans in the corner, its shaft carved with ravens."


class TestToolOutputs(unittest.TestCase):
    """An assistant with a real index."""

    def setUp(self):
        self.world = MemoryWorld()
        self.world.index = RecallIndex(":memory:")
        self.world.restart()

    def give(self, name, content, audience="public", **metadata):
        """A tool's call and result in the history; the result's id."""
        calls = call(name)
        mark = {"audience": audience, "metadata": {"context": "awake", **metadata}}
        asked = Message("assistant", "", tool_calls=tuple(calls), **mark)
        result = Message("tool", content, tool_call_id=calls[0]["id"], name=name, **mark)
        return self.world.script.history.append([asked, result])[-1].id

    def say(self, *texts):
        bram = {"channel": "say", "speaker": Speaker(key="Bram", id="o1.b")}
        messages = [Message("user", text, **bram) for text in texts]
        return [message.id for message in self.world.script.history.append(messages)]

    def found(self, query, audience="public", tools=True, limit=10):
        done = self.world.script.memory.search(Query(query, limit, audience, tools=tools))
        return [(hit.turn_id, hit.kind) for hit in wait_for(done)]

    def test_for_whom_it_is(self):
        """An output of a private turn is found by those of it, and by staff."""
        output = self.give("look", HALBERD, "private:o1.b")
        for viewer, hits in (("public", 0), ("private:o1.b", 1), ("staff", 1)):
            self.assertEqual(self.found("halberd", viewer), [(output, "tool")] * hits)

    def test_what_is_left_out(self):
        """Recalled text, confirmations, errors and the calls of an extraction are not found."""
        for name in ("search_memory", "expand_memory", "say", "noop", "add_journal_entry"):
            self.give(name, json.dumps({"results": [{"text": "a halberd"}]}))
        self.give("look", json.dumps({"error": "there is no halberd"}))
        self.give("look", "A halberd", context="pre_compaction")
        self.assertEqual(self.found("halberd"), [])

    def test_gives_way(self):
        """What was said and matches as well stands first; few outputs stand among it."""
        outputs = [self.give("look", f"{HALBERD} Room {n}.") for n in range(OUTPUTS + 3)]
        said = self.say("The halberd is Tomas'.", "Nobody dusts the corner.")
        found = self.found("halberd")
        self.assertEqual(found[0], (said[0], "message"))
        self.assertEqual(len([each for each, kind in found if kind == "tool"]), OUTPUTS)
        self.assertIn(self.found("halberd carved with ravens")[0][0], outputs)

    def test_rankings_stay(self):
        """What was said is ranked and scored as if no tool had given out anything."""
        self.say(*(f"The {word} of the mill is worn." for word in ("wheel", "door", "roof")))
        search = self.world.script.memory.search
        before = wait_for(search(Query("Which part of the mill is worn?")))
        for n in range(30):
            self.give("look", f"The mill. Its wheel, door and roof are worn. Day {n}.")
        self.assertEqual(wait_for(search(Query("Which part of the mill is worn?"))), before)

    def test_by_the_assistant_and_its_raw_text(self):
        """`search_memory` finds an output, and `expand_memory` gives it back whole."""
        output = self.give("look", HALBERD)
        self.world.model.answers = [
            call("search_memory", query="rusted halberd"),
            call("expand_memory", id=output),
            "In the corner.",
        ]
        self.ask("Aria, where is the halberd?")
        shown = [m for m in self.world.model.requests[-1].messages if m["role"] == "tool"]
        (item,) = json.loads(shown[1]["content"])["results"]
        self.assertEqual((item["id"], item["kind"]), (output, "tool"))
        self.assertEqual(json.loads(shown[2]["content"])["text"], HALBERD)
        stored = [m for m in self.world.script.history.messages() if m.role == "tool"]
        for result in stored[1:]:
            self.assertEqual([hit["id"] for hit in json.loads(result.content)["results"]], [output])
            self.assertLess(len(result.content), 120)
        self.ask("Aria, and the key?")
        shown = [m for m in self.world.model.requests[-1].messages if m["role"] == "tool"]
        self.assertEqual([m["content"] for m in shown], [m.content for m in stored])

    def ask(self, text):
        """A line and the turn it calls for."""
        bob = Speaker("Bob", "o2.b")
        event = Message("user", text, id=new_id("m"), speaker=bob, channel="say")
        self.world.script.runtime.hear(event, self.world.script.now())
        self.world.later(10)
        wait_for(self.world.script.tick())

    def test_never_unasked(self):
        """No output comes into a prompt as a memory."""
        self.give("look", HALBERD)
        self.world.configure(compact_preserve_window=0)
        self.world.model.default = "Which?"
        self.ask("Aria, what of the rusted halberd carved with ravens?")
        prompt = str(self.world.model.requests[-1].messages)
        self.assertEqual(prompt.count("leans in the corner"), 1)

    def test_restored(self):
        """A lost index has the outputs again, live and archived; counts know of them."""
        memory = self.world.script.memory
        output = self.give("look", HALBERD)
        (said,) = self.say("Good day")
        self.assertEqual(wait_for(memory.count()), 2)
        self.assertEqual(wait_for(memory.count([output, said])), 2)
        wait_for(memory.clear())
        self.assertEqual(wait_for(memory.count()), 0)
        self.assertEqual(wait_for(memory.count([output, said])), 0)
        wait_for(self.world.script.memory.mend())
        self.assertEqual(self.found("halberd"), [(output, "tool")])
