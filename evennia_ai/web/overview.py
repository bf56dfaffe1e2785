"""Pages about all assistants: the list, spend, the log, the doctor."""

import time
from dataclasses import asdict
from typing import Any

from twisted.internet.defer import inlineCallbacks

from evennia_ai import conf
from evennia_ai.assistant_script import AssistantScript, all_assistants
from evennia_ai.background import Steps, pause
from evennia_ai.game.ports import shared_spend, write_events
from evennia_ai.history.messages import utc_iso
from evennia_ai.models import Event
from evennia_ai.staff import doctor
from evennia_ai.staff.show import PURPOSES, event_line, price_of
from evennia_ai.staff.status import (
    answers_line,
    facts_or_trouble,
    game_usage,
    overview,
    spent_line,
    usage_facts,
)
from evennia_ai.turns.spend_book import KEPT_DAYS, SPEND_BY, Amount
from evennia_ai.web.site import Visit, number

# Assistants that are looked at before everything else on the reactor has its turn.
ROWS_AT_ONCE = 2
SPEND_DAYS, DAY_S = 30, 86_400.0
# Lines of the log that the page shows, and bytes among which those of one kind are looked for.
LOG_LINES, LOG_SEEN = 200, 2_000
# Checks of the doctor that take no time worth mentioning; the page asks for the others one by one.
QUICK_CHECKS = ("settings", "wiring", "tools", "mind")


@inlineCallbacks
def assistants(visit: Visit) -> Steps[dict[str, Any]]:
    """Each assistant in a row, and what the game has spent."""
    scripts, rows = all_assistants(), []
    for script in scripts:
        rows.append(facts_or_trouble(_row, script) | {"pk": script.pk})
        if len(rows) % ROWS_AT_ONCE == 0:
            yield pause()
    spend = game_usage(shared_spend(), time.time())
    return {"assistants": rows, "game": spend, "model": conf.model_name()}


def _row(script: AssistantScript) -> dict[str, Any]:
    facts, cap = overview(script), script.spend.reached()
    return {
        **facts,
        "usage_pct": round(100 * facts["usage"]),
        "sleep_pct": round(100 * script.config.compact_sleep_threshold),
        "today": spent_line(script.spend.today()),
        "cap": f"{cap} is reached {cap.until}" if cap else "",
        "answers": answers_line(script.runtime.counts),
        "trouble": script.runtime.last_error,
    }


@inlineCallbacks
def spend(visit: Visit) -> Steps[dict[str, Any]]:
    """Tokens and money by day, and by player, purpose, model and assistant."""
    scripts, table, now = all_assistants(), shared_spend().table, time.time()
    days = max(1, number(visit.asked.get("days"), SPEND_DAYS, KEPT_DAYS))
    since = utc_iso(now - (days - 1) * DAY_S)[:10]
    names = {script.scope: script.obj.key for script in scripts}
    tables: dict[str, list[dict[str, Any]]] = {}
    for by in SPEND_BY:
        sums = list(table.sums(by, since).items())
        if by != "day":
            sums.sort(key=lambda row: (row[1].cost, row[1].prompt), reverse=True)
        tables[by] = [_spent(of, spent, by, names, scripts) for of, spent in sums]
        yield pause()
    chart = {
        "at": [row["name"] for row in tables["day"]],
        "prompt tokens": [row["prompt"] - row["cached"] for row in tables["day"]],
        "cached tokens": [row["cached"] for row in tables["day"]],
        "reply tokens": [row["reply"] for row in tables["day"]],
        "US dollars": [row["cost"] for row in tables["day"]],
    }
    caps: list[dict[str, Any]] = []
    for script in scripts:
        caps.append(usage_facts(script))
        if len(caps) % ROWS_AT_ONCE == 0:
            yield pause()
    caps.append(game_usage(shared_spend(), time.time()))
    titles = {by: "player" if by == "account" else by for by in SPEND_BY}
    return {
        "days": days,
        "chart": chart,
        "tables": [(titles[by], rows) for by, rows in tables.items()],
        "caps": [each for each in caps if each["caps"]],
    }


def _spent(
    of: str, spent: Amount, by: str, names: dict[str, str], scripts: list[AssistantScript]
) -> dict[str, Any]:
    name = of
    if by == "assistant":
        name = names.get(of, "deleted") if of else "the game"
    elif by == "purpose":
        name = PURPOSES.get(of, of)
    elif by == "account":
        known = scripts[0].game.account_name(of) if of and scripts else of
        name = ("deleted" if known == of else known) if of else "nobody"
    price = price_of(spent.calls, spent.cost, spent.unpriced)
    return {**asdict(spent), "name": name, "price": price}


def log(visit: Visit) -> dict[str, Any]:
    """What happened of late, newest first, of the names and kinds that stand there."""
    write_events()
    wanted = {part: visit.asked.get(part, "") for part in ("assistant", "kind")}
    newest = Event.objects.order_by("-pk")
    names, kinds = ({row[part] for row in newest.values(part)[:LOG_SEEN]} for part in wanted)
    chosen = newest.filter(**{part: value for part, value in wanted.items() if value})
    lines = [event_line(event) for event in chosen[:LOG_LINES]]
    return {**wanted, "lines": lines, "names": sorted(names), "kinds": sorted(kinds)}


@inlineCallbacks
def examination(visit: Visit) -> Steps[dict[str, Any]]:
    """What the doctor finds: quick checks, and the others if the address asks for them."""
    wanted = visit.asked.get("check", "")
    names = {doctor.name_of(check): check for check in doctor.CHECKS}
    chosen = names if wanted == "all" else (wanted,) if wanted in names else QUICK_CHECKS
    done = yield doctor.run_checks(True, [names[name] for name in chosen])
    found = {each.name: each for each in done}
    checks = [(name, name.replace("_", " "), found.get(name)) for name in names]
    return {"checks": checks, "all": len(found) == len(names)}
