"""Extraction and summaries asked behind the prompt of a turn awake."""

import json

from evennia_ai.errors import ModelError
from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.frames import INSTRUCTION_LABEL, MESSAGES_LABEL, SUMMARY_TITLE
from evennia_ai.history.masking import masked
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction.cache_marks import marks
from evennia_ai.llm_interaction.contexts import EXTRACT_NOW, ONLY_LINES, WITH_EARLIER
from evennia_ai.llm_interaction.continuation import one_more_line, summary_continuation
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL, build_prompt
from evennia_ai.llm_interaction.summary import DEFAULT_COMPACTION_PROMPT
from evennia_ai.rag_memory.journal_entry import OWN, RECALLED
from evennia_ai.testing import call
from tests.asked import source_of
from tests.memory_assistant import MemoryWorldTest

ALICE = Speaker("Alice", "o1.alice")
CIRCLE = private([ALICE.id])
FOUND = {
    "id": "m9",
    "kind": "message",
    "speaker": "Bran",
    "text": "I buried 40 crowns at Crow Tor.",
}


def used(tool, content, **arguments):
    """A call of a tool and its result."""
    calls = call(tool, **arguments)
    result = Message("tool", content, tool_call_id=calls[0]["id"], name=tool)
    return [Message("assistant", "", tool_calls=tuple(calls)), result]


class ContinuationTest(MemoryWorldTest):
    """Twenty lines were said."""

    def setUp(self):
        super().setUp()
        self.said = self.script.history.append(
            Message(
                "assistant" if n % 3 == 2 else "user",
                f"line {n}: the ferry to Saltmere was late again, said the miller",
                speaker=None if n % 3 == 2 else ALICE,
            )
            for n in range(20)
        )

    @property
    def requests(self):
        return self.world.model.requests

    def awake(self, audience=PUBLIC):
        """The prompt of a turn, as what it shows before memories and the present moment."""
        prompt = build_prompt(self.script, self.body, audience)
        return prompt.tools, prompt.messages[:-1]

    def assert_continues(self, request, audience=PUBLIC):
        """Tools and all messages but the instruction are those of a turn."""
        tools, before = self.awake(audience)
        self.assertEqual(request.tools, tools)
        told = len(request.messages) - 1
        shared = "".join(map(json.dumps, request.messages[:-1]))
        self.assertTrue(json.dumps(before)[1:].startswith(shared[:40]))
        # The last message of the shared part may be the beginning of one that went on.
        self.assertEqual(request.messages[: told - 1], before[: told - 1])
        last, whole = request.messages[-2]["content"], before[told - 1]["content"]
        self.assertTrue(whole.startswith(last))
        self.assertTrue(request.messages[-1]["content"].startswith(INSTRUCTION_LABEL))
        self.assertEqual(marks(request.messages)[-2:], [told - 1, told])


class TestExtraction(ContinuationTest):
    """What an extraction is asked with."""

    def test_goes_on_from_a_turn(self):
        """System text, tools and history are those of a turn; the rules stand last."""
        self.extract()
        (request,) = self.requests
        self.assert_continues(request)
        self.assertIn(EXTRACT_NOW, request.messages[-1]["content"])

    def test_its_calls_follow_the_instruction(self):
        """The second request goes on from the first."""
        self.extract(call("add_journal_entry", content="The ferry was late."))
        first, second = self.requests
        self.assertEqual(second.messages[: len(first.messages)], first.messages)
        self.assertEqual([m["role"] for m in second.messages[-2:]], ["assistant", "tool"])
        self.assertEqual(second.tools, first.tools)

    def test_only_three_tools_act(self):
        """All are offered; any other ends the pass and does nothing."""
        names = {tool["function"]["name"] for tool in self.awake()[0]}
        self.assertIn("say", names)
        report = self.extract(call("say", text="I am busy."))
        self.assertEqual(report["stopped_by"], "other_tool")
        self.assertEqual(len(self.requests), 1)
        self.assertNotIn("busy", str(self.script.game.said))

    def test_a_circle_has_its_own_view(self):
        """A private circle's extraction goes on from that circle's turn."""
        whispered = Message("user", "the key is under the stone", speaker=ALICE, audience=CIRCLE)
        self.script.history.append([whispered] * 8)
        self.fill(4)
        self.extract(call("noop"))
        public, secret = self.requests
        self.assertNotIn("stone", str(public.messages))
        self.assert_continues(secret, CIRCLE)
        self.assertIn("stone", str(secret.messages))

    def test_recalled_text_is_not_extracted_again(self):
        """An entry that repeats what a search found is marked; one of what was said is not."""
        self.script.history.append(
            used("search_memory", json.dumps({"results": [FOUND]}), query="crowns")
        )
        told = Message("user", "Dorrit sold 12 goats to the chapel.", speaker=ALICE)
        self.script.history.append([told])
        self.fill(6)
        self.extract(
            call("add_journal_entry", content="Bran buried 40 crowns at Crow Tor."),
            call("add_journal_entry", content="Dorrit sold 12 goats to the chapel."),
        )
        self.assertIn("40 crowns", str(self.requests[0].messages))
        kinds = {e.content[:5]: e.source_type for e in self.body.journal.recent()}
        self.assertEqual(kinds, {"Bran ": RECALLED, "Dorri": OWN})

    def test_where_it_cannot(self):
        """Rules of the game's own, tools as text and a small window."""
        for options in (
            {"pre_compact_prompt": "Save the recipes."},
            {"llm_tool_protocol": "text"},
            {"max_context_tokens": 2200},
        ):
            with self.subTest(**options):
                self.requests.clear()
                self.world.configure(**options)
                self.extract()
                self.assertNotIn(INSTRUCTION_LABEL, str(self.requests[0].messages))
                self.world.configure(**dict.fromkeys(options))
        self.script.model_name = OFFLINE_MODEL
        self.extract()
        self.assertNotIn(INSTRUCTION_LABEL, str(self.requests[-1].messages))


class TestSummary(ContinuationTest):
    """What a summary is asked with."""

    def test_goes_on_from_a_turn(self):
        """It ends with the last message that leaves and the prompt of a summary."""
        self.compact(instructions="name every ferry")
        request, again = self.requests
        self.roll_back()
        self.assert_continues(request)
        shown = source_of(request.messages)
        for message in self.said[:16]:
            self.assertIn(message.content, shown)
        self.assertNotIn(self.said[16].content, shown)
        instruction = request.messages[-1]["content"]
        for part in (DEFAULT_COMPACTION_PROMPT, ONLY_LINES, "name every ferry"):
            self.assertIn(part, instruction)
        self.assertEqual(again.messages[:-1], request.messages)
        self.assertEqual(again.tools, request.tools)
        self.assertIn("leaves out things", again.messages[-1]["content"])

    def test_its_budget_is_logged(self):
        """The tokens it is logged with are those of what is sent, and it fits with its reply."""
        self.compact()
        event = next(e for e in self.script.budgets.events() if e.purpose == "summary")
        request = self.requests[0]
        self.assertEqual(sum(event.sizes), request.prompt_tokens + request.max_tokens)
        self.assertGreater(event.regions["Tools"], 500)
        self.assertLessEqual(sum(event.sizes), event.limit)

    def test_single_takes_up_the_one_before(self):
        """With the strategy `single` the earlier summary stands in the prompt and is taken up."""
        self.world.configure(compact_strategy="single")
        self.compact()
        self.fill(12)
        self.requests.clear()
        self.compact()
        self.assertIn(WITH_EARLIER, self.requests[0].messages[-1]["content"])
        self.assertIn(f"{SUMMARY_TITLE}\\nThey talked.", json.dumps(self.requests[0].messages))

    def test_summaries_of_summaries(self):
        """Asked again for what it left out, the model gets the same beginning."""
        self.world.configure(summary_max_tokens=60)
        goats = (
            "Bran met Dorrit at the mill. He sold 12 goats to the chapel of Wendle, and the miller "
            "paid 40 crowns and a barrel of cider for them."
        )
        boat = (
            "Ylva came to Saltmere by the late ferry. She owes Egan 9 pence for the toll and has "
            "promised Garth a boat by the new moon."
        )
        for told in (goats, boat, boat):
            self.requests.clear()
            self.world.model.default = told
            self.fill(32, content=told)
            self.compact()
        merged = [r.messages[1]["content"] for r in self.requests if not r.tools]
        first, again = merged[:2]
        self.assertIn("goats", first)
        self.assertTrue(again.startswith(f"{first}\n\nYour summary leaves out"))

    def test_a_reply_that_is_none(self):
        """The model is asked once more, in a request of its own."""
        self.world.model.answers = [call("noop")]
        result = self.compact()
        self.assertEqual(result["level"], "main")
        first, second, *_ = self.requests
        self.assertTrue(first.tools)
        self.assertFalse(second.tools)
        self.assertIn(MESSAGES_LABEL, second.messages[1]["content"])

    def test_an_echo_is_none(self):
        """Nor is the instruction."""
        self.world.model.default = lambda request: str(request.messages[-1]["content"])
        self.assertEqual(self.compact()["level"], "extractive")

    def test_a_model_that_is_down_is_asked_once(self):
        """What follows is the next level."""
        self.world.model.default = ModelError("no answer", kind="connection")
        self.compact()
        self.assertEqual([bool(r.tools) for r in self.requests], [True, False])
        self.assertEqual(self.requests[1].model, OFFLINE_MODEL)

    def test_where_it_cannot(self):
        """Another summariser or prompt, tools as text, base or offline models, a small window."""
        for options in (
            {"compact_model": "scripted/model"},
            {"compact_prompt": "Write a ballad."},
            {"llm_tool_protocol": "text"},
            {"llm_api": "completion"},
            {"max_context_tokens": 2200},
        ):
            with self.subTest(**options):
                self.world.configure(**options)
                self.assertIsNone(self.continued(self.said[:16]))
                self.world.configure(**dict.fromkeys(options))
        self.assertIsNotNone(self.continued(self.said[:16]))
        self.script.model_name = OFFLINE_MODEL
        self.assertIsNone(self.continued(self.said[:16]))

    def continued(self, messages):
        return summary_continuation(self.script, self.body, messages)

    def test_only_the_oldest(self):
        """What is not the beginning of what everybody may see is asked for by itself."""
        self.assertIsNone(self.continued(self.said[1:16]))
        self.assertIsNone(self.continued([]))
        whispered = Message("user", "a secret", speaker=ALICE, audience=CIRCLE)
        self.assertIsNone(self.continued(self.script.history.append([whispered])))
        self.assertIsNotNone(self.continued(self.said[:16]))

    def test_masked_outputs(self):
        """A summary rests on raw text: what is shown as a placeholder is shown raw elsewhere."""
        result = used("look", "A long list. " * 50, target="tower")
        self.script.history.append(result)
        stored = self.script.history.messages()
        self.assertIsNotNone(self.continued(stored))
        hidden = masked(stored[-1], "2026-01-01T00:00:00", self.script.count)
        self.script.history.replace([*stored[:-1], hidden])
        self.assertIsNone(self.continued(self.script.history.messages()))

    def test_what_is_shortened(self):
        """A message too large to be shown whole is shown whole in requests of their own."""
        self.world.configure(max_context_tokens=8000)
        self.script.history.append([Message("user", f"{'word ' * 9_000} the end", speaker=ALICE)])
        self.assertIsNone(self.continued(self.script.history.messages()))

    def test_one_more_line(self):
        """A longer prompt must fit, too."""
        self.world.configure(max_context_tokens=8000)
        prompt = self.continued(self.said[:16])
        longer = one_more_line(self.script, prompt, "And the names?")
        self.assertGreater(longer.budget.total, prompt.budget.total)
        self.assertIsNone(one_more_line(self.script, prompt, "word " * 9_000))
