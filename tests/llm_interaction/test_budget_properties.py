"""Budgets of any configuration and any history: what is logged never exceeds its limit."""

import unittest

from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.history.audience import PUBLIC
from evennia_ai.history.messages import Speaker
from evennia_ai.llm_interaction.budget import REGIONS
from evennia_ai.llm_interaction.contexts import SPOKEN
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL, build_prompt, model_request
from evennia_ai.llm_interaction.tokens import counter_for
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.recall.values import Hit
from evennia_ai.sleep.compaction import (
    compact_conversation_history,
    run_pre_compaction_extraction,
)
from tests.fake import FakeAssistant
from tests.loopback import count_tokens
from tests.models import ScriptedModel
from tests.strategies import OWNERS, counted, histories, texts
from tests.thoroughness import examples
from tests.waiting import wait_for

ANY = settings(max_examples=examples(1000), derandomize=True)
SOME = settings(max_examples=examples(300), derandomize=True)
COUNT = counter_for("gpt-4")
# A summary's request holds at least its rules, a few lines and the room for the summary.
LEAST_FOR_SUMMARIES = 1500
caps = st.one_of(st.integers(0, 400), st.integers(0, 100_000))
lines = st.lists(texts.map(lambda text: " ".join(text.split())), max_size=4).map(tuple)
notes = st.lists(texts.map(lambda text: text[:200].strip() or "tea"), max_size=4)


def configurations(least=50):
    """Values for all options that bound a region or choose the form of a request."""
    return st.fixed_dictionaries(
        {
            "max_context_tokens": st.one_of(
                st.integers(least, least + 600), st.integers(least, 30_000)
            ),
            "reply_reserve_tokens": st.integers(16, 200_000),
            "ledger_max_tokens": caps,
            "memory_inject_tokens": caps,
            "summary_max_tokens": st.integers(50, 4000),
            "compact_preserve_window": st.integers(1, 8),
            "compact_enabled": st.booleans(),
            "calls_tools": st.booleans(),
            "llm_api": st.sampled_from(("chat", "completion")),
            "persona": texts,
        }
    )


# For tests of prompts: options, a history, notes, memories found, the audience, the context.
any_prompt = given(
    configurations(),
    histories(),
    notes,
    lines,
    st.sampled_from(OWNERS),
    st.sampled_from(SPOKEN),
)


class Counting(FakeAssistant):
    """A fake assistant that counts as the server of the tests does."""

    counter_name = "tiktoken"

    @staticmethod
    def count(text):
        """Tokens of tiktoken's cl100k_base."""
        return COUNT(text)

    counter = count


def assistant(config, history, pinned):
    """An assistant with any configuration, history and ledger."""
    options = {**config}
    model = ScriptedModel(
        default="They talked.", window=None, calls_tools=options.pop("calls_tools")
    )
    aria = Counting(model, **options)
    for text in pinned:
        aria.ledger.add(text, Speaker("Bob", "o2.b"), state="approved")
    aria.history.replace(counted(history, COUNT))
    return aria


class TestBudgetsAlways(unittest.TestCase):
    @ANY
    @any_prompt
    def test_within_the_limit(self, config, history, pinned, retrieved, audience, context):
        """The regions' sum is within the limit, and is what the request holds within 2 %."""
        aria = assistant(config, history, pinned)
        memories = [Hit("m1", 1.0, "Bob", text, None) for text in retrieved]
        prompt = build_prompt(aria, TurnRequest(audience, context, retrieved=tuple(memories)))
        event = aria.prompts.events()[-1]
        self.assertEqual((event.regions, event.limit), (prompt.budget.regions, prompt.budget.limit))
        self.assertEqual(tuple(event.regions), REGIONS)
        self.assertTrue(prompt.fits)
        self.assertGreaterEqual(min(event.regions.values()), 0)
        self.assertLessEqual(event.total, event.limit)
        self.assertLessEqual(event.limit, config["max_context_tokens"])
        if config["calls_tools"] and config["llm_api"] == "chat":
            request = model_request(aria, prompt, context)
            body = {"messages": request.messages, "tools": list(request.tools)}
            received, logged = count_tokens(body), event.total - event.regions["Reserve"]
            self.assertLessEqual(abs(logged - received), 8 + 0.02 * received)
            self.assertEqual(request.max_tokens, event.regions["Reserve"])

    @SOME
    @given(configurations(LEAST_FOR_SUMMARIES), histories(markers=False), notes)
    def test_every_purpose(self, config, history, pinned):
        """Turns, extractions and summaries are all within their limit."""
        aria = assistant(config, history, pinned)
        wait_for(aria.run_turn(TurnRequest(audience=PUBLIC)))
        wait_for(run_pre_compaction_extraction(aria, aria.obj))
        wait_for(compact_conversation_history(aria, aria.obj, force=True))
        asked = [r for r in aria.mind.model.requests if r.model != OFFLINE_MODEL]
        self.assertGreaterEqual(len(aria.prompts.events()), min(50, len(asked)))
        for event in aria.prompts.events():
            self.assertLessEqual(event.total, event.limit, event)
