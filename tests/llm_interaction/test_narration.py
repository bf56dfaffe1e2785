"""Narration is told apart from speech."""

import unittest

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.llm_interaction.narration import Told, told_apart
from tests.strategies import FEW

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
                self.assertEqual(told_apart(text, ["Aria"]), Told(*told))

    def test_speech(self):
        """Stressed words and quotations stay."""
        for text in SPEECH:
            with self.subTest(text):
                self.assertEqual(told_apart(text, ["Aria"]), Told(text))

    @FEW
    @given(st.text(alphabet='*_()"\u201c\u201d aA.!\nsheniAria', max_size=40))
    def test_any_text(self, text):
        """Nothing raises, and no word is made up."""
        told = told_apart(text, ["Aria"])
        letters = [letter for letter in "".join(told).lower() if letter.isalnum()]
        self.assertLessEqual(len(letters), sum(map(str.isalnum, text)))
