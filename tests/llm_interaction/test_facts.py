"""Names, numbers and quotations of a text: found, and compared with those of another."""

import tomllib
import unittest
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from evennia_ai.errors import ModelError
from evennia_ai.history.messages import talk_line
from evennia_ai.llm_interaction.facts import (
    APPENDIX_SHARE,
    APPENDIX_TITLE,
    MOST_INVENTED,
    Fact,
    covered,
    facts,
    invented,
    lost,
    nouns_have_capitals,
    source_facts,
)
from evennia_ai.llm_interaction.summary import LEAST_KEPT, Task, finished, request_text
from evennia_ai.llm_interaction.values import ModelReply
from tests.strategies import FEW, MANY, awkward_texts

TALKS = tomllib.loads(Path(__file__).with_name("summaries.toml").read_text("utf-8"))["talk"]
GERMAN = (
    "Meine Schwester Wilma hält hinter der alten Mühle am Bach drei Ziegen und ein Pferd, und am "
    "Freitag will unser Bäcker Konrad Holm mit dem Wagen zum Markt in die Stadt."
)


def texts(kind, source, known=()):
    """The texts of one kind of fact in a source."""
    return [fact.text for fact in source_facts(source, known) if fact.kind == kind]


def talk_of(talk):
    """A talk as a summariser reads it, and who speaks in it."""
    rows = [row.split(": ", 1) for row in talk["lines"].strip().splitlines()]
    people = sorted({who for who, _ in rows})
    lines = [talk_line(who, "say", text) for who, text in rows]
    return request_text(["[2026-11-22]", *lines]), people


class TestFacts(unittest.TestCase):
    def test_names(self):
        """Capitals amid a sentence, and known names as they are written; no shouting."""
        for source, known, expected in (
            ("with Mara Voss and Roland near New Ys", (), ["Mara Voss", "Roland", "New Ys"]),
            ("Will is late. Then Will came", (), ["Will"]),
            ("Mara Voss left.", (), ["Voss"]),
            ("Mara Voss left.", ["Mara Voss", " ", ""], ["Mara Voss", "Voss"]),
            ("we saw maraud, bob", ["mar", "Bob", "mara"], []),
            ("I said I'm at O'Brien's, by Jean-Luc's", (), ["O'Brien", "Jean-Luc"]),
            ("so HELP ME NOW! the NATO fleet", (), ["NATO"]),
            ('he said: "Never. Go (Now) - To Ys"', (), ["Ys"]),
            ("Oskar'ın at Óscar, у Прохора", (), ["Óscar", "Прохора"]),
            ("アリスは川にいる", ["アリス", "ボブ"], ["アリス"]),
            ("see [o12.K3f9a] and [CONTEXT SUMMARY] of Ys", (), ["Ys"]),
        ):
            self.assertEqual(texts("name", source, known), expected, source)

    def test_nouns_with_capitals(self):
        """Where all nouns have a capital, a name stands behind one."""
        self.assertTrue(nouns_have_capitals(GERMAN))
        self.assertEqual(texts("name", GERMAN), ["Wilma", "Konrad Holm"])
        self.assertEqual(invented("Er hat mit Bruder Veit den Kahn gekauft.", GERMAN), ["Veit"])

    def test_numbers(self):
        """Those in digits of any script, with the word behind them; none in ids."""
        for source, expected in (
            ("paid 1,200 crowns, 3rd of 4", ["1,200 crowns", "3rd of", "4"]),
            ("at 17:30, on 2026-03-04", ["17:30", "2026", "03", "04"]),
            ("१२३ सिक्के", ["१२३ सिक्के"]),
            ("ボブに12クラウン", ["12クラウン"]),
            ("v1.2.3 x12 2a9b 2f, three", ["2f"]),
        ):
            self.assertEqual(texts("number", source), expected, source)

    def test_equal_by_value(self):
        """A number is found in any form of the same value, and in no other number."""
        for one, other in (
            ("1,200", "1200"), ("1.200", "1,200"), ("05:30", "5:30"), ("3.5", "3,5"),
            ("340", "٣٤٠"), ("007", "7"), ("0", "00"), ("0:05", "00:05"),
        ):  # fmt: skip
            self.assertEqual(lost(facts(one), f"It was {other} then"), [], one)
        for one, other in (("3", "13, 30, 3:00, 3.5"), ("17:30", "17 30")):
            self.assertEqual([fact.text for fact in lost(facts(one), other)], [one])

    def test_quotations(self):
        """Up to eight words in double quote marks; longer ones are speech."""
        for source, expected in (
            ('he said "never again," “a key”, «non», „so“, but "" nor "!"',
             ["never again,", "a key", "non", "so"]),
            ('x "a b c d e f g h" y "a b c d e f g h i" z', ["a b c d e f g h"]),
            ("「青い鷺」と言った", ["青い鷺"]),
            ('a 5" pipe and a 6" one', []),
        ):  # fmt: skip
            self.assertEqual(texts("quote", source), expected, source)

    def test_order_and_once(self):
        """Facts come in order of their first mention, each once."""
        found = source_facts('so 3 men told Roland of Mara, "so be it", Roland, 3.')
        self.assertEqual([each.text for each in found], ["3 men", "Roland", "Mara", "so be it"])

    @FEW
    @given(awkward_texts)
    @example("²A0")
    @example("so ℡Abc")
    def test_a_text_has_its_own_facts(self, text):
        """Nothing of a text is lost in itself, and a text invents nothing against itself."""
        self.assertEqual(lost(source_facts(text), text), [])
        self.assertEqual(invented(text, text), [])


class TestCompared(unittest.TestCase):
    def test_forms(self):
        """Case, accents and endings make no difference to a name; its words may come apart."""
        for source, text in (
            ("by José", "jose's"), ("the Voss", "all Vosses"), ("to Mara Voss", "Voss, Mara"),
            ("у Прохора", "Прохор"), ("to Al-Rashid", "al rashid"), ("see Захару", "Захара"),
        ):  # fmt: skip
            self.assertEqual(lost(source_facts(source), text), [], source)
        for source, text in (("to Ann", "Joann"), ("to Bob", "Bo"), ("by Wilma", "Wim")):
            self.assertNotEqual(lost(source_facts(source), text), [], source)
        self.assertEqual(lost(source_facts("李说", ["李"]), "小李来了"), [])
        quoted = source_facts('so "the brass key"')
        self.assertEqual(lost(quoted, "The Brass key!"), [])
        self.assertEqual(lost(quoted, "key of brass, the"), quoted)

    def test_invented(self):
        """What is in neither source nor known names; headings and small numbers do not count."""
        source = 'Alice says: "I owe Bob twelve crowns."'
        for summary, known, expected in (
            ("Alice owes Bob 12 crowns.", (), []),
            ("1. Alice owes Bob.\n2. In Norvik he has 40.", (), ["Norvik", "40"]),
            ("Then Gustav Holm came.", ["Gustav Holm"], []),
            ("# The Key Facts\n**The Open Tasks**: the rent.\nThe Things To Do:", (), []),
            ('He said "Home to the Sea".', (), ["Home to the Sea", "Sea"]),
        ):
            self.assertEqual(invented(summary, source, known), expected, summary)

    def test_true_summaries_pass(self):
        """Of good summaries in fifteen languages none is asked for again."""
        for talk in TALKS:
            source, people = talk_of(talk)
            for text in talk["true"]:
                self.assertLessEqual(len(invented(text, source, people)), MOST_INVENTED, text)

    def test_false_ones_are_seen(self):
        """In scripts with capitals, most wrong names and digits are seen; in German fewer."""
        told = [
            (talk_of(talk), text)
            for talk in TALKS
            for text in talk["false"]
            if text.upper() != text.lower() and talk["language"] != "de"
        ]
        seen = [text for source, text in told if invented(text, *source)]
        self.assertGreater(len(seen), 0.7 * len(told))


class TestCovered(unittest.TestCase):
    def test_what_is_kept_elsewhere_is_not_appended(self):
        """The journal and the ledger count; what of a text is cut off counts as lost."""
        wanted = source_facts('so of Roland, Mara, 17 and "so be it"')
        summary = covered(wanted, "Roland came.", ["Mara sings."], 120, len)
        self.assertEqual(summary.text, f"Roland came.\n{APPENDIX_TITLE} 17 and.")
        self.assertEqual(summary.lost, ("17 and", "so be it"))
        self.assertEqual((summary.share, summary.named), (0.5, ("Roland", "Mara")))
        summary = covered(wanted, "It was late. " * 9 + "Roland, Mara.", (), 120, len)
        self.assertLessEqual(len(summary.text), 120)
        self.assertIn("Roland", summary.lost)
        self.assertEqual(covered((), "They met.", (), 100, len).share, 1.0)

    def test_quotations_are_shown_as_such(self):
        """What was quoted stands in quote marks."""
        wanted = source_facts('so "be it" to Mara')
        self.assertEqual(
            covered(wanted, "Hm.", (), 400, len).text, f'Hm.\n{APPENDIX_TITLE} "be it", Mara.'
        )

    @MANY
    @given(
        st.lists(st.builds(Fact, st.just("name"), st.text("abc ", min_size=1), st.just("x"))),
        st.integers(40, 400),
    )
    def test_cap(self, wanted, cap):
        """The line is one line within its share of the cap."""
        summary = covered(wanted, "Hm.", (), cap, len)
        text, _, line = summary.text.partition("\n")
        self.assertEqual((text, len(line.splitlines()) <= 1), ("Hm.", True))
        self.assertLessEqual(len(line), APPENDIX_SHARE * cap)


class TestRefusals(unittest.TestCase):
    def refused(self, text, source, people):
        """Whether a reply is no summary of a source."""
        try:
            finished(ModelReply(content=text), Task("", source, 10**6, 10**6), people, len, False)
        except ModelError:
            return True
        return False

    def test_refusals(self):
        """A text that keeps none of a talk's facts is no summary, in whatever language."""
        for talk in TALKS:
            source, people = talk_of(talk)
            if len(source_facts(talk["lines"])) < 2 * LEAST_KEPT:
                continue
            for refusal in ("Sorry, no.", "Das kann ich nicht.", "すみません。", "لا أستطيع."):
                with self.subTest(refusal=refusal, lines=talk["lines"][:40]):
                    self.assertTrue(self.refused(refusal, source, people))
            for summary in talk["true"]:
                with self.subTest(summary=summary):
                    self.assertFalse(self.refused(f"So. {summary}", source, people))

    def test_small_talk(self):
        """A talk of few facts may be summarised without any."""
        source = request_text([talk_line("Alice", "say", "Good evening, and good night.")])
        self.assertFalse(self.refused("They greeted each other.", source, ()))
