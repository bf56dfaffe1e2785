"""Names, numbers and quoted words of a text: found and compared."""

import json
import unittest
from dataclasses import replace

from evennia_ai.llm_interaction.items import (
    APPENDIX_TITLE,
    TOOL_CHARS,
    Item,
    appendix,
    covered,
    items_of,
    missing,
    source_items,
)
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.history.messages import Speaker
from evennia_ai.history.pairs import ToolTraits
from evennia_ai.turns.tools import BUILTIN_TOOLS
from tests.strategies import MANY, call, heard, histories, reply, result

TRAITS = ToolTraits.of({tool.name: tool for tool in BUILTIN_TOOLS})

NAMES = ("Mara Voss", "Roland", "Golden Cup", "Norvik", "Tower of Ash", "O'Brien", "José")


some_items = st.lists(
    st.builds(Item, st.sampled_from(("name", "number", "quote")), st.text(min_size=1, max_size=30))
)


def texts(kind, source, known=()):
    """The texts of one kind of item in a source."""
    return [item.text for item in items_of(source, known) if item.kind == kind]


def written(arguments, name="write"):
    """The items of a tool's arguments."""
    return source_items([reply("", tool_calls=[call("c1", name, arguments)])], TRAITS)


def lost(source, *given_texts, known=()):
    return [item.text for item in missing(items_of(source, known), *given_texts)]


class TestKinds(unittest.TestCase):
    def test_names(self):
        """Capitals amid a sentence, and known names; no common words, no shouting, no verbs."""
        many = ["Mara Voss", "bob", "Will", "", "  ", "Ash", "!"]
        for source, known, expected in (
            ("with Mara Voss and Roland near New Ys", (), ["Mara Voss", "Roland", "New Ys"]),
            ("the Tower of Ash, by Jörg von Stein", (), ["Tower of Ash", "Jörg von Stein"]),
            ("we saw mara there", ["mar"], []),
            ("we saw mara, bob and mar there", ["mar", "bob"], ["bob", "mar"]),
            ("Will is late.", (), []),
            ("Will is late. I saw Will.", (), ["Will"]),
            ("Will owes me.", ["Will"], ["Will"]),
            ("Fetch the key. Walking to the mill. Barrels roll. Oil my barrels", (), []),
            ("Rose the baker.", ["rose"], ["rose"]),
            ("Fetch Alice. I know Alice.", (), ["Alice"]),
            ("Mara Voss left.", (), ["Mara Voss"]),
            ("so You say, in May, at The Golden Cup", (), ["May", "Golden Cup"]),
            ("HELP ME NOW! the NATO fleet, the HMS Victory, plan B", (), ["NATO", "HMS Victory"]),
            ("HELP ME ROLAND", ["Roland"], ["Roland"]),
            ("tell mara voss that bobby and bob's will burn ashes", many, ["Mara Voss", "bob"]),
            ("Noted. I will.", (), []),
        ):
            self.assertEqual(texts("name", source, known), expected, source)

    def test_order_and_once(self):
        """Items come in order of their first mention, each once, whatever its kind and form."""
        source = 'Roland owes 3 coins to Mara. "Mara" and three; roland\'s Mara, Roland.'
        once = (Item("name", "Roland"), Item("number", "3"), Item("name", "Mara"))
        self.assertEqual(items_of(source), once)

    def test_numbers(self):
        """Amounts, times, ordinals, shares, fractions, dates; spelled ones, but no vague ones."""
        for source, expected in (
            (
                "3 or 1,200 at 17:30 on the 2nd, 50%, 10gp, 3.5, 3/4, on 2026-03-04, 5pm, #12",
                "3 1,200 17:30 2nd 50% 10gp 3.5 3/4 2026-03-04 5pm 12",
            ),
            (
                "three hundred and five, twenty-one, third, no one, wait a second, at first, one",
                "three hundred and five twenty-one third",
            ),
            ("someone often weighs a tense mine; x12, v1.2.3", ""),
        ):
            self.assertEqual(" ".join(texts("number", source)), expected)

    def test_quotes(self):
        """One to eight words in double quote marks, without end marks; no inches, no keys."""
        for source, expected in (
            (
                'he said "never again," then “the brass key”, «non», „so“, but "" and "!", "*" not',
                ["never again", "the brass key", "non", "so"],
            ),
            ('x "a b c d e f g h" y "a b c d e f g h i" z', ["a b c d e f g h"]),
            ('a 5" pipe and a 6" one', []),
            ('call("text": "hello there")', ["hello there"]),
        ):
            self.assertEqual(texts("quote", source), expected)
        self.assertEqual(source_items([heard('"hello there"')], TRAITS)[1:], ())

    def test_equal_by_value(self):
        """A number is found in any form of the same value, and in no other number."""
        pairs = (
            ("1,200", "1200"), ("three", "3"), ("3", "Three."), ("twenty-five", "25"),
            ("2nd", "the second"), ("third", "3rd"), ("05:30", "5:30"), ("3.50", "3.5"),
            ("$5", "5 dollars"), ("two thousand five hundred", "2,500"), ("12 coins", "12gp"),
            ("three hundred thousand and two", "300002"), ("two million", "2000000"),
            ("a hundred hundred", "100 100"), ("two three", "2 3"), ("five", "five"),
            ("twelve hundred", "1200"),
        )  # fmt: skip
        for source, text in pairs:
            with self.subTest(source=source):
                self.assertNotEqual(texts("number", source), [])
                self.assertEqual(lost(source, f"It was {text} then"), [])
        for source, text in (("3", "13, 30, 3rd, 3:00, 3.5"), ("17:30", "17 30"), ("12", "1,2")):
            self.assertEqual(lost(source, text), [source])

    def test_words_count_once(self):
        """What stands in a quotation is not counted again; of a longer one the names are."""
        self.assertEqual(items_of('they wrote "pay Mara 12"'), (Item("quote", "pay Mara 12"),))
        long = 'they wrote "you must pay the good Mara Voss exactly 12 coins"'
        self.assertEqual([item.text for item in items_of(long)], ["Mara Voss", "12"])


class TestSources(unittest.TestCase):
    def test_noise(self):
        """Ids, times of a record, labels and links are passed over, and what a tool gave out."""
        seen = replace(result("c2", "You see the Tower of Ash."), name="look")
        self.assertEqual(source_items([seen], TRAITS), ())
        noise = (
            "[o12.k3f9a] m0abcdefghjk12345 o7.ab3de 123e4567-e89b-12d3-a456-426614174000 "
            "2026-03-04T05:06:07.008+00:00, [2026-03-04] [CONTEXT SUMMARY] [Notice] "
            "https://example.org/Some/Page7 ca978112ca1bbdcafac231b39a23dc4d"
        )
        self.assertEqual(items_of(f"see {noise} here"), ())

    def test_json(self):
        """Of arguments the values count, not keys, truth values or what is deeper than is sane.

        Numbers a tool was called with count; how weighty a note is does not.
        """
        value = {"Speaker": "so Alice", "Count": 7, "sure": True, "list": ["of Norvik"]}
        note = {"content": "so Roland", "importance": 7}
        for name, arguments, items in (
            ("write", json.dumps(value), ["Alice", "7"]),
            ("write", "[" * 5000, []),
            ("write", '"so Alice"', ["Alice"]),
            ("write", "null", []),
            ("pay", json.dumps({"to": "Norvik", "amount": 200}), ["Norvik", "200"]),
            ("add_journal_entry", json.dumps(note), ["Roland"]),
        ):
            self.assertEqual([item.text for item in written(arguments, name)], items)

    def test_quotes_of_tools(self):
        """What stands in quotes in a text counts; the quotes of JSON that was cut off do not."""
        sign = 'A sign reads "No credit".'
        for text in (sign, json.dumps({"text": sign})):
            self.assertIn(Item("quote", "No credit"), written(text))
        whole = json.dumps({"text": "so so", "more": ["Norvik"] * 9})
        cut = written(f"{whole[:-4]} [... 4 more characters]")
        self.assertEqual({item.kind for item in cut} - {"name"}, {"number"})

    def test_messages(self):
        """Speakers are names; of what a tool was called with its beginning counts."""
        said = call("c1", "whisper", json.dumps({"text": 'to Roland: "not a quote" 4'}))
        sung = call("c2", "sing", "the Golden Cup " + "so so " * TOOL_CHARS + "in Oldtown")
        messages = [
            heard("I owe 3 coins", speaker=Speaker("may", "o1.a")),
            reply('so "be it"', tool_calls=(said, {"id": "x"}, sung)),
            result(content=json.dumps({"at": "in Norvik 9", "kind": 12})),
            heard("so of Ys", speaker=Speaker("Zed", "o2.b")),
        ]
        expected = "may / 3 / be it / Roland / not a quote / 4 / Golden Cup / Zed / Ys"
        self.assertEqual(" / ".join(i.text for i in source_items(messages, TRAITS)), expected)
        self.assertEqual(source_items(messages, TRAITS)[0], Item("name", "may"))
        self.assertIn(Item("name", "coins"), source_items(messages, TRAITS, ["coins"]))

    @MANY
    @given(histories())
    def test_any_history(self, history):
        """Any history has items, each once, all of them found in what was said."""
        items = source_items(history, TRAITS)
        self.assertEqual(len(set(items)), len(items))
        said = [message.content for message in history]
        keys = [message.speaker_name for message in history]
        self.assertEqual({item.kind for item in missing(items, *said, *keys)} - {"quote"}, set())


class TestMissing(unittest.TestCase):
    def test_tolerance(self):
        """Case, accents, possessives, plurals, titles and hyphens make no difference."""
        for source, text in (
            ("by José", "jose's"), ("the Voss", "all Vosses"), ("of Sir Roland", "ROLAND"),
            ("at James’s", "James' house"), ("to Al-Rashid", "al rashid"),
            ('a "brass key"', "two Brass keys"), ("the Citys", "cities"), ("the King", "a king"),
        ):  # fmt: skip
            with self.subTest(source=source):
                self.assertEqual(lost(source, text), [])

    def test_whole_words_in_a_row(self):
        """A part of a word, words in another order or of two texts are not it."""
        self.assertEqual(lost("to Ann", "Anna, Joann"), ["Ann"])
        self.assertEqual(lost("to Mara Voss", "Voss, Mara", "Mara", "Voss"), ["Mara Voss"])
        self.assertEqual(lost("to Mara Voss and Bob"), ["Mara Voss", "Bob"])

    @MANY
    @given(st.lists(st.sampled_from((*NAMES, "3", "1,200", '"the brass key"')), max_size=6))
    def test_a_source_keeps_itself(self, words):
        """Nothing is missing in the source, all is in nothing, and what was planted is found."""
        source = "so " + " and ".join(words)
        items = items_of(source)
        self.assertEqual([i.text for i in items], [w.strip('"') for w in dict.fromkeys(words)])
        self.assertEqual(missing(items, source), ())
        self.assertEqual(missing(items, source.upper()), ())
        self.assertEqual(missing(items), items)

    @MANY
    @given(some_items, st.integers(0, 200))
    def test_cap(self, items, cap):
        """The line is one line within its cap, and no item is lost between it and the rest."""
        line, rest = appendix(items, cap, len)
        self.assertLessEqual(len(line), cap)
        self.assertLessEqual(len(line.splitlines()), 1)
        self.assertEqual(tuple(items)[len(items) - len(rest) :], rest)
        self.assertEqual(bool(line), len(rest) < len(items))
        if rest:
            longer, _ = appendix(items[: len(items) - len(rest) + 1], 10**6, len)
            self.assertGreater(len(longer), cap)

    def test_what_is_kept_elsewhere_is_not_appended(self):
        """The journal and the ledger count; what of a text is cut off counts as lost."""
        items = items_of("of Roland, Mara and 17")
        summary = covered(items, "Roland came.", ["Mara sings."], 100, len)
        self.assertEqual(summary.text, f"Roland came.\n{APPENDIX_TITLE} 17.")
        self.assertEqual([item.text for item in summary.lost], ["17"])
        self.assertAlmostEqual(summary.share, 2 / 3)
        self.assertEqual(summary.named, ("Roland", "Mara"))
        summary = covered(items, "It was late. " * 9 + "Roland, Mara.", (), 100, len)
        self.assertLessEqual(len(summary.text), 100)
        self.assertIn("Roland", [item.text for item in summary.lost])
