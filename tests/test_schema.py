"""Stored data of older versions, brought up to the present one."""

from evennia_ai.core.messages import SCHEMA_VERSION
from evennia_ai.handlers.schema import VERSION_KEY, migrate
from tests.base import AssistantTest


class TestMigrate(AssistantTest):
    """`migrate`."""

    def test_hand_made_data(self):
        """What a builder put in by hand gets ids and versions; a second run does nothing."""
        self.script.attributes.remove(VERSION_KEY)
        self.script.attributes.add("conversation_history", [{"role": "user", "content": "Hello"}])
        self.aria.attributes.add("journal", [{"content": "Bob likes figs."}])
        self.assertEqual(migrate(self.script), SCHEMA_VERSION)
        (message,) = self.script.history.messages()
        self.assertTrue(message["id"])
        (entry,) = self.aria.journal.recent(5)
        self.assertEqual(entry["content"], "Bob likes figs.")
        self.assertEqual(self.aria.attributes.get("journal")["version"], SCHEMA_VERSION)
        self.assertEqual(migrate(self.script), 0)

    def test_newer_data(self):
        """Data of a later version of the package are left alone."""
        self.script.attributes.add(VERSION_KEY, SCHEMA_VERSION + 1)
        self.assertEqual(migrate(self.script), 0)
        self.assertEqual(self.script.attributes.get(VERSION_KEY), SCHEMA_VERSION + 1)

    def test_a_version_that_is_no_number(self):
        """A spoilt version counts as none."""
        self.script.attributes.add(VERSION_KEY, "soon")
        self.assertEqual(migrate(self.script), SCHEMA_VERSION)
