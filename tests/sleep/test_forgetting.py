"""One assistant forgets a player: everything that was made from the player's words goes."""

import json
from dataclasses import replace

from twisted.internet.defer import succeed

from evennia_ai.errors import StoreError
from evennia_ai.history.aside import ASIDE, put_aside
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker, utc_iso
from evennia_ai.rag_memory.entities import new_profile, observe, unmet_id
from evennia_ai.sleep.consolidation import consolidate_memories_to_semantic
from evennia_ai.sleep.forgetting import EMPTIED, OWED, STEPS, forget_people, remake_summary
from evennia_ai.testing import model_down
from tests.memory_assistant import ARIA, PEOPLE, MemoryWorldTest
from tests.waiting import wait_for

ALICE, BOB = (Speaker(name, PEOPLE[name]) for name in ("Alice", "Bob"))
SECRET = "zorblax"
WHISPER = private([ALICE.id])


def parrot(request):
    """A summariser that repeats the beginning of every line it is given."""
    lines = str(request.messages[-1]["content"]).splitlines()
    return " ".join(" ".join(line.split()[-4:]) for line in lines[1:] if line)[:1500] or "Quiet."


class ForgettingTest(MemoryWorldTest):
    """Alice, Bob and Aria have talked through two compactions and a dream."""

    def setUp(self):
        super().setUp()
        self.world.configure(
            compact_preserve_window=6, pre_compact_extraction_enabled=False, summary_max_tokens=400
        )
        self.world.model.default = parrot
        self.number = 0
        for _ in range(2):
            self.talk(10)
            self.compact()
        self.talk(4)
        self.derive()
        wait_for(consolidate_memories_to_semantic(self.script, self.body))
        self.others = self.lines_of(BOB)

    def talk(self, rounds):
        """So many rounds in which Alice tells, whispers and is answered, and Bob tells."""
        for _ in range(rounds):
            self.number += 1
            n = self.number
            self.world.later()
            self.script.history.append(
                [
                    Message("user", f"My boat is called {SECRET}{n}x.", speaker=ALICE),
                    Message("assistant", f"{SECRET}{n}x is a fine name.", speaker=ARIA_SPEAKER),
                    Message("user", f"I fear {SECRET}w{n}x.", speaker=ALICE, audience=WHISPER),
                    Message("user", f"The miller owes me {n} sacks of barley.", speaker=BOB),
                    Message("assistant", f"{n} sacks, I see.", speaker=ARIA_SPEAKER),
                ]
            )

    def derive(self):
        """What is made from their words."""
        messages = self.script.history.messages()
        mine = [m for m in messages if m.speaker_id == ALICE.id][-1]
        his = [m for m in messages if m.speaker_id == BOB.id][-1]
        journal, entities = self.body.journal, self.body.entities
        self.mine = journal.add("Alice is afraid.", source_message_ids=[mine.id]).id
        journal.add(f"Somebody said {SECRET}1x.", source_type="recalled")
        self.his = journal.add("Bob waits for barley.", source_message_ids=[his.id]).id
        at = self.script.now()
        alice = observe(new_profile(ALICE.id, "Alice", at), "Afraid of much.", at, mine.id)
        alice = observe(alice, "Owes Bob money.", at, his.id)
        bob = observe(new_profile(BOB.id, "Bob", at), "Knows the miller.", at, his.id)
        bob = replace(bob, aliases=(f"{SECRET}1x",), relationship=f"friend of {SECRET}1x")
        boat = new_profile(unmet_id(f"{SECRET}1x"), f"{SECRET}1x", at, "thing")
        entities.put({p.id: p for p in (alice, bob, boat)})
        self.script.ledger.add("I like jazz.", ALICE, state="approved")
        self.script.ledger.add("I like ale.", BOB, state="approved")
        self.script.ledger.add(f"{SECRET}1x floats.", ARIA_SPEAKER, state="proposed")
        self.script.state.note_extraction(
            {"ids": ["x1"], "profiles": {alice.id: None}, "profiles_after": {boat.id: None}}
        )
        self.world.write("conversation_damaged", [f"{{'content': '{SECRET}1x'}}", "'hay'"])
        put_aside(self.script.history.store, [f"{SECRET}1x"], "conversation_tail")

    def forget(self, **options):
        """Alice is forgotten."""
        options.setdefault("until", utc_iso(self.script.now()))
        done = forget_people(self.script, self.body, [ALICE.id], **options)
        return wait_for(done)

    def remake(self):
        """Every emptied summary is made again."""
        while wait_for(remake_summary(self.script, self.body)):
            continue

    def lines_of(self, speaker):
        """All that somebody said, live and archived."""
        archived = [m for s in self.script.history.segments() for m in s.messages]
        found = {m.id: m for m in (*archived, *self.script.history.messages())}
        return sorted((m.id, m.content) for m in found.values() if m.speaker_id == speaker.id)

    def everything(self):
        """All that is stored anywhere, as one text."""
        storage = self.world.storage
        stored = [storage.script.values, storage.body.values]
        return "\n".join(map(repr, [*stored, self.world.index.turns, self.world.memories()]))

    def assert_forgotten(self):
        everything = self.everything()
        found = everything.find(SECRET)
        self.assertEqual(found, -1, everything[max(0, found - 200) : found + 40])
        self.assertEqual(everything.find("I like jazz"), -1)
        self.assertEqual(self.lines_of(ALICE), [])
        self.assertEqual(self.lines_of(BOB), self.others)
        self.assert_proven()


ARIA_SPEAKER = Speaker("Aria", ARIA)


class TestForgotten(ForgettingTest):
    """What goes, and what stays."""

    def test_nothing_is_left(self):
        """No store holds her words, the proof is clean, and what Bob said is as it was."""
        self.assertTrue(SECRET in self.everything())
        counts = self.forget()
        self.assertEqual(counts["messages"], 48)
        self.assertEqual((counts["repeated"], counts["notes"]), (24, 2))
        self.remake()
        self.assert_forgotten()
        tombstones = self.script.history.tombstones()
        self.assertEqual(len(tombstones), 72)
        self.assertEqual(set(tombstones.values()), {utc_iso(self.script.now())})

    def test_what_others_told_stays(self):
        """Entries and observations that rest on others' words alone."""
        self.forget()
        self.assertEqual(self.body.journal.get(self.mine).content, "")
        self.assertEqual(self.body.journal.get(self.his).content, "Bob waits for barley.")
        alice = self.body.entities.get(ALICE.id)
        self.assertEqual([item.text for item in alice.observations], ["Owes Bob money."])
        bob = self.body.entities.get(BOB.id)
        self.assertEqual((bob.aliases, bob.relationship), ((), ""))
        self.assertIsNone(self.body.entities.get(unmet_id(f"{SECRET}1x")))
        self.assertEqual([note.text for note in self.script.ledger.entries()], ["I like ale."])
        self.assertEqual(self.world.attribute("conversation_damaged"), ["'hay'"])
        store = self.script.history.store
        self.assertEqual(store.get("conversation_tail", category=ASIDE), [])

    def test_summaries_are_made_again(self):
        """From what is left, at each tier; the markers and syntheses show the new text."""
        before = {r.id: r for r in self.script.history.summaries()}
        self.forget()
        emptied = [r for r in self.script.history.summaries() if r.text == EMPTIED]
        self.assertEqual(len(emptied), len(before))
        self.assertIn(EMPTIED, json.dumps(self.prompt()))
        self.remake()
        after = self.script.history.summaries()
        self.assertEqual({r.id for r in after}, before.keys())
        public = [r for r in after if r.audience == "public" and r.segment]
        self.assertEqual(len(public), 2)
        for record in public:
            self.assertRegex(record.text, "barley")
            entry = self.body.journal.get(f"compact_{record.id[1:]}")
            self.assertIn(record.text, entry.content)
        self.assertEqual(self.everything().find(EMPTIED), -1)
        texts = {
            m.metadata["summary_id"]: m for m in self.script.history.messages() if m.is_summary
        }
        for key, marker in texts.items():
            self.assertIn(self.script.history.summary(key).text, marker.content)
            self.assertEqual(marker, marker.counted(self.script.count))
        sources = {memory["metadata"]["source_id"] for memory in self.world.memories()}
        self.assertLessEqual({r.id for r in after if r.tier == "recent"}, sources)

    def test_without_a_model(self):
        """Where no model answers, the summaries are extracts of what is left."""
        self.forget()
        self.world.model.default = lambda request: (
            "Barley was spoken of." if request.model.startswith("offline") else model_down()
        )
        self.remake()
        records = [r for r in self.script.history.summaries() if r.segment]
        self.assertTrue(any(r.level == "extractive" for r in records))
        self.assert_forgotten()

    def test_no_summary_at_all(self):
        """Where not even an extract can be made, the summary stays empty, never with her words."""
        self.forget()
        self.world.model.default = model_down()
        self.remake()
        self.assert_forgotten()
        self.assertTrue(EMPTIED in self.everything())

    def test_later_words_stay(self):
        """What she says after she asked is new."""
        until = utc_iso(self.script.now())
        self.world.later()
        self.script.history.append([Message("user", "Hello again.", speaker=ALICE)])
        self.forget(until=until)
        self.assertEqual([text for _, text in self.lines_of(ALICE)], ["Hello again."])
        self.assert_proven()

    def test_twice(self):
        """Asked again, nothing more goes."""
        self.forget()
        self.remake()
        before = self.everything()
        self.assertEqual(set(self.forget().values()), {0})
        self.remake()
        self.assertEqual(self.everything(), before)

    def test_searches(self):
        """Nothing of it is found, and what Bob said is."""
        self.forget()
        self.remake()
        texts = [turn.text for turn in self.world.index.turns.values()]
        self.assertFalse([text for text in texts if SECRET in text])
        self.assertTrue([text for text in texts if "barley" in text])


class TestRollback(ForgettingTest):
    """Compactions that had forgotten messages."""

    def test_after_forgetting(self):
        """Both are taken back; what is forgotten stays forgotten."""
        self.forget()
        self.remake()
        for _ in range(2):
            self.roll_back()
            self.assert_forgotten()
        self.assertFalse([m for m in self.script.history.messages() if m.is_summary])
        self.assertEqual(len(self.lines_of(BOB)), 24)

    def test_before_forgetting(self):
        """What a rollback restored is forgotten live and in its segment."""
        self.roll_back()
        self.forget()
        self.remake()
        self.assert_forgotten()
        self.roll_back()
        self.assert_forgotten()

    def test_damage_stays_provable(self):
        """A segment whose checksum was wrong is not sealed anew."""
        history = self.script.history
        segment = next(history.segments())
        stored = {**segment.to_dict(), "sha256": "0" * 64}
        history.store.set(segment.id, stored, category="ai_archive")
        self.forget()
        evidence = history.evidence()
        [kept] = [part for part in evidence.segments if part.id == segment.id]
        self.assertNotEqual(kept.checksum, kept.sha256)
        self.assertTrue(kept.tombstones)


class Stopped(Exception):
    """The end of the process, staged."""


class TestInterrupted(ForgettingTest):
    """A run that ends before a step, and the next one after a restart."""

    def stop_before(self, step):
        def at_step(name):
            if name == step:
                raise Stopped(name)

        self.script.at_commit_step = at_step
        until = utc_iso(self.script.now())
        with self.assertRaises(Stopped):
            wait_for(forget_people(self.script, self.body, [ALICE.id], until))
            self.remake()
        self.world.restart()
        return until

    def test_at_each_step(self):
        """It is finished by the next run, whatever the first one did."""
        for step in STEPS:
            with self.subTest(step=step):
                self.setUp()
                until = self.stop_before(step)
                self.forget(until=until)
                self.remake()
                self.assert_forgotten()
                self.assertIsNone(self.world.attribute(OWED))

    def test_at_each_write(self):
        """The same where any write of the database fails."""
        for write in range(1, 60, 4):
            with self.subTest(write=write):
                self.setUp()
                until = utc_iso(self.script.now())
                self.world.storage.disk.fail_in(write)
                try:
                    wait_for(forget_people(self.script, self.body, [ALICE.id], until))
                    self.remake()
                except OSError:
                    self.world.restart()
                self.world.storage.disk.left = None
                self.forget(until=until)
                self.remake()
                self.assert_forgotten()


class TestStoresThatFail(ForgettingTest):
    """The index and semantic memory are cleared, or it is not done."""

    def test_an_index_that_fails(self):
        """What must leave the index stays noted until it has left."""
        index = self.world.index
        remove = index.remove

        def broken(scope, ids):
            raise OSError("read-only")

        index.remove = broken
        with self.assertRaises(StoreError):
            self.forget()
        self.assertTrue(self.world.attribute(OWED))
        index.remove = lambda scope, ids: 0  # says that it did
        with self.assertRaises(StoreError):
            self.forget()
        index.remove = remove
        self.forget()
        self.remake()
        self.assertIsNone(self.world.attribute(OWED))
        self.assert_forgotten()

    def test_a_memory_that_keeps_them(self):
        """The same for semantic memory."""
        kept = self.world.semantic.delete
        self.world.semantic.delete = lambda scope, ids: succeed(0)
        with self.assertRaises(StoreError):
            self.forget()
        self.assertTrue(self.world.attribute(OWED))
        self.world.semantic.delete = kept
        self.forget()
        self.remake()
        self.assert_forgotten()
