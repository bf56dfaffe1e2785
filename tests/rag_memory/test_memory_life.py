"""Memory over days: nothing recalled becomes a memory."""

from evennia_ai.game.seeing import stable_id
from evennia_ai.rag_memory.entities import current, new_profile, observe
from evennia_ai.recall.values import Query
from evennia_ai.sleep.compaction import run_pre_compaction_extraction
from evennia_ai.testing import call
from tests.base import AssistantTest
from tests.waiting import wait_for

FACTS = (
    "My sister Elin keeps bees behind the mill.",
    "The baker owes me 7 coins since harvest.",
    "My dog Biscuit bit the tax collector.",
)
BEES = ("Char's sister Elin is a keeper of bees.", "Behind the mill, Char's sister keeps bees.")
DEBT = ("The baker still owes Char 7 coins.", "7 coins: the baker owes them to Char.")
BITE = ("The tax collector was bit by Char's dog Biscuit.", "Biscuit, Char's dog, bit him.")
PARAPHRASES = {"Elin": BEES, "7 coins": DEBT, "tax collector": BITE}
ASKED = (
    "Aria, who of us keeps bees behind the mill?",
    "Aria, what does the baker owe me since harvest?",
    "Aria, whom did my dog Biscuit bite: the collector?",
)


def retells_all_it_knows(request):
    """A model that answers from its prompt and writes down in other words what stands there.

    Awake it answers first and notes later; before a compaction it notes what stands above.
    """
    shown = " ".join(str(m["content"]) for m in request.messages[1:])
    last = [m for m in request.messages if not str(m["content"]).startswith("[")][-1]
    if last["role"] == "tool":
        return call("noop")
    known = [texts for key, texts in PARAPHRASES.items() if key in shown]
    if request.purpose == "awake":
        return " ".join(texts[0] for texts in known) or "Hm."
    notes = [call("add_journal_entry", content=text)[0] for texts in known for text in texts]
    entity = {"entity": "Char", "predicate": "owed by the baker", "value": "7 coins"}
    return notes + call("update_entity_observation", observation=DEBT[0], **entity)


class TestParaphrases(AssistantTest):
    """A week in which everything is told again in other words, the extraction included."""

    def one_day(self):
        """Questions, answers from memory, an extraction and a dream; what is held afterwards."""
        for question in ASKED:
            self.say(question)
            self.tick()
        wait_for(run_pre_compaction_extraction(self.script, self.aria))
        wait_for(self.script._run_sleep_tick())
        return len(wait_for(self.semantic.ids(self.script.scope)))

    def test_the_store_stays_bounded(self):
        """What she knows only from memory becomes no memory, whoever words it and when."""
        for fact in FACTS:
            self.aria.journal.add(f"Char: {fact}")
        char = new_profile(stable_id(self.char1), "Char", 0.0)
        owed = {"predicate": "owed by the baker", "value": "2 coins"}
        paid = observe(char, "Char got 5 coins back.", 2e9, "m1", **owed)
        self.aria.entities.put({char.id: paid})
        self.model.default = retells_all_it_knows
        days = [self.one_day() for _ in range(7)]
        asked = [request.purpose for request in self.model.requests]
        self.assertIn("pre_compaction", asked)
        spoken = [m for m in self.script.history.messages() if m.metadata.get("memories")]
        self.assertTrue(spoken, "she did answer from memories")
        self.assertEqual(days, [len(FACTS)] * 7)
        known = self.aria.entities.get(char.id).observations
        held = [b.observation.value for b in current(known, "staff") if b.observation.predicate]
        self.assertEqual(held, ["2 coins"])


class TestToldAgain(AssistantTest):
    """What was said once in passing, and then told again to be remembered."""

    def asked_to_remember(self, content="Char's sister Elin keeps bees behind the mill."):
        """The newest entry, after a turn that shows the older line first and would note this."""
        note = call("add_journal_entry", content=content)
        self.model.answers = [call("search_memory", query="bees"), note, call("noop")]
        self.say("Aria, please remember: my sister Elin keeps bees behind the mill.")
        self.tick()
        return self.aria.journal.recent(1)[0]

    def test_is_a_memory(self):
        """It is kept as something told; told once more, it is there already."""
        self.say(FACTS[0])
        self.tick()
        entry = self.asked_to_remember()
        self.assertEqual(entry.source_type, "assistant")
        hits = wait_for(self.script.memory.search(Query("who keeps bees")))
        self.assertIn(entry.id, {hit.turn_id for hit in hits})
        wait_for(self.script._run_sleep_tick())
        self.assertIn(entry.id, wait_for(self.semantic.ids(self.script.scope)))
        self.aria.journal.add("The key is red.")
        again = self.asked_to_remember("Char's sister Elin keeps bees, behind the mill!")
        self.assertEqual(again.content, "The key is red.")

    def test_another_value_is_news(self):
        """What the journal has another value of is kept, though the words were heard before."""
        self.aria.journal.add("Char's sister Elin keeps bees behind the smithy.")
        self.say(FACTS[0])
        self.tick()
        self.assertEqual(self.asked_to_remember().source_type, "assistant")
