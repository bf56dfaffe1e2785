"""Properties of compaction and rollback on random histories, with an assistant in memory.

A thousand examples of each, or the share of them that `thoroughness` tells. None ends early: each
that counts has folded something and, where it is about rollback, has taken it back.
"""

import copy
import json
import re
import unittest
from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from evennia_ai.errors import AssistantError
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import Message, cut_points, pairing, utc_iso, widest_view_tokens
from evennia_ai.llm_interaction.budget import TARGET_SHARE
from evennia_ai.llm_interaction.prompt import build_prompt, measure_fixed
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.sleep.compaction import compact_conversation_history, run_pre_compaction_extraction
from evennia_ai.sleep.compaction.compact import HEADROOM
from evennia_ai.sleep.compaction.rollback import rollback_compaction
from evennia_ai.testing import call
from tests.asked import source_of
from tests.memory_assistant import START, MemoryWorld, extract_and_compact
from tests.steps import verify_history
from tests.strategies import PEOPLE, foldable_histories
from tests.thoroughness import examples
from tests.waiting import alone, wait_for

EXAMPLES = settings(max_examples=examples(1000), suppress_health_check=[HealthCheck.too_slow])
VIEWERS = (PUBLIC, *(private(PEOPLE[:n]) for n in (1, 2, 3)))
CONFIGS = st.fixed_dictionaries(
    {
        "compact_preserve_window": st.integers(1, 6),
        "max_context_tokens": st.sampled_from((5000, 8000, 100_000)),
        "compact_preserve_token_share": st.just(0.0),
    }
)
# Windows and shares to keep that exceed what may stay under a trigger.
TIGHT = st.fixed_dictionaries(
    {
        "compact_preserve_window": st.sampled_from((1, 6, 40)),
        "max_context_tokens": st.sampled_from((12_000, 30_000)),
        "compact_preserve_token_share": st.sampled_from((0.0, 0.2, 0.8)),
    }
)
# Before all else, so that enough lines leave for a summary.
OLDER = tuple(
    Message("user", f"The {each} owes Bob {number} coins, so it was told at the inn. " * 3)
    for number, each in enumerate(("smith", "miller", "ferryman"), 7)
)


def talks(**sizes):
    """Histories of which a compaction folds some (`foldable_histories`)."""
    return foldable_histories(**sizes).map(lambda history: (*OLDER, *history))


PARTS = talks(pieces=7, least=3, closed=2)
# Mostly one before the latest: each is told twice, in two runs.
SEVERAL = st.one_of(*(st.lists(PARTS, min_size=n, max_size=n) for n in (2, 2, 2, 3)))
ROOM = 10_000_000  # a limit under which every history fits
TALK = Message("user", "talk " * 80)
SHAPES = (
    "calls in parallel",
    "calls in a chain",
    "call ids that repeat",
    "calls without result",
    "a huge message",
    "several audiences",
)
# In so many of a hundred examples must be each of what is counted.
LEAST_PERCENT = 2


def answered(request):
    """What the scripted model says: the same in a run and in its control run."""
    if request.purpose == "summary":
        words = re.findall(r"\w+", source_of(request.messages))
        return f"They talked of {' '.join(words[-8:])}."
    return call("noop")


class Run(MemoryWorld):
    """An assistant in memory whose messages have ids and times of their own, given in order."""

    def __init__(self, config):
        super().__init__(**config)
        self.model.default = answered
        self.number, self.refusal = 0, ""
        self.compactions = self.taken_back = 0

    def store(self, messages):
        """Put messages into the history, ids and times the same in every run."""
        self.script.history.append(self.stamped(message) for message in messages)

    def stamped(self, message):
        """The message with the next id and time; its tokens are to be counted."""
        self.number += 1
        at = utc_iso(START + self.number)
        return replace(copy.deepcopy(message), id=f"m{self.number}", created_at=at, tokens=0)

    def say(self):
        self.store([Message("user", f"one more line, {self.number}")])

    def extract(self):
        """Facts, an observation and an aside, then the end; written at once."""
        self.noting(lambda: wait_for(run_pre_compaction_extraction(self.script, self.body)))

    def noting(self, do):
        """Do something while a model notes a fact and an observation of what it is shown."""
        at = len(self.model.requests)
        self.model.answers = [
            call("add_journal_entry", content=f"Fact {at}.", lines=[1]),
            call("update_entity_observation", entity="Alice", observation=f"Owes {at}."),
            call("noop"),
        ]
        try:
            return do()
        finally:
            self.model.answers = []

    def compact(self):
        return self.compact_with(force=True)

    def extract_and_compact(self):
        """A compaction whose commit writes what was extracted before it."""
        done = self.noting(lambda: extract_and_compact(self.script))
        return self.counted(wait_for(done))

    def compact_with(self, **how):
        """Compact; counted if it was done."""
        done = compact_conversation_history(self.script, self.body, **how)
        return self.counted(wait_for(done))

    def counted(self, result):
        self.compactions += bool(result["success"] and not result.get("skipped"))
        return result

    def mask(self):
        """An automatic compaction, which masks where that is enough."""
        return self.relieve(min(1.0, self.script.usage() * 0.99))

    def relieve(self, threshold):
        """An automatic compaction at this usage; it gets under the target of all compactions.

        The newest exchange stays, however large it is.
        """
        self.configure(compact_sleep_threshold=threshold)
        result = self.compact_with()
        if result["success"] and not result.get("skipped") and not self.is_newest_huge():
            is_masked = result["level"] == "masked"
            most = threshold * HEADROOM if is_masked else TARGET_SHARE
            assert self.script.usage() <= most, (self.script.usage(), most)
        return result

    def is_newest_huge(self):
        """Whether the newest exchange takes more than the messages kept may."""
        raw = self.stored()
        newest = max((point for point in cut_points(raw) if point < len(raw)), default=0)
        return widest_view_tokens(raw[newest:]) > self.script.limits().room.kept

    def roll_back(self):
        """True if something was taken back; False if there was nothing, or it does not fit."""
        try:
            wait_for(alone(rollback_compaction, self.script))
        except AssistantError as error:
            self.refusal = str(error)
            return False
        self.taken_back += 1
        return True

    def limit(self, tokens):
        self.configure(max_context_tokens=tokens)

    def prompts(self):
        """What would be sent to each audience; summaries in use are named by their number."""
        sent = [build_prompt(self.script, TurnRequest(viewer)).messages for viewer in VIEWERS]
        text = json.dumps(sent)
        records = (r for r in self.script.history.summaries() if not r.rolled_back)
        for number, record in enumerate(records):
            text = text.replace(record.id, f"s{number}")
        return json.loads(text)

    def stored(self):
        """The raw live messages."""
        return [m for m in self.script.history.messages() if not m.is_summary]


def shapes(messages):
    made = [[call["id"] for call in m.tool_calls or ()] for m in messages]
    roles = " ".join("call" if ids else m.role for m, ids in zip(messages, made, strict=True))
    ids = [each for some in made for each in some]
    found = {
        "calls in parallel": any(len(some) > 1 for some in made),
        "calls in a chain": "call tool call tool" in roles,
        "call ids that repeat": len(set(ids)) < len(ids),
        "a huge message": any(len(m.content) > 20_000 for m in messages),
        "several audiences": len({m.audience for m in messages}) > 1,
        "calls without result": len(ids) > len(pairing(messages)),
    }
    return {name for name, there in found.items() if there}


class Counted(unittest.TestCase):
    """A test that counts what its examples held, and fails if something was rare."""

    def setUp(self):
        self.tried, self.seen = 0, Counter()

    def note(self, expected, found):
        """One more example; all that is expected is looked for in the end."""
        self.tried += 1
        self.seen.update(dict.fromkeys(expected, 0))
        self.seen.update(found)
        for name in found:
            event(name)

    def tearDown(self):
        for name, count in self.seen.items() if self.tried >= 500 else ():
            self.assertGreaterEqual(100 * count, LEAST_PERCENT * self.tried, name)


class TestRollback(Counted):
    """A run in which something happened and was taken back, beside one in which it never did."""

    def take_back(self, run, control):
        """Take the latest compaction back. If that does not fit, both runs get a higher limit.

        It may be refused only where the run without overflows its limit.
        """
        if run.roll_back():
            return
        self.assertIn("no longer fit", run.refusal)
        measure_fixed(control.script)
        self.assertGreater(control.script.usage(), 1.0)
        for each in (run, control):
            each.limit(ROOM)
        self.assertTrue(run.roll_back(), run.refusal)

    def note_run(self, run, messages):
        """Count an example, in which something was taken back."""
        self.assertGreater(run.taken_back, 0)
        found = {"taken back at once": not run.refusal, "refused at first": bool(run.refusal)}
        self.note(
            {*found, *SHAPES}, {*shapes(messages), *(n for n, is_so in found.items() if is_so)}
        )

    @EXAMPLES
    @given(
        talks(pieces=14),
        CONFIGS,
        st.sampled_from(("compact", "extract_and_compact", "mask")),
        st.booleans(),
    )
    def test_prompts_are_those_of_a_run_without(self, messages, config, folding, extraction):
        """After compaction and rollback every audience's prompt is byte for byte the control's."""
        run, control = Run(config), Run(config)
        for each in (run, control):
            each.store(messages)
        if extraction:
            run.extract()
        getattr(run, folding)()
        assume(run.compactions)
        self.take_back(run, control)
        self.assertEqual(run.prompts(), control.prompts())
        self.assertEqual(run.script.history.messages(), control.script.history.messages())
        self.assertEqual(run.script.history.tokens(), control.script.history.tokens())
        self.assertEqual(verify_history(run.script), ())
        self.note_run(run, messages)

    @EXAMPLES
    @given(SEVERAL, CONFIGS, st.booleans())
    def test_the_latest_of_several(self, parts, config, restarted):
        """The earlier compactions stand; what is said and compacted afterwards is the control's."""
        run, control = Run(config), Run(config)
        *earlier, last = parts
        for each in (run, control):
            for part in earlier:
                each.store(part)
                each.compact()
            each.store(last)
        before = run.compactions
        run.extract_and_compact()
        assume(run.compactions > before > 0)
        for each in (run, control):
            each.say()
            if restarted:
                each.restart()
        self.take_back(run, control)
        self.assertEqual(run.prompts(), control.prompts())
        for each in (run, control):
            each.say()
            each.compact()
        self.assertEqual(run.prompts(), control.prompts())
        self.assertEqual(verify_history(run.script), ())
        self.note_run(run, last)

    @EXAMPLES
    @given(st.lists(PARTS, min_size=1, max_size=3), CONFIGS)
    def test_everything_taken_back_is_everything_said(self, parts, config):
        """Rolled back to the first compaction, the history is all that was ever said, in order."""
        run, control = Run(config), Run(config)
        for part in parts:
            for each in (run, control):
                each.store(part)
            run.compact()
        assume(run.compactions)
        for _ in range(run.compactions):
            self.take_back(run, control)
            self.assertEqual(verify_history(run.script), ())
        self.note_run(run, control.stored())
        self.assertFalse(run.roll_back())
        self.assertIn("no compaction", run.refusal)
        self.assertEqual(run.stored(), control.stored())
        self.assertEqual(run.prompts(), control.prompts())


class TestTrigger(Counted):
    @EXAMPLES
    @given(
        st.lists(st.tuples(talks(pieces=8, least=1), st.integers(0, 60)), min_size=1, max_size=3),
        TIGHT,
        st.sampled_from((0.5, 0.7, 0.8)),
    )
    def test_a_token_trigger_is_relieved(self, parts, config, threshold):
        """Usage is under the target afterwards, so that prompts hold all that is live."""
        run = Run(config)
        measure_fixed(run.script)
        for number, (part, lines) in enumerate(parts):
            run.store([*part, *[TALK] * lines])
            if number == len(parts) - 1:
                self.fill(run, threshold)
            run.relieve(threshold)
            if run.script.usage() < threshold:
                for viewer in VIEWERS:
                    prompt = build_prompt(run.script, TurnRequest(viewer))
                    self.assertEqual(prompt.left_out, ())
        assume(run.compactions)
        self.note(SHAPES, shapes([m for part, _ in parts for m in part]))

    @staticmethod
    def fill(run, threshold):
        short = (threshold - run.script.usage()) * run.script.limits().room.tokens
        run.store([TALK] * (int(short // 80) + 1))
        assert run.script.usage() >= threshold
