"""Names that are words of the language too."""

import unittest

from evennia_ai.language.words import names_among, telling_words
from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.recall.query import parsed_query

HOMES = ("Tam", "mill"), ("Rose", "harbour"), ("Will", "tower"), ("May", "barn"), ("Odo", "attic")
# What anybody says all day.
CHATTER = (
    "I will live by the sea some day.",
    "Will it rain?",
    "You may live to see it.",
    "She will come to the harbour and may stay.",
    "May I live here?",
)


class TestNames(unittest.TestCase):
    def test_named(self):
        """By a capital inside a sentence, or by what somebody does."""
        for text, names in (
            ("Where does Will live?", {"will"}),
            ("Aria, where does Will live?", {"will"}),
            ("Who are Bram, Will and May?", {"will", "may"}),
            ("It is Will's.", {"will"}),
            ("It rains. Will owes me a coin.", {"will"}),
            ("Will lives in the tower.", {"will"}),
            ("May's barn", {"may"}),
        ):
            self.assertEqual(names_among(text), names, text)

    def test_not_named(self):
        """Not where a sentence gives the capital, nor by a month."""
        for text in (
            "Will Elin come?",
            "Aria, Will you come?",
            'He asked: "Will it rain?"',
            "It rains. May I stay?",
            "Will this do?",
            "Will dogs bite?",
            "where does will live?",
            "What happened on 8 May, 2023?",
            "What did Elin sing in May?",
            "What was sung last May?",
        ):
            self.assertEqual(names_among(text), frozenset(), text)

    def test_telling(self):
        """It tells what a text is about."""
        self.assertEqual(telling_words("Where does Will live?"), {"will", "liv"})
        self.assertEqual(telling_words("Will Elin live there?"), {"elin", "liv"})
        self.assertEqual(telling_words("Who is May?"), {"may"})
        self.assertEqual(telling_words("May I?"), frozenset())

    def test_query(self):
        """It carries a query, unless it names who speaks."""
        for query, content in (
            ("Where does Will live?", ("will", "live")),
            ("Will Elin live there?", ("elin", "live")),
            ("What did Elin sing in May?", ("elin", "sing")),
        ):
            self.assertEqual(parsed_query(query).content, content)
        asked = parsed_query("Where does Will live?", ["Will"])
        self.assertEqual((asked.content, asked.asked), (("live",), ("Will",)))

    def found(self, query, *texts, speaker="Bob"):
        """The best hit's text."""
        index = RecallIndex(":memory:")
        self.addCleanup(index.close)
        said = [
            Turn(f"m{n}", speaker, text, 1.7e9 + 3600 * n, None, "public", "message")
            for n, text in enumerate(texts)
        ]
        index.add("s", said)
        return index.search("s", query, 3)[0].text

    def test_first(self):
        """What was told of them comes first, however often the word is said."""
        told = [f"{name} lives in the {place}." for name, place in HOMES]
        said = [f"Aria, my cousin {each}" for each in told]
        for texts in (told, said, [*told, *CHATTER], [*CHATTER, *said]):
            for name in ("Will", "May"):
                wanted = next(each for each in texts if name in each and "lives" in each)
                self.assertEqual(self.found(f"Where does {name} live?", *texts), wanted)
                self.assertEqual(self.found(f"Who is {name}?", *texts), wanted)

    def test_speaker(self):
        """Of one who speaks, too, only what means them names them."""
        told = "My brother Will lives in the tower."
        index = RecallIndex(":memory:")
        self.addCleanup(index.close)
        said = [("Bob", text) for text in (*CHATTER, told)] + [("Will", "Good evening.")]
        index.add(
            "s",
            [
                Turn(f"m{n}", speaker, text, 1.7e9 + 3600 * n, None, "public", "message")
                for n, (speaker, text) in enumerate(said)
            ],
        )
        found = {hit.text: hit.matches for hit in index.search("s", "Who is Will?", 9)}
        self.assertEqual({text for text in found if found[text]}, {told, "Good evening."})
