"""What `Memory.search` finds, and that the index keeps up with what is stored."""

import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

from twisted.internet.defer import succeed
from twisted.internet.task import Clock

from evennia_ai import services
from evennia_ai.core.crowding import QUESTIONS, asks, echoes_last, once, repeats_last, worth_quoting
from evennia_ai.core.entities import new_profile, observe, tidy
from evennia_ai.core.events import by_audience
from evennia_ai.core.messages import utc_iso
from evennia_ai.doctor import Patient, check_index, run_checks
from evennia_ai.errors import StoreError
from evennia_ai.handlers.indexing import (
    BATCH,
    missing_oldest,
    rebuild_index,
    restore_index,
    restore_lost,
)
from evennia_ai.helpers.episodic_index import KEEP_DAYS
from evennia_ai.indexed_turns import turn_of_message
from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.retrieval import DEEP, Memory
from evennia_ai.sleep import prune_episodic_index
from evennia_ai.sleep.forgetting import forget_entry
from evennia_ai.testing import MemorySemanticStore
from evennia_ai.tick import _retrieved
from evennia_ai.tools.base import ToolContext
from evennia_ai.tools.memory import SearchMemory
from tests.base import AssistantTest
from tests.memory_assistant import InlineWorker, MemoryWorld
from tests.waiting import pump_until, wait_for

QUESTION = "Aria, where is the forge of the smith?"
FACT = "If you need a blade, the smith has his forge down at the old harbour, next to the ropewalk."
MOVED = "The smith has moved his forge up to the north gate, by the way."
ECHO = "The smith's forge? At the old harbour, next to the ropewalk, as Bram said."


def hit(hit_id, text, speaker="Bram", at=None, kind="message", score=0.5):
    """A search result; ids made of a letter and a number tell the time."""
    return {
        "id": hit_id,
        "kind": kind,
        "speaker": speaker,
        "text": text,
        "score": score,
        "at": f"2026-01-{int(hit_id[1:]):02d}" if at is None else at,
    }


def ids(hits):
    """Ids of results."""
    return [each["id"] for each in hits]


class CountingIndex(RecallIndex):
    """A real index that keeps how many hits it was asked for, and that can be broken."""

    def __init__(self):
        super().__init__(":memory:")
        self.limits, self.sizes = [], []
        self.broken = False

    def add(self, scope, turns):
        """As `RecallIndex.add`."""
        self._work()
        self.sizes.append(len(turns))
        return super().add(scope, turns)

    def remove(self, scope, ids):
        """As `RecallIndex.remove`."""
        self._work()
        return super().remove(scope, ids)

    def _work(self):
        if self.broken:
            raise OSError("database is locked")

    def search(self, scope, query, limit=10, audience=None):
        """As `RecallIndex.search`."""
        self.limits.append(limit)
        return super().search(scope, query, limit, audience)


class NearStore(MemorySemanticStore):
    """A semantic store that finds one memory, not very near, whatever is looked for."""

    def search(self, scope, query, limit=10, audience=None):
        """The memory."""
        metadata = {"source_id": "e1", "audience": "public"}
        found = {"id": "v1", "text": "Bram owes Cole a drink.", "score": 0.4, "metadata": metadata}
        return succeed([found])


class SearchTest(unittest.TestCase):
    """An assistant with a real index."""

    def setUp(self):
        self.world = MemoryWorld()
        self.index = self.world.index = CountingIndex()
        self.world.restart()

    def say(self, speaker, *texts):
        """Messages of somebody, an hour apart, into the history; their ids."""
        stored = []
        for text in texts:
            self.world.later(3600)
            role = "assistant" if speaker == "Aria" else "user"
            said = {"role": role, "channel": "say", "speaker": {"key": speaker, "id": "o1"}}
            stored += self.world.script.history.append([{**said, "content": text}])
        return ids(stored)

    def search(self, query, limit=12, audience="public", **options):
        """What is found."""
        return wait_for(self.world.script.memory.search(query, limit, audience, **options))


class TestAsks(unittest.TestCase):
    """Which texts only ask."""

    def test_questions(self):
        """Marked or not, with somebody's name before them, with little told beside them."""
        for text in (
            QUESTION,
            "Where is the forge, Aria? I need a blade.",
            "where is the forge",
            "what's the way to the mill",
            "Aria, how many cows does Bob own",
            "Aria, can you tell me the way to the mill",
            "'Who goes there?'",
        ):
            self.assertTrue(asks(text), text)

    def test_statements(self):
        """What tells more than it asks, exclaims, or only begins like a question."""
        for text in (
            FACT,
            ECHO,
            "Do you know Bram? He has his forge at the harbour.",
            "What I have is gold.",
            "What a day!",
            "He paid 3.5 crowns for it.",
            "",
        ):
            self.assertFalse(asks(text), text)


class TestOnce(unittest.TestCase):
    """Identical texts."""

    def test_last_said_at_the_best_place(self):
        """A speaker's text stands once, with its newest id, where the first of them stood."""
        found = once([hit("m1", "I live here."), hit("m2", "Ha."), hit("m3", " i live HERE.")])
        self.assertEqual(ids(found), ["m3", "m2"])
        self.assertEqual(ids(once([hit("m3", "Ha."), hit("m1", "Ha.")])), ["m3"])

    def test_by_speaker(self):
        """The same words of two people are two things told, but one thing asked."""
        self.assertEqual(len(once([hit("m1", "I live here."), hit("m2", "I live here.", "Bo")])), 2)
        self.assertEqual(len(once([hit("m1", "Who is it?"), hit("m2", "Who is it?", "Bo")])), 1)


class TestRepeatsLast(unittest.TestCase):
    """The same words of many."""

    def test_few_first(self):
        """The first two that say it stand where they stood, the others last."""
        cheers = [hit(f"m{n}", "Cheers!", f"Guest{n}") for n in (1, 2, 3, 4)]
        self.assertEqual(
            ids(repeats_last([*cheers, hit("m5", FACT)])), ["m1", "m2", "m5", "m3", "m4"]
        )


class TestEchoesLast(unittest.TestCase):
    """The assistant's own lines."""

    def test_nobody_speaks_in_a_journal(self):
        """Without a name to look for, entries of the journal are nobody's echoes."""
        entries = [hit(f"e{n}", f"Entry {n}.", "", kind="journal") for n in range(1, 6)]
        self.assertEqual(ids(echoes_last([*entries, hit("m9", "Ha.")], ""))[-1], "m9")


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


class TestWorthQuoting(unittest.TestCase):
    """What a prompt may quote."""

    def quoted(self, *hits):
        """Ids of those among the hits that may be quoted to who asks for the forge."""
        return ids(worth_quoting(hits, "Aria", QUESTION))

    def test_questions_only_without_answers(self):
        """An earlier asking is quoted where nothing else was found."""
        asked, told = hit("m1", QUESTION, "Cole"), hit("m2", FACT)
        self.assertEqual(self.quoted(asked, told), ["m2"])
        self.assertEqual(self.quoted(asked), ["m1"])

    def test_one_own_line(self):
        """Of her own lines the first only."""
        own = [hit(f"m{n}", f"The smith has his forge, {n}.", "Aria") for n in (5, 4, 3)]
        self.assertEqual(self.quoted(hit("m1", FACT), *own), ["m1", "m5"])

    def test_no_own_line_on_what_changed(self):
        """None where others spoke of it later; a later line on another thing takes away none."""
        echo = hit("m2", ECHO, "Aria")
        self.assertEqual(self.quoted(echo, hit("m3", MOVED)), ["m3"])
        self.assertEqual(self.quoted(echo, hit("m3", "Rain again.")), ["m2", "m3"])
        beside = hit("m2", "Nothing of that.", "Aria")
        self.assertEqual(self.quoted(beside, hit("m3", MOVED)), ["m2", "m3"])

    def test_what_was_told_later(self):
        """A later line that shares as much scores as well as the earlier; no other line does."""
        old, new = hit("m1", FACT, score=0.4), hit("m3", MOVED, score=0.001)
        scores = [each["score"] for each in worth_quoting([old, new], "Aria", QUESTION)]
        self.assertEqual(scores, [0.4, 0.4])
        for other in (
            hit("m3", "The forge is hot.", score=0.001),
            hit("m3", MOVED, kind="memory", score=0.001),
        ):
            kept = worth_quoting([old, other], "Aria", QUESTION)[1]
            self.assertEqual(kept["score"], 0.001)


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
            [{"role": "user", "channel": "say", "speaker": {"key": "Dora"}, "content": QUESTION}]
        )
        (group,) = by_audience(asked)
        quoted = wait_for(_retrieved(self.world.script, self.world.body, group))
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
        reply = {"role": "assistant", "channel": "say", "audience": audience, "content": content}
        speaker = {"key": "Aria", "id": "o9"}
        stored = self.world.script.history.append(
            [{**reply, "speaker": speaker, "tool_calls": made}]
        )
        return stored[0]["id"]

    def test_is_found(self):
        """What was said, posed or whispered is found under the message's id."""
        for tool in ("say", "emote", "whisper"):
            made = self.called((tool, f'{{"text": "I {tool} that you get a free room."}}'))
            self.assertIn((made, "Aria"), [(h["id"], h["speaker"]) for h in self.search("room")])

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
        self.assertEqual(turn_of_message(message)["text"], "nods.\nYes.")


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
        return [each["text"] for each in hits if each["kind"] == "observation"]

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
        (newest,) = (h for h in self.search("Elin", observations=True) if "Ash" in h["text"])
        elin = self.world.body.entities.get("n.elin")
        left = [o for o in elin["observations"] if o["id"] != newest["id"]]
        self.world.body.entities.put({"n.elin": tidy({**elin, "observations": left})})
        self.assertNotIn("Elin lives in Ash.", self.known("Where does Elin live?"))
        self.world.body.entities.remove(["n.elin"])
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
        self.assertEqual((found[0]["id"], found[0]["kind"]), (late, "message"))

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
                InlineWorker(),
                lambda: self.index,
                lambda: self.world.semantic,
                now=lambda days=days: at + days * 86400,
            )
            self.assertEqual(len(wait_for(memory.search("key"))), found)


class TestForgetting(SearchTest):
    """Journal entries taken out of all searches."""

    def setUp(self):
        super().setUp()
        self.entry = self.world.body.journal.add("The key is under the mat.", importance=3)

    def forget(self):
        """Forget the entry."""
        return wait_for(forget_entry(self.world.script, self.world.body, self.entry["id"]))

    def test_index_down(self):
        """A forgetting the index did not take part in fails, and can be repeated."""
        self.index.broken = True
        with self.assertRaisesRegex(StoreError, "aimemory/forget` again"):
            self.forget()
        self.assertTrue(self.world.body.journal.get(self.entry["id"])["withdrawn"])
        self.index.broken = False
        self.forget()
        self.assertEqual(self.search("mat"), [])

    def test_killed_in_between(self):
        """What was withdrawn when the server died leaves the index at the next start."""
        self.world.body.journal.withdraw([self.entry["id"]])
        self.assertEqual(ids(self.search("mat")), [self.entry["id"]])
        self.world.restart()
        self.assertEqual(self.search("mat"), [])

    def test_before_the_night(self):
        """An entry of small importance is found for a month, though the index still holds it."""
        self.world.later((KEEP_DAYS - 1) * 86400)
        self.assertEqual(ids(self.search("mat")), [self.entry["id"]])
        self.world.later(2 * 86400)
        self.assertEqual(self.search("mat"), [])
        self.assertEqual(self.index.count("Aria"), 1)

    def test_nightly(self):
        """The night takes out what was withdrawn or is worn, however long ago it was written."""
        withdrawn = self.world.body.journal.add("The mat is red.")
        for number in range(1_050):
            self.world.body.journal.add(f"Nothing of note, {number}.", importance=9)
        self.world.body.journal.withdraw([withdrawn["id"]])
        self.world.later((KEEP_DAYS + 1) * 86400)
        counts = wait_for(prune_episodic_index(self.world.script, self.world.body))
        self.assertEqual(counts, {"pruned": 1, "kept": 1_050})
        gone = {self.entry["id"], withdrawn["id"]}
        self.assertEqual(gone & set(ids(self.search("mat", limit=100))), set())


class TestByHand(SearchTest):
    """What a builder writes into Attributes."""

    def setUp(self):
        super().setUp()
        self.first = self.say("Bram", "The key is red.")[0]
        self.entry = self.world.body.journal.add("The key is under the mat.")
        self.stores = {"script": self.world.storage.script, "body": self.world.storage.body}

    def tail(self):
        """The open page of the history, to be changed."""
        return self.world.attribute("conversation_tail")

    def page(self):
        """The newest page of the journal, to be changed."""
        return self.stores["body"].get("journal")

    def put(self, tail=None, page=None):
        """Write them."""
        if tail:
            self.stores["script"].set("conversation_tail", tail)
        if page:
            self.stores["body"].set("journal", page)

    def test_found_at_once(self):
        """What is put in is found by the next search."""
        tail, page = self.tail(), self.page()
        tail["messages"].append({"role": "user", "content": "The key is blue.", "channel": "say"})
        page["entries"].append("The key is green.")
        self.put(tail, page)
        texts = {hit["text"] for hit in self.search("key")}
        self.assertLessEqual({"The key is blue.", "The key is green."}, texts)
        self.assertEqual(len(texts), 4)

    def test_narrowed(self):
        """What is kept from others is found by them no more, nor its memory, and not lost."""
        item = {"source_id": self.entry["id"], "text": "A key", "metadata": {"audience": "public"}}
        for restarts in (False, True):
            wait_for(self.world.semantic.add("Aria", [item]))
            tail, page = self.tail(), self.page()
            circle = "private:o1.a" if restarts else "private:o2.b"
            tail["messages"][0]["audience"] = page["entries"][0]["audience"] = circle
            self.put(tail, page)
            if restarts:
                self.world.restart()
            self.assertEqual(self.search("key"), [])
            found = ids(self.search("key", audience=circle))
            self.assertEqual(sorted(found), sorted([self.first, self.entry["id"]]))
            self.assertEqual(self.world.memories(), [])

    def test_withdrawn(self):
        """An entry that is withdrawn by hand is found no more."""
        page = self.page()
        page["entries"][0]["withdrawn"] = True
        self.put(page=page)
        self.assertEqual(ids(self.search("key")), [self.first])

    def test_nothing_changed(self):
        """An Attribute that is written as it was is indexed no second time."""
        self.put(self.tail(), self.page())
        self.index.broken = True
        self.assertEqual(len(self.search("key")), 2)
        self.assertEqual(self.world.script.errors, [])


class TestWholeIndex(SearchTest):
    """An index that lost what is stored."""

    def setUp(self):
        super().setUp()
        history = self.world.script.history
        for number in range(4):  # folded, the oldest first
            self.say("Bram", *(f"Barrel {number}, {each}." for each in range(60)))
            history.archive(f"{number:03}", "s1", history.messages())
            history.replace([])
        for number in range(120):
            self.world.body.journal.add(f"Barrels, {number}.")
        self.say("Bram", "The last barrel.")
        self.all = 4 * 60 + 120 + 1
        self.assertEqual(self.index.count("Aria"), self.all)

    def settle(self):
        """Wait until nothing is put into the index any more."""
        pump_until(lambda: not self.world.script.memory.restoring)

    def lacking(self):
        """How many of the oldest turns are missing."""
        return wait_for(missing_oldest(self.world.script))

    def test_emptied(self):
        """An index that was thrown away or of an older schema is made whole at the start."""
        self.index.clear("Aria")
        self.assertGreater(self.lacking(), 0)
        self.world.restart()
        self.settle()
        self.assertEqual((self.index.count("Aria"), self.lacking()), (self.all, 0))
        self.assertIn("index restored", str(self.world.script.audits))

    def test_folded_before_it_was_indexed(self):
        """The newest segments are looked at at each start, though the oldest turns are there."""
        folded = [m["id"] for m in self.world.script.history.segment("003")["messages"]]
        self.index.remove("Aria", folded)
        self.assertEqual(self.lacking(), 0)
        self.world.restart()
        self.assertEqual(self.index.count("Aria"), self.all)
        self.assertNotIn("index restored", str(self.world.script.audits))

    def test_broken_off(self):
        """What a stop kept from being put in is put in after the next start."""
        self.index.clear("Aria")
        clock = Clock()
        restore_index(self.world.script, clock)
        self.assertEqual(wait_for(restore_index(self.world.script, clock)), 0)  # runs already
        clock.advance(1)
        self.assertLess(self.index.count("Aria"), self.all)
        self.world.restart()
        self.settle()
        self.assertEqual(self.index.count("Aria"), self.all)

    def test_rebuilding_broken_off(self):
        """A rebuilding that a stop broke off goes on after the next start; others search in it."""
        history = self.world.script.history
        said = {"role": "user", "channel": "say", "speaker": {"key": "Bram", "id": "o1"}}
        history.append([{**said, "content": f"Cask {number}."} for number in range(2_100)])
        self.index.add("Bo", [Turn("b1", "Bram", "A cask.", 1.7e9)])
        self.index.sizes.clear()
        clock = Clock()
        rebuild_index(self.world.script, clock)
        clock.advance(1)
        self.assertEqual(self.index.count("Aria"), 2 * BATCH)
        self.assertEqual(max(self.index.sizes), BATCH)
        self.assertEqual([hit.turn_id for hit in self.index.search("Bo", "cask")], ["b1"])
        self.world.restart()
        self.settle()
        self.assertEqual(self.index.count("Aria"), self.all + 2_100)
        self.assertEqual(self.lacking(), 0)

    def test_rebuilding_fails(self):
        """A rebuilding that fails in the middle is told, and gone on with after the next start."""
        clock = Clock()
        done = rebuild_index(self.world.script, clock)
        self.index.broken = True
        clock.advance(1)
        with self.assertRaises(StoreError):
            wait_for(done)
        self.index.broken = False
        self.assertLess(self.index.count("Aria"), self.all)
        self.world.restart()
        self.settle()
        self.assertEqual((self.index.count("Aria"), self.lacking()), (self.all, 0))

    def test_not_twice(self):
        """While the index is made whole it cannot be rebuilt."""
        restore_index(self.world.script, Clock())
        with self.assertRaisesRegex(StoreError, "already"):
            wait_for(rebuild_index(self.world.script))
        self.assertEqual(self.index.count("Aria"), self.all)

    def test_replaced_in_between(self):
        """Where another index comes in the place of one being filled, it is filled whole."""
        memory, clock = self.world.script.memory, Clock()
        opened = [self.index]
        memory._open_index = lambda: opened[-1]
        done = rebuild_index(self.world.script, clock)
        clock.advance(1)
        opened.append(CountingIndex())
        for _ in range(2 * self.all // BATCH):
            clock.advance(1)
        wait_for(done)
        self.assertEqual(opened[-1].count("Aria"), self.all)
        self.assertFalse(opened[-1].is_filling("Aria"))

    def test_deleted_meanwhile(self):
        """Of an assistant that is deleted while it goes on, no more is put in."""
        self.index.clear("Aria")
        clock = Clock()
        done = restore_index(self.world.script, clock)
        self.world.script.pk = None
        clock.advance(1)
        self.assertEqual(wait_for(done), self.index.count("Aria"))
        self.assertLess(self.index.count("Aria"), self.all)

    def test_cannot_be_read(self):
        """Where what is stored cannot be read, that is logged, at a start or later."""
        self.world.restart()
        script = self.world.script
        script.history = None
        wait_for(restore_lost(script))
        self.assertEqual([what for what, _ in script.errors], ["search index"])

    def test_cannot_be_written(self):
        """An index that takes nothing is given up until the next start, and it is said."""
        self.index.clear("Aria")
        self.index.broken = True
        self.world.restart()
        self.settle()
        self.assertIn("stays incomplete", str(self.world.script.audits))

    def test_another_index(self):
        """Where another index takes the place of the one used, it is filled."""
        self.world.restart()
        memory = self.world.script.memory
        opened = [self.index]
        memory._open_index = lambda: opened[-1]
        self.search("barrel")
        opened.append(CountingIndex())
        self.search("barrel")
        self.settle()
        self.assertEqual(opened[-1].count("Aria"), self.all)


class TestNothingOld(SearchTest):
    """Where the oldest that is stored is out of retrieval, and so tells nothing."""

    def test_rebuilding_broken_off(self):
        """A filling that was broken off is known all the same."""
        journal = self.world.body.journal
        for number in range(60):
            journal.add(f"Small beer, {number}.", importance=1)
        self.world.later((KEEP_DAYS + 1) * 86400)
        for number in range(2 * BATCH):
            journal.add(f"Barrels, {number}.")
        rebuild_index(self.world.script, Clock())
        self.assertLess(self.index.count("Aria"), 2 * BATCH)
        self.assertEqual(wait_for(missing_oldest(self.world.script)), 1)
        self.world.restart()
        pump_until(lambda: not self.world.script.memory.restoring)
        self.assertEqual(self.index.count("Aria"), 2 * BATCH)
        self.assertEqual(wait_for(missing_oldest(self.world.script)), 0)


class TestLostFile(unittest.TestCase):
    """The index's file, deleted under a running game."""

    def setUp(self):
        kept = dict(services._made)
        self.addCleanup(services._made.update, kept)
        self.addCleanup(services.reset)
        services.reset()
        self.folder = Path(self.enterContext(TemporaryDirectory()))
        services.use(data_dir=self.folder)

    def test_opened_anew(self):
        """What is added after it is in a file that a restart finds; till then it stays open."""
        first = services.index()
        first.add("Aria", [Turn("m1", "Bram", "A key.", 1.7e9)])
        self.assertIs(services.index(), first)
        for path in self.folder.iterdir():
            path.unlink()
        second = services.index()
        self.assertIsNot(second, first)
        second.add("Aria", [Turn("m2", "Bram", "A key.", 1.7e9)])
        second.close()
        again = RecallIndex(self.folder / "recall.sqlite3")
        self.assertEqual([turn.id for turn in again.get("Aria", ["m1", "m2"])], ["m2"])
        again.close()

    def test_another_file(self):
        """A file that was put in its place is opened."""
        first = services.index()
        RecallIndex(self.folder / "other").close()
        (self.folder / "other").replace(self.folder / "recall.sqlite3")
        self.assertIsNot(services.index(), first)
        services.index().close()

    def filled(self):
        """The path of a closed index's file, with many turns in it."""
        turns = [Turn(f"m{n}", "Bram", f"Key {n} opens door {n}.", 1.7e9 + n) for n in range(900)]
        index = RecallIndex(self.folder / "recall.sqlite3")
        index.add("Aria", turns)
        index.close()
        return self.folder / "recall.sqlite3"

    def test_not_a_database(self):
        """A file that is no database is put aside for an empty one, and goes with a removal."""
        path = self.filled()
        path.write_bytes(b"not a database at all" * 100)
        index = services.index()
        self.addCleanup(index.close)
        self.assertEqual(index.count("Aria"), 0)
        aside = self.folder / "recall.sqlite3.damaged"
        self.assertTrue(aside.read_bytes().startswith(b"not a database"))
        index.add("Aria", [Turn("m1", "Bram", "A key.", 1.7e9)])
        index.remove("Aria", ["m1"])
        self.assertFalse(aside.exists())

    def test_damaged(self):
        """A file found damaged in use is put aside, and what was asked is asked of a new one."""
        path = self.filled()
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 3] + bytes([255]) * (len(whole) * 2 // 3))
        errors, lost = [], []
        memory = Memory(
            "Aria",
            InlineWorker(),
            services.index,
            report=lambda *e: errors.append(e),
            on_new_index=lambda: lost.append(services.index().count("Aria")),
        )
        self.assertEqual(wait_for(memory.search("key 7")), [])
        self.addCleanup(services.index().close)
        self.assertEqual((errors, lost), ([], [0]))
        self.assertTrue((self.folder / "recall.sqlite3.damaged").exists())

    def test_cannot_be_opened(self):
        """A file that cannot be opened for another reason stays where it is."""
        (self.folder / "recall.sqlite3").mkdir()
        with self.assertRaises(StoreError):
            services.index()
        self.assertTrue((self.folder / "recall.sqlite3").is_dir())

    def test_put_in_place(self):
        """An index somebody put in place is used whatever becomes of files."""
        services.index().close()
        mine = RecallIndex(":memory:")
        services.use(index=mine)
        for path in self.folder.iterdir():
            path.unlink()
        self.assertIs(services.index(), mine)


class TestRebuild(AssistantTest):
    """The command's rebuilding."""

    def test_fails(self):
        """An index that cannot be written is an error, not a count."""
        closed = RecallIndex(":memory:")
        closed.close()
        services.use(index=closed)
        with self.assertRaises(StoreError):
            wait_for(rebuild_index(self.script))


class TestDoctor(AssistantTest):
    """What the doctor says of the index."""

    def looked(self):
        """The finding."""
        (found,) = wait_for(run_checks(Patient("."), [check_index]))
        return found

    def test_index(self):
        """Whole, lacking what is stored, being mended, and not to be read."""
        self.aria.journal.add("The key is under the mat.")
        wait_for(self.script.memory.count())
        self.assertTrue(self.looked().ok)
        wait_for(self.script.memory.clear())
        found = self.looked()
        self.assertIs(found.ok, False)
        self.assertIn("aimemory/rebuild Aria", found.remedy)
        with self.script.memory.restore():
            self.assertIsNone(self.looked().ok)
        wait_for(restore_index(self.script))
        self.assertTrue(self.looked().ok)
        closed = RecallIndex(":memory:")
        closed.close()
        services.use(index=closed)
        self.assertIn("cannot be read", self.looked().detail)
