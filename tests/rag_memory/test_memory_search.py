"""What `Memory.search` finds."""

from dataclasses import replace

from twisted.internet.defer import fail

from evennia_ai.errors import StoreError
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.recall import Turn
from evennia_ai.turns.runtime import by_speaker
from evennia_ai.turns.tools.base import ToolContext
from evennia_ai.turns.tools.memory import SearchMemory
from tests.search_case import SearchTest, ids
from tests.strategies import call
from tests.waiting import wait_for

ALICE = Speaker("Alice", "o1.a")


class InjectionTest(SearchTest):
    """What comes into a prompt unasked."""

    def injected(self, said, speaker):
        """The memories given to a turn that somebody asked for."""
        script = self.world.script
        asked = script.history.append([Message("user", said, channel="say", speaker=speaker)])
        (group,) = by_speaker(asked)
        seen = script.seen(group.audience, trusted=True)
        return wait_for(script._retrieved(group, seen))


class TestSaidByTool(SearchTest):
    def called(self, name, arguments, content="", audience="public"):
        """The id of a reply that calls a tool."""
        fields = {"speaker": Speaker("Aria", "o9"), "channel": "say", "audience": audience}
        reply = Message("assistant", content, tool_calls=(call("c1", name, arguments),), **fields)
        return self.world.script.history.append([reply])[0].id

    def test_for_whom_it_was(self):
        """A whisper of a private turn is found by those who heard it."""
        made = self.called("whisper", '{"text": "The key is red."}', audience="private:o1.a")
        self.assertEqual(self.search("key"), [])
        self.assertEqual(ids(self.search("key", audience="private:o1.a")), [made])

    def test_what_was_not_said(self):
        """Thoughts beside calls, other tools' texts and broken calls are not found."""
        self.called("look", '{"target": "the room"}', content="A room, I think.")
        for broken in ("{", "[]", '{"text": 1}', ""):
            self.called("say", broken, content="A room.")
        self.assertEqual(self.search("room", audience="staff"), [])


class TestNothingMatches(SearchTest):
    """What nobody ever spoke of, in an index full of talk."""

    def setUp(self):
        super().setUp()
        lines = {
            "Bram": "A {} was left at the door of the {}. Day {}.",
            "Cole": "They sell {} and {} at the market again. Day {}.",
            "Dora": "I would not trade my {} for a {}. Day {}.",
        }
        things = ["barrel", "lantern", "ladder", "boot", "kettle"]
        things += ["saddle", "candle", "basket", "hammer", "blanket"]
        turns = []
        for n in range(1000):
            who = list(lines)[n % 3]
            text = lines[who].format(things[n % 10], things[n // 10 % 10], n)
            turns.append(Turn(f"m{n}", who, text, 1.7e9 + 3600 * n))
        self.index.add("Aria", turns)

    def test_unknown_word(self):
        """Finds nothing, asked in a word or in a sentence, and the tool says so."""
        for query in ("dragon", "Where is the dragon's hoard?", "zeppelin"):
            self.assertEqual(self.search(query), [])
        ctx = ToolContext(self.world.script, self.world.script.tools)
        found = wait_for(SearchMemory().run(ctx, "dragon"))
        self.assertEqual(found["results"], [])
        self.assertIn("do not know", found["note"])

    def test_known(self):
        """A word in another form and a speaker's name find."""
        for query in ("hammers", "Dora", "What did Cole sell?"):
            self.assertTrue(self.search(query), query)


class TestFailingIndex(SearchTest):
    def test_nothing_is_lost(self):
        """What was said meanwhile is indexed with what comes next, in order."""
        self.index.broken = True
        first = self.say("Bram", "The key is red.", "The key is blue.")
        self.assertEqual(self.index.count("Aria"), 0)
        self.index.broken = False
        last = self.say("Bram", "The key is green.")
        self.assertEqual(sorted(ids(self.search("key"))), sorted([*first, *last]))

    def test_forgotten_meanwhile(self):
        """What is forgotten before it could be indexed does not come back."""
        self.index.broken = True
        gone = self.say("Bram", "The key is red.")
        self.index.broken = False
        self.world.script.history.replace([])
        wait_for(self.world.script.memory.forget(gone))
        kept = self.say("Bram", "A key again.")
        self.assertEqual(ids(self.search("key")), kept)


class TestPinned(InjectionTest):
    def setUp(self):
        super().setUp()
        self.ledger = self.world.script.ledger
        for n in range(30):
            self.say("Bram", f"The music was loud on day {n}.", "What music does Alice like?")
            self.say("Alice", f"I like the stew, {n} bowls of it.")

    def test_is_the_first_hit(self):
        """What is noted stands before all talk, with the best score, and goes into the prompt."""
        note = self.ledger.add("Alice likes jazz", ALICE, state="approved")
        hits = self.search("what music does Alice like?")
        self.assertEqual((hits[0].turn_id, hits[0].kind), (note.id, "ledger"))
        self.assertEqual((hits[0].speaker, hits[0].text), ("Alice", "Alice likes jazz"))
        given = self.injected("Aria, what music does Alice like?", ALICE)
        self.assertEqual(given[0].turn_id, note.id)

    def test_follows_the_ledger(self):
        """Only approved notes are found, by those who may know them, as long as they hold."""
        query, whisper = "what music does Alice like?", "private:o1.a"
        note = self.ledger.add("Alice likes jazz", ALICE, state="proposed", audience=whisper)
        self.assertNotIn("ledger", [hit.kind for hit in self.search(query, 50, whisper)])
        self.ledger.change(note.id, "approved", ALICE)
        self.assertNotIn("ledger", [hit.kind for hit in self.search(query, 50)])
        self.assertEqual(self.search(query, audience=whisper)[0].turn_id, note.id)
        self.ledger.change(note.id, "withdrawn", ALICE)
        self.assertNotIn("ledger", [hit.kind for hit in self.search(query, 50, whisper)])


class TestSemanticHits(SearchTest):
    def test_each_text_once(self):
        """What the index holds too is found once, as the index has it; other things besides."""
        (said,) = self.say("Bram", "The key is red.")
        entry = self.world.body.journal.add("Bram has a key.")
        turns = [Turn(entry.id, "", "Bram has a key.", 0), Turn("e9", "", "A key of old.", 0)]
        wait_for(self.world.semantic.add("Aria", turns))
        found = [(hit.turn_id, hit.kind) for hit in self.search("key")]
        self.assertCountEqual(found, [(said, "message"), (entry.id, "journal"), ("e9", "memory")])

    def test_index_down(self):
        """It is found even where the index is not."""
        self.world.restart()
        wait_for(self.world.semantic.add("Aria", [Turn("e1", "", "The key is red.", 0)]))
        self.world.script.mind.recall.open_index = lambda: None
        self.assertEqual(ids(self.search("key")), ["e1"])
        self.assertIn("recall index", [what for what, _ in self.world.script.errors])

    def test_store_down(self):
        """A search goes on without it."""
        (said,) = self.say("Bram", "The key is red.")
        self.world.semantic.search = lambda *args, **kwargs: fail(StoreError("away"))
        self.assertEqual(ids(self.search("key")), [said])

    def test_unknown_viewers(self):
        """Who asks for nobody known is told what is public, by either source."""
        whispered = Turn("m9", "Bram", "The key is blue.", 1.7e9, None, "private:o1.a")
        self.index.add("Aria", [whispered])
        wait_for(self.world.semantic.add("Aria", [replace(whispered, id="e1", text="A key")]))
        self.assertEqual(len(self.search("key", audience="staff")), 2)
        for nobody_known in (None, "", "o1.a", "Public", "everyone", "private:"):
            self.assertEqual(self.search("key", audience=nobody_known), [])
