"""Django system checks: mistakes in the settings, reported at boot and not at the first tick.

`apps.py` registers `check_settings`. Django runs it for `evennia migrate`, `evennia check` and
`evennia ai doctor`; `log_problems` reports them at the Server's start, where Django runs none.
Nothing is imported from the game, as the checks also run before Evennia is ready.
"""

import difflib
import importlib.util
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.conf import settings
from django.core import checks

from evennia_ai.conf import PREFIX, setting

MODEL = "EVENNIA_AI_LLM_MODEL"
API_BASE = "EVENNIA_AI_LLM_API_BASE"
API_KEY = "EVENNIA_AI_LLM_API_KEY"
TOOLS = "EVENNIA_AI_TOOLS"
MEMORY_BACKEND = "EVENNIA_AI_MEMORY_BACKEND"
MEM0_CONFIG = "EVENNIA_AI_MEM0_CONFIG"
MEM0_INFER = "EVENNIA_AI_MEM0_INFER"
DATA_DIR = "EVENNIA_AI_DATA_DIR"
LOG_FILE = "EVENNIA_AI_LOG_FILE"
KNOWN = (
    *(MODEL, API_BASE, API_KEY, TOOLS),
    *(MEMORY_BACKEND, MEM0_CONFIG, MEM0_INFER, DATA_DIR, LOG_FILE),
)
# Environment variables that are not settings of a game.
_ELSEWHERE = ("EVENNIA_AI_DEMO_PASSWORD", "EVENNIA_AI_MAKE")
_URL = re.compile(r"https?://[^\s/]+(/\S*)?")
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


def value_of(name: str, default: Any = None) -> Any:
    """A setting by its full name, such as ``EVENNIA_AI_LLM_MODEL``; see `conf.setting`."""
    return setting(name.removeprefix(PREFIX), default)


def check_settings(app_configs: Any = None, **kwargs: Any) -> list[checks.CheckMessage]:
    """All problems of the package's settings; Django calls this."""
    return [problem for check in _CHECKS for problem in check()]


def log_problems(log: Callable[[str], None]) -> int:
    """Write each problem to a log as one line; returns how many of them are errors."""
    problems = check_settings()
    for problem in problems:
        log(f"{problem.id}: {problem.msg} {problem.hint or ''}".strip())
    return sum(problem.level >= checks.ERROR for problem in problems)


def _check_model() -> Iterator[checks.CheckMessage]:
    model = value_of(MODEL)
    if model is None:
        return
    if not isinstance(model, str) or not model.strip():
        yield _error(
            "E001",
            f"`{MODEL}` is {_shown(model)}, not the name of a model.",
            'Set LiteLLM\'s name of it, such as "openai/gpt-4o" or "ollama/llama3", or None.',
        )


def _check_api_base() -> Iterator[checks.CheckMessage]:
    base = value_of(API_BASE)
    if base is None:
        return
    if not isinstance(base, str) or not _URL.fullmatch(base):
        yield _error(
            "E002",
            f"`{API_BASE}` is not a web address.",
            'Set an address such as "http://127.0.0.1:11434/v1", or remove the setting.',
        )
    elif not value_of(MODEL):
        yield _warning(
            "W001",
            f"`{API_BASE}` is set without `{MODEL}`: the offline model speaks.",
            f"Set `{MODEL}` to one of that server's models.",
        )


def _check_api_key() -> Iterator[checks.CheckMessage]:
    key = value_of(API_KEY)
    if key is not None and (not isinstance(key, str) or key != key.strip()):
        yield _error(
            "E003",
            f"`{API_KEY}` is not a key: it is not text, or has spaces around it.",
            "Copy it again, or remove it for a server that needs no key.",
        )


def _check_tools() -> Iterator[checks.CheckMessage]:
    paths = value_of(TOOLS, ())
    if not isinstance(paths, list | tuple):
        yield _error(
            "E004",
            f"`{TOOLS}` is {_shown(paths)}, not a list.",
            'Set a list of dotted paths of Tool classes, such as ["world.tools.OpenDoor"].',
        )
        return
    for path in paths:
        if not isinstance(path, str) or not _DOTTED.fullmatch(path):
            yield _error(
                "E005",
                f"`{TOOLS}` holds {_shown(path)}, which is not a dotted path.",
                'Write module and class separated by dots: "world.tools.OpenDoor".',
            )
        elif not _module_exists(path.rpartition(".")[0]):
            yield _error(
                "E006",
                f"`{TOOLS}` names `{path}`, but there is no module `{path.rpartition('.')[0]}`.",
                "Correct the path, or remove it.",
            )


def _check_backend() -> Iterator[checks.CheckMessage]:
    path = value_of(MEMORY_BACKEND)
    if path is None:
        return
    if not isinstance(path, str) or not _DOTTED.fullmatch(path):
        yield _error(
            "E011",
            f"`{MEMORY_BACKEND}` is {_shown(path)}, not a dotted path.",
            'Write module and class separated by dots: "world.memory.Backend".',
        )
    elif not _module_exists(path.rpartition(".")[0]):
        yield _error(
            "E012",
            f"`{MEMORY_BACKEND}` names `{path}`, but there is no module"
            f" `{path.rpartition('.')[0]}`.",
            "Correct the path, or remove it to use Mem0.",
        )


def _check_mem0() -> Iterator[checks.CheckMessage]:
    config = value_of(MEM0_CONFIG)
    if config is None:
        return
    if not isinstance(config, Mapping) or not all(isinstance(key, str) for key in config):
        yield _error(
            "E007",
            f"`{MEM0_CONFIG}` is {_shown(config)}, not a dict.",
            "Set a Mem0 configuration, or None for the embedded store.",
        )
        return
    for part in ("vector_store", "embedder", "llm"):
        if part in config and not isinstance(config[part], Mapping):
            yield _error(
                "E008",
                f'`{MEM0_CONFIG}["{part}"]` is {_shown(config[part])}, not a dict.',
                'Write {"provider": "...", "config": {...}}.',
            )


def _check_infer() -> Iterator[checks.CheckMessage]:
    value = value_of(MEM0_INFER)
    if value is not None and not isinstance(value, bool):
        yield _error(
            "E010",
            f"`{MEM0_INFER}` is {_shown(value)}, neither True nor False.",
            "Set True if the model should extract memories from the journal; else remove it.",
        )


def _check_paths() -> Iterator[checks.CheckMessage]:
    for name in (DATA_DIR, LOG_FILE):
        value = value_of(name)
        if value is not None and not isinstance(value, str | os.PathLike):
            yield _error(
                "E009",
                f"`{name}` is {_shown(value)}, not a path.",
                "Set a path the game can write to, or remove the setting.",
            )


def _check_names() -> Iterator[checks.CheckMessage]:
    in_settings = {name for name in dir(settings) if name.startswith(PREFIX)}
    in_environment = {name for name in os.environ if name.startswith(PREFIX)} - set(_ELSEWHERE)
    for name in sorted((in_settings | in_environment) - set(KNOWN)):
        near = difflib.get_close_matches(name, KNOWN, n=1)
        hint = f"Did you mean `{near[0]}`?" if near else f"The settings are: {', '.join(KNOWN)}."
        yield _warning("W002", f"`{name}` is not a setting of evennia_ai; it has no effect.", hint)


_CHECKS = (
    _check_model,
    _check_api_base,
    _check_api_key,
    _check_tools,
    _check_backend,
    _check_mem0,
    _check_infer,
    _check_paths,
    _check_names,
)


def _module_exists(module: str) -> bool:
    """Whether a module exists. Its packages are imported, the module itself is not."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _shown(value: Any) -> str:
    """A value as messages show it: a short text, or only the type."""
    if isinstance(value, str):
        return f"`{value[:40]}`"
    return f"of type `{type(value).__name__}`"


def _error(number: str, message: str, hint: str) -> checks.CheckMessage:
    return checks.Error(message, hint=hint, id=f"evennia_ai.{number}")


def _warning(number: str, message: str, hint: str) -> checks.CheckMessage:
    return checks.Warning(message, hint=hint, id=f"evennia_ai.{number}")
