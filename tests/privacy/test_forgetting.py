"""One assistant forgets a player: everything that was made from the player's words goes."""

import json
from dataclasses import replace

from twisted.internet.defer import succeed

from evennia_ai.errors import StoreError
from evennia_ai.history.archive import ARCHIVE
from evennia_ai.history.aside import ASIDE, put_aside
from evennia_ai.history.audience import private
from evennia_ai.history.forgetting import REDACTED, Heard
from evennia_ai.history.messages import Message, Speaker, new_id, utc_iso
from evennia_ai.history.records import LIVE, CompactionRecord
from evennia_ai.llm_interaction.budget import BudgetEvent
from evennia_ai.llm_interaction.reply_trace import ReplyTrace
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.privacy.forgetting import EMPTIED, KEPT, OWED, STEPS, forget_people, remake_summary
from evennia_ai.rag_memory.entities import new_profile, observe, unmet_id, with_alias
from evennia_ai.recall.values import Query
from evennia_ai.sleep.compaction import compact_conversation_history
from evennia_ai.sleep.compaction.publishing import synthesis_id
from evennia_ai.sleep.consolidation import consolidate_memories_to_semantic
from evennia_ai.testing import model_down
from tests.asked import source_of
from tests.memory_assistant import ARIA, PEOPLE, MemoryWorldTest
from tests.waiting import wait_for

ALICE, BOB = (Speaker(name, PEOPLE[name]) for name in ("Alice", "Bob"))
SECRET = "zorblax"
WHISPER = private([ALICE.id])


def parrot(request):
    """A summariser that repeats the beginning of every line it is given."""
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
        bob = with_alias(bob, f"{SECRET}1x", at, his.id, "public")
        fact = {"predicate": "relationship", "value": f"friend of {SECRET}1x"}
        bob = observe(bob, "A friend.", at, his.id, **fact)
        boat = new_profile(unmet_id(f"{SECRET}1x"), f"{SECRET}1x", at, "thing")
        entities.put({p.id: p for p in (alice, bob, boat)})
        self.script.ledger.add("I like jazz.", ALICE, state="approved")
        self.script.ledger.add("I like ale.", BOB, state="approved")
        self.script.ledger.add(f"{SECRET}1x floats.", ARIA_SPEAKER, state="proposed")
        self.script.ledger.add("Guests like a fire.", ARIA_SPEAKER, state="proposed")
        wait_for(self.script.memory.search(Query("jazz")))  # from now on the index has the notes
        for odd in ([f"{SECRET}1x"], ["hay"]):
            put_aside(self.script.history.store, odd, "followers")

    def forget(self, **options):
        """Alice is forgotten."""
        options.setdefault("asked_at", utc_iso(self.script.now()))
        return wait_for(forget_people(self.script, self.body, [ALICE.id], **options))

    def heard(self):
        """What was heard from Alice until now."""
        history = self.script.history
        ids = frozenset(m.id for m in history.messages() if m.speaker_id == ALICE.id)
        return Heard(ids, history.store.keys(ARCHIVE)[-1])

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
AT = "2027-01-15T08:00:00.000+00:00"


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
        self.assertEqual(bob.names("staff"), ("Bob",))
        self.assertNotIn("A friend.", [item.text for item in bob.observations])
        self.assertIsNone(self.body.entities.get(unmet_id(f"{SECRET}1x")))
        notes = [note.text for note in self.script.ledger.entries()]
        self.assertEqual(notes, ["I like ale.", "Guests like a fire."])
        store = self.script.history.store
        self.assertEqual(store.get("followers", category=ASIDE), [["hay"]])

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
        recent = {synthesis_id(r.id) for r in after if r.tier == "recent"}
        self.assertLessEqual(recent, self.world.syntheses().keys())

    def test_what_was_made_of_others_words(self):
        """Summaries and their entries stay as they are where somebody said nothing of them."""
        carol = Speaker("Carol", "o4.c")
        self.script.history.append([Message("user", "My ring is of quorvium.", speaker=carol)])
        self.talk(4)
        self.compact()

        def syntheses():
            found = {r.id: self.body.journal.get(f"compact_{r.id[1:]}") for r in summaries()}
            return {key: entry.content for key, entry in found.items() if entry}

        summaries = self.script.history.summaries
        before = syntheses()
        wait_for(forget_people(self.script, self.body, [carol.id], utc_iso(self.script.now())))
        emptied = {record.id for record in summaries() if record.text == EMPTIED}
        after = syntheses()
        changed = {key for key in before if after[key] != before[key]}
        self.assertEqual(changed, emptied & before.keys())
        self.assertTrue(before.keys() - changed and changed)

    def test_before_they_are_made_again(self):
        """Her words are gone from every store already, and nothing empty is searched."""
        self.forget()
        self.assert_forgotten()
        turns = self.world.index.turns
        self.assertNotIn(self.mine, turns)
        self.assertFalse([turn.text for turn in turns.values() if EMPTIED in turn.text])

    def test_a_compaction_meanwhile(self):
        """A summary made of an emptied one is made again as well."""
        self.forget()
        self.talk(4)
        self.compact()
        used = [r for r in self.script.history.summaries() if "is forgotten." in r.text]
        self.assertTrue([r for r in used if r.text != EMPTIED])
        self.remake()
        self.assertFalse([r for r in self.script.history.summaries() if "forgotten" in r.text])

    def test_a_ring(self):
        """Summaries that were made of one another, by hand, are each made once."""
        history = self.script.history
        records = history.summaries()[:3]
        for number, record in enumerate(records):
            history.save_summary(replace(record, child_ids=(records[number - 1].id,)))
        self.forget()
        for _ in range(2 * len(history.summaries())):
            if not wait_for(remake_summary(self.script, self.body)):
                break
        self.assertFalse([r for r in history.summaries() if r.text == EMPTIED])
        self.assertFalse(wait_for(remake_summary(self.script, self.body)))

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
        heard = self.heard()
        self.world.later()
        self.script.history.append([Message("user", "Hello again.", speaker=ALICE)])
        self.forget(heard=heard)
        self.assertEqual([text for _, text in self.lines_of(ALICE)], ["Hello again."])
        self.assert_proven()

    def test_later_words_that_were_archived(self):
        """The same where a compaction came between the request and the run."""
        heard = self.heard()
        self.talk(6)
        self.compact()
        later = [each for each in self.lines_of(ALICE) if each[0] not in heard.ids][-12:]
        self.others = self.lines_of(BOB)
        self.forget(heard=heard)
        self.assertEqual(self.lines_of(ALICE), later)
        self.assert_proven()

    def test_a_clock_set_back(self):
        """What was dated ahead of the request is forgotten too."""
        asked_at = utc_iso(self.script.now())
        self.world.later(3600)
        self.script.history.append([Message("user", f"Ahead {SECRET}!", speaker=ALICE)])
        self.forget(heard=self.heard(), asked_at=asked_at)
        self.remake()
        self.assert_forgotten()

    def test_lines_about_something_else(self):
        """A line for Bob and an entry lose the word and stay; they are found without it."""
        said = f"The festival of {SECRET}1x lanterns comes."
        reply = Message("assistant", said, speaker=ARIA_SPEAKER, metadata={"asker": BOB.id})
        [live] = self.script.history.append([reply])
        entry = self.body.journal.add(f"Lanterns of {SECRET}1x.", entities=[f"{SECRET}1x"])
        self.assertEqual(self.forget()["changed"], 1)
        self.remake()
        self.assert_forgotten()
        [kept] = self.script.history.by_ids([live.id])
        self.assertEqual(kept.content, "The festival of [forgotten] lanterns comes.")
        self.assertEqual(kept, kept.counted(self.script.count))
        self.assertEqual(self.world.index.turns[live.id].text, kept.content)
        kept = self.body.journal.get(entry.id)
        self.assertEqual((kept.content, kept.entities), ("Lanterns of [forgotten].", (REDACTED,)))
        self.assertEqual(self.world.index.turns[entry.id].text, kept.content)
        self.assertIsNone(self.world.attribute(KEPT))

    def test_archived_lines_about_something_else(self):
        """The same for one that was archived; its segment is sealed again."""
        said = f"The festival of {SECRET}1x lanterns comes."
        reply = Message("assistant", said, speaker=ARIA_SPEAKER, metadata={"asker": BOB.id})
        [live] = self.script.history.append([reply])
        self.talk(4)
        self.compact()
        self.others = self.lines_of(BOB)
        self.forget()
        self.remake()
        self.assert_forgotten()
        kept = self.script.history.archived([live.id])[live.id]
        self.assertEqual(kept.content, "The festival of [forgotten] lanterns comes.")

    def test_names_in_traces_and_budgets(self):
        """The audiences of prompts no longer name her; those of others are as they were."""
        both = private([ALICE.id, BOB.id])
        event = BudgetEvent(at=1.0, purpose="awake", model="m", sizes=(1,), limit=9, audience=both)
        trace = {"trace": ReplyTrace(budget=event).to_text(), "asker": BOB.id}
        spoken = [
            Message("assistant", "Good evening.", speaker=ARIA_SPEAKER, metadata=trace),
            Message("assistant", "Well.", speaker=ARIA_SPEAKER, metadata={"trace": ALICE.id}),
        ]
        first, second = self.script.history.append(spoken)
        for audience in (both, WHISPER, private([BOB.id])):
            self.script.budgets.note(replace(event, audience=audience))
        self.script.budgets.save()
        self.forget()
        first, second = self.script.history.by_ids([first.id, second.id])
        self.assertEqual(ReplyTrace.of(first).budget.audience, private([BOB.id]))
        self.assertEqual(second.metadata, {})
        self.assertEqual(
            [each.audience for each in self.script.budgets.events()[-3:]],
            [private([BOB.id]), "staff", private([BOB.id])],
        )
        self.assertNotIn(ALICE.id, repr(self.world.attribute("token_budgets")))

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

    def made_again(self):
        """The newest summary as a better one: its former text is in a record of its own."""
        [record] = [r for r in self.script.history.summaries() if r.status == LIVE][-1:]
        former = {"text": f"{SECRET}1x was there.", "level": "extractive"}
        history = self.script.history
        better = CompactionRecord(
            id=new_id("c"),
            at=utc_iso(self.script.now()),
            trigger="better",
            summaries_before={record.id: former},
            markers_before=tuple(m for m in history.messages() if m.is_summary),
        )
        history.save_compaction(better)
        return record

    def test_former_texts(self):
        """A text that better words replaced is forgotten, and taken back without them."""
        record = self.made_again()
        self.forget()
        self.remake()
        self.assert_forgotten()
        self.roll_back()
        self.assert_forgotten()
        self.assertIsNotNone(self.script.history.summary(record.id))

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
        with self.assertRaises(Stopped):
            self.forget(asked_at=AT)
            self.remake()
        self.world.restart()

    def test_at_each_step(self):
        """It is finished by the next run, whatever the first one did."""
        for step in STEPS:
            with self.subTest(step=step):
                self.setUp()
                self.stop_before(step)
                self.forget(asked_at=AT)
                self.remake()
                self.assert_forgotten()
                self.assertIsNone(self.world.attribute(OWED))

    def test_at_each_write(self):
        """The same where any write of the database fails."""
        for write in range(1, 60, 4):
            with self.subTest(write=write):
                self.setUp()
                self.world.storage.disk.fail_in(write)
                try:
                    self.forget(asked_at=AT)
                    self.remake()
                except OSError:
                    self.world.restart()
                self.world.storage.disk.left = None
                self.forget(asked_at=AT)
                self.remake()
                self.assert_forgotten()


class TestCompactionMeanwhile(ForgettingTest):
    """A compaction in the background, with her words in what its model is to summarise."""

    def begin_behind(self):
        """It begins, and waits for its model."""
        self.talk(6)
        self.others = self.lines_of(BOB)
        self.world.model.held = True
        self.script.runtime.run_behind(
            lambda: compact_conversation_history(
                self.script, self.body, force=True, trigger="background", beside=True
            ),
            "background",
        )
        self.assertTrue(self.world.model._waiting)

    def answer_one(self):
        """Its model answers a request; the next one waits again."""
        waiting, self.world.model._waiting = self.world.model._waiting, []
        for deferred, answer, model in waiting:
            deferred.callback(ModelReply(content=answer, model=model))

    def test_whatever_it_has_made(self):
        """After none, one or more of its answers, its summaries never come back with her words."""
        ended = 0
        for answers in (0, 1, 3, 6, 10, 40):
            with self.subTest(answers=answers):
                self.setUp()
                self.begin_behind()
                for _ in range(answers):
                    self.answer_one()
                ended += self.script.runtime.behind is None
                late, self.world.model._waiting = self.world.model._waiting, []
                self.world.model.held = False
                wait_for(self.script.run_exclusive(self.forget_now))
                self.assertIsNone(self.script.runtime.behind)
                for deferred, answer, model in late:
                    if not deferred.called:
                        deferred.callback(ModelReply(content=answer, model=model))
                self.assert_forgotten()
                self.remake()
                self.assert_forgotten()
                self.assertEqual(self.script.state.intent, {})
        self.assertTrue(0 < ended < 6, "some were cut short, some had ended")

    def forget_now(self):
        at = utc_iso(self.script.now())
        return forget_people(self.script, self.body, [ALICE.id], at)


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
