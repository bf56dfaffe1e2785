"""Consolidation: the journal into semantic memory."""

from dataclasses import replace
from functools import partial

from twisted.internet.defer import fail
from twisted.internet.task import Clock

from evennia_ai.background import pause
from evennia_ai.errors import StoreError
from evennia_ai.history.audience import private
from evennia_ai.rag_memory.entities import new_profile, observe
from evennia_ai.rag_memory.journal import DERIVED_SOURCES, JOURNAL, KEEP_DAYS, PAGE_ENTRIES
from evennia_ai.recall.values import Turn
from evennia_ai.sleep.consolidation import (
    LOST,
    consolidate_memories_to_semantic,
    prune_orphaned_memory_links,
)
from evennia_ai.sleep.cycle import prune_episodic_index
from tests.asked import model_down
from tests.memory_assistant import MemoryWorldTest
from tests.waiting import wait_for

ALICE = new_profile("o1", "Alice", 0.0)
MILL = new_profile("r7", "The Old Mill", 0.0, kind="place")


class Stopped(Exception):
    """The process ends here, as far as the test is concerned."""


class ConsolidationCase(MemoryWorldTest):
    """An assistant in memory who knows Alice and the mill."""

    def setUp(self):
        super().setUp()
        self.journal, self.semantic = self.body.journal, self.world.semantic
        self.body.entities.put({profile.id: profile for profile in (ALICE, MILL)})
        self.before_add, add = lambda: None, self.semantic.add

        def late(scope, turns):
            self.before_add()
            return add(scope, turns)

        self.semantic.add = late

    @property
    def rows(self):
        """What semantic memory holds, by id."""
        return self.semantic.memories.setdefault("Aria", {})

    def change(self, **fields):
        """Change the first journal entry."""
        first = next(self.journal.all())
        self.journal.rewrite(lambda e: replace(e, **fields) if e == first else e, [JOURNAL])

    def forget_marks(self):
        """Let all that stands on the newest page wait again."""
        self.journal._pages.set(JOURNAL, replace(self.journal.page(JOURNAL), consolidated=()))

    def consolidate(self, **options):
        return wait_for(consolidate_memories_to_semantic(self.script, self.body, **options))

    def fade(self):
        return wait_for(prune_episodic_index(self.script, self.body))

    def prune(self, **options):
        return wait_for(prune_orphaned_memory_links(self.script, self.body, **options))


class TestConsolidate(ConsolidationCase):
    def test_observes_what_entries_tell(self):
        """A dream adds what entries tell of those she knows, once."""
        self.journal.add("Alice lives in Ford.")
        self.consolidate()
        self.journal.add("Alice has moved to Ash. The Old Mill is haunted.")
        self.consolidate()
        self.consolidate()
        alice = self.body.entities.get("o1").observations
        self.assertEqual(
            [item.text for item in alice], ["Alice lives in Ford.", "Alice has moved to Ash."]
        )
        (mill,) = self.body.entities.get("r7").observations
        self.assertEqual(mill.text, "The Old Mill is haunted.")
        self.rows.clear()
        self.consolidate(whole=True)
        self.assertEqual(self.body.entities.get("o1").observations, alice)

    def test_stores_marks_and_links(self):
        """Each entry becomes one memory, linked to those it names by id, name or in its text."""
        first = self.journal.add("She keeps bees.", entities=["o1"])
        self.journal.add("It burnt down.", entities=["the old mill"], audience=private(["o1"]))
        self.journal.add("I saw Alice near the old mill.")
        counts = self.consolidate()
        self.assertEqual(counts, {"consolidated": 3, "linked": 4, "skipped": 0})
        turn = self.rows[first.id]
        self.assertEqual(
            turn, Turn(first.id, "", "She keeps bees.", first.timestamp, None, "public", "journal")
        )

    def test_none_is_left(self):
        """A backlog is gone after one night; others have their turn between two batches."""
        for number in range(2 * PAGE_ENTRIES + 1):
            self.journal.add(f"Alice did thing {number}.")
        clock = Clock()
        self.script.breathe = partial(pause, clock)
        running = consolidate_memories_to_semantic(self.script, self.body)
        self.assertFalse(running.called)
        self.assertEqual(self.journal.waiting(), PAGE_ENTRIES + 1)
        clock.advance(0)
        counts = wait_for(running)
        self.assertEqual(counts["consolidated"], 2 * PAGE_ENTRIES + 1)
        told = self.body.entities.get("o1").observations
        self.assertEqual(len(told), 2 * PAGE_ENTRIES + 1)

    def test_ends_when_called(self):
        """Who speaks to the sleeper waits for one batch, not for a backlog."""
        for number in range(2 * PAGE_ENTRIES):
            self.journal.add(f"fact {number}")
        spoken = []
        self.script.runtime.is_called = lambda: bool(spoken)
        self.before_add = lambda: spoken.append("Aria, wake up!")
        self.assertEqual(self.consolidate()["consolidated"], PAGE_ENTRIES)

    def test_recalled_and_synthesised_text_never_becomes_a_memory(self):
        """What was remembered, summarised or taken back is left out and blocks nothing."""
        for source in DERIVED_SOURCES:
            self.journal.add("derived", source_type=source)
        self.journal.withdraw([self.journal.add("taken back").id])
        self.journal.add("   ")
        self.journal.add("lived through")
        self.assertEqual(self.consolidate(), {"consolidated": 1, "linked": 0, "skipped": 1})
        texts = [turn.text for turn in self.rows.values()]
        self.assertEqual(texts, ["lived through"])

    def test_what_was_done_before_a_failure_stays_done(self):
        """The store goes away after one batch: that batch is marked and not done again."""
        for number in range(PAGE_ENTRIES + 3):
            self.journal.add(f"fact {number}")
        calls = []

        def go_away_on_second():
            calls.append(1)
            if len(calls) == 2:
                raise StoreError("The memory store is away.")

        self.before_add = go_away_on_second
        with self.assertRaises(StoreError):
            self.consolidate()
        self.assertEqual(self.journal.waiting(), 3)
        self.assertEqual(self.consolidate()["consolidated"], 3)

    def test_a_crash_between_store_and_mark_makes_no_duplicate(self):
        """Killed after storing, before marking: the next night finds the memories there."""
        for number in range(3):
            self.journal.add(f"Alice did thing {number}")

        def stop(entry_ids):
            if list(entry_ids):
                raise Stopped
            return 0

        self.journal.mark_consolidated = stop
        with self.assertRaises(Stopped):
            self.consolidate()
        stored = dict(self.rows)
        self.assertEqual(len(stored), 3)
        self.world.restart()
        self.assertEqual(self.consolidate()["consolidated"], 3)
        self.assertEqual(self.rows, stored)
        self.assertEqual(len(self.body.entities.get("o1").observations), 3)

    def test_what_was_forgotten_meanwhile_stays_forgotten(self):
        """An entry removed while the store worked leaves no memory and no link."""
        gone = self.journal.add("Alice has a secret.")
        self.journal.add("Alice keeps bees.")
        self.before_add = lambda: self.journal.withdraw([gone.id])
        self.assertEqual(self.consolidate()["consolidated"], 1)
        texts = [turn.text for turn in self.rows.values()]
        self.assertEqual(texts, ["Alice keeps bees."])
        (told,) = self.body.entities.get("o1").observations
        self.assertEqual(told.text, "Alice keeps bees.")

    def test_what_was_changed_meanwhile_is_stored_anew(self):
        """Of an entry changed while the store worked, only what it says now is remembered."""
        self.journal.add("Alice has a secret.")
        self.journal.add("Alice keeps bees.")
        for change in ({"audience": "private:o1"}, {"content": "Alice has none."}):
            self.forget_marks()
            self.rows.clear()
            self.before_add = partial(self.change, **change)
            self.assertEqual([self.consolidate()["consolidated"] for _ in "ab"], [1, 1])
            rows = self.rows.values()
            stored = [(turn.text, turn.audience) for turn in rows]
            entries = [(each.content, each.audience) for each in self.journal.all()]
            self.assertCountEqual(stored, entries)

    def test_profiles_changed_meanwhile_keep_the_change(self):
        """An observation noted while the store worked is not overwritten by the links."""
        self.journal.add("Alice keeps bees.")
        changed = observe(ALICE, "A friend.", 1.0, "m1")
        self.before_add = lambda: self.body.entities.put({"o1": changed})
        self.consolidate()
        told = [item.text for item in self.body.entities.get("o1").observations]
        self.assertEqual(told, ["A friend.", "Alice keeps bees."])


class TestPruneAndRepair(ConsolidationCase):
    def test_a_failing_store_prunes_nothing(self):
        """A store that cannot answer is not an empty store."""
        self.journal.add("Alice keeps bees.")
        self.consolidate()
        self.semantic.ids = lambda scope: fail(StoreError("The memory store is away."))
        with self.assertRaises(StoreError):
            self.prune(whole=True)
        self.assertEqual(len(self.rows), 1)

    def test_a_partly_lost_store_gets_back_only_what_it_lacks(self):
        """That is rebuilding, which no night does; what is there is not stored again."""
        for number in range(4):
            self.journal.add(f"fact {number}")
        self.consolidate()
        before = dict(self.rows)
        del self.rows[next(iter(before))]
        self.assertEqual(self.consolidate()["consolidated"], 0)
        self.assertNotIn(("log", LOST), self.script.audits)
        self.rows.clear()
        self.assertEqual(self.consolidate()["consolidated"], 0)
        self.assertIn(("log", LOST), self.script.audits)
        self.rows.update(dict(list(before.items())[1:]))
        self.assertEqual(self.consolidate(whole=True)["consolidated"], 1)
        self.assertEqual(self.rows, before)

    def test_worn_at_night(self):
        """What came of age and matters little leaves semantic memory in the next night, once."""
        worn = self.journal.add("Small beer.", importance=1)
        kept = self.journal.add("Alice keeps bees.", importance=9)
        self.consolidate()
        self.world.later((KEEP_DAYS + 1) * 86400)
        self.assertEqual(self.fade(), {"pruned": 1, "kept": 1})
        self.assertEqual(list(self.rows), [kept.id])
        self.assertNotIn(worn.id, self.rows)
        self.world.later(86400)
        self.journal.add("Alice left.")
        self.assertEqual(self.fade()["pruned"], 0)

    def test_taken_back(self):
        """What was taken back and could not leave semantic memory leaves it in the next night."""
        entry = self.journal.add("Alice has a secret.")
        self.consolidate()
        self.script.state.outbox = [entry.id]
        self.assertEqual(self.prune(), {"checked": 1, "pruned": 1})
        self.assertEqual(self.rows, {})

    def test_taken_out(self):
        """Whatever the journal does not hold any more leaves semantic memory when it is rebuilt."""
        withdrawn = self.journal.add("Alice has a secret.")
        worn = self.journal.add("Small beer.", importance=1, timestamp="2001-01-01T00:00:00Z")
        kept = self.journal.add("Alice keeps bees.")
        self.consolidate()
        held = [withdrawn, worn, kept]
        turns = [Turn(each, "", "x", 0) for each in ("e404", *(entry.id for entry in held))]
        wait_for(self.semantic.add("Aria", turns))
        self.change(withdrawn=True)
        self.assertEqual(self.prune(whole=True), {"checked": 4, "pruned": 3})
        self.assertEqual(list(self.rows), [kept.id])


class TestExtracted(ConsolidationCase):
    """Facts that a model reads in an entry (`infer` in `EVENNIA_AI_MEM0_CONFIG`)."""

    def setUp(self):
        super().setUp()
        self.script.extracts_memories = True
        self.journal.add("Alice told me at length that she keeps bees and sells honey.")

    def texts(self):
        self.consolidate()
        return [turn.text for turn in self.rows.values()]

    def test_one_memory_of_all_facts(self):
        """The model is asked once an entry, briefly, and its lines are stored; so next night."""
        self.script.mind.model.default = "- Alice keeps bees.\n\n- Alice sells honey.\n"
        self.assertEqual(self.texts(), ["Alice keeps bees.\nAlice sells honey."])
        self.texts()
        (request,) = self.script.mind.model.requests
        self.assertEqual(request.purpose, "memory")
        self.assertLess(len(str(request.messages)), 1000)

    def test_no_answer(self):
        """Where no model answers, or with nothing, the entry is stored as it is."""
        for answer in (model_down(), "\n"):
            self.rows.clear()
            self.forget_marks()
            self.script.mind.model.default = answer
            self.assertEqual(self.texts(), [next(self.journal.all()).content])
        self.assertEqual([what for what, _ in self.script.errors], ["extracting a memory"])
