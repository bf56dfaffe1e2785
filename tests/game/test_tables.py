"""The tables of the app, as its migrations make them in a game's database."""

from importlib import import_module
from pkgutil import iter_modules

from django.apps import apps
from django.db.migrations.state import ProjectState
from django.db.utils import ConnectionHandler
from django.test import TestCase

from evennia_ai import migrations

APP = "evennia_ai"


class TestMigrations(TestCase):
    """In a database of their own, which is empty."""

    def test_they_make_what_the_models_say(self):
        """All migrations, one after the other, make each model's table and fields."""
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
        connection = ConnectionHandler({"default": database})["default"]
        self.addCleanup(connection.close)
        state = ProjectState()
        for name in sorted(each.name for each in iter_modules(migrations.__path__)):
            migration = import_module(f"{APP}.migrations.{name}").Migration(name, APP)
            with connection.schema_editor() as editor:
                state = migration.apply(state, editor)
        tables = {model._meta.db_table: model for model in apps.get_app_config(APP).get_models()}
        self.assertEqual(
            {each for each in connection.introspection.table_names() if APP in each}, set(tables)
        )
        for model in tables.values():
            fields = state.models[APP, model._meta.model_name].fields.items()
            self.assertEqual(
                [(name, field.deconstruct()[1:]) for name, field in fields],
                [(field.name, field.deconstruct()[1:]) for field in model._meta.fields],
            )
