"""Which turns are due after a stop: those that no turn for the same audience ended before."""

from dataclasses import replace
from typing import ClassVar

from twisted.internet.defer import Deferred

from evennia_ai.history.audience import PUBLIC, private
from evennia_ai.history.messages import ANSWERED, Speaker
from evennia_ai.llm_interaction import build_llm_messages, format_messages_for_compaction
from evennia_ai.testing import call
from evennia_ai.turns.tools.base import Tool
from tests.memory_assistant import PEOPLE, MemoryWorldTest

ALICE, BOB = (private([PEOPLE[name]]) for name in ("Alice", "Bob"))


class Nod(Tool):
    """A game's own tool that ends a turn."""

    name = "nod"
    parameters: ClassVar = {}
    ends_turn = True

    def run(self, ctx):
        return "You nod."


class TestTakenUp(MemoryWorldTest):
    """Two turns, of which the second hangs in a tool when the server dies."""

    def ask(self, audience, name="Bob"):
        """A line of somebody who speaks to an audience."""
        channel = "say" if audience == PUBLIC else "whisper"
        by = Speaker(name, PEOPLE[name])
        self.hear("Aria, where is the cellar?", by, audience=audience, channel=channel)

    def die(self, audiences, *answers):
        """Die in the last of some turns; the model gives these answers before."""
        self.script.tools.tools["look"].run = lambda ctx, **arguments: Deferred()
        self.script.tools.tools["nod"] = Nod()
        for audience in audiences:
            self.ask(audience)
        self.world.model.answers = [*answers, call("look")]
        self.world.later(10)
        self.assertFalse(self.script.tick().called)

    def due(self):
        """The audiences whose turns are due after a restart."""
        self.world.restart()
        return [audience for audience, _ in self.script.runtime.unanswered]

    def test_a_whisper_ended_another_turn(self):
        """It is an answer to nobody but those whose turn it ended."""
        for first, second, target in (
            (ALICE, PUBLIC, "Alice"),  # her own whisper was answered, not what was said aloud
            (BOB, PUBLIC, "Alice"),
            (PUBLIC, BOB, "Bob"),  # what was said aloud was answered to him alone, not his whisper
            (PUBLIC, BOB, "Alice"),
            (ALICE, BOB, "Bob"),
        ):
            with self.subTest(first=first, second=second, target=target):
                self.setUp()
                self.die([first, second], call("whisper", target=target, text="Hush."))
                self.assertEqual(self.due(), [second])

    def test_other_endings(self):
        """The same of silence, of words and of a game's own tool."""
        for ending in (call("noop"), "Down the stairs.", call("nod")):
            for first, second in ((ALICE, PUBLIC), (PUBLIC, ALICE)):
                self.setUp()
                self.die([first, second], ending)
                self.assertEqual(self.due(), [second])

    def test_words_to_another(self):
        """What was said to one in the same room is no answer to the other who asked."""
        self.ask(PUBLIC, "Alice")
        self.die([PUBLIC], "Down the stairs.")
        self.world.restart()
        self.assertEqual(list(self.script.runtime.unanswered), [(PUBLIC, PEOPLE["Bob"])])

    def test_a_whisper_that_failed(self):
        """A whisper to nobody ended no turn."""
        for audience in (PUBLIC, ALICE):
            self.setUp()
            self.die([audience], call("whisper", target="Nobody", text="Hush."))
            self.assertEqual(self.due(), [audience])

    def test_in_no_prompt(self):
        """What is noted changes no prompt, nor what is to be summarised."""
        self.die([ALICE, PUBLIC], call("whisper", target="Alice", text="Hush."))
        before = self.shown()
        self.assertIn("Hush.", str(before))
        self.script.history.replace([unmarked(m) for m in self.script.history.messages()])
        self.assertEqual(self.shown(), before)

    def shown(self):
        """The prompts for two audiences, and what a summariser would get."""
        prompts = [build_llm_messages(self.script, self.body, audience=a) for a in (PUBLIC, ALICE)]
        return [*prompts, format_messages_for_compaction(self.script.history.messages())]


def unmarked(message):
    kept = {key: value for key, value in message.metadata.items() if key != ANSWERED}
    return replace(message, metadata=kept)
