"""Old chats: every line is counted, in order, with a time."""

import json
import unittest

from evennia_ai.cards.chats import LINE_CHARS, read_chat
from evennia_ai.errors import Refusal

NOW = 1_800_000_000.0
DATES = ("2024-05-01@14h03m22s", "May 1, 2024 2:03 PM", 1714572202000, "", "not a date")


def nasty():
    """500 lines after the head: cut ones, hidden ones, one of Chub's, a long and an empty one."""
    rows = [json.dumps({"user_name": "You", "chat_metadata": {}})]
    for n in range(1, 501):
        item = {"name": "x", "is_user": n % 2 == 0, "mes": f"line {n}", "send_date": DATES[n % 5]}
        item |= {"is_system": True} if n % 25 == 0 else {}
        item |= {1: {"mes": {"message": "hi"}}, 2: {"mes": "x" * 50_000}, 3: {"mes": ""}}.get(n, {})
        item |= {"mes": "the same"} if n in (6, 7) else {}
        row = json.dumps(item)
        rows.append(row[: len(row) // 2] if n % 10 == 0 else row)
    return "\n".join(rows).encode()


class TestChats(unittest.TestCase):
    def test_a_nasty_chat(self):
        """All lines are accounted for; what has no date gets one from its neighbours."""
        lines, note = read_chat(nasty(), "Aria", NOW)
        said = "439 lines taken, 50 damaged, 10 hidden, 1 empty, 1 shortened; dates of "
        self.assertTrue(note.startswith(said), note)
        self.assertEqual(len(lines), 439)
        self.assertEqual((lines[0].text, lines[0].is_own), ("hi", True))
        self.assertEqual(len(lines[1].text), LINE_CHARS)
        self.assertEqual([line.text for line in lines].count("the same"), 2)
        times = [line.at for line in lines]
        self.assertEqual(times, sorted(times))
        self.assertEqual([line.text for line in lines[-2:]], ["line 498", "line 499"])

    def test_named_lines(self):
        """A name, a colon, a text."""
        lines, note = read_chat(b"You: hello\nARIA: Well met: you?\nAria:\n", "Aria", NOW)
        said = [(each.is_own, each.text) for each in lines]
        self.assertEqual(said, [(False, "hello"), (True, "Well met: you?")])
        told = "2 lines taken, 1 empty; dates of 2 lines guessed from their neighbours"
        self.assertEqual(note, told)
        self.assertLessEqual(lines[-1].at, NOW)
        # What no database takes is left out, also where it was escaped.
        [line], _ = read_chat(b'{"mes": "a\\ud800\\u0000b"}', "Aria", NOW)
        self.assertEqual(line.text, "ab")

    def test_times(self):
        """ISO with and without a zone, milliseconds; nothing for what is none."""
        for date, known in (
            ("2024-05-01T14:03:22Z", True),
            ("2024-05-01T14:03:22", True),
            ("2024-5-1 @14h 03m 22s 7ms", True),
            (1714572202, True),
            (True, False),
            ("9" * 60_000, False),
            (7, False),
            (int("1" * 400), False),
            (-int("1" * 400), False),
            (float("nan"), False),
            (None, False),
            ("1024-05-01", False),
        ):
            row = json.dumps({"mes": "a", "send_date": date}).encode()
            self.assertEqual("guessed" not in read_chat(row, "Aria", NOW)[1], known, date)

    def test_other_files(self):
        """HTML, nothing, other JSON, too much of it."""
        html = b"<html>\n<body>x</body>\n</html>"
        for data in (html, b"", b"{}", b"[1]", b"{\n}", b"a: b\n" * 20_001):
            with self.assertRaises(Refusal):
                read_chat(data, "Aria", NOW)
