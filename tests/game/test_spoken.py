"""What was said, from lines as games show them."""

import unittest

from evennia_ai.game.spoken import spoken
from tests.growth import assert_not_square

# Of a speaker called Alice: the line that a listener is shown, and the words.
FRAMED = {
    'Alice says, "hello"': "hello",
    'Alice says, "She said "no" to me."': 'She said "no" to me.',
    "Alice sagt: „Guten Tag“": "Guten Tag",
    "Alice sagt: »Guten Tag«": "Guten Tag",
    "Alice dit : « Bonjour »": "Bonjour",
    "Alice говорит: «Привет»": "Привет",
    "Alice says, ‘it’s late’": "it’s late",
    "Alice says 'it's late'": "it's late",
    "Alice säger ”hej”": "hej",
    "Alice mówi „cześć”": "cześć",
    "Aliceは言った「こんにちは」": "こんにちは",
    "Alice dice: 〈hola〉": "hola",
    'Alice sagt, „wo: hier?"': "wo: hier?",
    "‹ Salut ›, dit Alice.": "Salut",
    '《Alice》 "hello"': "hello",
    "Aliceは囁いた『秘密』": "秘密",
    "Alice 说：“你好”": "你好",
    "Alice कहती है: नमस्ते": "नमस्ते",
    "Alice يقول: مرحبا": "مرحبا",
    "Alice: hello there": "hello there",
    "[OOC] Alice: brb": "brb",
    "„Hallo“, sagt Alice.": "Hallo",
    '"Hello," says Alice.': "Hello,",
    'Alice says to you softly, "hello"': "hello",
}
# Known to be speech only by the message's type.
TYPED = {
    "Alice says hello there": "hello there",
    "hello there": "hello there",
    "Alice: a sign reads: closed": "a sign reads: closed",
    "Alice hello": "Alice hello",
    "Alice": "Alice",
    'It was late. I said "no" and left.': 'It was late. I said "no" and left.',
    'Alice says, "hello': '"hello',
    "Aliceは「鍵：赤」と言った。": "鍵：赤",
    'Alice "tamam" dedi.': "tamam",
    'Alice says, "hello" and smiles.': "hello",
    'Alice says it is "late" again': 'it is "late" again',
    'Alice: "yes" is my word: "no" is not': '"yes" is my word: "no" is not',
}
# Acts, which are no speech.
ACTS = (
    "Alice waves.",
    "Alice picks up a ball.",
    'Alice points at the sign "closed" and laughs.',
    'Alice draws. Then she says, "stand back"',
    "The clock shows: noon",
    'Alice "accidentally" sneezes.',
    "— Then Alice falls — the cup, too.",
    "《Alice》 waves",
    "A bell tolls.",
)


class TestSpoken(unittest.TestCase):
    def test_frames(self):
        """Every usual quotation mark, and a colon; by type or as typed."""
        for line, words in FRAMED.items():
            with self.subTest(line):
                self.assertEqual(spoken(line, ["Alice"]), words)
                self.assertEqual(spoken(line, ["Alice"], [words], is_speech=False), words)

    def test_not_typed(self):
        """Without a type nothing is speech that its speaker did not type, however it looks."""
        for line in (*FRAMED, *TYPED):
            for typed in ([], ["scroll"]):
                with self.subTest(line, typed=typed):
                    self.assertEqual(spoken(line, ["Alice"], typed, is_speech=False), "")

    def test_speech_without_marks(self):
        """Where the type says so, a name and a verb are a frame, and other lines stay whole."""
        for line, words in TYPED.items():
            with self.subTest(line):
                self.assertEqual(spoken(line, ["Alice", ""]), words)

    def test_acts(self):
        """What is no speech has no words, whatever marks stand in a name."""
        name = 'Bob "The Axe" Stone'
        self.assertEqual(spoken(f'{name} says, "hi"', [name], ["hi"], is_speech=False), "hi")
        for line in (*ACTS, f"{name} sneezes."):
            with self.subTest(line):
                self.assertEqual(spoken(line, ["Alice", name], is_speech=False), "")

    def test_typed(self):
        """What was typed is what was said, whatever stands before it; a pose is none."""
        for line, typed, words in (
            ("Alice says hello there", ("hello there",), "hello there"),
            ("Alice shouts from afar ~ hello!", ("hello!",), "hello!"),
            ('Char says, "2 + 2 = 4"', ("2 + 2 = 4", "4"), "2 + 2 = 4"),
            ("Alice murmurs to you the key", ("Aria = the key", "the key"), "the key"),
            ("Alice waves", ("waves",), ""),
            ("Alice says hello in Elvish", ("hello",), ""),
            ("Alice picks up a ball.", ("ball",), ""),
            ("Alice sagt „ball“.", ("ball",), "ball"),
            ("Aliceは「鍵：赤」と言った。", ("鍵：赤",), "鍵：赤"),
            ("— Где: тут? — сказал кто-то.", ("Где: тут?",), "Где: тут?"),
            ("—Hola, señor —dijo Alice.", ("Hola, señor",), "Hola, señor"),
            ('Alice says it is "late" again', ('it is "late" again',), 'it is "late" again'),
            ('Alice "tamam" dedi.', ("tamam",), "tamam"),
            ('Alice "accidentally" sneezes.', ('"accidentally" sneezes.',), ""),
            ('Alice quotes Bob: "Come"', ('quotes Bob: "Come"',), ""),
            ('Alice tells Bob, "Good evening."', ("bob good evening",), "Good evening."),
            ('Alice says, "/Me says, "hello""', ("hello",), "hello"),
            ("Alice: hello there", ("hello there",), "hello there"),
        ):
            with self.subTest(line):
                self.assertEqual(spoken(line, ["Alice"], typed, is_speech=False), words)

    def test_long(self):
        """Nothing that a player may type takes long to read, in whatever frame."""

        def work(line):
            spoken(line, ["Alice"], [line[6:]])
            spoken(line, ["Alice"], is_speech=False)
            spoken(line, ["Alice"], ["a" + line[-3_000:]], is_speech=False)

        for line in (
            lambda size: "Alice " + ":" * size + ' "x"',
            lambda size: "Alice a" + " " * size + "b",
            lambda size: "Alice " + "«" * size,
            lambda size: "Alice " + ". " * size,
            lambda size: 'Alice says, "' + 'me "' * size,
        ):
            assert_not_square(work, line, 6_000)
