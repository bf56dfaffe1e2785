"""Why a reply was said: what its turn was made of, stored with the reply as ids and numbers.

The trace is in the reply's metadata, as a JSON text: a history of hundreds of replies is stored and
loaded much faster than with dicts and lists. It leaves the live history, is exported and is
forgotten together with the reply.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evennia_ai.history.messages import Message
from evennia_ai.history.records import as_amount, as_count, as_dict, as_texts
from evennia_ai.llm_interaction.budget import BudgetEvent

# Key of a reply's metadata.
TRACE = "trace"
# Most ids of each kind that a trace keeps.
MOST_IDS = 12


@dataclass(frozen=True, kw_only=True)
class ReplyTrace:
    """What a reply rests on.

    Args:
        budget: The budget of the request that gave the reply.
        answers: Ids of the messages it answers.
        given: Scores of the memories in its prompt, by id.
        passed_over: Scores of memories that were found for the prompt and not taken, by id.
        found: Scores of what the turn's own searches found, by id.
        opened: Ids of the memories that the turn read in full.
        tools: Names of the tools called before it, in order.
        calls: Model calls of the turn until then.
        prompt_tokens: Of all these calls; likewise `completion_tokens`.
        cost: US dollars of all these calls; None if one of them is unknown.
        cached_tokens: Prompt tokens of all these calls that the provider read from its cache.
        cuts: Names of the guards that cut the turn's replies (`llm_interaction.guards`).
        moderated: Whether the game's moderation replaced or refused something of the turn.
    """

    budget: BudgetEvent
    answers: tuple[str, ...] = ()
    given: Mapping[str, float] = field(default_factory=dict)
    passed_over: Mapping[str, float] = field(default_factory=dict)
    found: Mapping[str, float] = field(default_factory=dict)
    opened: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    calls: int = 1
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    cached_tokens: int = 0
    cuts: tuple[str, ...] = ()
    moderated: bool = False

    @classmethod
    def of(cls, message: Message) -> "ReplyTrace | None":
        """The trace of a reply; None if it has none, as in older versions."""
        try:
            raw = json.loads(message.metadata.get(TRACE, ""))
        except (TypeError, ValueError, RecursionError):
            return None
        raw = as_dict(raw)
        cost = raw.get("cost")
        return cls(
            budget=BudgetEvent.from_dict(as_dict(raw.get("budget"))),
            answers=tuple(as_texts(raw.get("answers"))),
            given=_scores(raw.get("given")),
            passed_over=_scores(raw.get("passed_over")),
            found=_scores(raw.get("found")),
            opened=tuple(as_texts(raw.get("opened"))),
            tools=tuple(as_texts(raw.get("tools"))),
            calls=as_count(raw.get("calls")),
            prompt_tokens=as_count(raw.get("prompt_tokens")),
            completion_tokens=as_count(raw.get("completion_tokens")),
            cost=None if cost is None else as_amount(cost),
            cached_tokens=as_count(raw.get("cached_tokens")),
            cuts=tuple(as_texts(raw.get("cuts"))),
            moderated=raw.get("moderated") is True,
        )

    def to_text(self) -> str:
        """The text that is stored; what is empty or unknown is left out."""
        kept: dict[str, Any] = {
            "budget": self.budget.to_dict(),
            "answers": list(self.answers[-MOST_IDS:]),
            "given": _best(self.given),
            "passed_over": _best(self.passed_over),
            "found": _best(self.found),
            "opened": list(self.opened[-MOST_IDS:]),
            "tools": list(self.tools[-MOST_IDS:]),
            "calls": self.calls,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cached_tokens": self.cached_tokens,
            "cuts": list(self.cuts),
            "moderated": self.moderated,
        }
        kept = {name: value for name, value in kept.items() if value}
        if self.cost is not None:
            kept["cost"] = self.cost
        return json.dumps(kept, separators=(",", ":"))


def _scores(raw: object) -> dict[str, float]:
    return {str(key): as_amount(score) for key, score in as_dict(raw).items()}


def _best(scores: Mapping[str, float]) -> dict[str, float]:
    """The first of them, which are the best, rounded."""
    return {key: round(score, 4) for key, score in list(scores.items())[:MOST_IDS]}
