"""Words: their stems, what a text is about, whom it names, whether it asks, what is shown of it."""

import unittest

from evennia_ai.language.words import (
    CUT,
    asks,
    excerpt,
    mentions,
    names_among,
    singular,
    stem,
    telling_words,
)
from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.recall.lexicon import parsed_query
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
        """A name left out is left out in each form; one that is a common word counts."""
        self.assertEqual(telling_words("Aria's bees", ["Aria"]), {"bee"})
        self.assertEqual(telling_words("My cousin Will", ["Will"]), {"cousin"})
        for text, told in (
            ("My cousin Will", {"cousin", "will"}),
            ("Where does Will live?", {"will", "liv"}),
            ("Will Elin live there?", {"elin", "liv"}),
            ("Who is May?", {"may"}),
            ("May I?", set()),
        ):
            self.assertEqual(telling_words(text), told)

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
            self.assertEqual((singular(many), stem(many)), (one, stem(one)))
        for forms in (
            ("dance", "dances", "danced", "dancing"),
            ("stop", "stopped", "stopping"),
            ("quick", "quickly"),
            ("inform", "information", "informs"),
            ("happi", "happiness", "happy"),
        ):
            self.assertEqual(len({stem(form) for form in forms}), 1, forms)


class TestMentions(unittest.TestCase):
    def test_forms_of_names(self):
        """With whatever ending, little word before it, or letter left out, in any script."""
        for name, *texts in (
            ("Марина", "Я жду Марину у реки.", "Мариной все довольны."),
            ("Ева", "Я жду Еву.", "Я говорил с Евой.", "Думаю о Еве."),
            ("Павел", "Доволен Павлом."),
            ("Anna", "Czekam na Annę nad rzeką.", "Myślę o Annie.", "Annalle annoin leipää."),
            ("Ewa", "Widzę Ewę.", "Myślę o Ewie."),
            ("Zbyszek", "Rozmawiam ze Zbyszkiem."),
            ("Karel", "Mluvím s Karlem."),
            ("Bob", "Bobs Hut liegt noch hier.", "Bob's hat lies here.", "BOB IS LATE."),
            ("Ayşe", "Ayşe'yi gördüm.", "Dün Ayşeyi gördüm."),
            ("Γιώργος", "Περιμένω τον Γιώργο."),
            ("დავითი", "დავითს ველოდები."),
            ("मीरा", "मीरा को रोटी दी।"),
            ("أحمد", "أنتظر أحمد عند النهر.", "أعطيت لأحمد خبزا."),
            ("דנה", "אני מחכה לדנה."),
            ("山田", "昨日、山田さんが来た。"),
            ("민수", "민수를 기다린다."),
            ("สมชาย", "ฉันรอสมชายอยู่"),
            ("Jean-Luc", "C'est à Jean-Luc."),
            ("d'Artagnan", "J'attends d'Artagnan."),
            ("Ann Lee", "I saw Ann.", "I saw Lee."),
            ("bob", "I saw bob at the mill.", "Bobs Hut liegt hier."),
            ("a tall man", "A tall man waits."),
            ("Masked Fox", "danced with the masked fox"),
            ("علي", "رأيت علي أمس."),
            ("对", "对。"),
            ("Will", "Will is late.", "I saw Will today.", "Wills Hut liegt noch hier."),
            ("Rose", "I saw Rose."),
        ):
            for text in texts:
                self.assertTrue(mentions(text, [name]), f"{name}: {text}")

    def test_ordinary_words(self):
        """A word without a capital is no name, nor an ordinary one that begins a sentence."""
        for name, *texts in (
            ("Will", "I will light the fire.", "Will you come in?", "Ich will Brot."),
            ("Will", "The wind will turn tonight.", "Willkommen im Gasthaus!"),
            ("will", "I will light the fire."),
            ("Rose", "The sun rose over the mill.", "brought a rose", "La rose est belle."),
            ("Thea", "The sun is up."),
            ("Andy", "And then it rained."),
            ("Mark", "Der Marktplatz ist leer."),
            ("Роза", "Розовый закат красив.", "В саду растёт роза."),
            ("Вера", "Я потерял веру в людей."),
            ("Róża", "W ogrodzie rośnie róża."),
            ("Deniz", "Bugün deniz çok güzel."),
            ("Rosa", "La casa es rosa."),
            ("Pierre", "Le mur est de pierre."),
            ("Luna", "Vedo la luna."),
            ("Ernst", "Ich meine es ernst."),
            ("Ada", "Der Adler fliegt.", "Ad ora tarda."),
            ("राम", "मुझे आराम चाहिए।"),
            ("!", "Yes!"),
            ("", "Yes."),
        ):
            for text in texts:
                self.assertFalse(mentions(text, [name]), f"{name}: {text}")

    def test_others(self):
        """Somebody else's name is no form of this one."""
        self.assertTrue(mentions("Marius is late.", ["Marina"]))
        self.assertFalse(mentions("Marius is late.", ["Marina"], ["Marius Lee"]))
        self.assertTrue(mentions("Anna is late.", ["Anna"], ["Anna Lee"]))


class TestNames(unittest.TestCase):
    def test_names_that_are_words(self):
        """By a capital inside a sentence, or at the beginning of one that asks nothing."""
        for text, names in (
            ("Where does Will live?", {"will"}),
            ("Aria, where does Will live?", {"will"}),
            ("Who are Bram, Will and May?", {"will", "may"}),
            ("It is Will's.", {"will"}),
            ("It rains. Will owes me a coin.", {"will"}),
            ("Will lives in the tower.", {"will"}),
            ("May's barn", {"may"}),
            ("Will Elin come?", set()),
            ('He asked: "Will it rain?"', set()),
            ("It rains. May I stay?", set()),
            ("Will this do?", set()),
            ("Will dogs bite?", set()),
            ("where does will live?", set()),
            ("Was it in May?", {"may"}),
        ):
            self.assertEqual(names_among(text), names, text)

    def test_query(self):
        """It carries a query, unless it names who speaks."""
        for query, content in (
            ("Where does Will live?", ("will", "live")),
            ("Will Elin live there?", ("elin", "live")),
        ):
            self.assertEqual(parsed_query(query).content, content)
        asked = parsed_query("Where does Will live?", ["Will"])
        self.assertEqual((asked.content, asked.asked), (("live",), ("Will",)))

    def hits(self, query, *texts, others=()):
        """What a search finds of Bob's lines, and of others'."""
        index = RecallIndex(":memory:")
        self.addCleanup(index.close)
        said = enumerate([*(("Bob", text) for text in texts), *others])
        index.add("s", [Turn(f"m{n}", who, text, 1.7e9 + 3600 * n) for n, (who, text) in said])
        return index.search("s", query, 9)

    def test_first(self):
        """What was told of them comes first, however often the word is said."""
        told = [f"{name} lives in the {place}." for name, place in HOMES]
        said = [f"Aria, my cousin {each}" for each in told]
        for texts in (told, said, [*told, *CHATTER], [*CHATTER, *said]):
            for name in ("Will", "May"):
                wanted = next(each for each in texts if name in each and "lives" in each)
                for query in (f"Where does {name} live?", f"Who is {name}?"):
                    self.assertEqual(self.hits(query, *texts)[0].text, wanted)

    def test_speaker(self):
        """Of one who speaks, too, only what means them names them."""
        told = "My brother Will lives in the tower."
        hits = self.hits("Who is Will?", *CHATTER, told, others=[("Will", "Good evening.")])
        self.assertEqual({hit.text for hit in hits if hit.matches}, {told, "Good evening."})


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
        """The sentence with most of the query's words is shown, from its beginning on."""
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
