"""An assistant's configuration: one table for defaults, units, checks and help.

Each field of `AssistantConfig` is a configuration Attribute of the script. Its metadata is the
source of the defaults, of validation, of `aiconfig`'s help and of the documentation page.
"""

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import Any

from evennia_ai.errors import ConfigError

Check = Callable[[Any], Any]
_CLOCK_SPAN = re.compile(r"^(?:(game|real)\s+)?(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})$")


@dataclass(frozen=True)
class Kind:
    """What values an option takes.

    Args:
        says: The values in plain words, for help and error messages.
        check: Returns the value in its stored form, or raises `ValueError` or `TypeError`.
    """

    says: str
    check: Check


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
    return words[str(value).strip().lower()]


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError(value)
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError(value)
    return number


def _whole(low: int, high: int) -> Check:
    def check(value: Any) -> int:
        number = _number(value)
        if number != int(number) or not low <= number <= high:
            raise ValueError(value)
        return int(number)

    return check


def _between(low: float, high: float) -> Check:
    def check(value: Any) -> float:
        number = _number(value)
        if not low <= number <= high:
            raise ValueError(value)
        return number

    return check


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    text = value.strip()
    if not text:
        raise ValueError(value)
    return text


def _or_none(check: Check) -> Check:
    def checked(value: Any) -> Any:
        empty = value is None or (isinstance(value, str) and value.strip().lower() in ("", "none"))
        return None if empty else check(value)

    return checked


def _one_of(*words: str) -> Check:
    def check(value: Any) -> str:
        word = str(value).strip().lower()
        if word not in words:
            raise ValueError(value)
        return word

    return check


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [part for part in re.split(r"[,\s]+", value.strip("()[] ")) if part]
    return tuple(_text(part) for part in value)


def _levels(value: Any) -> dict[str, str]:
    level = _one_of("off", "dry run", "on")
    return {_text(name): level(word) for name, word in dict(value).items()}


def _schedule(value: Any) -> str:
    match = _CLOCK_SPAN.match(str(value).strip().lower())
    if (
        not match
        or any(int(match[i]) > 23 for i in (2, 4))
        or any(int(match[i]) > 59 for i in (3, 5))
    ):
        raise ValueError(value)
    return re.sub(r"\s*-\s*", "-", str(value).strip().lower())


FLAG = Kind("True or False", _flag)
SHARE = Kind("a share from 0.0 to 1.0", _between(0.0, 1.0))
TEXT = Kind("text", _text)
TEXT_OR_NONE = Kind("text, or None", _or_none(_text))
NAMES = Kind("names separated by commas", _names)
LEVELS = Kind("a dict of tool name to off, dry run or on", _levels)
SCHEDULE = Kind(
    "None, or hours such as 23:00-06:00 (game 23:00-06:00 for game time)", _or_none(_schedule)
)


def whole(low: int, high: int, none: bool = False) -> Kind:
    """A whole number from `low` to `high`, or None where `none` allows it."""
    check = _whole(low, high)
    says = f"a whole number from {low:,} to {high:,}"
    return Kind(says + (", or None" if none else ""), _or_none(check) if none else check)


def number(low: float, high: float, none: bool = False) -> Kind:
    """A number from `low` to `high`, or None where `none` allows it."""
    check = _between(low, high)
    says = f"a number from {low:g} to {high:g}"
    return Kind(says + (", or None" if none else ""), _or_none(check) if none else check)


def choice(*words: str) -> Kind:
    """One of some words."""
    return Kind("one of " + ", ".join(words), _one_of(*words))


def option(default: Any, kind: Kind, unit: str, says: str, group: str) -> Any:
    """A field of `AssistantConfig` with all that is known of it."""
    meta = {"kind": kind, "unit": unit, "help": says, "group": group}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=meta)
    return field(default=default, metadata=meta)


COMPACTION, CONTEXT, MODEL, LIFE, SPEND = "Compaction", "Context", "Model", "Life", "Spend"


@dataclass(frozen=True)
class AssistantConfig:
    """Everything that can be tuned about one assistant. Token counts are of its own model."""

    compact_enabled: bool = option(
        True,
        FLAG,
        "",
        "Allow compaction. If off, the prompt holds the raw history, as much as fits.",
        COMPACTION,
    )
    compact_auto: bool = option(
        True, FLAG, "", "Compact automatically. The `compact` command works either way.", COMPACTION
    )
    compact_sleep_threshold: float = option(
        0.7,
        SHARE,
        "share of the context",
        "Context usage at which a sleeping assistant compacts.",
        COMPACTION,
    )
    compact_emergency_threshold: float = option(
        0.8,
        SHARE,
        "share of the context",
        "Context usage at which an awake assistant compacts before anything else.",
        COMPACTION,
    )
    compact_preserve_window: int = option(
        20,
        whole(1, 10_000),
        "messages",
        "Newest messages that a compaction keeps in full. Short private talk is kept as well.",
        COMPACTION,
    )
    compact_preserve_token_share: float = option(
        0.2,
        number(0.0, 0.9),
        "share of max_context_tokens",
        "An automatic compaction keeps at least this much of the newest messages.",
        COMPACTION,
    )
    compact_model: str | None = option(
        None,
        TEXT_OR_NONE,
        "",
        "Model that writes the summaries. None: the assistant's own model.",
        COMPACTION,
    )
    compact_prompt: str | None = option(
        None, TEXT_OR_NONE, "", "Replaces the built-in prompt for summaries.", COMPACTION
    )
    compact_strategy: str = option(
        "cascade",
        choice("cascade", "single"),
        "",
        "cascade: a recent and a long-term summary. single: one summary, updated each time.",
        COMPACTION,
    )
    immediate_window: int | None = option(
        None,
        whole(1, 100_000, none=True),
        "messages",
        "Messages kept when compacting by count. Short private talk and messages of an "
        "extraction do not count.",
        COMPACTION,
    )
    recent_window: int | None = option(
        None,
        whole(1, 100_000, none=True),
        "messages",
        "Messages summarised at a time when compacting by count. Messages of an extraction "
        "leave with them; short private talk stays.",
        COMPACTION,
    )
    summary_max_tokens: int = option(
        800, whole(50, 100_000), "tokens", "Largest size of each summary.", COMPACTION
    )
    mask_min_tokens: int = option(
        200,
        whole(10, 1_000_000),
        "tokens",
        "Compaction masks old tool outputs that are larger than this.",
        COMPACTION,
    )
    compact_notice: bool = option(
        False,
        FLAG,
        "",
        "Show `compact_emote` to the players present at a compaction.",
        COMPACTION,
    )
    pre_compact_extraction_enabled: bool = option(
        True, FLAG, "", "Save facts to the journal before a compaction.", COMPACTION
    )
    pre_compact_max_iterations: int = option(
        5,
        whole(1, 50),
        "model calls",
        "Most model calls of the pre-compaction extraction while asleep.",
        COMPACTION,
    )
    pre_compact_prompt: str | None = option(
        None,
        TEXT_OR_NONE,
        "",
        "Replaces the built-in prompt of the pre-compaction extraction.",
        COMPACTION,
    )
    max_context_tokens: int = option(
        100_000, whole(50, 10_000_000), "tokens", "Largest size of a request to the model.", CONTEXT
    )
    reply_reserve_tokens: int = option(
        1024, whole(16, 200_000), "tokens", "Room reserved for the model's reply.", CONTEXT
    )
    ledger_max_tokens: int = option(
        500,
        whole(0, 100_000),
        "tokens",
        "Largest size of the pinned ledger in the prompt.",
        CONTEXT,
    )
    memory_inject_tokens: int = option(
        500,
        whole(0, 100_000),
        "tokens",
        "Largest size of the memories injected into the prompt.",
        CONTEXT,
    )
    tail_max_tokens: int = option(
        800,
        whole(50, 100_000),
        "tokens",
        "Largest size of the prompt's part about room, time and people.",
        CONTEXT,
    )
    llm_model: str | None = option(
        None, TEXT_OR_NONE, "", "LiteLLM model name. None: the game's setting.", MODEL
    )
    llm_fallback_models: tuple[str, ...] = option(
        (), NAMES, "", "Models to try, in order, when the main model fails.", MODEL
    )
    llm_api: str = option(
        "chat",
        choice("chat", "completion"),
        "",
        "chat: chat messages. completion: a plain transcript, for base models.",
        MODEL,
    )
    llm_timeout_s: float = option(
        60.0, number(0.1, 3600), "seconds", "Longest time a model call may take.", MODEL
    )
    llm_temperature: float | None = option(
        None, number(0, 2, none=True), "", "Sampling temperature. None: the model's default.", MODEL
    )
    llm_tool_protocol: str = option(
        "native",
        choice("native", "text"),
        "",
        "native: the provider's tool calling. text: tool calls written as text lines.",
        MODEL,
    )
    persona: str = option(
        "A friendly regular of this place, curious about people and honest about what "
        "they do not know.",
        TEXT,
        "",
        "Who the assistant is. Part of the system prompt.",
        LIFE,
    )
    tick_interval_s: int = option(2, whole(1, 3600), "seconds", "Time between two ticks.", LIFE)
    max_react_iterations: int = option(
        8, whole(1, 100), "model calls", "Most model calls in one turn.", LIFE
    )
    turn_timeout_s: float = option(
        120.0, number(1, 3600), "seconds", "Longest time a turn may take.", LIFE
    )
    reply_cooldown_s: float = option(
        1.0, number(0, 3600), "seconds", "Shortest time between two turns.", LIFE
    )
    sleep_after_idle_s: float | None = option(
        1800.0,
        number(1, 10_000_000, none=True),
        "seconds",
        "Quiet time after which the assistant falls asleep. None: never.",
        LIFE,
    )
    sleep_schedule: str | None = option(
        None, SCHEDULE, "clock times", "Hours during which the assistant sleeps.", LIFE
    )
    sleep_emote: str | None = option(
        "yawns, leans back and falls asleep.",
        TEXT_OR_NONE,
        "",
        "Emote shown when it falls asleep. None: no emote.",
        LIFE,
    )
    wake_emote: str | None = option(
        "stirs and wakes up.", TEXT_OR_NONE, "", "Emote shown when it wakes. None: no emote.", LIFE
    )
    compact_emote: str | None = option(
        "looks into the distance for a moment, sorting memories.",
        TEXT_OR_NONE,
        "",
        "Emote shown at a compaction if `compact_notice` is on.",
        LIFE,
    )
    greet_arrivals: bool = option(
        False, FLAG, "", "Start a turn when a player arrives, not only when one speaks.", LIFE
    )
    tool_levels: dict[str, str] = option(
        {}, LEVELS, "", "Switches tools: off, dry run (does nothing) or on (default).", LIFE
    )
    spend_max_tokens_day: int | None = option(
        None,
        whole(0, 10**12, none=True),
        "tokens",
        "Most tokens that model calls may use in a day. None: no limit.",
        SPEND,
    )


FEWSHOT_PROMPT = """You fold the older part of a conversation in a text game into a short memory. \
Write two or three plain sentences for the one who was there: who was there, what happened, what \
was promised, with names and numbers. Invent nothing. Write nothing but the memory."""

# Sets of options for one kind of use, by name: `aiconfig Aria preset = fewshot`.
PRESETS: dict[str, dict[str, Any]] = {
    # The newest messages in full serve as examples; what is older becomes short memories, made
    # 64 messages at a time, as base models want it.
    "fewshot": {
        "compact_strategy": "cascade",
        "immediate_window": 64,
        "recent_window": 64,
        "compact_preserve_window": 64,
        "compact_prompt": FEWSHOT_PROMPT,
        "summary_max_tokens": 200,
        # Base models know no tools.
        "pre_compact_extraction_enabled": False,
    },
}

OPTIONS: dict[str, Field[Any]] = {item.name: item for item in fields(AssistantConfig)}


@dataclass(frozen=True)
class Problem:
    """A configuration value that cannot be used, and what is used instead."""

    name: str
    value: str
    says: str

    def __str__(self) -> str:
        return f"`{self.name}` = {self.value}: {self.says}"


def default_of(name: str) -> Any:
    """The default of an option."""
    item = OPTIONS[name]
    return item.default if item.default is not MISSING else {}


def checked(name: str, value: Any) -> Any:
    """A value in its stored form.

    Raises:
        ConfigError: If there is no such option or the value is not of its kind.
    """
    if name not in OPTIONS:
        raise ConfigError(f"There is no option `{name}`. `aiconfig <assistant>` lists them all.")
    kind: Kind = OPTIONS[name].metadata["kind"]
    try:
        return kind.check(value)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ConfigError(f"`{name}` takes {kind.says}, not {_shown(value)}.") from error


def _shown(value: Any) -> str:
    """The beginning of a value as Python writes it; Python refuses to for very long numbers."""
    try:
        return repr(value)[:60]
    except (ValueError, RecursionError):
        return f"this {type(value).__name__}"


def parsed(name: str, text: str) -> Any:
    """A value from what somebody typed: a Python literal where it is one, else the text itself.

    Raises:
        ConfigError: As `checked`.
    """
    text = text.strip()
    for candidate in (_literal(text), text):
        try:
            return checked(name, candidate)
        except ConfigError as error:
            failure = error
    raise failure


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text


def read_config(values: Mapping[str, Any]) -> tuple[AssistantConfig, tuple[Problem, ...]]:
    """A configuration from stored values; what cannot be used falls back to its default.

    Args:
        values: Stored values by option name; unknown names are passed over.

    Returns:
        The configuration and one `Problem` for each value that was not used.
    """
    good: dict[str, Any] = {}
    problems = []
    for name, value in values.items():
        if name not in OPTIONS:
            continue
        try:
            good[name] = checked(name, value)
        except ConfigError as error:
            says = f"{error} The default {default_of(name)!r} is used."
            problems.append(Problem(name, _shown(value), says))
    return _consistent(AssistantConfig(**good), problems)


def _consistent(
    config: AssistantConfig, problems: list[Problem]
) -> tuple[AssistantConfig, tuple[Problem, ...]]:
    room = config.max_context_tokens // 2
    if config.reply_reserve_tokens > room:
        says = (
            f"more than half of `max_context_tokens` ({config.max_context_tokens:,}); "
            f"{room:,} is used."
        )
        problems.append(Problem("reply_reserve_tokens", str(config.reply_reserve_tokens), says))
        config = replace(config, reply_reserve_tokens=room)
    return config, tuple(problems)
