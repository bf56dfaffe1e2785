"""The table of the app: what model calls cost, added up by day."""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields

from django.db import connection, models
from evennia.server.models import ServerConfig

from evennia_ai.turns.spend_book import FORGOTTEN, GUEST, Amount, oldest_day

_LIMITS = "evennia_ai_limits "


class SpendManager(models.Manager):
    """Adds up what was spent, as `turns.spend_book.SpendTable` says."""

    def note(self, amount: Amount, **of: str) -> None:
        """Add an amount to the row of a day, assistant, purpose, model and account."""
        figures = asdict(amount)
        more = {name: models.F(name) + figure for name, figure in figures.items()}
        # One row, though two processes may have made one each, or `rename` a second one.
        row = self.filter(**of).values_list("pk", flat=True).first()
        if row is None:
            self.create(**of, **figures)
        else:
            self.filter(pk=row).update(**more)

    def sums(self, by: str, since: str, until: str = "9", **of: str) -> dict[str, Amount]:
        """What was spent from one day to another by what `of` names, added up by a column."""
        totals = {f"sum_{each.name}": models.Sum(each.name) for each in fields(Amount)}
        rows = self.filter(day__gte=since, day__lte=until, **of).values_list(by)
        return {key: Amount(*figures) for key, *figures in rows.annotate(**totals).order_by(by)}

    def rename(self, account: str, heir: str) -> None:
        """Let another account, or nobody, have spent what an account did."""
        self.filter(account=account).update(account=heir)

    def tidy(self, day: str) -> None:
        """Drop what is too old, and who stands for somebody in a day or month that is over."""
        self.filter(day__lt=oldest_day(day)).delete()
        for begins, since in ((GUEST, day), (FORGOTTEN, day[:7])):
            self.filter(account__startswith=begins, day__lt=since).update(account="")

    def limits(self, assistant: str) -> dict[str, float]:
        """An assistant's caps, which its option `spend_caps` may only lower."""
        # A text, because Evennia returns dicts as objects that are tied to their row.
        stored = json.loads(ServerConfig.objects.conf(_LIMITS + assistant, default="") or "{}")
        return dict(stored)

    def set_limits(self, assistant: str, limits: Mapping[str, float]) -> None:
        """Store them; none at all if they are empty."""
        ServerConfig.objects.conf(_LIMITS + assistant, json.dumps(limits), delete=not limits)


class Spend(models.Model):
    """What calls of one kind cost an assistant in a day (UTC); the fields of `Amount`."""

    day = models.CharField(max_length=10, db_index=True)
    assistant = models.CharField(max_length=100)
    purpose = models.CharField(max_length=40)
    model = models.CharField(max_length=200)
    account = models.CharField(max_length=100, db_index=True)
    calls = models.BigIntegerField()
    prompt = models.BigIntegerField()
    reply = models.BigIntegerField()
    cached = models.BigIntegerField()
    own = models.BigIntegerField()
    cost = models.FloatField()
    unpriced = models.BigIntegerField()

    objects = SpendManager()

    class Meta:
        """Said here, so that the module can be imported where the app is not installed."""

        app_label = "evennia_ai"

    @classmethod
    def is_there(cls) -> bool:
        """Whether the database has the table: `evennia migrate` makes it."""
        return cls._meta.db_table in connection.introspection.table_names()
