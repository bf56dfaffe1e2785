"""The state of all assistants as JSON, for staff and their monitors."""

import queue
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from evennia_ai.staff.status import facts_or_trouble, game_facts, status_facts
from evennia_ai.web.reactor import on_reactor


@require_safe
@never_cache
def status(request: HttpRequest) -> JsonResponse:
    """What `aistatus` shows of every assistant; 403 unless the user is staff."""
    user: Any = request.user
    if not (user.is_authenticated and user.is_staff):
        return JsonResponse({"error": "This page is for staff; log in first."}, status=403)
    try:
        found = on_reactor(_all_facts)
    except queue.Empty:
        return JsonResponse({"error": "The game is busy; try again."}, status=503)
    return JsonResponse(found, json_dumps_params={"default": str})


def _all_facts() -> dict[str, Any]:
    # Before a game's first migration its addresses are checked without Evennia's classes.
    from evennia_ai.assistant_script import all_assistants

    assistants = [facts_or_trouble(status_facts, script) for script in all_assistants()]
    return {"game": game_facts(), "assistants": assistants}
