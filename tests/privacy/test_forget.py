"""One assistant forgets a player: everything that was made from the player's words goes."""

import json
from contextlib import suppress
from dataclasses import replace

from twisted.internet.defer import succeed

from evennia_ai.errors import StoreError
from evennia_ai.features.bonds import bond_with, note_event
from evennia_ai.history.archive import EMPTIED
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker, new_id
from evennia_ai.history.stored import ASIDE, put_aside
from evennia_ai.history.verification import verify
from evennia_ai.llm_interaction.budget import TokenBudget
from evennia_ai.llm_interaction.summary import NOTHING_SAID
from evennia_ai.llm_interaction.values import OFFLINE_MODEL
from evennia_ai.privacy.closure import plan_forgetting
from evennia_ai.privacy.forget import Removal, forget_people
from evennia_ai.rag_memory.entities import new_profile, observe, unmet_id, with_alias
from evennia_ai.rag_memory.journal import synthesis_id
from evennia_ai.recall.values import Query
from evennia_ai.sleep import run_sleep_tick
from evennia_ai.sleep.compaction.behind import Remaking, begin_behind
from evennia_ai.sleep.compaction.compact import MOST_WAIT_S
from evennia_ai.sleep.consolidation import consolidate_memories_to_semantic
from evennia_ai.turns.runtime import Cue
from tests.asked import model_down, source_of
from tests.memory_assistant import ARIA, PEOPLE, MemoryWorldTest
from tests.steps import raising_at
from tests.waiting import alone, wait_for

ALICE, BOB = (Speaker(name, PEOPLE[name]) for name in ("Alice", "Bob"))
ARIA_SPEAKER = Speaker("Aria", ARIA)
SECRET = "Zorblax"
WHISPER = private([ALICE.id])
AT = "2027-01-15T08:00:00.000+00:00"


def parrot(request):
    """A summariser that repeats the end of every line it is given."""
    lines = source_of(request.messages).splitlines()
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
            lines = [
                Message("user", f"My boat is called {SECRET}{n}x.", speaker=ALICE),
                self.said(f"{SECRET}{n}x is a fine name.", ALICE),
                Message("user", f"I fear {SECRET}w{n}x.", speaker=ALICE, audience=WHISPER),
                Message("user", f"The miller owes me {n} sacks of barley.", speaker=BOB),
                self.said(f"{n} sacks, I see.", BOB),
            ]
            self.script.history.append(lines)

    def said(self, text, asker, **metadata):
        metadata = {"asker": asker.id, **metadata}
        return Message("assistant", text, speaker=ARIA_SPEAKER, metadata=metadata)

    def derive(self):
        """What is made from their words."""
        messages = self.script.history.messages()
        mine = [m for m in messages if m.speaker_id == ALICE.id][-1]
        his = [m for m in messages if m.speaker_id == BOB.id][-1]
        journal, entities, at = self.body.journal, self.body.entities, self.script.now()
        self.mine = journal.add("Alice is afraid.", source_message_ids=[mine.id]).id
        journal.add(f"Somebody said: my boat is called {SECRET}1x.", source_type="recalled")
        self.his = journal.add("Bob waits for barley.", source_message_ids=[his.id]).id
        alice = observe(new_profile(ALICE.id, "Alice", at), "Afraid of much.", at, self.mine)
        alice = observe(alice, "Owes Bob money.", at, his.id)
        bob = observe(new_profile(BOB.id, "Bob", at), "Knows the miller.", at, [his.id, mine.id])
        bob = with_alias(bob, f"{SECRET}1x", at, mine.id, "public")
        boat = new_profile(unmet_id(f"{SECRET}1x"), f"{SECRET}1x", at, "thing")
        entities.put({p.id: p for p in (alice, bob, boat)})
        self.script.ledger.add("I like jazz.", ALICE, state="approved")
        self.script.ledger.add("I like ale.", BOB, state="approved")
        self.script.ledger.add(
            f"{SECRET}1x floats.", ARIA_SPEAKER, state="proposed", source=mine.id
        )
        self.script.ledger.add("Guests like a fire.", ARIA_SPEAKER, state="proposed")
        wait_for(self.script.memory.search(Query("jazz")))  # from now on the index has the notes
        for odd in ({"speaker": ALICE.id}, {"id": mine.id}, {"id": his.id}):
            put_aside(self.script.history.store, odd, "conversation_history")

    def forget(self, asked_at=AT, until=""):
        return wait_for(alone(forget_people, self.script, self.body, [ALICE.id], asked_at, until))

    def remake(self):
        """Every emptied summary is made again, until a model fails."""
        self.script.runtime.summaries.remake_waits = 0, 0.0
        while self.script.state.stale and not self.script.runtime.summaries.remake_waits[0]:
            wait_for(Remaking(self.script).run())

    def lines_of(self, speaker):
        """All that somebody said, live and archived."""
        archived = [m for s in self.script.history.segments() for m in s.messages]
        messages = {m.id: m for m in (*archived, *self.script.history.messages())}
        return sorted((m.id, m.content) for m in messages.values() if m.speaker_id == speaker.id)

    def everything(self):
        """All that is stored anywhere, as one text."""
        storage = self.world.storage
        stored = [storage.script.values, storage.body.values]
        return "\n".join(map(repr, [*stored, self.world.index.turns, self.world.memories()]))

    def assert_forgotten(self):
        everything = self.everything()
        place = everything.lower().find(SECRET.lower())
        self.assertEqual(place, -1, everything[max(0, place - 200) : place + 40])
        self.assertEqual(everything.find("I like jazz"), -1)
        self.assertEqual(self.lines_of(ALICE), [])
        self.assertEqual(self.lines_of(BOB), self.others)
        self.assertFalse(self.world.script.state.outbox)
        violations = self.script.history.evidence()
        self.assertEqual(sum(violations.aside.values()), 1)
        self.assert_proven()

    def assert_proven(self):
        """Apart from what was put aside before."""
        self.script.history.store.delete("conversation_history", ASIDE)
        super().assert_proven()
        put_aside(self.script.history.store, {}, "conversation_history")


class TestForgotten(ForgettingTest):
    def test_nothing_is_left(self):
        """No store holds her words, the proof is clean, and what Bob said is as it was."""
        self.assertIn(SECRET, self.everything())
        self.assertEqual(self.forget(), {"messages": 48, "others": 31})
        self.assert_forgotten()  # before the summaries are made again
        turns = self.world.index.turns
        self.assertNotIn(self.mine, turns)
        self.assertFalse([turn.text for turn in turns.values() if EMPTIED in turn.text])
        self.remake()
        self.assert_forgotten()
        self.assertTrue([turn for turn in turns.values() if "barley" in turn.text])
        tombstones = self.script.history.tombstones()
        self.assertEqual((len(tombstones), set(tombstones.values())), (72, {AT}))

    def test_summaries_of_her_words_alone(self):
        """Made again they say that nothing was said, for which no model is asked."""
        self.forget()
        before = len(self.world.model.requests)
        self.remake()
        asked = len(self.world.model.requests) - before
        records = self.script.history.summaries()
        self.assertEqual({r.text for r in records if r.audience == WHISPER}, {NOTHING_SAID})
        others = sum(record.text != NOTHING_SAID for record in records)
        self.assertLessEqual(asked, others)
        self.assertLessEqual(len(self.script.state.remade), others)

    def test_what_others_told_stays(self):
        """Entries, observations and notes that rest on others' words alone."""
        self.forget()
        self.assertEqual(self.body.journal.get(self.mine).content, "")
        self.assertEqual(self.body.journal.get(self.his).content, "Bob waits for barley.")
        alice, bob = (self.body.entities.get(each.id) for each in (ALICE, BOB))
        self.assertEqual([item.text for item in alice.observations], ["Owes Bob money."])
        self.assertEqual(bob.names("staff"), ("Bob",))
        self.assertEqual([item.text for item in bob.observations], ["Bob waits for barley."])
        self.assertIsNone(self.body.entities.get(unmet_id(f"{SECRET}1x")))
        notes = [note.text for note in self.script.ledger.entries()]
        self.assertEqual(notes, ["I like ale.", "Guests like a fire."])

    def test_notes_that_repeat(self):
        """Its own note with five of her words in a row goes; one that Bob made himself stays."""
        words = f"my boat is called {SECRET}1x"
        self.script.ledger.add(f"They say {words}.", ARIA_SPEAKER, state="proposed")
        self.script.ledger.add(f"Alice says {words}.", BOB, state="approved")
        self.forget()
        notes = [note.text for note in self.script.ledger.entries()]
        self.assertEqual(notes, ["I like ale.", "Guests like a fire.", f"Alice says {words}."])

    def test_bonds_of_others(self):
        """Events in them go by what they rest on or repeat in a row of her words, not by name."""
        [hers] = [m for m in self.script.history.messages() if m.speaker_id == ALICE.id][-1:]
        for why, source in (
            ("helped Alice home", ""),
            ("Alice said so", hers.id),
            (f"my boat is called {SECRET}{self.number}x", ""),
            ("paid", ""),
        ):
            note_event(self.script, BOB, 5, why, source)
        self.forget()
        left = [event.why for event in bond_with(self.script, BOB.id).events]
        self.assertEqual(left, ["helped Alice home", "paid"])

    def test_what_was_said_unasked(self):
        """A line that nobody asked for goes if it was for her alone: a delivery, a greeting."""
        carol = Speaker("Carol", "o4.c")
        delivered = self.said('Bob asked me to tell you: "Pay."', BOB, **{"for": carol.id})
        lines = [
            self.said("Good evening, Carol.", carol),
            Message("assistant", "Sit by the fire, Carol!", speaker=ARIA_SPEAKER),
            Message("assistant", "Psst.", speaker=ARIA_SPEAKER, audience=private([carol.id])),
            self.said("Carol was here.", BOB),
        ]
        ids = [message.id for message in self.script.history.append([delivered, *lines])]
        self.script.runtime.cue = Cue("Carol has come", self.script.now())
        self.script.runtime.forget([carol.id], "")
        self.assertIsNone(self.script.runtime.cue)
        wait_for(alone(forget_people, self.script, self.body, [carol.id], AT))
        left = [message.content for message in self.script.history.by_ids(ids)]
        self.assertEqual(left, ["Sit by the fire, Carol!", "Carol was here."])
        self.assert_proven()

    def test_summaries_are_made_again(self):
        """From what is left, at each tier; markers, syntheses and the index show the new text."""
        before = {r.id for r in self.script.history.summaries()}
        self.forget()
        emptied = {r.id for r in self.script.history.summaries() if r.text == EMPTIED}
        self.assertEqual(emptied, before)
        self.assertIn(EMPTIED, json.dumps(self.prompt()))
        self.remake()
        after = self.script.history.summaries()
        self.assertEqual({r.id for r in after}, before)
        public = [r for r in after if r.audience == "public" and r.segments]
        self.assertEqual(len(public), 2)
        for record in public:
            self.assertRegex(record.text, "barley")
            self.assertIn(record.text, self.body.journal.get(synthesis_id(record.id)).content)
        self.assertEqual(self.everything().find(EMPTIED), -1)
        markers = [m for m in self.script.history.messages() if m.is_summary]
        for marker in markers:
            text = self.script.history.summary(marker.metadata["summary_id"]).text
            self.assertIn(text, marker.content)
            self.assertEqual(marker, marker.counted(self.script.count))
        recent = {synthesis_id(r.id) for r in after if r.tier == "recent"}
        self.assertLessEqual(recent, self.world.syntheses().keys())

    def test_summaries_of_others_words(self):
        """They and their entries stay as they are."""
        carol = Speaker("Carol", "o4.c")
        self.script.history.append([Message("user", "My ring is of quorvium.", speaker=carol)])
        self.talk(4)
        self.compact()
        records = {r.id: r for r in self.script.history.summaries()}
        entries = {key: self.body.journal.get(synthesis_id(key)) for key in records}
        wait_for(alone(forget_people, self.script, self.body, [carol.id], AT))
        emptied = {r.id for r in self.script.history.summaries() if r.text == EMPTIED}
        self.assertTrue(emptied < records.keys())
        for key in records.keys() - emptied:
            self.assertEqual(self.script.history.summary(key), records[key])
            self.assertEqual(self.body.journal.get(synthesis_id(key)), entries[key])

    def test_a_compaction_before_they_are_made_again(self):
        """A summary made of an emptied one is made again as well."""
        self.forget()
        self.talk(4)
        self.compact()
        self.remake()
        self.assertFalse([r for r in self.script.history.summaries() if "forgotten" in r.text])

    def test_without_a_model(self):
        """The summaries are extracts; where none can be made they stay empty, and end."""
        self.forget()
        self.world.model.default = model_down()
        self.remake()
        self.assert_forgotten()
        self.assertIn(EMPTIED, self.everything())
        self.world.model.default = lambda request: (
            "Barley was spoken of." if request.model.startswith("offline") else model_down()
        )
        self.remake()
        records = [r for r in self.script.history.summaries() if r.segments]
        self.assertIn("extractive", {r.level for r in records})
        self.assert_forgotten()

    def test_a_night_before_they_are_made_again(self):
        """Whatever summarises: no summary that could be made again stays empty."""
        for model in (OFFLINE_MODEL, "scripted/model"):
            for gives_up in (False, True):
                with self.subTest(model=model, gives_up=gives_up):
                    self.setUp()
                    self.script.model_name = model
                    self.forget()
                    empty = [r for r in self.script.history.summaries() if r.text == EMPTIED]
                    self.assertTrue(empty)
                    if gives_up:
                        self.world.model.default = model_down()
                    for _ in range(9 if gives_up else 1):
                        begin_behind(self.script)
                        wait_for(run_sleep_tick(self.script, self.body))
                        self.world.later(MOST_WAIT_S)
                    self.world.model.default = parrot
                    self.remake()
                    self.assertEqual(self.everything().find(EMPTIED), -1)
                    self.assert_forgotten()

    def test_later_words_stay(self):
        """What she says after she asked is new, also where a compaction archived it meanwhile."""
        until, before = new_id("m"), self.lines_of(ALICE)
        self.talk(6)
        self.compact()
        later = [each for each in self.lines_of(ALICE) if each not in before]
        self.others = self.lines_of(BOB)
        self.forget(until=until)
        self.assertEqual(self.lines_of(ALICE), later)
        self.assertEqual(self.lines_of(BOB), self.others)
        self.assert_proven()

    def test_a_copy_of_a_summary(self):
        """A reply that drew on a summary keeps its words and loses the copy, live and archived."""
        for archives in (False, True):
            key = self.script.history.summary_ids()[0]
            hit = {"id": synthesis_id(key), "text": f"{SECRET}1x"}
            reply = self.said("It is on Friday.", BOB, memories=[hit])
            [live] = self.script.history.append([reply])
            if archives:
                self.talk(6)
                self.compact()
            self.others = self.lines_of(BOB)
            self.forget()
            self.remake()
            self.assert_forgotten()
            [left] = self.script.history.by_ids([live.id])
            self.assertEqual((left.content, left.metadata["memories"]), (live.content, []))
            self.talk(4)  # she comes back, and is forgotten again

    def test_budgets(self):
        """Requests for private talk with her are no longer listed."""
        event = TokenBudget(at=1.0, purpose="awake", model="m", regions={"Tail": 1}, limit=9)
        for audience in (private([ALICE.id, BOB.id]), WHISPER, private([BOB.id])):
            self.script.prompts.note(replace(event, audience=audience))
        self.forget()
        kept = [each.audience for each in self.script.prompts.events() if each.at == 1.0]
        self.assertEqual(kept, [private([BOB.id])])

    def test_twice(self):
        """Asked again, nothing more goes."""
        self.forget()
        self.remake()
        before = self.everything()
        self.assertEqual(self.forget("2028"), {"messages": 0, "others": 0})
        self.remake()
        self.assertEqual(self.everything(), before)


class TestRollback(ForgettingTest):
    def test_after_forgetting(self):
        """Both are taken back; what is forgotten stays forgotten."""
        self.forget()
        self.remake()
        for _ in range(2):
            self.roll_back()
            self.assert_forgotten()
        self.assertFalse([m for m in self.script.history.messages() if m.is_summary])
        self.assertEqual(len(self.lines_of(BOB)), 24)

    def test_each_step_behind_a_rollback(self):
        """Between any two of them every message is in one place."""
        self.roll_back()
        history = self.script.history
        plan = plan_forgetting(history.evidence(), (), [ALICE.id])
        removal = Removal(self.script, self.body, [ALICE.id], AT, plan)
        odd = len(verify(history.evidence()))
        for _ in removal.steps():
            self.assertEqual(len(verify(history.evidence())), odd)

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
        kept = history.segment(segment.id)
        self.assertNotEqual(kept.checksum, kept.sha256)
        self.assertLess(len(kept.messages), len(segment.messages))


class Stopped(Exception):
    """The end of the process, staged."""


class TestInterrupted(ForgettingTest):
    """A run that ends anywhere is finished by the next one after a restart."""

    def finish(self):
        """The next run for the same request."""
        self.world.restart()
        self.forget()
        self.remake()
        self.assert_forgotten()

    def test_at_each_step(self):
        """Whatever the first run did."""
        steps = []
        self.script.at_commit_step = steps.append
        self.forget()
        self.remake()
        for step in dict.fromkeys(steps):
            with self.subTest(step=step):
                self.setUp()
                self.script.at_commit_step = raising_at(step, Stopped)
                with self.assertRaises(Stopped):
                    self.forget()
                    self.remake()
                self.finish()
        self.assertEqual(len(set(steps)), 11)

    def test_at_each_write(self):
        """The same where any write of the database fails."""
        for write in range(1, 60, 4):
            with self.subTest(write=write):
                self.setUp()
                self.world.storage.disk.fail_in(write)
                with suppress(OSError):
                    self.forget()
                    self.remake()
                self.world.storage.disk.left = None
                self.finish()

    def test_stores_that_fail(self):
        """The index and semantic memory are cleared, or it is not done."""

        def broken(scope, ids):
            raise OSError("read-only")

        for store, name, odd in (
            (self.world.index, "remove", broken),
            (self.world.index, "remove", lambda scope, ids: 0),  # says that it did
            (self.world.semantic, "delete", lambda scope, ids: succeed(0)),
        ):
            setattr(store, name, odd)
            with self.assertRaises(StoreError):
                self.forget()
            self.assertTrue(self.world.script.state.outbox)
            delattr(store, name)
        self.finish()
