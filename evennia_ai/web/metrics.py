"""Figures for Prometheus at ``/ai/metrics``, behind a token; off until the token is set."""

import queue
import secrets
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from evennia_ai import conf
from evennia_ai.staff.status import facts_or_trouble, overview
from evennia_ai.web.reactor import on_reactor

if TYPE_CHECKING:
    from evennia_ai.assistant_script import AssistantScript


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """The figures as text; 404 while ``EVENNIA_AI_METRICS_TOKEN`` is unset, 403 without it."""
    token = conf.setting("METRICS_TOKEN")
    if not token:
        return HttpResponse("Metrics are off.", status=404, content_type="text/plain")
    given = request.headers.get("Authorization", "").encode()
    if not secrets.compare_digest(given, f"Bearer {token}".encode()):
        text = "Send the header `Authorization: Bearer <token>`."
        return HttpResponse(text, status=403, content_type="text/plain")
    try:
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
    except ImportError:
        text = "Install the extra `metrics`: pip install 'evennia-ai[metrics]'"
        return HttpResponse(text, status=501, content_type="text/plain")
    try:
        rows = on_reactor(_rows)
    except queue.Empty:
        return HttpResponse("The game is busy.", status=503, content_type="text/plain")
    return HttpResponse(generate_latest(_registry(rows)), content_type=CONTENT_TYPE_LATEST)


def _rows() -> list[dict[str, Any]]:
    from evennia_ai.assistant_script import all_assistants

    return [facts_or_trouble(_figures, script) for script in all_assistants()]


def _figures(script: "AssistantScript") -> dict[str, Any]:
    spent = script.spend.today()
    return {
        **overview(script),
        "awake": script.state.mode == "awake",
        "queue": len(script.runtime.queue),
        "counts": dict(script.runtime.counts),
        "spent": spent,
    }


def _registry(rows: list[dict[str, Any]]) -> Any:
    """What is shown now, as gauges; nothing is kept between two requests."""
    from prometheus_client import CollectorRegistry, Gauge

    registry = CollectorRegistry()

    def gauge(name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"evennia_ai_{name}", text, ("assistant", *labels), registry=registry)

    up = gauge("up", "Whether the assistant's state can be read.")
    gauges = {
        "usage": gauge("context_usage_ratio", "Share of the context in use."),
        "messages": gauge("live_messages", "Messages of the live history."),
        "awake": gauge("awake", "Whether it is awake."),
        "queue": gauge("queued_lines", "Lines heard and not yet thought about."),
    }
    spent = {
        "calls": gauge("model_calls_today", "Model calls of the day (UTC)."),
        "tokens": gauge("tokens_today", "Tokens of the day (UTC)."),
        "cached": gauge("cached_tokens_today", "Tokens of the day read from a cache."),
        "cost": gauge("cost_today_dollars", "US dollars of the day (UTC)."),
    }
    events = gauge("events_since_start", "What was counted since the server started.", "event")
    for row in rows:
        name = row["name"]
        up.labels(name).set(0 if "broken" in row else 1)
        if "broken" in row:
            continue
        for key, each in gauges.items():
            each.labels(name).set(row[key])
        for key, each in spent.items():
            each.labels(name).set(row["spent"].get(key, 0))
        for event, count in row["counts"].items():
            events.labels(name, event).set(count)
    return registry
