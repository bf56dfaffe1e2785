"""Token budgets: the room of a history, what fits, and the log of every request."""

import json
import unittest
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.errors import ModelError
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.history.stored import Unreadable
from evennia_ai.llm_interaction.budget import (
    EVENTS_KEPT,
    LEAST_SUMMARY,
    MARKER_TOKENS,
    REGIONS,
    TRACE,
    Caps,
    Limits,
    PromptLog,
    ReplyTrace,
    Room,
    TokenBudget,
    packed,
    shortened,
)
from evennia_ai.llm_interaction.servers import Window
from evennia_ai.llm_interaction.values import ModelFacts, ModelReply, TurnRequest
from evennia_ai.sleep.compaction.plan import MANUAL
from tests.asked import model_down
from tests.fake import FakeAssistant
from tests.memory_assistant import extract_and_compact
from tests.models import ScriptedModel
from tests.strategies import FEW, MANY, awkward_texts
from tests.waiting import wait_for

sizes = st.integers(1, 200_000)


class TestTokenBudget(unittest.TestCase):
    def setUp(self):
        regions = dict(zip(REGIONS, (200, 310, 120, 80, 400, 1500, 300, 90, 200), strict=True))
        self.event = TokenBudget(regions=regions, limit=4096, at=5.0, purpose="awake", model="m/x")

    def test_of_a_prompt(self):
        """It says its numbers by region."""
        shown = (
            "System: 200, Tools: 310, Ledger: 120, Examples: 80, Summaries: 400, History: 1500, "
        )
        shown += "Retrieved: 300, Tail: 90, Reserve: 200 (total 3200/4096)"
        self.assertEqual(str(self.event), shown)

    def test_round_trip(self):
        """It comes back with the reply's figures; what has its default is not stored."""
        reply = ModelReply(content="", model="m/y", prompt_tokens=7, completion_tokens=2, cost=0.0)
        log = PromptLog()
        self.assertEqual(log.answered(self.event, replace(reply, model="")).model, "m/x")
        private_one = replace(self.event, audience=private(["o1"]), trigger="sleep")
        done = log.answered(log.note(private_one), reply)
        self.assertEqual(log.events(), (done,))
        self.assertEqual((done.model, done.prompt_tokens, done.completion_tokens), ("m/y", 7, 2))
        for event in (self.event, private_one, done):
            self.assertEqual(TokenBudget.from_dict(event.to_dict()), event)
        self.assertEqual(
            set(TokenBudget(regions={"Tail": 1}, limit=9).to_dict()),
            {"regions", "limit", "audience"},
        )

    def test_unreadable(self):
        """A stored event of another shape is none."""
        sound = self.event.to_dict()
        for odd in ({"at": "now"}, {"regions": {"Tail": "x"}}, {"regions": [1]}, {"notes": 7}):
            with self.subTest(odd), self.assertRaises(Unreadable):
                TokenBudget.from_dict({**sound, **odd})

    def test_trace(self):
        """It comes back from what is stored, with all that a reply rests on."""
        many = {f"m{n}": 1 / (n + 1) for n in range(50)}
        bare = ReplyTrace(budget=TokenBudget(regions={"Tail": 1}, limit=9))
        self.assertEqual(set(json.loads(bare.to_text())), {"budget", "calls"})
        full = replace(bare, answers=tuple(many), given={"m2": 0.5}, found=many, cost=0.0)
        for trace in (bare, full):
            reply = Message("assistant", "So.", metadata={TRACE: trace.to_text()})
            self.assertEqual(ReplyTrace.of(reply), trace)
        self.assertIsNone(ReplyTrace.of(Message("assistant", "So.")))


class TestRoom(unittest.TestCase):
    def test_too_small(self):
        """It is never counted as less than a share of the limit."""
        room = Room(1000, 900, 50)
        self.assertTrue(room.is_too_small)
        self.assertEqual(room.tokens, 150)
        self.assertEqual(Room(0, 0, 0).usage(1), 1.0)

    @MANY
    @given(sizes, sizes, sizes, st.integers(1, 20))
    def test_a_compaction_gets_under(self, limit, fixed, reserved, summaries):
        """What is kept and as many summaries as one reader sees lie within the target."""
        room = Room(limit, fixed, reserved)
        cap = room.summary_cap(room.kept, summaries)
        if cap > LEAST_SUMMARY:
            whole = room.kept + summaries * (cap + MARKER_TOKENS)
            self.assertLessEqual(whole, room.target)

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

    @given(st.lists(awkward_texts, max_size=6), st.integers(0, 40))
    def test_no_character_is_lost(self, lines, room):
        """Whatever the room, all characters come out once and in order, in runs that fit."""
        runs = packed(lines, room, len)
        self.assertEqual("".join(piece for run in runs for piece in run), "".join(lines))
        for run in runs if room > 1 else ():
            self.assertLessEqual(sum(len(piece) + 1 for piece in run), room)


def talk(count):
    """Lines that are long enough to be worth a summary."""
    texts = [f"line {n}: the miller owes Bob {n} coins, due at dawn. " * 4 for n in range(count)]
    bob = Speaker("Bob", "o2.b")
    return [Message("user", text, speaker=bob) for text in texts]


class TestPromptLog(unittest.TestCase):
    def setUp(self):
        self.aria = FakeAssistant(ScriptedModel(default="They talked."), compact_preserve_window=4)
        self.aria.history.append(talk(12))

    def turn(self, **request):
        return wait_for(self.aria.run_turn(TurnRequest(**request)))

    def test_a_turn(self):
        """A turn's request is logged with its audience, its regions and the reply's figures."""
        audience = private(["o2.b"])
        self.aria.mind.model.answers = [ModelReply(content="Aye.", completion_tokens=3)]
        self.turn(audience=audience)
        (event,) = self.aria.prompts.events()
        self.assertEqual((event.purpose, event.audience), ("awake", audience))
        self.assertEqual((event.at, event.trigger), (self.aria.now(), ""))
        self.assertTrue(event.regions["History"])
        self.assertEqual(event.completion_tokens, 3)

    def test_no_answer(self):
        """A request that no model answers is logged too, without figures of a reply."""
        self.aria.mind.model.answers = [model_down()]
        self.aria.store.set("llm_offline_fallback", False)
        with self.assertRaises(ModelError):
            self.turn()
        self.assertEqual([e.completion_tokens for e in self.aria.prompts.events()], [0])

    def test_a_compaction(self):
        """Extraction and summary are logged with what triggered their compaction."""
        script = self.aria
        wait_for(extract_and_compact(script, MANUAL))
        events = script.prompts.events()
        self.assertEqual({e.purpose for e in events}, {"pre_compaction", "summary"})
        self.assertEqual({e.trigger for e in events}, {"manual"})
        for event in events:
            self.assertLessEqual(event.total, event.limit)
            self.assertGreater(event.regions["History"], 100)
        self.turn()
        self.assertEqual(script.prompts.events()[-1].trigger, "")

    def test_bounded(self):
        """The newest events are kept."""
        for _ in range(EVENTS_KEPT + 7):
            self.turn()
        self.assertEqual(len(self.aria.prompts.events()), EVENTS_KEPT)

    def test_no_talk(self):
        """A record holds nobody's words and no names."""
        self.turn()
        self.assertNotRegex(str(self.aria.prompts.events()), "miller|Bob")


class TestLimits(unittest.TestCase):
    def test_the_smallest_bound_sets_it(self):
        """The option, the model's window or the spend limit of a call; each names itself."""
        for option, window, call, tokens, by, remedy in (
            (8_000, None, None, 8_000, "max_context", "Raise"),
            (8_000, 4_000, 6_000, 4_000, "the window of m, by its server", "larger window"),
            (8_000, 9_000, 6_000, 6_000, "spend limit of a call", "Raise"),
        ):
            facts = ModelFacts(window=Window(window, "its server") if window else None)
            limits = Limits("m", facts, option, call, Caps(0, 0, 0, 0), 0, False)
            self.assertEqual(limits.tokens, tokens)
            self.assertIn(by, limits.source[0])
            self.assertIn(remedy, limits.source[1])
