"""The trace of a reply, as it is stored in the reply's metadata."""

import json
import unittest

from evennia_ai.history.messages import Message
from evennia_ai.llm_interaction.budget import MOST_IDS, REGIONS, TRACE, ReplyTrace, TokenBudget

BUDGET = TokenBudget(at=1.0, purpose="awake", model="m", sizes=(1,) * len(REGIONS), limit=9)


def stored(trace):
    """The trace that comes back from a reply that holds it."""
    raw = trace.to_text() if isinstance(trace, ReplyTrace) else trace
    return ReplyTrace.of(Message("assistant", "So.", metadata={TRACE: raw}))


class TestReplyTrace(unittest.TestCase):
    def test_round_trip(self):
        """It comes back from what is stored, full or empty, with a known price or none."""
        full = ReplyTrace(
            budget=BUDGET,
            answers=("m1",),
            given={"m2": 0.5},
            passed_over={"m3": 0.25},
            found={"m4": 0.125},
            opened=("m4",),
            tools=("look",),
            calls=2,
            prompt_tokens=7,
            completion_tokens=3,
            cost=0.0,
        )
        for trace in (full, ReplyTrace(budget=BUDGET)):
            self.assertEqual(stored(trace), trace)
        self.assertEqual(set(json.loads(ReplyTrace(budget=BUDGET).to_text())), {"budget", "calls"})

    def test_bounded(self):
        """The best scores and the newest ids are kept, rounded."""
        many = {f"m{n}": 1 / (n + 1) for n in range(50)}
        kept = stored(ReplyTrace(budget=BUDGET, found=many, answers=tuple(many)))
        self.assertEqual(list(kept.found), list(many)[:MOST_IDS])
        self.assertEqual(kept.found["m2"], 0.3333)
        self.assertEqual(kept.answers, tuple(many)[-MOST_IDS:])
