"""Compaction over real HTTP: a hostile summariser, a slow one, and the record of the server."""

import re

from evennia_ai import services
from evennia_ai.history.archive import LONG, absorbed_by
from evennia_ai.history.messages import MESSAGES_LABEL, Message, ToolTraits
from evennia_ai.llm_interaction.client import ModelClient
from evennia_ai.llm_interaction.facts import lost, source_facts
from evennia_ai.llm_interaction.prompt import OFFLINE_MODEL
from evennia_ai.sleep.compaction.compact import compact_conversation_history
from evennia_ai.turns.tools import BUILTIN_TOOLS
from tests import loopback
from tests.asked import source_of
from tests.base import label
from tests.loopback import RESET, TRUNCATED
from tests.steps import verify_history
from tests.waiting import wait_for
from tests.wire_case import QUICK, WireTest

TRAITS = ToolTraits.of({tool.name: tool for tool in BUILTIN_TOOLS})

DROPS_ALL = "They talked."
FIRST = "Then the captain Mirabel Voss hid 47 crowns under the Salt Chapel."
FIRST_FACTS = ("Voss", "47", "Salt Chapel")
SUMMARY_CAP = 300


class WatchedClient(ModelClient):
    """The model client; keeps each request that was answered, with its answer."""

    def __init__(self, **options):
        super().__init__(**options)
        self.answered = []

    def complete(self, request):
        return super().complete(request).addCallback(self._note, request)

    def _note(self, reply, request):
        self.answered.append((request, reply))
        return reply


class TestHostileSummariser(WireTest):
    """Ten generations under models that refuse, echo, grow, fail and drop every name."""

    def setUp(self):
        self.generation, self.told = 0, []
        super().setUp()
        self.client = WatchedClient(api_base=self.server.url, api_key="sk-test", pause_s=QUICK)
        services.use(model=self.client)
        self.script.log = lambda text, warning=False: self.told.append(text)
        self.addCleanup(self.script.__dict__.pop, "log")
        self.configure(
            compact_preserve_window=4,
            summary_max_tokens=SUMMARY_CAP,
            llm_fallback_models=["scripted/second"],
        )

    def respond(self, body):
        """The first model has a fault of its own each generation, the second one every other."""
        said = body["messages"][-1]["content"]
        bad = (
            loopback.refusal(),
            loopback.EMPTY,
            loopback.text(said),
            loopback.text("word " * 3000),
            loopback.calls(loopback.call("noop")),
            loopback.failure(500),
            TRUNCATED,
            RESET,
        )
        # One name at least, else it is no summary.
        name = re.search(r"Ylva[A-Z]\w*", said)
        drops = loopback.text(f"{DROPS_ALL} Then {name[0]} did." if name else DROPS_ALL)
        if "second" in body["model"]:
            return drops if self.generation % 2 else bad[self.generation % 3]
        return drops if self.generation % 5 == 0 else bad[self.generation % len(bad)]

    def talk(self):
        """What is said between two compactions: new names, numbers and quotes each time."""
        tag = label(self.generation).title()
        lines = [f"Bran{tag} sold {700 + self.generation} barrels at Port {tag}ford."]
        lines += [f'Then Ylva{tag}{label(n)} cried "the {tag} gate"' for n in range(10)]
        if self.generation == 0:
            lines.insert(0, FIRST)
        if self.generation == 3:
            lines.append("barrel " * 4000 + "and the very end")
        users = [Message("user", f"{line} {'and so on ' * 12}") for line in lines]
        self.script.history.append(users)
        self.script.history.append([Message("user", "so it went on")] * 4)

    def lived(self):
        """Ten generations; yields each result with the requests that were answered for it."""
        for self.generation in range(10):
            self.talk()
            before = len(self.client.answered)
            done = compact_conversation_history(self.script, self.aria, force=True)
            result = wait_for(done)
            self.assertTrue(result["success"], (self.generation, result))
            yield result, self.client.answered[before:]

    def accepted_text(self, answered):
        """All that the requests held whose answers were taken."""
        taken = [
            source_of(request.messages)
            for request, reply in answered
            if request.model == OFFLINE_MODEL or reply.content.startswith(DROPS_ALL)
        ]
        return self.plain("".join(taken))

    @staticmethod
    def plain(text):
        """A text without what chunks and escapes put between its letters."""
        return re.sub(r'[\s"\\]', "", text.replace(MESSAGES_LABEL, ""))

    def test_ten_generations(self):
        """Caps hold, nothing is lost unseen, the oldest facts are named, and all were shown."""
        levels = set()
        for result, answered in self.lived():
            levels.add(result["level"])
            record = self.script.history.summary(result["summary_id"])
            messages = self.script.history.by_ids(record.source_ids)
            shown = self.accepted_text(answered)
            for message in messages:
                self.assertTrue(self.plain(message.content) in shown, message.content[:60])
            self.assert_caps()
            self.assert_losses_reported(record, messages)
            self.assertEqual(verify_history(self.script), ())
        self.assertEqual(levels, {"main", "fallback", "extractive"})
        self.assert_all_on_the_wire()
        records = self.script.history.summaries()
        above = absorbed_by(records)
        (long,) = (r for r in records if r.tier == LONG and r.id not in above)
        for fact in FIRST_FACTS:
            self.assertIn(fact, long.text)

    def assert_caps(self):
        self.assertEqual(self.script.limits().caps.summary, SUMMARY_CAP)
        for record in self.script.history.summaries():
            self.assertLessEqual(self.script.count(record.text), SUMMARY_CAP)

    def assert_losses_reported(self, record, messages):
        """What the summary itself did not keep is named in its record."""
        wanted = source_facts("\n".join(f": {m.content}" for m in messages if m.role != "tool"))
        own_words = record.text.split("\nAlso mentioned:")[0]
        unkept = {fact.text for fact in lost(wanted, own_words)}
        self.assertEqual(unkept - set(record.extra["lost"]), set())
        self.assertIn(f"{record.coverage:.0%} of names", self.told[-1])

    def assert_all_on_the_wire(self):
        """The server's own record: each removed message was in a request it answered whole."""
        bodies = [record.body for record in self.server.succeeded]
        shown = self.plain("".join(source_of(body["messages"]) for body in bodies))
        for segment in self.script.history.segments():
            for message in segment.messages:
                self.assertTrue(self.plain(message.content) in shown, message.content[:60])
        self.assert_requests_legal()
