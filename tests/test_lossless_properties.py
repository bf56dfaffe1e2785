"""Properties of compaction and rollback on random histories, with an assistant in memory.

A thousand examples of each, or the share of them that `thoroughness` tells.
"""

import copy
import re
import unittest

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evennia_ai.core.audience import PUBLIC, private
from evennia_ai.core.messages import is_summary, total_tokens, utc_iso
from evennia_ai.core.pairs import cut_points, unanswered
from evennia_ai.errors import AssistantError
from evennia_ai.handlers.verify import verify_history
from evennia_ai.llm_interaction.prompt import (
    build_prompt,
    context_limit,
    context_usage,
    measure_fixed,
)
from evennia_ai.sleep.compaction import (
    compact_conversation_history,
    run_pre_compaction_extraction,
)
from evennia_ai.sleep.reversal import rollback_compaction
from evennia_ai.sleep.triggers import kept_capacity
from evennia_ai.testing import call
from tests.loopback import check_pairs
from tests.memory_assistant import START, MemoryWorld
from tests.strategies import PEOPLE, histories
from tests.thoroughness import examples
from tests.waiting import wait_for

EXAMPLES = settings(
    max_examples=examples(1000),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
VIEWERS = (PUBLIC, *(private(PEOPLE[:n]) for n in (1, 2, 3)))
CONFIGS = st.fixed_dictionaries(
    {
        "compact_strategy": st.sampled_from(("cascade", "cascade", "single")),
        "compact_preserve_window": st.integers(1, 6),
        "mask_min_tokens": st.sampled_from((20, 200)),
        "max_context_tokens": st.sampled_from((5000, 8000, 100_000)),
        "compact_preserve_token_share": st.just(0.0),
    }
)
# Windows and shares to keep that exceed what may stay under a trigger.
TIGHT = st.fixed_dictionaries(
    {
        "compact_strategy": st.sampled_from(("cascade", "single")),
        "compact_preserve_window": st.sampled_from((1, 6, 40)),
        "mask_min_tokens": st.sampled_from((20, 200)),
        "max_context_tokens": st.sampled_from((12_000, 30_000)),
        "compact_preserve_token_share": st.sampled_from((0.0, 0.2, 0.8)),
    }
)
DEEDS = st.lists(
    st.sampled_from(("compact", "mask", "extract", "roll_back", "restart", "say", "expand")),
    min_size=1,
    max_size=8,
)


def answered(request):
    """What the scripted model says: the same in a run and in its control run."""
    if request.purpose == "summary":
        words = re.findall(r"\w+", str(request.messages[-1]["content"]))
        return f"They talked of {' '.join(words[-8:])}."
    return call("noop")


class Run:
    """An assistant in memory whose messages have ids and times of their own, given in order."""

    def __init__(self, config):
        self.world = MemoryWorld(**config)
        self.world.model.default = answered
        self.number, self.refusal = 0, ""

    @property
    def script(self):
        return self.world.script

    @property
    def body(self):
        return self.world.body

    def store(self, messages):
        """Put messages into the history, ids and times the same in every run."""
        for message in messages:
            self.number += 1
            at = utc_iso(START + self.number)
            stamped = {**copy.deepcopy(message), "id": f"m{self.number}", "created_at": at}
            stamped.pop("tokens", None)
            self.script.history.append([stamped])

    def say(self):
        self.store([{"role": "user", "content": f"one more line, {self.number}"}])

    def extract(self):
        """Facts, an observation and an aside, then the end."""
        at = len(self.world.model.requests)
        self.world.model.answers = [
            call("add_journal_entry", content=f"Fact {at}."),
            call("update_entity_observation", entity="Alice", observation=f"Owes {at}."),
            call("noop"),
        ]
        wait_for(run_pre_compaction_extraction(self.script, self.body))
        self.world.model.answers = []

    def compact(self):
        return wait_for(compact_conversation_history(self.script, self.body, force=True))

    def mask(self):
        """An automatic compaction, which masks where that is enough."""
        return self.relieve(context_usage(self.script) * 0.99)

    def relieve(self, threshold):
        """An automatic compaction; it gets under its trigger if that can be reached at all."""
        able = self.able_to_relieve(threshold)
        result = self.compact_at(threshold)
        if able and result["success"] and not result.get("skipped"):
            assert context_usage(self.script) < threshold, (context_usage(self.script), threshold)
        return result

    def compact_at(self, threshold):
        return wait_for(compact_conversation_history(self.script, self.body, threshold=threshold))

    def able_to_relieve(self, threshold):
        """Whether a compaction can get under a trigger: some room, and a newest turn in it."""
        room = kept_capacity(self.script, threshold)
        raw = self.stored()
        newest = max((point for point in cut_points(raw) if point < len(raw)), default=0)
        return room is not None and total_tokens(raw[newest:]) <= room

    def roll_back(self):
        """True if something was taken back; False if there was nothing, or it does not fit."""
        try:
            wait_for(rollback_compaction(self.script, self.body))
        except AssistantError as error:
            self.refusal = str(error)
            return False
        return True

    def restart(self):
        self.world.restart()

    def expand(self):
        """Looking at what summaries rest on changes nothing."""
        for record in self.script.history.summaries():
            list(self.script.history.each_below(record["id"]))

    def prompts(self):
        """What would be sent to each audience."""
        return [build_prompt(self.script, self.body, viewer).messages for viewer in VIEWERS]

    def stored(self):
        """The raw live messages."""
        return [m for m in self.script.history.messages() if not is_summary(m)]


class TestRollback(unittest.TestCase):
    """A run in which something happened and was taken back, beside one in which it never did."""

    def assert_rightly_refused(self, run, control):
        """A rollback may be refused only where the run without overflows its limit."""
        self.assertIn("no longer fit", run.refusal)
        measure_fixed(control.script, control.body)
        self.assertGreater(context_usage(control.script), 1.0)

    @EXAMPLES
    @given(histories(markers=False, pieces=20), CONFIGS, st.booleans(), st.booleans())
    def test_prompts_are_those_of_a_run_without(self, messages, config, automatic, extraction):
        """After compaction and rollback every audience's prompt is byte for byte the control's."""
        run, control = Run(config), Run(config)
        for each in (run, control):
            each.store(messages)
        if extraction:
            run.extract()
        result = run.mask() if automatic else run.compact()
        if result.get("skipped") or not result["success"]:
            return
        if not run.roll_back():
            self.assert_rightly_refused(run, control)
            return
        self.assertEqual(run.prompts(), control.prompts())
        self.assertEqual(run.script.history.messages(), control.script.history.messages())
        self.assertEqual(run.script.history.tokens(), control.script.history.tokens())
        self.assertEqual(verify_history(run.script), ())

    @EXAMPLES
    @given(
        st.lists(histories(markers=False, pieces=10), min_size=3, max_size=4),
        CONFIGS,
        st.booleans(),
    )
    def test_the_latest_of_several(self, parts, config, restarted):
        """The earlier compactions stand; what is said and compacted afterwards is the control's."""
        run, control = Run(config), Run(config)
        *earlier, last = parts
        for each in (run, control):
            for part in earlier:
                each.store(part)
                each.compact()
            each.store(last)
        run.extract()
        result = run.compact()
        if result.get("skipped") or not result["success"]:
            return
        for each in (run, control):
            each.say()
        alone = unanswered(control.stored())
        for each in (run, control) if restarted else ():
            each.restart()
        if not run.roll_back():
            self.assert_rightly_refused(run, control)
            return
        if restarted and alone:
            # A start stores results for the calls left alone that are live then.
            self.assertEqual(verify_history(run.script), ())
            return
        self.assertEqual(run.prompts(), control.prompts())
        for each in (run, control):
            each.say()
            each.compact()
        self.assertEqual(run.prompts(), control.prompts())
        self.assertEqual(verify_history(run.script), ())


class TestAnySequence(unittest.TestCase):
    """Whatever is done in whatever order."""

    @EXAMPLES
    @given(st.lists(histories(markers=False, pieces=8), min_size=1, max_size=5), CONFIGS, DEEDS)
    def test_proof_and_prompts_hold(self, parts, config, deeds):
        """The proof is clean and every prompt is legal and fits, after each deed."""
        run, said = Run(config), 0
        for number, deed in enumerate(deeds):
            run.store(parts[number % len(parts)])
            getattr(run, deed)()
            self.assertEqual(verify_history(run.script), ())
            self.assertGreaterEqual(run.script.history.recorded[0], said)
            said = run.script.history.recorded[0]
            for viewer in VIEWERS:
                prompt = build_prompt(run.script, run.body, viewer)
                self.assertTrue(prompt.fits, prompt.budget)
                self.assertLessEqual(prompt.budget.total, context_limit(run.script))
                check_pairs({"messages": self.distinct(prompt.messages)})

    @EXAMPLES
    @given(
        st.lists(
            st.tuples(histories(markers=False, pieces=8), st.integers(0, 60)),
            min_size=1,
            max_size=5,
        ),
        TIGHT,
        st.sampled_from((0.5, 0.7, 0.8)),
    )
    def test_a_token_trigger_is_relieved(self, parts, config, threshold):
        """Usage is under the trigger afterwards, so that prompts hold all that is live."""
        run = Run(config)
        measure_fixed(run.script, run.body)
        for part, lines in parts:
            run.store([*part, *[{"role": "user", "content": "talk " * 80}] * lines])
            run.relieve(threshold)
            if context_usage(run.script) < threshold:
                for viewer in VIEWERS:
                    prompt = build_prompt(run.script, run.body, viewer)
                    self.assertEqual(prompt.budget.left_out, ())

    @staticmethod
    def distinct(messages):
        """Call ids that stand twice in one message, as no client lets through, made different."""
        renamed = []
        for message in messages:
            ids = [made["id"] for made in message.get("tool_calls") or ()]
            renamed.append(message)
            if len(set(ids)) < len(ids):
                return renamed[:-1]
        return renamed

    @EXAMPLES
    @given(st.lists(histories(markers=False, pieces=8), min_size=1, max_size=4), CONFIGS)
    def test_everything_taken_back_is_everything_said(self, parts, config):
        """Rolled back to the first compaction, the history is all that was ever said, in order."""
        run, control = Run(config), Run(config)
        for part in parts:
            for each in (run, control):
                each.store(part)
            run.compact()
        while run.roll_back():
            self.assertEqual(verify_history(run.script), ())
        measure_fixed(control.script, control.body)
        if context_usage(control.script) > 1.0:
            self.assertRegex(run.refusal, "no longer fit|no compaction")
            return
        self.assertIn("no compaction", run.refusal)
        self.assertEqual(run.stored(), control.stored())
        self.assertEqual(run.prompts(), control.prompts())
