"""An assistant's options: one table for defaults, units, checks, help and form fields.

Each field of `AssistantConfig` is a configuration Attribute of the script. Its metadata holds its
`Option`, from which come validation, `aiconfig`, the options page and the documentation.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, time
from functools import partial
from typing import Any

import regex

from evennia_ai.cards.card import EXAMPLES_CHARS, GREETING_CHARS, GREETINGS
from evennia_ai.errors import ConfigError
from evennia_ai.kinds import (
    AMOUNT,
    FIELDS,
    FLAG,
    HOURS,
    LEVELS,
    LINE,
    LOCK,
    MODEL,
    MODELS,
    PROSE,
    SHARE,
    TEXTS_OF_GAME,
    Allowed,
    Kind,
    checked,
    choice,
    number,
    or_none,
    shown_raw,
    table,
    text,
    texts,
    whole,
)
from evennia_ai.language.tables import AUTO, DEFAULT, tables
from evennia_ai.turns.routine import ROUTINE
from evennia_ai.turns.spend_book import OWN_LIMITS
from evennia_ai.turns.turn_taking import ATTENTION

# What players see of an assistant, by occasion; in other languages as their tables say. Of a
# compaction they see nothing, unless a builder chooses words for it.
EMOTES: dict[str, str | None] = {
    name: emote
    for name, emote in tables()[DEFAULT].data["notices"].items()
    if name not in ("asleep", "errand", "leaving", "listening", "reminder")
} | {"compact": None}


# A name or a code of any language: letters, and what may stand between them.
_LANGUAGE = regex.compile(r"\p{L}[\p{L}\p{M} '’-]{1,39}")


def _language(value: object) -> str:
    language = str(value).strip()
    if language.lower() == AUTO:
        return AUTO
    if not _LANGUAGE.fullmatch(language):
        raise ValueError(value)
    return language


LANGUAGE = Kind("`auto`, or a language's code or name such as de, German, ja or 日本語", _language)
CAPS = table(or_none(AMOUNT), *OWN_LIMITS)


@dataclass(frozen=True)
class Option:
    """One option; a dict is laid over its default, name by name."""

    name: str
    group: str
    default: Any
    kind: Kind
    help: str


def _option(group: str, default: object, kind: Kind, says: str) -> Any:
    option = partial(Option, group=group, default=default, kind=kind, help=says)
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata={"option": option})
    return field(default=default, metadata={"option": option})


compaction, context, model, manners, life = (
    partial(_option, group) for group in ("Compaction", "Context", "Model", "Manners", "Life")
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
        0.8,
        SHARE,
        "Context usage at which an awake assistant begins to compact before anything else.",
    )
    compact_preserve_window: int = compaction(
        20,
        whole(1, 10_000, "lines"),
        "Newest lines of talk that a compaction keeps in full; an automatic one keeps a fifth of "
        "`max_context_tokens` if that is more.",
    )
    compact_model: str | None = compaction(
        None, or_none(MODEL), "Model that writes the summaries. None: the assistant's own model."
    )
    compact_prompt: str | None = compaction(
        None, or_none(PROSE), "Replaces the built-in prompt for summaries."
    )
    immediate_window: int | None = compaction(
        None, or_none(whole(1, 100_000, "lines")), "Lines of talk kept when compacting by count."
    )
    recent_window: int | None = compaction(
        None,
        or_none(whole(1, 100_000, "lines")),
        "Lines of talk summarised at a time when compacting by count.",
    )
    pre_compact_extraction_enabled: bool = compaction(
        True, FLAG, "Save facts to the journal before a compaction."
    )
    pre_compact_max_iterations: int = compaction(
        5,
        whole(1, 50, "model calls"),
        "Most model calls of the pre-compaction extraction while asleep.",
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
        30.0,
        number(0.1, 3600, "seconds"),
        "Longest time one try of a model call may take; half of the time left at most, while "
        "another model waits.",
    )
    turn_timeout_s: float = model(
        60.0,
        number(0.1, 3600, "seconds"),
        "Longest time a whole turn may take, all its calls, tools and models.",
    )
    llm_thinking: str = model(
        "default",
        choice("default", "off", "low", "high"),
        "How much a model that can think before it answers does so. default: as its provider "
        "has it.",
    )
    llm_extra: Mapping[str, Any] = model(
        {},
        FIELDS,
        "Further fields of each request, such as temperature or top_p. Builders set numbers that "
        "steer how words are chosen; `EVENNIA_AI_OPTIONS` may set any field.",
    )
    llm_offline_fallback: bool = model(
        True, FLAG, "When no model answers, let the offline model answer, from memory and by rules."
    )
    attention: str = manners(
        "room",
        choice(*ATTENTION),
        "addressed: answers only when called by name. room: also goes on with a talk, and answers "
        "one player who is alone with assistants. all: answers every line of a player.",
    )
    post: bool = manners(
        True,
        FLAG,
        "It stays where it was put and walks only when somebody it obeys asks. Off: it walks "
        "wherever anybody asks it to.",
    )
    obeys: str = manners(
        "perm(Builder)",
        LOCK,
        "Who may order it to walk, to fetch and to give. Who controls its body always may. Anyone "
        "may have things whose own lock `give` lets them.",
    )
    initiative: int = manners(
        0,
        whole(0, 60, "turns an hour"),
        "How often in an hour it may speak or pose without being asked. It does so only near a "
        "player who is not idle, after two quiet minutes, and stops after two lines that nobody "
        "answers; at most half of each spend limit goes into it.",
    )
    emotes: Mapping[str, str | None] = manners(
        EMOTES,
        table(or_none(LINE), *EMOTES),
        "Emotes shown when it thinks for long, when no model answers, when it falls asleep, wakes "
        "or compacts (none by default), when a spend limit allows no answer, and to a player who "
        "asks for too much in a minute. None: no emote.",
    )
    persona: str = life(
        "A friendly regular of this place, curious about people and honest about what "
        "they do not know.",
        PROSE,
        "Who the assistant is. Part of the system prompt.",
    )
    examples: str | None = life(
        None,
        or_none(text(EXAMPLES_CHARS, "long")),
        "Lines that show how the assistant talks. Part of the system prompt of large models; none "
        "of them is said again.",
    )
    greetings: tuple[str, ...] = life(
        (),
        texts(GREETINGS, GREETING_CHARS),
        "What it says to a player who arrives, once a day to each, without a model. *Between "
        "asterisks* it poses; {name} is who arrives.",
    )
    knows: tuple[str, ...] = life(
        (),
        TEXTS_OF_GAME,
        "Texts of the game that it knows as lore: `help:<category>` for help entries, `rooms:2` "
        "for rooms up to two exits from its home.",
    )
    language: str = life(
        AUTO,
        LANGUAGE,
        "The language it speaks and writes in: `auto` (that of the line it answers; its summaries "
        "and notes keep that of the talk), or one for everything, as `de` or `German`.",
    )
    sleep_after_idle_s: float | None = life(
        1800.0,
        or_none(number(1, 10_000_000, "seconds")),
        "Quiet time after which the assistant falls asleep. None: never.",
    )
    sleep_schedule: str | None = life(None, HOURS, "Hours during which the assistant sleeps.")
    routine: str | None = life(
        None,
        or_none(ROUTINE),
        "Where it is at which time of the game's day (with `real` before it: of the real one), and "
        "what it does there. It walks by exits and their locks, and never out of a talk.",
    )
    max_react_iterations: int = life(
        8, whole(1, 100, "model calls"), "Most model calls in one turn."
    )
    tool_levels: Mapping[str, str] = life(
        {},
        LEVELS,
        "Switches tools: off, dry run (does nothing), confirm (waits for `ai/approve`) or on "
        "(default).",
    )
    spend_caps: Mapping[str, float | None] = life(
        {},
        CAPS,
        "Most tokens and US dollars that model calls may use in a day and a month (UTC), and "
        "tokens of one call with its reply. None: no limit.",
    )


FEWSHOT_PROMPT = """You summarise the older part of a conversation in a text game. Write two or \
three plain sentences for the character who took part in it: who was there, what happened and \
what was promised, with names and numbers, in the language of the talk. Do not invent anything. \
Write only the summary."""

# Sets of options for one kind of use, by name: `aiconfig Aria preset = fewshot`.
PRESETS: dict[str, dict[str, Any]] = {
    # The newest messages in full serve as examples; what is older becomes short memories, made
    # 64 messages at a time, as base models want it.
    "fewshot": {
        "immediate_window": 64,
        "recent_window": 64,
        "compact_preserve_window": 64,
        "compact_prompt": FEWSHOT_PROMPT,
        # Base models know no tools.
        "pre_compact_extraction_enabled": False,
    }
}

OPTIONS: dict[str, Option] = {
    item.name: item.metadata["option"](item.name) for item in fields(AssistantConfig)
}


def check_option(name: str, value: object, allowed: Allowed = Allowed()) -> Any:  # noqa: B008 - frozen
    """A value of an option in its stored form; `ConfigError` if it does not fit."""
    if name not in OPTIONS:
        raise ConfigError(f"There is no option `{name}`. `aiconfig <assistant>` lists them all.")
    return checked(name, OPTIONS[name].kind, value, allowed)


def within_hours(schedule: str, clock: Callable[[bool], datetime | time]) -> bool:
    """Whether it is now within a span of hours; one that ends before it begins spans midnight.

    `clock` returns the time now: of the game if its argument is True, which it is for a `schedule`
    that begins with ``game``.
    """
    words = schedule.split()
    start, end = (tuple(map(int, part.split(":"))) for part in words[-1].split("-"))
    now = (at := clock(words[0] == "game")).hour, at.minute
    return start <= now < end if start <= end else now >= start or now < end


@dataclass(frozen=True)
class Problem:
    """A configuration value that cannot be used, and what is used instead."""

    name: str
    value: str
    says: str

    def __str__(self) -> str:
        return f"`{self.name}` = {self.value}: {self.says}"


@dataclass(frozen=True)
class Layer:
    """Options that a group of assistants shares."""

    source: str  # where they come from, in words
    values: Mapping[str, Any]  # options by name, as they are stored
    allowed: Allowed = Allowed()  # what they may name


@dataclass(frozen=True)
class Configuration:
    """A configuration, what is wrong with it, and where its values come from."""

    config: AssistantConfig = AssistantConfig()  # the values
    # One for each value that is not used, or not as it was meant.
    problems: tuple[Problem, ...] = ()
    # The source of each option that does not have its default.
    sources: Mapping[str, str] = field(default_factory=dict)


def configured(*layers: Layer) -> Configuration:
    """A configuration from layers, of which the later ones win.

    A value that cannot be used is left out; unknown names are ignored. Values that contradict each
    other are used and named.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    problems = []
    for layer in layers:
        for name, value in layer.values.items():
            if name not in OPTIONS:
                continue
            option = OPTIONS[name]
            before = values.get(name, option.default)
            try:
                new = check_option(name, value, layer.allowed)
            except ConfigError as error:
                instead = "default" if name not in sources else "value"
                says = f"{error} The {instead} {before!r} is used."
                problems.append(Problem(name, shown_raw(value), says))
                continue
            values[name] = {**before, **new} if option.kind.of else new
            sources[name] = layer.source
    config = AssistantConfig(**values)
    room = config.max_context_tokens // 2
    if config.reply_reserve_tokens > room:
        most = f"`max_context_tokens` ({config.max_context_tokens:,})"
        says = f"more than half of {most}; {room:,} is used."
        problems.append(Problem("reply_reserve_tokens", str(config.reply_reserve_tokens), says))
        config = replace(config, reply_reserve_tokens=room)
    allowed = layers[-1].allowed if layers else Allowed()
    return Configuration(config, (*problems, *_contradictions(config, allowed)), sources)


def _contradictions(config: AssistantConfig, allowed: Allowed) -> Iterator[Problem]:
    """What is used as it is, but has no effect or not the one that was meant."""
    windows = {"immediate_window": config.immediate_window, "recent_window": config.recent_window}
    single = [name for name, value in windows.items() if value is not None]
    if len(single) == 1:
        [other] = windows.keys() - single
        says = f"has no effect without `{other}`."
        yield Problem(single[0], str(windows[single[0]]), says)
    asleep, awake = config.compact_sleep_threshold, config.compact_emergency_threshold
    if asleep > awake:
        says = f"above `compact_emergency_threshold` ({awake:g}), which compacts first."
        yield Problem("compact_sleep_threshold", f"{asleep:g}", says)
    for name in config.tool_levels:
        if allowed.tools is not None and name not in allowed.tools:
            yield Problem(
                "tool_levels", shown_raw(name), "there is no such tool; it has no effect."
            )
