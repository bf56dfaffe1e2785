"""The Django app: wires itself into Evennia's launcher and start hooks."""

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, register

START_STOP = "evennia_ai.startstop"
LAUNCHER_COMMANDS = {"ai": "evennia_ai.cli.launcher.main"}


class EvenniaAIConfig(AppConfig):
    """``INSTALLED_APPS += ["evennia_ai"]`` is all a game needs."""

    name = "evennia_ai"
    verbose_name = "AI assistants"
    default_auto_field = "django.db.models.AutoField"

    def ready(self) -> None:
        """Add the launcher command, the start/stop module and the checks."""
        commands = dict(getattr(settings, "EXTRA_LAUNCHER_COMMANDS", None) or {})
        settings.EXTRA_LAUNCHER_COMMANDS = {**LAUNCHER_COMMANDS, **commands}
        modules = settings.AT_SERVER_STARTSTOP_MODULE
        modules = [modules] if isinstance(modules, str) else list(modules)
        if START_STOP not in modules:
            settings.AT_SERVER_STARTSTOP_MODULE = [*modules, START_STOP]
        register(_check_settings, "evennia_ai")


def _check_settings(app_configs: object = None, **kwargs: object) -> list[CheckMessage]:
    """The package's checks, imported on use: Evennia's launcher and Portal never run them."""
    from evennia_ai.checks import check_settings

    return check_settings(app_configs, **kwargs)
