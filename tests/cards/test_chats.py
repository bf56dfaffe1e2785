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
    def test_rows_that_are_no_lines(self):
        """A second head and a line without a text are counted as damaged."""
        rows = [{"user_name": "You"}, {"name": "x", "mes": "hi"}, {"chat_metadata": {}}]
        rows += [{"name": "x", "mes": "there"}, {"name": "x", "mes": 5}]
        chat = read_chat("\n".join(map(json.dumps, rows)).encode(), NOW)
        self.assertEqual([line.text for line in chat.lines], ["hi", "there"])
        self.assertIn("2 damaged", chat.note)

    def test_a_nasty_chat(self):
        """All lines are accounted for; what has no date gets one from its neighbours."""
        chat = read_chat(nasty(), NOW)
        lines, note = chat.lines, chat.note
        said = "439 lines taken, 50 damaged, 10 hidden, 1 empty, 1 shortened; dates of "
        self.assertTrue(note.startswith(said), note)
        self.assertEqual(len(lines), 439)
        self.assertEqual(lines[0].text, "hi")
        self.assertEqual(chat.speakers("x", "Bob")[:3], ["x", "Bob", "Bob"])
        with self.assertRaisesRegex(Refusal, r"by `Aria`; it has lines by x \(439\)"):
            chat.speakers("Aria", "Bob")
        rows = [{"is_user": is_user, "mes": "hi"} for is_user in (True, False)]
        nameless = read_chat("\n".join(map(json.dumps, rows)).encode(), NOW)
        self.assertEqual(nameless.speakers("Aria", "Bob"), ["Bob", "Aria"])
        self.assertEqual(len(lines[1].text), LINE_CHARS)
        self.assertEqual([line.text for line in lines].count("the same"), 2)
        times = [line.at for line in lines]
        self.assertEqual(times, sorted(times))
        self.assertEqual([line.text for line in lines[-2:]], ["line 498", "line 499"])

    def test_named_lines(self):
        """A name, a colon, a text."""
        chat = read_chat(b"You: hello\nARIA: Well met: you?\nAria:\n", NOW)
        lines, note = chat.lines, chat.note
        said = [*zip(chat.speakers("Aria", "Bob"), (each.text for each in lines), strict=True)]
        self.assertEqual(said, [("Bob", "hello"), ("Aria", "Well met: you?")])
        [line] = read_chat("アリア：やあ".encode(), NOW).lines
        self.assertEqual((line.name, line.text), ("アリア", "やあ"))
        told = "2 lines taken, 1 empty; dates of 2 lines guessed from their neighbours"
        self.assertEqual(note, told)
        self.assertLessEqual(lines[-1].at, NOW)
        # What no database takes is left out, also where it was escaped.
        [line] = read_chat(b'{"mes": "a\\ud800\\u0000b"}', NOW).lines
        self.assertEqual(line.text, "ab")

    def test_a_group(self):
        """Each line is whose name it has, nobody else's."""
        rows = [{"user_name": "unused", "character_name": "unused", "chat_metadata": {}}]
        for name, is_user in (("Zed", True), ("Aria", False), ("Bram", False), ("Cora", False)):
            rows.append({"name": name, "is_user": is_user, "mes": f"I am {name}."})
        chat = read_chat("\n".join(map(json.dumps, rows)).encode(), NOW)
        self.assertEqual(chat.speakers("aria", "Alice"), ["Alice", "aria", "Bram", "Cora"])
        with self.assertRaisesRegex(Refusal, r"by `Mira`; it has lines by Zed \(1\), Aria"):
            chat.speakers("Mira", "Alice")

    def test_named_lines_of_others(self):
        """Without the character's name they are refused, with the names that are there."""
        log = b"Bram: Aye.\nCora: No.\nBram: Well?\n"
        with self.assertRaisesRegex(Refusal, r"by `Aria`; it has lines by Bram \(2\), Cora \(1\)"):
            read_chat(log, NOW).speakers("Aria", "Alice")
        chat = read_chat(log + b"Aria: Peace.\nAlice: Ha.", NOW)
        names = ["Bram", "Cora", "Bram", "Aria", "Alice"]
        self.assertEqual(chat.speakers("Aria", "alice"), [*names[:4], "alice"])
        [line] = read_chat(b'{"mes": "a", "name": 5}', NOW).lines
        self.assertEqual(line.name, "")

    def test_one_name_for_both(self):
        """The talk is refused, in any case of the name: no line may change its speaker."""
        rows = [{"name": "Aria", "is_user": is_user, "mes": "hi"} for is_user in (True, False)]
        chat = read_chat("\n".join(map(json.dumps, rows)).encode(), NOW)
        with self.assertRaisesRegex(Refusal, "both called `Aria`"):
            chat.speakers("Aria", "aria ")
        self.assertEqual(chat.speakers("Aria", "Bob"), ["Bob", "Aria"])

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
            self.assertEqual("guessed" not in read_chat(row, NOW).note, known, date)

    def test_other_files(self):
        """HTML, nothing, other JSON, too much of it."""
        html = b"<html>\n<body>x</body>\n</html>"
        for data in (html, b"", b"{}", b"[1]", b"{\n}", b"a: b\n" * 20_001):
            with self.assertRaises(Refusal):
                read_chat(data, NOW)
