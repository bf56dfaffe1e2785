"""A source in quarantine: what it said is kept, and not used."""

from unittest.mock import patch

from evennia_ai.game.seeing import speaker_of, stable_id
from evennia_ai.history.archive import absorbed_by
from evennia_ai.history.messages import utc_iso
from evennia_ai.llm_interaction import build_llm_messages
from evennia_ai.rag_memory.entities import new_profile, observe
from evennia_ai.rag_memory.finder import DEEP
from evennia_ai.rag_memory.seen import KEY
from evennia_ai.recall.values import Query
from evennia_ai.sleep.compaction import compact_conversation_history
from evennia_ai.sleep.consolidation import consolidate_memories_to_semantic
from evennia_ai.testing import call
from evennia_ai.turns.assistant import SCRIPT, is_sound
from tests.command_line import CommandLineTest
from tests.waiting import wait_for

WORD = "wharfinger"


class TestQuarantine(CommandLineTest):
    """Char2 has told lies; Char asks."""

    def setUp(self):
        super().setUp()
        self.char2.location = self.room1
        self.char2.account = self.account2
        self.account2.characters.add(self.char2)
        self.account2.db._playable_characters = [self.char2]
        self.bad = stable_id(self.char2)
        self.say(f"The {WORD} stole the {WORD} lamp.", self.char2)
        self.say("The miller bakes on Mondays.", self.char1)
        self.tick()
        self.said = next(m for m in self.script.history.messages() if m.speaker_id == self.bad)
        self.entry = self.aria.journal.add(
            f"Char2 says the {WORD} stole it.", source_message_ids=(self.said.id,)
        )
        now = self.script.now()
        profile = new_profile(stable_id(self.char1), "Char", now, "person")
        for text, source in ((f"Knows the {WORD}.", self.said.id), ("Bakes bread.", "m404")):
            profile = observe(profile, text, now, (source,), "public")
        self.aria.entities.put({profile.id: profile})
        self.script.ledger.add(f"I fear the {WORD}.", speaker_of(self.char2), state="approved")
        wait_for(consolidate_memories_to_semantic(self.script, self.aria))

    def found(self, word=WORD):
        query = Query(word, 20, "public", observations=True, tools=True)
        return [hit.text for hit in wait_for(self.script.memory.search(query))]

    def prompt(self):
        return str(build_llm_messages(self.script, self.aria))

    def test_nothing_of_it_is_used(self):
        """No search and no prompt has it, in any form; what others said stays."""
        self.assertGreaterEqual(len(self.found()), 3)
        self.assertIn(WORD, self.prompt())
        self.assertTold("aimemory/quarantine Aria = Char2", "uses nothing any more")
        self.assertNotIn(WORD, str(self.found()))
        self.assertNotIn(WORD, self.prompt())
        self.assertIn("miller", self.prompt())
        self.assertIn("Bakes bread", self.prompt())
        self.assertTrue(any("miller" in text for text in self.found("miller")))

    def test_others_take_its_places(self):
        """A search gives as many hits as asked for, though the best are theirs."""
        for n in range(4):
            self.say(f"The {WORD} has {n} eyes.", self.char2)
            self.say(f"Once I saw a {WORD}, some {n} miles away from here.", self.char1)
        self.tick()
        self.typed("aimemory/quarantine Aria = Char2")
        query = Query(f"The {WORD} has eyes", 4, "public")
        hits = wait_for(self.script.memory.search(query))
        self.assertEqual([hit.speaker for hit in hits], ["Char"] * 4)

    def test_all_of_it_comes_back(self):
        """Released, everything is as before: nothing was deleted."""
        before = sorted(self.found())
        self.typed("aimemory/quarantine Aria = Char2")
        self.assertTold("aimemory/release Aria = Char2", "uses again")
        self.assertEqual(sorted(self.found()), before)
        self.assertIn(WORD, self.prompt())
        self.assertIsNone(self.script.db.quarantine)

    def test_by_id(self):
        """What rests on it cannot be opened by its id either, nor seen around another."""
        ids = [self.said.id, self.entry.id]
        ids += [item.id for p in self.aria.entities.profiles().values() for item in p.observations]
        other = next(m for m in self.script.history.messages() if "miller" in m.content)
        self.typed("aimemory/quarantine Aria = Char2")
        for each in (*ids, other.id):
            self.model.answers = [call("expand_memory", id=each)]
            self.say("Aria, open it")
            self.tick()
        results = [m.content for m in self.script.history.messages() if m.name == "expand_memory"]
        self.assertEqual(len(results), len(ids) + 1)
        self.assertNotIn(WORD, str(results))
        self.assertIn("Bakes bread", str(results))

    def test_of_new_words(self):
        """What they say now is answered and stored, and hidden from the next prompt."""
        self.typed("aimemory/quarantine Aria = Char2")
        self.model.answers = ["So you say."]
        self.say("Aria, the cooper drowned.", self.char2)
        self.tick()
        self.assertIn("cooper", str(self.model.requests[-1].messages))
        self.assertNotIn("cooper", self.prompt())
        self.assertTrue(any("cooper" in m.content for m in self.script.history.messages()))

    def test_summaries(self):
        """A summary made meanwhile is without it; one made from it is not found."""
        self.typed("aimemory/quarantine Aria = Char2")
        self.fill(30)
        self.configure(compact_preserve_window=2)
        self.model.default = "Char told that the miller bakes on Mondays, and word by word more."
        result = wait_for(compact_conversation_history(self.script, self.aria, force=True))
        self.assertTrue(result["success"], result)
        self.assertIn("miller", str(self.model.requests[-1].messages))
        self.assertNotIn(WORD, str(self.model.requests[-1].messages))
        records = self.script.history.summaries()
        (record,) = [each for each in records if each.id not in absorbed_by(records)]
        self.assertEqual(self.script.memory.quarantine.held([record.id]), frozenset())
        self.assertIn("bakes on Mondays", str(self.found("miller bakes")))
        self.assertNotIn(WORD, str(self.found()))
        self.typed("aimemory/release Aria = Char2")
        self.assertIn(WORD, str(self.found()))
        self.script.memory.quarantine.add({stable_id(self.char1): "Char"})
        self.assertIn(record.id, self.script.memory.quarantine.held([record.id]))
        self.assertNotIn("bakes on Mondays", str(self.found("miller bakes")))

    def test_commands(self):
        """Who is in quarantine is listed; twice, nobody and strangers are told plainly."""
        self.assertTold("aimemory/quarantine Aria", "nobody in quarantine")
        self.assertTold("aimemory/quarantine Aria = Nobody", "no player called")
        self.assertTold("aimemory/release Aria = Char2", "not in quarantine")
        self.typed("aimemory/quarantine Aria = Char2")
        self.assertTold("aimemory/quarantine Aria = Char2", "already")
        self.assertTold("aimemory/quarantine Aria", "Char2", self.bad, "TestAccount2")
        self.be("Builder")
        self.assertIn("is not available", self.typed("aimemory/release Aria = Char2"))

    def test_a_line_alone(self):
        """What rests on one line is held without a look at other messages."""
        held, read = self.script.memory.quarantine, []
        other = next(m for m in self.script.history.messages() if "miller" in m.content)
        ids = [self.said.id, self.entry.id, other.id]
        with patch.object(type(self.script.history), "by_ids", side_effect=read.append):
            held.add({self.said.id: ""})
            self.assertEqual(held.held(ids), {self.said.id, self.entry.id})
        self.assertEqual(read, [])
        held.add({stable_id(self.char1): "Char"})
        self.assertEqual(held.held(ids), {*ids})

    def test_looks_cost_little(self):
        """It is read once after a change, and more is searched only where hits are left out."""
        held, store, limits = self.script.memory.quarantine, self.script.store, []
        recall = type(self.script.memory.recall)
        real_get, real_search = type(store).get, recall.search

        def search(recall, scope, query, others=()):
            limits.append(query.limit)
            return real_search(recall, scope, query, others)

        def get(store, key, *args, **options):
            read.append(key)
            return real_get(store, key, *args, **options)

        held.add({self.said.id: ""})
        held.sources  # noqa: B018 - it is read
        read = []
        with patch.object(type(store), "get", get), patch.object(recall, "search", search):
            self.assertTrue(self.found("miller bakes"))
            self.assertEqual(limits, [20])
            self.prompt()
            self.assertNotIn(KEY, read)
            self.assertNotIn("stole", str(self.found()))
        self.assertEqual(limits, [20, 20, DEEP])

    def test_stored_value(self):
        """Junk hides nobody and is told by the doctor; a good value is used as it is."""
        good = {"sources": {"o1.a": {"name": "Al", "at": utc_iso(0)}}}
        self.assertTrue(is_sound(SCRIPT[(None, KEY)], good))
        for junk in ([], "x", 5, {"sources": 5}, {}, {"sources": {"a": 5}}):
            self.assertFalse(is_sound(SCRIPT[(None, KEY)], junk))
            self.script.attributes.add(KEY, junk)
            self.assertEqual(self.script.memory.quarantine.sources, {})
