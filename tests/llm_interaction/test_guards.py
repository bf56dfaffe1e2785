"""What of a model's reply is sound."""

import unittest
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from evennia_ai.language.tables import tables
from evennia_ai.llm_interaction.contexts import CONTEXTS
from evennia_ai.llm_interaction.guards import (
    REPEATABLE_WORDS,
    SMALL_LINES,
    SMALL_SENTENCES,
    Around,
    guarded,
    known_lines,
    line_key,
    without_repeats,
)
from tests.growth import assert_not_square
from tests.strategies import FEW, awkward_texts

RULES = CONTEXTS["awake"].rules
AROUND = Around(
    others=("Bram", "Cora (old)"),
    known=frozenset({"good evening everybody", "my boat is called heron"}),
    rules=RULES,
    tools=("say", "look", "noop", "search_memory", "add_journal_entry"),
    own="Aria",
)
SMALL = replace(AROUND, is_small=True)
OPENING = "The bridge stands again."
LONG = 20_000
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def names_of(text, around=AROUND):
    """Which guards cut a reply."""
    return guarded(text, around).cuts


# Distinct words, so that nothing is said twice by chance; none is a tool's name.
some_word = st.text(LETTERS, min_size=3, max_size=9).filter(lambda each: each != "noop")
distinct = st.lists(some_word, min_size=4, max_size=12, unique=True)


class TestGuards(unittest.TestCase):
    @FEW
    @given(awkward_texts, st.booleans(), st.booleans())
    def test_a_beginning(self, text, is_cut_off, is_small):
        """Whatever a model says, what is kept is a beginning of it."""
        kept = guarded(text, replace(AROUND, is_cut_off=is_cut_off, is_small=is_small))
        self.assertTrue(text.startswith(kept.text))
        self.assertEqual(bool(kept.cuts), kept.text != text)

    @FEW
    @given(
        st.lists(st.sampled_from(["Bram: ", "Aria: ", '"', "\n", "so it is. ", "noop ", "ha "])),
        st.sampled_from([AROUND, SMALL]),
    )
    def test_twice(self, pieces, around):
        """What is sound stays so."""
        once = guarded("".join(pieces), around).text
        self.assertEqual(guarded(once, around).text, once)

    def test_what_one_guard_leaves(self):
        """It is sound to all of them, or the reply would be found unfit only when it is said."""
        long = "Smoke browned beams above worn oak tables, copper pots, brass lanterns, torn maps, "
        long += "dusty bottles, antlers, nets, candles, barrels, stools and one cracked mirror."
        other = "Its miller keeps brown goats, white geese and an old mule that bites strangers."
        around = Around(told=(f"{long} {other}",), own="Aria")
        for text in (f"{long} {other}", f"Well. {long} {other} So it is."):
            once = guarded(text, around)
            self.assertTrue(once.cuts)
            self.assertEqual(guarded(once.text, around), (once.text, ()))

    def test_labels_of_its_own(self):
        """A small model's bracketed labels; others may mean what they write."""
        rows = "The Lantern\nExits: door, stairs"
        for tail in ("[Current moment]", "\n[Dora]\nHello.", rows):
            text = f"{OPENING} {tail}"
            self.assertEqual(guarded(text, SMALL).text, OPENING)
            self.assertEqual(guarded(text, AROUND).text, text)

    @FEW
    @given(st.lists(st.tuples(st.sampled_from(AROUND.others), distinct), min_size=1, max_size=4))
    def test_lists(self, rows):
        """A list by name below a colon is the assistant's own; a talk made of it is not."""
        lines = [f"{name}: {' '.join(words)}" for name, words in rows]
        announced = "\n".join([f"{OPENING} These are the orders:", *lines])
        self.assertNotIn("speaks for others", names_of(announced))
        spoken = "\n".join([OPENING, *lines])
        self.assertEqual(guarded(spoken, AROUND).text, OPENING)
        for more in ('\nBram: "Mine!"', "\nBram says, Mine!", "\nThat is all.\nBram: Mine!"):
            kept = guarded(announced + more, AROUND).text
            self.assertNotIn("Mine", kept)

    @FEW
    @given(distinct, st.integers(3, 30))
    def test_loops(self, words, times):
        """A sentence that goes round and round is said once, if it is longer than a rhythm."""
        stretch = " ".join(words)
        found = guarded(" and then ".join([stretch] * times), AROUND)
        self.assertTrue(found.text.startswith(stretch))
        whole = times * (len(words) + 2) - 2 - (len(words) + 2)
        if whole >= max(2 * (len(words) + 2), 12):
            self.assertLess(len(found.text), len(stretch) * 2 + 10)
            self.assertEqual(found.cuts, ("repeats itself",))

    @FEW
    @given(distinct, distinct, st.sampled_from(".!?"))
    def test_said_again(self, words, others, end):
        """A sentence is not said again, near or far; one of a few words not a third time."""
        assume(not {*words} & {*others})
        again, other = " ".join(words) + end, " ".join(others) + end
        for before in ("", "Oh. "):
            text = f"{before}{again} {other} {again} Three."
            self.assertEqual(guarded(text, AROUND).text, f"{before}{again} {other}")
        short = " ".join(words[:2]) + end
        text = f"{short} One. {short} Two. ({short} Three."
        self.assertEqual(guarded(text, AROUND).text, f"{short} One. {short} Two.")

    @FEW
    @given(distinct, distinct)
    def test_refrains(self, words, others):
        """A line of a song may return once behind another line; small models do not sing."""
        assume(not {*words} & {*others})
        again, other = " ".join(words), " ".join(others)
        song = f"{again}\n{other}\n{again}"
        self.assertEqual(guarded(song, AROUND).text, song)
        self.assertEqual(guarded(song, SMALL).text, f"{again}\n{other}")
        for more in (f"\n{other}x\n{again}", f"\n{again}"):
            self.assertEqual(guarded(song + more, AROUND).text, (song + more)[: -len(again) - 1])

    def test_the_same_words_that_tell_something_else(self):
        """Who does it to whom, from where, when and how many; one part may move."""
        for one, other in (
            ("Bob owes Mira three coins.", "Mira owes Bob three coins."),
            ("It is two days from Harlow to Marn.", "It is two days from Marn to Harlow."),
            ("We have three sheep and two goats.", "We have two sheep and three goats."),
            ("The ferry goes before the noon bell.", "The ferry goes after the noon bell."),
            ("Go up the stairs to the tower, friend.", "Go down the stairs to the tower, friend."),
            ("The cat is in the house tonight.", "The cat is out of the house tonight."),
            ("The mill is the pride of Marn.", "The mill was the pride of Marn."),
            ("Die Fähre fährt vor dem Läuten ab.", "Die Fähre fährt nach dem Läuten ab."),
        ):
            with self.subTest(other):
                self.assertEqual(guarded(f"{one} {other}", AROUND).text, f"{one} {other}")
                told = replace(AROUND, known=frozenset({line_key(one)}))
                self.assertEqual(guarded(other, told).text, other)
        text = "At noon the ferry leaves the pier. The ferry leaves the pier at noon."
        self.assertEqual(names_of(text), ("repeats itself",))

    @FEW
    @given(st.lists(distinct, min_size=1, max_size=12), st.sampled_from([" ", "\n"]))
    def test_brief(self, sentences, gap):
        """A small model says a few sentences on a few lines."""
        said = [f"{LETTERS[n] * 4} {' '.join(words)}." for n, words in enumerate(sentences)]
        most = SMALL_SENTENCES if gap == " " else SMALL_LINES
        around = Around(is_small=True)
        self.assertEqual(guarded(gap.join(said), around).text, gap.join(said[:most]))

    def test_echoes(self):
        """Each sentence was said just now, whatever the marks; with something new it is said."""
        self.assertEqual(names_of("Good evening, everybody!"), ("says what was just said",))
        text = "Good evening everybody. My boat is called Heron."
        self.assertEqual(guarded(text, AROUND).text, "")
        self.assertEqual(guarded(f"{text} And yours?", AROUND).text, f"{text} And yours?")

    def test_any_long_text(self):
        """Whatever a model repeats for pages is read in a time that its length accounts for."""
        units = ["a\n", "a. ", "他。", "(", "\n", "#", "hp: 1\n", "Aria\n", "Bram: ", "options\n"]
        prose = " ".join(f"w{n} x{n} y{n} of the w{n + 1}." for n in range(900))
        signs = "".join(chr(0x4E00 + n * 37 % 5000) + "。" * (n % 9 == 8) for n in range(LONG))

        def work(text):
            guarded(text, AROUND)
            for table in tables().values():
                table.expression("speech", "aside").search(f"Hi {text}")

        for text in (prose, signs, *(unit * LONG for unit in units)):
            with self.subTest(text[:9]):
                assert_not_square(work, lambda size, text=text: text[:size], LONG)


class TestSummaries(unittest.TestCase):
    @FEW
    @given(st.lists(distinct, min_size=1, max_size=5), st.sampled_from([" ", "\n"]), st.data())
    def test_repeats(self, sentences, gap, data):
        """Each sentence of four words and more stays where it first stood; nothing else changes."""
        told = [f"{' '.join(words)} so{LETTERS[n]}." for n, words in enumerate(sentences)]
        again = data.draw(st.lists(st.sampled_from(told)))
        self.assertEqual(without_repeats(gap.join(told)), gap.join(told))
        found = without_repeats(gap.join([*told, *again, "So it was."]))
        self.assertEqual(found.split(), gap.join([*told, "So it was."]).split())

    @FEW
    @given(awkward_texts)
    def test_any_text(self, text):
        """What was told once is not changed again."""
        once = without_repeats(text)
        self.assertEqual(without_repeats(once), once)


class TestKnownLines(unittest.TestCase):
    def test_own_lines(self):
        """A word may be said three times, a short line twice, a long one once to each person."""
        long, aye = "The ferry leaves when the bell has rung three times.", "Aye, so it is."
        self.assertGreater(len(long.split()), REPEATABLE_WORDS)
        for text, most in (("Aye.", 3), (aye, 2), (long, 1)):
            self.assertEqual(known_lines([(text, True)] * (most - 1), [], []), frozenset())
            self.assertEqual(known_lines([(text, True)] * most, [], []), {line_key(text)})
        self.assertEqual(known_lines([(long, False)] * 3, [], []), frozenset())

    def test_replies_without_a_word(self):
        """Brackets and quotes alone are nothing; marks that mean something stay."""
        telling = ("...", "!", "?", "\U0001f600", "7")
        for text in ("{", '{"', "[ ]", "```", "<|", "- -", '""', *telling):
            self.assertEqual(guarded(text, AROUND).text, text if text in telling else "")

    def test_own_lines_of_a_small_model(self):
        """None of its longer sentences comes again, whoever is spoken to."""
        said = [("I keep this old house. Sit down! So it is, my friend.", False)]
        found = known_lines(said, [], [], is_small=True)
        for sentence, is_known in (
            ("I keep this old house.", True),
            ("So it is, my friend!", True),
            ("Sit down!", False),
        ):
            kept = guarded(sentence, Around(known=found)).text
            self.assertEqual(kept, "" if is_known else sentence)
        for lines, keys in (
            (["The Lantern.", "Good ale!"], {"good ale"}),
            (["Hello!"], {"hello"}),
            (["Hallo!"], {"hallo"}),
            (["Yes."], set()),
        ):
            newest = known_lines([(line, True) for line in lines], [], [], is_small=True)
            self.assertEqual(newest, keys)

    def test_what_a_small_model_says_behind(self):
        """A phrase is cut from its second time on; the asker's own words are no answer."""
        said, heard = (
            "Welcome! Is there anything else you need?",
            "I come from Oxmoor and sell rye.",
        )
        question = "What do I sell?"
        known = known_lines([(said, True)], [heard, question], [question], is_small=True)
        for text, small, large in (
            ("The ale is fresh. Is there anything else you need?", "The ale is fresh.", ...),
            ("I come from Oxmoor.", "", ...),
            ("Is there anything else you need? The ale is fresh.", "", ...),
            ("You sell rye.", ..., ...),
            ("Rye, from Oxmoor.", ..., ...),
        ):
            for is_small, kept in ((True, small), (False, large)):
                around = Around(known=known, is_small=is_small)
                self.assertEqual(guarded(text, around).text, text if kept is ... else kept)

    def test_lines_of_others(self):
        """Lines of three words, but for a short one that is answered."""
        heard = ["Good evening, everybody.", "Hello there!", "I am Bram."]
        answered = ["I am Bram."]
        self.assertEqual(known_lines([], heard, answered), {"good evening everybody"})
        for asked in ("Who are you?", "你是谁在这里呢？"):  # a question is no greeting
            self.assertEqual(known_lines([], [asked], [asked]), {line_key(asked)})
