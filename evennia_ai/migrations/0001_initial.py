"""The tables of calls and of events."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Makes them."""

    initial = True

    dependencies = ()

    operations = [
        migrations.CreateModel(
            name="Call",
            fields=[
                (
                    "id",
                    models.AutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.CharField(db_index=True, max_length=10)),
                ("assistant", models.CharField(max_length=100)),
                ("purpose", models.CharField(max_length=40)),
                ("model", models.CharField(max_length=200)),
                ("account", models.CharField(db_index=True, max_length=100)),
                ("calls", models.BigIntegerField()),
                ("prompt", models.BigIntegerField()),
                ("reply", models.BigIntegerField()),
                ("cached", models.BigIntegerField()),
                ("own", models.BigIntegerField()),
                ("cost", models.FloatField()),
                ("unpriced", models.BigIntegerField()),
            ],
        ),
        migrations.CreateModel(
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
