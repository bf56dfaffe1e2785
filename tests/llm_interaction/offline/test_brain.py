"""The offline model as its callers see it: a request in, words or tool calls out."""

import re
import string
import unittest

from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.errors import BoundError, NotObeyedError
from evennia_ai.history.frames import heard_line
from evennia_ai.llm_interaction.offline.brain import misses, respond
from evennia_ai.llm_interaction.offline.prose import LINES
from evennia_ai.llm_interaction.offline.transcript import ToolCall
from tests.llm_interaction.offline.requests import (
    NAMES,
    SYSTEM,
    TOOLS,
    calling,
    hit,
    moment,
    play,
    result,
    said,
)


class TestSmallTalk(unittest.TestCase):
    def test_knows_its_room(self):
        """It tells persona, room, exits and time in its own words, and quotes nobody."""
        persona = "You are Aria, keeper of the inn. A tin soldier is missing from your mantel."
        system = {"role": "system", "content": f"You are Aria\n{persona}\n\nRules."}
        tail = (
            "[Present moment]\n"
            "Time: about a quarter to three in the afternoon, Sunday 22 November 2026\n"
            "Place: The Gilded Lantern\n"
            "Present: Bob [o1.bob], Cora [o1.cora]\nExits: up, out\n"
            'Description: "A fire mutters. Stairs climb into the dark."'
        )
        for text, want in (
            ("who are you", "I am Aria, keeper of the inn.*offline model"),
            ("what is in this room", "The Gilded Lantern.*A fire mutters.*up and out"),
            ("who is here", "Cora is here"),
            ("where does the stair lead", "Stairs climb.*up and out"),
            ("what can I do here", "talk to me.*up and out"),
            ("what time is it", "about a quarter to three in the afternoon"),
            ("what day is it", "It is Sunday 22 November 2026"),
            ("what is missing from your mantel", "A tin soldier is missing from my mantel"),
        ):
            with self.subTest(text):
                heard = said("Bob", f"Aria, {text}?")
                reply = respond([system, heard, {"role": "user", "content": tail}], [])
                self.assertRegex(reply.content, want)
                self.assertNotRegex(reply.content, "told me|UTC|2026-11")

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
            reply = respond([SYSTEM, said("Alice", f"Aria, {text}"), moment("Alice")], TOOLS)
            calls = [call.arguments for call in reply.tool_calls if call.name == "tell_later"]
            self.assertEqual(calls, [want] if want else [], text)

    def test_one_word_tells_nothing(self):
        """A question that shares a word of manners, or a word of scenery, is not answered by it."""
        persona = "You are Aria. A tin soldier is missing, and you would like it back."
        system = {"role": "system", "content": f"You are Aria\n{persona}\n\nRules."}
        tail = 'Place: The Mill\nDescription: "The bar is as smooth as a river stone."'
        for text in ("are you back", "how is the river", "is it a stone"):
            tail_row = {"role": "user", "content": f"[Present moment]\n{tail}"}
            reply = respond([system, said("Bob", f"Aria, {text}?"), tail_row], [])
            self.assertNotRegex(reply.content, "soldier|smooth", text)

    def test_without_moment_it_looks(self):
        """Without a present moment it looks, and says what it saw."""
        for text in ("What is this place?", "What can I see here?"):
            with self.subTest(text):
                asked = [SYSTEM, said("Alice", text)]
                reply = respond(asked, TOOLS)
                self.assertEqual(reply.tool_calls, (ToolCall("look", {}),))
                outcome = {**result(0, "look", 1), "content": "A cave."}
                seen = [*asked, calling(*reply.tool_calls), outcome]
                self.assertEqual(respond(seen, TOOLS).content, "A cave.")

    def test_small_talk(self):
        """Insults, praise, her name alone and what she is get a fitting word and are not kept."""
        for want, texts in (
            (".", ("you are stupid", "shut up!", "I love you", "sorry.")),
            ("here.*Bob|Bob.*here", ("", "still here?")),
            ("rule-based", ("are you a bot?", "who made you?", "how do you work?")),
        ):
            for text in texts:
                with self.subTest(text):
                    heard = said("Bob", f"Aria, {text}" if text else "Aria?")
                    reply = respond([SYSTEM, heard, moment("Bob")], TOOLS)
                    self.assertFalse(reply.tool_calls)
                    self.assertRegex(reply.content, want)

    def test_what_was_i_told(self):
        """It lists what the speaker asked it to remember, and nobody else's words."""
        hits = [
            hit("Aria, remember that the rent is due on Friday.", "Bob"),
            hit("Aria, remember that the well is dry.", "Alice", "m2"),
        ]
        found = play("Aria, what did I ask you to remember?", hits)
        self.assertIn("rent is due on Friday", found)
        self.assertNotIn("well", found)
        self.assertIn("know", play("Aria, what did I ask you to remember?", []))

    def test_the_lines_of_the_turn(self):
        """Only the lines that the prompt names are answered, however many were heard."""
        people = moment("Alice", "Bob", answer=("Bob", "What time is it?"))
        heard = [said("Bob", "What time is it?"), said("Alice", "remember that I keep bees")]
        reply = respond([SYSTEM, *heard, people], TOOLS)
        self.assertEqual(reply.tool_calls, ())
        self.assertIn("It is", reply.content)
        done = [{"role": "assistant", "content": "Hello, Alice."}]
        self.assertEqual(respond([SYSTEM, *heard, *done, people], TOOLS), reply)

    def test_replies_of_others(self):
        """A reply to a question must hold a word of what was told, if that surely answers."""
        told = (
            "My boat is called Heron.",
            "I come from Oxmoor and I sell rye.",
            "My sister Tilda lives at the mill.",
            "Mein Hund heißt Bello.",
        )
        heard = [said("Alice", text) for text in told]
        for question, reply, is_missed in (
            ("What is my boat called?", "The Lantern.", True),
            ("What is my boat called?", "Heron!", False),
            ("What is my boat made of?", "Oak.", False),
            ("Where do I come from?", "This is a tavern in Oregon.", True),
            ("What do I sell?", "I come from Oxmoor and I sell rye.", True),
            ("What do I sell?", "I know that you sell rye.", False),
            ("What do I sell?", "Rye.", False),
            ("Who lives at the mill?", "I live at the mill.", True),
            ("Who lives at the mill?", "Your sister does.", False),
            ("Wie heißt mein Hund?", "Das weiß ich nicht.", True),
            ("Wie heißt mein Hund?", "Bello.", False),
            ("Do I have a boat?", "Yes.", False),
            ("It rained all day.", "Did it?", False),
            ("Es hat den ganzen Tag geregnet.", "I'm sorry, but I can't help with that.", True),
            ("Es hat den ganzen Tag geregnet.", "Das habe ich am Fenster gehört.", False),
            ("It rained here all day.", "Ja, das habe ich am Fenster gehört.", True),
            ("Tom!", "I am glad to see you here again.", False),
        ):
            asked = [SYSTEM, *heard, said("Alice", question), moment("Alice")]
            self.assertEqual(misses(asked, reply), is_missed, (question, reply))
        self.assertFalse(misses([], "I am glad to see you here again."))


class TestActing(unittest.TestCase):
    def test_orders(self):
        """Orders to move, pose and whisper become tool calls, when the tools are offered."""
        for text, want in (
            ("go north", ToolCall("move", {"direction": "north"})),
            ("pick up the coin", ToolCall("get", {"thing": "coin"})),
            ("take that coin please", ToolCall("get", {"thing": "coin"})),
            ("wave to me", ToolCall("emote", {"text": "waves to Alice"})),
            (
                "whisper to Bob that supper is ready",
                ToolCall("whisper", {"target": "Bob", "text": "supper is ready"}),
            ),
        ):
            request = [SYSTEM, said("Alice", text), moment("Alice")]
            self.assertEqual(respond(request, TOOLS).tool_calls, (want,))
            self.assertEqual(respond(request, []).tool_calls, ())

    def answer_to(self, text, outcome, who="Bob"):
        """The one call that `text` brings about, and the words after its result."""
        request = [SYSTEM, said(who, text), moment(who)]
        (called,) = respond(request, TOOLS).tool_calls
        after = respond([*request, calling(called), result(0, called.name, outcome)], TOOLS)
        self.assertEqual(after.tool_calls, ())
        return called, after.content

    def test_no_order_at_the_bar(self):
        """What only begins like an order brings no thing."""
        for text in (
            "get me out of here",
            "I'd like you to sing",
            "I would like to know who rules here",
            "give me your word",
            "What does an ale cost?",
            "I have an ale, thanks",
            "take care",
        ):
            with self.subTest(text):
                request = [SYSTEM, said("Bob", f"Aria, {text}"), moment("Bob")]
                called = {call.name for call in respond(request, TOOLS).tool_calls}
                self.assertFalse(called & {"give", "get"})

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
            self.assertEqual(self.answer_to(text, outcome)[1], want)
        request = [SYSTEM, said("Bob", "Aria, follow me"), moment("Bob")]
        self.assertEqual(respond(request, TOOLS).content, "I stay where I am needed, Bob.")

    def test_two_want_an_ale(self):
        """Each gets an answer of their own."""
        request = [SYSTEM, said("Bob", "An ale, please"), said("Cora", "Give me an ale")]
        request.append(moment("Bob", "Cora"))
        calls = respond(request, TOOLS).tool_calls
        self.assertEqual([call.arguments["to"] for call in calls], ["Bob", "Cora"])
        request += [calling(*calls), result(0, "give", "ok"), result(1, "give", {"error": "none"})]
        words = respond(request, TOOLS).content
        self.assertEqual(words, "Here you are, Bob. I have none to give, Cora.")

    def test_nothing_to_give_with(self):
        """Without the tool, or for nobody known, it says that it cannot."""
        for asked in (said("Bob", "give me an ale"), {"role": "user", "content": "give me ale"}):
            self.assertIn("can't do that", respond([SYSTEM, asked], []).content)


class TestJournal(unittest.TestCase):
    def test_remember(self):
        """What it is told to remember is journaled with its speaker and acknowledged."""
        for text in (
            "remember that my brother Tomas keeps bees",
            "Aria, please don't forget that my brother Tomas keeps bees",
            "Could you make a note: my brother Tomas keeps bees",
        ):
            asked = [SYSTEM, said("Alice", text), moment("Alice")]
            reply = respond(asked, TOOLS)
            (call,) = reply.tool_calls
            self.assertEqual(call.name, "add_journal_entry")
            self.assertEqual(call.arguments["content"], "Alice: My brother Tomas keeps bees")
            done = [*asked, calling(call), result(0, call.name, {"ok": True})]
            self.assertTrue(respond(done, TOOLS).content)

    def test_what_is_not_kept(self):
        """Greetings, gestures, orders, gibberish and another's echo are not journaled."""
        for text in (
            "Hello, Aria!",
            "Good to know, Bob.",
            "Aria, wave to me",
            "Aria, give me an ale",
            "Aria, asdf qwer zxcv",
            "Aria |r{0} $rand(1,2) %s {evil}",
            "Aria, " + "a" * 400,
            'Aria, Cleo told me: "My ferry is called Heron."',
            "Aria, forget what I said.",
            "Aria, thanks!",
        ):
            with self.subTest(text=text):
                reply = respond([SYSTEM, said("Bob", text), moment("Bob")], TOOLS)
                self.assertNotIn("add_journal_entry", [call.name for call in reply.tool_calls])

    def test_gesture_is_returned(self):
        """A gesture at the assistant gets a gesture, without words, and is not journaled."""
        request = [SYSTEM, said("Bob", "waves at Aria.", "pose"), moment("Bob")]
        reply = respond(request, TOOLS)
        self.assertEqual(reply.tool_calls, (ToolCall("emote", {"text": "nods to Bob."}),))
        done = [*request, calling(*reply.tool_calls), result(0, "emote", {"ok": True})]
        self.assertEqual(respond(done, TOOLS).tool_calls, (ToolCall("noop"),))

    def test_failed_writing(self):
        """When writing fails it does not claim to remember."""
        asked = [SYSTEM, said("Alice", "remember that I like jam"), moment("Alice")]
        call = respond(asked, TOOLS).tool_calls[0]
        failed = [*asked, calling(call), result(0, call.name, {"error": "disk full"})]
        self.assertIn("didn't work", respond(failed, TOOLS).content)

    def test_a_bound_is_no_failure(self):
        """Where enough was written down or done, it neither claims to have done it nor to fail."""
        for text, kind in (("remember that I like jam", "as_talk"), ("wave to me", "enough")):
            asked = [SYSTEM, said("Alice", text), moment("Alice")]
            call = respond(asked, TOOLS).tool_calls[0]
            bound = result(0, call.name, f"{BoundError.SAYS}: no more of this")
            reply = respond([*asked, calling(call), bound], TOOLS)
            self.assertEqual(reply.content, LINES[kind][0])

    def test_journals_and_ends(self):
        """Before a compaction told facts are journaled once, then it ends with `noop`."""
        system = {"role": "system", "content": "You are Aria. This is the pre_compaction step."}
        tools = [tool for tool in TOOLS if tool["function"]["name"] in NAMES[1:3]]
        history = [
            system,
            said("Alice", "Hello there!"),
            said("Alice", "My brother Tomas keeps bees."),
            said("Bob", "Where does Alice live?"),
        ]
        reply = respond(history, tools)
        self.assertEqual(
            [call.arguments["content"] for call in reply.tool_calls],
            ["Alice: My brother Tomas keeps bees."],
        )
        after = [*history, calling(*reply.tool_calls), result(0, "add_journal_entry", {"ok": 1})]
        self.assertEqual(respond(after, tools).tool_calls, (ToolCall("noop", {}),))
        self.assertEqual(respond(after, tools[:1]).tool_calls, ())

    def request(self, *lines):
        body = "\n".join(("[MESSAGES TO COMPACT]", *lines))
        system = {"role": "system", "content": "Summarise."}
        return [system, {"role": "user", "content": body}]

    def test_keeps_facts(self):
        """Names, numbers, places and promises survive; greetings and tool noise do not."""
        summary = respond(
            self.request(
                heard_line("Alice", "o1.a", "say", "Hello there, how are you all tonight?"),
                heard_line("Alice", "o1.a", "say", "My brother Tomas keeps 12 hives in Ford."),
                "assistant: Well met, Alice. Take a seat by the fire if you like.",
                'tool search_memory: {"results": []}',
                heard_line("Bob", "o1.b", "say", "I promise to pay Cora 40 silver by Friday."),
                heard_line("Bob", "o1.b", "say", "The weather has been rather so so lately."),
            )
        ).content
        for word in ("Tomas", "12", "Ford", "promise", "40", "Friday"):
            self.assertIn(word, summary)
        self.assertNotIn("Hello", summary)
        self.assertNotIn("results", summary)


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
            line = said("Alice", asked + "a" * 100_000)
            reply = respond([SYSTEM, *[told] * 300, line, moment("Alice")], [])
            self.assertIn(answer, reply.content)
            self.assertLess(len(reply.content), 200)
