"""The game's settings for this package, read when they are asked for, never at import."""

import os
from pathlib import Path
from typing import Any

from django.conf import settings

from evennia_ai.errors import ConfigError
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL

PREFIX = "EVENNIA_AI_"


def setting(name: str, default: Any = None) -> Any:
    """A setting ``EVENNIA_AI_<name>``: the environment's value, else the settings file's.

    Args:
        name: Without the prefix, as ``LLM_MODEL``.
        default: Where neither has one; an empty text counts as none.
    """
    from_environment = os.environ.get(PREFIX + name)
    value = from_environment or getattr(settings, PREFIX + name, None)
    return default if value in (None, "") else value


def model_name() -> str:
    """The game's model; the offline one where none is set."""
    return str(setting("LLM_MODEL", OFFLINE_MODEL))


def data_dir() -> Path:
    """Where derived data lies: the recall index and semantic memory."""
    default = Path(settings.GAME_DIR) / "server" / "ai_memory"
    return Path(setting("DATA_DIR", default))


def log_path() -> Path:
    """The audit log."""
    return Path(setting("LOG_FILE", Path(settings.LOG_DIR) / "ai.log"))


def tool_classes() -> tuple[type, ...]:
    """The package's tools and the game's own, by ``EVENNIA_AI_TOOLS``.

    Raises:
        ConfigError: If a dotted path names no tool.
    """
    from evennia.utils.utils import class_from_module

    from evennia_ai.tools import BUILTIN_TOOLS, Tool

    found: dict[str, type] = {tool.name: tool for tool in BUILTIN_TOOLS}
    for path in setting("TOOLS", ()):
        try:
            tool = class_from_module(path)
        except ImportError as error:
            raise ConfigError(
                f"`EVENNIA_AI_TOOLS` names `{path}`, which cannot be imported: {error}"
            ) from error
        if not (isinstance(tool, type) and issubclass(tool, Tool) and tool.name):
            raise ConfigError(
                f"`{path}` in `EVENNIA_AI_TOOLS` is no `evennia_ai.tools.Tool` with a name."
            )
        found[tool.name] = tool
    return tuple(found.values())
