"""What is asked of a model and what it answers; what a turn is for and what it did."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from evennia_ai.history.audience import PUBLIC
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE
from evennia_ai.llm_interaction.servers import Window
from evennia_ai.llm_interaction.tool_calls import ChatToolCall
from evennia_ai.recall.values import Hit

OFFLINE_MODEL = "offline/extractive"
# The purpose of a request whose prompt is only to be read into the server's cache.
READ_AHEAD = "read ahead"
# The purpose of a request that only tries whether a model answers, also one that is left alone.
PROBE = "probe"
# How a model speaks and acts, as a trial finds: by native tool calls, by a JSON object of words and
# call (`form`), or not at all.
SPEAKS_AND_CALLS, FORM = "words and tool calls", "words and calls in a JSON object"
ONLY_SPEAKS = "words alone"
# A model that chooses silence ends at once; where more tokens left nothing, they were lost.
SILENT_TOKENS = 4


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """A request to a model."""

    model: str  # LiteLLM's name, or a bare name where an address is configured
    # Chat messages, plain dicts. Hidden from `repr`, like the prompt.
    messages: tuple[Mapping[str, object], ...] = field(default=(), repr=False)
    # Tools in the chat format.
    tools: tuple[Mapping[str, object], ...] = field(default=(), repr=False)
    fallback_models: tuple[str, ...] = ()  # models to try next, in order
    api: str = "chat"  # ``chat``, or ``completion`` for base models
    prompt: str | None = field(default=None, repr=False)  # the transcript, for ``completion``
    stop: tuple[str, ...] = ()
    max_tokens: int = 1024  # most tokens of the reply
    # How much it thinks before it answers: ``default``, ``off``, ``low``, ``high``.
    thinking: str = "default"
    # Further fields, as ``temperature``, by their names.
    extra: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float = 30.0  # most seconds for one try
    within_s: float = 60.0  # most seconds for all tries at all models
    # Whether somebody else answers if none of these models does: half of the time left is theirs.
    has_next: bool = False
    # How the model is to call tools: one of the above; empty for what was found of it.
    speech: str = ""
    purpose: str = "tick"  # ``tick``, ``summary``, ``extraction`` and the like, for logs and bills
    prompt_tokens: int = 0  # tokens of the prompt as we count them
    called: frozenset[str] = frozenset()  # names of the tools that a text may call
    reported: bool = False  # whether the reply reports what others said, as a summary does
    # Whether nobody asked for it: it is tried once, at one model.
    is_own: bool = False
    # Who asks for what: a request made again after a reload has the same one, and gets the reply of
    # the first. Empty for one that is not made again.
    key: str = ""


def probe_request(model: str) -> ModelRequest:
    """The request for one word: whether a model answers."""
    asked = {"role": "user", "content": "Answer with the one word: ready"}
    return ModelRequest(
        model=model, messages=(asked,), max_tokens=16, timeout_s=20.0, within_s=20.0, purpose=PROBE
    )


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What model calls used."""

    prompt_tokens: int = 0  # by the provider, or counted; likewise `completion_tokens`
    completion_tokens: int = 0
    # US dollars by LiteLLM's price list, 0 for the offline model, None if unknown.
    cost: float | None = None
    cached_tokens: int = 0  # prompt tokens that the provider read from its cache

    @property
    def tokens(self) -> int:
        """Tokens of prompts and replies."""
        return self.prompt_tokens + self.completion_tokens

    def figures(self) -> dict[str, Any]:
        """These figures alone, by name."""
        return {each.name: getattr(self, each.name) for each in fields(Usage)}


def used(calls: Iterable[Usage]) -> Usage:
    """The sum of some calls; a cost is unknown if that of one of them is."""
    sums: dict[str, Any] = {}
    all_figures = [call.figures() for call in calls]
    for each in fields(Usage):
        values = [figures[each.name] for figures in all_figures]
        sums[each.name] = None
        if None not in values:
            sums[each.name] = sum(values)
    return Usage(**sums)


@dataclass(frozen=True, kw_only=True)
class ModelReply(Usage):
    """A model's reply; one without content and tool calls is valid."""

    content: str  # its words, without thoughts and marks; clean them before they are spoken
    # Calls in the chat format, also those written as text; `arguments` need not be JSON; ids are
    # unique in the conversation.
    tool_calls: tuple[ChatToolCall, ...] = ()
    finish_reason: str = "stop"  # the provider's word for it
    model: str = ""  # the model that answered, by its name in the request
    attempts: int = 1  # HTTP calls made, failed ones and other models' included
    seconds: float = 0.0  # from the request to the reply

    @property
    def is_empty(self) -> bool:
        """Whether thoughts or marks used up the reply: it was no answer."""
        is_lost = self.finish_reason == "length" or self.completion_tokens > SILENT_TOKENS
        return is_lost and not (self.content or self.tool_calls)


@dataclass(frozen=True)
class ShownNotes:
    """Notes of what holds, as a prompt showed them before a line."""

    texts: Mapping[str, str]  # by label
    people: frozenset[str] = frozenset()  # ids of those whom they name


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a model."""

    # Most tokens, as we count, of a prompt and its reply, and who says so.
    window: Window | None = None
    # Whether it talks as well with tools as without and calls them when asked; None: not tried.
    calls_tools: bool | None = None
    profile: tuple[str, ...] = ()  # what was learned of it, in words
    price: tuple[float, float] | None = None  # US dollars for a token of a prompt and of a reply
    speech: str = ""  # how it speaks and acts, as a trial found; empty before it
    own: bool = False  # whether it runs on a server of the game's own, which nobody bills


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """What a turn is for."""

    audience: str = PUBLIC  # who sees it
    context: str = CONTEXT_AWAKE  # name of the prompt context
    channel: str = "say"  # how the person it answers spoke: say, whisper, page, pose
    asker: str | None = None  # stable id of the person it answers; None if nobody asked
    source_ids: tuple[str, ...] = ()  # ids of the messages it answers
    retrieved: tuple[Hit, ...] = ()  # memories for the prompt, best first
    max_iterations: int = 8  # most model calls
    # Time after which no further model call is made, seconds since the epoch.
    deadline: float = float("inf")
    language: str = ""  # the language to answer in, by name; empty for none that must be named
    reason: str = ""  # why a turn is that nobody asked for
    done: tuple[str, ...] = ()  # what came of the orders in the lines it answers
    undone: tuple[str, ...] = ()  # why others of them were not followed


@dataclass(slots=True)
class TurnReport:
    """What a turn did."""

    fell_back: bool = False  # whether the offline model answered in place of the assistant's own
    spoken: list[str] = field(default_factory=list)  # what was said, in order
    tools: list[str] = field(default_factory=list)  # names of the tools called, in order
    used: Usage = Usage(cost=0.0)  # noqa: RUF009 - frozen; by all model calls
