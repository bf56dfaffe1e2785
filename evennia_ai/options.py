"""An assistant's options: one model for defaults, units, checks, help and form fields.

Each field of `AssistantConfig` is a configuration Attribute of the script; features bring a model
with more. From the models come validation, `aiconfig`, the options page and the documentation.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import datetime, time
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

import regex
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StringConstraints,
)

from evennia_ai.cards.card import EXAMPLES_CHARS, GREETING_CHARS, GREETINGS
from evennia_ai.errors import ConfigError
from evennia_ai.kinds import (
    ANYTHING,
    LISTED,
    LOWER,
    NO_FLAG,
    OR_EMPTY,
    OR_NO_ITEMS,
    OR_NONE,
    Allowed,
    Amount,
    Hours,
    Line,
    Lock,
    Model,
    Models,
    Number,
    Prose,
    RequestFields,
    Text,
    TextsOfGame,
    Values,
    Whole,
    says,
    shown_raw,
)
from evennia_ai.language.tables import AUTO, DEFAULT, tables
from evennia_ai.routine import Plan

# Spend is bounded in a day and in a month, in tokens and in money.
WINDOWS, UNITS = ("day", "month"), ("tokens", "cost")
LIMITS = tuple(f"{unit}_{window}" for window in WINDOWS for unit in UNITS)
# The limits of an assistant's own: the option `spend_caps`.
OWN_LIMITS = (*LIMITS, "tokens_call")
# What players see of an assistant, by occasion; in other languages as their tables say. Of a
# compaction they see nothing, unless a builder chooses words for it.
EMOTES: dict[str, str | None] = {
    name: tables()[DEFAULT].data["notices"].get(name)
    for name in ("thinking", "trouble", "sleep", "wake", "spend", "busy", "compact")
}


# A name or a code of any language: letters, and what may stand between them.
_LANGUAGE = regex.compile(r"\p{L}[\p{L}\p{M} '’-]{1,39}")


Occasion: TypeAlias = Literal[*EMOTES]  # type: ignore[valid-type]
OwnLimit: TypeAlias = Literal[*OWN_LIMITS]  # type: ignore[valid-type]


def _language(language: str) -> str:
    if language.lower() == AUTO:
        return AUTO
    if not _LANGUAGE.fullmatch(language):
        raise ValueError(language)
    return language


Lines = Annotated[int, Field(ge=1, le=100_000), NO_FLAG]
Seconds = Annotated[float, Field(ge=1, le=10_000_000), NO_FLAG]


def option(group: str, default: object, help: str, unit: str = "", **bounds: Any) -> Any:
    """The field of an option: its group, its default, what it is for, its unit and its bounds."""
    facts: dict[str, Any] = {"group": group, "unit": unit}
    return Field(default, description=help, json_schema_extra=facts, **bounds)


life, manners, model, context, compaction = (
    partial(option, group) for group in ("Life", "Manners", "Model", "Context", "Compaction")
)


class AssistantConfig(Values):
    """Everything that can be tuned about one assistant. Token counts are of its own model.

    What features bring stands in its `model_extra`.
    """

    model_config = ConfigDict(extra="allow")

    persona: Prose = life(
        "A friendly regular of this place, curious about people and honest about what "
        "they do not know.",
        "Who the assistant is. Part of the system prompt.",
    )
    greetings: Annotated[
        tuple[Annotated[Text, StringConstraints(max_length=GREETING_CHARS)], ...],
        LISTED,
        OR_NO_ITEMS,
        says(f'a text, or a list of at most {GREETINGS} as ["...", "..."]', "long"),
    ] = life(
        (),
        "What it says to a player who arrives, once a day to each, without a model. *Between "
        "asterisks* it poses; {name} is who arrives.",
        max_length=GREETINGS,
    )
    language: Annotated[
        Text,
        AfterValidator(_language),
        says("`auto`, or a language's code or name such as de, German, ja or 日本語"),
    ] = life(
        AUTO,
        "The language it speaks and writes in: `auto` (that of the line it answers; its summaries "
        "and notes keep that of the talk), or one for everything, as `de` or `German`.",
    )
    examples: Annotated[
        Annotated[Text, StringConstraints(max_length=EXAMPLES_CHARS)] | None, OR_NONE
    ] = life(
        None,
        "A talk that shows how it talks, in lines `Name: text`: turns before the real ones in the "
        "prompt of every model but the offline one, all of them or, without room, none. Where they "
        "hold no answer of its own, those of its language stand there.",
    )
    knows: TextsOfGame = life(
        (),
        "Texts of the game that it knows as lore: `help:<category>` for help entries, `rooms:2` "
        "for rooms up to two exits from its home.",
    )
    routine: Annotated[Plan | None, OR_NONE] = life(
        None,
        "Where it is at which time of the game's day (with `real` before it: of the real one), and "
        "what it does there. It walks by exits and their locks, and never out of a talk.",
    )
    sleep_after_idle_s: Annotated[Seconds | None, OR_NONE] = life(
        1800.0, "Quiet time after which the assistant falls asleep. None: never.", "seconds"
    )
    sleep_schedule: Annotated[Hours | None, OR_NONE] = life(
        None, "Hours during which the assistant sleeps.", "clock times"
    )
    max_react_iterations: Whole = life(
        8, "Most model calls in one turn.", "model calls", ge=1, le=100
    )
    tool_levels: Annotated[
        dict[
            Annotated[Line, says("tool name")],
            Annotated[Literal["off", "dry run", "confirm", "on"], LOWER],
        ],
        OR_EMPTY,
    ] = life(
        {},
        "Switches tools: off, dry run (does nothing), confirm (waits for `ai/approve`) or on "
        "(default).",
    )
    spend_caps: Annotated[dict[OwnLimit, Annotated[Amount | None, OR_NONE]], OR_EMPTY] = life(
        {},
        "Most tokens and US dollars that model calls may use in a day and a month (UTC), and "
        "tokens of one call with its reply. None: no limit.",
    )
    attention: Annotated[Literal["addressed", "room", "all"], LOWER] = manners(
        "room",
        "addressed: answers only when called by name. room: also goes on with a talk, and answers "
        "one player who is alone with assistants. all: answers every line of a player.",
    )
    post: bool = manners(
        True,
        "It stays where it was put and walks only when somebody it obeys asks. Off: it walks "
        "wherever anybody asks it to.",
    )
    obeys: Lock = manners(
        "perm(Builder)",
        "Who may order it to walk, to fetch and to give. Who controls its body always may. Anyone "
        "may have things whose own lock `give` lets them.",
    )
    initiative: Whole = manners(
        0,
        "How often in an hour it may speak or pose without being asked. It does so only near a "
        "player who is not idle, after two quiet minutes, and stops after two lines that nobody "
        "answers; at most half of each spend limit goes into it.",
        "turns an hour",
        ge=0,
        le=60,
    )
    emotes: Annotated[dict[Occasion, Annotated[Line | None, OR_NONE]], OR_EMPTY] = manners(
        EMOTES,
        "Emotes shown when it thinks for long, when no model answers, when it falls asleep, wakes "
        "or compacts (none by default), when a spend limit allows no answer, and to a player who "
        "asks for too much in a minute. None: no emote.",
    )
    llm_model: Annotated[Model | None, OR_NONE] = model(
        None, "LiteLLM model name. None: the game's setting."
    )
    llm_fallback_models: Models = model((), "Models to try, in order, when the main model fails.")
    llm_api: Annotated[Literal["chat", "completion"], LOWER] = model(
        "chat", "chat: chat messages. completion: a plain transcript, for base models."
    )
    llm_timeout_s: Number = model(
        30.0,
        "Longest time one try of a model call may take; half of the time left at most, while "
        "another model waits.",
        "seconds",
        ge=0.1,
        le=3600,
    )
    turn_timeout_s: Number = model(
        60.0,
        "Longest time a whole turn may take, all its calls, tools and models.",
        "seconds",
        ge=0.1,
        le=3600,
    )
    llm_thinking: Annotated[Literal["default", "off", "low", "high"], LOWER] = model(
        "default",
        "How much a model that can think before it answers does so. default: as its provider "
        "has it.",
    )
    llm_extra: RequestFields = model(
        {},
        "Further fields of each request, such as temperature or top_p. Builders set numbers that "
        "steer how words are chosen; `EVENNIA_AI_OPTIONS` may set any field.",
    )
    llm_offline_fallback: bool = model(
        True, "When no model answers, let the offline model answer, from memory and by rules."
    )
    max_context_tokens: Whole = context(
        100_000,
        "Largest size of a request to the model and its reply. The model's window counts where it "
        "is smaller; it is learned (docs/commands.md).",
        "tokens",
        ge=50,
        le=10_000_000,
    )
    reply_reserve_tokens: Whole = context(
        1024, "Room reserved for the model's reply.", "tokens", ge=16, le=200_000
    )
    ledger_max_tokens: Whole = context(
        500, "Largest size of the pinned ledger in the prompt.", "tokens", ge=0, le=100_000
    )
    memory_inject_tokens: Whole = context(
        500, "Largest size of the memories injected into the prompt.", "tokens", ge=0, le=100_000
    )
    compact_enabled: bool = compaction(
        True, "Allow compaction. If off, the prompt holds the raw history, as much as fits."
    )
    compact_auto: bool = compaction(
        True, "Compact automatically. The `compact` command works either way."
    )
    compact_background: bool = compaction(
        True,
        "Compact in the background while awake, so that nobody waits for a summary. If off, awake "
        "assistants compact only in an emergency, by count or at their own request, and do so "
        "before they answer.",
    )
    compact_sleep_threshold: Number = compaction(
        0.7,
        "Context usage at which an assistant compacts while asleep, or in the background.",
        "share of the context",
        ge=0,
        le=1,
    )
    compact_emergency_threshold: Number = compaction(
        0.8,
        "Context usage at which an awake assistant begins to compact before anything else.",
        "share of the context",
        ge=0,
        le=1,
    )
    compact_preserve_window: Whole = compaction(
        20,
        "Newest lines of talk that a compaction keeps in full; an automatic one keeps a fifth of "
        "`max_context_tokens` if that is more.",
        "lines",
        ge=1,
        le=10_000,
    )
    compact_model: Annotated[Model | None, OR_NONE] = compaction(
        None, "Model that writes the summaries. None: the assistant's own model."
    )
    compact_prompt: Annotated[Prose | None, OR_NONE] = compaction(
        None, "Replaces the built-in prompt for summaries."
    )
    immediate_window: Annotated[Lines | None, OR_NONE] = compaction(
        None,
        "Lines of talk kept when compacting by count, which needs `recent_window`, too.",
        "lines",
    )
    recent_window: Annotated[Lines | None, OR_NONE] = compaction(
        None, "Lines of talk summarised at a time when compacting by count.", "lines"
    )
    pre_compact_extraction_enabled: bool = compaction(
        True, "Save facts to the journal before a compaction."
    )
    pre_compact_max_iterations: Whole = compaction(
        5,
        "Most model calls of the pre-compaction extraction while asleep.",
        "model calls",
        ge=1,
        le=50,
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


# All options by name, those of the listed features among them.
OPTIONS = {**AssistantConfig.about()}


def bring_options(model: type[Values]) -> None:
    """Add those of a feature; `ConfigError` if another model has one of this name."""
    brought = model.about()
    for name, about in brought.items():
        if OPTIONS.get(name, about).model is not model:
            raise ConfigError(f"there is an option `{name}` already")
    OPTIONS.update(brought)


def check_option(name: str, value: object, allowed: Allowed = ANYTHING) -> Any:
    """A value of an option in its stored form; `ConfigError` if it does not fit."""
    if name not in OPTIONS:
        raise ConfigError(f"There is no option `{name}`. `aiconfig <assistant>` lists them all.")
    return OPTIONS[name].model.checked(name, value, allowed)


def within_hours(schedule: str, clock: Callable[[bool], datetime | time]) -> bool:
    """Whether it is now within a span of hours; one that ends before it begins spans midnight.

    `clock` returns the time now: of the game if its argument is True, which it is for a `schedule`
    that begins with ``game``.
    """
    hours = list(map(int, re.findall(r"\d+", schedule)))
    start, end = hours[:2], hours[2:]
    at = clock(schedule.startswith("game"))
    now = [at.hour, at.minute]
    if start <= end:
        return start <= now < end
    return now >= start or now < end


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
    allowed: Allowed = ANYTHING  # what they may name


@dataclass(frozen=True)
class Configuration:
    """A configuration, what is wrong with it, and where its values come from."""

    config: AssistantConfig = AssistantConfig()  # the values
    # One for each value that is not used, or not as it was meant.
    problems: tuple[Problem, ...] = ()
    # The source of each option that does not have its default.
    sources: Mapping[str, str] = dataclass_field(default_factory=dict)


def configured(*layers: Layer) -> Configuration:
    """A configuration from layers, of which the later ones win.

    A value that cannot be used is left out; unknown names are ignored. Values that contradict each
    other are used and named.
    """
    values = {name: option.default for name, option in OPTIONS.items()}
    sources: dict[str, str] = {}
    problems = []
    for layer in layers:
        for name, value in layer.values.items():
            if name not in OPTIONS:
                continue
            before = values[name]
            try:
                new = check_option(name, value, layer.allowed)
            except ConfigError as error:
                instead = "value" if name in sources else "default"
                says = f"{error} The {instead} {before!r} is used."
                problems.append(Problem(name, shown_raw(value), says))
                continue
            if OPTIONS[name].kind.of:
                new = {**before, **new}
            values[name] = new
            sources[name] = layer.source
    config = AssistantConfig.model_construct(**values)
    room = config.max_context_tokens // 2
    if config.reply_reserve_tokens > room:
        most = f"`max_context_tokens` ({config.max_context_tokens:,})"
        says = f"more than half of {most}; {room:,} is used."
        problems.append(Problem("reply_reserve_tokens", str(config.reply_reserve_tokens), says))
        config = config.model_copy(update={"reply_reserve_tokens": room})
    tools = layers[-1].allowed.tools if layers else None
    for name in config.tool_levels:
        if tools is not None and name not in tools:
            says = "there is no such tool; it has no effect."
            problems.append(Problem("tool_levels", shown_raw(name), says))
    return Configuration(config, tuple(problems), sources)
