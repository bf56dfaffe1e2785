"""Pre-compaction extraction: facts are safe in the journal before anything is folded."""

from dataclasses import replace

from evennia_ai.game.seeing import stable_id
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction.contexts import CONTEXT_PRE_COMPACTION
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.rag_memory.entities import current
from evennia_ai.sleep import run_sleep_tick
from evennia_ai.sleep.compaction import run_pre_compaction_extraction
from evennia_ai.testing import call
from tests.asked import model_down
from tests.base import AssistantTest
from tests.waiting import wait_for

SUMMARY = "They talked of the harvest."


def entry(content, **fields):
    """A call that writes into the journal."""
    return call("add_journal_entry", content=content, **fields)


class TestPreCompactionExtraction(AssistantTest):
    """Facts are saved before anything is folded."""

    def extract(self, **options):
        return wait_for(run_pre_compaction_extraction(self.script, self.aria, **options))

    def test_facts_reach_the_journal(self):
        """Entries are made until the model says noop."""
        self.fill(30)
        self.model.answers = [entry("Bob owes Alice 3 barrels."), call("noop")]
        report = {"success": True, "facts_recorded": 1, "iterations": 2, "stopped_by": "noop"}
        self.assertEqual(self.extract(), report)
        self.assertIn("barrels", self.aria.journal.recent()[-1].content)

    def test_other_tools_end_it(self):
        """Any other tool is refused and ends the pass."""
        self.fill(30)
        self.model.answers = [call("say", text="hello")]
        self.assertEqual(self.extract()["stopped_by"], "other_tool")

    def test_signal_is_cleared(self):
        """The signal is set meanwhile and cleared whatever happens."""
        self.fill(30)
        seen = []

        def answer(request):
            seen.append(dict(self.script.db.context_signals))
            return model_down()

        self.model.default = answer
        self.assertFalse(self.extract()["success"])
        self.assertIn("pre_compaction", seen[0])
        self.assertEqual(dict(self.script.db.context_signals), {})

    def test_too_few(self):
        """Fewer than five messages are not worth a call."""
        self.model.default = call("noop")
        self.fill(4)
        self.assertEqual(self.extract()["iterations"], 0)
        self.fill(1)
        self.assertEqual(self.extract()["iterations"], 1)

    def test_what_the_model_sees(self):
        """The full history, the three tools, and the rules of this context."""
        self.fill(30)
        self.model.default = call("noop")
        self.extract()
        request = self.model.requests[-1]
        shown = str(request.messages)
        self.assertIn("line aa", shown)
        self.assertIn("line bd", shown)
        self.assertIn("pre_compaction", request.messages[0]["content"])
        names = {tool["function"]["name"] for tool in request.tools}
        self.assertEqual(names, {"noop", "add_journal_entry", "update_entity_observation"})
        self.assertEqual(request.purpose, CONTEXT_PRE_COMPACTION)

    def test_ends_without_a_tool_call(self):
        """A plain text ends it and is not spoken."""
        self.fill(30)
        self.model.answers = ["All is saved."]
        told = self.lines_of(self.char1)
        self.assertEqual(self.extract()["stopped_by"], "no_tool_call")
        self.assertEqual(told, [])

    def test_words_beside_a_call(self):
        """The model reads again what it wrote beside its calls."""
        self.fill(30)
        calls = tuple(entry("Bob owes Alice 3 barrels."))
        self.model.answers = [ModelReply(content="One is worth it.", tool_calls=calls)]
        self.model.default = call("noop")
        self.extract()
        again = self.model.requests[-1].messages
        self.assertIn("One is worth it.", [m["content"] for m in again if m.get("tool_calls")])

    def test_an_entry_beside_a_noop_is_kept(self):
        """What stands in one reply with a noop, even behind it, is saved."""
        self.fill(30)
        self.model.answers = [[*call("noop"), *entry("Bob owes Alice 3 barrels.")]]
        self.assertEqual(self.extract()["facts_recorded"], 1)

    def test_entries_name_what_they_rest_on(self):
        """An entry names the messages that bear it out, so that `expand_memory` shows them."""
        self.fill(10)
        said = Message("user", "Bob owes Alice 3 barrels of cider, he said.")
        (said,) = self.script.history.append([said])
        self.fill(10)
        self.model.answers = [entry("Bob owes Alice 3 barrels.")]
        self.model.default = call("noop")
        self.extract()
        (written,) = self.aria.journal.recent()
        self.assertEqual(written.source_message_ids[0], said.id)

    def test_an_old_value_read_late_outdates_nothing(self):
        """An observation has the time of what it rests on, and names it beside the extraction."""
        char = Speaker("Char", stable_id(self.char1))
        spoken = Message("user", "", speaker=char)
        tower, mill = self.script.history.append(
            replace(spoken, content=f"I live in the {home}.", created_at=f"2026-01-0{day}T00:00:00")
            for day, home in enumerate(("tower", "mill"), 1)
        )
        self.fill(10)

        def noted(value):
            fact = {"predicate": "lives in", "value": value}
            text = f"Char lives in the {value}."
            return call("update_entity_observation", entity="Char", observation=text, **fact)[0]

        self.model.answers = [[noted("mill"), noted("tower")], call("noop")]
        self.extract()
        told = self.aria.entities.get(char.id).observations
        found = {o.value: (o.at, o.sources[0]) for o in told}
        self.assertEqual(found["mill"], (mill.created_at, mill.id))
        self.assertEqual(found["tower"], (tower.created_at, tower.id))
        (belief,) = current(told, "public")
        self.assertEqual((belief.observation.value, belief.former[0].value), ("mill", "tower"))
        (extraction,) = self.script.state.extracted
        self.assertTrue(all(extraction in o.sources for o in told))

    def test_nothing_of_it_enters_the_history(self):
        """Nobody said it: the history holds what people could hear or see."""
        self.fill(30)
        before = self.script.history.messages()
        self.model.answers = [entry("A fact."), call("noop")]
        self.extract()
        self.assertEqual(self.script.history.messages(), before)

    def test_lines_are_cited_by_number(self):
        """The numbers that a note names are its sources, whatever words it uses."""
        said = self.fill(10)
        self.model.answers = [entry("Es gibt drei Faesser.", lines=[3, "7", 99]), call("noop")]
        self.extract()
        (written,) = self.aria.journal.recent()
        self.assertEqual(written.source_message_ids[:2], (said[2].id, said[6].id))
        self.assertIn(f"3. (user: {said[2].content[:12]}", str(self.model.requests[0].messages))

    def test_notes_of_a_scope_outlive_a_model_that_fails_at_the_next(self):
        """They are written; the report says that the pass failed."""
        self.fill(30)
        self.fill(10, audience=private([stable_id(self.char1)]))
        self.model.answers = [[*entry("Bob owes Alice 3 barrels."), *call("noop")], model_down()]
        result = self.extract()
        self.assertEqual((result["success"], result["facts_recorded"]), (False, 1))
        (written,) = self.aria.journal.recent()
        self.assertEqual(written.audience, "public")

    def test_the_same_words_in_another_order_are_news(self):
        """As are a denial, and what no word of is known."""
        self.fill(10)
        self.aria.journal.add("Bob owes Alice five silver. The gate is not open any more.")
        told = ("Alice owes Bob five silver.", "The gate is open.", "???")
        calls = [entry(text)[0] for text in told]
        self.model.answers = [[*calls, *call("noop")]]
        self.assertEqual(self.extract()["facts_recorded"], 3)

    def test_what_the_journal_says_is_not_written_again(self):
        """Nor is what says less than an entry that the scope may see."""
        self.fill(10)
        self.aria.journal.add("Bob owes Alice 3 barrels of cider.")
        told = ("Bob owes Alice 3 barrels.", "Bob owes Alice 5 barrels.")
        self.model.answers = [*map(entry, told), call("noop")]
        self.assertEqual(self.extract()["facts_recorded"], 1)

    def test_secrets_are_saved_for_their_circle(self):
        """What leaves for a private audience is looked through apart, and kept for it alone."""
        circle = private([stable_id(self.char1)])
        self.fill(30, audience=circle)
        self.fill(10)
        self.model.answers = [entry("The key is under the stone.")]
        self.model.default = call("noop")
        self.extract()
        (written,) = self.aria.journal.recent()
        self.assertEqual(written.audience, circle)

    def test_the_same_fact_of_two_circles(self):
        """It is news for a circle that may not know what the other one told."""
        circles = [private([stable_id(each)]) for each in (self.char1, self.char2)]
        for circle in circles:
            self.fill(10, audience=circle)
        told = [*entry("The key is under the stone."), *call("noop")]
        self.model.answers = [told, told]
        self.extract()
        written = {each.audience for each in self.aria.journal.recent()}
        self.assertEqual(written, set(circles))

    def test_switched_off(self):
        """Off, no call is made."""
        self.fill(30)
        self.configure(pre_compact_extraction_enabled=False)
        self.assertEqual(self.extract()["stopped_by"], "disabled")
        self.assertEqual(self.model.requests, [])


class TestCallers(AssistantTest):
    """When it is run."""

    def purposes(self):
        return [request.purpose for request in self.model.requests]

    def test_asleep_only_before_a_compaction(self):
        """A sleep without a compaction makes no call; one with it looks first, five times."""
        self.fill(60)
        self.model.default = SUMMARY
        report = wait_for(run_sleep_tick(self.script, self.aria))
        self.assertTrue(report["pre_compaction_extraction"]["skipped"])
        self.assertEqual(self.purposes(), [])
        self.configure(compact_sleep_threshold=0.01, compact_preserve_token_share=0.0)
        self.model.answers = [entry(f"Fact {n}.") for n in range(5)]
        report = wait_for(run_sleep_tick(self.script, self.aria))
        self.assertEqual(report["pre_compaction_extraction"]["iterations"], 5)
        self.assertEqual(report["pre_compaction_extraction"]["stopped_by"], "iterations")
        self.assertEqual(set(self.purposes()[5:]), {"summary"})

    def test_in_an_emergency_three_times_at_most(self):
        """Awake and nearly full, three calls look for facts before the summary."""
        self.configure(
            max_context_tokens=6000, compact_emergency_threshold=0.8, compact_background=False
        )
        self.fill(60, words=60)
        self.model.answers = [entry(f"Fact {n}.") for n in range(3)]
        self.model.default = SUMMARY
        self.tick()
        self.assertEqual(self.purposes()[:3], [CONTEXT_PRE_COMPACTION] * 3)
        self.assertNotIn(CONTEXT_PRE_COMPACTION, self.purposes()[3:])
