"""Lorebooks of several programs, whole and broken."""

import json
import unittest
from dataclasses import replace

from evennia_ai.cards.books import (
    ALL,
    ANY,
    NOBODY_HEARS,
    Book,
    exported,
    is_book,
    read_book,
)
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
        book, notes = read_book({"entries": {str(n): entry for n, entry in enumerate(NASTY)}})
        counts = "9 entries: 4 taken (2 mended), 5 without a usable key or text"
        self.assertEqual(notes[0], counts)
        keys = [fact.keys[0] for fact in book.facts]
        self.assertEqual(keys, ["Bessie", "C++", "index", "twice"])
        for number in (1, 2, 3, 5, 6, 7, 8):
            says = f"entry {number}: {'content' if number > 6 else 'keys'}"
            self.assertTrue([note for note in notes if note.startswith(says)], number)

    def test_all_formats(self):
        """Cards', SillyTavern's, RisuAI's, Agnai's, NovelAI's, KoboldAI's, AI Dungeon's."""
        for value in (
            {"entries": [{"keys": ["a", "b"], "content": "t", "enabled": True}]},
            {"entries": {"0": {"key": ["a", "b"], "content": "t", "disable": False}}},
            {"type": "risu", "data": [{"key": "a, b", "content": "t"}]},
            {"kind": "memory", "entries": [{"keywords": ["a", "b"], "entry": "t"}]},
            {"lorebookVersion": 5, "entries": [{"keys": ["a", "b"], "text": "t"}]},
            {"spec": "lorebook_v3", "data": {"entries": [{"keys": ["a", "b"], "content": "t"}]}},
            {"data": {"character_book": {"entries": [{"keys": ["a", "b"], "content": "t"}]}}},
            {"worldinfo": [{"key": "a,b", "content": "t", "constant": False}]},
            [{"keys": "a, b", "value": "t", "title": "A", "type": "class"}],
        ):
            [fact] = read_book(value)[0].facts
            self.assertEqual((fact.keys, fact.text, fact.on), (("a", "b"), "t", True), value)

    def test_values(self):
        """Secondary keys with their logic, switches, order, decorators, macros."""
        text = "@@activate\n@@scan_depth 4\n@@dont_activate\n{{char}}"
        entry = {"keys": ["a", "A " * 90], "content": text, "secondary_keys": ["b"]}
        entry |= {"extensions": {"selectiveLogic": 3}, "priority": 7}
        other = {"keys": "a", "content": "t", "selective": False, "keysecondary": "b"}
        other |= {"selectiveLogic": 9, "enabled": 1}
        book, _ = read_book({"name": " N ", "entries": [entry, other, 5]}, "Aria")
        one, two = book.facts
        self.assertEqual((one.text, one.always, one.on), ("Aria", True, False))
        self.assertEqual((one.keys, one.secondary, one.logic, one.weight), (("a",), ("b",), ALL, 7))
        self.assertEqual((two.secondary, two.logic, two.on, book.name), ((), ANY, True, "N"))

    def test_what_is_a_book(self):
        """Told from cards by its fields."""
        for value, is_one in (
            ({"entries": {}}, True),
            ({"worldinfo": []}, True),
            ([{"keys": "a"}], True),
            ([], False),
            ([1], False),
            ({"name": "x"}, False),
            ("x", False),
        ):
            self.assertEqual(is_book(value), is_one, value)

    def test_orders(self):
        """What is always on and stands in the talk is an order to a model, no fact, and is kept."""
        order = {"content": "End each reply with <UpdateVariable>.", "constant": True}
        fact = {"content": "The sea is red.", "constant": True}
        entries = [
            fact,
            {**fact, "position": "after_char"},
            {**fact, "position": 1},
            {**order, "position": 4},
            {**order, "extensions": {"position": 2}},
            {**order, "content": "@@depth 0\n@@role system\nEnd each reply with JSON."},
            {**order, "constant": False, "keys": ["sea"], "position": 4},
        ]
        book, notes = read_book({"entries": entries})
        self.assertEqual(len(book.facts), 4)
        self.assertIn("3 always on and set into the talk, as orders to", notes[0])
        self.assertIn("entry 4: an order, no fact", notes)
        self.assertEqual(len(exported(book)["entries"]), 7)

    def test_what_is_no_book(self):
        """Anything else; and too many entries are cut."""
        for value in (3, {}, {"entries": 3}):
            with self.assertRaisesRegex(Refusal, "Read are those in cards, of SillyTavern"):
                read_book(value)
        entries = [{"keys": ["k"], "content": str(n)} for n in range(503)]
        book, notes = read_book({"name": 1, "entries": entries})
        self.assertEqual((len(book.facts), book.name), (500, ""))
        self.assertIn("3 beyond 500 left out", notes[0])

    def test_patterns(self):
        """A regular expression is no key and is named; one of mere words is those words."""
        entry = {"keys": ["/(?:a{1,60}){60}/", "/Old mill/i", "/a, b/"], "content": "good"}
        book, notes = read_book({"entries": [entry, {**entry, "keys": "/a{1,2}/"}]})
        self.assertEqual([fact.keys for fact in book.facts], [("Old mill",)])
        for note, key in zip(notes[1:], ("(?:a{1,60}){60}", "a{1,2}"), strict=True):
            self.assertIn(f"keys: `/{key}/`, a regular expression, is not used", note)
        self.assertEqual(exported(book)["entries"][0], entry)


class TestExported(unittest.TestCase):
    def test_locks(self):
        """They stand beside other extensions, replace older ones, and go without a trace."""
        raw = {"keys": ["a"], "content": "t", "extensions": {"x": 1}}
        book, _ = read_book({"entries": [raw]})
        for know, tell in (("lock:tag(a)", "tag(x)"), ("", "tag(y)"), ("", "")):
            [fact] = book.facts
            out = exported(replace(book, facts=(replace(fact, know=know, tell=tell),)))
            book, _ = read_book(out)
            self.assertEqual((book.facts[0].know, book.facts[0].tell), (know, tell))
            self.assertEqual(out["entries"][0]["extensions"]["x"], 1)
        self.assertEqual(out["entries"], [raw])
        locked, _ = read_book(exported(replace(book, know="npc:x", tell="tag(x)")))
        self.assertEqual((locked.know, locked.tell), ("npc:x", "tag(x)"))
        odd = {"entries": [{**raw, "extensions": {"evennia_ai": 1}}], "extensions": []}
        self.assertEqual(read_book(odd)[0].facts[0].tell, NOBODY_HEARS)

    def test_round_trip(self):
        """An entry goes out as it came; one that was changed, with its other values kept."""
        raw = {"keys": ["a"], "content": "{{char}} t", "depth": 4, "extensions": {"x": 1}}
        useless = {"keys": [], "content": "t"}
        original = {"name": "N", "scan_depth": 2, "entries": [raw, useless]}
        book, _ = read_book(original, "Aria")
        [fact] = book.facts
        self.assertEqual(exported(book), original)
        self.assertEqual(exported(Book("x", (fact,)))["entries"], [raw])
        changed = replace(book, name="x", facts=(replace(fact, on=False),))
        out = json.loads(json.dumps(exported(changed)))
        entry, last = out["entries"]
        self.assertEqual((out["name"], last), ("x", useless))
        self.assertEqual({name: entry[name] for name in raw}, raw)
        [again] = read_book(out, "Aria")[0].facts
        self.assertEqual((again.text, again.on), ("Aria t", False))

    def test_switches(self):
        """What staff switched is so again after an export, however the entry said it before."""
        for odd in (
            {"content": "@@depth 4\n@@dont_activate\nt"},
            {"content": "@@@dont_activate\n@@activate\nt", "enabled": "no"},
            {"text": "@@dont_activate x\nt", "Enabled": False, "DISABLE": 1},
            {"content": "t", "extensions": {"en_abled": 0, "disable": True}},
            {"content": "t", "enabled": True},
        ):
            book, _ = read_book({"entries": [{"keys": ["a"], "x": 1, **odd}]})
            for is_on in (True, False, True):
                fact = replace(book.facts[0], on=is_on)
                out = exported(replace(book, facts=(fact,)))
                book, _ = read_book(out)
                self.assertEqual((book.facts[0].on, book.facts[0].text), (is_on, "t"), odd)
                self.assertEqual(book.facts[0].always, fact.always)
                self.assertEqual(out["entries"][0]["x"], 1)
