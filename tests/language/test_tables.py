"""The tables of all languages, and the letters and numbers of all scripts."""

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
    Table,
    language_of,
    speaking,
    table_of,
    tables,
)
from evennia_ai.language.times import spoken_units, told_time

ENGLISH = tables()[DEFAULT]
SLOTS = re.compile(r"\{(\w+)\}")
# Sections of expressions.
EXPRESSIONS = ("kinds", "speech", "questions", "signs")
# Keys that English has no use for.
ELSEWHERE = {"you", "glued", "endings"}
LISTS_ELSEWHERE = {"vocative", "signs", "counters", "calendar", "proclitics", "unit_before_ten"}
KEYS_ELSEWHERE = {"letters", "script", "script_weight", "unparted", "nouns_have_capitals"}
KEYS_ELSEWHERE |= {"subject_first", "times", "verb_prefixes"}


class TestTables(unittest.TestCase):
    def each(self):
        """All tables, each as a subtest."""
        for table in tables().values():
            with self.subTest(table.code):
                yield table

    def test_its_expressions_are_some(self):
        """Each can be read and finds nothing in an empty line, so that none fits everything."""
        for table in self.each():
            for section in EXPRESSIONS:
                for key, pattern in table.expressions(section).items():
                    self.assertIn(key, {*ENGLISH.data[section], *ELSEWHERE})
                    self.assertTrue(pattern.pattern, key)
                    if section in ("kinds", "questions"):
                        self.assertIsNone(pattern.search(""), key)

    def test_its_lines_say_what_english_says(self):
        """The same lines with the same placeholders; none is another language's."""
        for table in self.each():
            for section in ("lines", "notices"):
                own = table.data[section]
                self.assertEqual(own.keys(), ENGLISH.data[section].keys())
                for key, lines in own.items():
                    for line in [lines] if isinstance(lines, str) else lines:
                        self.assertTrue(line.strip())
                        theirs = " ".join([*ENGLISH.data[section][key]])
                        if isinstance(ENGLISH.data[section][key], str):
                            theirs = ENGLISH.data[section][key]
                        wanted = set(SLOTS.findall(theirs)) | {"who"}
                        self.assertLessEqual(set(SLOTS.findall(line)), wanted, line)
                        if "words" in wanted:
                            self.assertIn('"{words}"', line)

    def test_its_keys_are_known(self):
        """A key that no other file has would be a slip."""
        for path in FOLDER.glob("*.toml"):
            data = tomllib.loads(path.read_text("utf-8"))
            self.assertLessEqual(data.keys(), ENGLISH.data.keys() | KEYS_ELSEWHERE, path)
            lists = data["lists"].keys() - LISTS_ELSEWHERE
            self.assertLessEqual(lists, ENGLISH.data["lists"].keys(), path)

    def test_a_missing_key_is_no_rule(self):
        """It matches nothing and holds nothing."""
        bare = Table("xx", {})
        self.assertIsNone(bare.expression("kinds", "greeting").search("hello"))
        self.assertEqual((bare.words("stop"), bare.expressions("kinds")), (frozenset(), {}))
        self.assertEqual((bare.name, bare.get("lists", "stop")), ("xx", ""))

    def test_laid_over(self):
        """It changes the keys that it has, and adds a language."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "de.toml").write_text('[lines]\nthanks = ["Passt schon."]', "utf-8")
            Path(folder, "it.toml").write_text('name = "Italian"\n[lists]\nstop = "che"', "utf-8")
            with mock.patch.dict(os.environ, {OVER: folder}):
                own = languages.tables.__wrapped__()
        self.assertEqual(own["de"].get("lines", "thanks"), ["Passt schon."])
        self.assertEqual(own["de"].get("lines", "fact"), tables()["de"].get("lines", "fact"))
        self.assertEqual((own["it"].name, own["it"].words("stop")), ("Italian", {"che"}))

    def test_by_script_and_little_words(self):
        """Also of a line or two."""
        for code, text in (
            ("en", "The ferryman sleeps in the old mill."),
            ("de", "Der Fährmann schläft in der alten Mühle."),
            ("es", "El barquero duerme en el viejo molino."),
            ("fr", "Le passeur dort dans le vieux moulin."),
            ("pl", "Przewoźnik śpi w starym młynie."),
            ("tr", "Sandalcı eski değirmende uyuyor."),
            ("ru", "Паромщик спит на старой мельнице."),
            ("ja", "渡し守は古い水車小屋で眠る。"),
            ("zh", "船夫睡在旧磨坊里。"),
            ("en", "I lost my red hat."),
            ("en", "The war is over, my son."),
            ("de", "Hat er Hunger?"),
            ("de", "Der Krieg und die Katze"),
            ("fr", "Mon fils a un car."),
            ("", "Xq 340 zzz"),
        ):
            self.assertEqual(language_of(text), code, text)

    def test_a_text_that_shows_none(self):
        """It is taken for the language of the talk."""
        with speaking("fr"):
            self.assertEqual((table_of("340?").code, table_of("Wer ist das?").code), ("fr", "de"))
        self.assertEqual(table_of("340?").code, DEFAULT)


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

    def test_told(self):
        """Clock and day by figures; a game's own words stay."""
        own = spoken_units(40.0, {"sec": 1, "moon": 30})
        self.assertEqual(told_time("dusk, day 3", day="{day}"), "day 3")
        self.assertEqual(told_time(own, clock="{hour}"), own)

    def test_digits_of_all_scripts(self):
        """Each becomes one of ours or stays, also one that Python's tables do not know yet."""
        every = "".join(map(chr, (n for n in range(0x110000) if not 0xD800 <= n < 0xE000)))
        for text in (every, "\U00016130", "\U0001ccf0"):
            self.assertEqual(len(with_digits(text)), len(text))
        self.assertEqual(with_digits("٣४๕"), "345")
