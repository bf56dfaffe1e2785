"""`evennia-ai card`: what it prints, writes and refuses."""

import tempfile
import unittest
from pathlib import Path

from evennia_ai.cards.container import read
from tests.cards import card, png, text_chunk
from tests.cli.test_cli import run


class TestCard(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_card(self, *argv):
        return run("card", *map(str, argv))

    def test_show_and_convert(self):
        """A card is shown, converted to all formats, and the same again."""
        book = {"entries": [{"keys": ["a"], "content": "t", "depth": 4}]}
        value = card(2, character_book=book, extensions={"x": 1}, first_mes="Hi!", tags=["elf"])
        file = self.folder / "aria.png"
        file.write_bytes(png(text_chunk(value)))
        code, out, _ = self.run_card("show", file)
        self.assertEqual(code, 0)
        for said in (
            "A card of Aria, from a PNG file.",
            "tags: elf",
            "Lorebook: 1 entries: 1 taken",
            "Greeting: Hi!",
        ):
            self.assertIn(said, out)
        for ending in ("json", "charx", "PNG"):
            new = self.folder / f"new.{ending}"
            self.assertEqual(self.run_card("convert", file, new)[0], 0)
            data = read(new.read_bytes()).value["data"]
            self.assertEqual({name: data[name] for name in value["data"]}, value["data"])

    def test_refusals(self):
        """One line each, exit code 2, nothing made."""
        file, new = self.folder / "a.json", self.folder / "b.json"
        file.write_text("[]")
        for argv in (
            ("show", file),
            ("show", self.folder),
            ("convert", file, new),
            ("convert", file, file),
        ):
            code, out, err = self.run_card(*argv)
            self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        self.assertFalse(new.exists())
        file.write_text('{"entries": {"0": {"key": ["a"], "content": "t"}}}')
        self.assertIn("1 taken", self.run_card("show", file)[1])
