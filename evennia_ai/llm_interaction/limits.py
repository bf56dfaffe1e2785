"""An assistant's model as it is known at a moment, and the limits of requests to it."""

from dataclasses import dataclass

from evennia_ai.llm_interaction.budget import Room
from evennia_ai.llm_interaction.regions import Caps
from evennia_ai.llm_interaction.values import OFFLINE_MODEL, SPEAKS_AND_CALLS, ModelFacts
from evennia_ai.llm_interaction.windows import USABLE_TOKENS

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
    is_tried: bool = False  # whether a trial of it goes on, behind which its tools are offered

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
    def calls_tools(self) -> bool:
        """Whether the model is offered tools; else it only speaks.

        The offline model is; another one where a trial found that it talks as well with them.
        """
        may_call = not (self.is_base or self.only_talks or self.is_tried)
        return self.model == OFFLINE_MODEL or (may_call and bool(self.facts.calls_tools))

    @property
    def only_talks(self) -> bool:
        """Whether the model's window is so small that it can answer and do nothing else.

        There is no compaction, no extraction and no other work for the assistant itself then: its
        room is too small for the results, and the work would begin again and again.
        """
        return self.facts.window is not None and self.facts.window.tokens < USABLE_TOKENS

    @property
    def speech(self) -> str:
        """How the model speaks and acts, in words."""
        if self.calls_tools:
            return self.facts.speech or SPEAKS_AND_CALLS
        if self.is_base or (self.facts.calls_tools is not None and not self.is_tried):
            return "words alone (orders are read from what people say)"
        return "words alone, until it has been tried with tools"
