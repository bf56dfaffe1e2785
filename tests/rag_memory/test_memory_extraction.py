"""Memories that a model extracts (`EVENNIA_AI_MEM0_INFER`), on the real Mem0."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

from django.test import override_settings

from evennia_ai import conf, services
from evennia_ai.checks import check_settings
from evennia_ai.history.audience import private
from evennia_ai.rag_memory import Mem0Backend
from evennia_ai.testing import model_down
from tests.base import AssistantTest
from tests.stand_ins import HashingEmbedder
from tests.store_case import StoreCase, item
from tests.waiting import wait_for

SCOPE = "aria"
WHISPERED = private(["o1.bob"])


def answer(*texts):
    """A model's answer to Mem0's prompt."""
    return json.dumps({"memory": [{"id": str(n), "text": text} for n, text in enumerate(texts)]})


class TestStore(StoreCase):
    """Mem0 is asked for its prompt and given the answer; no thread waits for a model."""

    def prompt(self, *args):
        return wait_for(self.store.extraction_prompt(SCOPE, item(*args)), 60)

    def extract(self, source_id, text, said, audience="public"):
        self.prompt(source_id, text, audience)
        done = self.store.add_extracted(SCOPE, item(source_id, text, audience), said)
        return wait_for(done, 60)

    def stored(self):
        return {hit["text"] for hit in self.search("bees mill honey door", limit=50)}

    def test_several_memories_of_one_source(self):
        """What the model extracted is found; the source is stored and not asked for again."""
        text = "Alice keeps bees behind the mill and sells honey"
        system, user = self.prompt("j1", text)
        self.assertEqual((system["role"], user["role"]), ("system", "user"))
        self.assertIn(text, user["content"])
        self.extract("j1", text, answer("Alice keeps bees behind the mill", "Alice sells honey"))
        self.assertEqual(self.stored(), {"Alice keeps bees behind the mill", "Alice sells honey"})
        self.assertIsNone(self.prompt("j1", text))
        self.assertEqual(len(wait_for(self.store.ids(SCOPE))), 2)
        self.assertEqual(set(wait_for(self.store.sources(SCOPE))), {"j1"})

    def test_nothing_extracted_loses_nothing(self):
        """An empty, unreadable or doubled answer leaves the text itself."""
        for number, said in enumerate(("", "no JSON", answer(), '{"memory": [{"no": "text"}]}')):
            with self.subTest(said):
                self.extract(f"j{number}", f"the door number {number} is locked", said)
                self.assertIn(f"the door number {number} is locked", self.stored())

    def test_asking_stores_nothing(self):
        """The prompt alone leaves no trace, neither as a memory nor in Mem0's history."""
        self.prompt("j1", "Alice keeps bees")
        self.assertEqual(wait_for(self.store.ids(SCOPE)), set())
        self.assertEqual(self.rows(), [])

    def rows(self):
        """All texts in Mem0's own database."""
        with closing(sqlite3.connect(self.folder / "history.db")) as database:
            kept = database.execute("SELECT new_memory FROM history").fetchall()
            kept += database.execute("SELECT content FROM messages").fetchall()
        return [text for (text,) in kept if text]

    def test_forgets_all_of_a_source(self):
        """Deleting one memory deletes its siblings and every row that held their text."""
        first = self.extract("j1", "Alice keeps bees and sells honey", answer("bees", "honey"))
        self.extract("j2", "the mill turns", "no JSON at all")
        self.assertEqual(wait_for(self.store.delete(SCOPE, [first])), 2)
        self.assertEqual(self.stored(), {"the mill turns"})
        self.assertFalse([text for text in self.rows() if "bees" in text or "honey" in text])

    def test_whispers_stay_apart(self):
        """Mem0 shows the model what it stored nearby, but only of the same audience."""
        self.extract("j1", "Bob hides bees", answer("Bob hides his bees"), WHISPERED)
        self.extract("j2", "Bob hides", "", WHISPERED)
        _, user = self.prompt("j3", "Bob has bees for sale")
        self.assertNotIn("hides", user["content"])
        _, user = self.prompt("j4", "Bob showed his bees", WHISPERED)
        self.assertIn("Bob hides his bees", user["content"])
        self.assertEqual(self.stored(), set())


class TestSleep(AssistantTest):
    """The nightly step with the setting on."""

    def setUp(self):
        super().setUp()
        self.mem0 = Mem0Backend(Path(self.folder.name) / "mem0", embedder=HashingEmbedder())
        services.use(memories=self.mem0)
        self.wanted = override_settings(EVENNIA_AI_MEM0_INFER=True)
        self.wanted.enable()
        self.aria.journal.add("Alice keeps bees behind the mill and sells honey.")

    def tearDown(self):
        self.wanted.disable()
        super().tearDown()

    def night(self):
        self.script.wake()
        self.script.fall_asleep()
        self.tick()
        return [hit["text"] for hit in wait_for(self.mem0.search(self.script.scope, "bees honey"))]

    def asked_for_memories(self):
        return [request for request in self.model.requests if request.purpose == "memory"]

    def test_extracts(self):
        """The model is asked once an entry, and what it gives is stored; so next night."""
        self.model.default = answer("Alice keeps bees", "Alice sells honey")
        self.assertCountEqual(self.night(), ["Alice keeps bees", "Alice sells honey"])
        self.night()
        self.assertEqual(len(self.asked_for_memories()), 1)

    def test_narrowed_meanwhile(self):
        """What is kept for one person while the model is at work is remembered for no other."""

        def reply(request):
            page = self.aria.attributes.get("journal")
            page["entries"][0]["audience"] = WHISPERED
            self.aria.journal.count()
            wait_for(self.script.memory.count())
            wait_for(self.mem0.ids(self.script.scope))  # by now the change is dealt with
            return answer("Alice keeps bees") if request.purpose == "memory" else "Aye."

        self.model.default = reply
        self.assertEqual(self.night(), [])
        self.assertEqual(self.night(), [])
        found = self.mem0.search(self.script.scope, "bees", audience=WHISPERED)
        self.assertEqual([hit["text"] for hit in wait_for(found)], ["Alice keeps bees"])

    def test_model_down(self):
        """Without an answer the entry is stored as it is."""
        self.model.default = model_down()
        self.assertEqual(self.night(), ["Alice keeps bees behind the mill and sells honey."])
        self.assertIn("extracting a memory", self.script.runtime.last_error)

    def test_prompt_too_long(self):
        """Where Mem0's prompt does not fit, no model is asked."""
        self.configure(max_context_tokens=4000)
        self.assertEqual(self.night(), ["Alice keeps bees behind the mill and sells honey."])
        self.assertEqual(self.asked_for_memories(), [])
        self.assertIn("more than the limit of 4,000", self.script.runtime.last_error)

    def test_over_the_cap(self):
        """Over the spend cap no model is asked either."""
        self.configure(spend_max_tokens_day=10)
        self.script.spend.add(100, 0.0)
        self.assertEqual(self.night(), ["Alice keeps bees behind the mill and sells honey."])
        self.assertEqual(self.asked_for_memories(), [])


class TestSetting(AssistantTest):
    """`EVENNIA_AI_MEM0_INFER` in settings and environment."""

    def test_words_of_the_environment(self):
        """It is read as a truth; anything else is an error at boot."""
        for text, value in (("True", True), ("on", True), ("0", False), ("maybe", "maybe")):
            with self.subTest(text), self.environment(text):
                self.assertEqual(conf.setting("MEM0_INFER"), value)
                wrong = [c.id for c in check_settings() if "INFER" in c.msg]
                self.assertEqual(wrong, ["evennia_ai.E010"] if value == "maybe" else [])

    @staticmethod
    def environment(text):
        return patch.dict("os.environ", {"EVENNIA_AI_MEM0_INFER": text})
