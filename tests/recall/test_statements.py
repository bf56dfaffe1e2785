"""Statements as queries: most lines in a room are no questions."""

import unittest

from benchmarks.recall import bm25_ranking
from evennia_ai.recall import RecallIndex, Turn

# Of each language: what somebody said, a statement with few of its words, and one with its words.
SAID = {
    "en": (
        "My tooth hurts, and the dentist pulls it out tomorrow morning.",
        "I cannot chew anything hard, my mouth is so sore after the surgery.",
        "They say the dentist never pulls a tooth out before tomorrow morning comes.",
    ),
    "de": (
        "Ich habe meine alte Laterne unter dem Boden der Mühle versteckt.",
        "",
        "Der Boden der Mühle knarrt, als wäre eine Laterne darunter versteckt.",
    ),
    "ja": (
        "古い提灯を水車小屋の床下にそっと隠しておきました。",
        "",
        "水車小屋の床下に古い提灯があるらしいです。",
    ),
    "zh": (
        "我把自己的旧灯笼藏在磨坊的地板下面了。",
        "",
        "听说磨坊的地板下面有一个旧灯笼。",
    ),
    "ar": (
        "لقد خبأت فانوس قديم تحت أرضية الطاحونة ليلا.",
        "",
        "يقال إن تحت أرضية الطاحونة فانوس قديم جدا.",
    ),
}
CHATTER = (
    "The ferry leaves at noon with {n} sacks of barley.",
    "Somebody painted the gate green for the {n}th time.",
    "My cousin sings {n} songs about the sea.",
    "Shall we play dice for {n} coins?",
)


def talk_around(said):
    """The turns of a talk of 200 lines; the one in their middle, ``t100``, is given."""
    texts = [CHATTER[n % len(CHATTER)].format(n=n) for n in range(200)]
    texts[100] = said
    return [Turn(f"t{n}", "Bob", text, 60.0 * n) for n, text in enumerate(texts)]


class TestStatements(unittest.TestCase):
    def found(self, said, query):
        """Whether a line among 200 others is among the ten best hits of a query."""
        index = RecallIndex(":memory:")
        self.addCleanup(index.close)
        index.add("aria", talk_around(said))
        return "t100" in [hit.turn_id for hit in index.search("aria", query, 10)]

    def test_by_meaning_and_by_words(self):
        """What bears on a statement is found, in any language by its words."""
        for language, (said, without_words, with_words) in SAID.items():
            for query in filter(None, (without_words, with_words)):
                with self.subTest(language=language, query=query):
                    self.assertTrue(self.found(said, query))

    def test_what_plain_bm25_finds(self):
        """A line that plain BM25 has among its ten best hits is found, and others besides."""
        more = 0
        for language, (said, without_words, with_words) in SAID.items():
            rank = bm25_ranking(talk_around(said))
            for query in filter(None, (without_words, with_words)):
                with self.subTest(language=language, query=query):
                    by_words, by_ours = "t100" in rank(query)[:10], self.found(said, query)
                    self.assertGreaterEqual(by_ours, by_words)
                    more += by_ours > by_words
        self.assertGreater(more, 0)

    def test_what_is_typed_goes_by_words(self):
        """A few words are looked for as they are, whatever comes near them in meaning."""
        self.assertTrue(self.found("Zorblax owes me a copper.", "zorblax copper"))
