"""The offline model as its callers see it: a request in, words or tool calls out."""

import string
import unittest

from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.errors import UnaskedError
from evennia_ai.history.messages import MESSAGES_LABEL, note, talk_line
from evennia_ai.language.tables import tables
from evennia_ai.language.words import message_in, parted
from evennia_ai.llm_interaction.conversation import (
    AN_ASSISTANT,
    HERE,
    KNOWN,
    NOW,
    language_rule,
    place_text,
)
from evennia_ai.llm_interaction.offline.brain import respond
from evennia_ai.llm_interaction.offline.transcript import ToolCall
from tests.llm_interaction.offline.requests import (
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

PLACE = {"key": "The Lantern", "description": "A fire mutters.", "exits": ["up", "out"]}
THINGS = ["ale barrel", "noticeboard", "brass lantern"]
ROOM = {
    "role": "system",
    "content": f"You are Aria, in a game.\n\nA barkeep.\n\n{place_text(PLACE, THINGS)}",
}


def lines(key, code="en"):
    """The variants of a line, said to Mira."""
    return {line.format(who="Mira", me="Aria") for line in tables()[code].get("lines", key)}


def in_room(text, *people, who="Mira", before=(), tools=TOOLS):
    """The reply to a line of Mira in the room."""
    return respond([ROOM, *before, moment(*(people or (who,)), answer=(who, text))], tools)


def call_of(text, *people):
    """The one call that a line brings about; None for none."""
    calls = in_room(text, *people).tool_calls
    return (calls[0].name, calls[0].arguments) if calls and calls[0].name != "noop" else None


class TestTalk(unittest.TestCase):
    def test_courtesies(self):
        """It greets, takes leave and thanks, with names and courtesies in any order."""
        for key, texts in (
            ("greeting", ("hey man", "Hello Aria", "Aria, good evening!", "HI!")),
            ("greeting", ("Good evening everyone", "How are you")),
            ("well", ("How are you?", "Hello, how are you today?")),
            (
                "farewell",
                ("bye", "Good night, Aria.", "Well, see you", "goodnight Aria, see you tomorrow"),
            ),
            ("farewell", ("I'm for bed. Goodnight all, see you on Friday.",)),
            ("thanks", ("thanks, Aria!", "ok thanks", "Thank you for the long and good advice.")),
            ("thanks", ("I'm full. Thanks for the stew and the stories.",)),
        ):
            for text in texts:
                with self.subTest(text):
                    self.assertIn(in_room(text).content, lines(key))

    def test_asked_behind_a_greeting(self):
        """What is asked behind a greeting is answered as a question, not as `how are you`."""
        for text in ("Good evening! Anybody serving?", "hello, any bread?"):
            self.assertIn(in_room(text, tools=()).content, lines("unknown"), text)

    def test_an_assistants_line(self):
        """One that asks and orders nothing is not answered, or two would never end."""
        people = f"Borin{AN_ASSISTANT}", "Mira"
        reply = in_room("I can only listen, Aria.", *people, who="Borin")
        self.assertEqual([call.name for call in reply.tool_calls], ["noop"])
        self.assertTrue(in_room("Hello, Aria!", *people, who="Borin").content)

    def test_amid_people(self):
        """Where people talk with each other, it is silent but for what it can do or tell."""
        people, before = ("Mira", "Tam"), [said("Tam", "I could eat a horse."), answered("Ha.")]
        for text in ("June is ages away", "who ate the pie?", "it is cold"):
            with self.subTest(text):
                reply = in_room(text, *people, before=before, tools=())
                self.assertFalse(reply.content)
                self.assertTrue(in_room(f"Aria, {text}", *people, before=before, tools=()).content)
                self.assertTrue(in_room(text, *people, tools=()).content)  # Tam says nothing
        self.assertIn(in_room("goodnight!", *people, before=before).content, lines("farewell"))
        self.assertFalse(in_room("thanks!", *people, before=before).content)  # Tam may be meant
        thanks = in_room("thanks, Aria!", *people, before=before).content
        self.assertIn(thanks, lines("thanks"))
        self.assertEqual(
            [call.name for call in in_room("it is cold", *people, before=before).tool_calls],
            ["noop"],
        )

    def test_told_behind_a_question(self):
        """Where more is told behind a question, `I can't say` is no answer."""
        for text, key in (
            ("A wolf killed my brother last night.", "heard"),
            ("Aria, have you heard? My sister had a boy on Tuesday.", "heard"),
            ("Aria, guess what? I got wed, thanks to you.", "heard"),
            ("My sister had a boy. Have you heard who came, Aria?", "unknown"),
            ("Aria, who mended the bridge? :)", "unknown"),
        ):
            self.assertIn(in_room(text, tools=()).content, lines(key), text)

    def test_asked_by_name_without_a_mark(self):
        """Who names it may ask what it is and what is here without a question mark."""
        for text in ("so are you a real person or a bot Aria", "aria what are you"):
            self.assertIn(in_room(text).content, lines("identity"), text)
        self.assertIn("mutters", in_room("Aria what is here").content)
        self.assertIn(in_room("the machine is broken, Aria").content, lines("heard"))

    def test_a_name_is_no_answer(self):
        """The name of somebody here alone makes no line near to a question that asks more."""
        told = hit("Come and sit by the fire, Bob.", "Tam")
        for question, is_near in (
            ("What is the favourite dish of Bob?", False),
            ("What is by the fire, Bob?", True),
            ("Do you remember what I cook, Bob?", False),
            ("Do you know Bob?", False),
            ("Do you remember where the fire is, Bob?", True),
        ):
            request = [ROOM, moment("Mira", "Tam", "Bob", answer=("Mira", question))]
            _, reply = after(request, {"results": [told]})
            self.assertEqual("by the fire" in (reply.content or ""), is_near, question)
        request = [ROOM, moment("Mira", "Tam", "Bob", answer=("Mira", "Do you know Bob?"))]
        _, reply = after(request, {"results": [hit("Bob keeps bees.", "Tam")]})
        self.assertIn("keeps bees", reply.content)

    def test_a_pose_is_not_told(self):
        """What somebody did is not quoted as what they told."""
        request = [ROOM, moment("Mira", "Tam", answer=("Mira", "Who took the copper spoon?"))]
        for text, is_told in (("Tam takes the copper spoon.", False), ("I took it.", False)):
            _, reply = after(request, {"results": [hit(text, "Tam")]})
            self.assertEqual("copper spoon" in (reply.content or ""), is_told, text)
        _, reply = after(request, {"results": [hit("The cat took the copper spoon.", "Tam")]})
        self.assertIn("The cat took", reply.content)

    def test_what_others_call_it(self):
        """It knows itself by a description, or its last words, where these are set off."""
        place = place_text({**PLACE, "called": ["a tall, grey-haired barkeep", "Arya"]}, THINGS)
        room = {**ROOM, "content": f"You are Aria, in a game.\n\nA barkeep.\n\n{place}"}

        def answer(text):
            return respond([room, moment("Mira", answer=("Mira", text))], TOOLS)

        for text in (
            "Good evening, barkeep!",
            "Grey-haired barkeep, hello",
            "Hello, Aria",
            "Arya, hi!",
        ):
            self.assertIn(answer(text).content, lines("greeting"), text)
        [call] = answer("Arya, give me an ale, please.").tool_calls
        self.assertEqual(call.name, "give")
        for text in ("Barkeep, who is my uncle?", "Who is my uncle, barkeep?"):
            [call] = answer(text).tool_calls
            self.assertNotIn("barkeep", call.arguments["query"].lower(), text)
        [call] = answer("Who is the barkeep of the mill?").tool_calls
        self.assertIn("barkeep", call.arguments["query"])

    def test_what_fits_anything(self):
        """Whatever else is said is heard, without a word about it."""
        for text in (
            "My dog died this morning.",
            "you are stupid",
            "asdf jkl",
            "I'd like to die",
            "I want to die",
            "Morning comes early in the hills around here",
            "Aria",
        ):
            with self.subTest(text):
                reply = in_room(text)
                self.assertIn(reply.content, lines("heard"))
                self.assertFalse(reply.tool_calls)

    def test_a_greeting_and_more(self):
        """Whoever begins with a greeting and tells more gets it back, and that it was heard."""
        for text, greeting in (
            ("Evening, Aria. Lord, that rain!", "Evening."),
            ("Hey Aria, my brother drowned last week", "Hey."),
        ):
            want = {f"{greeting} {each}" for each in lines("heard")}
            self.assertIn(in_room(text).content, want)
            earlier = [said("Mira", "It is cold."), answered("So it is.")]
            self.assertIn(in_room(text, before=earlier).content, lines("heard"))

    def test_never_the_same_line_twice_in_a_row(self):
        """Of a line with variants it takes another than the one it said last."""
        for text in ("It rains.", "Who rules Ys?", "Hello!"):
            first = in_room(text, tools=()).content
            for _ in range(6):
                again = in_room(
                    text, before=[said("Mira", text), answered(first)], tools=()
                ).content
                self.assertNotEqual(first, again)
                first = again

    def test_says_what_it_is(self):
        """Asked, it says that it is the offline model."""
        for text in ("Aria, are you a bot?", "who are you?", "Who are you", "What is your name?"):
            self.assertIn(in_room(text).content, lines("identity"), text)
        for text in ("My cousin built a robot", "Aria, what are you writing in that journal?"):
            self.assertNotIn(in_room(text).content, lines("identity"), text)

    def test_what_nobody_says(self):
        """Poses, arrivals and notices are answered with silence."""
        for channel in ("pose", "arrive", "event"):
            reply = respond([ROOM, said("Mira", "waves", channel)], TOOLS)
            self.assertEqual(reply.tool_calls, (ToolCall("noop"),), channel)

    @given(st.text(string.printable, max_size=60))
    @settings(max_examples=60, deadline=None)
    def test_any_line(self, text):
        """Equal requests get equal answers, whatever is said."""
        self.assertEqual(reply_to("Mira", text), reply_to("Mira", text))


class TestLanguage(unittest.TestCase):
    def test_that_of_the_talk(self):
        """Two words without doubt change it, or a script; one does not."""
        for text, code in (
            ("hola", "en"),
            ("¡Hola, buenas noches!", "es"),
            ("Guten Abend!", "de"),
            ("Добрый вечер!", "ru"),
            ("晚上好！", "zh"),
            ("hey man", "en"),
        ):
            self.assertIn(in_room(text).content, lines("greeting", code), text)
        before = [said("Mira", "Wo ist denn hier das Bier?"), answered("Keine Ahnung, Mira.")]
        self.assertIn(in_room("Hallo!", before=before).content, lines("greeting", "de"))
        back = [*before, said("Mira", "I would like to speak English."), answered("I see, Mira.")]
        self.assertIn(in_room("Hi!", before=back).content, lines("greeting"))

    def test_one_language(self):
        """A language that the rules name is spoken whatever is heard."""
        rule = {"role": "system", "content": f"{ROOM['content']}\n- {language_rule('German')}"}
        reply = respond([rule, moment("Mira", answer=("Mira", "It rains a lot here."))], TOOLS)
        self.assertIn(reply.content, lines("heard", "de"))

    def test_each_greets_and_acts(self):
        """Every language greets in its own words, and remembers what it is asked to."""
        for code, table in tables().items():
            rule = {"role": "system", "content": f"{ROOM['content']}\n- {language_rule(code)}"}
            for key in ("greeting", "farewell", "thanks"):
                for phrase in table.get("words", key).split("|"):
                    heard = moment("Mira", answer=("Mira", f"{phrase}!"))
                    self.assertIn(respond([rule, heard], TOOLS).content, lines(key, code), phrase)
            verb = table.get("words", "remember").split("|")[0]
            for text in (f"{verb} Xyzzy 17 Qwfpg", f"Xyzzy 17 Qwfpg {verb}"):
                heard = moment("Mira", answer=("Mira", text))
                calls = respond([rule, heard], TOOLS).tool_calls
                self.assertEqual([call.name for call in calls], ["add_journal_entry"], text)


class TestOrders(unittest.TestCase):
    def test_what_is_done(self):
        """A verb and the name of what is here, and nothing else."""
        ale = ("give", {"thing": "ale barrel", "to": "Mira"})
        for text, want in (
            ("give me an ale", ale),
            ("Aria, can you give me an ale, please?", ale),
            ("I'm thirsty. I'd like an ale!", ale),
            ("An ale, please", ale),
            ("A mug of ale, please", ("give", {"thing": "mug of ale", "to": "Mira"})),
            ("An ale please, whatever is cold", ale),
            ("Gib mir bitte ein Ale", ale),
            ("Kannst du mir ein Ale geben?", ale),
            ("bring me a pie", ("give", {"thing": "pie", "to": "Mira"})),
            ("give Bob the brass lantern", ("give", {"thing": "brass lantern", "to": "Bob"})),
            ("take the lantern", ("get", {"thing": "brass lantern"})),
            ("look at the noticeboard", ("look", {"target": "noticeboard"})),
            ("go up", ("move", {"direction": "up"})),
            ("tell Tom that I paid", ("tell_later", {"to": "Tom", "text": "I paid"})),
            ("remind me in 2 hours to eat", ("tell_later", {"when": "in 2 hours", "text": "eat"})),
            ("whisper Bob it is late", ("whisper", {"target": "Bob", "text": "it is late"})),
        ):
            self.assertEqual(call_of(text, "Mira", "Bob"), want, text)

    def test_words_for_somebody(self):
        """The call holds words in a row, and whom they are for, as the tool takes them."""
        for text, told in (
            ("Tell Tom that I am not coming tonight", "that I am not coming tonight"),
            ("tell Tom: I come. not tomorrow!", "I come. not tomorrow!"),
            ("Tell Bob tomorrow is too late for me", "tomorrow is too late for me"),
            ("Tell Bram, I come tomorrow", "I come tomorrow"),
            ("tell Tom: this evening at 20:00 is fine", "this evening at 20:00 is fine"),
            ("Sag Tom, ich komme morgen nicht", "ich komme morgen nicht"),
            ("Sag Tom morgen komme ich nicht", "morgen komme ich nicht"),
            ("Dis à Tom que je ne viens pas demain", "que je ne viens pas demain"),
            ("Dile a Tom que no voy mañana", "que no voy mañana"),
            ("скажи Тому, что я не приду завтра", "что я не приду завтра"),
            ("บอก Tom ว่าฉันไม่มา", "ว่าฉันไม่มา"),
        ):
            with self.subTest(text):
                name, given = call_of(text, "Mira", "Bob")
                self.assertEqual((name, "when" in given), ("tell_later", False))
                self.assertTrue(any(parted([text], given["to"])))
                self.assertEqual(message_in(*parted([text], given["text"]), given["to"]), told)

    def test_words_for_a_time(self):
        """What begins with words of a day, or little ones, before a time is told at that time."""
        for text, when in (
            ("remind me this evening at 20:00 to eat", "this evening at 20:00"),
            ("Remind me tonight, at 20:00, to eat", "tonight, at 20:00,"),
            ("remind me the day after tomorrow to eat", "the day after tomorrow"),
            ("remind me the day after tomorrow at 9 to eat", "the day after tomorrow at 9"),
            ("Erinnere mich übermorgen um 9 ans Essen", "übermorgen um 9"),
            ("Recuérdame pasado mañana que hay que comer", "pasado mañana"),
            ("remind me tomorrow morning at 9 to eat", "tomorrow morning at 9"),
            ("Erinnere mich heute Abend um 20 Uhr ans Essen", "heute Abend um 20 Uhr"),
            ("Erinnere mich morgen früh um 9 ans Essen", "morgen früh um 9"),
            ("Rappelle-moi aujourd'hui à 20h00 de manger", "aujourd'hui à 20h00"),
            ("Recuérdame hoy a las 20:00 que hay que comer", "hoy a las 20:00"),
            ("Ricordami oggi alle 20:00 di mangiare con te", "oggi alle 20:00"),
            ("Przypomnij mi dziś o 20:00 żeby zjeść", "dziś o 20:00"),
            ("Напомни мне сегодня в 20:00 поесть", "сегодня в 20:00"),
            ("提醒我 今天 20:00 吃饭", "今天 20:00"),
        ):
            with self.subTest(text):
                name, given = call_of(text, "Mira", "Bob")
                self.assertEqual((name, given.get("when")), ("tell_later", when))

    def test_done_once(self):
        """What was given is not here any more, and not given again under a shorter name."""
        for name in ("lamp", "a lamp", "a brass lamp"):
            given = ToolCall("give", {"thing": name, "to": "Mira"})
            did = [calling(given), result(0, "give", "You give a lamp to Mira.")]
            reply = respond([*asking("Mira", "give me the lamp"), *did], TOOLS)
            self.assertEqual((reply.tool_calls, reply.content in lines("done")), ((), True), name)

    def test_what_is_none(self):
        """Talk of a thing, a question about an act and a refusal are no orders."""
        for text in (
            "I gave the ale to Bob",
            "Don't give me the ale",
            "Bob said give me the ale",
            "Take care of the lantern for my grandmother",
            "tell me what Bob said",
            "Remember me?",
            "I'd like to go home",
            "go home",
        ):
            called = call_of(text)
            self.assertTrue(called is None or called[0] == "search_memory", text)

    def test_to_remember(self):
        """What is to be remembered is kept in the asker's words, with their name."""
        want = {"content": "Mira: My boat is called Heron.", "importance": 8}
        for text in (
            "Aria, please remember that my boat is called Heron.",
            "don't forget: my boat is called Heron.",
        ):
            made, reply = after([ROOM, moment("Mira", answer=("Mira", text))], "Written.")
            self.assertEqual(made, (ToolCall("add_journal_entry", want),))
            self.assertIn(reply.content, lines("remembered"))

    def test_what_came_of_it(self):
        """It tells whether it is done; nothing where the game asks whether it is meant."""
        request = [ROOM, moment("Mira", answer=("Mira", "give me an ale"))]
        self.assertIn(after(request, "Given.")[1].content, lines("done"))
        self.assertIn(after(request, {"error": "none is left"})[1].content, lines("unable"))
        leave = [ROOM, moment("Mira", answer=("Mira", "goodnight aria. take care of yourself"))]
        self.assertIn(after(leave, {"error": "no care"})[1].content, lines("farewell"))
        asked = {"error": str(UnaskedError("Mira"))}
        self.assertFalse(after(request, asked)[1].content)

    def test_what_it_does_not_read(self):
        """An order that it cannot read is a line like any other; one that fails is refused."""
        for text in ("tell me a story", "Close the door, please!", "Please sing for us", "go home"):
            self.assertIn(in_room(text).content, lines("heard"), text)
        request = [ROOM, moment("Mira", answer=("Mira", "examine the moon"))]
        self.assertIn(after(request, {"error": "no moon"})[1].content, lines("unable"))

    def test_calls_only_what_is_offered(self):
        """Without its tool an order is a line like any other."""
        self.assertIn(in_room("give me an ale", tools=()).content, lines("heard"))


class TestRoom(unittest.TestCase):
    def test_the_room(self):
        """It tells the room by what the prompt shows of it."""
        for text in ("What is here?", "where am I?", "look around", "Aria, who is here?"):
            told = in_room(text, "Mira", "Cora").content
            self.assertEqual(
                told,
                "The Lantern. A fire mutters. "
                "Cora, ale barrel, noticeboard, brass lantern, up, out.",
            )

    def test_who_pages_from_elsewhere(self):
        """It does not tell its own room to somebody who is in another one."""
        rows = (note(NOW, "dusk"), note(HERE, "Cora"))
        for who, is_here in (("Cora", True), ("Mira", False)):
            for text in ("What is here?", "where am I?"):
                line = talk_line(who, "page", text)
                messages = [ROOM, {"role": "user", "content": "\n".join((*rows, line))}]
                told = str(respond(messages, ()).content)
                self.assertEqual("Lantern" in told, is_here, (who, text))

    def test_a_thing(self):
        """A question about a present thing is answered by a look at it."""
        request = [ROOM, moment("Mira", answer=("Mira", "What is on the noticeboard?"))]
        made, reply = after(request, "noticeboard\nA reward for a lost cat. Ask at the mill.")
        self.assertEqual(made, (ToolCall("look", {"target": "noticeboard"}),))
        self.assertEqual(reply.content, "A reward for a lost cat. Ask at the mill.")

    def test_another_name_of_a_thing(self):
        """The one word that is asked for may be a thing's other name, else it is not known."""
        for text, seen, want in (
            ("Is there a fire?", "hearth\nLogs burn.", {"Logs burn."}),
            ("Is there a fire?", "", lines("unknown")),
            ("Can you hear me?", "hearth\nLogs burn.", lines("unknown")),  # found by its beginning
        ):
            shown = seen or {"error": "there is no such thing here"}
            said = play(text, [], who="Mira", seen=lambda _, shown=shown: shown)
            self.assertIn(said, want)

    def test_people_are_not_shown(self):
        """A question that names somebody here is not answered by how they look."""
        for call in in_room("Is Bram up to something?", "Mira", "Bram").tool_calls:
            self.assertNotEqual(call.name, "look")

    def test_what_it_knows_of_the_place(self):
        """Lore that the line found, as it stands there; how the place looks answers no question."""
        fact = note(f"{KNOWN}, help-odo", "Odo is the ostler. He keeps Penny.")
        for text, known, want in (
            ("Who is Odo?", fact, {"Odo is the ostler. He keeps Penny."}),
            ("Tell me about Odo.", fact, {"Odo is the ostler. He keeps Penny."}),
            ("Tell me about Ys.", fact, lines("unknown")),
            ("Who pays Odo and Bram for it?", fact, lines("unknown")),
            ("What mutters?", note(NOW, "dusk"), lines("unknown")),
            # A little word of the fact's language, not of the question's, tells nothing.
            (
                "¿Quién anda por aquí?",
                note(f"{KNOWN}, help-ale", "It is free and good."),
                lines("unknown", "es"),
            ),
        ):
            newest = f"{known}\n{talk_line('Mira', 'say', text)}"
            request = [ROOM, {"role": "user", "content": newest}]
            reply = respond(request, [tool for tool in TOOLS if tool["function"]["name"] == "noop"])
            self.assertIn(reply.content, want, text)


class TestAnswers(unittest.TestCase):
    def test_quotes_a_person(self):
        """The best hit that a person said, two sentences at most, with who said it."""
        told = hit("I sail. My boat is called Heron. It is old. It leaks.")
        for who, want in (
            ("Bob", 'Alice told me: "My boat is called Heron. It is old."'),
            ("Alice", 'You told me: "My boat is called Heron. It is old."'),
        ):
            self.assertEqual(play("What is Alice's boat called?", [told], who=who), want)
        horse = hit("My horse is chestnut.", who="Bob")
        quote = 'Bob told me: "My horse is chestnut."'
        self.assertEqual(play("What colour is Bob's horse?", [horse], who="Alice"), quote)

    def test_does_not_quote(self):
        """Nothing far, of itself or an assistant, of a summary, a question or a greeting."""
        for found in (
            hit("I sold a boot, a hen and a cart at the market."),
            hit("Your boat is called Heron.", who="Aria"),
            hit("The boat is called Heron.", who="", kind="summary"),
            hit("What is my boat called?"),
            hit("What is my boat called", who="Mira"),  # says nothing new
            hit("It rains hard. What is my boat called", who="Mira"),
            hit("Good evening!"),
            hit("Tell Bob that the boat is called Heron."),
            hit("I like this boat."),
        ):
            self.assertIn(play("What is my boat called?", [found], who="Mira"), lines("unknown"))

    def test_a_long_line(self):
        """A tale is not quoted, but a short sentence of it."""
        tale = "Once there was a boat and " + "a mill and " * 100
        self.assertIn(play("What about the boat?", [hit(tale)], who="Mira"), lines("unknown"))
        quote = play("What about the boat?", [hit(f"{tale}. The boat sank. It was sad.")])
        self.assertEqual(quote, 'Alice told me: "The boat sank. It was sad."')

    def test_the_longest_behind(self):
        """With the nearest sentence stands the one behind it that tells most."""
        told = hit("You know that Fennick. The chandler. His wife put his clothes in the trough.")
        quote = play("What about Fennick?", [told])
        want = "You know that Fennick. … His wife put his clothes in the trough."
        self.assertEqual(quote, f'Alice told me: "{want}"')

    def test_half_of_a_question_by_name(self):
        """It is enough in the words of whom the question names, also said aside."""
        amid = said("Tam", "I could eat a horse."), answered("Ha."), said("Bob", "Hm.")
        told = [hit("My horse is chestnut.", "Bob")]
        reply = play("Aria, what colour is Bob's horse?", told, "Tam", amid, people=("Bob",))
        self.assertEqual(reply, 'Bob told me: "My horse is chestnut."')

    def test_a_question_mark_of_any_script(self):
        """It says that it does not know."""
        for text in ("Where is Ys?", "Ys在哪里？", "أين يس؟", "Πού είναι η Υς;"):
            codes = ("en", "zh", "ar")
            self.assertIn(
                play(text, [], who="Mira"), set().union(*(lines("unknown", c) for c in codes))
            )

    def test_told_in_a_long_question(self):
        """A quote holds the answer also where the question before it fills it."""
        told = f"Did you hear about the {'very ' * 25}old Hobb? He owes the Prior forty silver."
        quote = play("Who owes silver to the Prior?", [hit(told)])
        self.assertIn("forty silver", quote)

    def test_its_name_is_not_asked_for(self):
        """Its own name is in many lines, and makes none near to a question."""
        told = [hit("By the way Aria, my sister Louise had a girl. Her name is Margot.")]
        for question in ("And you Aria, all well?", "Is that so, Aria, really?", "What, Aria?"):
            self.assertNotIn("Margot", play(question, told) or "", question)

    def test_told_in_a_question(self):
        """A quote begins with the question that says whom it is about."""
        quote = play(
            "Who owes silver to the Prior?", [hit("Heard of Hobb? He owes the Prior forty silver.")]
        )
        self.assertEqual(quote, 'Alice told me: "Heard of Hobb? He owes the Prior forty silver."')

    def test_asked_beside_an_order(self):
        """Where an order cannot be done, a question beside it is answered."""
        told = [hit("My boat Heron lies at the mill.")]
        line = "Where does the boat Heron lie? Bring me a pie."
        self.assertIn("at the mill", play(line, told, seen=lambda arguments: {"error": "no pie"}))

    def test_talk_of_others(self):
        """Of what people say among themselves one of several telling words makes no answer."""
        among = {"people": ("Tam",), "before": [said("Tam", "I could eat a horse.")]}
        asked = "Aria, do you feed a dog?"
        for told, question, kwargs, is_quoted in (
            ("my dog died", asked, among, False),
            ("my dog died", asked, {}, False),
            ("my dog is at the mill", "Aria, where is my dog?", {}, True),
            ("Aria, I feed my dog bones.", asked, among, True),
            ("my dog is at the mill", "Aria, where is my dog?", among, False),
            ("Aria, my dog is at the mill", "Aria, where is my dog?", among, True),
            ("my old dog is at the mill", "where is my old dog?", among, False),
            ("my old dog is at the mill", "Aria, where is my old dog?", among, True),
            ("my dog died", "Aria, which dog did Alice own?", among, True),
            ("Old Henrik sold the mill.", "Aria, what did Henrik sell?", among, True),
        ):
            with self.subTest(f"{told} | {question}"):
                quote = play(question, [hit(told)], "Alice", **kwargs)
                self.assertEqual("told me" in (quote or ""), is_quoted, quote)


class TestSummaries(unittest.TestCase):
    def test_people_only(self):
        """An extract holds what people told: no greeting, question, tool or own line."""
        rows = [
            talk_line("Alice", "say", "Good evening!"),
            talk_line("Alice", "say", "My boat Heron lies at the quay of Oakhaven."),
            talk_line("Bob", "say", "Where is the mill of Henrik?"),
            note("tool look", "The Tower of Ash near Oldtown. Exits: gate."),
            note("assistant", "Velmark is far, Alice."),
            talk_line("Bob", "say", "Henrik owes me 300 crowns."),
        ]
        text = respond(
            [SYSTEM, {"role": "user", "content": "\n".join([MESSAGES_LABEL, *rows])}]
        ).content
        self.assertEqual(
            text,
            "Alice: My boat Heron lies at the quay of Oakhaven.\nBob: Henrik owes me 300 crowns.",
        )

    def test_shorter_than_its_source(self):
        """Whatever its language."""
        for line in ("Bram owes Cora 12 crowns for the mill. ", "布拉姆欠科拉12个克朗。"):
            source = "\n".join(
                talk_line("Al", "say", line.replace("12", str(n))) for n in range(12, 60)
            )
            text = respond([SYSTEM, {"role": "user", "content": f"{MESSAGES_LABEL}\n{source}"}])
            self.assertLess(len(text.content), len(source) * 0.7)
            self.assertIn("12", text.content)


class TestTurns(unittest.TestCase):
    def test_only_what_is_new(self):
        """What was answered before is not answered again."""
        rows = f"{note(NOW, 'dusk')}\n{note(HERE, 'Mira')}\n{said('Mira', 'Thanks!')['content']}"
        before = [said("Mira", "give me an ale"), answered("Very well.")]
        reply = respond([ROOM, *before, {"role": "user", "content": rows}], TOOLS)
        self.assertIn(reply.content, lines("thanks"))

    def test_a_job_that_only_notes(self):
        """Asked for notes before a compaction it writes none."""
        system = {"role": "system", "content": "Pre-compaction. You are Aria, in a game."}
        rows = "\n".join([MESSAGES_LABEL, talk_line("Al", "say", "My boat is Heron.")])
        reply = respond(
            asking("Al", "x", system=system)[:1] + [{"role": "user", "content": rows}],
            [tool for tool in TOOLS if tool["function"]["name"] != "search_memory"],
        )
        self.assertNotIn("add_journal_entry", [call.name for call in reply.tool_calls])
