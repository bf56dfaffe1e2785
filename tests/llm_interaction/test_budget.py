"""Token budgets."""

import unittest
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.audience import private
from evennia_ai.history.messages import total_tokens
from evennia_ai.history.pairs import cut_points
from evennia_ai.history.stored import Unreadable
from evennia_ai.llm_interaction.budget import (
    REGIONS,
    BudgetEvent,
    TokenBudget,
    newest_that_fit,
    shortened,
)
from evennia_ai.llm_interaction.values import ModelReply
from tests.strategies import FEW, MANY, histories

NEEDED = ("at", "purpose", "model", "sizes", "limit")


class TestBudgetEvent(unittest.TestCase):
    """A logged budget."""

    def setUp(self):
        sizes = dict(zip(REGIONS, (200, 310, 120, 480, 1500, 300, 90, 200), strict=True))
        left_out = tuple(f"m{n}" for n in range(30))
        self.budget = TokenBudget(sizes, 4096, left_out, ("cut " * 100, *"abcdef"))
        self.event = BudgetEvent.of(self.budget, at=5.0, purpose="awake", model="m/x")

    def test_of_a_prompt(self):
        """It has the budget's numbers, and of what was left out only how much and up to where."""
        event = self.event
        self.assertEqual((event.regions, event.limit), (self.budget.regions, 4096))
        self.assertEqual((event.left_out, event.left_until), (30, "m29"))
        self.assertEqual([len(note) for note in event.notes], [120, 1, 1, 1, 1])
        self.assertEqual((event.total, self.budget.total), (3200, 3200))
        self.assertEqual(
            str(event),
            "System: 200, Tools: 310, Ledger: 120, Summaries: 480, History: 1500, "
            "Retrieved: 300, Tail: 90, Reserve: 200 (total 3200/4096)",
        )
        whole = BudgetEvent.of(TokenBudget({"System": 7}, 50), at=5.0, purpose="x", model="m")
        self.assertEqual((whole.sizes, whole.left_until), ((7, 0, 0, 0, 0, 0, 0, 0), ""))

    def test_answered(self):
        """The reply adds its figures, and the model that answered."""
        reply = ModelReply(content="Aye.", prompt_tokens=7, completion_tokens=2, cost=0.5)
        done = self.event.answered(reply)
        self.assertEqual((done.model, done.prompt_tokens), ("m/x", 7))
        self.assertEqual((done.completion_tokens, done.cost), (2, 0.5))
        self.assertEqual(self.event.answered(replace(reply, model="m/y")).model, "m/y")

    def test_round_trip(self):
        """It comes back from what is stored; what has its default is not stored."""
        reply = ModelReply(content="", model="m/y", prompt_tokens=7, cost=0.0)
        private_one = replace(self.event, audience=private(["o1"]), trigger="sleep", usage=0.5)
        for event in (self.event, private_one, private_one.answered(reply)):
            self.assertEqual(BudgetEvent.from_dict(event.to_dict()), event)
        bare = BudgetEvent(at=1.0, purpose="p", model="m", sizes=(0,) * 8, limit=9)
        self.assertEqual(set(bare.to_dict()), {*NEEDED, "audience"})

    def test_unreadable(self):
        """A stored event of another shape is none."""
        sound = self.event.to_dict()
        for odd in ({"at": "now"}, {"sizes": [1, "x"]}, {"sizes": [1] * 20}, {"notes": 7}):
            with self.subTest(odd), self.assertRaises(Unreadable):
                BudgetEvent.from_dict({**sound, **odd})


class TestNewestThatFit(unittest.TestCase):
    """What of a history fits."""

    @MANY
    @given(histories(), st.integers(-10, 12_000))
    def test_longest_legal_end(self, history, room):
        """Kept is the longest end that fits and begins at a legal cut; the rest is left out."""
        left_out, kept = newest_that_fit(history, room)
        self.assertEqual(left_out + kept, history)
        ends = [history[point:] for point in cut_points(history)]
        fitting = [end for end in ends if total_tokens(end) <= room] or [()]
        self.assertEqual(kept, max(fitting, key=len))


class TestShortened(unittest.TestCase):
    """Texts cut in their middle."""

    @FEW
    @given(st.text(min_size=1).map(lambda text: text * 9), st.integers(-5, 400))
    def test_both_ends_stay(self, text, room):
        """It holds the beginning and the end, and says exactly how much is missing."""
        short = shortened(text, room)
        if len(text) <= room:
            self.assertEqual(short, text)
            return
        half = max(0, (room - 60) // 2)
        gone = f" [... {len(text) - 2 * half:,} characters left out here ...] "
        self.assertEqual(short, text[:half] + gone + text[len(text) - half :])
        self.assertLessEqual(len(short), max(room, 60))
