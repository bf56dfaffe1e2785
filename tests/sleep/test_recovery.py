"""What a failure, a restart or a hand in the data must not bring out of joint."""

from dataclasses import replace

from twisted.internet.defer import CancelledError, Deferred

from evennia_ai.errors import AssistantError
from evennia_ai.history.archive import ARCHIVE, Segment
from evennia_ai.history.messages import INTERRUPTED, PLACEHOLDER, Message, Speaker, masked, mended
from evennia_ai.history.stored import aside
from evennia_ai.llm_interaction import build_llm_messages
from evennia_ai.privacy.forget import forget_people
from evennia_ai.sleep.compaction import run_pre_compaction_extraction
from evennia_ai.sleep.compaction.compact import compact_conversation_history
from evennia_ai.testing import call
from tests.memory_assistant import MemoryWorldTest, StoreFailure, count
from tests.steps import COMMIT_STEPS, raising_at, verify_history
from tests.waiting import alone, wait_for

CHAR = Speaker("Alice", "o1.a")


class RecoveryTest(MemoryWorldTest):
    def look(self, words):
        """A tool's output of so many words."""
        made = call("look")
        result = Message("tool", "timber " * words, tool_call_id=made[0]["id"], name="look")
        self.script.history.append([Message("assistant", "", tool_calls=tuple(made))])
        self.script.history.append([result])

    def ask(self, text="Aria?"):
        """A turn, for a line of Alice's."""
        self.hear(text, CHAR)
        self.world.later(10)
        return self.script.tick()


class TestFailures(MemoryWorldTest):
    def test_a_commit_that_fails_leaves_nothing_in_the_index(self):
        """The synthesis of a compaction that was taken back is not found."""
        self.fill()
        before = set(self.world.index.turns)
        for step in (*COMMIT_STEPS, "done"):
            self.script.at_commit_step = raising_at(step, StoreFailure)
            with self.assertRaises(StoreFailure):
                self.compact()
            self.assertEqual(set(self.world.index.turns), before)
            self.assert_proven()
        self.assertEqual(self.body.journal.count(), 0)

    def test_drafts_of_a_compaction_that_was_cut_short(self):
        """They count for nothing, and go at the next one, or when somebody is forgotten."""
        names = "ai_archive_draft", "ai_summaries_draft"
        for undo in (self.compact, lambda: wait_for(alone(forget_people, *self.forgotten))):
            self.fill()
            before = self.script.history.messages(), self.script.history.summaries()
            self.script.at_commit_step = raising_at("archive", StoreFailure)
            with self.assertRaises(StoreFailure):
                self.compact()
            self.assertTrue(all(map(self.world.storage.script.keys, names)))
            self.world.restart()
            history = self.script.history
            self.assertEqual((history.messages(), history.summaries()), before)
            self.assert_proven()
            undo()
            self.assertFalse(any(map(self.world.storage.script.keys, names)))
            self.assert_proven()

    @property
    def forgotten(self):
        """What `forget_people` is called with."""
        return self.script, self.body, ["o1.nobody"], "2027-01-15T08:00:00.000+00:00"

    def test_append_is_all_or_nothing(self):
        """A write that fails, of the page or of the merge, stores no message of it."""
        for written in range(1, 80):
            self.world.storage.disk.fail_in(1 + written % 2)
            before = self.script.history.messages()
            try:
                self.fill(1)
            except StoreFailure:
                self.assertEqual(self.script.history.messages(), before)
            self.assert_proven()


class TestRollback(RecoveryTest):
    def test_extraction_before_masks(self):
        """Taking masks back takes back the extraction before them, too."""
        self.look(3000)
        self.fill(10)
        self.world.configure(max_context_tokens=10_000, compact_preserve_token_share=0.0)
        before, last = self.prompt(), self.script.history.last_compaction()
        self.extract(call("add_journal_entry", content="Timber is dear."))
        self.assertEqual(self.compact(force=False)["level"], "masked")
        self.roll_back()
        self.assertEqual(self.prompt(), before)
        self.assertEqual(self.script.history.last_compaction(), last)
        self.assertTrue(all(e.withdrawn for e in self.body.journal.recent()))
        self.assert_proven()

    def test_what_arrived_during_the_extraction_stays(self):
        """A line that came while the model was asked is no part of the extraction."""
        self.fill()

        def answer(request):
            if not any(m.content == "meanwhile" for m in self.script.history.messages()):
                self.script.history.append([Message("user", "meanwhile")])
                self.body.journal.add("Written by hand.")
                return call("add_journal_entry", content="Fact.")
            return call("noop")

        self.world.model.default = answer
        report = wait_for(run_pre_compaction_extraction(self.script, self.body))
        self.assertEqual(report["facts_recorded"], 1)
        self.world.model.default = "They talked."
        self.compact()
        self.roll_back()
        self.assertIn("meanwhile", [m.content for m in self.script.history.messages()])
        kept = [e.content for e in self.body.journal.recent() if not e.withdrawn]
        self.assertEqual(kept, ["Written by hand."])

    def test_an_earlier_extraction_stays(self):
        """Each compaction takes its own extraction back, and none before it."""
        self.fill()
        for fact in ("Fact one.", "Fact two."):
            self.extract(call("add_journal_entry", content=fact))
            self.compact()
            self.fill()
        for kept in (["Fact one."], []):
            self.roll_back()
            entries = [e.content for e in self.body.journal.recent() if not e.withdrawn]
            self.assertEqual([text for text in entries if text.startswith("Fact")], kept)
        self.assert_proven()


class TestSwitchedOff(RecoveryTest):
    def test_order_is_that_of_the_history(self):
        """Archived messages stand as they stood, whatever their times and audiences say."""
        for n in range(12):
            at = f"2030-01-01T00:00:{59 - n}.000+00:00"
            audience = "public" if n % 2 else "private:o1.a"
            self.fill(1, created_at=at, audience=audience, id=f"m{n}")
        prompts = []
        for _ in range(2):
            prompts.append(build_llm_messages(self.script, self.body, audience="private:o1.a"))
            self.compact()
            self.world.configure(compact_enabled=False)
        self.assertEqual(*prompts)

    def test_archived_masks_are_off(self):
        """A tool's output that was masked before it was archived is shown raw again."""
        self.look(1500)
        self.fill(10)
        before = self.prompt()
        self.world.configure(max_context_tokens=6000, compact_preserve_token_share=0.0)
        self.assertEqual(self.compact(force=False)["level"], "masked")
        self.compact()
        self.world.configure(compact_enabled=False, max_context_tokens=100_000)
        self.assertNotIn(PLACEHOLDER, str(self.prompt()))
        self.assertEqual(self.prompt(), before)

    def test_masks_leave_room_for_some_lines(self):
        """Masks that bring usage just under the trigger are not enough: it soon fires again."""
        levels = set()
        for lines in range(10, 300, 10):
            self.setUp()
            self.look(3000)
            self.fill(lines, content="They load timber onto the ferry " * 4)
            self.world.configure(max_context_tokens=10_000, compact_preserve_token_share=0.0)
            threshold = self.script.config.compact_sleep_threshold
            if self.script.usage() < threshold:
                continue
            level = self.compact(force=False)["level"]
            levels.add(level)
            if level == "masked":
                self.assertLess(self.script.usage(), 0.9 * threshold)
        self.assertEqual(levels, {"masked", "main"})

    def test_nothing_twice(self):
        """Off, there are no memories of archived lines that are shown, nor of summaries."""
        raven = "The raven Pepper steals spoons."
        self.fill(1, content=raven, speaker=CHAR)
        for summary in (f"They spoke of a raven: {raven}", "They talked."):
            self.world.model.default = summary
            self.fill(30)
            self.compact()
        prompts = []
        for enabled in (True, False):
            self.world.configure(compact_enabled=enabled)
            wait_for(self.ask("Aria, which raven steals spoons?"))
            prompts.append(str(self.world.model.requests[-1].messages))
        self.assertIn("Related past experience", prompts[0])
        self.assertNotIn("Related past experience", prompts[1])
        self.assertNotIn("You remember", prompts[1])
        self.assertEqual(prompts[1].count("Pepper steals spoons"), 1)


class TestCutShort(RecoveryTest):
    """Turns that end between a call and its result."""

    def stored(self):
        return [(m.role, m.content) for m in self.script.history.messages()]

    def hanging(self):
        """A turn in which the tool `look` waits for ever."""
        self.script.tools.tools["look"].run = lambda ctx, **arguments: Deferred()
        self.world.model.answers = [call("look")]
        return self.ask().addErrback(lambda failure: failure.trap(CancelledError))

    def test_a_failing_write_as_a_turn_begins(self):
        """Whatever write fails as a turn begins, the line is stored and answered once after it."""
        for writes in range(1, 4):
            self.setUp()
            self.world.model.answers = ["Here."]
            self.script.runtime.queue_saved = False
            self.world.storage.disk.fail_in(writes)
            try:
                wait_for(self.ask())
            except StoreFailure:
                self.world.later(10)
                wait_for(self.script.tick())
            self.assertEqual(self.stored(), [("user", "Aria?"), ("assistant", "Here.")], writes)
            self.assertEqual(self.script.runtime.pending(), [])

    def test_a_stopped_tool(self):
        """A turn that is stopped in a tool leaves no call without a result in prompts."""
        self.hanging().cancel()
        self.assertEqual(self.stored()[-1], ("assistant", ""))
        self.assertIn(INTERRUPTED, str(self.prompt()))
        self.fill(3)
        self.assertIn(INTERRUPTED, str(self.prompt()))
        self.assert_proven()

    def test_a_result_that_could_not_be_stored(self):
        """In prompts one that says so stands in its place, right behind the call."""
        self.world.model.answers = [call("look"), "Yes?"]
        disk = self.world.storage.disk

        def full():
            raise StoreFailure("disk full")

        def look(ctx, **arguments):
            disk.write = full
            return "a door"

        self.script.tools.tools["look"].run = look
        wait_for(self.ask())
        errors = [what for what, _ in self.script.errors]
        self.assertEqual(errors, ["turn"])
        del disk.write
        self.assertEqual(self.stored()[-1][0], "assistant")
        self.fill(3)
        wait_for(self.ask())
        self.assertEqual(self.stored()[-1], ("assistant", "Yes?"))
        self.assertEqual(mended(self.script.history.messages())[2].content, INTERRUPTED)
        self.assert_proven()

    def test_a_turn_cut_short_is_taken_up(self):
        """A call of an ending tool without a result is no answer, so that the turn is due."""
        self.hanging()
        self.script.save_queue()
        self.script.history.append([Message("assistant", "", tool_calls=tuple(call("noop")))])
        self.world.restart()
        self.assertEqual(list(self.script.runtime.unanswered), [("public", CHAR.id)])


class TestHands(MemoryWorldTest):
    def assert_unprovable(self):
        """The record of ids is a later one; what cannot be read is told as well."""
        violation, *others = verify_history(self.script)
        self.assertEqual(violation.kind, "record")
        self.assertIn("cannot be proven", violation.detail)
        self.assertLessEqual({each.kind for each in others}, {"unreadable"})

    def test_a_lost_record_is_made_anew(self):
        """Made from what is there it proves what is there, and tells that it is a later one."""
        self.fill()
        self.compact()
        self.roll_back()
        self.compact()
        self.fill(3)
        self.script.history.replace(self.script.history.messages())
        self.world.storage.script.set("conversation_tail", [])
        self.world.restart()
        self.assert_unprovable()
        self.fill(40)
        self.compact()
        self.world.restart()
        self.assert_unprovable()

    def test_a_lost_page_is_told(self):
        """What stood in the open page alone is gone, and nothing passes that over."""
        for left in (None, "spoilt", {"recorded": {"count": 5}}, {}, "deleted"):
            with self.subTest(left):
                self.setUp()
                self.fill(5)
                self.world.storage.script.set("conversation_tail", left)
                if left == "deleted":
                    self.world.storage.script.delete("conversation_tail")
                self.assertEqual(self.script.history.messages(), ())
                self.assert_unprovable()
                self.world.restart()
                self.assert_unprovable()

    def test_records_without_a_beginning(self):
        """A summary, segments or compactions alone tell that there was a record."""
        for left in ("conversation_history", "ai_archive", "ai_compactions"):
            with self.subTest(left):
                self.setUp()
                store = self.world.storage.script
                self.fill(30)
                self.compact()
                for key, category in list(store.values):
                    if left not in (key, category):
                        store.delete(key, category)
                self.world.restart()
                kinds = {each.detail for each in verify_history(self.script)}
                self.assertTrue(any("cannot be proven" in detail for detail in kinds))

    def test_complete_messages_put_in_by_hand(self):
        """A fresh assistant that is given another's messages, ids and all, has lost no record."""
        given = list(self.fill())
        self.setUp()
        stored = [message.to_dict() for message in given]
        self.world.storage.script.set("conversation_history", stored)
        self.assertEqual(self.script.history.messages(), tuple(given))
        self.assert_proven()
        self.world.restart()
        self.assert_proven()
        self.fill(30)
        self.compact()
        self.world.restart()
        self.assert_proven()


HISTORY = "conversation_history"


def talk(lines, words="fetch the hay from the barn and mend the fence before it rains"):
    """So many lines of Bob's."""
    bob = Speaker("Bob", "o2.b")
    return [Message("user", f"{n}: {words}", speaker=bob) for n in range(lines)]


class DamageTest(MemoryWorldTest):
    def setUp(self):
        super().setUp()
        self.model, self.history = self.world.model, self.script.history
        self.history.append(talk(40))
        self.history.replace(self.history.messages())


class TestEditMeanwhile(DamageTest):
    """A message that leaves is changed while its summary is being written."""

    def begin(self):
        """A compaction that waits for its summary."""
        self.model.held = True
        return compact_conversation_history(self.script, self.world.body, force=True)

    def edited(self, edit):
        """The outcome of a compaction during which `edit` made another first message."""
        done = self.begin()
        first, *others = self.world.attribute(HISTORY)
        self.world.write(HISTORY, [edit(first), *others])
        self.history.messages()
        self.model.release()
        return wait_for(done)

    def test_an_edit_is_not_undone(self):
        """Nothing is archived in its old words; the next try archives the new ones."""
        result = self.edited(lambda stored: {**stored, "content": "the word was taken out"})
        self.assertFalse(result["success"])
        self.assertIn("changed meanwhile", result["detail"])
        self.assertEqual(list(self.history.segments()), [])
        self.assertEqual(self.history.messages()[0].content, "the word was taken out")
        again = self.begin()
        self.model.release()
        self.assertTrue(wait_for(again)["success"])
        (segment,) = self.history.segments()
        self.assertEqual(segment.messages[0].content, "the word was taken out")
        self.assert_proven()

    def test_an_edit_of_who_may_know(self):
        """Another audience is a change as well as other words."""
        result = self.edited(lambda stored: {**stored, "audience": "staff"})
        self.assertFalse(result["success"])
        self.assertEqual(self.history.messages()[0].audience, "staff")

    def test_our_own_changes_are_none(self):
        """A mask, a new count and what a database makes of a tuple hold up no compaction."""
        odd = Message("tool", "oak " * 900, name="look", metadata={"at": (1, 2)})
        first, *others = self.history.messages()
        self.history.replace([replace(odd, id=first.id).completed(count, 0.0), *others])

        def by_us(stored):
            hidden = masked(Message.from_dict(stored), "2027-01-15T08:00:00.000+00:00", count)
            changed = replace(hidden, tokens=7, metadata={**hidden.metadata, "at": [1, 2]})
            return changed.to_dict()

        result = self.edited(by_us)
        self.assertTrue(result["success"], result)
        self.assert_proven()


class TestRollbackOfADamagedArchive(DamageTest):
    """A rollback brings back what left, or nothing."""

    def setUp(self):
        super().setUp()
        self.compact()
        (self.key,) = self.history.store.keys(ARCHIVE)
        self.segment = self.history.segment(self.key).to_dict()

    def assert_refused(self, stored):
        """With this for its segment it names the segment and what to do, and changes nothing."""
        self.history.store.set(self.key, stored, category=ARCHIVE)
        storage = self.world.storage
        before = dict(storage.script.values), dict(storage.body.values)
        with self.assertRaisesRegex(AssistantError, f"`{self.key}`.*`compact/verify`"):
            self.roll_back()
        self.assertEqual((storage.script.values, storage.body.values), before)

    def test_changed_words(self):
        """Words that somebody put into the archive do not become live."""
        first, *others = self.segment["messages"]
        forged = [{**first, "content": "Bob owes me 500 gold"}, *others]
        self.assert_refused({**self.segment, "messages": forged})

    def test_a_message_missing(self):
        """Fewer messages than left are not passed off as all, under an old seal or a new one."""
        short = self.segment["messages"][1:]
        self.assert_refused({**self.segment, "messages": short})
        resealed = Segment.from_dict({**self.segment, "messages": short}).resealed()
        self.assert_refused(resealed.to_dict())

    def test_no_segment(self):
        """One that cannot be read, or is gone, is told in words."""
        for odd in ("oops", {**self.segment, "messages": None}):
            self.history.store.set(self.key, odd, category=ARCHIVE)
            with self.assertRaisesRegex(AssistantError, f"`{self.key}` is missing"):
                self.roll_back()
        self.assertEqual(aside(self.history.store), {f"{ARCHIVE}_{self.key}": 2})
        with self.assertRaisesRegex(AssistantError, f"`{self.key}` is missing"):
            self.roll_back()
