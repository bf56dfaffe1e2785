"""What `Memory.search` finds."""

import threading
from dataclasses import replace

from twisted.internet.defer import succeed

from evennia_ai.assistant.events import by_speaker
from evennia_ai.assistant.tick import _retrieved
from evennia_ai.background import Worker
from evennia_ai.history.messages import Message, Speaker, utc_iso
from evennia_ai.history.pairs import ToolTraits
from evennia_ai.rag_memory.entities import new_profile, observe, without_observation
from evennia_ai.rag_memory.episodic_index import KEEP_DAYS, turn_of_message
from evennia_ai.rag_memory.ranking import QUESTIONS
from evennia_ai.rag_memory.recall_jobs import DEEP, RecallJobs
from evennia_ai.rag_memory.search import Memory
from evennia_ai.recall import Turn
from evennia_ai.recall.values import Query
from evennia_ai.testing import InlineWorker, MemorySemanticStore
from evennia_ai.tools import BUILTIN_TOOLS
from evennia_ai.tools.base import ToolContext
from evennia_ai.tools.memory import SearchMemory
from tests.search_case import ECHO, FACT, MOVED, QUESTION, SearchTest, ids
from tests.waiting import wait_for

TRAITS = ToolTraits.of({tool.name: tool for tool in BUILTIN_TOOLS})


class NearStore(MemorySemanticStore):
    """A semantic store that finds one memory, not very near, whatever is looked for."""

    def search(self, scope, query, limit=10, audience=None):
        """The memory."""
        metadata = {"source_id": "e1", "audience": "public"}
        found = {"id": "v1", "text": "Bram owes Cole a drink.", "score": 0.4, "metadata": metadata}
        return succeed([found])


class TestOftenAsked(SearchTest):
    """A question asked again and again."""

    def test_does_not_bury_its_answer(self):
        """The answer is among the first after any number of askings, few of which stand first."""
        fact = self.say("Bram", FACT)[0]
        for number in range(40):
            self.say(
                f"Guest{number}", QUESTION, f"Where is the smith's forge by now, no. {number}?"
            )
        found = self.search(QUESTION)
        self.assertIn(fact, ids(found[: QUESTIONS + 1]))

    def test_asked_in_typed_words(self):
        """Also where a few words of it are typed."""
        fact = self.say("Bram", FACT)[0]
        for number in range(40):
            self.say(f"Guest{number}", f"Where is the smith's forge by now, no. {number}?")
        self.assertIn(fact, ids(self.search("smith forge")[: QUESTIONS + 1]))

    def test_looks_no_deeper_than_needed(self):
        """A question that was not asked before is looked up once, among the best hits only."""
        self.say("Bram", FACT, *(f"The rain will not stop, {n}." for n in range(60)))
        self.search(QUESTION)
        self.assertEqual(len(self.index.limits), 1)
        self.assertLess(self.index.limits[0], DEEP)


class TestInjected(SearchTest):
    """What comes into a prompt unasked."""

    def test_what_holds_now(self):
        """The newest telling is quoted and no echo of the older, after many askings."""
        lines = [("Bram", FACT)]
        for number in range(12):
            lines += [(f"Guest{number}", QUESTION), ("Aria", f"{ECHO} That was {number}.")]
        lines += [("Bram", MOVED), *(("Cole", f"Rain, {n}.") for n in range(30))]
        self.index.add(
            "Aria",
            [Turn(f"m{n}", who, said, 1.7e9 + 9e4 * n) for n, (who, said) in enumerate(lines)],
        )
        asked = self.world.script.history.append(
            [Message("user", QUESTION, channel="say", speaker=Speaker(key="Dora"))]
        )
        (group,) = by_speaker(asked)
        quoted = wait_for(_retrieved(self.world.script, self.world.body, group)).lines
        self.assertTrue(any(MOVED in line for line in quoted), quoted)
        self.assertFalse(any("Aria:" in line or "Guest" in line for line in quoted), quoted)


class TestSaidByTool(SearchTest):
    """What the assistant says by calling a tool."""

    def called(self, *calls, content="", audience="public"):
        """The id of a reply that calls tools, each given as name and arguments."""
        made = [
            {"id": f"c{n}", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(calls)
        ]
        reply = Message("assistant", content, channel="say", audience=audience)
        speaker = Speaker("Aria", "o9")
        stored = self.world.script.history.append(
            [replace(reply, speaker=speaker, tool_calls=tuple(made))]
        )
        return stored[0].id

    def test_is_found(self):
        """What was said, posed or whispered is found under the message's id."""
        for tool in ("say", "emote", "whisper"):
            made = self.called((tool, f'{{"text": "I {tool} that you get a free room."}}'))
            self.assertIn((made, "Aria"), [(h.turn_id, h.speaker) for h in self.search("room")])

    def test_for_whom_it_was(self):
        """A whisper of a private turn is found by those who heard it."""
        made = self.called(("whisper", '{"text": "The key is red."}'), audience="private:o1.a")
        self.assertEqual(self.search("key"), [])
        self.assertEqual(ids(self.search("key", audience="private:o1.a")), [made])

    def test_what_was_not_said(self):
        """Thoughts beside calls, other tools' texts, refused and broken calls are not found."""
        self.called(("look", '{"target": "the room"}'), content="A room, I think.")
        self.called(("say", '{"text": "A room."}'), audience="private:o1.a")
        for broken in ("{", "[]", '{"text": 1}', ""):
            self.called(("say", broken), content="A room.")
        self.assertEqual(self.search("room", audience="staff"), [])

    def test_beside_silence(self):
        """Text beside a call that only ends the turn was said."""
        made = self.called(("noop", "{}"), content="The room is yours.")
        self.assertEqual(ids(self.search("room")), [made])

    def test_several_at_once(self):
        """Several calls of one reply are one turn, a line each."""
        self.called(("emote", '{"text": "nods."}'), ("say", '{"text": "Yes."}'))
        message = self.world.script.history.messages()[-1]
        self.assertEqual(turn_of_message(message, TRAITS).text, "nods.\nYes.")


class TestObservations(SearchTest):
    """What is known of people, places and things."""

    def setUp(self):
        super().setUp()
        elin = new_profile("n.elin", "Elin", 1.7e9)
        for day, town in enumerate(("Ford", "Ash")):
            fact = {"predicate": "lives in", "value": town}
            elin = observe(elin, f"Elin lives in {town}.", 1.7e9 + day, "m1", **fact)
        elin = observe(elin, "has debts", 1.7e9, "m2", "private:o1.a")
        self.world.body.entities.put({"n.elin": elin})

    def known(self, query, audience="public"):
        """The texts of observations found."""
        hits = self.search(query, audience=audience, observations=True)
        return [each.text for each in hits if each.kind == "observation"]

    def test_what_holds_now(self):
        """The latest value is found, and only where observations are wanted."""
        self.assertEqual(self.known("Where does Elin live?"), ["Elin lives in Ash."])
        self.assertEqual(self.known("who keeps bees"), [])
        self.assertEqual(self.search("Where does Elin live?"), [])

    def test_for_whom_it_is(self):
        """What is private is found by those who may know it."""
        self.assertEqual(self.known("what debts"), [])
        self.assertEqual(self.known("what debts", "private:o1.a"), ["About Elin: has debts"])

    def test_forgotten(self):
        """What is forgotten is found no more, and what it had superseded is again."""
        (newest,) = (h for h in self.search("Elin", observations=True) if "Ash" in h.text)
        elin = self.world.body.entities.get("n.elin")
        left = without_observation(elin, newest.turn_id)
        self.world.body.entities.put({"n.elin": left})
        self.assertNotIn("Elin lives in Ash.", self.known("Where does Elin live?"))
        self.world.body.entities.put({}, ["n.elin"])
        self.assertEqual(self.known("Where does Elin live?"), [])

    def test_by_the_tool(self):
        """The tool shows them."""
        ctx = ToolContext(self.world.script, self.world.body)
        (found,) = wait_for(SearchMemory().run(ctx, "Where does Elin live?"))["results"]
        self.assertEqual((found["kind"], found["text"]), ("observation", "Elin lives in Ash."))


class TestNothingMatches(SearchTest):
    """What nobody ever spoke of, in an index full of talk."""

    def setUp(self):
        super().setUp()
        lines = (
            "A {} was left at the door of the {}.",
            "They sell {} and {} at the market again.",
            "I would not trade my {} for a {}.",
        )
        things = ["barrel", "lantern", "ladder", "boot", "kettle"]
        things += ["saddle", "candle", "basket", "hammer", "blanket"]
        self.index.add(
            "Aria",
            [
                Turn(
                    f"m{n}",
                    ("Bram", "Cole", "Dora")[n % 3],
                    lines[n % 3].format(things[n % 10], things[n // 10 % 10]) + f" Day {n}.",
                    1.7e9 + 3600 * n,
                )
                for n in range(1000)
            ],
        )

    def test_unknown_word(self):
        """Finds nothing, asked in a word or in a sentence, and the tool says so."""
        for query in ("dragon", "Where is the dragon's hoard?", "zeppelin"):
            self.assertEqual(self.search(query), [])
        ctx = ToolContext(self.world.script, self.world.body)
        found = wait_for(SearchMemory().run(ctx, "dragon"))
        self.assertEqual(found["results"], [])
        self.assertIn("do not know", found["note"])

    def test_known(self):
        """A word in another form and a speaker's name, short or long, find."""
        for query in ("hammers", "Dora", "dor", "What did Cole sell?"):
            self.assertTrue(self.search(query), query)

    def test_near_in_meaning(self):
        """What is meant is found without a word of it."""
        told = self.say("Bram", "My puppy chewed the rug to pieces.")
        self.assertIn(told[0], ids(self.search("dogs")))

    def test_far_memories(self):
        """A memory with a word of the query counts, one without from the store's nearness on."""
        store = self.world.semantic = NearStore()
        self.world.restart()
        self.assertEqual(ids(self.search("dragon")), ["e1"])
        store.near = 0.5
        self.assertEqual(self.search("dragon"), [])
        self.assertIn("e1", ids(self.search("Who owes a drink?")))


class TestFailingIndex(SearchTest):
    """An index that cannot be written for a while."""

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
        wait_for(self.world.script.memory.forget(gone))
        kept = self.say("Bram", "A key again.")
        self.assertEqual(ids(self.search("key")), kept)

    def test_forgetting_fails(self):
        """A forgetting that failed says so."""
        gone = self.say("Bram", "The key is red.")
        self.index.broken = True
        self.assertIsNone(wait_for(self.world.script.memory.forget(gone)))


class TestSemanticHits(SearchTest):
    """What comes from semantic memory."""

    def remember(self, **metadata):
        """A memory of a red key."""
        item = {"source_id": "e1", "text": "The key is red.", "metadata": metadata}
        wait_for(self.world.semantic.add("Aria", [{**item, "metadata": metadata}]))

    def test_without_audience_for_staff(self):
        """A memory of which nobody knows for whom it is, is found by staff alone."""
        self.remember()
        self.assertEqual(self.search("key"), [])
        self.assertEqual(len(self.search("key", audience="staff")), 1)

    def test_agreement(self):
        """What both sources find stands before what either finds alone."""
        said = self.say("Bram", *(f"The key of room {n} is {'very ' * n}red." for n in range(20)))
        late = ids(self.search("key", limit=20))[14]
        self.assertIn(late, said)
        item = {"source_id": late, "text": "A red key", "metadata": {"audience": "public"}}
        wait_for(self.world.semantic.add("Aria", [item]))
        found = self.search("key", limit=10)
        self.assertEqual((found[0].turn_id, found[0].kind), (late, "message"))

    def test_unknown_viewers(self):
        """Who asks for nobody known is told what is public, by either source."""
        self.remember(audience="private:o1.a")
        whisper = Turn("m9", "Bram", "The key is blue.", 1.7e9, None, "private:o1.a")
        self.index.add("Aria", [whisper])
        self.assertEqual(len(self.search("key", audience="staff")), 2)
        for nobody_known in (None, "", "o1.a", "Public", "everyone", "private:"):
            self.assertEqual(self.search("key", audience=nobody_known), [])

    def test_worn_out(self):
        """A memory of small importance is found for a month."""
        at = self.world.script.now()
        self.remember(audience="public", importance=1, at=utc_iso(at))
        for days, found in ((KEEP_DAYS - 1, 1), (KEEP_DAYS + 1, 0)):
            memory = Memory(
                "Aria",
                RecallJobs(InlineWorker(), lambda: self.index),
                lambda: self.world.semantic,
                now=lambda days=days: at + days * 86400,
            )
            self.assertEqual(len(wait_for(memory.search(Query("key")))), found)


class TestCount(SearchTest):
    """How much is indexed, asked while the thread is busy."""

    def test_waits_for_what_was_added(self):
        """What was said just before is counted."""
        jobs, free = RecallJobs(Worker("test-recall"), lambda: self.index), threading.Event()
        self.addCleanup(free.set)
        jobs.worker.submit(free.wait)
        jobs.add("Aria", [Turn("m1", "Bram", "The key is blue.", 1.7e9)])
        count = jobs.count("Aria")
        free.set()
        self.assertEqual(wait_for(count), self.index.count("Aria"))
        self.assertEqual(self.index.count("Aria"), 1)
