"""Trying a model out, and the advice that follows from what was found."""

from evennia_ai.errors import ModelError
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.staff.probe import WATER, try_out
from evennia_ai.testing import call
from tests.asked import model_down
from tests.memory_assistant import MemoryWorldTest
from tests.waiting import wait_for

ALL = ", ".join(WATER.values())
NATIVE = ModelReply(content="", tool_calls=tuple(call("look")), native=True, model="scripted")
WELL = ["I am Quillon.", "Fenwick", NATIVE, ModelReply(content=ALL, completion_tokens=400)]


class TestTrial(MemoryWorldTest):
    """What a model answers, and what is said of it."""

    def found(self, *answers):
        """The lines that a trial with these answers ends with, by their names."""
        self.world.model.answers = list(answers)
        lines = wait_for(try_out(self.script))
        return dict(line.split(": ", 1) for line in lines)

    def test_advice(self):
        """The worst that was found is advised on."""
        thinks = "<think>Who am I?</think>Quillon"
        slow = ModelReply(content="Quillon", seconds=40.0)
        few = ModelReply(content="Wasser", completion_tokens=400)
        for name, answers, advice in (
            ("well", WELL, "fit to be played with"),
            ("persona", ["A language model.", *WELL[1:]], "hardly follows"),
            ("memory", [WELL[0], "I know no dog.", *WELL[2:]], "hardly follows"),
            ("tools", [*WELL[:2], "I look at it.", WELL[3]], "calls no tools"),
            ("thinks", [thinks, *WELL[1:]], "llm_thinking = off"),
            ("slow", [slow, *WELL[1:]], "slow here"),
            ("languages", [*WELL[:3], few], "for the languages above"),
            ("fails", [WELL[0], model_down(), model_down(), WELL[3]], "fails too often"),
        ):
            with self.subTest(name=name):
                self.assertIn(advice, self.found(*answers)["Advice"])

    def test_what_was_found(self):
        """Each trait has its line; nothing is remembered, and each call is paid for."""
        lines = self.found(*WELL)
        self.assertEqual(lines["Tools"], "called by the provider's tool calling")
        self.assertEqual(lines["Languages"], ", ".join(WATER))
        self.assertEqual(self.script.history.messages(), ())
        self.assertEqual(len(self.world.model.requests), 4)
        lines = self.found(WELL[0], WELL[1], call("look"), model_down())
        self.assertEqual((lines["Tools"], lines["Languages"][:4]), ("called as text", "none"))
        self.assertIn("no model answered", lines["Failed"])

    def test_a_model_that_is_down(self):
        """The first call says so."""
        self.world.model.default = model_down()
        with self.assertRaises(ModelError):
            self.found()
