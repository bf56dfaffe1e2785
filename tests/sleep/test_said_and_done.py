"""What the models read before a compaction: what was said and done, no searches, no listings."""

import json
import unittest

from evennia_ai.history.messages import Message, Speaker
from evennia_ai.sleep.compaction import (
    compact_conversation_history,
)
from evennia_ai.testing import ScriptedModel, call
from tests.memory_assistant import MemoryWorld
from tests.steps import verify_history
from tests.waiting import wait_for

FOUND = {"kind": "message", "speaker": "Doors of Norvik", "text": "pay 4711 to Mirabel"}
SEARCH = json.dumps({"results": [FOUND] * 5})
ROOM = "The Tower of Ash. Exits: gate. " + "Barrels stand along the wall. " * 20 + "By Oldtown."


def used(tool, content, **arguments):
    """A call of a tool and its result."""
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


class TestWhatModelsRead(unittest.TestCase):
    """Searches leave, results are short, speech stays."""

    def world(self, model, **config):
        world = MemoryWorld(model, compact_preserve_window=2, **config)
        world.script.history.append(talk())
        return world

    def assert_said_and_done(self, text):
        for absent in ("Norvik", "4711", "Sorrel", "Tansy", "search_memory", "Oldtown"):
            self.assertNotIn(absent, text)
        for present in ("I owe Bram nine crowns", "What of the hay", "The Tower of Ash"):
            self.assertIn(present, text)

    def test_a_compaction(self):
        """The summariser meets no search; nothing of it is lost."""
        world = self.world(ScriptedModel(default="They talked."), compact_model="scripted/other")
        before = [m.to_dict() for m in world.script.history.messages()]
        result = wait_for(compact_conversation_history(world.script, world.body, force=True))
        (first,) = world.model.requests
        self.assert_said_and_done(first.messages[1]["content"])
        (record,) = world.script.history.summaries()
        lost = ", ".join(record.extra["lost"])
        self.assertIn("Bram", lost)
        for absent in ("Tower", "Exits", "Doors", "Mirabel"):
            self.assertNotIn(absent, lost + record.text)
        # What leaves is counted and archived as it was.
        left = result["compacted_messages"]
        self.assertEqual(left, len(record.source_ids))
        archived = world.script.history.below(record.id)
        self.assertEqual([m.to_dict() for m in archived], before[:left])
        self.assertEqual(verify_history(world.script), ())
