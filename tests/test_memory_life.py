"""Memory over days: nothing recalled becomes a memory, and what is derived can be made anew."""

import json
import shutil
import tempfile
from pathlib import Path

from evennia_ai import services
from evennia_ai.commands.memory import rebuild_index
from evennia_ai.rag_memory import Mem0Store
from evennia_ai.testing import call
from tests.base import AssistantTest
from tests.stand_ins import HashingEmbedder
from tests.waiting import wait_for

FACTS = (
    "My sister Elin keeps bees behind the mill.",
    "The baker owes me 7 coins since harvest.",
    "My dog Biscuit bit the tax collector.",
)
QUESTIONS = ("Aria, who keeps bees?", "Aria, what does the baker owe?", "Aria, my dog Biscuit?")


def journals_all_it_was_shown(request):
    """A model that searches, then writes down whatever its prompt and its search showed."""
    last = [m for m in request.messages if not str(m["content"]).startswith("[")][-1]
    if last["role"] != "tool":
        heard = [m["content"] for m in request.messages if " says: " in str(m["content"])]
        return call("search_memory", query=str(heard[-1])[-60:])
    if last["name"] == "add_journal_entry":
        return call("noop")
    blocks = [m["content"] for m in request.messages if str(m["content"]).startswith("[Memories]")]
    lines = [line for block in blocks for line in block.splitlines()[1:]]
    found = json.loads(last["content"])["results"]
    lines += [f"{hit.get('speaker', '')} said: {hit['text']}" for hit in found]
    calls = [call("add_journal_entry", content=line)[0] for line in lines]
    return calls or call("noop")


class TestWeek(AssistantTest):
    """Seven days of the same questions, and seven nights."""

    def one_day(self):
        """Everybody asks; then she sleeps. Returns (memories, indexed entries, journal)."""
        for question in QUESTIONS:
            self.say(question)
            self.tick()
        wait_for(self.script._run_sleep_tick(), 60)
        memories = len(wait_for(self.semantic.ids(self.script.scope)))
        journal = self.aria.journal
        lived = [e for e in journal.all() if e["source_type"] != "recalled"]
        return memories, len(lived), journal.count()

    def test_the_store_stays_bounded(self):
        """What was found again and written down again is neither a memory nor found twice."""
        for fact in FACTS:
            self.say(fact)
            self.model.answers = [call("add_journal_entry", content=f"Char: {fact}"), call("noop")]
            self.tick()
        self.model.default = journals_all_it_was_shown
        days = [self.one_day() for _ in range(7)]
        self.assertEqual({(memories, lived) for memories, lived, _ in days}, {(3, 3)})
        journaled = [count for *_, count in days]
        self.assertGreater(journaled[0], 3, "the model did write down what it was shown")
        self.assertLess(journaled[-1], 3 + 7 * 3 * 5)
        hits = wait_for(self.script.memory.search("who keeps bees", limit=30))
        recalled = {e["id"] for e in self.aria.journal.all() if e["source_type"] == "recalled"}
        self.assertFalse(recalled & {hit["id"] for hit in hits})


class TestThrownAway(AssistantTest):
    """What is derived, thrown away."""

    questions = ("who keeps bees", "what is owed by the baker", "whom did the dog bite")

    def found(self):
        """What each question finds, in order."""
        return [
            [hit["id"] for hit in wait_for(self.script.memory.search(question, limit=5))]
            for question in self.questions
        ]

    def test_index(self):
        """The index, thrown away and rebuilt from what is stored, gives the same answers."""
        for number, fact in enumerate(FACTS * 3):
            self.say(f"{fact} ({number})")
            self.tick()
            self.aria.journal.add(f"Char said: {fact} {number}")
        gone = self.aria.journal.add("Char keeps bees in secret")
        self.aria.journal.add("Char keeps bees again", source_type="recalled")
        self.aria.journal.add("bees, once", importance=1, timestamp="2020-01-01T00:00:00+00:00")
        wait_for(self.script._run_sleep_tick(), 60)
        self.aria.journal.withdraw([gone["id"]])
        wait_for(self.script.memory.forget([gone["id"]]))
        before = self.found()
        self.assertTrue(all(before))
        wait_for(services.worker().submit(lambda: services.index().clear(self.script.scope)))
        wait_for(rebuild_index(self.script), 60)
        self.assertEqual(self.found(), before)

    def test_semantic_store(self):
        """Mem0's files, thrown away between two runs, are made again by the next night."""
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        entries = [self.aria.journal.add(fact) for fact in FACTS]
        forgotten = self.aria.journal.add("a thing to forget")

        def night():
            store = Mem0Store(folder / "mem0", embedder=HashingEmbedder())
            services.use(semantic=store)
            report = wait_for(self.script._run_sleep_tick(), 120)
            held = set(wait_for(store.sources(self.script.scope), 60))
            wait_for(store.close(), 60)
            return report, held

        self.assertEqual(night()[1], {entry["id"] for entry in [*entries, forgotten]})
        self.aria.journal.withdraw([forgotten["id"]])
        shutil.rmtree(folder / "mem0")
        report, held = night()
        self.assertEqual(report["memory_repair"]["repaired"], len(FACTS))
        self.assertEqual(held, {entry["id"] for entry in entries})
