"""The tables of the app: model calls, added up by day, and what happened."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, fields

from django.db import connection, models, transaction
from evennia.server.models import ServerConfig

from evennia_ai.turns.spend_book import FORGOTTEN, GUEST, Amount, oldest_day

_LIMITS = "evennia_ai_limits "
# How many events are kept, and how many are looked through at once where somebody is forgotten.
MOST_EVENTS, EVENTS_AT_ONCE = 20_000, 200
# Facts of an event that may repeat talk, whoever's it is; and of a report what was said around it.
_TALK = frozenset(("text", "what", "error", "why", "query", "lines", "facts"))
_AROUND = ("lines", "speakers")


class CallManager(models.Manager):
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


class Call(models.Model):
    """Calls of one kind that an assistant made in a day (UTC), and what they cost, as `Amount`.

    They are added up, so that a cap costs the same to look up after many calls.
    """

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

    objects = CallManager()

    class Meta:
        """Said here, so that the module can be imported where the app is not installed."""

        app_label = "evennia_ai"


class EventManager(models.Manager):
    """Stores events, and forgets people in them."""

    def keep(self, events: Iterable["Event"]) -> None:
        """Store events, the newest last, and delete the oldest beyond `MOST_EVENTS`."""
        with transaction.atomic():
            self.bulk_create(events)
            newest = self.order_by("-pk").values_list("pk", flat=True).first()
            self.filter(pk__lte=newest - MOST_EVENTS).delete()

    def forget(self, people: Collection[str]) -> Iterator[None]:
        """Delete what is of people (stable ids), or may repeat talk, whoever's; a few at a step.

        Reports of others stay, without lines of these people.
        """
        pks = list(self.values_list("pk", flat=True))
        for start in range(0, len(pks), EVENTS_AT_ONCE):
            for event in self.filter(pk__in=pks[start : start + EVENTS_AT_ONCE]):
                event.forget(people)
            yield


class Event(models.Model):
    """Something that happened to an assistant, for staff: a call, a tool, trouble.

    Its facts hold neither prompts nor keys.
    """

    at = models.FloatField()  # seconds since the epoch
    assistant = models.CharField(max_length=255, db_index=True)  # its name
    kind = models.CharField(max_length=40, db_index=True)
    text = models.TextField()  # its facts, as a JSON object in ASCII

    objects = EventManager()

    class Meta:
        """Said here, so that the module can be imported where the app is not installed."""

        app_label = "evennia_ai"

    @property
    def facts(self) -> dict[str, object]:
        """What is known of it, by name."""
        return dict(json.loads(self.text))

    def forget(self, people: Collection[str]) -> None:
        """Delete it if it may repeat talk, or names these people.

        A report of somebody else's stays, without the lines around it that may be theirs.
        """
        facts = self.facts
        is_named = any(who in self.text for who in people)
        if self.kind == "report" and facts.get("by") not in people:
            left = {key: value for key, value in facts.items() if key not in _AROUND}
            if is_named and len(left) < len(facts):
                self.text = json.dumps(left)
                self.save()
        elif is_named or not _TALK.isdisjoint(facts):
            self.delete()


def missing_tables() -> list[str]:
    """The names of those tables that the database lacks; `evennia migrate` makes them."""
    there = connection.introspection.table_names()
    return [each._meta.db_table for each in (Call, Event) if each._meta.db_table not in there]


def clear_tables() -> None:
    """Delete all that stands in those tables that are there."""
    missing = missing_tables()
    for each in (Call, Event):
        if each._meta.db_table not in missing:
            each.objects.all().delete()
