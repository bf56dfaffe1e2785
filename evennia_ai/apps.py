"""The Django app: wires itself into Evennia's launcher and start hooks."""

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, register

START_STOP = "evennia_ai.cli.hooks"
AMP = "evennia_ai.cli.amp"
LAUNCHER_COMMANDS = {"ai": "evennia_ai.cli.launcher.main"}
# Evennia's settings whose defaults are replaced: the default, and the package's own.
REPLACED = {
    "AMP_SERVER_PROTOCOL_CLASS": (
        "evennia.server.portal.amp_server.AMPServerProtocol",
        f"{AMP}.PortalEnd",
    ),
    "AMP_CLIENT_PROTOCOL_CLASS": (
        "evennia.server.amp_client.AMPServerClientProtocol",
        f"{AMP}.ServerEnd",
    ),
}


class EvenniaAIConfig(AppConfig):
    """``INSTALLED_APPS += ["evennia_ai"]`` is all a game needs."""

    name = "evennia_ai"
    verbose_name = "AI assistants"
    default_auto_field = "django.db.models.AutoField"

    def ready(self) -> None:
        """Add the launcher command, the start/stop module, the connection and the checks."""
        commands = dict(getattr(settings, "EXTRA_LAUNCHER_COMMANDS", None) or {})
        settings.EXTRA_LAUNCHER_COMMANDS = {**LAUNCHER_COMMANDS, **commands}
        _add_module("AT_SERVER_STARTSTOP_MODULE", START_STOP)
        _add_module("SERVER_SERVICES_PLUGIN_MODULES", AMP)
        for name, (default, own) in REPLACED.items():
            if getattr(settings, name) == default:
                setattr(settings, name, own)
        register(_check_settings, "evennia_ai")


def _add_module(name: str, module: str) -> None:
    """Add a module to a setting that names one or several."""
    modules = getattr(settings, name)
    modules = [modules] if isinstance(modules, str) else list(modules)
    if module not in modules:
        setattr(settings, name, [*modules, module])


def _check_settings(app_configs: object = None, **kwargs: object) -> list[CheckMessage]:
    """The package's checks, imported on use: Evennia's launcher and Portal never run them."""
    from evennia_ai.checks import check_settings

    return check_settings(app_configs, **kwargs)
