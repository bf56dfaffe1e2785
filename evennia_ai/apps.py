"""The Django app: wires itself into Evennia's launcher, start hooks and the menu of its site."""

from pathlib import Path

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, register

START_STOP = "evennia_ai.startstop"
# Its menu extends that of the game, or else of Evennia, which has the same name.
SITE = str(Path(__file__).parent / "templates" / "evennia_ai" / "menu")
MENU = "evennia_ai.web.site.menu"
LAUNCHER_COMMANDS = {"ai": "evennia_ai.cli.launcher.main"}


class EvenniaAIConfig(AppConfig):
    """``INSTALLED_APPS += ["evennia_ai"]`` is all a game needs."""

    name = "evennia_ai"
    verbose_name = "AI assistants"
    default_auto_field = "django.db.models.AutoField"

    def ready(self) -> None:
        """Add the launcher command, the start/stop module, the link to the pages and the checks."""
        commands = dict(getattr(settings, "EXTRA_LAUNCHER_COMMANDS", None) or {})
        settings.EXTRA_LAUNCHER_COMMANDS = {**LAUNCHER_COMMANDS, **commands}
        modules = settings.AT_SERVER_STARTSTOP_MODULE
        modules = [modules] if isinstance(modules, str) else list(modules)
        if START_STOP not in modules:
            # Before the game's own: an error of theirs ends the round of calls.
            settings.AT_SERVER_STARTSTOP_MODULE = [START_STOP, *modules]
        engines = []
        for engine in settings.TEMPLATES:  # the link stands in the site's menu
            options = engine.get("OPTIONS", {})
            processors = options.get("context_processors", ())
            if engine["BACKEND"].endswith("DjangoTemplates") and MENU not in processors:
                options = {**options, "context_processors": [*processors, MENU]}
                engine = {**engine, "DIRS": [SITE, *engine.get("DIRS", ())], "OPTIONS": options}
            engines.append(engine)
        settings.TEMPLATES = engines
        register(_check_settings, "evennia_ai")


def _check_settings(app_configs: object = None, **kwargs: object) -> list[CheckMessage]:
    """The package's checks, imported on use: Evennia's launcher and Portal never run them."""
    from evennia_ai.checks import check_settings

    return check_settings(app_configs, **kwargs)
