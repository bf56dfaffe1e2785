"""Called by Evennia when the server starts and stops."""

from evennia_ai import services
from evennia_ai.handlers.mending import mend_when_ready


def assistants() -> list:
    """All assistants' scripts."""
    from evennia_ai.assistant_script import AssistantScript

    return list(AssistantScript.objects.all_family())


def at_server_start() -> None:
    """Load what is slow in the background; scripts mend themselves in their own hook."""
    services.warm_up().addCallback(_ready)


def _ready(result: object) -> None:
    """Everything is loaded: mend what had to wait for it."""
    for script in assistants():
        try:
            mend_when_ready(script)
        except Exception as error:  # noqa: BLE001 - one broken assistant must not stop the others
            script.log_error("mending after the start", error)


def at_server_stop() -> None:
    """Cancel calls and let go of files, however the server stops."""
    for script in assistants():
        script.stop_thinking()
    services.close()


def at_server_init() -> None:
    """Nothing to do; Evennia asks for the hook."""


def at_server_reload_start() -> None:
    """Nothing to do; Evennia asks for the hook."""


def at_server_reload_stop() -> None:
    """Nothing to do; Evennia asks for the hook."""


def at_server_cold_start() -> None:
    """Nothing to do; Evennia asks for the hook."""


def at_server_cold_stop() -> None:
    """Nothing to do; Evennia asks for the hook."""
