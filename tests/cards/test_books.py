"""Lorebooks of several programs, whole and broken."""

import unittest
from dataclasses import replace

from evennia_ai.cards.books import (
    ALL,
    ANY,
    exported,
    locks_of,
    pattern,
    read_book,
    with_locks,
)
from evennia_ai.cards.container import parsed
from evennia_ai.errors import Refusal

NASTY = [
    {"uid": 1, "key": [r"/(\w+\s?)+$/i"], "content": "evil"},
    {"uid": 2, "key": [""], "constant": False, "content": "x"},
    {"uid": 3, "keys": "Bessie, cow", "content": "A cow."},
    {"uid": 4, "use_regex": True, "key": ["C++"], "content": "A language."},
    {"uid": 5, "key": ["/[/"], "content": "x"},
    {"uid": 6, "key": ["/" + "(" * 2_000 + "a" + ")" * 2_000 + "/"], "content": "x"},
    {"uid": 7, "key": ["k"], "order": "high", "disable": "false", "content": None},
    {"uid": 8, "key": ["index"], "content": "Bessie cow C++ " * 200},
    {"uid": 1, "key": ["twice"], "content": "y"},
]


class TestRead(unittest.TestCase):
    def test_a_nasty_book(self):
        """Bad entries are named by number and field; the others are taken."""
        book = read_book({"entries": {str(n): entry for n, entry in enumerate(NASTY)}})
        counts = "9 entries: 5 taken (2 mended), 2 without a usable key or text, "
        self.assertEqual(book.notes[0], counts + "2 with a key that is no regular expression")
        self.assertEqual(
            [f.keys[0] for f in book.entries],
            [NASTY[0]["key"][0], "Bessie", "C++", "index", "twice"],
        )
        for number, field in (
            (2, "keys"),
            (3, "keys"),
            (5, "keys"),
            (6, "keys"),
            (7, "content"),
            (8, "content"),
        ):
            self.assertTrue(
                [n for n in book.notes if n.startswith(f"entry {number}: {field}")], number
            )

    def test_all_formats(self):
        """Cards', SillyTavern's, RisuAI's, Agnai's, NovelAI's."""
        for value in (
            {"entries": [{"keys": ["a", "b"], "content": "t", "enabled": True}]},
            {"entries": {"0": {"key": ["a", "b"], "content": "t", "disable": False}}},
            {"type": "risu", "data": [{"key": "a, b", "content": "t"}]},
            {"kind": "memory", "entries": [{"keywords": ["a", "b"], "entry": "t"}]},
            {"lorebookVersion": 5, "entries": [{"keys": ["a", "b"], "text": "t"}]},
            {"spec": "lorebook_v3", "data": {"entries": [{"keys": ["a", "b"], "content": "t"}]}},
            {"data": {"character_book": {"entries": [{"keys": ["a", "b"], "content": "t"}]}}},
        ):
            [fact] = read_book(value).entries
            self.assertEqual((fact.keys, fact.text, fact.on), (("a", "b"), "t", True), value)

    def test_values(self):
        """Secondary keys with their logic, switches, order, decorators, macros."""
        entry = {
            "keys": ["a", "A " * 90],
            "content": "@@activate\n@@depth 4\n@@dont_activate\n{{char}}",
        }
        entry |= {"secondary_keys": ["b"], "extensions": {"selectiveLogic": 3}, "priority": 7}
        book = read_book(
            {
                "name": " N ",
                "entries": [
                    entry,
                    {
                        "keys": "a",
                        "content": "t",
                        "selective": False,
                        "keysecondary": "b",
                        "selectiveLogic": 9,
                        "enabled": 1,
                    },
                    5,
                ],
            },
            "Aria",
        )
        one, two = book.entries
        self.assertEqual((one.text, one.always, one.on), ("Aria", True, False))
        self.assertEqual((one.keys, one.secondary, one.logic, one.weight), (("a",), ("b",), ALL, 7))
        self.assertEqual((two.secondary, two.logic, two.on, book.name), ((), ANY, True, "N"))

    def test_what_is_no_book(self):
        """Anything else; and too many entries are cut."""
        for value in ([], {}, {"entries": 3}):
            with self.assertRaises(Refusal):
                read_book(value)
        entries = [{"keys": ["k"], "content": str(n)} for n in range(503)]
        book = read_book({"name": 1, "entries": entries})
        self.assertEqual((len(book.entries), book.name), (500, ""))
        self.assertIn("3 beyond 500 left out", book.notes[0])

    def test_keys(self):
        """Only what stands between slashes is a regular expression."""
        self.assertIsNone(pattern("C++"))
        self.assertIsNone(pattern("/[/"))
        self.assertTrue(pattern("/fish/gi").search("FISH"))
        self.assertTrue(pattern(r"/dragon.{0,50}sword.{0,50}cave/").search("dragon, sword, cave"))

    def test_patterns_that_are_refused(self):
        """Those that unroll to gigabytes, that hide their counts, that contradict themselves."""
        for key in (
            "/a{9999999}/",
            "/(?:(?:a{1,60}){60}){,60}/",
            "/(?:" + "ab[cd]" * 30 + "){9000}/",
            "/(?x)a{9 9 9 9 9 9 9}/",
            "/(?:a){e<=99999999}/",
            "/" + "(a|b)" * 50 + "/",
            "/(?R)+/",
            "/(a(?1)?)/",
            "/(?V0)(?V1)a/",
            "/(?au)a/",
        ):
            self.assertIsNone(pattern(key), key)
        entries = [{"keys": ["/(?au)a/"], "content": "x"}, {"keys": ["ok"], "content": "good"}]
        self.assertEqual([each.text for each in read_book({"entries": entries}).entries], ["good"])


class TestExported(unittest.TestCase):
    def test_locks(self):
        """They stand beside other extensions, replace older ones, and go without a trace."""
        raw = {"keys": ["a"], "extensions": {"x": 1}}
        locked = with_locks(raw, "lock:tag(a)", "tag(x)")
        self.assertEqual(locks_of(locked), {"know": "lock:tag(a)", "tell": "tag(x)"})
        self.assertEqual(locks_of(with_locks(locked, "", "tag(y)")), {"tell": "tag(y)"})
        self.assertEqual(with_locks(locked, "", ""), raw)
        self.assertIs(with_locks(raw, "", ""), raw)
        odd = {"extensions": []}
        self.assertEqual(locks_of(with_locks(odd, "all", "")), {"know": "all"})
        self.assertIsNone(locks_of(odd) or locks_of(None))

    def test_round_trip(self):
        """An entry goes out as it came; one that was changed, with its other values kept."""
        raw = {"keys": ["a"], "content": "{{char}} t", "depth": 4, "extensions": {"x": 1}}
        original = {"name": "N", "scan_depth": 2, "entries": [raw]}
        [fact] = read_book(original, "Aria").entries
        book = read_book(original, "Aria")
        out = exported("x", [fact], book.original, "Aria")
        self.assertEqual(out, {"extensions": {}, **original})
        changed = exported("x", [replace(fact, text="new", secondary=("b",))])
        self.assertEqual(changed["name"], "x")
        [entry] = changed["entries"]
        self.assertEqual(
            (entry["content"], entry["depth"], entry["extensions"]), ("new", 4, {"x": 1})
        )
        again = read_book(
            parsed(
                str(changed)
                .replace("'", '"')
                .replace("True", "true")
                .replace("False", "false")
                .encode()
            )
        )
        self.assertEqual((again.entries[0].text, again.entries[0].secondary), ("new", ("b",)))
        [own] = exported("x", [replace(fact, original=None)])["entries"]
        self.assertEqual(own["content"], "Aria t")
