"""The game's settings for this package, read on use, never at import."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from django.conf import settings
from pydantic import AfterValidator, Field

from evennia_ai.errors import ConfigError
from evennia_ai.kinds import (
    OR_EMPTY,
    Dotted,
    Json,
    Line,
    Models,
    Names,
    Paths,
    Prose,
    Url,
    Values,
    refusal,
    says,
)
from evennia_ai.language.tables import line_in
from evennia_ai.llm_interaction import servers
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.options import OPTIONS, check_option
from evennia_ai.turns.spend_book import CLOSED, SpendCaps

PREFIX = "EVENNIA_AI_"
# Told of each dotted path that cannot be used.
Report = Callable[[ConfigError], None] | None
# The features of this package, by dotted names.
SHIPPED = ("evennia_ai.features.errands.Errands", "evennia_ai.features.bonds.Bonds")


def _parts(config: dict[str, Any]) -> dict[str, Any]:
    for part in ("vector_store", "embedder", "llm"):
        if not isinstance(config.get(part, {}), Mapping):
            raise refusal(f'`{part}` must be a dict: {{"provider": "...", "config": {{...}}}}')
    return config


def _setting(
    help: str,
    unset: str = "none",
    value: Any = None,
    *,
    closed: Any = None,
    is_secret: bool = False,
    is_module: bool = False,
) -> Any:
    """The field of a setting; `help` is Markdown for the documentation.

    Args:
        help: What it does.
        unset: What holds without it, in words.
        value: That, as a value, where it is not decided elsewhere.
        closed: What stands in for a value that cannot be used, where the default allows too much.
        is_secret: Whether no message may show it.
        is_module: Whether its dotted paths must lead to modules.
    """
    facts = {"unset": unset, "closed": closed, "is_secret": is_secret, "is_module": is_module}
    return Field(value, description=help, json_schema_extra=facts)


_Anything = Annotated[Any, says("anything")]
_Caps = Annotated[SpendCaps, says("a dict of limits (docs/providers.md)")]


class Settings(Values):
    """The settings, by their names without ``EVENNIA_AI_``."""

    prefix: ClassVar[str] = PREFIX

    LLM_MODEL: Line | None = _setting(
        "LiteLLM's name of the model, such as `openai/gpt-4o` or `ollama_chat/llama3.1`; see "
        "[Models](providers.md).",
        "the offline model",
    )
    LLM_API_BASE: Url | None = _setting(
        "Address of the model's server.", "the provider's default", is_secret=True
    )
    LLM_API_KEY: Prose | None = _setting(
        "API key; keep it out of `settings.py`. Local servers need none.", is_secret=True
    )
    MODELS: Models | None = _setting(
        "Models that assistants' [options](config.md) may name besides the model above; `*` stands "
        'for anything, as in `"openai/*"`.',
        "the offline model",
    )
    OPTIONS: Annotated[
        dict[
            Annotated[Line, says("typeclass, tag or prototype")],
            Annotated[dict[Line, _Anything], OR_EMPTY],
        ],
        OR_EMPTY,
    ] = _setting(
        "[Options](config.md) of groups of assistants: a dict of typeclass, tag or prototype to "
        "options. Later ones win, and an assistant's own value wins over all.",
        value={},
    )
    SPEND_CAPS: _Caps | None = _setting(
        "Most that model calls may use: in the game, for an account, in a call, and calls of one "
        "player in a minute; see [Spend](providers.md#spend). While it cannot be used, no call "
        "that costs anything is made.",
        "2,000,000 tokens a day for the game, which models on its own machine do not count "
        "towards, and 20 calls a minute for a player",
        closed=CLOSED,
    )
    TOOLS: Paths = _setting(
        "Dotted paths of additional [tools](developing.md).", value=(), is_module=True
    )
    FEATURES: Paths = _setting(
        "Dotted paths of the [features](developing.md#add-a-feature) that assistants have. Where "
        "one is left out, what it stored stays, and is forgotten and exported with the rest.",
        f"all that ship: {', '.join(f'`{each}`' for each in SHIPPED)}",
        SHIPPED,
        is_module=True,
    )
    MEMORY_BACKEND: Dotted | None = _setting(
        "Dotted path of the [memory back end](developing.md).", "Mem0", is_module=True
    )
    MEM0_CONFIG: Annotated[
        dict[Annotated[Line, says("part")], Json], AfterValidator(_parts), OR_EMPTY
    ] = _setting(
        "Mem0's configuration, with a `vector_store` or `embedder` in place of the embedded ones. "
        'With `"infer": True`, the assistant\'s model writes the facts of each journal entry while '
        "it sleeps, in the entry's language: one short call an entry, which counts as spend. Else "
        "each entry becomes one memory, as it is.",
        "the embedded store",
        value={},
    )
    DATA_DIR: Annotated[Path | None, says("a path")] = _setting(
        "Folder of the memory store and the recall index.", "`server/ai_memory`"
    )
    MODERATE: Dotted | None = _setting(
        "Dotted path of a function that decides [what is heard and said](privacy.md#moderation).",
        closed="(a setting that is no dotted path)",
        is_module=True,
    )
    CHANNELS: Names = _setting(
        "Names of the game's channels that assistants [listen to](games.md).", value=()
    )
    PUBLIC_COMMANDS: Names = _setting(
        "Names of the game's commands that speak aloud by sending to each listener: "
        "what they send is [public](games.md).",
        value=(),
    )
    OOC_COMMANDS: Names = _setting(
        "Names of the game's commands by which players speak out of character in a room: "
        "assistants [do not hear](games.md) what they send.",
        '`["ooc"]`',
        value=("ooc",),
    )
    SPEAK_BY: Annotated[dict[Literal["say", "pose"], Line], OR_EMPTY] = _setting(
        "The game's commands by which assistants speak, as "
        '`{"say": "say", "pose": "emote"}`; see [Any game](games.md).',
        "Evennia's hooks",
        value={},
    )
    ACT_BY: Annotated[dict[Literal["get", "get_from", "drop", "give"], Line], OR_EMPTY] = _setting(
        "What assistants type to carry things, where players of the game type something else, as "
        '`{"give": "give {thing} {person}"}`; see [Any game](games.md#speaking-and-acting).',
        "`get {thing}`, `get {thing} from {box}`, `drop {thing}`, `give {thing} to {person}`",
        value={},
    )
    LISTENING_NOTICE: bool = _setting(
        "Whether players are told at login that [assistants listen](privacy.md).",
        "`True`",
        value=True,
    )
    METRICS_TOKEN: Line | None = _setting(
        "Token for [Prometheus](commands.md#for-machines) at `/ai/metrics`; without one it is off.",
        is_secret=True,
    )


def raw_setting(name: str) -> Any:
    """A setting ``EVENNIA_AI_<name>`` as it was given: the environment's text, else a value.

    None if neither sets it; an empty text counts as unset.
    """
    value = os.environ.get(PREFIX + name) or getattr(settings, PREFIX + name, None)
    return None if value == "" else value


def checked_setting(name: str) -> Any:
    """A setting's value in its stored form, None if it is not set; `ConfigError` if it is wrong.

    A text of the environment is read as a list, dict or truth value where the setting is one.
    """
    value = raw_setting(name)
    if value is None:
        return None
    if os.environ.get(PREFIX + name):
        return _of_environment(name, value)
    return Settings.checked(name, value)


@lru_cache(maxsize=100)  # each tick reads several
def _of_environment(name: str, text: str) -> Any:
    return Settings.parsed(name, text)


def setting(name: str, default: object = None) -> Any:
    """A setting's value, or the default; one that cannot be used counts as unset.

    Where that would allow too much, its `closed` stands in for it. The checks say what is wrong.
    """
    about = Settings.about().get(name)
    if about is None:  # a memory back end of the game's own may have others
        value = raw_setting(name)
        return default if value is None else value
    try:
        value = checked_setting(name)
    except ConfigError:
        value = about.facts["closed"]
    if value is not None:
        return value
    return about.default if default is None else default


def model_name() -> str:
    """The game's model; by default the offline model."""
    return str(setting("LLM_MODEL", OFFLINE_MODEL))


def listening_notice() -> str:
    """What players are told at login; empty if ``EVENNIA_AI_LISTENING_NOTICE`` is False."""
    return line_in(game_language(), "listening") if setting("LISTENING_NOTICE", True) else ""


def game_language() -> str:
    """The code of the game's own language, by Django's ``LANGUAGE_CODE``."""
    return str(settings.LANGUAGE_CODE).partition("-")[0]


def allowed_models() -> tuple[str, ...]:
    """The models that assistants' options may name: the game's own, and ``EVENNIA_AI_MODELS``.

    By default the latter is the offline model.
    """
    return (model_name(), *(setting("MODELS") or (OFFLINE_MODEL,)))


def runs_here(model: str) -> bool:
    """Whether a model runs on the game's own machine."""
    addresses = tuple(
        (name, value) for name, value in os.environ.items() if name.endswith(servers.API_BASE)
    )
    return servers.runs_here(model, model_name(), setting("LLM_API_BASE"), addresses)


def wrong_options(are_loaded: bool = False) -> Iterator[str]:
    """What is wrong with options of ``EVENNIA_AI_OPTIONS``; the others of a group hold.

    Of an unknown one nobody can tell as long as the game's own features are not loaded.
    """
    is_known = are_loaded or {*SHIPPED}.issuperset(setting("FEATURES"))
    for group, options in setting("OPTIONS").items():
        for name, value in options.items():
            try:
                if is_known or name in OPTIONS:
                    check_option(name, value)
            except ConfigError as error:
                yield f"`{PREFIX}OPTIONS` for `{group}`: {error}"


def cards_dir() -> Path:
    """The folder of character cards, lorebooks and chats, from and for other programs."""
    return Path(settings.GAME_DIR) / "server" / "ai_cards"


def data_dir() -> Path:
    """The folder of derived data: the recall index and semantic memory."""
    default = Path(settings.GAME_DIR) / "server" / "ai_memory"
    return Path(setting("DATA_DIR", default))


def mind_dir() -> Path:
    """The folder of the mind's process."""
    return Path(settings.GAME_DIR) / "server" / "mind"


def suite_note() -> Path:
    """The file that says when the package's own tests were run in this game, and what was amiss."""
    return data_dir() / "suite.json"


def mind_log() -> Path:
    """The log of the mind's process."""
    return Path(settings.LOG_DIR) / "mind.log"


def mind_settings() -> dict[str, Any]:
    """What a mind must know of the game: all settings of the package that are plain values."""
    names = {n.removeprefix(PREFIX) for n in (*dir(settings), *os.environ) if n.startswith(PREFIX)}
    values = {}
    for name in sorted(names):
        with suppress(ValueError, TypeError, RecursionError):  # what is no plain value
            value = json.loads(json.dumps(setting(name), allow_nan=False))
            if value is not None:
                values[name] = value
    return {**values, "DATA_DIR": str(data_dir()), "LLM_MODEL": model_name()}


def imported(name: str, path: object, is_usable: Callable[[Any], object], kind: str) -> Any:
    """What a dotted path of a setting leads to; `ConfigError` if to nothing of its kind."""
    from django.utils.module_loading import import_string

    try:
        found = import_string(str(path))
        why = "" if is_usable(found) else f"it is no {kind}"
    except Exception as error:  # noqa: BLE001 - a game's own module may raise anything
        why = f"{type(error).__name__}: {error}"
    if why:
        raise ConfigError(f"`{PREFIX}{name}` names `{path}`, which cannot be used: {why}")
    return found


def moderate_function() -> Callable[..., Any]:
    """The function that ``EVENNIA_AI_MODERATE`` names; `ConfigError` if there is none."""
    function: Callable[..., Any] = imported("MODERATE", setting("MODERATE"), callable, "function")
    return function


def usable(
    name: str, paths: Iterable[str], is_usable: Callable[[Any], object], kind: str, report: Report
) -> Iterator[Any]:
    """What the dotted paths of a setting lead to; unusable ones are reported and left out."""
    for path in paths:
        try:
            yield imported(name, path, is_usable, kind)
        except ConfigError as error:
            if report:
                report(error)
