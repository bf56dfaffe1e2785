"""What was said longer ago than `keep_days` goes, with what was made from it; the rest stays."""

import unittest
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.features.bonds import bond_with, note_event
from evennia_ai.history.archive import EMPTIED
from evennia_ai.history.messages import Message, pairing, utc_iso
from evennia_ai.history.verification import Evidence
from evennia_ai.llm_interaction.summary import NOTHING_SAID
from evennia_ai.privacy.closure import Made, plan_ageing
from evennia_ai.privacy.forget import forget_old
from tests.privacy.test_closure import ALICE as ANNA
from tests.privacy.test_closure import call, line, reply, result, talks
from tests.privacy.test_forget import ALICE, AT, BOB, SECRET, ForgettingTest, Stopped
from tests.steps import raising_at
from tests.strategies import MANY
from tests.waiting import alone, wait_for

DAY_S = 86_400.0
# More messages than are talked here.
MOST = 10_000


class OldTalkTest(ForgettingTest):
    """A month after an evening of old talk there is another one, and a summary of both."""

    def setUp(self):
        super().setUp()
        self.script.ledger.add(
            "Guests like soup.",
            ALICE,
            state="proposed",
            source=self.script.history.messages()[-1].id,
        )
        [soup] = [note for note in self.script.ledger.entries() if "soup" in note.text]
        self.script.ledger.change(soup.id, "approved", BOB)
        self.world.later(40 * DAY_S)
        self.before = utc_iso(self.script.now() - 30 * DAY_S)
        self.new = []
        for n in range(12):
            self.world.later()
            lines = [
                Message("user", f"The weir is {n} feet high.", speaker=BOB),
                self.said(f"{n} feet, I see.", BOB),
            ]
            self.new += [m.id for m in self.script.history.append(lines)]
        entry = self.body.journal.add("The weir is high.", source_message_ids=self.new[:1])
        self.entry = entry.id
        self.texts = self.said_since()
        self.compact()

    def said_since(self):
        return [m.content for m in self.script.history.by_ids(self.new)]

    def age(self, most=MOST):
        arguments = self.script, self.body, self.before, AT, most
        return wait_for(alone(forget_old, *arguments))

    def assert_aged(self):
        """Nothing old is left; what was said since is as it was, and the history is proven."""
        everything = self.everything().lower()
        for word in (SECRET.lower(), "barley", "afraid", "floats"):
            place = everything.find(word)
            self.assertEqual(place, -1, everything[max(0, place - 200) : place + 40])
        self.assertEqual(self.said_since(), self.texts)
        self.assertEqual(self.body.journal.get(self.entry).content, "The weir is high.")
        notes = [note.text for note in self.script.ledger.entries()]
        kept = ["I like jazz.", "I like ale.", "Guests like a fire.", "Guests like soup."]
        self.assertEqual(notes, kept)
        self.assertFalse(self.world.script.state.outbox)
        self.assert_proven()


class TestAged(OldTalkTest):
    def test_nothing_old_is_left(self):
        """Also before the summaries are made again; of those of old talk alone nothing is left."""
        self.assertIn("barley", self.everything())
        counts = self.age()
        self.assertEqual(counts["messages"], 24 * 5)
        self.assert_aged()
        self.assertEqual(len(self.script.history.tombstones()), 24 * 5)
        before = len(self.world.model.requests)
        self.remake()
        self.assert_aged()
        self.assertEqual(self.everything().find(EMPTIED), -1)
        records = [r for r in self.script.history.summaries() if r.audience == "public"]
        texts = {r.tier: r.text for r in records if r.segments}
        self.assertIn(NOTHING_SAID, [r.text for r in records])
        self.assertRegex(texts["recent"], "feet high")
        long = [r for r in records if r.tier == "long"][-1]
        self.assertEqual(long.text, NOTHING_SAID)  # of old talk alone
        asked = len(self.world.model.requests) - before
        self.assertLessEqual(asked, sum(r.text != NOTHING_SAID for r in records))

    def test_a_part_at_a_time(self):
        """The oldest first, until all is gone; a day that took a part is proven, too."""
        counts = []
        while not counts or counts[-1] == 50:
            counts.append(self.age(50)["messages"])
            self.assertEqual(self.said_since(), self.texts)
        self.assertEqual(counts, [50, 50, 20])
        self.assert_aged()

    def test_again(self):
        """Another day nothing more goes, and what was made again stays."""
        self.age()
        self.remake()
        before = self.everything()
        arguments = self.script, self.body, self.before, "2027-03-01", MOST
        counts = wait_for(alone(forget_old, *arguments))
        self.assertEqual(counts, {"messages": 0, "others": 0})
        self.assertEqual(self.everything(), before)

    def test_features(self):
        """Of a bond goes what rests on an old line; the points of deeds stay."""
        note_event(self.script, BOB, 5, "Bob told of barley", self.others[-1][0])
        note_event(self.script, BOB, 5, "paid")
        self.age()
        self.assertEqual([e.why for e in bond_with(self.script, BOB.id).events], ["paid"])

    def test_rolled_back(self):
        """A rollback brings nothing old back."""
        self.age()
        self.remake()
        while self.script.history.last_compaction():
            self.roll_back()
            self.assert_aged()

    def test_at_each_step(self):
        """A run that ends anywhere is finished by the next one of the day."""
        steps = []
        self.script.at_commit_step = steps.append
        self.age()
        for step in dict.fromkeys(steps):
            with self.subTest(step=step):
                self.setUp()
                self.script.at_commit_step = raising_at(step, Stopped)
                with suppress(Stopped):
                    self.age()
                self.world.restart()
                self.age()
                self.assert_aged()
        self.assertEqual(len(set(steps)), 9)


class TestPlan(unittest.TestCase):
    """What goes, as ids: lines of day 1 are old, those of day 2 are not."""

    def plan(self, messages, made=(), most=MOST, old=0):
        dated = [
            Message.from_dict({**m.to_dict(), "created_at": f"2026-01-0{1 + (n >= old)}"})
            for n, m in enumerate(messages)
        ]
        evidence = Evidence(tuple(dated), (), {}, frozenset(), len(dated), "")
        return plan_ageing(evidence, made, "2026-01-02", most)

    def test_what_was_made(self):
        """What names no line that it rests on goes by its own age; pinned notes stay."""
        made = [
            Made("e1", ("m01", "m02"), "Hay."),
            Made("e2", ("m02",), "Hay."),
            Made("e3", (), "Hay.", at="2026-01-01"),
            Made("e4", (), "Hay.", at="2026-01-02"),
            Made("o1", ("e1",), "Hay."),
            Made("l1", ("m01",), "Hay.", is_pinned=True),
            Made("l2", ("command",), "Hay."),
        ]
        found = self.plan([line(1, "Hay.", ANNA), line(2, "Hay.", ANNA)], made, old=1)
        self.assertEqual(found.theirs, {"m01"})
        self.assertEqual(found.things, {"e1", "e3", "o1"})

    def test_copies_since(self):
        """A newer search that found an old line goes with its call; what was said of it stays."""
        talk = [
            line(1, "My boat is called the Zorblax of old.", ANNA),
            call(2),
            result(3, 2, '{"id": "m01", "text": "My boat is called the Zorblax of old."}'),
            reply(4, "Your boat is called the Zorblax of old.", hits=["m01"]),
        ]
        found = self.plan(talk, old=1)
        self.assertEqual((found.theirs, found.replies), ({"m01"}, {"m02", "m03"}))

    @MANY
    @given(talks(), st.integers(0, 12), st.integers(1, 12))
    def test_any_talk(self, messages, old, most):
        """The oldest go, at most so many; no newer line of a person, and no half of a call."""
        found = self.plan(messages, most=most, old=old)
        gone = found.theirs | found.replies
        self.assertEqual(found.theirs, {m.id for m in messages[: min(old, most)]})
        for message in messages:
            if message.id in gone - found.theirs:
                self.assertTrue(message.role == "tool" or message.tool_calls)
        for end, begin in pairing(messages).items():
            self.assertEqual(messages[end].id in gone, messages[begin].id in gone)
