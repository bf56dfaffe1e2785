"""Compaction where many talk in private, and where the context is over-full already."""

from evennia_ai.history.archive import UNSUMMARISED
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import Message, total_tokens
from evennia_ai.llm_interaction.budget import TARGET_SHARE
from evennia_ai.llm_interaction.contexts import CONTEXT_PRE_COMPACTION
from evennia_ai.sleep.compaction import run_pre_compaction_extraction
from evennia_ai.sleep.compaction.compact import FEW_STAY, Compaction, summary_cap
from evennia_ai.sleep.compaction.plan import MANUAL
from evennia_ai.testing import call
from tests.memory_assistant import MemoryWorldTest
from tests.waiting import wait_for

SUMMARY = "They spoke of the harvest in the tavern."


class CirclesTest(MemoryWorldTest):
    def made(self, default=SUMMARY, **config):
        """The world, with a model that says this and these options."""
        self.model = self.world.model
        self.model.default = default
        self.world.configure(**config)
        return self.world

    def whispered(self, circle, count, words=8):
        audience = private([f"o{circle}"])
        self.said([f"secret {circle}.{n}: " + "word " * words for n in range(count)], audience)

    def said(self, texts, audience=PUBLIC):
        self.script.history.append(Message("user", text, audience=audience) for text in texts)

    def live(self, audience=None):
        raw = [m for m in self.script.history.messages() if not m.is_summary]
        return [m for m in raw if audience is None or m.audience == audience]


class TestManyCircles(CirclesTest):
    def test_small_parts_stay(self):
        """They cost no model call and keep nobody else's talk from being folded."""
        self.made(compact_preserve_window=5)
        for circle in range(40):
            self.whispered(circle, 2)
        self.said(f"line {n}: " + "word " * 12 for n in range(45))
        result = self.compact()
        self.assertTrue(result["success"])
        self.assertFalse([r for r in self.model.requests if "secret" in str(r.messages)])
        self.assertEqual(result["compacted_messages"], 40)
        self.assertEqual(len(self.live()), 40 * 2 + 5)
        self.assert_proven()

    def test_a_part_that_does_not_shrink_stays(self):
        """Its summary is dropped; the others are stored."""

        def answer(request):
            text = str(request.messages)
            return "They said this and that. " * 7 if "secret" in text else SUMMARY

        self.made(answer, compact_preserve_window=2)
        self.said(f"line {n}: " + "word " * 12 for n in range(30))
        for _ in range(3):
            self.whispered(1, 7, words=6)
            self.said(f"more {n}: " + "word " * 12 for n in range(10))
            result = self.compact()
            self.assertTrue(result["success"], result)
            markers = [m for m in self.script.history.messages() if m.is_summary]
            of_circle = [m for m in markers if m.audience == private(["o1"])]
            self.assertLess(total_tokens(of_circle), 7 * 3 * 20)
            self.assert_proven()


class TestFewLines(CirclesTest):
    """Scopes of which too few lines would leave for a summary."""

    def circles(self, number, words):
        """A line that Alice said in confidence to each of so many others."""
        for other in range(number):
            text = f"secret {other}.0: " + "word " * words
            self.said([text], private(["o1.a", f"o{other}.z"]))

    def archived_alone(self):
        records = self.script.history.summaries()
        return [record for record in records if record.tier == UNSUMMARISED]

    def assert_can_be_taken_back(self, before):
        """The archive is proven and readable; taken back, all is as it was."""
        self.assert_proven()
        for record in self.archived_alone():
            (message,) = self.script.history.below(record.id)
            self.assertEqual(message.audience, record.audience)
        self.assertFalse([r for r in self.model.requests if "secret" in str(r.messages)])
        self.roll_back()
        self.assertEqual(self.script.history.messages(), before)
        self.assert_proven()

    def cap(self, plan):
        return summary_cap(
            self.script.limits(),
            self.script.history.messages(),
            plan.staying,
            plan.summarised,
        )

    def test_they_take_no_room_from_others(self):
        """However many there are, the next summary is as long as without them."""
        self.made(max_context_tokens=16_000, compact_preserve_window=4)
        self.said(f"line {n}: " + "word " * 12 for n in range(30))
        alone = self.cap(Compaction(self.script, MANUAL).plan)
        self.circles(40, words=2)
        self.said(f"line {n}: " + "word " * 12 for n in range(4))
        plan = Compaction(self.script, MANUAL).plan
        self.assertEqual([*plan.parts], [PUBLIC])
        self.assertEqual(self.cap(plan), alone)

    def test_where_they_fill_the_room(self):
        """They are archived without a summary, and usage gets under the target."""
        world = self.made(max_context_tokens=8000, compact_preserve_window=6)
        self.circles(100, words=60)
        self.said(f"line {n}: " + "word " * 12 for n in range(20))
        self.said(["word " * 12 for _ in range(100)], private(["o1.a"]))
        before = self.script.history.messages()
        self.assertGreater(self.script.usage(), 0.5)
        result = self.compact()
        self.assertTrue(result["success"])
        self.assertEqual(len(self.archived_alone()), 100)
        self.assertLessEqual(self.script.usage(), TARGET_SHARE)
        world.configure(max_context_tokens=100_000)
        self.assert_can_be_taken_back(before)

    def test_when_they_are_old(self):
        """Many weeks later they leave too, though no summary stands for them."""
        world = self.made(compact_preserve_window=4)
        self.circles(3, words=8)
        self.said(f"line {n}: " + "word " * 12 for n in range(30))
        self.assertEqual([*Compaction(self.script, MANUAL).plan.parts], [PUBLIC])
        world.later(FEW_STAY.total_seconds() + 1)
        before = self.script.history.messages()
        self.compact()
        self.assertEqual(len(self.archived_alone()), 3)
        markers = [m for m in self.script.history.messages() if m.is_summary]
        self.assertEqual([m.audience for m in markers], [PUBLIC])
        self.assert_can_be_taken_back(before)


class TestOverfull(CirclesTest):
    """A history that does not fit into one prompt any more."""

    def extract(self):
        self.model.requests.clear()
        self.model.default = lambda request: call("noop")
        return wait_for(run_pre_compaction_extraction(self.script, self.body, max_iterations=3))

    def shown(self):
        requests = [r for r in self.model.requests if r.purpose == CONTEXT_PRE_COMPACTION]
        return [str(r.messages) for r in requests]

    def test_what_leaves_is_extracted_first(self):
        """The oldest lines, that a prompt would leave out, are shown; each request fits."""
        self.made(max_context_tokens=8000)
        self.said(f"line {n}: " + "word " * 40 for n in range(400))
        self.assertGreater(self.script.usage(), 1.5)
        leaving = Compaction(self.script, MANUAL).plan.leaving
        self.extract()
        shown = "\n".join(self.shown())
        names = [message.content.split(":")[0] + ":" for message in leaving]
        self.assertEqual([name for name in names if name not in shown], [])
        budget = self.script.prompts.events()[-1]
        self.assertLessEqual(budget.total, self.script.limits().tokens)
        self.assertEqual(budget.left_out, 0)

    def test_each_request_shows_one_scope(self):
        """A circle's lines are shown once, whole, and with nothing that was said aloud."""
        self.made(max_context_tokens=8000)
        for _ in range(4):
            self.said(f"line {n}: " + "word " * 40 for n in range(150))
            for circle in range(10):
                self.whispered(circle, 3)
        self.assertGreater(self.script.usage(), 3.0)
        self.extract()
        circles = [text for text in self.shown() if "secret" in text]
        self.assertEqual(len(circles), 10)
        self.assertGreater(len(self.shown()), 14)
        for circle in range(10):
            (text,) = (each for each in circles if f"secret {circle}.0:" in each)
            self.assertEqual(text.count("secret "), len(self.live(private([f"o{circle}"]))))
            self.assertNotIn("line ", text)
