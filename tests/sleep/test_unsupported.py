"""What a model invents in a summary: struck, counted and told."""

import unittest

from evennia_ai.commands.history import summary_lines
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction.offline.brain import respond
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.sleep.compaction.compact import compact_conversation_history
from evennia_ai.testing import ScriptedModel
from tests.memory_assistant import MemoryWorld
from tests.waiting import wait_for

ALICE = Speaker("Alice", "o1.alice")
TALK = "I forge nails in the smithy by the river, word by word and nail by nail, all day long."
TRUE = "Alice forges nails in the smithy by the river."
FALSE = "She and Gustav have a son."


class TestUnsupported(unittest.TestCase):
    """A compaction whose summariser invents."""

    def compacted(self, answers, **config):
        """The world and the result after a compaction; `answers` by model or for all."""

        def answer(request):
            if request.model == OFFLINE_MODEL:
                return respond(request.messages).content or ""
            return answers[request.model] if isinstance(answers, dict) else answers

        world = MemoryWorld(ScriptedModel(default=answer), compact_preserve_window=2, **config)
        world.script.history.append([Message("user", TALK, speaker=ALICE, channel="say")] * 12)
        result = wait_for(compact_conversation_history(world.script, world.body, force=True))
        return world, result

    def record(self, world, result):
        return world.script.history.summary(result["summary_id"])

    def audits(self, world, kind):
        return [fields for name, fields in world.script.audits if name == kind]

    def test_struck_and_counted(self):
        """The sentence is in no summary; receipt, record, log and audit log say so."""
        world, result = self.compacted(f"{TRUE} {FALSE} The smithy is by the river.")
        record = self.record(world, result)
        self.assertEqual(
            (result["level"], result["unsupported"], record.unsupported), ("main", 1, 1)
        )
        self.assertEqual(record.text, f"{TRUE} The smithy is by the river.")
        self.assertNotIn("Gustav", world.script.history.messages()[0].content)
        (audit,) = self.audits(world, "unsupported")
        self.assertEqual((audit["struck"], audit["of"]), (1, 3))
        self.assertEqual(audit["lines"], [f"name Gustav: {FALSE}"])
        (told,) = [text for text in self.audits(world, "log") if "compacted" in text]
        self.assertIn("1 sentence of the model struck as unsupported", told)
        self.assertIn("1 unsupported struck", summary_lines(record))
