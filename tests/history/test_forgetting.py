"""What goes when somebody is forgotten, decided from plain messages."""

import json
import unittest
from dataclasses import replace

from evennia_ai.history.forgetting import REDACTED, OwnWords, is_by, texts_in, to_forget
from evennia_ai.history.messages import Message, Speaker

ALICE, BOB, ARIA = Speaker("Alice", "o1.a"), Speaker("Bob", "o2.b"), Speaker("Aria", "o9.aria")
LATER = "2030-01-01T00:00:00.000+00:00"


def line(number, text, speaker, role="user", **fields):
    """A message with an id and a time that sort by its number."""
    at = f"2026-01-01T00:00:{number:02d}.000+00:00"
    return Message(role, text, f"m{number:02d}", at, speaker, **fields)


def call(number, arguments, **fields):
    """A call of a tool."""
    function = {"name": "add_journal_entry", "arguments": arguments}
    made = {"id": f"c{number}", "type": "function", "function": function}
    return line(number, "", ARIA, "assistant", tool_calls=(made,), **fields)


def result(number, call_number, text):
    """A tool's result."""
    return line(number, text, None, "tool", tool_call_id=f"c{call_number}", name="look")


class TestToForget(unittest.TestCase):
    """Which messages go."""

    def forget(self, *messages, until=LATER, known=""):
        """What is forgotten with Alice, as ids."""
        found = to_forget(messages, ["o1.a", "a1.a"], until, known)
        self.own = found.own
        return sorted(found.said), sorted(found.repeated)

    def test_their_messages(self):
        """All that they said until they asked, by character or account, under any name."""
        page = replace(line(4, "hi", Speaker("Old", "o7.x")), metadata={"account": "a1.a"})
        messages = [
            line(1, "the zorblax", ALICE),
            line(2, "hello", BOB),
            line(3, "again", Speaker("Alicia", "o1.a")),
            page,
            line(9, "new", ALICE),
        ]
        until = messages[3].created_at
        self.assertEqual(self.forget(*messages, until=until), (["m01", "m03", "m04"], []))

    def test_a_repeated_word(self):
        """A line of the assistant with a word that only they used goes, in any case."""
        messages = [
            line(1, "I hid the zorblax.", ALICE),
            line(2, "ZORBLAX, how nice.", ARIA, "assistant"),
            line(3, "Very nice.", ARIA, "assistant"),
        ]
        self.assertEqual(self.forget(*messages), (["m01"], ["m02"]))

    def test_words_of_others(self):
        """What anybody else used is not theirs, whenever; nor what the assistant used first."""
        messages = [
            line(1, "Our cellar is deep.", ARIA, "assistant"),
            line(2, "A lantern in the cellar, Cora!", ALICE),
            line(3, "The cellar has a lantern.", ARIA, "assistant"),
            line(4, "Where is my lantern?", BOB),
            line(5, "Good evening, Cora.", ARIA, "assistant"),
        ]
        self.assertEqual(self.forget(*messages, known="Cora"), (["m02"], []))
        self.assertEqual(self.forget(*messages), (["m02"], ["m05"]))

    def test_their_own_later_words_are_not_those_of_others(self):
        """Saying it again after asking protects nothing."""
        messages = [
            line(1, "My zorblax!", ALICE),
            line(2, "A zorblax.", ARIA, "assistant"),
            line(9, "The zorblax again.", ALICE),
        ]
        until = messages[0].created_at
        self.assertEqual(self.forget(*messages, until=until), (["m01"], ["m02"]))

    def test_a_quotation_of_plain_words(self):
        """So many words in a row are a quotation, unless somebody else used them so."""
        messages = [
            line(1, "stone bridge near river", BOB),
            line(2, "river", BOB),
            line(3, "I crossed the stone river near bridge", ALICE),
            line(4, "crossed", BOB),
            line(5, "So it was the stone river near bridge?", ARIA, "assistant"),
            line(6, "There is a stone bridge near river.", ARIA, "assistant"),
            line(7, "Is it over there and then some?", ARIA, "assistant"),
        ]
        self.assertEqual(self.forget(*messages), (["m03"], ["m05"]))

    def test_other_assistants_and_people(self):
        """Another assistant's line that repeats them goes; a person's line never does."""
        borg = replace(line(2, "A zorblax!", Speaker("Borg", "o8.b")), metadata={"assistant": True})
        self.assertEqual(self.forget(line(1, "zorblax", ALICE), borg), (["m01"], ["m02"]))
        told = line(3, "She has a zorblax.", BOB)
        self.assertEqual(self.forget(line(1, "zorblax", ALICE), borg, told), (["m01"], []))

    def test_calls_go_with_their_results(self):
        """A call whose arguments repeat them, or whose result does."""
        messages = [
            line(1, "my zorblax", ALICE),
            call(2, json.dumps({"content": "Alice: z\u00e9ta, zorblax"})),
            result(3, 2, "Entry e1 written."),
            call(4, "{}"),
            result(5, 4, json.dumps({"results": [{"text": "a zorblax"}]})),
            call(6, "no JSON"),
            result(7, 6, "A room."),
            replace(call(8, "{}"), tool_calls=({"function": "zorblax"},)),
        ]
        self.assertEqual(self.forget(*messages), (["m01"], ["m02", "m03", "m04", "m05"]))

    def test_memories_a_reply_drew_on(self):
        """A reply that keeps the memory it was made from goes."""
        drew = replace(line(2, "Yes.", ARIA, "assistant"), metadata={"memories": ["the zorblax"]})
        self.assertEqual(self.forget(line(1, "zorblax", ALICE), drew), (["m01"], ["m02"]))

    def test_markers_stay(self):
        """Summaries are made again, not removed."""
        marker = line(2, "zorblax", None, "system", metadata={"type": "compaction"})
        self.assertEqual(self.forget(line(1, "zorblax", ALICE), marker), (["m01"], []))


class TestOwnWords(unittest.TestCase):
    """Looking for words in plain values."""

    own = OwnWords(frozenset({"zorblax"}))

    def test_are_in(self):
        """In texts, lists, mappings and JSON texts; keys do not count."""
        for value in ("A Zorblax.", ["x", "zorblax"], {"a": {"b": "zorblax"}}, '{"a": "zorblax"}'):
            self.assertTrue(self.own.are_in(value), value)
        for value in ("zorblaxes", None, 7, [], {"zorblax": 1}, "[CONTEXT]", "{" * 9):
            self.assertFalse(self.own.are_in(value), value)
        self.assertTrue(self.own.are_in("[zorblax"))

    def test_deep_json(self):
        """A JSON text nested beyond reading is a plain text."""
        self.assertEqual(len(list(texts_in("[" * 100_000))), 1)

    def test_redacted(self):
        """Each text that holds one is replaced; the rest of the value stays."""
        value = {"a": ["zorblax here", 1, "hay"], "b": None}
        self.assertEqual(self.own.redacted(value), {"a": [REDACTED, 1, "hay"], "b": None})


class TestIsBy(unittest.TestCase):
    """Whose message it is."""

    def test_only_what_was_heard(self):
        """A reply that answers them is the assistant's."""
        self.assertTrue(is_by(line(1, "", ALICE), ["o1.a"]))
        self.assertFalse(is_by(line(1, "", ALICE, "assistant"), ["o1.a"]))
        self.assertFalse(is_by(line(1, "", None), [""]))
