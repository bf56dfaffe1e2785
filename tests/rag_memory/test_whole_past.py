"""What an assistant has lived through is in its stores, each thing once, until it is forgotten."""

from collections import Counter
from itertools import chain

from evennia_ai.history.archive import ARCHIVE, Segment
from evennia_ai.history.live import HISTORY, OLDER, TAIL
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.privacy.forget import forget_people
from evennia_ai.rag_memory.journal import JOURNAL, PAGES
from evennia_ai.sleep.consolidation import consolidate_memories_to_semantic
from tests.memory_assistant import MemoryWorldTest
from tests.store_case import StoreCase
from tests.waiting import alone, wait_for

ALICE, BOB = Speaker("Alice", "o1.a"), Speaker("Bob", "o2.b")
AT = "2027-01-15T08:00:00.000+00:00"


class Killed(Exception):
    """The process ends here, as far as the test is concerned."""


class TestWholePast(StoreCase, MemoryWorldTest):
    """Three hundred lines, two compactions, 120 entries, a night cut short, and the next one."""

    def setUp(self):
        StoreCase.setUp(self)
        MemoryWorldTest.setUp(self)
        self.world.configure(compact_preserve_window=60, pre_compact_extraction_enabled=False)
        self.said, self.entries = [], {}

    def live(self, infer):
        """The past; `infer` as in `EVENNIA_AI_MEM0_CONFIG`."""
        self.world.configure(extracts_memories=infer)
        self.world.semantic = self.store
        self.world.restart()
        self.world.model.default = lambda request: f"They talked of {len(self.said)} things."
        for n in range(300):
            who = (ALICE, BOB)[n % 2]
            line = Message("user", f"{who.key}'s thing {n} is done.", speaker=who, channel="say")
            self.said += self.script.history.append([line])
            if n in (140, 240):
                self.assertTrue(self.compact()["success"])
            if n % 5 < 2 and len(self.entries) < 120:
                source = self.said[-1]
                text = f"{source.speaker_name} did thing {n}."
                entry = self.body.journal.add(text, source_message_ids=[source.id])
                self.entries[entry.id] = source
        self.night_killed()
        while self.body.journal.waiting():  # with `infer`, two model calls a minute
            self.world.later(61)
            wait_for(consolidate_memories_to_semantic(self.script, self.body))
        wait_for(consolidate_memories_to_semantic(self.script, self.body))

    def night_killed(self):
        """A night that ends between what was stored and its mark."""

        def stop(entry_ids):
            if list(entry_ids):
                raise Killed

        self.body.journal.mark_consolidated = stop
        with self.assertRaises(Killed):
            wait_for(consolidate_memories_to_semantic(self.script, self.body))
        self.world.restart()

    def stored_lines(self):
        """How often each line is stored, as it stands in the Attributes."""
        store = self.world.storage.script
        older = (store.get(key, OLDER) for key in store.keys(OLDER))
        live = chain(*older, store.get(HISTORY), store.get(TAIL)["messages"])
        segments = (Segment.from_dict(store.get(key, ARCHIVE)) for key in store.keys(ARCHIVE))
        archived = (message for segment in segments for message in segment.messages)
        texts = (Message.from_dict(raw).content for raw in live if raw["role"] == "user")
        return Counter(chain(texts, (message.content for message in archived)))

    def stored_entries(self):
        """The ids of the entries that stand on the journal's pages and have words."""
        store = self.world.storage.body
        pages = [store.get(JOURNAL), *(store.get(key, PAGES) for key in store.keys(PAGES))]
        entries = (entry for page in pages for entry in page["entries"])
        return sorted(e["id"] for e in entries if e["content"] and e["id"] in self.entries)

    def memories(self):
        """How often each entry is in Mem0."""
        rows = wait_for(self.store._run(self.store._rows, "Aria"))
        return Counter(row["metadata"]["source_id"] for row in rows)

    def test_everything_is_there_once_until_it_is_forgotten(self):
        """Live pages, archive, journal and Mem0, with facts that a model extracts and without."""
        for infer in (False, True):
            with self.subTest(infer=infer):
                self.setUp()
                self.live(infer)
                self.assertGreater(len(self.world.storage.script.keys(OLDER)), 0)
                self.assertGreater(len(self.world.storage.script.keys(ARCHIVE)), 0)
                self.assertEqual(self.stored_lines(), Counter(m.content for m in self.said))
                self.assertEqual(self.stored_entries(), sorted(self.entries))
                self.assertEqual(self.memories(), Counter(list(self.entries)))
                self.assert_proven()
                wait_for(alone(forget_people, self.script, self.body, [ALICE.id], AT))
                lines = Counter(m.content for m in self.said if m.speaker == BOB)
                entries = [key for key, source in self.entries.items() if source.speaker == BOB]
                self.assertEqual(self.stored_lines(), lines)
                self.assertEqual(self.stored_entries(), sorted(entries))
                self.assertEqual(self.memories(), Counter(entries))
                self.assert_proven()
