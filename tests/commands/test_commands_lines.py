"""Lines taken back, answered anew, removed and corrected: `ai/undo`, `ai/again`, `aihistory`."""

from functools import partial
from unittest.mock import patch

from django.test import override_settings

from evennia_ai.game.seeing import speaker_of, stable_id
from evennia_ai.history.archive import EMPTIED, Archive
from evennia_ai.history.audience import private
from evennia_ai.history.verification import verify
from evennia_ai.llm_interaction import build_llm_messages
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.privacy.forget import forget_people
from evennia_ai.rag_memory.entities import new_profile, observe
from evennia_ai.recall.values import Query
from evennia_ai.sleep.compaction import compact_conversation_history
from evennia_ai.sleep.compaction.behind import Remaking, compact_behind
from evennia_ai.sleep.compaction.compact import Compaction
from evennia_ai.sleep.compaction.plan import MANUAL
from evennia_ai.testing import call
from tests.asked import model_down
from tests.command_line import WholePagesTest
from tests.waiting import pump_until, wait_for


class LinesTest(WholePagesTest):
    """Char talks with Aria as a player; Char2 stands beside them."""

    def setUp(self):
        super().setUp()
        self.char2.location = self.room1
        self.be("Player")

    def prompt(self):
        return str(build_llm_messages(self.script, self.aria))

    def found(self, words):
        query = Query(words, 20, "staff", observations=True, tools=True)
        return [hit.text for hit in wait_for(self.script.memory.search(query))]

    def stored(self, words):
        return [m for m in self.script.history.messages() if words in str(m.to_dict())]

    def assertProven(self):  # noqa: N802 - unittest's own form
        self.assertEqual(verify(self.script.history.evidence()), ())


class TestUndo(LinesTest):
    def test_own_answer(self):
        """No prompt and no search has it any more; it stays stored, marked for staff."""
        self.talk("Aria, who rules here?", "The wharfinger rules here.")
        self.assertIn("wharfinger", self.prompt())
        self.assertTold("ai/undo Aria", "Taken back: “The wharfinger rules here.”")
        self.assertNotIn("wharfinger", self.prompt())
        self.assertIn("who rules here?", self.prompt())
        self.assertNotIn("wharfinger", str(self.found("the wharfinger rules")))
        self.assertEqual(len(self.stored("wharfinger")), 1)
        self.assertProven()
        self.be("Admin")
        self.assertTold("aihistory Aria", "[removed] Aria (say): The wharfinger")
        self.assertEqual(self.logged("taken_back")[0]["by"], stable_id(self.char1))

    def test_all_that_the_turn_said(self):
        """What a turn said in two pieces, one of them beside a call, goes together."""
        both = ModelReply(content="The wharfinger rules.", tool_calls=call("look"), model="m")
        self.talk("Aria, who rules here?", both, "Or the cooper does.")
        self.assertIn("wharfinger", self.prompt())
        self.typed("ai/undo Aria")
        self.assertNotIn("wharfinger", self.prompt())
        self.assertNotIn("cooper", self.prompt())
        self.assertEqual(len(self.stored("wharfinger")), 1)

    def test_one_after_the_other(self):
        """Typed again it takes back the answer before, then nothing is left."""
        self.talk("Aria, who rules?", "The wharfinger.")
        self.talk("Aria, who else?", "The cooper.")
        self.assertTold("ai/undo Aria", "The cooper.")
        self.assertTold("ai/undo Aria", "The wharfinger.")
        self.assertTold("ai/undo Aria", "has given you no answer")

    def test_only_what_was_said_to_them(self):
        """A player takes back no answer to somebody else; staff do, the newest of all."""
        self.talk("Aria, who rules?", "The wharfinger.")
        self.talk("Aria, and you?", "I am the cooper.", speaker=self.char2)
        self.assertTold("ai/undo Aria", "The wharfinger.")
        self.assertTold("ai/undo Aria", "has given you no answer")
        self.be("Admin")
        self.assertTold("ai/undo Aria", "I am the cooper.")

    def test_of_a_whisper(self):
        """An answer in private is taken back by whom it was for."""
        self.model.answers = ["The wharfinger, between us."]
        self.char1.at_say("who rules?", receivers=[self.aria], whisper=True)
        self.tick()
        self.assertTold("ai/undo Aria", "The wharfinger, between us.")

    def test_others_whispers_are_for_admins(self):
        """A builder who may change Aria takes back no private answer to somebody else."""
        self.model.answers = ["The wharfinger, between us."]
        self.char2.at_say("who rules?", receivers=[self.aria], whisper=True)
        self.tick()
        self.be("Builder")
        self.aria.locks.add("control:all()")
        shown = self.assertTold("ai/undo Aria", "has given anybody no answer")
        self.assertNotIn("wharfinger", shown)
        self.be("Admin")
        self.assertTold("ai/undo Aria", "The wharfinger, between us.")

    def test_compacted_since(self):
        """No later summary has it; the archive does."""
        self.talk("Aria, who rules?", "The wharfinger.")
        self.typed("ai/undo Aria")
        self.fill(30)
        self.configure(compact_preserve_window=2)
        self.model.default = "They talked of many things, word by word."
        done = wait_for(compact_conversation_history(self.script, self.aria, force=True))
        self.assertTrue(done["success"], done)
        self.assertNotIn("wharfinger", str([r.messages for r in self.model.requests[-2:]]))
        segments = list(self.script.history.segments())
        self.assertIn("wharfinger", str([m.content for s in segments for m in s.messages]))
        self.assertTrue(self.found("word by word"), "a summary made without it is found")
        self.assertEqual(self.script.state.stale, [])
        self.assertProven()

    def test_while_a_summary_is_made(self):
        """What is taken back meanwhile is in no new summary: it is made again without it."""
        self.talk("Aria, who rules?", "The wharfinger rules.")
        self.fill(30)
        self.configure(compact_preserve_window=2)
        self.model.default = "The wharfinger rules, they said, among many other things."
        self.model.held, before = True, len(self.model.requests)
        compact_behind(Compaction(self.script, MANUAL))
        pump_until(lambda: len(self.model.requests) > before)
        self.typed("ai/undo Aria")
        self.model.release()
        pump_until(self.script.history.summaries)
        self.assertNotIn("wharfinger", self.prompt())
        self.assertNotIn("wharfinger", str(self.found("wharfinger rules")))
        self.model.default = "They talked of many things, and the heron boat was painted."
        wait_for(Remaking(self.script).run())
        self.assertIn("heron", self.prompt())
        self.assertTrue(self.found("heron boat"))
        self.assertEqual(self.script.state.stale, [])
        self.assertProven()

    def test_forgotten(self):
        """What is forgotten leaves the list of what was taken back, too."""
        self.talk("Aria, who rules?", "The wharfinger.")
        self.typed("ai/undo Aria")
        people = [stable_id(self.char1)]
        run = self.script.run_exclusive(
            lambda: forget_people(self.script, self.aria, people, "2026-01-01T00:00:00+00:00")
        )
        wait_for(run)
        self.assertIsNone(self.script.db.quarantine)


class TestWhileItAnswers(LinesTest):
    """A line that waits for its answer: no older answer is taken back in its stead."""

    def setUp(self):
        super().setUp()
        self.talk("Aria, who rules here?", "The wharfinger rules here.")

    def assertRefused(self):  # noqa: N802 - unittest's own form
        for typed in ("ai/undo Aria", "ai/again Aria"):
            self.assertTold(typed, "Aria is answering already. Wait for that answer.")
        self.assertIn("wharfinger", self.prompt())

    def test_queued(self):
        """No tick has come yet."""
        self.say("Aria, who else?")
        self.assertRefused()

    def test_asked(self):
        """Its model is being asked; then that answer is the newest."""
        running = self.asked_slowly("Aria, who else?", "The cooper.")
        self.assertRefused()
        self.model.release()
        wait_for(running)
        self.assertTold("ai/undo Aria", "Taken back: “The cooper.”")

    def test_tried_again_later(self):
        """No model answered; it is asked again in a while."""
        self.configure(llm_offline_fallback=False)
        self.talk("Aria, who else?", model_down())
        self.assertTrue(self.script.runtime.unanswered)
        self.assertRefused()

    def test_of_others(self):
        """The line of somebody else keeps nobody waiting."""
        self.say("Aria, who else?", self.char2)
        self.assertTold("ai/undo Aria", "The wharfinger rules here.")

    def test_switched_off(self):
        """Who answers nothing for now leaves nobody waiting."""
        self.say("Aria, who else?")
        self.script.db.enabled = False
        self.assertTold("ai/undo Aria", "The wharfinger rules here.")


class TestAgain(LinesTest):
    def test_another_answer(self):
        """The line is answered once more, by a prompt without the first answer."""
        self.talk("Aria, who rules here?", "The wharfinger rules here.")
        told = self.lines_of(self.char2)
        self.model.answers = ["Nobody rules the quay."]
        self.assertTold("ai/again Aria", "Aria answers again: “Aria, who rules here?”")
        self.assertEqual(self.tick(), "turn")
        asked = str(self.model.requests[-1].messages)
        self.assertNotIn("wharfinger", asked)
        self.assertIn("who rules here?", asked)
        self.assertIn("Nobody rules the quay.", str(told))
        self.assertEqual(len(self.stored("who rules here?")), 1)
        self.assertProven()

    def test_after_undo(self):
        """An answer that was taken back can be asked for again; so can the next one."""
        self.talk("Aria, who rules here?", "The wharfinger.")
        self.typed("ai/undo Aria")
        for answer in ("The cooper.", "The miller."):
            self.model.answers = [answer]
            self.assertTold("ai/again Aria", "answers again")
            self.assertEqual(self.tick(), "turn")
        self.assertIn("miller", self.prompt())
        self.assertNotIn("cooper", self.prompt())

    def test_with_tools(self):
        """What its calls give stands behind the line that is answered again."""
        self.talk("Aria, who rules here?", "The wharfinger.")
        self.typed("ai/undo Aria")
        self.model.answers = [call("look"), "The cooper."]
        self.typed("ai/again Aria")
        self.assertEqual(self.tick(), "turn")
        roles = [message["role"] for message in self.model.requests[-1].messages]
        self.assertEqual(roles[-3:], ["user", "assistant", "tool"])

    def test_refused(self):
        """Twice in a row, away from her, switched off, and without an answer: it says why."""
        self.assertTold("ai/again Aria", "has given you no answer")
        self.talk("Aria, who rules here?", "The wharfinger.")
        self.char1.location = self.room2
        self.assertTold("ai/again Aria", "only where both of you are")
        self.char1.location = self.room1
        self.script.db.enabled = False
        self.assertTold("ai/again Aria", "switched off")
        self.script.db.enabled = True
        self.assertIn("wharfinger", self.prompt())
        self.typed("ai/again Aria")
        self.assertTold("ai/again Aria", "is answering already")

    def test_long_after(self):
        """A line heard minutes ago is answered again, also after a crash."""
        self.talk("Aria, who rules here?", "The wharfinger rules here.")
        for crashes, answer in ((False, "The cooper."), (True, "The miller.")):
            with self.subTest(crashes=crashes):
                later = self.script.now() + 300
                clock = {"now": lambda later=later: later}
                self.configure(**clock)
                self.model.answers = [answer]
                self.assertTold("ai/again Aria", "answers again")
                if crashes:
                    self.restart(partial(self.configure, **clock))
                self.assertEqual(self.tick(), "turn")
                self.assertIn(answer, self.prompt())
        self.assertNotIn("cooper", self.prompt())

    def test_asleep(self):
        """It wakes up for it."""
        self.talk("Aria, who rules here?", "The wharfinger.")
        self.script.fall_asleep()
        self.model.answers = ["The cooper."]
        self.typed("ai/again Aria")
        self.assertEqual(self.tick(), "turn")
        self.assertIn("cooper", self.prompt())


class TestOneLine(LinesTest):
    """Staff remove, restore and correct one line."""

    def setUp(self):
        super().setUp()
        self.be("Admin")
        self.say("The mayor of Quayside is Bolko.", self.char2)
        self.tick()
        (self.line,) = self.stored("Bolko")
        self.aria.journal.add("The mayor is Bolko.", source_message_ids=(self.line.id,))

    def test_removed_and_restored(self):
        """By its words; what rests on it goes with it, and comes back with it."""
        before = sorted(self.found("mayor Bolko"))
        self.assertEqual(len(before), 2)
        self.assertTold(
            "aihistory/remove Aria = is bolko", "Removed: Char2: “The mayor", self.line.id
        )
        self.assertNotIn("Bolko", self.prompt())
        self.assertEqual(self.found("mayor Bolko"), [])
        self.assertTold("aihistory/remove Aria = is bolko", "is removed already")
        self.assertTold("aimemory/quarantine Aria", f"a line ({self.line.id})")
        self.assertTold(f"aihistory/restore Aria = {self.line.id}", "Restored")
        self.assertEqual(sorted(self.found("mayor Bolko")), before)
        self.assertTold(f"aihistory/restore Aria = {self.line.id}", "It is not removed")
        self.typed("aihistory/remove Aria = krakens", until="is in no line")
        self.assertProven()

    def test_several_lines(self):
        """Words that several lines hold are refused, with whose they are and their ids."""
        self.talk("Aria, who is it?", "The mayor is Bolko.")
        shown = self.assertTold(
            "aihistory/correct Aria = mayor: The mayor is Greta.",
            "Several lines hold `mayor`",
            f"{self.line.id} Char2: “The mayor of Quayside is Bolko.”",
            "Aria: “The mayor is Bolko.”",
        )
        self.assertNotIn("Greta", shown)
        self.typed(f"aihistory/remove Aria = {self.line.id}")
        self.assertTold("aihistory/restore Aria = mayor", "Restored: Char2: “The mayor of")
        self.assertProven()

    def test_corrected(self):
        """The new text stands in its place, as that person's words, and is theirs to forget."""
        self.talk("Aria, noted?", "Noted.")
        self.assertTold("aihistory/correct Aria = is Bolko: The mayor is Greta.", "has it as")
        self.assertNotIn("Bolko", self.prompt())
        (new,) = self.stored("Greta")
        self.assertEqual((new.speaker, new.audience), (self.line.speaker, self.line.audience))
        ids = [m.id for m in self.script.history.messages()]
        self.assertEqual(ids.index(new.id), ids.index(self.line.id) + 1)
        self.assertTrue(any("Greta" in text for text in self.found("mayor Greta")))
        self.assertTold("aihistory Aria", "[corrected] Char2 (say): The mayor is Greta.")
        self.assertTold("aihistory/correct Aria = is Greta:", "what the line should say")
        self.assertTold("aihistory/correct Aria = Greta", "Usage:")
        self.assertProven()

    def test_one_version_is_used(self):
        """A correction takes the place of an earlier one; what is restored, that of all others."""

        def used():
            return [each for each in ("Bolko", "Greta", "Hans", "Inga") if each in self.prompt()]

        for name in ("Greta", "Hans"):
            self.typed(f"aihistory/correct Aria = {self.line.id}: It is {name}.", "has it as")
            self.assertEqual(used(), [name])
        (greta,), (hans,) = self.stored("Greta"), self.stored("Hans")
        self.typed(f"aihistory/restore Aria = {greta.id}", "Restored")
        self.assertEqual(used(), ["Greta"])
        self.typed(f"aihistory/correct Aria = {greta.id}: It is Inga.", "has it as")
        self.assertEqual(used(), ["Inga"])
        self.typed(f"aihistory/restore Aria = {self.line.id}", "Restored")
        self.assertEqual(used(), ["Bolko"])
        self.typed(f"aihistory/remove Aria = {self.line.id}", "Removed")
        for each in (self.line, hans):
            self.typed(f"aihistory/correct Aria = {each.id}: It is Inga.", "It is removed")
        self.assertEqual(used(), [])
        self.assertProven()

    def test_answers_with_calls(self):
        """A spoken call is corrected with its result, which leaves the prompt with it."""
        self.talk("Aria, well?", call("say", text="The wharfinger rules."))
        self.typed("aihistory/correct Aria = wharfinger: The cooper rules.")
        self.assertNotIn("wharfinger", self.prompt())
        self.assertIn("The cooper rules.", self.prompt())
        self.assertProven()

    def test_in_the_archive(self):
        """What summaries say of a removed line goes at once, at every tier; the rest comes back."""
        self.configure(compact_preserve_window=2)
        self.model.default = "The mayor is Bolko, they said; the heron boat was painted."
        for _ in range(2):
            self.fill(30)
            compacted = compact_conversation_history(self.script, self.aria, force=True)
            self.assertTrue(wait_for(compacted)["success"])
        until = "has left the live history"
        self.typed(f"aihistory/correct Aria = {self.line.id}: Greta.", until)
        self.assertIn("Bolko", self.prompt())
        self.typed("aihistory/remove Aria = of Quayside", until="Removed")
        first, _, long = self.script.history.summaries()
        self.assertEqual(sorted(self.script.state.stale), sorted([first.id, long.id]))
        self.assertEqual({first.text, long.text}, {EMPTIED})
        self.model.default = "They talked of this and that; the heron boat was painted green."
        self.remake()
        shown = self.prompt()
        self.assertIn("painted green", shown)
        self.assertEqual(shown.count("Bolko"), 1, "in the later summary, which it is not in")
        self.assertTrue(any("green" in text for text in self.found("heron boat painted")))
        self.assertNotIn("Quayside", str(self.found("mayor Quayside")))
        self.typed(f"aihistory/restore Aria = {self.line.id}", until="Restored")
        self.model.default = "The mayor is Bolko; the boat was painted green, they say."
        self.remake()
        self.assertEqual(self.script.history.summary(first.id).without, ())
        self.assertEqual(self.prompt().count("Bolko"), 2)
        self.assertProven()

    def test_while_a_summary_is_made_again(self):
        """A second line that is removed meanwhile is not in it either."""
        self.say("The reeve is Odo.", self.char2)
        self.script.runtime.last_turn_at = 0.0
        self.tick()
        (other,) = self.stored("Odo")
        self.fill(30)
        self.configure(compact_preserve_window=2)
        self.model.default = "The mayor is Bolko and the reeve is Odo, they said."
        wait_for(compact_conversation_history(self.script, self.aria, force=True))
        self.typed("aihistory/remove Aria = of Quayside", until="Removed")
        self.model.held, self.model.default = True, "The reeve is Odo, they said."
        before = len(self.model.requests)
        made = Remaking(self.script).run()
        pump_until(lambda: len(self.model.requests) > before)
        self.typed(f"aihistory/remove Aria = {other.id}", until="Removed")
        self.model.release()
        wait_for(made)
        self.assertNotIn("Odo", self.prompt())
        self.model.default = "They talked of this and that, one after the other."
        self.remake()
        self.assertNotIn("Odo", str(self.model.requests[-1].messages))
        self.assertIn("one after the other", self.prompt())

    def remake(self):
        """Make all stale summaries again."""
        self.assertTrue(self.script.state.stale)
        while self.script.state.stale:
            wait_for(Remaking(self.script).run())

    def test_for_admins(self):
        self.be("Builder")
        for switch in ("remove", "restore", "correct"):
            self.assertIn("is not available", self.typed(f"aihistory/{switch} Aria = Bolko: x"))


class TestWhatIsKept(LinesTest):
    """`ai/me`: Char sees and corrects what Aria keeps of her; Char2 has talked of her, too."""

    def setUp(self):
        super().setUp()
        self.own, self.other = stable_id(self.char1), stable_id(self.char2)
        self.say("I live in the tower.", self.char1)
        self.say("Char is a thief.", self.char2)
        self.tick()
        mine, theirs = self.stored("tower")[0], self.stored("thief")[0]
        secret = private([self.other])
        now = self.script.now()
        profile = new_profile(self.own, "Char", now)
        profile = observe(profile, "Char lives in the tower.", now, mine.id)
        profile = observe(profile, "Char is a thief.", now, theirs.id, told_by="Char2")
        profile = observe(profile, "Char owes me.", now, theirs.id, secret, told_by="Char2")
        self.aria.entities.put({self.own: profile})
        add = self.aria.journal.add
        self.entry = add("Char lives in the tower, she says.", source_message_ids=(mine.id,))
        add("Char is a thief, says Char2.", source_message_ids=(theirs.id,))
        self.mixed = add("Both talked of Char.", source_message_ids=(mine.id, theirs.id))
        self.note = self.script.ledger.add("I like jazz.", speaker_of(self.char1), state="approved")
        self.tower, self.thief, self.owes = profile.observations

    def facts(self):
        return [item.text for item in self.aria.entities.get(self.own).observations]

    def test_seen(self):
        """Their notes, observations of them and entries from their words; no more."""
        shown = self.assertTold(
            "ai/me Aria",
            f"{self.note.id} note",
            f"{self.tower.id} observation",
            f"{self.thief.id} observation",
            "from others' words, too: Char2 said: Char is a thief",
            f"{self.entry.id} journal",
            f"{self.mixed.id} journal",
        )
        self.assertNotIn("owes me", shown)
        self.assertNotIn("says Char2", shown)
        self.assertIn("(5):", shown)
        self.assertEqual(self.typed("ai/me"), shown)

    def test_taken_back(self):
        """What rests on their own words; what others said stays."""
        for each in (self.tower, self.entry, self.note):
            self.typed(f"ai/me Aria = {each.id}", until="Aria no longer uses: ")
        self.assertEqual(self.facts(), ["Char is a thief.", "Char owes me."])
        self.assertTrue(self.aria.journal.get(self.entry.id).withdrawn)
        self.assertNotIn("jazz", self.prompt())
        self.assertEqual(
            [self.logged(kind)[0]["by"] for kind in ("dropped", "forget")], [self.own] * 2
        )
        for each in (self.thief, self.mixed):
            self.typed(f"ai/me Aria = {each.id}", until="rests on what others said, too")
        self.assertTold(f"ai/me Aria = {self.owes.id}", "There is nothing called")
        self.assertIn("(2):", self.typed("ai/me Aria"))

    def test_corrected(self):
        """In place of their own words, beside those of others, and theirs to have forgotten."""
        for each, text in ((self.tower, "I live at the mill."), (self.thief, "I never steal.")):
            self.typed(f"ai/me Aria = {each.id}: {text}", until=f"keeps of you now: {text}")
        self.assertTold(f"ai/me Aria = {self.thief.id}: ", "Write what it should say.")
        facts, theirs = ["Char is a thief.", "Char owes me."], private([self.own])
        self.assertEqual(self.facts(), facts)
        notes = [n for n in self.script.ledger.entries() if n.audience == theirs]
        said = [(n.text, n.state) for n in notes]
        self.assertEqual(
            said, [("I live at the mill.", "approved"), ("I never steal.", "approved")]
        )
        at = "2026-01-01T00:00:00+00:00"
        run = partial(forget_people, self.script, self.aria, [self.own], at)
        wait_for(self.script.run_exclusive(run))
        self.assertEqual(self.facts(), facts)
        self.assertEqual(list(self.script.ledger.entries()), [])

    def test_words_of_their_own(self):
        """They are private, and for all to know only once staff approve them; none are cut."""
        self.note_of_all = self.script.ledger.add(
            "Char sings.", speaker_of(self.char1), state="approved"
        )
        self.typed(
            f"ai/me Aria = {self.thief.id}: Char2 is a thief.",
            until="keeps of you now: Char2 is a thief. Staff decide",
        )
        [mine] = [
            n for n in self.script.ledger.entries() if n.state == "approved" and "thief" in n.text
        ]
        self.assertEqual(mine.audience, private([self.own]))
        self.assertNotIn("Char2 is a thief.", self.prompt())
        self.typed(
            f"ai/me Aria = {self.note_of_all.id}: Char2 lies.",
            until="keeps of you now: Char2 lies. Staff decide",
        )
        waiting = [n for n in self.script.ledger.entries() if n.state == "proposed"]
        self.assertEqual([n.text for n in waiting], ["Char2 is a thief.", "Char2 lies."])
        self.assertEqual({n.audience for n in waiting}, {"public"})
        self.assertEqual({n.by.id for n in waiting}, {self.own})
        self.typed(f"ai/me Aria = {self.tower.id}: {'x' * 301}", until="at most 300 characters")
        self.assertIn("Char lives in the tower.", self.facts())

    @override_settings(EVENNIA_AI_MODERATE="tests.moderators.moderate")
    def test_moderated(self):
        """What the game refuses is not kept, and what it replaces is kept so."""
        self.typed(f"ai/me Aria = {self.tower.id}: forbidden", until="moderation refuses")
        self.assertIn("Char lives in the tower.", self.facts())
        self.typed(f"ai/me Aria = {self.tower.id}: I am rude.", until="now: I am gentle.")
        self.assertIn("I am gentle.", [n.text for n in self.script.ledger.entries()])

    def test_a_note_stays_one(self):
        """A note is corrected as a note; of the same words in another writing one is left."""
        mine, own = speaker_of(self.char1), private([self.own])
        note = self.script.ledger.add("I like tea.", mine, state="approved", audience=own)
        self.typed(f"ai/me Aria = {note.id}: I like TEA!", until="keeps of you now: I like TEA!")
        living = [n for n in self.script.ledger.entries() if n.audience == own]
        self.assertEqual([(n.text, n.state) for n in living], [("I like TEA!", "approved")])

    def test_correction_that_fails(self):
        """Nothing is lost, and nothing is stored, where the new words find no room."""
        for number in range(29):
            self.script.ledger.add(f"Note {number}.", speaker_of(self.char1), state="proposed")
        self.typed(
            f"ai/me Aria = {self.tower.id}: I live at the mill.", until="has 30 notes already"
        )
        self.assertIn("Char lives in the tower.", self.facts())
        self.assertEqual(len(self.facts()), 3)

    def test_line_stays(self):
        """What rests on a line of theirs is gone without that line, and they are told so."""
        self.typed(
            f"ai/me Aria = {self.tower.id}", until="What you said yourself stays in the talk"
        )
        self.assertIn("I live in the tower.", self.prompt())

    def test_of_long_ago(self):
        """Old entries and archived observations count; the archive is read once, not for each."""
        mine = self.fill(60, speaker=speaker_of(self.char1))[::2]
        self.configure(compact_preserve_window=2)
        self.model.default = "They talked of many things, word by word."
        wait_for(compact_conversation_history(self.script, self.aria, force=True))
        for number, line in enumerate(mine):
            self.aria.journal.add(f"Thing {number}.", source_message_ids=(line.id,))
        for number in range(200):
            self.aria.journal.add(f"Other {number}.")
        profile, now = self.aria.entities.get(self.own), self.script.now()
        for number in range(200):
            profile = observe(profile, f"Char says {number}.", now, mine[0].id, "staff")
        self.aria.entities.put({self.own: profile})
        self.assertNotIn("Char lives in the tower.", self.facts())
        self.restart()
        reads, segment = [], Archive.segment
        with patch.object(Archive, "segment", lambda *a: reads.append(a[1]) or segment(*a)):
            shown = self.typed("ai/me Aria", until="Take one back")
        for words in ("Char lives in the tower", "Thing 0.", f"Thing {len(mine) - 1}."):
            self.assertIn(words, shown)
        self.assertGreater(len(reads), 0)
        self.assertEqual(len(reads), len(set(reads)))
        self.typed(f"ai/me Aria = {self.tower.id}", until="no longer uses: Char lives in the tower")
        self.assertNotIn(self.tower.id, self.typed("ai/me Aria", until="Take one back"))
        self.assertEqual(self.aria.entities.archived(self.own)[0].text, "Char is a thief.")

    def test_nothing(self):
        """Somebody of whom nothing is kept is told so."""
        self.aria.entities.put({}, [self.own])
        self.script.ledger.forget(lambda note: True)
        self.aria.journal.withdraw([self.entry.id, self.mixed.id])
        self.assertTold("ai/me Aria", "nothing is kept of you by Aria")
        self.assertTold("ai/me Aria = x", "There is nothing called `x`")
