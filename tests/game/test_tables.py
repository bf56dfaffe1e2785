"""The tables of the app, as its migrations make them in a game's database."""

from importlib import import_module

from django.db.migrations.state import ProjectState
from django.db.utils import ConnectionHandler
from django.test import TestCase

APP = "evennia_ai"
SPEND, EVENT = "evennia_ai_spend", "evennia_ai_event"


class TestMigrations(TestCase):
    """In a database of their own, which is empty."""

    def setUp(self):
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
        self.connection = ConnectionHandler({"default": database})["default"]
        self.addCleanup(self.connection.close)

    def migrate(self, name, state):
        migration = import_module(f"{APP}.migrations.{name}").Migration(name, APP)
        with self.connection.schema_editor() as editor:
            return migration.apply(state, editor)

    def tables(self):
        return {each for each in self.connection.introspection.table_names() if APP in each}

    def test_a_database_of_before_the_events(self):
        """It gets their table by the next migration."""
        state = self.migrate("0001_initial", ProjectState())
        self.assertEqual(self.tables(), {SPEND})
        self.migrate("0002_event", state)
        self.assertEqual(self.tables(), {SPEND, EVENT})

    def test_a_database_that_has_both(self):
        """The first migration made both for a time: what they hold stays."""
        state = self.migrate("0001_initial", ProjectState())
        self.migrate("0002_event", state.clone())
        with self.connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {EVENT} VALUES (1, 1.0, 'Aria', 'x', '{{}}')")
        self.migrate("0002_event", state)
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*) FROM {EVENT}")
            self.assertEqual(cursor.fetchone(), (1,))
