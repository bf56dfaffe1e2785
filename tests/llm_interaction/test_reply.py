import unittest

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evennia_ai.llm_interaction.reply import (
    REPLY_PIECES,
    clean_reply,
    is_refusal,
    speakable,
    strip_markup,
    strip_quotes,
    told_apart,
)
from tests.growth import assert_not_square
from tests.strategies import FEW


class TestLabels(unittest.TestCase):
    def test_its_own_name(self):
        """As a label it goes, and as a call at the beginning or the end; elsewhere it stays."""
        for text, said in (
            ("Aria: Hello.", "Hello."),
            ("aria : Hello.", "Hello."),
            ("[Aria] Hello.", "Hello."),
            ("[Aria]: Hello.", "Hello."),
            ("<Aria> Hello.", "Hello."),
            ('Aria says, "Hello."', "Hello."),
            ('Aria [o7.x] says: "Hello."', "Hello."),
            ("Aria replies: Hello.", "Hello."),
            ("Assistant: Hello.", "Hello."),
            ("**Aria:** Hello.", "Hello."),
            ("Aria, your boat is the Heron.", "Your boat is the Heron."),
            ("Good night, Aria.", "Good night."),
            ("Good night, Aria. Sleep well.", "Good night. Sleep well."),
            ("aria، وصلت السفينة", "وصلت السفينة"),
            ("Good evening Aria!", "Good evening!"),
            ("I am Aria.", "I am Aria."),
            ("I am Aria, at your service.", "I am Aria, at your service."),
            ("Aria!", "Aria!"),
            ("Aria, ...", "Aria, ..."),
            ("I like music, Aria", "I like music"),
            ("I like music,", "I like music."),
        ):
            with self.subTest(text=text):
                self.assertEqual(clean_reply(text, ["Aria"]), said)

    def test_outer_quotes_go(self):
        """One pair of quote marks around all of it goes, of any kind; inner ones stay."""
        self.assertEqual(strip_quotes('"Hello."'), "Hello.")
        self.assertEqual(strip_quotes("\u201cHello.\u201d"), "Hello.")
        self.assertEqual(strip_quotes('"Hi," he said, "you."'), '"Hi," he said, "you."')
        self.assertEqual(strip_quotes('"'), '"')
        self.assertEqual(strip_quotes('"Hi there.'), "Hi there.")
        self.assertEqual(strip_quotes('Hi there."'), "Hi there.")
        self.assertEqual(strip_quotes('It is 6" long.'), 'It is 6" long.')

        # A reply that mimics our quoted lines loses the escapes as well.
        self.assertEqual(strip_quotes(r'"He said \"no\"."'), 'He said "no".')


class TestMarkup(unittest.TestCase):
    def test_markdown_becomes_text(self):
        """Each kind of markup leaves its words only."""
        pairs = {
            "# Title #1": "Title #1",
            "**Bold** and *thin* and __both__ and _low_": "Bold and thin and both and low",
            "- one\n* two\n\u2022 three": "one\ntwo\nthree",
            "> quoted": "quoted",
            "```python\nx = 1\n```": "x = 1",
            "`code` ~~gone~~": "code gone",
            "[here](http://a.b/c_(d)) ![alt](x.png)": "here alt",
            "<https://a.b>": "https://a.b",
            "one<br>two": "onetwo",
            r"\boxed{Two ales.}": "Two ales.",
            "a\n\n---\n\nb": "a\nb",
        }
        for marked, plain in pairs.items():
            with self.subTest(marked):
                self.assertEqual(strip_markup(marked), plain)

    def test_control_and_ansi_go(self):
        """No control character, colour code or direction mark reaches a terminal."""
        text = "\x1b[31mred\x1b[0m\x07 \x1b]0;title\x07a\tb\r\nc\u202ed\x9b"
        self.assertEqual(clean_reply(text), "red a b\ncd")

    @given(st.text(alphabet=st.sampled_from("*_`~[]()<>#- ab\n\"'\\!|\x1b[m"), max_size=200))
    @settings(max_examples=300)
    def test_never_raises_nor_leaves_controls(self, text):
        """Any mixture of signs is cleaned without an error, to text without control signs."""
        cleaned = clean_reply(text, ["Aria"])
        self.assertFalse(any(ord(sign) < 32 and sign != "\n" for sign in cleaned))


class TestSpeakable(unittest.TestCase):
    def test_paragraph_border_is_preferred(self):
        """A line break late in the piece is taken before a later sentence end."""
        self.assertEqual(speakable("Aaaa bbbb cc\nDd. Ee ff", limit=16)[0][0], "Aaaa bbbb cc")

    @given(st.text(max_size=300), st.integers(1, 60), st.integers(1, 5))
    @settings(max_examples=300)
    def test_pieces_hold_the_text(self, text, limit, most):
        """Pieces are within limits and, with what is left out, hold every letter in order."""
        text = clean_reply(text)
        assume(clean_reply(text) == text)
        pieces, left_out = speakable(text, (), limit, most)
        self.assertLessEqual(len(pieces), most)
        self.assertTrue(all(0 < len(piece) <= limit for piece in pieces))
        letters = "".join("".join(pieces).split())
        left = text[len(text) - left_out :]
        self.assertEqual(letters + "".join(left.split()), "".join(text.split()))

    def test_time_is_bounded(self):
        """The time to clean, split and judge the worst texts does not grow with their square."""
        for piece in ("word. ", "<think>", "[", "**a ", "*", "</think>", "_a", "- "):
            assert_not_square(
                lambda text: (speakable(text, ["Aria"]), is_refusal(text)), piece.__mul__, 80_000
            )

    def test_everything_left_out_is_counted(self):
        """What a runaway reply lacks is told, the part that was never cleaned included."""
        pieces, left_out = speakable("abcd " * 200_000)
        self.assertEqual(len(pieces), REPLY_PIECES)
        self.assertGreater(left_out, 990_000)

    def test_refusals(self):
        """Usual ones are seen; a text that only tells of refusing, or is long, is an answer."""
        for text in (
            "I'm sorry, but I can't help with that request.",
            "I cannot assist with that.",
            "I can\u2019t summarize this conversation.",
            "As an AI language model, I cannot do so.",
            "Unfortunately, I am unable to continue.",
            "This request violates the policy.",
            "I apologize, but no.",
        ):
            with self.subTest(text):
                self.assertTrue(is_refusal(text))
        for text in (
            "Alice asked for ale. Aria said she can't help her with the debt.",
            "Bob is sorry about the mug.",
            "I'm sorry for Bob. " + "He lost his dog in the great storm. " * 40,
            "",
        ):
            self.assertFalse(is_refusal(text))


# What a model wrote, what is said, and the pose.
TOLD = (
    ("*smiles warmly* Well met.", "Well met.", "smiles warmly"),
    ("*Smiles warmly.* Well met.", "Well met.", "smiles warmly"),
    ("_nods_ Well met.", "Well met.", "nods"),
    ("**smiles** Well met.", "Well met.", "smiles"),
    ("(laughs) Well met.", "Well met.", "laughs"),
    ("Well met. *bows*", "Well met.", "bows"),
    ("*bows*", "", "bows"),
    ("*Aria bows.* Well met.", "Well met.", "bows"),
    ("*She bows.* Well met.", "Well met.", "bows"),
    ("*Aria's eyes widen.* Well met.", "Well met.", "'s eyes widen"),
    ("*nods* Aye. *pours an ale* Here.", "Aye. Here.", "nods, pours an ale"),
    ("*sonríe* Hola.", "Hola.", "sonríe"),
    ("*\u5fae\u7b11*\u4f60\u597d\u3002", "\u4f60\u597d\u3002", "\u5fae\u7b11"),
    ("*I smile at you.* Well met.", "Well met.", ""),
    ('*Aria looks up.* "Well met." *She bows.*', "Well met.", "looks up, bows"),
    ('Aria looks up. "Well met." She bows.', "Well met.", "looks up, bows"),
    ('"Aye!" She nods. "And you?"', "Aye! And you?", "nods"),
    ('"Aye," says Aria. "And you?"', "Aye, And you?", ""),
    ('*bows* "Well met." And welcome.', "Well met. And welcome.", "bows"),
    ("\u201cAye!\u201d Aria nods.", "Aye!", "nods"),
    ('"Aye," Aria says, "so it is."', "Aye, so it is.", ""),
    ("Well met.\n*Bram sits down and eats.*", "Well met.", ""),
    ("*The fire crackles.*\nWell met.", "Well met.", ""),
    ("*Aria wipes the bar.*\nWell met.", "Well met.", "wipes the bar"),
    ('"Aye." They left. "And', "Aye. And", "left"),
)
# What is speech alone, whatever its marks stress.
SPEECH = (
    "That is *very* good.",
    "*Very* good.",
    "*Stop!* No further.",
    "I said *no*, and no it is.",
    "*Never.*",
    "*Ale is good.*",
    "*The ale is good.*",
    "Mind the step, *friend*.",
    "2 * 3 * 4 is 24.",
    'She told me "no" yesterday.',
    '"The Old Mill" is what we call it.',
    'He said: "Away with you." So I went.',
    '"Who goes there?" was all I said.',
    '"Aye." Bram nods.',
    "I know Mia (she is my sister).",
    "Well met.\nSit down.",
)


class TestToldApart(unittest.TestCase):
    def test_poses(self):
        """What is done is a pose, what is said is speech."""
        for text, *told in TOLD:
            with self.subTest(text):
                self.assertEqual(told_apart(text, ["Aria"]), tuple(told))
        for text in SPEECH:
            with self.subTest(text):
                self.assertEqual(told_apart(text, ["Aria"]), (text, ""))

    @FEW
    @given(st.text(alphabet='*_()"\u201c\u201d aA.!\nsheniAria', max_size=40))
    def test_any_text(self, text):
        """Nothing raises, and no word is made up."""
        told = told_apart(text, ["Aria"])
        letters = [letter for letter in "".join(told).lower() if letter.isalnum()]
        self.assertLessEqual(len(letters), sum(map(str.isalnum, text)))
