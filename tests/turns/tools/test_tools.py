"""Tools in the game: what they do, what they refuse, and a game's own."""

import json
import unittest

from django.test import override_settings
from evennia import create_object
from twisted.internet.defer import Deferred

from evennia_ai.errors import RankError, UnaskedError
from evennia_ai.game.seeing import stable_id
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Message, Speaker
from evennia_ai.llm_interaction import build_llm_messages
from evennia_ai.llm_interaction.values import TurnRequest
from evennia_ai.testing import call
from evennia_ai.turns.tools import Tool
from evennia_ai.turns.tools.base import ToolRegistry
from evennia_ai.turns.tools.execution import RESULT_CHARS, as_text
from tests.fake import FakeAssistant
from tests.models import ScriptedModel
from tests.turns.tools.case import AskedTest, RingBell, rank
from tests.waiting import pump_until, wait_for


class Breaks(Tool):
    """Always fails in a way its author did not think of."""

    name = "breaks"

    def run(self, ctx):
        """Fail."""
        raise ZeroDivisionError


class TestResults(unittest.TestCase):
    def test_a_long_result(self):
        """It is cut, and says how much more there was; texts stay as they are."""
        whole = "x" * RESULT_CHARS
        for text, want in (
            ("Möwe", "Möwe"),
            (whole, whole),
            (f"{whole}yz", f"{whole} [... 2 more characters]"),
        ):
            self.assertEqual(as_text(text), want)
        self.assertEqual(as_text({"seen": "Möwe"}), '{"seen": "Möwe"}')


class TestBuiltinTools(AskedTest):
    """Each through a turn, as the model calls it."""

    def use(self, *calls):
        """Let the model make these calls; returns the results it got."""
        self.talk("Aria, go out", *calls, call("noop"))
        return self.results()

    def test_a_hit_is_shown_once_a_turn(self):
        """A second search of a turn brings only what is new; names of any script are legible."""
        self.talk("My ferry is called Möwe.")
        first, second = self.use(
            call("search_memory", query="ferry"), call("search_memory", query="the ferry Möwe")
        )
        self.assertIn("My ferry is called Möwe.", first)
        self.assertNotIn("score", first)
        self.assertEqual(json.loads(second)["results"], [])
        self.assertIn("Nothing beyond", second)

    def test_a_success_resets_the_failures(self):
        """A tool is withdrawn after three failures in a row, not after three in a turn."""
        looks = [call("look", target="unicorn")] * 2
        results = self.use(*looks, call("look"), *looks, call("look"))
        self.assertIn("Room", results[2])
        self.assertIn("Room", results[5])
        refused = self.use(*looks, *looks)
        self.assertIn("withdrawn", refused[-1])

    def test_look_and_move(self):
        """It sees rooms and things, and walks through exits that let it."""
        create_object(
            "evennia.objects.objects.DefaultObject", key="a brass lamp", location=self.room1
        ).db.desc = "It glows."
        results = self.use(
            call("look"),
            call("look", target="brass lamp"),
            call("look", target="unicorn"),
            call("look", target="Room"),
            call("look", target="here"),
            call("move", direction="out"),
        )
        self.assertEqual({results[0]}, {results[3], results[4]})
        self.assertIn("Room", results[0])
        self.assertIn("It glows.", results[1])
        self.assertIn("no `unicorn`", results[2])
        self.assertIs(self.aria.location, self.room2)

    def test_whispered_by_part_of_a_name(self):
        """A whisper that reaches somebody by part of the name is private all the same."""
        self.char2.key = "Bobby"
        self.use(call("whisper", target="Bobb", text="the code is 4711"))
        whispered = [m for m in self.script.history.messages() if "4711" in str(m)]
        circle = private([stable_id(self.char2)])
        self.assertEqual({m.audience for m in whispered}, {circle})
        self.assertNotIn("4711", str(build_llm_messages(self.script, self.aria)))

    def test_two_whispers_in_one_reply(self):
        """Each is stored for its own person, and both are whispered."""
        people = ((self.char1, "AAA", "BBB"), (self.char2, "BBB", "AAA"))
        self.use(
            [call("whisper", target=who.key, text=f"secret {own}")[0] for who, own, _ in people]
        )
        for person, own, other in people:
            audience = private([stable_id(person)])
            prompt = str(build_llm_messages(self.script, self.aria, audience=audience))
            self.assertIn(own, prompt)
            self.assertNotIn(other, prompt)

    def test_a_stop_while_a_tool_waits(self):
        """A turn that is stopped in a tool says nothing more; the call gets its result later."""
        self.semantic.search = lambda *args, **kwargs: Deferred()
        self.model.answers = [call("search_memory", query="Norvik"), "I go on talking."]
        self.say("Aria, hello")
        turn = self.script.at_tick()
        pump_until(lambda: self.model.requests)
        self.script.stop_thinking()
        self.assertEqual(wait_for(turn), "cancelled")
        self.assertEqual(len(self.model.requests), 1)

    def test_levels(self):
        """`off` takes a tool away; `dry run` pretends."""
        self.configure(tool_levels={"emote": "off", "say": "dry run"})
        lines = self.lines_of(self.char1)
        results = self.use(call("emote", text="dances"), call("say", text="hello there"))
        self.assertIn("there is no tool `emote`", results[0])
        self.assertIn("Dry run", results[1])
        self.assertFalse(any("hello there" in line for line in lines))
        names = [t["function"]["name"] for t in self.model.requests[0].tools]
        self.assertNotIn("emote", names)


class TestOwnTools(AskedTest):
    """Tools a game names in its settings."""

    def setUp(self):
        paths = ["tests.turns.tools.case.RingBell", f"{__name__}.Breaks"]
        self.enterContext(override_settings(EVENNIA_AI_TOOLS=paths))
        super().setUp()

    def ring(self, last=""):
        """What comes of it where the first player asks for it."""
        ringing = call("ring_bell", how="softly")
        return self.ask(ringing, asker=self.char1, last=last)[-1]

    def test_lock_binds_the_one_who_asks(self):
        """With the rights they hold by name, whatever the assistant's own, or a superuser's."""
        self.aria.permissions.add("Builder")
        rank(self.account, "Player")
        self.assertIn("not allowed", self.ring())
        self.account.is_superuser = True
        self.assertIn("not allowed", self.ring())
        rank(self.account, "Builder")
        self.assertIn(RankError.SAYS, self.ring())
        self.account.is_superuser = True
        self.assertIn("waits for approval already", self.ring())

    def test_a_failing_tool_is_an_error_for_the_model(self):
        """An exception of a game's tool does not end the turn."""
        results = self.ask(call("breaks"), last="Something went wrong.")
        self.assertIn("ZeroDivisionError", results[-1])
        self.assertEqual(self.contents()[-1][1], "Something went wrong.")

    def test_a_broken_tool_mutes_nobody(self):
        """It is left out with one trouble, and the others are there."""
        paths = ["tests.broken_tools.Anything", "tests.turns.tools.case.RingBell"]
        with override_settings(EVENNIA_AI_TOOLS=paths):
            self.script.__dict__.pop("tools", None)
            self.ring(last="Ding.")
        self.assertEqual(self.contents()[-1][1], "Ding.")
        self.assertIn("ring_bell", self.script.tools.tools)
        self.assertEqual(self.script.runtime.counts["troubles"], 1)
        self.assertIn("half-written", self.script.runtime.trouble.text)


class RingForAll(RingBell):
    """Ring it where everybody may."""

    lock = "tool:all()"
    public_act = True


class TestNamedByItsName(unittest.TestCase):
    """A tool that others notice and that names no object, where Bob speaks and then Alice asks."""

    def ring(self, bobs, alices):
        """What came of a soft ring."""
        aria = FakeAssistant(ScriptedModel([call("ring_bell", how="softly"), ""]))
        aria.tools = ToolRegistry([RingForAll])
        alice = aria.game.people["Alice"]
        for name, text in (("Bob", bobs), ("Alice", alices)):
            speaker = Speaker(name, aria.game.people[name])
            aria.history.append([Message("user", text, speaker=speaker, channel="say")])
        sources = (aria.history.messages()[-1].id,)
        wait_for(aria.run_turn(TurnRequest(asker=alice, source_ids=sources)))
        return next(m.content for m in aria.history.messages() if m.role == "tool")

    def test_it_is_asked(self):
        """No words of a line are compared with a tool's name or texts: whoever asks says yes."""
        for bobs, alices in (
            ("Loudly, please.", "Aria, ring the bell softly!"),
            ("Aria, ring the bell!", "Go on."),
        ):
            self.assertIn(UnaskedError.SAYS, self.ring(bobs, alices))


class TestRequestCompaction(AskedTest):
    """The assistant asks for compaction."""

    default = "They talked of the harvest."

    def ask(self):
        return super().ask(call("request_compaction"), last="Done.")[-1]

    def test_refused_while_there_is_room(self):
        """Below the sleep threshold it is refused with the numbers."""
        self.fill(30)
        self.assertIn("not needed", self.ask())
        self.tick()
        self.assertEqual(list(self.script.history.segments()), [])

    def test_refused_where_none_would_follow(self):
        """It is not granted where automatic compaction is off or waits for staff."""
        self.configure(max_context_tokens=8000, pre_compact_extraction_enabled=False)
        self.configure(compact_emergency_threshold=1.0, compact_auto=False)
        self.fill(60, words=45)
        self.assertIn("only when staff start it", self.ask())
        self.configure(compact_auto=True)
        self.script.state.hold = True
        self.assertIn("waits for them", self.ask())
        self.script.state.hold = False
        self.script.runtime.summaries.waits = 1, self.script.now() + 60
        self.assertIn("the last one failed", self.ask())
        self.configure(compact_enabled=False)
        self.assertIn("switched off", self.ask())

    def test_granted_when_nearly_full(self):
        """Above it, the next tick compacts."""
        self.configure(max_context_tokens=8000, pre_compact_extraction_enabled=False)
        self.configure(compact_emergency_threshold=1.0, compact_background=False)
        self.fill(72, words=45)
        self.assertIn("Granted", self.ask())
        self.assertEqual(list(self.script.history.segments()), [])
        self.tick()
        self.assertEqual(len(list(self.script.history.segments())), 1)
        self.assertEqual(self.script.history.compactions()[-1].trigger, "request")
