"""Stored data of older versions, brought up to the present one."""

from evennia_ai.assistant.evennia_internals import AttributeStore
from evennia_ai.assistant.recovery import DATA_VERSION, VERSION_KEY, migrate
from evennia_ai.history.messages import SCHEMA_VERSION, Speaker
from evennia_ai.rag_memory.ledger import new_note
from evennia_ai.rag_memory.ledger_store import LedgerHandler
from tests.base import AssistantTest

CHAR = Speaker("Char", "o1.x")


class TestMigrate(AssistantTest):
    """`migrate`."""

    def test_hand_made_data(self):
        """What a builder put in by hand gets ids and versions; a second run does nothing."""
        self.script.attributes.remove(VERSION_KEY)
        self.script.attributes.add("conversation_history", [{"role": "user", "content": "Hello"}])
        self.aria.attributes.add("journal", [{"content": "Bob likes figs."}])
        self.assertEqual(migrate(self.script), DATA_VERSION)
        (message,) = self.script.history.messages()
        self.assertTrue(message.id)
        (entry,) = self.aria.journal.recent(5)
        self.assertEqual(entry.content, "Bob likes figs.")
        self.assertEqual(self.aria.attributes.get("journal")["version"], SCHEMA_VERSION)
        self.assertEqual(migrate(self.script), 0)

    def test_newer_data(self):
        """Data of a later version of the package are left alone."""
        self.script.attributes.add(VERSION_KEY, DATA_VERSION + 1)
        self.assertEqual(migrate(self.script), 0)
        self.assertEqual(self.script.attributes.get(VERSION_KEY), DATA_VERSION + 1)

    def test_a_version_that_is_no_number(self):
        """A spoilt version counts as none."""
        self.script.attributes.add(VERSION_KEY, "soon")
        self.assertEqual(migrate(self.script), DATA_VERSION)

    def test_ledger_of_version_1(self):
        """Closed notes leave the living ones for pages; none is lost, and those by hand stay."""
        notes = [
            new_note(f"I sing song {n}", f"l{n:03d}", n, CHAR, state="approved").to_dict()
            for n in range(120)
        ]
        closed = [{**note, "state": "superseded", "superseded_by": "l119"} for note in notes[:-1]]
        whole = {"version": 1, "entries": [*closed, notes[-1], {"text": "Be kind"}]}
        self.script.attributes.add("ledger", whole, category="ai_ledger")
        self.script.attributes.add(VERSION_KEY, 1)
        self.assertEqual(migrate(self.script), 1)
        stored = AttributeStore(self.script).get("ledger", category="ai_ledger")
        self.assertEqual(stored["version"], 2)
        self.assertEqual([e["text"] for e in stored["entries"]], ["I sing song 119", "Be kind"])
        handler = LedgerHandler(AttributeStore(self.script))
        self.assertEqual([e.id for e in handler.closed()][::119], ["l118"])
        self.assertEqual(handler.closed_count(), 119)
        self.assertEqual(len(handler.everything()), 121)
        self.assertEqual(migrate(self.script), 0)
