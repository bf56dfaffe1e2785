"""What is asked of a model and what it answers; what a turn is for and what it did."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evennia_ai.history.audience import PUBLIC
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE
from evennia_ai.llm_interaction.tool_calls import ChatToolCall
from evennia_ai.llm_interaction.windows import Window
from evennia_ai.recall.values import Hit

OFFLINE_MODEL = "offline/extractive"
# The purpose of a request whose prompt is only to be read into the server's cache.
READ_AHEAD = "read ahead"


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """A request to a model.

    Args:
        model: LiteLLM's name, or a bare name where an address is configured.
        messages: Chat messages, plain dicts. Hidden from `repr`, like the prompt.
        tools: Tools in the chat format.
        fallback_models: Models to try next, in order.
        api: ``chat``, or ``completion`` for base models.
        prompt: The transcript, for ``completion``.
        max_tokens: Most tokens of the reply.
        thinking: How much it thinks before it answers: ``default``, ``off``, ``low``, ``high``.
        extra: Further fields, as ``temperature``, by their names.
        timeout_s: Seconds for one attempt.
        purpose: ``tick``, ``summary``, ``extraction`` and the like, for logs and bills.
        prompt_tokens: Tokens of the prompt as we count them; 0 if nobody did.
        called: The tools that a text may call, by name, each with the argument that may follow as
            plain text; see `dialects.read`.
        reported: Whether the reply reports what others said, as a summary does.
        key: Who asks for what: a request made again after a reload has the same one, and gets the
            reply of the first. Empty for one that is not made again.
    """

    model: str
    messages: tuple[Mapping[str, object], ...] = field(default=(), repr=False)
    tools: tuple[Mapping[str, object], ...] = field(default=(), repr=False)
    fallback_models: tuple[str, ...] = ()
    api: str = "chat"
    prompt: str | None = field(default=None, repr=False)
    stop: tuple[str, ...] = ()
    max_tokens: int = 1024
    thinking: str = "default"
    extra: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float = 60.0
    purpose: str = "tick"
    prompt_tokens: int = 0
    called: Mapping[str, str] = field(default_factory=dict)
    reported: bool = False
    key: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelReply:
    """A model's reply; one without content and tool calls is valid.

    Args:
        content: Its words, without thoughts and marks; clean them before they are spoken.
        tool_calls: Calls in the chat format, also those written as text; `arguments` need not be
            JSON; ids are unique in the conversation.
        finish_reason: The provider's word for it.
        model: The model that answered, by its name in the request.
        prompt_tokens: By the provider, or counted; likewise `completion_tokens`.
        cost: US dollars by LiteLLM's price list, 0 for the offline model, None if unknown.
        cached_tokens: Prompt tokens that the provider read from its cache.
        cached_cost: What these cost, as part of `cost`; None if unknown.
        thought: Whether there was more than words and calls: thoughts, marks.
        native: Whether its calls came by the provider's tool calling, not as text.
        attempts: HTTP calls made, failed ones and other models' included.
        seconds: From the request to the reply.
        content_tokens: Tokens of `content`, counted on the background thread.
    """

    content: str
    tool_calls: tuple[ChatToolCall, ...] = ()
    finish_reason: str = "stop"
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    attempts: int = 1
    seconds: float = 0.0
    content_tokens: int | None = None
    cached_tokens: int = 0
    cached_cost: float | None = None
    thought: bool = False
    native: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether thoughts or marks used up the reply: it was no answer."""
        return not (self.content or self.tool_calls) and (
            self.thought or self.finish_reason == "length"
        )


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a model.

    Args:
        window: Most tokens, as we count, of a prompt and its reply, and who says so.
        carries_tools: Whether the tools of a request reach it.
        profile: What was learned of it, in words.
        price: US dollars for a token of a prompt and of a reply.
        own: Whether it runs on a server of the game's own, which nobody bills.
        small: Whether it has fewer than three billion parameters, as far as its name or file says.
    """

    window: Window | None = None
    carries_tools: bool | None = None
    profile: tuple[str, ...] = ()
    price: tuple[float, float] | None = None
    own: bool = False
    small: bool = False


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """What a turn is for.

    Args:
        audience: Who sees it.
        context: Name of the prompt context.
        channel: How the person it answers spoke: say, whisper, page, pose.
        asker: Stable id of the person it answers; None if nobody asked.
        source_ids: Ids of the messages it answers.
        retrieved: Memories for the prompt, best first.
        passed_over: What was found with them and not taken.
        max_iterations: Most model calls.
        deadline: Time after which no further model call is made, seconds since the epoch.
        talks: Lines on what those present last spoke of.
        answering: The lines it answers, as rows of the prompt's present moment.
    """

    audience: str = PUBLIC
    context: str = CONTEXT_AWAKE
    channel: str = "say"
    asker: str | None = None
    source_ids: tuple[str, ...] = ()
    retrieved: tuple[Hit, ...] = ()
    passed_over: tuple[Hit, ...] = ()
    max_iterations: int = 8
    deadline: float = float("inf")
    talks: tuple[str, ...] = ()
    answering: tuple[str, ...] = ()


@dataclass(slots=True)
class TurnReport:
    """What a turn did.

    Args:
        iterations: Model calls made.
        is_overtaken: Whether its late answer was not said, as who asked had gone on meanwhile.
        spoken: What was said, in order.
        tools: Names of the tools called, in order.
        cost: US dollars of all model calls; None if one of them is unknown.
        cached_tokens: Prompt tokens that the provider read from its cache.
        fell_back: Whether the offline model answered in place of the assistant's own.
    """

    iterations: int = 0
    fell_back: bool = False
    is_overtaken: bool = False
    spoken: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    cached_tokens: int = 0
