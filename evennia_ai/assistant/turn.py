"""One turn of thought: what it is asked for, and what it did."""

from dataclasses import dataclass, field

from evennia_ai.history.audience import PUBLIC
from evennia_ai.llm_interaction.contexts import CONTEXT_AWAKE


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """What a turn is for.

    Args:
        audience: Who sees it.
        context: Name of the prompt context.
        channel: How the person it answers spoke: say, whisper, page, pose.
        asker: Stable id of the person it answers; None if nobody asked.
        askers: Stable ids of all whose words it answers; tools need the rights of each.
        source_ids: Ids of the messages it answers.
        retrieved: Lines of memories for the prompt.
        max_iterations: Most model calls.
        deadline: Time after which no further model call is made, seconds since the epoch.
        rules: Text instead of the context's rules.
        talks: Lines on what those present last spoke of.
        hidden_ids: Ids of live messages the prompt leaves out.
    """

    audience: str = PUBLIC
    context: str = CONTEXT_AWAKE
    channel: str = "say"
    asker: str | None = None
    askers: tuple[str, ...] = ()
    source_ids: tuple[str, ...] = ()
    retrieved: tuple[str, ...] = ()
    max_iterations: int = 8
    deadline: float = float("inf")
    rules: str | None = None
    talks: tuple[str, ...] = ()
    hidden_ids: frozenset[str] = frozenset()


@dataclass(slots=True)
class TurnReport:
    """What a turn did.

    Args:
        iterations: Model calls made.
        stopped_by: ``noop``, ``reply``, ``silence``, ``other_tool``, ``iterations``,
            ``deadline``, ``tokens``, ``too_large`` or ``spend``.
        spoken: What was said, in order.
        tools: Names of the tools called, in order.
        prompt_tokens: Tokens of all prompts.
        completion_tokens: Tokens of all replies.
    """

    iterations: int = 0
    stopped_by: str = "iterations"
    spoken: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0
