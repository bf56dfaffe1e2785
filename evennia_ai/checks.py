"""Django system checks: mistakes in the settings, found before the first tick.

`apps.py` registers `check_settings` for `evennia migrate` and `evennia check`; the doctor calls it.
Nothing is imported from the game, as the checks also run before Evennia is ready.
"""

import difflib
import importlib.util
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.conf import settings
from django.core import checks

from evennia_ai.conf import PREFIX, setting
from evennia_ai.llm_interaction.local_models.files import PREFIX as LOCAL
from evennia_ai.llm_interaction.local_models.files import has_engine
from evennia_ai.llm_interaction.tracing import CALLBACKS, missing_package
from evennia_ai.turns.spend_book import read_limits

MODEL = "EVENNIA_AI_LLM_MODEL"
API_BASE = "EVENNIA_AI_LLM_API_BASE"
API_KEY = "EVENNIA_AI_LLM_API_KEY"
TOOLS = "EVENNIA_AI_TOOLS"
MODELS = "EVENNIA_AI_MODELS"
MEMORY_BACKEND = "EVENNIA_AI_MEMORY_BACKEND"
MEM0_CONFIG = "EVENNIA_AI_MEM0_CONFIG"
SPEND_CAPS = "EVENNIA_AI_SPEND_CAPS"
MODERATE = "EVENNIA_AI_MODERATE"
METRICS_TOKEN = "EVENNIA_AI_METRICS_TOKEN"  # noqa: S105 - a name
LLM_CALLBACKS = "EVENNIA_AI_LLM_CALLBACKS"
# A key is not shown, nor an address, which may hold one.
_SECRET = (API_KEY, API_BASE)
# Environment variables that are not settings of a game.
_ELSEWHERE = ("EVENNIA_AI_DEMO_PASSWORD", "EVENNIA_AI_MAKE")
_URL = re.compile(r"https?://[^\s/]+(/\S*)?")
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_SET_PATH = "Set a path the game can write to, or remove the setting."


def _is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike)


# Of each setting: the number of its error, what a value must be, what it is not, and a remedy.
_KINDS: dict[str, tuple[str, Callable[[Any], bool], str, str]] = {
    MODEL: (
        "E001",
        lambda value: isinstance(value, str) and bool(value.strip()),
        "not the name of a model",
        'Set LiteLLM\'s name of it, such as "openai/gpt-4o" or "ollama/llama3", or None.',
    ),
    API_BASE: (
        "E002",
        lambda value: isinstance(value, str) and bool(_URL.fullmatch(value)),
        "not a web address",
        'Set an address such as "http://127.0.0.1:11434/v1", or remove the setting.',
    ),
    API_KEY: (
        "E003",
        lambda value: isinstance(value, str) and value == value.strip(),
        "not a key: it is not text, or has spaces around it",
        "Copy it again, or remove it for a server that needs no key.",
    ),
    TOOLS: (
        "E004",
        lambda value: isinstance(value, list | tuple),
        "not a list",
        'Set a list of dotted paths of Tool classes, such as ["world.tools.OpenDoor"].',
    ),
    MEM0_CONFIG: (
        "E007",
        lambda value: isinstance(value, Mapping) and all(isinstance(key, str) for key in value),
        "not a dict",
        "Set a Mem0 configuration, or None for the embedded store.",
    ),
    MODELS: (
        "E013",
        lambda value: (
            isinstance(value, list | tuple)
            and all(isinstance(name, str) and "://" not in name for name in value)
        ),
        "not a list of names of models without addresses",
        'Set a list such as ["openai/gpt-4o-mini", "ollama/*", "local/*"].',
    ),
    "EVENNIA_AI_DATA_DIR": ("E009", _is_path, "not a path", _SET_PATH),
    "EVENNIA_AI_LOG_FILE": ("E009", _is_path, "not a path", _SET_PATH),
    "EVENNIA_AI_MEM0_INFER": (
        "E010",
        lambda value: isinstance(value, bool),
        "neither True nor False",
        "Set True if the model should extract memories from the journal; else remove it.",
    ),
    "EVENNIA_AI_LISTENING_NOTICE": (
        "E014",
        lambda value: isinstance(value, bool),
        "neither True nor False",
        "Set False to tell players at login nothing of the assistants; else remove it.",
    ),
    MODERATE: (
        "E016",
        lambda value: isinstance(value, str) and bool(_DOTTED.fullmatch(value)),
        "not a dotted path",
        'Write module and function separated by dots: "world.moderation.moderate".',
    ),
    "EVENNIA_AI_CALLS_A_MINUTE": (
        "E024",
        lambda value: type(value) is int and value > 0,
        "not a number of model calls above 0",
        "Set a whole number, or remove it: one player then causes at most 20 a minute.",
    ),
    METRICS_TOKEN: (
        "E021",
        lambda value: isinstance(value, str),
        "not text",
        "Set a long random text, or remove it to switch the metrics off.",
    ),
    LLM_CALLBACKS: (
        "E022",
        lambda value: isinstance(value, list | tuple) and set(map(str, value)) <= set(CALLBACKS),
        f"not a list of some of: {', '.join(CALLBACKS)}",
        'Set a list such as ["otel"], or remove it: model calls are then not traced.',
    ),
    "EVENNIA_AI_LLM_CALLBACKS_TEXTS": (
        "E023",
        lambda value: isinstance(value, bool),
        "neither True nor False",
        "Set True to send prompts and replies to the callbacks; else remove it.",
    ),
    MEMORY_BACKEND: (
        "E011",
        lambda value: isinstance(value, str) and bool(_DOTTED.fullmatch(value)),
        "not a dotted path",
        'Write module and class separated by dots: "world.memory.Backend".',
    ),
}
KNOWN = (*_KINDS, SPEND_CAPS)
# Settings whose module must exist: the number of the error, and what to do without it.
_MODULES = (
    ("E012", MEMORY_BACKEND, "remove it to use Mem0"),
    ("E016", MODERATE, "remove it to moderate nothing"),
)


def check_settings(app_configs: object = None, **kwargs: object) -> list[checks.CheckMessage]:
    """All problems of the package's settings; Django calls this."""
    values = {name: setting(name.removeprefix(PREFIX)) for name in KNOWN}
    has_model = bool(values[MODEL])
    found: list[checks.CheckMessage] = []
    for name, (number, fits, what, hint) in _KINDS.items():
        if values[name] is not None and not fits(values[name]):
            shown = "" if name in _SECRET else f"{_shown(values[name])}, "
            found.append(_error(number, f"`{name}` is {shown}{what}.", hint))
            values[name] = None
    if values[API_BASE] and not has_model:
        message = f"`{API_BASE}` is set without `{MODEL}`: the offline model speaks."
        found.append(_warning("W001", message, f"Set `{MODEL}` to one of that server's models."))
    found += _missing_engine(values[MODEL])
    found += _missing_callbacks(values[LLM_CALLBACKS] or ())
    for path in values[TOOLS] or ():
        if not isinstance(path, str) or not _DOTTED.fullmatch(path):
            message = f"`{TOOLS}` holds {_shown(path)}, which is not a dotted path."
            hint = 'Write module and class separated by dots: "world.tools.OpenDoor".'
            found.append(_error("E005", message, hint))
        else:
            found += _missing_module("E006", TOOLS, path, "remove it")
    for number, name, remedy in _MODULES:
        found += _missing_module(number, name, values[name], remedy)
    for part in ("vector_store", "embedder", "llm"):
        config = values[MEM0_CONFIG] or {}
        if part in config and not isinstance(config[part], Mapping):
            message = f'`{MEM0_CONFIG}["{part}"]` is {_shown(config[part])}, not a dict.'
            found.append(_error("E008", message, 'Write {"provider": "...", "config": {...}}.'))
    found += _wrong_caps(values[SPEND_CAPS])
    in_settings = {name for name in dir(settings) if name.startswith(PREFIX)}
    in_environment = {name for name in os.environ if name.startswith(PREFIX)} - set(_ELSEWHERE)
    for name in sorted((in_settings | in_environment) - set(KNOWN)):
        near = difflib.get_close_matches(name, KNOWN, n=1)
        hint = f"Did you mean `{near[0]}`?" if near else f"The settings are: {', '.join(KNOWN)}."
        message = f"`{name}` is not a setting of evennia_ai; it has no effect."
        found.append(_warning("W002", message, hint))
    return found


def _missing_engine(model: object) -> list[checks.CheckMessage]:
    """An error if the package that runs a local model is missing."""
    if not str(model).startswith(LOCAL) or has_engine():
        return []
    message = f"`{MODEL}` is `{model}`, but the extra `local` is not installed."
    return [_error("E017", message, "Run `pip install 'evennia-ai[local]'`.")]


def _missing_callbacks(callbacks: Iterable[str]) -> list[checks.CheckMessage]:
    """A warning for each callback whose package is not installed."""
    packages = {callback: missing_package(callback) for callback in callbacks}
    return [
        _warning(
            "W003",
            f"`{LLM_CALLBACKS}` holds `{callback}`, but its package is not installed.",
            f"Run `pip install '{package}'`.",
        )
        for callback, package in packages.items()
        if package
    ]


def _wrong_caps(value: object) -> list[checks.CheckMessage]:
    """An error for each part of the spend caps that cannot be used."""
    hint = (
        'Set a dict such as {"game": {"cost_month": 20.0}, "account": {"tokens_day": 50000}, '
        '"call": {"tokens": 20000}}. Until then, no call that costs anything is made.'
    )
    message = f"`{SPEND_CAPS}` cannot be used: {{}}."
    return [_error("E015", message.format(wrong), hint) for wrong in read_limits(value)[1]]


def _missing_module(
    number: str, name: str, path: str | None, remedy: str
) -> list[checks.CheckMessage]:
    """An error if a path's module does not exist. Its packages are imported, not itself."""
    if path is None:
        return []
    module = path.rpartition(".")[0]
    try:
        exists = importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        exists = False
    message = f"`{name}` names `{path}`, but there is no module `{module}`."
    return [] if exists else [_error(number, message, f"Correct the path, or {remedy}.")]


def _shown(value: object) -> str:
    """A value as messages show it: a short text, or only the type."""
    if isinstance(value, str):
        return f"`{value[:40]}`"
    return f"of type `{type(value).__name__}`"


def _error(number: str, message: str, hint: str) -> checks.CheckMessage:
    return checks.Error(message, hint=hint, id=f"evennia_ai.{number}")


def _warning(number: str, message: str, hint: str) -> checks.CheckMessage:
    return checks.Warning(message, hint=hint, id=f"evennia_ai.{number}")
