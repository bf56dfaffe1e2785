"""Pages about all assistants: the list, spend, the log, the doctor."""

import time
from collections.abc import Mapping

from twisted.internet.defer import inlineCallbacks

from evennia_ai import conf
from evennia_ai.assistant_script import all_assistants, shared_spend, write_events
from evennia_ai.background import Steps, pause
from evennia_ai.game.seeing import find
from evennia_ai.history.messages import utc_iso
from evennia_ai.models import Event
from evennia_ai.staff import doctor
from evennia_ai.staff.show import PURPOSES, event_line, price_of
from evennia_ai.staff.status import (
    facts_or_trouble,
    usage_facts,
)
from evennia_ai.turns.spend_book import KEPT_DAYS, SPEND_BY, Amount
from evennia_ai.web.site import Shown, Visit, number

SPEND_DAYS, DAY_S = 30, 86_400.0
# Lines of the log that the page shows, and bytes among which those of one kind are looked for.
LOG_LINES, LOG_SEEN = 200, 2_000


@inlineCallbacks
def assistants(visit: Visit) -> Steps[Shown]:
    """Each assistant in a row, and what the game has spent."""
    scripts, rows = all_assistants(), []
    for script in scripts:
        rows.append(facts_or_trouble(script) | {"pk": script.pk})
        yield pause()
    spend = usage_facts(shared_spend(), time.time())
    return {"assistants": rows, "game": spend, "model": conf.model_name()}


@inlineCallbacks
def spend(visit: Visit) -> Steps[Shown]:
    """Tokens and money by day, and by player, purpose, model and assistant."""
    table, now = shared_spend().table, time.time()
    days = max(1, number(visit.asked.get("days"), SPEND_DAYS, KEPT_DAYS))
    since = utc_iso(now - (days - 1) * DAY_S)[:10]
    names = {script.scope: script.own_name for script in all_assistants()}
    tables: dict[str, list[tuple[str, Amount, str]]] = {}
    for by in SPEND_BY:
        sums = list(table.sums(by, since).items())
        if by != "day":
            sums.sort(key=lambda row: (row[1].cost, row[1].prompt), reverse=True)
        tables[by] = [(_name(by, of, names), spent, price_of(spent)) for of, spent in sums]
        yield pause()
    chart = {
        "at": [day for day, _, _ in tables["day"]],
        "prompt tokens": [spent.prompt - spent.cached for _, spent, _ in tables["day"]],
        "cached tokens": [spent.cached for _, spent, _ in tables["day"]],
        "reply tokens": [spent.reply for _, spent, _ in tables["day"]],
    }
    tables["player"] = tables.pop("account")
    game = usage_facts(shared_spend(), now)
    return {"days": days, "chart": chart, "tables": list(tables.items()), "game": game}


def _name(by: str, of: str, names: Mapping[str, str]) -> str:
    """The name of what was spent on, or of who caused it."""
    if not of:
        return {"assistant": "the game", "account": "nobody"}.get(by, of)
    if by == "assistant":
        return names.get(of, "deleted")
    if by == "account":
        return str(getattr(find(of), "key", "deleted"))
    return PURPOSES.get(of, of)


def log(visit: Visit) -> Shown:
    """What happened of late, newest first, of the names and kinds that stand there."""
    write_events()
    wanted = {part: visit.asked.get(part, "") for part in ("assistant", "kind")}
    newest = Event.objects.order_by("-pk")
    names, kinds = ({row[part] for row in newest.values(part)[:LOG_SEEN]} for part in wanted)
    chosen = newest.filter(**{part: value for part, value in wanted.items() if value})
    lines = [event_line(event) for event in chosen[:LOG_LINES]]
    return {**wanted, "lines": lines, "names": sorted(names), "kinds": sorted(kinds)}


@inlineCallbacks
def examination(visit: Visit) -> Steps[Shown]:
    """The doctor's checks; those that the address asks for are made, the page asks for the rest."""
    wanted, names = visit.asked.get("check", ""), [*map(doctor.name_of, doctor.CHECKS)]
    chosen = [check for check in doctor.CHECKS if wanted in ("all", doctor.name_of(check))]
    found = {each.name: each for each in (yield doctor.run_checks(True, chosen))}
    checks = [(name, name.replace("_", " "), found.get(name)) for name in names]
    return {"checks": checks, "all": len(found) == len(names)}
