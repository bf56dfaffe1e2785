"""Why a reply was said: what its turn was made of, stored with the reply as ids and numbers.

The trace is in the reply's metadata, as a JSON text: a history of hundreds of replies is stored and
loaded much faster than with dicts and lists. It leaves the live history, is exported and is
forgotten together with the reply.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from evennia_ai.history.messages import Message
from evennia_ai.history.stored import Stored
from evennia_ai.llm_interaction.budget import TokenBudget

# Key of a reply's metadata.
TRACE = "trace"
# Most ids of each kind that a trace keeps.
MOST_IDS = 12


@dataclass(frozen=True, kw_only=True)
class ReplyTrace(Stored):
    """What a reply rests on."""

    budget: TokenBudget  # the budget of the request that gave the reply
    answers: tuple[str, ...] = ()  # ids of the messages it answers
    # Scores of the memories in its prompt, by id.
    given: Mapping[str, float] = field(default_factory=dict)
    # Scores of memories that were found for the prompt and not taken, by id.
    passed_over: Mapping[str, float] = field(default_factory=dict)
    # Scores of what the turn's own searches found, by id.
    found: Mapping[str, float] = field(default_factory=dict)
    opened: tuple[str, ...] = ()  # ids of the memories that the turn read in full
    tools: tuple[str, ...] = ()  # names of the tools called before it, in order
    calls: int = 1  # model calls of the turn until then
    prompt_tokens: int = 0  # of all these calls; likewise `completion_tokens`
    completion_tokens: int = 0
    cost: float | None = None  # US dollars of all these calls; None if one of them is unknown
    cached_tokens: int = 0  # prompt tokens of all these calls that the provider read from its cache
    # Names of the guards that cut the turn's replies (`llm_interaction.guards`).
    cuts: tuple[str, ...] = ()
    # Whether the game's moderation replaced or refused something of the turn.
    moderated: bool = False

    @classmethod
    def of(cls, message: Message) -> "ReplyTrace | None":
        """The trace of a reply; None if it has none that can be read."""
        try:
            return cls.from_dict(json.loads(message.metadata.get(TRACE, "")))
        except (TypeError, ValueError, RecursionError):  # `Unreadable` is a ValueError
            return None

    def to_text(self) -> str:
        """The text that is stored: the newest ids, the best scores."""
        short = replace(
            self,
            answers=self.answers[-MOST_IDS:],
            opened=self.opened[-MOST_IDS:],
            tools=self.tools[-MOST_IDS:],
            given=_best(self.given),
            passed_over=_best(self.passed_over),
            found=_best(self.found),
        )
        return json.dumps(short.to_dict(), separators=(",", ":"))


def _best(scores: Mapping[str, float]) -> dict[str, float]:
    """The first of them, which are the best, rounded."""
    return {key: round(score, 4) for key, score in list(scores.items())[:MOST_IDS]}
