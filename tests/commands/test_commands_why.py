"""`ai/why`: why a reply was said."""

from dataclasses import replace

from evennia_ai.commands.history import why
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction.budget import TRACE, ReplyTrace
from evennia_ai.llm_interaction.values import OFFLINE_MODEL, ModelReply
from evennia_ai.sleep.compaction import compact_conversation_history
from evennia_ai.testing import call
from tests.asked import model_down, offline
from tests.command_line import WholePagesTest
from tests.waiting import wait_for

FACT = "The cellar key lies under the blue pot beside the hearth."
BOB = Speaker("Bob", "o2.b")


class WhyTest(WholePagesTest):
    """Aria was told a fact, then much else; all but the newest was folded away."""

    default = "They talked of many things."

    def setUp(self):
        super().setUp()
        self.configure(compact_preserve_window=4, pre_compact_extraction_enabled=False)
        (self.fact,) = self.script.history.append([Message("user", FACT, speaker=BOB)])
        self.fill(20)

    def compact(self):
        done = wait_for(compact_conversation_history(self.script, self.aria, force=True))
        self.assertTrue(done["success"], done)
        return done

    def ask(self, text, *answers):
        """Somebody asks; returns the reply that is stored."""
        self.assertEqual(self.talk(text, *answers), "turn")
        replies = [m for m in self.script.history.messages() if TRACE in m.metadata]
        return replies[-1]

    def why(self, words="", *told, until="\n"):
        """What `ai/why` tells, with all of this in it."""
        line = f"ai/why Aria = {words}" if words else "ai/why Aria"
        return self.assertTold(line, *told, until=until)


class TestWhyDidSheSayThat(WhyTest):
    """The newest reply, or that with some words."""

    def test_the_whole_prompt(self):
        """With /full it ends with all that was sent, as long as that is kept."""
        self.ask("Aria, is there ale?", "Aye.")
        sent = self.model.requests[-1].messages
        parts = ("[system] ", "[tool] ", sent[0]["content"].splitlines()[0], "Aye.")
        self.assertTold("ai/why/full Aria", *parts, until="The whole prompt:")
        self.script.prompts.newest.clear()
        self.typed("ai/why/full Aria", until="Its prompt is not kept")

    def test_memory_in_the_prompt(self):
        """Prompt, source lines with scores, model, tools and cost of the newest reply."""
        self.compact()
        answer = ModelReply(
            content="Under the blue pot.",
            model="scripted/other",
            prompt_tokens=900,
            completion_tokens=7,
            cost=0.25,
        )
        reply = self.ask("Aria, is the cellar key still under the pot beside the hearth?", answer)
        trace = ReplyTrace.of(reply)
        self.assertIn(self.fact.id, trace.given, trace)
        score = trace.given[self.fact.id]
        self.assertGreater(score, 0)
        asked = next(m for m in self.script.history.messages() if "cellar" in m.content)
        self.assertEqual(trace.answers, (asked.id,))
        self.why(
            "",
            "Under the blue pot.",
            f"Prompt: {trace.budget}",
            f"({asked.id})",
            "Memories in its prompt:",
            f"({self.fact.id}) score {score:.3f}",
            f"Bob: {FACT[:40]}",
            "Tools called: none",
            "Model: scripted/other",
            "Cost: 1 call, 900 tokens in, 7 out, $0.2500",
        )

    def test_asked_again(self):
        """A reply that was no answer is counted as a call, with what it used."""
        answers = [ModelReply(content=text, model="m", prompt_tokens=9) for text in ("", "Aye.")]
        self.ask("Aria, is there ale?", *answers)
        self.why("", "by m in 2 calls.", "was asked again", "Cost: 2 calls, 18 tokens in")

    def test_who_answered_is_logged(self):
        """The doctor counts who answered in place of another, of answers alone."""
        self.compact()
        self.ask("Aria, is there ale?", "Aye.")
        self.model.default = lambda request: (
            offline(request) if request.model == OFFLINE_MODEL else model_down()
        )
        self.ask("Aria, is there wine?")
        fell_back = [facts.get("fell_back") for facts in self.logged("call")]
        self.assertIn(None, fell_back, "a summary is no answer")
        self.assertEqual([each for each in fell_back if each is not None][:2], [False, True])

    def test_searches(self):
        """What the turn's own searches found and read is named, with the tools and all calls."""
        self.compact()
        found, opened = call("search_memory", query="key"), call("expand_memory", id=self.fact.id)
        reply = self.ask(
            "Aria, tell me of it!", found, opened, ModelReply(content="Under the blue pot.")
        )
        trace = ReplyTrace.of(reply)
        self.assertIn(self.fact.id, trace.found)
        self.assertEqual(trace.opened, (self.fact.id,))
        self.assertEqual(trace.calls, 3)
        self.why(
            "blue pot",
            "Memories found by its searches:",
            "Memories it read in full:",
            "Tools called: search_memory, expand_memory",
            "Cost: 3 calls",
            "no price known",
        )

    def test_damaged_traces(self):
        """Whatever stands in a trace, the command answers."""
        odd = ("{}", '{"budget": 3, "given": []}', '{"given": {"m1": "x"}, "cost": "y"}', "[1]")
        for raw in odd:
            self.script.history.append([Message("assistant", "Ho.", metadata={TRACE: raw})])
            self.why(until="no trace that can be read")

    def test_sources_of_others(self):
        """Where a game opens it to others, a private source is not shown to them."""
        secret = Message("user", "I stole the pot.", speaker=BOB, audience=private(["o2.b"]))
        (secret,) = self.script.history.append([secret])
        reply = self.ask("Aria, good evening!", "Good evening.")
        raw = replace(ReplyTrace.of(reply), given={secret.id: 0.5}).to_text()
        changed = Message("assistant", "So.", metadata={TRACE: raw})
        self.script.history.append([changed])
        self.assertIn("I stole the pot", self.why())
        lines = "\n".join(wait_for(why(self.script, "", self.script.seen("public"))))
        self.assertNotIn("stole", lines)
        self.assertIn(f"({secret.id}) score 0.500 not for you to see", lines)
        seen = self.script.seen("public")
        self.assertIn("in no reply", "\n".join(wait_for(why(self.script, "stole the", seen))))

    def test_no_talk_in_a_trace(self):
        """With a reply ids and numbers are stored, few of them; nobody's words."""
        self.compact()
        reply = self.ask("Aria, where is the cellar key?", call("look"), "Under the blue pot.")
        stored = reply.metadata[TRACE]
        self.assertLess(len(stored), 1500)
        for word in ("pot", "key", "Bob", "Char", "hearth"):
            self.assertNotRegex(stored, rf"\b{word}\b")  # an id may hold its letters

    def test_in_no_reply(self):
        """For words that it did not say: that, and how to search for what is near them."""
        nowhere = "`the BLUE pot` is in no reply of Aria"
        self.why("the BLUE pot", nowhere, until="aihistory/search Aria = the BLUE pot")

    def test_archived(self):
        """A reply is explained after it was compacted, too."""
        self.ask("Aria, is there ale?", "Aye, of the best.")
        self.fill(20)
        self.compact()
        self.assertNotIn("Aye", str([m.content for m in self.script.history.messages()]))
        self.why("of the best", "It answered Char", "Aye, of the best.")
