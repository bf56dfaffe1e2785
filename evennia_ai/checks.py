"""Django system checks: mistakes in the settings, found before the first tick.

`apps.py` registers `check_settings` for `evennia migrate` and `evennia check`; the doctor calls it.
Nothing is imported from the game, as the checks also run before Evennia is ready.
"""

import difflib
import importlib.util
import os

from django.conf import settings
from django.core import checks

from evennia_ai.conf import PREFIX, Settings, checked_setting, setting, wrong_options
from evennia_ai.errors import ConfigError

MODEL, API_BASE, API_KEY = (f"{PREFIX}LLM_{name}" for name in ("MODEL", "API_BASE", "API_KEY"))
# An environment variable that is no setting of a game.
_ELSEWHERE = "EVENNIA_AI_DEMO_PASSWORD"


def check_settings(
    app_configs: object = None, are_loaded: bool = False, **kwargs: object
) -> list[checks.CheckMessage]:
    """All problems of the package's settings; Django calls this.

    With the game's features loaded, options that nobody brings are some.
    """
    problems: list[checks.CheckMessage] = []
    settings_known = Settings.about()
    for name, about in settings_known.items():
        try:
            value = checked_setting(name)
        except ConfigError as error:
            what = str(error)
            if about.facts["is_secret"]:
                what = f"`{PREFIX}{name}` must be {about.kind.says}."
            problems.append(_problem("E001", what, f"{about.help} Else remove it."))
            continue
        if about.facts["is_module"]:
            for path in (value,) if isinstance(value, str) else value or ():
                module = path.rpartition(".")[0]
                try:  # imports the packages of a module, not itself
                    exists = importlib.util.find_spec(module) is not None
                except (ImportError, ValueError):
                    exists = False
                if not exists:
                    what = f"`{PREFIX}{name}` names `{path}`, but there is no module `{module}`."
                    problems.append(_problem("E002", what, "Correct the path, or remove it."))
    wrong = wrong_options(are_loaded)
    problems += [_problem("E001", what, "Correct or remove it.") for what in wrong]
    if setting("LLM_API_BASE") and not setting("LLM_MODEL"):
        message = f"`{API_BASE}` is set without `{MODEL}`: the offline model speaks."
        problems.append(_problem("W001", message, f"Set `{MODEL}` to one of that server's models."))
    known = [PREFIX + name for name in settings_known]
    given = {name for name in (*dir(settings), *os.environ) if name.startswith(PREFIX)}
    for name in sorted(given - {*known, _ELSEWHERE}):
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean `{near[0]}`?" if near else f"The settings are: {', '.join(known)}."
        message = f"`{name}` is not a setting of evennia_ai; it has no effect."
        problems.append(_problem("W002", message, hint))
    return problems


def _problem(number: str, message: str, hint: str) -> checks.CheckMessage:
    kind = {"E": checks.Error, "W": checks.Warning}[number[0]]
    return kind(message, hint=hint, id=f"evennia_ai.{number}")
