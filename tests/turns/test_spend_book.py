"""The book of spend: days and months, caps, and junk in the setting."""

import unittest
from math import inf, nan

from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evennia_ai.llm_interaction.values import ModelReply, ModelRequest
from evennia_ai.options import LIMITS
from evennia_ai.turns.spend_book import (
    SET_BACK_S,
    Amount,
    Cap,
    SpendCaps,
    caps_of,
    fitted,
    lifts,
    likely,
    oldest_day,
    span,
)
from tests.strategies import FEW, MANY

NOW, DAY = 1_800_000_000.0, 86_400.0
amounts = st.builds(
    Amount,
    st.integers(0, 5),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    cost=st.floats(0, 100).map(lambda cost: round(cost, 6)),
)
times = st.floats(NOW, NOW + 400 * DAY)
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("game", "call", "tokens_day", "tokens")), inner)
    ),
    max_leaves=12,
)


class TestWindows(unittest.TestCase):
    """Days and months, and clocks that go wrong."""

    def spent(self, window, then, now):
        """Whether what was spent then counts now."""
        day, _ = span("day", then)
        since, until = span(window, now)
        return since <= day <= until

    def test_a_day_and_a_month_pass(self):
        """The next day the day is empty and the month goes on; the next month both are empty."""
        for after, counts in ((0, (True, True)), (DAY, (False, True)), (31 * DAY, (False, False))):
            spent = [self.spent(window, NOW, NOW + after) for window in ("day", "month")]
            self.assertEqual(tuple(spent), counts)

    @MANY
    @given(times, st.floats(0, SET_BACK_S))
    def test_a_clock_set_back_frees_nothing(self, time, by):
        """What was spent stays spent."""
        for window in ("day", "month"):
            self.assertTrue(self.spent(window, time, time - by))

    @MANY
    @given(times, times)
    def test_a_clock_once_far_ahead_blocks_nobody(self, one, other):
        """However wrong the clock was, what was spent then is over in two days or two months."""
        early, late = sorted((one, other))
        if late - early > SET_BACK_S + DAY:
            self.assertFalse(self.spent("day", late, early))

    def test_how_long_it_is_kept(self):
        """The oldest day is so many days before."""
        self.assertEqual(oldest_day("2027-01-15"), "2025-12-11")


class TestCaps(unittest.TestCase):
    """What is reached, what staff are told, what may be changed."""

    @FEW
    @given(st.lists(amounts, max_size=8))
    def test_a_cap_is_used_by_sums(self, spent):
        """A cap is used by the sum of all calls."""
        both = sum(spent, Amount())
        [tokens, cost] = caps_of("x", {"tokens_day": 1, "cost_day": 1})
        self.assertEqual(tokens.used(both), sum(amount.tokens for amount in spent))
        self.assertAlmostEqual(cost.used(both), sum(amount.cost for amount in spent))

    def test_no_limit_is_no_cap(self):
        """None means no cap, 0 that nothing may be spent; lower limits and new ones lift none."""
        self.assertEqual(caps_of("x", dict.fromkeys(LIMITS)), ())
        self.assertEqual(caps_of("x", {"cost_day": 0})[0].used(Amount()), 0)
        for before, after in ((5, 6), (5, None), (5, 5.5)):
            self.assertTrue(lifts(before, after))
        for before, after in ((5, 5), (5, 4), (None, 4), (None, None)):
            self.assertFalse(lifts(before, after))

    def test_words(self):
        """A cap says whose it is, how much, and when it ends by itself."""
        tokens, money = caps_of("Aria", {"tokens_day": 1000, "cost_month": 2.5})
        self.assertEqual(str(tokens), "Aria's spend limit of 1,000 tokens a day")
        self.assertEqual(str(money), "Aria's spend limit of $2.5 a month")
        ends = [cap.until for cap in (tokens, money, Cap("the call", "call", "tokens", 5))]
        self.assertEqual(len({*ends}), 3)


class TestSetting(unittest.TestCase):
    """The game's setting."""

    def test_wrong(self):
        """Whatever is wrong is found, so that no cap becomes none."""
        SpendCaps.model_validate({"game": {"cost_month": 20.0, "tokens_day": None}})
        wrong = ["5", [], {"games": {}}, {"game": 5}, {"game": {"tokens": 5}}]
        wrong += [{"call": {"tokens_day": 5}}]
        wrong += [{"game": {"tokens_day": each}} for each in (-1, True, "5", nan, inf)]
        for value in wrong:
            with self.subTest(value=value), self.assertRaises(ValidationError):
                SpendCaps.model_validate(value)


class TestCalls(unittest.TestCase):
    """What a call may cost."""

    def test_a_reply_is_an_amount(self):
        """Tokens in and out, cached ones apart; an unknown cost counts 0 and as unpriced."""
        reply = ModelReply(content="", prompt_tokens=100, completion_tokens=5, cached_tokens=80)
        self.assertEqual(Amount.of(reply), Amount(1, 100, 5, 80, unpriced=1))
        self.assertEqual(Amount.of(reply, is_own=True).own, 105)

    @MANY
    @given(
        st.integers(1, 5000),
        st.integers(1, 5000),
        st.none() | st.integers(0, 12_000),
        st.none() | st.floats(0, 0.05),
        st.none() | st.tuples(st.floats(0, 1e-5), st.floats(0, 1e-5)),
    )
    def test_a_call_fits_its_caps_or_is_not_made(self, counted, room, tokens, cost, price):
        """A fitted request stays under the caps of a call; a refused one would not."""
        asked = ModelRequest(model="m", prompt_tokens=counted, max_tokens=room)
        found = fitted(asked, price, {"tokens": tokens, "cost": cost})
        if isinstance(found, Cap):
            least = counted + min(16, room)
            over = tokens is not None and least > tokens
            dear = cost is not None and price and counted * price[0] + min(16, room) * price[1]
            self.assertTrue(over or dear >= cost * (1 - 1e-9))
            return
        self.assertLessEqual(found.max_tokens, room)
        if tokens is not None:
            self.assertLessEqual(counted + found.max_tokens, tokens)
        if cost is not None and price is not None:
            self.assertLessEqual(likely(found, price).cost, cost + 1e-9)
        if tokens is None and cost is None:
            self.assertEqual(found, asked)
