"""`expand_memory`: the raw text behind an id, and only for those who may know it."""

import json

from evennia_ai.game.seeing import stable_id
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.rag_memory.entities import new_profile, observe
from evennia_ai.sleep.compaction.compact import compact_conversation_history
from evennia_ai.testing import call
from tests.base import AssistantTest
from tests.waiting import wait_for


class TestExpandMemory(AssistantTest):
    default = "They talked of bees, lamps and walls."

    def expand(self, wanted, **asked):
        """What the tool answers in a public turn."""
        self.model.answers = [call("expand_memory", id=wanted, **asked), call("noop")]
        self.say("Aria, look that up")
        self.tick()
        (result,) = [m for m in self.model.requests[-1].messages if m["role"] == "tool"][-1:]
        return json.loads(result["content"])

    def hear(self, text, **fields):
        speaker = Speaker("Bob", "o9.b")
        (made,) = self.script.history.append([Message("user", text, speaker=speaker, **fields)])
        return made.id

    def compact(self):
        self.configure(pre_compact_extraction_enabled=False, compact_preserve_window=2)
        self.model.answers = []
        done = compact_conversation_history(self.script, self.aria, force=True)
        return wait_for(done)["summary_id"]

    def test_message_with_neighbours(self):
        """A message comes whole with three on either side, whispers of others left out."""
        for number in range(5):
            self.hear(f"before {number}")
        self.hear("a secret", audience=private(["o8.c"]))
        wanted = self.hear("the lamp is broken " * 50)
        self.hear("after it")
        found = self.expand(wanted)
        self.assertEqual(found["text"], "the lamp is broken " * 50)
        around = [each["text"] for each in found["around"]]
        self.assertEqual(around[:4], ["before 2", "before 3", "before 4", "after it"])

    def test_archived_and_summary(self):
        """After a compaction the raw words come back by the message's and the summary's id."""
        wanted = self.hear("Elin keeps bees")
        for number in range(12):
            self.hear(f"the wall has {number} bricks")
        summary = self.compact()
        self.assertNotIn("Elin keeps bees", str(self.contents()))
        self.assertEqual(self.expand(wanted)["text"], "Elin keeps bees")
        self.assertIn("Bob: Elin keeps bees", self.expand(summary)["text"])

    def test_journal_and_memory(self):
        """A journal entry comes with the messages it rests on, also by its memory's id."""
        source = self.hear("Elin keeps bees")
        entry = self.aria.journal.add("Elin has bees.", source_message_ids=[source])
        found = self.expand(entry.id)
        self.assertEqual((found["kind"], found["around"][0]["id"]), ("journal", source))
        wait_for(self.script._run_sleep_tick())
        (memory,) = wait_for(self.semantic.ids(self.script.scope))
        self.assertEqual(self.expand(memory)["id"], entry.id)
        self.aria.journal.withdraw([entry.id])
        self.assertIn("nothing you may see", self.expand(entry.id)["error"])

    def test_observation(self):
        """An observation comes with what it rests on."""
        elin, sources = new_profile("n.elin", "Elin", 1.7e9), []
        for day, town in enumerate(("Ford", "Ash")):
            sources.append(self.hear(f"Elin lives in {town}"))
            fact = {"predicate": "lives in", "value": town}
            elin = observe(elin, f"lives in {town}", 1.7e9 + day, sources[-1], **fact)
        elin = observe(elin, "has debts", 1.7e9, "m1", private([stable_id(self.char2)]))
        self.aria.entities.put({"n.elin": elin})
        _, new, debts = (each.id for each in elin.observations)
        found = self.expand(new)
        self.assertEqual(found["text"], "Elin: lives in Ash")
        self.assertEqual(found["around"][0]["id"], sources[1])
        self.assertIn("nothing you may see", self.expand(debts)["error"])

    def test_private(self):
        """What another whispered is not there, whatever its kind."""
        circle = private([stable_id(self.char2)])
        message = self.hear("the gold is hidden", audience=circle, channel="whisper")
        entry = self.aria.journal.add("the gold is hidden", audience=circle)
        note = self.script.ledger.add(
            "I hide gold", Speaker("B", "o9.b"), state="approved", audience=circle
        )
        for wanted in (message, entry.id, note.id, "m0"):
            self.assertIn("nothing you may see", self.expand(wanted)["error"])

    def test_long_text_in_parts(self):
        """A text longer than the room comes in parts that make the whole."""
        whole = "".join(f"{number} " for number in range(3000))
        wanted = self.hear(whole)
        first = self.expand(wanted)
        rest = self.expand(wanted, offset=first["next_offset"])
        self.assertEqual(first["text"] + rest["text"], whole)
        self.assertNotIn("next_offset", rest)
