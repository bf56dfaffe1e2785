"""Words: their stems, what a text is about, whom it names, whether it asks, what is shown of it."""

import unittest

import regex
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.language.script import UNIT
from evennia_ai.language.words import (
    CUT,
    asks,
    excerpt,
    is_form,
    message_in,
    parted,
    stem,
    telling_words,
    without_article,
)
from tests.search_case import ECHO, FACT, QUESTION

HOMES = ("Tam", "mill"), ("Rose", "harbour"), ("Will", "tower"), ("May", "barn"), ("Odo", "attic")
# What anybody says all day.
CHATTER = (
    "I will live by the sea some day.",
    "Will it rain?",
    "You may live to see it.",
    "She will come to the harbour and may stay.",
    "May I live here?",
)
ROOM = 400


class TestWords(unittest.TestCase):
    def test_small_talk_has_none(self):
        """Greetings, thanks and names heard all the time say nothing."""
        for text in (
            "Good evening, how are you?",
            "thank you",
            "Aria!",
        ):
            self.assertEqual(telling_words(text, ["Aria"]), frozenset(), text)

    def test_names_heard_all_the_time(self):
        """A name left out is left out in each form."""
        self.assertEqual(telling_words("Aria's bees", ["Aria"]), {"bee"})
        self.assertEqual(telling_words("My cousin Will", ["Will"]), {"cousin"})
        self.assertEqual(telling_words("Will Elin live there?"), {"elin", "live"})

    def test_question_and_statement_meet(self):
        """In their telling words, in whatever form; names heard all the time are none."""
        for told, asked in (
            ("Der Schlüssel hängt hinter dem Ofen.", "Wo sind die Schlüssel?"),
            ("Ключ от погреба висит за печкой.", "Где ключи от погребов?"),
            ("地窖的钥匙挂在炉子后面。", "我在哪儿能找到地窖钥匙？"),
            ("지하실 열쇠는 난로 뒤에 있다.", "열쇠를 어디에서 찾나요?"),
        ):
            self.assertTrue(telling_words(told) & telling_words(asked), told)
        self.assertNotIn("jurgen", telling_words("Wo schläft Jürgen, der Müller?", ["Jürgen"]))

    def test_stems(self):
        """Singular and plural are one word; forms of one word share a stem."""
        for one, many in (
            ("party", "parties"),
            ("glass", "glasses"),
            ("box", "boxes"),
            ("torch", "torches"),
            ("house", "houses"),
            ("key", "keys"),
            ("bus", "bus"),
        ):
            self.assertEqual(stem(many), stem(one))
        for forms in (
            ("dance", "dances", "danced", "dancing"),
            ("stop", "stopped", "stopping"),
            ("quick", "quickly"),
            ("inform", "information", "informs"),
            ("happi", "happiness", "happy"),
        ):
            self.assertEqual(len({stem(form) for form in forms}), 1, forms)


# What somebody typed, words of it, whom they are for, and what is told.
MESSAGES = (
    (
        "Aria, tell Bram I will not come tonight. Thanks!",
        "come tonight",
        "I will not come tonight.",
    ),
    ("tell bram i will come. not!", "I will come", "i will come. not!"),
    ("tell Bram I will see him. Never let him know.", "I will see", "I will see him."),
    ("Tell Bram I owe approx. ten crowns... or not.", "ten", "I owe approx. ten crowns... or not."),
    ("I will not come, tell Bram. Good night.", "come", "I will not come, tell Bram."),
    ("Tell Bram I am late. Do not wait! Bye.", "I am late; do not", "I am late. Do not wait!"),
    ('Tell Bram "I am late." Bye.', "I'm am late", ""),
    ('Tell Bram "I am late." Bye.', "I am late", '"I am late."'),
    ("Bram's dog is not sick. Tell Bram.", "dog is", "Bram's dog is not sick."),
    (
        "tell Bram it is not true that Mr. Smith is dead",
        "Smith is dead",
        "",
    ),
    (
        "tell Bram it is not true that Prof. Smith is dead",
        "Smith is dead",
        "",
    ),
    (
        "Tell Bram to meet me at St. Olaf, or not at all. Thanks!",
        "to meet me at St. Olaf",
        "to meet me at St. Olaf, or not at all.",
    ),
    ("Bram is a thief. Tell Bram I will not come.", "will", "I will not come."),
    ("Bram is a thief. When he comes, say I will not come.", "will", ""),
    ("Tell Bram the boat leaves at 21:00. I owe him.", "leaves at 21", "the boat leaves at 21:00."),
    ("Tell Bram I am late. Do not wait!", "Do not wait", ""),
    ("Tell Bram I am late. Bram's dog is sick.", "dog is sick", "Bram's dog is sick."),
    (
        "It is not true that Mr. Smith is dead.",
        "Smith is",
        "It is not true that Mr. Smith is dead.",
    ),
    ("Sag Bram, ich komme morgen nicht.", "ich komme morgen", "ich komme morgen nicht."),
    ("Sag Bram, dass Greta mir nichts schuldet", "Greta mir", "dass Greta mir nichts schuldet"),
    ("Dis à Bram que je ne viens pas. Merci !", "je ne viens", "que je ne viens pas."),
    ("Dis à Bram que je suis malade. Merci !", "je suis", "que je suis malade."),
    ("Скажи Браму, что я не приду. Спасибо", "приду", "что я не приду."),
    (
        "ブラムに明日は行かないと伝えて。ありがとう",
        "明日は行か",
        "ブラムに明日は行かないと伝えて。",
    ),
    ("告诉布拉姆我明天不来。谢谢", "明天", "我明天不来。"),
    ("브람에게 내일 안 간다고 전해줘", "내일", "브람에게 내일 안 간다고 전해줘"),
    ("บอกแบรมว่าฉันไม่มา", "ฉัน", "ว่าฉันไม่มา"),
    ("Bram'a yarın gelmeyeceğimi söyle", "yarın", "Bram'a yarın gelmeyeceğimi söyle"),
    ("Dile a Bram que no vengo. Gracias", "vengo", "que no vengo."),
    ("Bram에게 내일 안 간다. 고마워", "내일", "Bram에게 내일 안 간다."),
)
NAMES = "Bram", "Брам", "ブラム", "布拉姆", "브람", "แบรม"
# What turns the sense of what was typed: it is not there in a row.
TURNED = (
    ("tell Bram I will come to the party", "I will not come to the party"),
    ("tell Bram I will not come", "I will come"),
    ("tell Bram I owe Alice ten crowns", "Alice owes me ten crowns"),
    ("tell Bram that I have not got the money for Greta", "I got the money for Greta"),
    ("Sag Bram, ich komme nicht mit Greta", "ich komme mit Greta"),
    ("Sag Bram, Greta schuldet Udo Geld", "Udo schuldet Greta Geld"),
    ("Dis à Bram que je ne viens pas demain", "je viens demain"),
    ("Скажи Браму, что я не приду завтра", "я приду завтра"),
    ("ブラムに明日は行かないと伝えて", "明日は行くと伝えて"),
    ("告诉布拉姆我明天不来", "我明天来"),
)
# The end of a sentence: no full stop before a small letter.
ENDS = regex.compile(r"[!。.]\"*$")
PIECES = (
    "Bram",
    "not",
    "I come",
    "nicht",
    "行かない",
    "не",
    "Mr.",
    "Prof.",
    '" ',
    ". ",
    ", ",
    "! ",
    "。",
    "… ",
    " ",
)


class TestTyped(unittest.TestCase):
    """Words in a row of a line, and all that its sentences say."""

    def test_messages(self):
        """No word from the name, or else the beginning, to the end of the sentence is left out."""
        for line, text, told in MESSAGES:
            before, words, behind = parts = parted(["Good evening.", line], text)
            with self.subTest(line, text=text):
                name = next((name for name in NAMES if name in line), "Bram")
                if told:
                    self.assertEqual("".join(parts), line)
                self.assertEqual(message_in(before, words, behind, name), told)

    def test_what_stands_elsewhere(self):
        """What is said of somebody in another sentence is not told to them."""
        for line in (
            "Bram is a thief. I won't come, tell Bram",
            "Bram lies! Tell Bram I won't come",
        ):
            told = message_in(*parted([line], "I won't come"), "Bram")
            self.assertIn("I won't come", told)
            self.assertNotRegex(told, "thief|lies")

    def test_turned(self):
        """Words left out, put in or put elsewhere are not what was typed."""
        for line, text in TURNED:
            self.assertEqual(parted([line], text), ("", "", ""), text)
        self.assertEqual(parted(["I will not", "come tonight"], "not come"), ("", "", ""))
        self.assertEqual(parted(["Good evening."], "!?"), ("", "", ""))

    @given(st.lists(st.sampled_from(PIECES)).map("".join), st.integers(0, 9), st.integers(1, 9))
    def test_to_the_end(self, line, first, size):
        """What is told stands in the line as typed, and nothing but a sentence or a name parts it.

        In front only an end of a sentence is left, or the name; behind only other sentences.
        """
        words = UNIT.findall(line)[first : first + size]
        before, found, behind = parted([line], " ".join(words))
        self.assertEqual(before + found + behind, line if words else "")
        told = message_in(before, found, behind, "Bram")
        if words and not told:
            self.assertIn("Bram", UNIT.findall(before), line)
        elif words:
            place = line.rindex(told, 0, len(before) + len(told))
            self.assertLessEqual(place, len(before))
            front, rest = line[:place].rstrip(" ,…"), line[place + len(told) :].lstrip(" ,…")
            is_behind_name = UNIT.findall(front)[-1:] == ["Bram"]
            self.assertTrue(is_behind_name or not front or ENDS.search(front), (line, told, front))
            if "Bram" in UNIT.findall(before):
                self.assertTrue(is_behind_name or "Bram" in UNIT.findall(told), (line, told))
            self.assertTrue(not rest or ENDS.search(line[: place + len(told)]), (line, told, rest))


class TestArticles(unittest.TestCase):
    def test_articles(self):
        """A little word before a name is none of it."""
        for name, bare in (
            ("the lamp", "lamp"),
            ("The  brass lamp", "brass lamp"),
            ("ein Krug", "Krug"),
            ("une lampe", "lampe"),
            ("Der Wirt", "Wirt"),
            ("the", "the"),
            ("brass lamp", "brass lamp"),
            ("", ""),
        ):
            self.assertEqual(without_article(name), bare)


class TestForms(unittest.TestCase):
    def test_forms(self):
        """A name with another ending is a form of it, the beginning of a longer word is none."""
        for name, word, is_one in (
            ("ada", "ade", True),
            ("ada", "adas", False),
            ("ada", "adam", False),
            ("oskar", "oskara", True),
            ("pavel", "pavla", True),
            ("anna", "anne", True),
            ("anna", "annapolis", False),
        ):
            with self.subTest(name=name, word=word):
                self.assertIs(is_form(word, name), is_one)


class TestAsks(unittest.TestCase):
    def test_asks(self):
        """What has a question mark, and does not tell more than it asks."""
        for text, is_asking in (
            (QUESTION, True),
            ("Where is the forge, Aria? I need a blade.", True),
            ("'Who goes there?'", True),
            (FACT, False),
            (ECHO, False),
            ("Do you know Bram? He has his forge at the harbour.", False),
            ("What I have is gold.", False),
            ("What a day!", False),
            ("where is the forge", False),
            ("He paid 3.5 crowns for it.", False),
            ("", False),
        ):
            self.assertEqual(asks(text), is_asking, text)


class TestExcerpt(unittest.TestCase):
    def test_lines_that_match(self):
        """Of a summary the lines that share words with the query are shown, whole, in order."""
        chatter = [f"Cora: The road to Ford was mud, day {day}." for day in range(40)]
        rows = ["Bob: Tomas keeps bees.", *chatter, "Alice: The bees of Tomas swarmed."]
        shown = excerpt("\n".join(rows), "Tomas bees", ROOM).splitlines()
        self.assertEqual((shown[0], shown[-1]), (rows[0], rows[-1]))
        self.assertTrue(set(shown) <= set(rows))
        self.assertLessEqual(len("\n".join(shown)), ROOM)

    def test_in_every_script(self):
        """The part that is asked about is shown, in other forms of its words, too."""
        for fact, filler, query in (
            ("地窖的钥匙挂在炉子后面。", "昨天下了雨，明天开市。", "地窖钥匙在哪儿？"),
            ("Ключ от погреба висит за печкой. ", "Вчера шёл дождь. ", "Где ключи от погребов?"),
        ):
            self.assertIn(fact.strip(), excerpt(filler * 60 + fact + filler * 60, query, ROOM))

    def test_one_long_line(self):
        """A line that does not fit is cut, and says so."""
        shown = excerpt("bees " * 200, "bees", ROOM)
        self.assertTrue(ROOM >= len(shown) > ROOM - 9 and shown.endswith(f"bees{CUT}"), shown)

    def test_late_in_a_long_line(self):
        """The sentence with most of the query's words is shown, with those around it."""
        told = "Old Tomas keeps bees behind the mill."
        rain = "It rained on the bees. " * 40
        for text in (rain + told, rain + told + " " + rain):
            shown = excerpt(text, "Where does Tomas keep bees?", ROOM)
            self.assertIn(told, shown)
            self.assertEqual(shown[:2], f"{CUT} ")
            self.assertEqual(shown.endswith(f". {CUT}"), text.endswith(rain))
            self.assertLessEqual(len(shown), ROOM)

    def test_without_sentences(self):
        """A line without an end to its sentences begins with a whole word, if it has words."""
        words = "rain and " * 90
        shown = excerpt(f"{words}bees {words}", "bees", ROOM)
        self.assertIn(" bees ", shown)
        self.assertEqual({shown.split()[0]} & {f"{CUT}rain", f"{CUT}and"}, {shown.split()[0]})
        shown = excerpt("x" * 900 + "-bees-" + "x" * 900, "bees", ROOM)
        self.assertIn("bees", shown)
        self.assertEqual(shown[0] + shown[-1], 2 * CUT)

    def test_a_line_with_just_the_room(self):
        """Of several lines the best is shown, though it takes all the room."""
        best = "bees " * 80
        self.assertEqual(excerpt(f"{best}\nrain", "bees", ROOM), best)
