"""What the prompts hold, request by request, and what takes the most."""

import re

from evennia_ai.history.audience import PUBLIC, STAFF, private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction.values import ModelReply, TurnRequest
from evennia_ai.turns.tools.memory import contributors
from tests.command_line import WholePagesTest
from tests.waiting import wait_for

LINE = re.compile(
    r"System: (\d+), Tools: (\d+), Ledger: (\d+), Examples: (\d+), "
    r"Summaries: (\d+), History: (\d+), Retrieved: (\d+), "
    r"Tail: (\d+), Reserve: (\d+) \(total (\d+)/(\d+)\)"
)


class TestBudget(WholePagesTest):
    """Aria, an admin and a model that talks."""

    default = ModelReply(content="They talked of many things.", prompt_tokens=900, cost=0.0125)

    def setUp(self):
        super().setUp()
        self.configure(max_context_tokens=6000)

    def turn(self, **request):
        return wait_for(self.script.run_turn(TurnRequest(**request)))

    def test_the_newest_turn(self):
        """It shows the regions of the newest turn's prompt; they sum up to the total."""
        self.fill(4)
        self.turn()
        *sizes, total, limit = map(int, LINE.search(self.typed("aibudget Aria")).groups())
        self.assertEqual((sum(sizes), limit), (total, 6000))
        self.assertEqual(total, self.script.prompts.events()[-1].total)
        self.assertTold("aibudget", "model scripted/model")

    def test_before_the_first_turn(self):
        """Before the first turn it shows what the next prompt holds, and logs nothing."""
        self.assertRegex(self.typed("aibudget Aria"), LINE)
        self.assertIn("No turn was logged yet", self.shown())
        self.assertEqual(self.script.prompts.events(), ())

    def test_every_request(self):
        """Turns, extractions and summaries are logged with purpose, figures and trigger."""
        self.fill(60)
        self.turn()
        self.configure(compact_sleep_threshold=0.01, compact_preserve_token_share=0.0)
        self.script.fall_asleep()
        self.tick()
        events = list(self.script.seen(STAFF).requests())
        asked = [(event.purpose, event.trigger) for event in events]
        self.assertEqual(asked[0], ("awake", ""))
        for each in (("pre_compaction", "sleep"), ("summary", "sleep")):
            self.assertIn(each, asked)
        self.assertEqual((events[0].prompt_tokens, events[0].cost), (900, 0.0125))
        self.assertNotIn("line", str(events[0]))

    def test_private(self):
        """Admins see which request was for whom; builders see those of public turns alone."""
        self.turn(audience=private([self.aria.stable_id]))
        [event] = self.script.seen(STAFF).requests()
        self.assertEqual(event.audience, private([self.aria.stable_id]))
        self.assertEqual(list(self.script.seen(PUBLIC).requests()), [])
        self.be("Builder")
        self.assertTold("aibudget Aria", "No turn was logged yet")

    def test_contributors(self):
        """Regions, messages by id, notes, tools and the persona; to builders nothing private."""
        bob = Speaker("Bob", "o2.b")
        big = Message("user", "barrel " * 400, speaker=bob, audience=private(["o2.b"]))
        self.configure(persona="A retired smuggler. " * 20)
        self.fill(4)
        (big,) = self.script.history.append([big])
        self.typed("airemember Aria = I like jazz")
        self.turn()
        note = self.script.ledger.entries()[0].id
        pieces = contributors(self.script, self.script.tools.offered(), STAFF)
        for part in ("region System", "region Tools", "persona", "tool"):
            self.assertIn(part, [piece.what for piece in pieces])
        advice = {piece.id: piece.advice for piece in pieces}
        self.assertIn(big.id, advice)
        self.assertIn("aimemory/reject", advice[note])
        self.model.calls_tools = False
        self.turn()
        tools = self.script.tools.offered()
        kinds = {piece.what for piece in contributors(self.script, tools, STAFF)}
        self.assertFalse(kinds & {"region Tools", "tool"}, "they are not offered")
        theirs = contributors(self.script, tools, PUBLIC)
        self.assertIn("region System", [piece.what for piece in theirs])
        self.assertNotIn(big.id, [piece.id for piece in theirs])
