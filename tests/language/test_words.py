"""Words: their stems, and what a text is about."""

import unittest

from evennia_ai.language.words import (
    mentions,
    singular,
    stem,
    telling_words,
)


class TestWords(unittest.TestCase):
    def test_small_talk_has_none(self):
        """Greetings, thanks, the weather and names heard all the time say nothing."""
        for text in (
            "Good evening, how are you?",
            "thanks a lot",
            "lovely day, isn't it?",
            "Aria!",
        ):
            self.assertEqual(telling_words(text, ["Aria"]), frozenset(), text)

    def test_names_heard_all_the_time(self):
        """A name left out is left out in each form; one that is a common word counts."""
        self.assertEqual(telling_words("Aria's bees", ["Aria"]), {"bee"})
        self.assertEqual(telling_words("My cousin Will", ["Will"]), {"cousin"})
        self.assertEqual(telling_words("My cousin Will"), {"cousin", "will"})

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

    def test_plurals(self):
        """Singular and plural are one word."""
        for one, many in (
            ("party", "parties"),
            ("glass", "glasses"),
            ("box", "boxes"),
            ("torch", "torches"),
            ("house", "houses"),
            ("key", "keys"),
            ("bus", "bus"),
        ):
            self.assertEqual(singular(many), one)
            self.assertEqual(stem(many), stem(one))

    def test_verbs_and_derivations(self):
        """Forms of one word share a stem."""
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
        ):
            for text in texts:
                self.assertTrue(mentions(text, [name]), f"{name}: {text}")

    def test_ordinary_words(self):
        """A word without a capital is no name, nor an ordinary one that begins a sentence."""
        for name, *texts in (
            ("Will", "I will light the fire.", "Will you come in?", "Ich will Brot."),
            ("Will", "The wind will turn tonight.", "Willkommen im Gasthaus!"),
            ("will", "I will light the fire."),
            ("The One", "Not this, the one over there."),
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
        for text in ("Will is late.", "I saw Will today.", "Wills Hut liegt noch hier."):
            self.assertTrue(mentions(text, ["Will"]), text)
        self.assertTrue(mentions("I saw Rose.", ["Rose"]))

    def test_others(self):
        """Somebody else's name is no form of this one."""
        self.assertTrue(mentions("Marius is late.", ["Marina"]))
        self.assertFalse(mentions("Marius is late.", ["Marina"], ["Marius Lee"]))
        self.assertTrue(mentions("Anna is late.", ["Anna"], ["Anna Lee"]))
