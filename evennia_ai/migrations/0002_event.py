"""The table of events."""

from typing import Any

from django.db import migrations, models


class CreateMissing(migrations.CreateModel):
    """Makes a table that some databases have from 0001, where it was for a time."""

    def database_forwards(self, app_label: str, editor: Any, before: Any, after: Any) -> None:
        """Make it, unless it is there."""
        table = after.apps.get_model(app_label, self.name)._meta.db_table
        if table not in editor.connection.introspection.table_names():
            super().database_forwards(app_label, editor, before, after)


class Migration(migrations.Migration):
    """Makes it."""

    dependencies = (("evennia_ai", "0001_initial"),)

    operations = [
        CreateMissing(
            name="Event",
            fields=[
                (
                    "id",
                    models.AutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.FloatField()),
                ("assistant", models.CharField(db_index=True, max_length=255)),
                ("kind", models.CharField(db_index=True, max_length=40)),
                ("text", models.TextField()),
            ],
        ),
    ]
