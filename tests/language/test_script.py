"""Words and letters in a row, as forgetting compares them."""

import unittest

from evennia_ai.language.script import runs

# A text, and each run in it.
RUNS = (
    ("one two three four", ()),
    ("one two three four five", ("one two three four five",)),
    (
        "One, two — THREE: four\nfive six!",
        ("one two three four five", "two three four five six"),
    ),
    # Eleven, twelve and thirteen letters of a script without spaces; what stands between does not
    # count.
    ("把旧灯笼藏在磨坊里面了", ()),
    ("我把旧灯笼藏在磨坊里面了", ("我把旧灯笼藏在磨坊里面了",)),
    (
        "我把旧灯笼，藏在 7 磨坊里面了。就",
        ("我把旧灯笼藏在磨坊里面了", "把旧灯笼藏在磨坊里面了就"),
    ),
    ("もらった提灯は橋の下で", ()),
    ("もらったラー提灯は橋の下", ("もらったラー提灯は橋の下",)),
    # A letter of Thai counts once with its marks: here are 11, 12 and 13.
    ("อนโคมไฟไว้ใต้", ()),
    ("ซ่อนโคมไฟไว้ใต้", ("ซ่อนโคมไฟไว้ใต้",)),
    ("นซ่อนโคมไฟไว้ใต้", ("นซ่อนโคมไฟไว้ใ", "ซ่อนโคมไฟไว้ใต้")),
    # Hangul and Devanagari have words.
    ("저는 배가 한 척 있어요", ("저는 배가 한 척 있어요",)),
    ("저는배가한척있어요정말로그래요", ()),
    ("ब्राम चक्की में रहता है", ("ब्राम चक्की में रहता है",)),
    # Of a text in two scripts each is read by itself.
    ("我的 old lantern 藏在 under the mill", ("old lantern under the mill",)),
    (
        "one two 我把旧灯笼 three 藏在磨坊里面了 four five",
        ("one two three four five", "我把旧灯笼藏在磨坊里面了"),
    ),
    # Accents and digits of any script are alike, whether a mark stands alone or not.
    ("Le café\u0301 est très chaud", ("le cafe est tres chaud",)),
    ("LE cafe\u0301 est tre\u0300s chaud", ("le cafe est tres chaud",)),
    ("لدي ٣ براميل من التفاح", ("لدي 3 براميل من التفاح",)),
)


class TestRuns(unittest.TestCase):
    def test_runs(self):
        """Five words in a row, or twelve letters of a script without spaces, and no fewer."""
        for text, found in RUNS:
            with self.subTest(text):
                self.assertEqual(runs(text), set(found))
