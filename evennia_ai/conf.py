"""The game's settings for this package, read on use, never at import."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from evennia_ai.background import Worker
from evennia_ai.errors import ConfigError
from evennia_ai.llm_interaction import own_machine
from evennia_ai.llm_interaction.local_models.supervisor import LocalModels
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.mind.mind import MEM0_BACKEND, load_backend
from evennia_ai.mind.values import MindSettings
from evennia_ai.protocol import MemoryBackend
from evennia_ai.turns.spend_book import CALLS_A_MINUTE

PREFIX = "EVENNIA_AI_"
# Where the mind may run; the first is the default.
NOTICE = (
    "AI assistants listen in this game: they hear and remember what is said near them. "
    "See 'help ai' and 'help aiforget'."
)
_TRUTHS = {"1": True, "true": True, "yes": True, "on": True}
_TRUTHS |= {"0": False, "false": False, "no": False, "off": False}


def setting(name: str, default: object = None) -> Any:
    """A setting ``EVENNIA_AI_<name>``: the environment's value, else the settings file's.

    Returns `default` if neither sets it; an empty text counts as unset.
    """
    text = os.environ.get(PREFIX + name)
    value = _READERS.get(name, str)(text) if text else getattr(settings, PREFIX + name, None)
    return default if value in (None, "") else value


def _json(text: str) -> Any:
    """A list or a mapping; other text unchanged."""
    try:
        return json.loads(text) if text.lstrip().startswith(("[", "{")) else text
    except (ValueError, RecursionError):
        return text


def _paths(text: str) -> Any:
    """A JSON list, or paths separated by commas."""
    if text.lstrip().startswith(("[", "{")):
        return _json(text)
    return [path.strip() for path in text.split(",") if path.strip()]


# How an environment variable is read for settings that are not text; a truth value is one of a
# few words, and other text is left for the checks to find.
_READERS: dict[str, Callable[[str], Any]] = {
    "TOOLS": _paths,
    "MODELS": _paths,
    "LLM_CALLBACKS": _paths,
    "MEM0_CONFIG": _json,
    "SPEND_CAPS": _json,
    "CALLS_A_MINUTE": lambda text: int(text) if text.strip().isdecimal() else text,
    "LISTENING_NOTICE": lambda text: _TRUTHS.get(text.strip().lower(), text),
    "MEM0_INFER": lambda text: _TRUTHS.get(text.strip().lower(), text),
    "LLM_CALLBACKS_TEXTS": lambda text: _TRUTHS.get(text.strip().lower(), text),
}


def model_name() -> str:
    """The game's model; by default the offline model."""
    return str(setting("LLM_MODEL", OFFLINE_MODEL))


def listening_notice() -> str:
    """What players are told at login; empty if ``EVENNIA_AI_LISTENING_NOTICE`` is False."""
    return NOTICE if setting("LISTENING_NOTICE", True) else ""


def allowed_models() -> tuple[str, ...]:
    """The models that assistants' options may name: the game's own, and ``EVENNIA_AI_MODELS``.

    By default the latter are the offline model and the local models that are installed.
    """
    named = setting("MODELS") or (OFFLINE_MODEL, *local_models().installed())
    listed = named if isinstance(named, list | tuple) else ()
    return (model_name(), *(each for each in listed if isinstance(each, str)))


def spend_caps() -> Any:
    """The caps of the game, of accounts and of a call, by ``EVENNIA_AI_SPEND_CAPS``."""
    return setting("SPEND_CAPS")


def runs_here(model: str) -> bool:
    """Whether a model runs on the game's own machine."""
    return own_machine.runs_here(model, model_name(), setting("LLM_API_BASE"), os.environ)


def calls_a_minute() -> int:
    """The most model calls that one ordinary player causes, by ``EVENNIA_AI_CALLS_A_MINUTE``."""
    most = setting("CALLS_A_MINUTE", CALLS_A_MINUTE)
    return most if isinstance(most, int) else CALLS_A_MINUTE  # the checks say so


def shared_options() -> Mapping[str, Mapping[str, Any]]:
    """Options by typeclass, tag or prototype, by ``EVENNIA_AI_OPTIONS``; the last one wins."""
    groups = setting("OPTIONS", {})
    if not isinstance(groups, Mapping):
        return {}  # the checks say so
    return {key: values for key, values in groups.items() if isinstance(values, Mapping)}


def data_dir() -> Path:
    """The folder of derived data: the recall index and semantic memory."""
    default = Path(settings.GAME_DIR) / "server" / "ai_memory"
    return Path(setting("DATA_DIR", default))


def local_models() -> LocalModels:
    """The game's local models."""
    return LocalModels(Path(settings.GAME_DIR), Path(settings.LOG_DIR))


def log_path() -> Path:
    """The audit log."""
    return Path(setting("LOG_FILE", Path(settings.LOG_DIR) / "ai.log"))


def memory_backend_path() -> str:
    """The dotted path of the memory back end, by ``EVENNIA_AI_MEMORY_BACKEND``."""
    return str(setting("MEMORY_BACKEND", MEM0_BACKEND))


def memory_backend(worker: Worker | None = None) -> MemoryBackend:
    """A new memory back end, by ``EVENNIA_AI_MEMORY_BACKEND``, on a worker or its own.

    Raises `ConfigError` if the dotted path names no class that can be used.
    """
    return load_backend(memory_backend_path(), data_dir(), setting, worker)


def mind_dir() -> Path:
    """The folder where the Server and the mind's process meet."""
    return Path(settings.GAME_DIR) / "server" / "mind"


def mind_log_path() -> Path:
    """The log of the mind's process."""
    return Path(settings.LOG_DIR) / "mind.log"


def mind_settings() -> MindSettings:
    """What a mind must know of the game: all settings of the package that are plain values."""
    names = {n.removeprefix(PREFIX) for n in (*dir(settings), *os.environ) if n.startswith(PREFIX)}
    values = {name: setting(name) for name in sorted(names)}
    plain = {
        name: value for name, value in values.items() if value is not None and _is_plain(value)
    }
    folders = (str(settings.GAME_DIR), str(settings.LOG_DIR))
    return MindSettings(str(data_dir()), model_name(), plain, *folders)


def _is_plain(value: object) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def moderate_function() -> Callable[..., Any]:
    """The function that ``EVENNIA_AI_MODERATE`` names; `ConfigError` if there is none."""
    from django.utils.module_loading import import_string

    path = setting("MODERATE")
    try:
        function: Callable[..., Any] = import_string(path)
    except Exception as error:  # a game's own module may raise anything
        raise _unusable("MODERATE", path, error) from error
    if not callable(function):
        raise ConfigError(f"`{PREFIX}MODERATE` names `{path}`, which is no function.")
    return function


def _unusable(name: str, path: object, error: Exception) -> ConfigError:
    why = f"{type(error).__name__}: {error}"
    return ConfigError(f"`{PREFIX}{name}` names `{path}`, which cannot be used: {why}")


def usable_tools(report: Callable[[ConfigError], None]) -> tuple[type, ...]:
    """The package's tools and the game's own, by ``EVENNIA_AI_TOOLS``; unusable ones reported."""
    from evennia_ai.turns.tools import BUILTIN_TOOLS

    found: dict[str, type] = {tool.name: tool for tool in BUILTIN_TOOLS}
    paths = setting("TOOLS", ())
    if not isinstance(paths, list | tuple):
        report(ConfigError("`EVENNIA_AI_TOOLS` must be a list of dotted paths."))
        paths = ()
    for path in paths:
        try:
            tool = _tool(path)
        except ConfigError as error:
            report(error)
        else:
            found[tool.name] = tool
    return tuple(found.values())


def _tool(path: object) -> Any:
    """A tool's class, after making one and building its schema."""
    from evennia.utils.utils import class_from_module

    from evennia_ai.turns.tools import Tool

    try:
        tool = class_from_module(path)
        if isinstance(tool, type) and issubclass(tool, Tool) and tool.name:
            tool().schema()
            return tool
    except Exception as error:  # a game's own module may raise anything
        raise _unusable("TOOLS", path, error) from error
    wanted = "an `evennia_ai.turns.tools.Tool` with a name"
    raise ConfigError(f"`{path}` in `EVENNIA_AI_TOOLS` is not {wanted}.")
