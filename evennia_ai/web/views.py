"""The state of all assistants as JSON, for staff and their monitors.

Evennia's web site runs on other threads, where Attributes must not be touched: the state is
collected on the reactor thread.
"""

import queue
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from evennia_ai.assistant.status import facts_or_trouble, game_facts, status_facts

# A thread that waits forever would block a reload.
PATIENCE_S = 3.0


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


def on_reactor(function: Callable[[], Any], patience_s: float | None = None) -> Any:
    """A function's result, computed on the reactor thread.

    Args:
        function: What to call.
        patience_s: Longest wait in seconds; `PATIENCE_S` if None.

    Raises:
        queue.Empty: There was no result in time; the server may be stopping.
        Exception: What the function raised.
    """
    from twisted.internet import reactor
    from twisted.python import threadable

    if threadable.isInIOThread() or not reactor.running:  # type: ignore[attr-defined]
        return function()
    answers: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue()

    def answer() -> None:
        try:
            answers.put((function(), None))
        except Exception as error:  # noqa: BLE001 - it is raised again on the other thread
            answers.put((None, error))

    reactor.callFromThread(answer)  # type: ignore[attr-defined]
    result, error = answers.get(timeout=PATIENCE_S if patience_s is None else patience_s)
    if error is not None:
        raise error
    return result
