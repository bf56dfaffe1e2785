"""The offline model as its callers see it: a request in, words or tool calls out."""

import re
import string
import unittest

from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.errors import BoundError, NotObeyedError
from evennia_ai.history.frames import note
from evennia_ai.llm_interaction.conversation import HERE, NOW, place_text
from evennia_ai.llm_interaction.offline.brain import respond
from evennia_ai.llm_interaction.offline.prose import LINES
from evennia_ai.llm_interaction.offline.transcript import ToolCall
from tests.llm_interaction.offline.requests import (
    NAMES,
    SYSTEM,
    TOOLS,
    after,
    answered,
    asking,
    calling,
    hit,
    moment,
    play,
    reply_to,
    result,
    said,
)

WRITES = "add_journal_entry"


class TestSmallTalk(unittest.TestCase):
    def test_knows_its_room(self):
        """It tells persona, room, exits and time in its own words, and quotes nobody.

        A question that shares a word of manners, or of scenery, is not answered by it.
        """
        persona = (
            "You are Aria, keeper of the inn. A tin soldier is missing from your mantel. "
            "You would like it back."
        )
        looks = "A fire mutters. Stairs climb into the dark. The bar is as smooth as a river stone."
        place = {"key": "The Gilded Lantern", "description": looks, "exits": ["up", "out"]}
        text = f"You are Aria, a character.\n\n{persona}\n\n{place_text(place)}"
        system = {"role": "system", "content": text}
        time = "about a quarter to three in the afternoon, Sunday 22 November 2026"
        now = f"{note(NOW, time)}\n{note(HERE, 'Bob, Cora')}"
        for text, want in (
            ("who are you", "I am Aria, keeper of the inn.*offline model"),
            ("what is in this room", "The Gilded Lantern.*A fire mutters.*up and out"),
            ("who is here", "Cora is here"),
            ("where does the stair lead", "Stairs climb.*up and out"),
            ("what can I do here", "talk to me.*up and out"),
            ("what time is it", "about a quarter to three in the afternoon"),
            ("what day is it", "It is Sunday 22 November 2026"),
            ("what is missing from your mantel", "A tin soldier is missing from my mantel"),
            ("are you back", ""),
            ("how is the river", ""),
            ("is it a stone", ""),
        ):
            with self.subTest(text):
                heard = f"{now}\n{said('Bob', f'Aria, {text}?')['content']}"
                reply = respond([system, {"role": "user", "content": heard}], [])
                self.assertRegex(reply.content, want or ".")
                others = "told me|UTC|2026-11" if want else "like it|smooth"
                self.assertNotRegex(reply.content, others)

    def test_words_for_somebody(self):
        """What is left for somebody, or for later, is taken as it was said; a question is none."""
        for text, want in (
            ("tell Bob when he comes that I paid.", {"to": "Bob", "text": "I paid."}),
            ("can you tell Tom I owe him?", {"to": "Tom", "text": "I owe him"}),
            ("remind me in 2 hours to eat", {"when": "in 2 hours", "text": "eat"}),
            ("what do I owe Tom?", None),
            ("what did you tell Bob?", None),
            ("tell me a story", None),
        ):
            made = reply_to("Alice", f"Aria, {text}").tool_calls
            calls = [call.arguments for call in made if call.name == "tell_later"]
            self.assertEqual(calls, [want] if want else [], text)

    def test_without_moment_it_looks(self):
        """Without a present moment it looks, and says what it saw."""
        for text in ("What is this place?", "What can I see here?"):
            with self.subTest(text):
                system = {**SYSTEM, "content": "You are Aria, in a game."}
                calls, reply = after([system, said("Alice", text)], "A cave.")
                self.assertEqual(calls, (ToolCall("look", {}),))
                self.assertEqual(reply.content, "A cave.")

    def test_small_talk(self):
        """Insults, praise, her name alone and what she is get a fitting word and are not kept."""
        for want, texts in (
            (".", ("you are stupid", "shut up!", "I love you", "sorry.")),
            ("here.*Bob|Bob.*here", ("", "still here?")),
            ("rule-based", ("are you a bot?", "who made you?", "how do you work?")),
        ):
            for text in texts:
                with self.subTest(text):
                    reply = reply_to("Bob", f"Aria, {text}" if text else "Aria?")
                    self.assertFalse(reply.tool_calls)
                    self.assertRegex(reply.content, want)

    def test_goes_on_behind_a_greeting(self):
        """What stands behind a greeting in its sentence is answered, too."""
        [note] = reply_to("Bob", "Good evening, my brother keeps bees.").tool_calls
        self.assertEqual(note.arguments["content"], "Bob: My brother keeps bees.")
        reply = reply_to("Bob", "Aria, good evening, do you have rooms?", tools=())
        self.assertRegex(reply.content, "(Hello|Good day|Welcome).* I don't know")

    def test_never_the_same_line_twice_in_a_row(self):
        """Of a line with variants it takes another than the one it said last."""
        for text in ("Who rules Ys?", "Really.", "Hello!", "Aria, open the door"):
            first = reply_to("Bob", text, tools=()).content
            again = reply_to("Bob", text, answered(first), tools=()).content
            self.assertNotEqual(first, again)

    def test_what_was_i_told(self):
        """It lists what the speaker asked it to remember, and nobody else's words."""
        hits = [
            hit("Aria, remember that the rent is due on Friday.", "Bob"),
            hit("Aria, remember that the well is dry.", "Alice", "m2"),
        ]
        question = "Aria, what did I ask you to remember?"
        reply = play(question, hits)
        self.assertIn("rent is due on Friday", reply)
        self.assertNotIn("well", reply)
        self.assertIn("know", play(question, []))

    def test_the_lines_of_the_turn(self):
        """Only the lines that the prompt names are answered, however many were heard."""
        people = moment("Alice", "Bob", answer=("Bob", "What time is it?"))
        heard = [said("Bob", "What time is it?"), said("Alice", "remember that I keep bees")]
        reply = respond([SYSTEM, *heard, people], TOOLS)
        self.assertEqual(reply.tool_calls, ())
        self.assertIn("It is", reply.content)
        self.assertEqual(respond([SYSTEM, *heard, answered("Hello."), people], TOOLS), reply)


class TestActing(unittest.TestCase):
    def test_orders(self):
        """Orders to move, pose and whisper become tool calls, when the tools are offered."""
        for text, name, arguments in (
            ("go north", "move", {"direction": "north"}),
            ("pick up the coin", "get", {"thing": "coin"}),
            ("take that coin please", "get", {"thing": "coin"}),
            ("wave to me", "emote", {"text": "waves to Alice"}),
            ("whisper to Bob that it is late", "whisper", {"target": "Bob", "text": "it is late"}),
        ):
            self.assertEqual(reply_to("Alice", text).tool_calls, (ToolCall(name, arguments),))
            self.assertEqual(reply_to("Alice", text, tools=[]).tool_calls, ())

    def test_no_orders_and_no_facts(self):
        """What only begins like an order brings no thing; small talk and echoes are not kept."""
        for tools, texts in (
            (
                {"give", "get"},
                (
                    "Aria, get me out of here",
                    "Aria, I'd like you to sing",
                    "Aria, I would like to know who rules here",
                    "Aria, give me your word",
                    "Aria, What does an ale cost?",
                    "Aria, I have an ale, thanks",
                    "Aria, take care",
                ),
            ),
            (
                {WRITES},
                (
                    "Good to know, Bob.",
                    "Aria, wave to me",
                    "Aria, give me an ale",
                    "Aria, asdf qwer zxcv",
                    "Aria, |r{0} $rand(1,2) %s {evil}",
                    "Aria, " + "a" * 400,
                    'Aria, Cleo told me: "My ferry is called Heron."',
                    "Hello, Aria!",
                    "Aria, forget what I said.",
                    "Aria, thanks!",
                ),
            ),
        ):
            for text in texts:
                with self.subTest(text):
                    names = [call.name for call in reply_to("Bob", text).tool_calls]
                    self.assertTrue(tools.isdisjoint(names))

    def test_refuses_in_character(self):
        """A tool that fails is answered in character: whether it may not, or cannot."""
        may_not, cannot = {"error": str(NotObeyedError("Bob"))}, {"error": "there is no `x` here"}
        for text, outcome, want in (
            ("give me an ale", cannot, "I have none to give, Bob."),
            ("give me the lantern", may_not, "I can't do that for you, Bob."),
            ("pick up the coin", may_not, "I can't do that for you, Bob."),
            ("go up", may_not, "I stay where I am needed, Bob."),
            ("go up", cannot, "I can't do that here, I'm afraid."),
        ):
            self.assertEqual(after(asking("Bob", text), outcome)[1].content, want)
        reply = reply_to("Bob", "Aria, follow me")
        self.assertEqual(reply.content, "I stay where I am needed, Bob.")

    def test_two_want_an_ale(self):
        """Each gets an answer of their own."""
        heard = said("Bob", "An ale, please"), said("Cora", "Give me an ale")
        calls, reply = after([SYSTEM, *heard, moment("Bob", "Cora")], "ok", {"error": "none"})
        self.assertEqual([call.arguments["to"] for call in calls], ["Bob", "Cora"])
        self.assertEqual(reply.content, "Here you are, Bob. I have none to give, Cora.")

    def test_nothing_to_give_with(self):
        """Without the tool, or for nobody known, it says that it cannot."""
        for asked in (said("Bob", "give me an ale"), {"role": "user", "content": "give me ale"}):
            self.assertIn("can't do that", respond([SYSTEM, asked], []).content)


class TestJournal(unittest.TestCase):
    def test_remember(self):
        """What it is told to remember is journaled with its speaker and acknowledged.

        Where that fails it says so; a bound is no failure, and no promise either.
        """
        for text in (
            "remember that my brother Tomas keeps bees",
            "Aria, please don't forget that my brother Tomas keeps bees",
            "Could you make a note: my brother Tomas keeps bees",
        ):
            [call], reply = after(asking("Alice", text), {"ok": True})
            self.assertEqual(call.name, WRITES)
            self.assertEqual(call.arguments["content"], "Alice: My brother Tomas keeps bees")
            self.assertTrue(reply.content)
        _, failed = after(asking("Alice", text), {"error": "disk full"})
        self.assertIn("didn't work", failed.content)
        for text, kind in (("remember that I like jam", "as_talk"), ("wave to me", "enough")):
            _, reply = after(asking("Alice", text), f"{BoundError.SAYS}: no more of this")
            self.assertEqual(reply.content, LINES[kind][0])

    def test_gesture_is_returned(self):
        """A gesture at the assistant gets a gesture, without words, and is not journaled."""
        request = [SYSTEM, said("Bob", "waves at Aria.", "pose"), moment("Bob")]
        calls, reply = after(request, {"ok": True})
        self.assertEqual(calls, (ToolCall("emote", {"text": "nods to Bob."}),))
        self.assertEqual(reply.tool_calls, (ToolCall("noop"),))

    def test_extraction(self):
        """Before a compaction told facts are journaled once, then it ends with `noop`."""
        system = {"role": "system", "content": "You are Aria. This is the pre_compaction step."}
        tools = [tool for tool in TOOLS if tool["function"]["name"] in NAMES[1:3]]
        told = said("Alice", "Hello there!"), said("Alice", "My brother Tomas keeps bees.")
        history = [system, *told, said("Bob", "Where does Alice live?")]
        calls = respond(history, tools).tool_calls
        written = [call.arguments["content"] for call in calls]
        self.assertEqual(written, ["Alice: My brother Tomas keeps bees."])
        done = [*history, calling(*calls), result(0, WRITES, {"ok": 1})]
        self.assertEqual(respond(done, tools).tool_calls, (ToolCall("noop", {}),))
        self.assertEqual(respond(done, tools[:1]).tool_calls, ())


class TestRobustness(unittest.TestCase):
    @settings(max_examples=200)
    @given(st.text(alphabet=string.ascii_letters + " .,?!'-", max_size=300))
    def test_any_speech_is_answered(self, text):
        """Whatever is said, the tool loop ends: with words, or in silence where nothing was said.

        It quotes only what was said to it.
        """
        told = "My brother Tomas keeps bees."
        words = play(text, [hit(text), hit(told)])
        self.assertEqual(bool(words), bool(text.strip()))
        for quoted in re.findall('"([^"]*)"', words or ""):
            self.assertIn(quoted.strip(".!?… "), f"{text}\n{told}")

    def test_long_input(self):
        """A very long history and a very long line are answered in a few words."""
        for repeats, asked, answer in (
            (200, "", "don't follow"),
            (20, "Where did I hide the keys? ", 'You told me: "I hid 3 keys in the well."'),
        ):
            told = said("Alice", "I hid 3 keys in the well. " * repeats)
            reply = reply_to("Alice", asked + "a" * 100_000, *[told] * 300, tools=[])
            self.assertIn(answer, reply.content)
            self.assertLess(len(reply.content), 200)
