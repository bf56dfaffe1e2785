"""What goes when somebody is forgotten, decided from plain messages."""

import json
import unittest
from dataclasses import replace

from evennia_ai.history.audience import private
from evennia_ai.history.forgetting import (
    Heard,
    OwnWords,
    is_by,
    plan_forgetting,
    texts_in,
    to_forget,
)
from evennia_ai.history.messages import IdSource, Message, Speaker, utc_iso
from evennia_ai.history.records import Segment, SummaryRecord
from evennia_ai.history.verification import Evidence

ALICE, BOB, ARIA = Speaker("Alice", "o1.a"), Speaker("Bob", "o2.b"), Speaker("Aria", "o9.aria")


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

    def forget(self, *messages, keep=(), known=""):
        """What is forgotten with Alice, as ids: said, repeated; what changes is in `changed`."""
        people = ["o1.a", "a1.a"]
        said = {m.id for m in messages if is_by(m, people)}.difference(keep)
        found = to_forget(messages, said, people, known)
        self.own, self.changed = found.own, sorted(found.changed)
        return sorted(found.said), sorted(found.repeated)

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
        self.assertEqual(self.changed, [])
        self.assertEqual(self.forget(*messages), (["m02"], []))
        self.assertEqual(self.changed, ["m05"])

    def test_what_is_around_a_word_stays_as_it_was(self):
        """Also in JSON, with letters of other alphabets as they were written."""
        found = to_forget([line(1, "My zorblax", ALICE)], ["m01"], ["o1.a"], "")
        text = json.dumps({"who": "Jürgen", "has": "zorblax"}, ensure_ascii=False)
        self.assertIn("Jürgen", found.own.redacted(text))
        self.assertNotIn("zorblax", found.own.redacted(text))

    def test_a_word_in_a_line_about_something_else(self):
        """A line for somebody else stays without the word, one for them goes."""
        asked = {"asker": "o2.b"}
        messages = [
            line(1, "What a festival! My zorblax is dear to me.", ALICE),
            line(2, "The Festival of lanterns is on Friday.", ARIA, "assistant", metadata=asked),
            line(3, "The zorblax?", ARIA, "assistant", metadata={"asker": "o1.a"}),
            line(4, "Zorblax.", ARIA, "assistant", audience=private(["o1.a"]), metadata=asked),
            line(5, "Hello", BOB),
            line(6, "A zorblax, Bob.", ARIA, "assistant"),
            line(7, "Hello", ALICE),
            line(8, "A zorblax, Alice.", ARIA, "assistant"),
        ]
        self.assertEqual(self.forget(*messages), (["m01", "m07"], ["m03", "m04", "m08"]))
        self.assertEqual(self.changed, ["m02", "m06"])
        left = self.own.taken_out_of(messages[1])
        self.assertEqual(left.content, "The [forgotten] of lanterns is on Friday.")

    def test_a_quotation_for_somebody_else(self):
        """So many of their words in a row go with the whole line, whomever it was for."""
        messages = [
            line(1, "I buried gold under barns", ALICE),
            line(2, "She buried gold under barns.", ARIA, "assistant", metadata={"asker": "o2.b"}),
        ]
        self.assertEqual(self.forget(*messages), (["m01"], ["m02"]))

    def test_a_few_words_in_a_row(self):
        """Fewer words are no quotation, wherever they stand: others may put them so."""
        messages = [
            line(1, "Barns are red, and gold is yellow.", BOB),
            line(2, "I buried gold under barns", ALICE),
            line(3, "You want gold under barns", ARIA, "assistant", metadata={"asker": "o2.b"}),
        ]
        self.assertEqual(self.forget(*messages), (["m02"], []))
        self.assertEqual(self.changed, [])

    def test_clocks_set_back(self):
        """Who used a word first is told by ids, which go on counting, not by dates."""
        now, ids = [1_800_000_000.0], IdSource(lambda: now[0])
        told = Message("user", "zorblax", ids("m"), utc_iso(now[0]), ALICE)
        now[0] -= 3600
        said = Message("assistant", "A zorblax!", ids("m"), utc_iso(now[0]), ARIA)
        self.assertEqual(self.forget(told, said), ([told.id], [said.id]))

    def test_their_own_later_words_are_not_those_of_others(self):
        """Saying it again after asking protects nothing."""
        messages = [
            line(1, "My zorblax!", ALICE),
            line(2, "A zorblax.", ARIA, "assistant"),
            line(9, "The zorblax again.", ALICE),
        ]
        self.assertEqual(self.forget(*messages, keep=["m09"]), (["m01"], ["m02"]))

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
        """Each word is replaced, in any case and spelling; the rest of the value stays."""
        value = {"a": ["Zorblax, here", 1, "hay"], "b": None}
        left = {"a": ["[forgotten], here", 1, "hay"], "b": None}
        self.assertEqual(self.own.redacted(value), left)
        self.assertEqual(self.own.redacted('{"text": "z\u00f3rblax"}'), '{"text": "[forgotten]"}')
        self.assertEqual(
            self.own.redacted("zo\u0301rblax or z\u00f3rblax\u0301!"), "[forgotten] or [forgotten]!"
        )

    def test_redacted_runs(self):
        """Words of runs that overlap or follow each other are replaced together."""
        runs = OwnWords(frozenset({("a", "b", "c", "d"), ("c", "d", "e", "f"), "gold"}))
        with_runs = OwnWords(frozenset({("red", "barn", "old", "mill"), "gold"}))
        self.assertEqual(with_runs.redacted("A red barn, old mill gold."), "A [forgotten].")
        self.assertFalse(runs.are_quoted_in("gold"))

    def test_calls(self):
        """Arguments of calls and memories drawn on lose the words, ids and names never do."""
        made = line(
            2, "Done, zorblax", ARIA, "assistant", metadata={"memories": ["zorblax"], "x": "y"}
        )
        function = {"name": "zorblax", "arguments": '{"content": "A zorblax"}'}
        made = replace(
            made, tool_calls=({"id": "zorblax", "function": function}, {"function": "x"})
        )
        left = self.own.taken_out_of(made)
        self.assertEqual(left.content, "Done, [forgotten]")
        self.assertEqual(left.metadata, {"memories": ["[forgotten]"], "x": "y"})
        self.assertEqual(left.tool_calls[0]["id"], "zorblax")
        self.assertEqual(
            left.tool_calls[0]["function"],
            {"name": "zorblax", "arguments": '{"content": "A [forgotten]"}'},
        )
        self.assertEqual(left.tool_calls[1], {"function": "x"})
        other = line(3, "Hay", ARIA, "assistant")
        self.assertIs(self.own.taken_out_of(other), other)


class TestPlanForgetting(unittest.TestCase):
    """What goes of a whole history."""

    def plan(self, heard):
        """What goes of two segments and a live history, each with a line of Alice's and a reply."""
        lines = [
            [line(n, f"zorblax{n}", ALICE), line(n + 1, f"zorblax{n}!", ARIA, "assistant")]
            for n in (1, 3, 5)
        ]
        segments = tuple(Segment.sealed(f"g{n}", f"s{n}", lines[n]) for n in (0, 1))
        fields = {"tier": "recent", "status": "live", "created_at": "", "audience": "public"}
        records = [
            SummaryRecord(id="s0", text="Hay.", segment="g0", **fields),
            SummaryRecord(id="s1", text="Hay.", segment="g1", **fields),
            SummaryRecord(id="s2", text="Hay.", child_ids=("s0", "s2"), **fields),
            SummaryRecord(id="s3", text="Zorblax5.", child_ids=("s9",), **fields),
        ]
        evidence = Evidence(
            (*lines[2], line(7, "zorblax7", ALICE)),
            segments,
            frozenset(),
            {record.id: record for record in records},
            frozenset(),
            7,
            "",
        )
        return plan_forgetting(evidence, ["o1.a"], heard)

    def test_all(self):
        """Without a moment, all that they said goes."""
        found = self.plan(None)
        self.assertEqual(found.said, {"m01", "m03", "m05", "m07"})
        self.assertEqual(found.emptied, {"s0", "s1", "s2", "s3"})
        self.assertEqual(found.parts, {"g0": {"m01", "m02"}, "g1": {"m03", "m04"}})

    def test_up_to_a_moment(self):
        """What was live then, also if it left since, and what was archived then; nothing else."""
        found = self.plan(Heard.from_dict(Heard(frozenset({"m05"}), "g0").to_dict()))
        self.assertEqual(found.said, {"m01", "m05"})
        self.assertEqual(found.repeated, {"m02", "m06"})
        self.assertEqual(found.emptied, {"s0", "s2", "s3"})
        self.assertEqual(found.parts, {"g0": {"m01", "m02"}})
        self.assertEqual(self.plan(Heard(frozenset({"m03"}))).said, {"m03"})

    def test_names_in_metadata(self):
        """A message whose metadata name them changes."""
        named = line(1, "Hay.", ARIA, "assistant", metadata={"for": "o1.a"})

        def unnamed(message):
            return replace(message, metadata={}) if message.metadata else message

        found = to_forget([named, line(2, "Hay", BOB)], (), ["o1.a"], "", unnamed)
        self.assertEqual(found.changed, {"m01"})


class TestIsBy(unittest.TestCase):
    """Whose message it is."""

    def test_only_what_was_heard(self):
        """A reply that answers them is the assistant's."""
        self.assertTrue(is_by(line(1, "", ALICE), ["o1.a"]))
        self.assertFalse(is_by(line(1, "", ALICE, "assistant"), ["o1.a"]))
        self.assertFalse(is_by(line(1, "", None), [""]))
        self.assertFalse(is_by(line(1, "", None, metadata={"account": ["a1.a"]}), ["a1.a"]))
