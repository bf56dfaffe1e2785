"""Figures for Prometheus at ``/ai/metrics``, behind a token; off until the token is set."""

import queue
import secrets

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from evennia_ai import conf
from evennia_ai.staff.status import facts_or_trouble
from evennia_ai.web.site import on_reactor

# Gauges by the figure that each shows.
_GAUGES = {
    "usage": ("context_usage_ratio", "Share of the context in use."),
    "messages": ("live_messages", "Messages of the live history."),
    "awake": ("awake", "Whether it is awake."),
    "queue": ("queued_lines", "Lines heard and not yet thought about."),
    "calls": ("model_calls_today", "Model calls of the day (UTC)."),
    "tokens": ("tokens_today", "Tokens of the day (UTC)."),
    "cached": ("cached_tokens_today", "Tokens of the day read from a cache."),
    "cost": ("cost_today_dollars", "US dollars of the day (UTC)."),
}


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
    from evennia_ai.assistant_script import all_assistants

    try:
        from prometheus_client import (
            CONTENT_TYPE_LATEST,
            CollectorRegistry,
            Gauge,
            generate_latest,
        )
    except ImportError:
        text = "Install the extra `metrics`: pip install 'evennia-ai[metrics]'"
        return HttpResponse(text, status=501, content_type="text/plain")
    try:
        rows = on_reactor(lambda: [facts_or_trouble(each) for each in all_assistants()])
    except queue.Empty:
        return HttpResponse("The game is busy.", status=503, content_type="text/plain")
    registry = CollectorRegistry()  # nothing is kept between two requests

    def gauge(name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"evennia_ai_{name}", text, ("assistant", *labels), registry=registry)

    up = gauge("up", "Whether the assistant's state can be read.")
    gauges = {key: gauge(*about) for key, about in _GAUGES.items()}
    events = gauge("events_since_start", "What was counted since the server started.", "event")
    for row in rows:
        up.labels(row["name"]).set("broken" not in row)
        for key in row.keys() & gauges.keys():
            gauges[key].labels(row["name"]).set(row[key])
        for event, count in row.get("counts", {}).items():
            events.labels(row["name"], event).set(count)
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
