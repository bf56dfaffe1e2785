"""A reply is heard whole, in poses and words in their order, or it is no answer."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.language.script import words
from evennia_ai.llm_interaction.reply import (
    CLEANED_CHARS,
    ECHO,
    MACHINE_TEXT,
    REPLY_CHARS,
    REPLY_PIECES,
    SAYS_NOTHING,
    SPEAKS_FOR_OTHERS,
    clean_reply,
    fault,
    pieces,
    speakable,
    strip_markup,
    strip_quotes,
)
from tests.growth import assert_not_square
from tests.strategies import FEW, MANY

ME, OTHERS = "Aria", ("Bram", "Cora (old)")
OWN_LINE = "The ferry leaves at noon, from the old pier."
HEARD = ("Good evening to you, Aria!", "What is my boat called, Aria?")


def heard(text):
    """What is heard of a reply: its words as texts, its poses with a star in front."""
    shown = pieces(clean_reply(text, [ME]), ME)
    return [piece.text if piece.is_spoken else f"*{piece.text}" for piece in shown]


def fault_of(text):
    return fault(clean_reply(text, [ME]), OWN_LINE, HEARD, OTHERS, ME)


# What people and characters say: menus, quotations, songs, signs, asides, and words that a machine
# might write, too. Each is one piece of speech.
HONEST = (
    "What will it be?\n1. Perry, one penny\n2. Stout, two\n3. The pump, for nothing",
    "a) the short road, b) the dry one, c) no road at all. Pick.",
    'Bram says: "The mill burnt down." Word for word, that is all he said.',
    'Cora wrote: "Meet me at the ford." I never went.',
    "The user of this oar needs two good arms.",
    "An AI, you say? Never met one. Does it pay its debts?",
    "As a language teacher, I would say it otherwise.",
    "Hey ho, hey ho, the wind is in the barley; hey ho, hey ho, and home is far away.",
    "La la la.\nLa la la.\nThat is all that I remember of it.",
    "Row and row and row and row. That was my youth.",
    "No. No. And no.",
    "The sign reads:\n---\nWanted: one cook, sober.\n---\nIt has hung there since May.",
    "=====\nThat is how he draws a wall.",
    "And so it ends: Yours truly, Aria. Then she sealed it.",
    '"Duck!" she cried. He did not. The mast swung over, and there my tale ends.',
    '"Aria," my mother said, "Aria, you talk too much." And she went on for an hour.',
    "Two rules hold here: no knives, no songs about the harbour master.",
    "Note: the ice is thin. I say it every year.",
    "Warning: wet paint.",
    "You would not know it, but I built this house, and I like it so.",
    "OOC they shout in his village, whatever an ooc may be.",
    "Out of character, that was. He is a mild man.",
    "These are the debts:\nBram: four pence\nCora (old): a goose\nPay by Sunday.",
    "The crank turns the wheel (the small one), and that is its function.",
    "He wrote: 'Come alone. Bring the key.'",
    "Tools? A chisel, a rasp, and a search for my spectacles.",
    "Call me tomorrow; call Bram today. A call costs nothing.",
    "It is 7:45 by the tower, [more or less], and the coach leaves at 8:10.",
    "Six times nine is fifty-four, less 4 is 50; give me 50, then.",
    "2 * 3 * 4 is 24, and 5 > 4 > 3.",
    "SHE YELLED 'WOLF' AND WE RAN. It was the baker's dog.",
    "Hm... well. Hm. Yes... yes, I think so!",
    "<The old runes begin like this> and then the stone is broken.",
    "A heart is drawn as <3 by the young.",
    "{So the mason marks a door: {}} Odd folk, masons.",
    'He counts like this: {"eggs": 12}. A strange clerk.',
    "System? My system is: whoever shouts last waits longest.",
    "Instructions for the oven: door shut, mouth shut, wait.",
    "User, abuser, what is the difference in dice?",
    "Assistant to the mayor, that is what he calls himself.",
    "I can't help you there, I'm afraid: both my hands are in the dough.",
    "I cannot assist in a murder, my lord. A small theft, perhaps.",
    "I'm sorry, but I have no room left tonight.",
    "Thinking about it: the ladder stood in the barn. The barn is gone.",
    "Let me think. The user's guild meets on Mondays.",
    "Final answer: no.",
    "Summary of my week: rain, rain, a christening, rain.",
    "Riddle me this: what has a bed and never sleeps?",
    "Dear diary, I began, and then the candle went out.",
    "Action! Courage! And mood: fair to middling!",
    "Mood: sour. Trust: none. That is how he plays.",
    "I was mistaken. I said the ninth; it was the tenth.\nSo the fair was over.",
    "Verse, then:\nThe frost came in on silver shoes,\nThe clock struck one, the clock struck two.",
    "Of Bram and Cora I trust Cora: she counts twice.",
    "I think you should go. I think you want to. I think it is late.",
    "That depends: do you dance?\nIf you do, stay.\nIf not, the door is there.",
    "Der Schmied sagte: „Das Eisen ist kalt.“ Mehr weiß ich nicht.",
    "Le meunier a dit : « Le pont est fermé. » Je le crois.",
    "La vecina gritó: «¡Fuego!» Y no había nada.",
    "Он сказал: «Мост сгорел». Больше я не знаю.",
    "漁師は「網が切れた」と言いました。それだけです。",
    "磨坊主说：“水停了。”我只知道这些。",
    "뱃사공이 말했어요: \u201c배가 가라앉았다.\u201d 그게 다예요.",
    "قال الحارس: «أغلق الباب». هذا كل ما أعرفه.",
    "Choose: stay, leave, or sing.\n- stay is free\n- leave is free\n- singing costs",
    "http://mill.example is what he carved, whatever that means.",
    "#1 of my rules is that there is no #2.",
    "~ is how we write water.",
    "My name? Aria. Aria it was, Aria it stays.",
    "She is Aria, too: Aria of the Marsh.",
    "Psst: they listen.",
    "7",
    "Aye.",
)
# What a model wrote, and what is heard of it.
POSED = (
    ("*looks up* You again? *sighs*", ["*looks up", "You again?", "*sighs"]),
    (
        "*slides the mug over* Two pence, dear. *winks* Or a song.",
        ["*slides the mug over", "Two pence, dear.", "*winks", "Or a song."],
    ),
    ("*nods*\nAye.\n*pours*\nHere.", ["*nods", "Aye.", "*pours", "Here."]),
    ("*Smiles warmly.* Well met.", ["*smiles warmly.", "Well met."]),
    ("***nods*** Aye.", ["*nods", "Aye."]),
    ("*bows*", ["*bows"]),
    ("*Aria bows.* Well met.", ["*bows.", "Well met."]),
    ("*She bows.* Well met.", ["*bows.", "Well met."]),
    ("*Aria's eyes widen.* Well met.", ["*'s eyes widen.", "Well met."]),
    ('*bows* "Well met." *smiles* "Sit."', ["*bows", "Well met.", "*smiles", "Sit."]),
    ("*sonríe* Hola.", ["*sonríe", "Hola."]),
    ("*微笑*你好。*倒茶*请。", ["*微笑", "你好。", "*倒茶", "请。"]),
    ("Aria: *bows* Hello.", ["*bows", "Hello."]),
    ("*waves* and off you go", ["*waves", "and off you go"]),
    # Stressed words, and stars that are none.
    ("That is *very* good.", ["That is very good."]),
    ("*Very* good, that.", ["Very good, that."]),
    ("I said *no*, and no it is.", ["I said no, and no it is."]),
    ("Mind the step, *friend*.", ["Mind the step, friend."]),
    ("I owe *you*", ["I owe you"]),
    ("2*3*4 is 24", ["2*3*4 is 24"]),
    ("Well met. *bows", ["Well met. *bows"]),
    ("*", []),
)


class TestHeardWhole(unittest.TestCase):
    def test_speech(self):
        """Honest speech is one piece, with all its words in their order, and an answer."""
        self.assertGreaterEqual(len(HONEST), 30)
        for text in HONEST:
            with self.subTest(text):
                [said] = heard(text)
                self.assertEqual(words(said), words(text))
                self.assertEqual(fault_of(text), "")

    def test_poses(self):
        """What is done is a pose, what is said is speech, in their order."""
        for text, shown in POSED:
            with self.subTest(text):
                self.assertEqual(heard(text), shown)

    @MANY
    @given(st.text(st.sampled_from('*_()"\u201c\u201d aA.!,;:\nb é\u5fae\u3002'), max_size=40))
    def test_any_text(self, text):
        """Whatever stands between marks, no letter is lost, doubled or moved."""
        letters = [sign for sign in text.lower() if sign.isalnum()]
        shown = "".join(heard(text)).lower()
        self.assertEqual([sign for sign in shown if sign.isalnum()], letters)

    @FEW
    @given(
        st.lists(
            st.tuples(st.booleans(), st.sampled_from(("nods", "sits by you", "waves"))),
            min_size=1,
            max_size=6,
        )
    )
    def test_order(self, parts):
        """Poses and sentences in any order are heard in that order."""
        text = " ".join(f"*{what}*" if is_pose else f"He {what}." for is_pose, what in parts)
        shown = [
            row for is_pose, what in parts for row in [f"*{what}" if is_pose else f"He {what}."]
        ]
        merged = []
        for row in shown:  # sentences that follow each other are one piece
            if merged and not row.startswith("*") and not merged[-1].startswith("*"):
                merged[-1] += f" {row}"
            else:
                merged.append(row)
        self.assertEqual(heard(text), merged)


class TestLabels(unittest.TestCase):
    def test_its_own_name(self):
        """One label of its own goes; as a part of a sentence the name stays."""
        for text, said in (
            ("Aria: Hello.", "Hello."),
            ("aria : Hello.", "Hello."),
            ("ARIA\uff1a Hello.", "Hello."),
            ("[Aria] Hello.", "Hello."),
            ("[Aria]: Hello.", "Hello."),
            ("<Aria> Hello.", "Hello."),
            ("**Aria:** Hello.", "Hello."),
            ("**Aria**: Hello.", "Hello."),
            ("**Aria** (smiling): Hello.", "Hello."),
            ("Aria (whispers to you): Hello.", "Hello."),
            ("[2026-11-28 16:40] Aria: Hello.", "Hello."),
            ('Aria says: "Hello."', "Hello."),
            ('Aria says, "Hello."', "Hello."),
            ('Aria whispers to you: "Hello."', "Hello."),
            ("Aria: Aria: Hello.", "Aria: Hello."),
            ("Aria: Bram: mine!", "Bram: mine!"),
            ("Aria, your boat is the Heron.", "Aria, your boat is the Heron."),
            ("Good night, Aria.", "Good night, Aria."),
            ("I am Aria.", "I am Aria."),
            ("Aria says hello.", "Aria says hello."),
            ("Ariadne: a name.", "Ariadne: a name."),
            ("He said: Aria: come!", "He said: Aria: come!"),
            ("Bram: Hello.", "Bram: Hello."),
            ("Assistant: Hello.", "Assistant: Hello."),
        ):
            with self.subTest(text):
                self.assertEqual(clean_reply(text, [ME]), said)
        self.assertEqual(clean_reply("Aria: Hello."), "Aria: Hello.")
        self.assertEqual(clean_reply("A+: Hello.", ["A+"]), "Hello.")

    def test_outer_quotes_go(self):
        """One pair of quote marks around all of it goes, of any kind; inner ones stay."""
        for text, said in (
            ('"Hello."', "Hello."),
            ("\u201cHello.\u201d", "Hello."),
            ("„Guten Abend.“", "Guten Abend."),
            ("« Bonsoir. »", "Bonsoir."),
            ("「やあ」", "やあ"),
            ('"Hi," he said, "you."', '"Hi," he said, "you."'),
            ('"Hi there.', "Hi there."),
            ('Hi there."', "Hi there."),
            ('It is 6" long.', 'It is 6" long.'),
            ('"', '"'),
        ):
            self.assertEqual(strip_quotes(text), said)


class TestFaults(unittest.TestCase):
    """What is no answer; the list is frozen."""

    def assert_faults(self, why, texts):
        for text in texts:
            with self.subTest(text):
                self.assertEqual(fault_of(text), why)

    def test_nothing(self):
        """A reply without a word; one word or number is an answer."""
        self.assert_faults(SAYS_NOTHING, ("", " \n", "...", "?!", '""', "**", "- -", "[ ]", "{}"))
        self.assert_faults("", ("Aye.", "7", "Hm...", "好", "نعم", "é"))

    def test_marks(self):
        """Control tokens, tags and the prompt's own notes; not signs that people write."""
        self.assert_faults(
            MACHINE_TEXT,
            (
                "Aye.<|im_end|>",
                "<\uff5cend\u2581of\u2581sentence\uff5c> Aye.",
                "Aye. <|eot",
                "[INST] Aye.",
                "Aye. [/INST]",
                "[TOOL_CALLS] Aye.",
                "<tool_call>give",
                "Aye.</s>",
                "<think>Bram greets me.",
                '<say to="Bram">Aye.</say>',
                "<noop/>",
                "(Here: Alice, Bram)",
                "Aye.\n(Now: noon, Sunday)",
                "(You remember, m1abc, 2 months ago: Alice: My boat.) Heron.",
                "(You notice: Alice arrives.)",
                "(What happened before, summary s1:\n- Alice came.",
                "(Time passes: 2 days)\nAye.",
                "(Answer in: German)",
                "(Once more: Speak up.)",
            ),
        )
        self.assert_faults(
            "",
            (
                "<3",
                "I have < ten and > five pence.",
                "<They draw it so> and I cannot read it.",
                "(Now and then he laughs.)",
                "He said: (Here: nobody).",
                "[F1] is what it says, [INN] below.",
                "a | b | c, three doors.",
                "You remember: it rained.",
            ),
        )

    def test_echoes(self):
        """Its newest line or the line it answers, word for word, with five words and more.

        Names of those present do not count.
        """
        self.assert_faults(
            ECHO,
            (
                OWN_LINE,
                "the ferry leaves at noon from the OLD pier",
                HEARD[1],
                "What is my boat called? Aria",
                "Bram, what is my boat called?",
                f'"{HEARD[1]}"',
            ),
        )
        self.assert_faults(
            "",
            (
                f"{OWN_LINE} Be there.",
                "The ferry leaves at noon, from the new pier.",
                "Good evening to you, Bram!",
                "What is my boat called?" + " Hm.",
            ),
        )
        for line in ("Good evening!", "So it is, friend."):
            self.assertEqual(fault(line, line, [line], OTHERS), "")

    def test_speaking_for_others(self):
        """A line that begins with somebody else's name and a colon, outside quotes and lists."""
        self.assert_faults(
            SPEAKS_FOR_OTHERS,
            (
                "Bram: An ale!",
                "bram : An ale!",
                "**Bram:** An ale!",
                "**Bram**: An ale!",
                "[Bram]: An ale!",
                "Bram (whispers to you): An ale!",
                "Bram\uff1aAn ale!",
                "Well met.\nBram: An ale!",
                "Well met.\n\n  Cora (old): An ale!",
                "Aria: Bram: An ale!",
                'He said "no".\nBram: An ale!',
                "The debts:\nBram: four\nThat is all.\nBram: An ale!",
            ),
        )
        self.assert_faults(
            "",
            (
                "Bram, an ale: here.",
                "Bramble: a thorn.",
                "I told Bram: no.",
                "Dora: a friend of mine.",
                'I read "Come.\nBram: An ale!" and went.',
                "I read \u201cCome.\nBram: An ale!\u201d and went.",
                "The debts:\nBram: four\nCora (old): none",
                "The debts\uff1a\n- Bram: four\n- Cora (old): none",
            ),
        )
        self.assertEqual(fault("Bram: An ale!", "", [], ()), "")

    @FEW
    @given(st.text(st.sampled_from("abc \n\u5fae.!"), max_size=60))
    def test_plain_words(self, text):
        """Any words without marks and names are an answer."""
        self.assertEqual(bool(fault_of(text)), not words(text))


class TestMarkup(unittest.TestCase):
    def test_markdown_becomes_text(self):
        """Each kind of markup leaves its words only."""
        pairs = {
            "# Title #1": "Title #1",
            "**Bold** and __both__ and _low_": "Bold and both and low",
            "- one\n* two\n\u2022 three": "one\ntwo\nthree",
            "1. one\n2) two": "1. one\n2) two",
            "> quoted": "quoted",
            "```python\nx = 1\n```": "x = 1",
            "`code` ~~gone~~": "code gone",
            "[here](http://a.b/c_(d)) ![alt](x.png)": "here alt",
            "<https://a.b>": "https://a.b",
            "one<br>two": "onetwo",
            r"\boxed{Two ales.}": "Two ales.",
            "a\n\n---\n\nb": "a\nb",
            "snake_case and a_b_c": "snake_case and a_b_c",
            "two  blanks": "two blanks",
        }
        for marked, plain in pairs.items():
            with self.subTest(marked):
                self.assertEqual(strip_markup(marked), plain)

    def test_control_and_ansi_go(self):
        """No control character, colour code or direction mark reaches a terminal."""
        text = "\x1b[31mred\x1b[0m\x07 \x1b]0;title\x07a\tb\r\nc\u202ed\x9b"
        self.assertEqual(clean_reply(text), "red a b\ncd")

    @MANY
    @given(st.text(alphabet=st.sampled_from("*_`~[]()<>#- ab\n\"'\\!|\x1b[m"), max_size=200))
    def test_never_raises_nor_leaves_controls(self, text):
        """Any mixture of signs is cleaned without an error, to text without control signs."""
        cleaned = clean_reply(text, [ME])
        self.assertFalse(any(ord(sign) < 32 and sign != "\n" for sign in cleaned))
        for piece in pieces(cleaned, ME):
            self.assertTrue(any(map(str.isalnum, piece.text)))

    def test_a_runaway(self):
        """Only its beginning is read."""
        self.assertEqual(len(clean_reply("x" * 10 * CLEANED_CHARS)), CLEANED_CHARS)


class TestSpeakable(unittest.TestCase):
    def test_borders(self):
        """A line break is taken before a later sentence end, that before a later word."""
        first = "Aaaa bbbb cc " * 30
        for text, shown in (
            (f"{first}cc\nDd. Ee. {first}{first}", f"{first}cc"),
            (f"{first}cc. Ee ff {first}{first}", f"{first}cc."),
            (f"{first}cc ee {'f' * 300}", f"{first}cc ee"),
            ("f" * 700, "f" * REPLY_CHARS),
            (first, first.strip()),
        ):
            self.assertEqual(speakable(text)[0][0], shown)

    @MANY
    @given(st.lists(st.text(max_size=90) | st.sampled_from((" ", "\n", ". ")), max_size=90))
    def test_pieces_hold_the_text(self, parts):
        """Pieces are within limits and, with what is left out, hold every letter in order."""
        text = "".join(parts) * 9
        shown, left_out = speakable(text)
        self.assertLessEqual(len(shown), REPLY_PIECES)
        self.assertTrue(all(0 < len(piece) <= REPLY_CHARS for piece in shown))
        letters = "".join("".join(shown).split())
        body = text.strip()
        left = body[len(body) - left_out :]
        self.assertEqual(letters + "".join(left.split()), "".join(text.split()))

    def test_everything_left_out_is_counted(self):
        """What a runaway reply lacks is told."""
        shown, left_out = speakable("abcd " * 200_000)
        self.assertEqual(len(shown), REPLY_PIECES)
        self.assertGreater(left_out, 990_000)

    def test_time_is_bounded(self):
        """The time to clean, split and judge the worst texts does not grow with their square."""

        def work(text):
            shown = clean_reply(text, [ME])
            speakable(text)
            pieces(shown, ME)
            fault(shown, OWN_LINE, HEARD, OTHERS)

        for piece in (
            "word. ",
            "<think>",
            "[",
            "**a ",
            "*a ",
            "*a* ",
            "_a",
            "- ",
            "Bram: a\n",
            "(",
            "<",
        ):
            with self.subTest(piece):
                assert_not_square(
                    work, lambda size, piece=piece: (piece * size)[:size], CLEANED_CHARS
                )
