"""An assistant's configuration: one table for defaults, units, checks and help.

Each field of `AssistantConfig` is a configuration Attribute of the script. Its metadata is the
source of the defaults, of validation, of `aiconfig`'s help and of the documentation page.
"""

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from evennia_ai.errors import ConfigError
from evennia_ai.turns.turn_taking import ATTENTION, THREAD_S

Check = Callable[[object], Any]
# Persona and prompts are sent with every call: so many characters are about 2,000 tokens.
PROSE_CHARS = 8_000
# Emotes are shown to players on a line or two, and names are short.
LINE_CHARS = 500
_LOCK = r"(?:(?:not|NOT)\s+)?\w+\([^():;]*\)"
_LOCKS = re.compile(rf"{_LOCK}(?:\s+(?:and|or|AND|OR)\s+{_LOCK})*")
# A local model's name that is a path, not the name of a file in the game's folder of models.
_PATH = re.compile(r"local/(?!hf:).*[/\\]", re.DOTALL)
_CLOCK_SPAN = re.compile(r"^(?:(game|real)\s+)?(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})$")


@dataclass(frozen=True)
class Kind:
    """What values an option takes."""

    says: str  # the values in plain words, for help and error messages
    check: Check  # returns the value in its stored form, or raises `ValueError` or `TypeError`
    unit: str = ""  # of numbers, for help
    most_chars: int = 0  # of texts
    names_models: bool = False


def _flag(value: object) -> bool:
    words = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
    return words[str(value).strip().lower()]


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(value)
    return value.strip()


def _model(value: object) -> str:
    text = _text(value)
    if len(text) > LINE_CHARS:
        raise ValueError(value)
    return text


def _one_of(*words: str) -> Check:
    def check(value: object) -> str:
        word = str(value).strip().lower()
        if word not in words:
            raise ValueError(value)
        return word

    return check


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        parts = re.split(r"[,\s]+", value.strip("()[] "))
        return tuple(_model(part) for part in parts if part)
    if not isinstance(value, Iterable):
        raise TypeError(value)
    return tuple(map(_model, value))


def _levels(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise TypeError(value)
    level = _one_of("off", "dry run", "confirm", "on")
    return {_text(name): level(word) for name, word in value.items()}


def _schedule(value: object) -> str:
    text = str(value).strip().lower()
    match = _CLOCK_SPAN.match(text)
    if not match or any(int(match[i]) > (59 if i % 2 else 23) for i in (2, 3, 4, 5)):
        raise ValueError(value)
    return re.sub(r"\s*-\s*", "-", text)


def _lock(value: object) -> str:
    text = _text(value)
    if not _LOCKS.fullmatch(text):
        raise ValueError(value)
    return text


def within_hours(schedule: str, clock: Callable[[bool], tuple[int, int]]) -> bool:
    """Whether it is now within a span of hours; one that ends before it begins spans midnight.

    `clock` returns hour and minute now: of game time if its argument is True, which it is for a
    `schedule` that begins with ``game``.
    """
    words = schedule.split()
    start, end = (tuple(map(int, part.split(":"))) for part in words[-1].split("-"))
    now = clock(words[0] == "game")
    return start <= now < end if start <= end else now >= start or now < end


def or_none(kind: Kind) -> Kind:
    """The same values, or None, also written as an empty text."""

    def check(value: object) -> Any:
        empty = value is None or (isinstance(value, str) and value.strip().lower() in ("", "none"))
        return None if empty else kind.check(value)

    return replace(kind, says=f"{kind.says}, or None", check=check)


def number(low: float, high: float, unit: str = "", whole: bool = False) -> Kind:
    """A number from `low` to `high`; only whole ones if `whole`."""

    def check(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise TypeError(value)
        found = float(value)
        if not low <= found <= high or (whole and found != int(found)):
            raise ValueError(value)
        return int(found) if whole else found

    says = f"a number from {low:g} to {high:g}"
    return Kind(f"a whole number from {low:,} to {high:,}" if whole else says, check, unit)


def whole(low: int, high: int, unit: str = "") -> Kind:
    """A whole number from `low` to `high`."""
    return number(low, high, unit, whole=True)


def choice(*words: str) -> Kind:
    """One of some words."""
    return Kind("one of " + ", ".join(words), _one_of(*words))


FLAG = Kind("True or False", _flag)
SHARE = Kind("a share from 0.0 to 1.0", number(0.0, 1.0).check, "share of the context")
PROSE = Kind(f"text of at most {PROSE_CHARS:,} characters", _text, most_chars=PROSE_CHARS)
LINE = Kind(f"text of at most {LINE_CHARS} characters", _text, most_chars=LINE_CHARS)
MODEL = Kind("the name of a model", _model, names_models=True)
MODELS = Kind("names of models separated by commas", _names, names_models=True)
LEVELS = Kind("a dict of tool name to off, dry run, confirm or on", _levels)
SCHEDULE = Kind(
    "None, or hours such as 23:00-06:00 (game 23:00-06:00 for game time)",
    or_none(Kind("", _schedule)).check,
    "clock times",
)


LOCK = Kind("a lock string such as perm(Builder) or id(5) or all()", _lock)


def _option(group: str, default: object, kind: Kind, says: str) -> Any:
    """A field of `AssistantConfig` with all that is known of it."""
    meta = {"kind": kind, "unit": kind.unit, "help": says, "group": group}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=meta)
    return field(default=default, metadata=meta)


compaction, context, model, life, spend = (
    partial(_option, group) for group in ("Compaction", "Context", "Model", "Life", "Spend")
)


@dataclass(frozen=True)
class AssistantConfig:
    """Everything that can be tuned about one assistant. Token counts are of its own model."""

    compact_enabled: bool = compaction(
        True, FLAG, "Allow compaction. If off, the prompt holds the raw history, as much as fits."
    )
    compact_auto: bool = compaction(
        True, FLAG, "Compact automatically. The `compact` command works either way."
    )
    compact_background: bool = compaction(
        True,
        FLAG,
        "Compact in the background while awake, so that nobody waits for a summary. If off, awake "
        "assistants compact only in an emergency, by count or at their own request, and do so "
        "before they answer.",
    )
    compact_sleep_threshold: float = compaction(
        0.7,
        SHARE,
        "Context usage at which an assistant compacts while asleep, or in the background.",
    )
    compact_emergency_threshold: float = compaction(
        0.8, SHARE, "Context usage at which an awake assistant compacts before anything else."
    )
    compact_preserve_window: int = compaction(
        20,
        whole(1, 10_000, "messages"),
        "Newest lines of talk that a compaction keeps in full.",
    )
    compact_preserve_token_share: float = compaction(
        0.2,
        number(0.0, 0.9, "share of max_context_tokens"),
        "An automatic compaction keeps at least this much of the newest messages.",
    )
    compact_model: str | None = compaction(
        None, or_none(MODEL), "Model that writes the summaries. None: the assistant's own model."
    )
    compact_prompt: str | None = compaction(
        None, or_none(PROSE), "Replaces the built-in prompt for summaries."
    )
    immediate_window: int | None = compaction(
        None,
        or_none(whole(1, 100_000, "messages")),
        "Lines of talk kept when compacting by count.",
    )
    recent_window: int | None = compaction(
        None,
        or_none(whole(1, 100_000, "messages")),
        "Lines of talk summarised at a time when compacting by count.",
    )
    summary_max_tokens: int = compaction(
        800, whole(50, 100_000, "tokens"), "Largest size of each summary."
    )
    mask_min_tokens: int = compaction(
        200,
        whole(10, 1_000_000, "tokens"),
        "Compaction masks old tool outputs that are larger than this.",
    )
    compact_notice: bool = compaction(
        False, FLAG, "Show `compact_emote` to the players present at a compaction."
    )
    pre_compact_extraction_enabled: bool = compaction(
        True, FLAG, "Save facts to the journal before a compaction."
    )
    pre_compact_max_iterations: int = compaction(
        5,
        whole(1, 50, "model calls"),
        "Most model calls of the pre-compaction extraction while asleep.",
    )
    pre_compact_prompt: str | None = compaction(
        None, or_none(PROSE), "Replaces the built-in prompt of the pre-compaction extraction."
    )
    max_context_tokens: int = context(
        100_000,
        whole(50, 10_000_000, "tokens"),
        "Largest size of a request to the model and its reply. The model's window counts where it "
        "is smaller; it is learned (docs/context.md).",
    )
    reply_reserve_tokens: int = context(
        1024, whole(16, 200_000, "tokens"), "Room reserved for the model's reply."
    )
    ledger_max_tokens: int = context(
        500, whole(0, 100_000, "tokens"), "Largest size of the pinned ledger in the prompt."
    )
    memory_inject_tokens: int = context(
        500, whole(0, 100_000, "tokens"), "Largest size of the memories injected into the prompt."
    )
    tail_max_tokens: int = context(
        800,
        whole(50, 100_000, "tokens"),
        "Largest size of the prompt's part about room, time and people.",
    )
    llm_model: str | None = model(
        None, or_none(MODEL), "LiteLLM model name. None: the game's setting."
    )
    llm_fallback_models: tuple[str, ...] = model(
        (), MODELS, "Models to try, in order, when the main model fails."
    )
    llm_api: str = model(
        "chat",
        choice("chat", "completion"),
        "chat: chat messages. completion: a plain transcript, for base models.",
    )
    llm_timeout_s: float = model(
        60.0, number(0.1, 3600, "seconds"), "Longest time a model call may take."
    )
    llm_temperature: float | None = model(
        None, or_none(number(0, 2)), "Sampling temperature. None: the model's default."
    )
    llm_top_p: float | None = model(
        None,
        or_none(number(0, 1)),
        "Share of the likeliest next tokens a model chooses from. None: the model's default.",
    )
    llm_frequency_penalty: float | None = model(
        None,
        or_none(number(-2, 2)),
        "How much a token counts less for each time it was written. None: the model's default.",
    )
    llm_presence_penalty: float | None = model(
        None,
        or_none(number(-2, 2)),
        "How much a token counts less once it was written. None: the model's default.",
    )
    llm_repeat_penalty: float | None = model(
        None,
        or_none(number(0.1, 10)),
        "llama.cpp's and Ollama's penalty of what stands in the prompt already, e.g. 1.1. Sent to "
        "servers of your own only. None: the server's default.",
    )
    llm_tool_protocol: str = model(
        "auto",
        choice("auto", "native", "text"),
        "native: the provider's tool calling. text: tool calls written as text lines. auto: text "
        "where a server of your own does not show the model its tools, else native.",
    )
    llm_offline_fallback: bool = model(
        True, FLAG, "When no model answers, let the offline model answer, from memory and by rules."
    )
    persona: str = life(
        "A friendly regular of this place, curious about people and honest about what "
        "they do not know.",
        PROSE,
        "Who the assistant is. Part of the system prompt.",
    )
    tick_interval_s: int = life(
        2,
        whole(1, 3600, "seconds"),
        "Time between two ticks. With nothing to do they become rarer, up to half a minute; what "
        "is heard is saved within one interval, and a question begins a tick at once.",
    )
    max_react_iterations: int = life(
        8, whole(1, 100, "model calls"), "Most model calls in one turn."
    )
    turn_timeout_s: float = life(120.0, number(1, 3600, "seconds"), "Longest time a turn may take.")
    reply_cooldown_s: float = life(
        1.0, number(0, 3600, "seconds"), "Shortest time between two turns."
    )
    sleep_after_idle_s: float | None = life(
        1800.0,
        or_none(number(1, 10_000_000, "seconds")),
        "Quiet time after which the assistant falls asleep. None: never.",
    )
    sleep_schedule: str | None = life(None, SCHEDULE, "Hours during which the assistant sleeps.")
    sleep_emote: str | None = life(
        "yawns, leans back and falls asleep.",
        or_none(LINE),
        "Emote shown when it falls asleep. None: no emote.",
    )
    wake_emote: str | None = life(
        "stirs and wakes up.", or_none(LINE), "Emote shown when it wakes. None: no emote."
    )
    compact_emote: str | None = life(
        "looks into the distance for a moment, sorting memories.",
        or_none(LINE),
        "Emote shown at a compaction if `compact_notice` is on.",
    )
    spend_emote: str = spend(
        "has talked enough for now, and will answer later.",
        LINE,
        "Emote shown to those whose question a spend cap holds up. It is answered once the cap is "
        "lifted or its day or month is over.",
    )
    busy_emote: str | None = spend(
        "raises a hand: one thing at a time, please.",
        or_none(LINE),
        "Emote shown once a minute to a player who causes more model calls than one player may "
        "(EVENNIA_AI_CALLS_A_MINUTE). What is said meanwhile is remembered, not answered.",
    )
    thinking_after_s: float = life(
        2.0, number(0, 3600, "seconds"), "Wait for an answer after which `thinking_emote` is shown."
    )
    thinking_emote: str | None = life(
        "thinks for a moment.",
        or_none(LINE),
        "Emote shown once to those who wait for an answer. None: no emote.",
    )
    trouble_emote: str | None = life(
        "shakes their head, as if the words would not come.",
        or_none(LINE),
        "Emote shown to those who wait when no model answers. None: no emote.",
    )
    attention: str = life(
        "room",
        choice(*ATTENTION),
        "addressed: answers only when called by name. room: also goes on with a talk, and answers "
        "one player who is alone with assistants. all: answers every line of a player.",
    )
    thread_s: float = life(
        THREAD_S, number(0, 3600, "seconds"), "Time for which a talk goes on without its name."
    )
    stale_after_s: float = life(
        90.0, number(1, 86_400, "seconds"), "Age of a line that is remembered, but not answered."
    )
    max_says: int = life(2, whole(1, 20, "lines"), "Most lines and poses in one turn.")
    greet_arrivals: bool = life(
        False, FLAG, "Start a turn when a player arrives, not only when one speaks."
    )
    post: bool = life(
        True,
        FLAG,
        "It stays where it was put and walks only when somebody it obeys asks. Off: it walks "
        "wherever anybody asks it to.",
    )
    obeys: str = life(
        "perm(Builder)",
        LOCK,
        "Who may order it to walk, to fetch and to give. Who controls its body always may. Anyone "
        "may have things whose own lock `give` lets them.",
    )
    tool_levels: dict[str, str] = life(
        {},
        LEVELS,
        "Switches tools: off, dry run (does nothing), confirm (waits for `ai/approve`) or on "
        "(default).",
    )
    spend_max_tokens_day: int | None = spend(
        None,
        or_none(whole(0, 10**12, "tokens")),
        "Most tokens that model calls may use in a day (UTC). None: no limit.",
    )
    spend_max_tokens_month: int | None = spend(
        None,
        or_none(whole(0, 10**12, "tokens")),
        "Most tokens that model calls may use in a month (UTC). None: no limit.",
    )
    spend_max_cost_day: float | None = spend(
        None,
        or_none(number(0, 10**9, "US dollars")),
        "Most money that model calls may cost in a day (UTC). None: no limit.",
    )
    spend_max_cost_month: float | None = spend(
        None,
        or_none(number(0, 10**9, "US dollars")),
        "Most money that model calls may cost in a month (UTC). None: no limit.",
    )
    spend_max_tokens_call: int | None = spend(
        None,
        or_none(whole(50, 10_000_000, "tokens")),
        "Most tokens of one model call with its reply; prompts are cut to fit. None: no limit "
        "besides `max_context_tokens`.",
    )


FEWSHOT_PROMPT = """You summarise the older part of a conversation in a text game. Write two or \
three plain sentences for the character who took part in it: who was there, what happened and \
what was promised, with names and numbers. Do not invent anything. Write only the summary."""

# Sets of options for one kind of use, by name: `aiconfig Aria preset = fewshot`.
PRESETS: dict[str, dict[str, Any]] = {
    # The newest messages in full serve as examples; what is older becomes short memories, made
    # 64 messages at a time, as base models want it.
    "fewshot": {
        "immediate_window": 64,
        "recent_window": 64,
        "compact_preserve_window": 64,
        "compact_prompt": FEWSHOT_PROMPT,
        "summary_max_tokens": 200,
        # Base models know no tools.
        "pre_compact_extraction_enabled": False,
    }
}

OPTIONS: dict[str, Field[Any]] = {item.name: item for item in fields(AssistantConfig)}
# The options that are spend caps.
CAPS = tuple(name for name in OPTIONS if name.startswith("spend_max_"))


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


@dataclass(frozen=True)
class Known:
    """What a game has of which options name something; None: anything may be named.

    Args:
        models: The models that may be used; stars stand for anything.
        tools: The names of all tools.
        lock_functions: The names of all lock functions.
    """

    models: Collection[str] | None = None
    tools: Collection[str] | None = None
    lock_functions: Collection[str] | None = None

    def refused_model(self, name: str) -> str:
        """Why a model must not be used; empty if it may. Addresses stand in the settings alone."""
        if "://" in name:
            return f"`{_cut(name)}` holds an address; addresses come from the game's settings alone"
        allowed = self.models
        if allowed is not None and name not in allowed and _PATH.match(name):
            return f"`{_cut(name)}` holds a path; paths come from the game's settings alone"
        if allowed is None or name in allowed or any(fnmatchcase(name, each) for each in allowed):
            return ""
        return f"`{_cut(name)}` is not among the models of the setting `EVENNIA_AI_MODELS`"

    def refused_lock(self, lock: str) -> str:
        """Which function of a lock string does not exist; empty if all do."""
        used = re.findall(r"(\w+)\(", lock)
        known = self.lock_functions
        missing = [each for each in used if known is not None and each not in known]
        return f"there is no lock function `{missing[0]}`" if missing else ""


def checked(name: str, value: object, known: Known = Known()) -> Any:  # noqa: B008 - frozen
    """A value in its stored form; `ConfigError` if there is no such option or it does not fit."""
    if name not in OPTIONS:
        raise ConfigError(f"There is no option `{name}`. `aiconfig <assistant>` lists them all.")
    kind: Kind = OPTIONS[name].metadata["kind"]
    try:
        found = kind.check(value)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ConfigError(f"`{name}` takes {kind.says}, not {_shown(value)}.") from error
    if kind.most_chars and found and len(found) > kind.most_chars:
        raise TooLongError(f"`{name}` takes {kind.says}, not {len(found):,}.")
    named = (found,) if isinstance(found, str) else found or ()
    refused = list(filter(None, map(known.refused_model, named))) if kind.names_models else []
    if kind is LOCK and (why := known.refused_lock(found)):
        refused.append(why)
    if refused:
        raise ConfigError(f"`{name}`: {refused[0]}.")
    return found


class TooLongError(ConfigError):
    """A text is longer than its option takes."""


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}..."


def _shown(value: object) -> str:
    """The beginning of a value as Python writes it; Python refuses to for very long numbers."""
    try:
        return repr(value)[:60]
    except (ValueError, RecursionError):
        return f"this {type(value).__name__}"


def parsed(name: str, text: str, known: Known = Known()) -> Any:  # noqa: B008 - frozen
    """A value from what somebody typed: a Python literal or the text itself, as `checked`.

    A list, dict or tuple is never read as text; in quotes it is.
    """
    text = text.strip()
    try:
        value = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return checked(name, text, known)
    try:
        return checked(name, value, known)
    except ConfigError:
        if isinstance(value, Collection):
            raise
    return checked(name, text, known)


def read_config(
    values: Mapping[str, Any],
    known: Known = Known(),  # noqa: B008 - frozen
) -> tuple[AssistantConfig, tuple[Problem, ...]]:
    """A configuration from stored values by option name, and a `Problem` for each not used.

    A value that cannot be used falls back to its default; unknown names are ignored. A text that
    is too long is cut to its first characters. Values that contradict each other are used and
    named.
    """
    good: dict[str, Any] = {}
    problems = []
    for name, value in values.items():
        if name not in OPTIONS:
            continue
        try:
            good[name] = checked(name, value, known)
        except TooLongError as error:
            most = OPTIONS[name].metadata["kind"].most_chars
            good[name] = str(value).strip()[:most].rstrip()
            says = f"{error} The first {most:,} characters are used."
            problems.append(Problem(name, _shown(value), says))
        except ConfigError as error:
            says = f"{error} The default {default_of(name)!r} is used."
            problems.append(Problem(name, _shown(value), says))
    config = AssistantConfig(**good)
    room = config.max_context_tokens // 2
    if config.reply_reserve_tokens > room:
        most = f"`max_context_tokens` ({config.max_context_tokens:,})"
        says = f"more than half of {most}; {room:,} is used."
        problems.append(Problem("reply_reserve_tokens", str(config.reply_reserve_tokens), says))
        config = replace(config, reply_reserve_tokens=room)
    return config, (*problems, *_contradictions(config, known))


def _contradictions(config: AssistantConfig, known: Known) -> Iterator[Problem]:
    """What is used as it is, but has no effect or not the one that was meant."""
    windows = {"immediate_window": config.immediate_window, "recent_window": config.recent_window}
    given = [name for name, value in windows.items() if value is not None]
    if len(given) == 1:
        [other] = windows.keys() - given
        says = f"has no effect without `{other}`."
        yield Problem(given[0], str(windows[given[0]]), says)
    asleep, awake = config.compact_sleep_threshold, config.compact_emergency_threshold
    if asleep > awake:
        says = f"above `compact_emergency_threshold` ({awake:g}), which compacts first."
        yield Problem("compact_sleep_threshold", f"{asleep:g}", says)
    for name in config.tool_levels:
        if known.tools is not None and name not in known.tools:
            yield Problem("tool_levels", _shown(name), "there is no such tool; it has no effect.")
