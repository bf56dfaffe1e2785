"""The tables of all languages, and the letters of all scripts."""

import os
import re
import tempfile
import tomllib
import unittest
from pathlib import Path
from unittest import mock

from evennia_ai.language import tables as languages
from evennia_ai.language.script import akin, folded, is_asked, normalized, with_digits, words
from evennia_ai.language.tables import (
    DEFAULT,
    FOLDER,
    OVER,
    SPEAKERS_KEPT,
    Languages,
    Table,
    language_of,
    table_of,
    tables,
)

ENGLISH = tables()[DEFAULT]
SLOTS = re.compile(r"\{(\w+)\}")
KEYS_ELSEWHERE = {"script", "script_weight", "unparted", "verb_prefixes", "endings"}
KEYS_ELSEWHERE |= {"noun_capitals"}
MOST_LINES = 60


class TestTables(unittest.TestCase):
    def each(self):
        """All tables, each as a subtest."""
        for table in tables().values():
            with self.subTest(table.code):
                yield table

    def test_its_lines_say_what_english_says(self):
        """The same lines with the same placeholders."""
        for table in self.each():
            for section in ("lines", "notices"):
                own, theirs = table.data[section], ENGLISH.data[section]
                self.assertEqual(own.keys(), theirs.keys())
                for key, lines in own.items():
                    wanted = set(SLOTS.findall(str(theirs[key]))) | {"who"}
                    self.assertLessEqual(set(SLOTS.findall(str(lines))), wanted, key)

    def test_its_keys_are_known(self):
        """A key that English does not have would be a slip; a file is short."""
        for path in FOLDER.glob("*.toml"):
            text = path.read_text("utf-8")
            data = tomllib.loads(text)
            self.assertLessEqual(data.keys(), ENGLISH.data.keys() | KEYS_ELSEWHERE, path)
            self.assertLessEqual(data["words"].keys(), ENGLISH.data["words"].keys(), path)
            self.assertLessEqual(len(text.splitlines()), MOST_LINES, path)

    def test_a_missing_key_is_no_rule(self):
        """It holds nothing."""
        bare = Table("xx", {})
        self.assertEqual((bare.phrases("greeting"), bare.little), ((), frozenset()))
        self.assertEqual((bare.name, bare.get("words", "stop")), ("xx", ""))

    def test_laid_over(self):
        """It changes the keys that it has, and adds a language."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "de.toml").write_text('[lines]\nthanks = ["Passt schon."]', "utf-8")
            Path(folder, "it.toml").write_text('name = "Italian"\n[words]\nstop = "che"', "utf-8")
            with mock.patch.dict(os.environ, {OVER: folder}):
                own = languages.tables.__wrapped__()
        self.assertEqual(own["de"].get("lines", "thanks"), ["Passt schon."])
        self.assertEqual(own["de"].get("lines", "done"), tables()["de"].get("lines", "done"))
        self.assertEqual((own["it"].name, own["it"].stop), ("Italian", {"che"}))

    def test_what_shows_a_language(self):
        """A script, or two little words, more than of any other language; else nothing does."""
        for code, text in (
            ("en", "The ferryman sleeps in the old mill of my father."),
            ("de", "Der Fährmann schläft in der alten Mühle, und wir warten."),
            ("ru", "Паромщик спит на старой мельнице."),
            ("ja", "渡し守は古い水車小屋で眠る。"),
            ("zh", "船夫睡在旧磨坊里。"),
            ("ko", "안녕하세요!"),
            ("es", "¿Qué se puede beber aquí?"),
            ("es", "Me voy a dormir, estoy muy cansado."),
            ("it", "Vengo da Roma e ho un cane."),
            ("it", "Ho perso il mio cappello per strada."),
            ("pt", "O que posso beber aqui?"),
            ("pt", "Perdi o meu chapéu no caminho."),
            ("fr", "J'ai perdu mon chapeau en route."),
            ("", "hola"),
            ("", "Xq 340 zzz"),
        ):
            self.assertEqual(language_of(text), code, text)
        self.assertEqual(table_of("340?").code, DEFAULT)

    def test_the_language_of_the_talk(self):
        """It stays if the text has as many of its words: `man` and `hat` are German, too."""
        for text in ("I saw a man in a hat", "hey man", "I met a man in San Miguel de la Paz"):
            self.assertIn(language_of(text, "en"), ("", "en"), text)
        self.assertEqual(language_of("Guten Abend", "en"), "de")


class TestLetters(unittest.TestCase):
    def test_asked(self):
        """A question mark at the end counts, behind it quotes; in Greek the semicolon is one."""
        for text in ("Who?", 'He said "who?" ', "誰？」", "من؟", "Ποιος είσαι;", "Ποιος;)"):
            self.assertTrue(is_asked(text), text)
        for text in ("Who? Bob.", "Bob;", "", "?a", ";;;"):
            self.assertFalse(is_asked(text), text)

    def test_folded(self):
        """Forms of one text are one."""
        for one, other in (
            ("STRASSE", "straße"),
            ("IŞIL", "ışıl"),
            ("İSTANBUL", "istanbul"),
            ("Łódź", "lodz"),
            ("Ｗｉｌｍａ１２", "wilma12"),
            ("٣٤٠", "340"),
            ("أحمد", "احمد"),
            ("Zoe\u0308", "Zoë"),
            ("Σοφίας", "σοφιασ"),
        ):
            self.assertEqual(folded(one), folded(other))
        self.assertNotEqual(folded("が"), folded("か"))
        self.assertEqual(folded("и\u0306\u0301 и\u0301\u0306 é\u0323"), "й и e")
        marks = "\u0323\u0301" * 500  # each part of them is put into order by itself
        self.assertEqual(folded(f"e{marks}a"), "ea")
        self.assertEqual(normalized("NFC", f"か{marks}a")[:2], "か\u0323")
        self.assertEqual(words("मेरी"), ["मेरी"])

    def test_forms(self):
        """Forms of a word are akin; other words, short ones and numbers are not."""
        forms = (("прохора", "прохор"), ("zbyszka", "zbyszek"), ("dursuna", "dursun"), ("an", "an"))
        others = (("muhle", "muller"), ("an", "ana"), ("340", "3401"), ("李小", "李小龙"))
        for one, other in (*forms, *others):
            self.assertEqual({akin(one, other), akin(other, one)}, {(one, other) in forms})

    def test_digits_of_all_scripts(self):
        """Each becomes one of ours or stays, also one that Python's tables do not know yet."""
        every = "".join(map(chr, (n for n in range(0x110000) if not 0xD800 <= n < 0xE000)))
        for text in (every, "\U00016130", "\U0001ccf0"):
            self.assertEqual(len(with_digits(text)), len(text))
        self.assertEqual(with_digits("٣४๕"), "345")


class TestLanguages(unittest.TestCase):
    """Which language each speaker spoke last."""

    def test_speakers(self):
        """A doubtful line is in its speaker's language; of many people the newest are known."""
        spoken = Languages()
        spoken.hear("jo", "Ich habe heute keine Zeit für dich.")
        spoken.hear("al", "I have no time for you today.")
        self.assertEqual(spoken.of, {"jo": "de", "al": "en"})
        spoken.hear("jo", "Oskar!")
        self.assertEqual((spoken.last, spoken.of["jo"]), ("de", "de"))
        for number in range(SPEAKERS_KEPT - 1):
            spoken.hear(str(number), "Oskar!")
        self.assertEqual((len(spoken.of), "al" in spoken.of), (SPEAKERS_KEPT, False))
        self.assertIn("jo", spoken.of)
