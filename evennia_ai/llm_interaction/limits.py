"""An assistant's model as it is known at a moment, and the limits of requests to it."""

from dataclasses import dataclass

from evennia_ai.llm_interaction.budget import Room
from evennia_ai.llm_interaction.regions import Caps
from evennia_ai.llm_interaction.values import OFFLINE_MODEL, ModelFacts
from evennia_ai.llm_interaction.windows import USABLE_TOKENS

# How models are told of their tools, and why so.
NATIVE = "native (the provider's tool calling)"
CARRIED = "native (the model's template carries tools)"
DROPPED = "text (the model's template drops tools: calls are written as text)"
BASE = "text (base models write calls as text)"
AS_TEXT = (DROPPED, BASE)
# Below this window, a model that writes its calls as text gets few tools and short rules.
SMALL_WINDOW_TOKENS = 16_000
# Largest size of the prompt's part about room, time and people, and of a base model's summary.
TAIL_TOKENS, PLAIN_SUMMARY_TOKENS = 800, 200


@dataclass(frozen=True, slots=True)
class Limits:
    """What holds for the requests to a model; `Assistant.limits` makes them."""

    model: str  # its name
    facts: ModelFacts
    option: int  # the option `max_context_tokens`
    call: float | None  # the spend limit of a call, in tokens
    wanted: Caps  # of the regions, as configured
    fixed: int  # tokens of system text, tools and ledger in the last prompt
    is_base: bool  # whether it completes texts, without roles

    @property
    def tokens(self) -> int:
        """Most tokens a request and the reply may hold."""
        known = self.facts.window.tokens if self.facts.window else None
        return min(int(bound) for bound in (self.option, known, self.call) if bound)

    @property
    def source(self) -> tuple[str, str]:
        """What sets that, and what makes it larger, in words."""
        tokens, window = self.tokens, self.facts.window
        if tokens == self.option:
            return "`max_context_tokens`", "Raise `max_context_tokens`"
        if window and tokens == window.tokens:
            name = f"the window of {self.model}, by {window.source}"
            return name, "Give the model's server a larger window"
        return "the spend limit of a call", "Raise the spend limit of a call"

    @property
    def caps(self) -> Caps:
        """The caps of the regions as they hold under it."""
        return self.wanted.under(self.tokens)

    @property
    def room(self) -> Room:
        """The room of the history beside the fixed regions of the last prompt."""
        return Room(self.tokens, self.fixed, self.caps.volatile)

    @property
    def protocol(self) -> str:
        """How the model is told of its tools, as far as is known now."""
        if self.model == OFFLINE_MODEL:
            return NATIVE
        carries = self.facts.carries_tools
        return (
            BASE if self.is_base else NATIVE if carries is None else CARRIED if carries else DROPPED
        )

    @property
    def only_talks(self) -> bool:
        """Whether the model's window is so small that it can answer and do nothing else.

        There is no compaction, no extraction and no other work for the assistant itself then: its
        room is too small for the results, and the work would begin again and again.
        """
        return self.facts.window is not None and self.facts.window.tokens < USABLE_TOKENS

    @property
    def only_speaks(self) -> bool:
        """Whether the model has so few parameters, or room, that it gets no tools, and only speaks.

        It looks and notes again and again, and says the results; memories are given to it. The
        offline model takes the notes and makes the summaries.
        """
        return self.facts.small or self.only_talks

    @property
    def is_small(self) -> bool:
        """Whether the model gets few tools and short rules.

        It does where it has few parameters, and where calls are written as text, or do not reach it
        at all, and the window is small: such a model loses its way in a long prompt, and nothing is
        gained from tools that it does not call.
        """
        if self.only_speaks or self.tokens >= SMALL_WINDOW_TOKENS:
            return self.only_speaks
        return self.protocol in AS_TEXT or self.facts.carries_tools is False
