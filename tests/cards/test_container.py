"""The files that cards come in, whole, odd and hostile."""

import json
import unittest
import zlib

from evennia_ai.cards.card import read_card
from evennia_ai.cards.container import FILE_BYTES, FORMATS, packed, parsed, read
from evennia_ai.errors import Refusal
from tests.cards import b64, card, chunk, packed_chunk, png, text_chunk, zipped

OLD, NEW = card(name="Old"), card(3, name="New", nickname="Nia", first_mes="I am {{char}}.")
IDAT = chunk(b"IDAT", zlib.compress(b"\0" * 5))


class Case(unittest.TestCase):
    def refused(self, data, says):
        """Check that a file is refused, in one line that says something."""
        with self.assertRaises(Refusal) as caught:
            read(data)
        self.assertIn(says, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))


CHARACTER = b"""\xef\xbb\xbf# made by hand
name: Chiharu
greeting: |-
  *She nods.*
  Hi, {{user}}!
context: "Loves computers."
"""


class TestYaml(Case):
    def test_a_character(self):
        """Oobabooga's characters; each value is a text."""
        contents = read(CHARACTER)
        self.assertEqual((contents.form, contents.value["name"]), ("yaml", "Chiharu"))
        self.assertEqual(read_card(contents.value).persona, "Loves computers.")
        self.assertEqual(read(b"name: 5\ncontext: true").value, {"name": "5", "context": "true"})

    def test_other_texts(self):
        """Parts that repeat, what is damaged, nested too deeply or large is refused in a line."""
        bomb = b"a: &a [x, x]\nb: &b [*a, *a]\nname: [*b, *b]"
        deep = b"name: " + b"[" * 2_000 + b"]" * 2_000
        for data in (bomb, deep, b"name: [", b"name: x\n- y", b"name: " + b"x" * 300_000, b"a b"):
            self.refused(data, "Cards are read from PNG, CHARX, JSON and YAML")


class TestPng(Case):
    def test_of_two_cards_the_newer_format_counts(self):
        """Wrong checksums, packed text, line breaks, no padding, junk behind the end."""
        old = chunk(b"tEXt", b"Chara\0" + b64(OLD), crc=1)
        contents = read(png(old, IDAT, packed_chunk(NEW)) + b"junk" * 25)
        self.assertEqual(contents.value, NEW)
        notes = ("checksum of `chara` is wrong", "the file holds two cards; `ccv3` is used")
        self.assertEqual(contents.notes, notes)
        self.assertEqual(read_card(contents.value).greetings, ("I am Nia.",))

    def test_international_text(self):
        """`iTXt`, packed or not, with a language and a translated key."""
        for flag, text in ((b"\0", b64(OLD)), (b"\1", zlib.compress(b64(OLD)))):
            body = b"chara\0" + flag + b"\0en\0key\0" + text
            self.assertEqual(read(png(chunk(b"iTXt", body))).value, OLD)

    def test_a_bomb(self):
        """40 MB of letters in 40 kB."""
        bomb = zlib.compress(b"A" * 40_000_000, 9)
        says = "the card unpacks to more than 4,194,304 bytes"
        self.refused(png(text_chunk(OLD), chunk(b"zTXt", b"ccv3\0\0" + bomb)), says)
        self.refused(png(chunk(b"zTXt", b"ccv3\0\0no")), "damaged")

    def test_a_lie_about_a_length(self):
        """And a download that broke off."""
        lie = png()[:33] + b"\x7f\xff\xff\xfftEXtchara\0" + b"A" * 90
        self.refused(lie, "the PNG ends in the middle: the download is incomplete")
        self.refused(png(text_chunk(OLD))[:-9], "ends in the middle")

    def test_other_pictures(self):
        """Each is refused for its own reason."""
        self.refused(png(chunk(b"tEXt", b"chara-ext-asset_:1\0AAAA")), "holds no card")
        self.refused(png(chunk(b"tEXt", b"chara\0rcc||abc")), "RisuAI")
        self.refused(png(chunk(b"tEXt", b"chara\0{}!")), "is no base64")
        self.refused(b"RIFF1234WEBPVP8 ", "WEBP")
        self.refused(b"\xff\xd8\xff\xe0 JFIF", "JPEG")
        self.refused(b"x" * (FILE_BYTES + 1), "20,000,000")

    def test_all_formats(self):
        """What is written is read again; a picture is kept, its old cards are not."""
        for form in FORMATS:
            self.assertEqual(read(packed(NEW, form)).value, NEW)
        source = png(text_chunk(OLD), packed_chunk(OLD), IDAT)
        written = packed(NEW, "png", source)
        self.assertEqual(read(written).value, NEW)
        self.assertIn(IDAT, written)
        self.assertEqual((written.count(b"chara\0"), written.count(b"ccv3\0")), (1, 1))
        with self.assertRaises(Refusal):
            packed(NEW, "webp")


class TestOtherFiles(Case):
    def test_encodings_and_odd_numbers(self):
        """A byte order mark, UTF-16, NaN, a number of 5,000 digits."""
        for data in ("﻿[1]".encode(), "[1]".encode("utf-16")):
            self.assertEqual(parsed(data), [1])
        self.assertEqual(parsed(b"[NaN]"), [None])
        self.assertEqual(parsed(b"[" + b"9" * 5_000 + b"]"), ["9" * 5_000])

    def test_other_files(self):
        """HTML, nothing, too much; what is too deep for Python, and for what stores it."""
        for depth in (100_000, 90):
            self.refused(b"[" * depth + b"]" * depth, "nested too deeply")
        self.refused(b"[" * 100_000, "nested too deeply")
        for data in (b"<html>", b"", b"\xff\xfe\xff"):
            self.refused(data, "this is no JSON")
        self.refused(b" " * 4_194_305, "more than 4,194,304 bytes")

    def test_what_is_refused(self):
        """Too many files, a folder too deep, an encrypted card, too much of it, a damaged one."""
        files = {"aria/card.json": "{}", "aria/../../etc/x.png": "x"}
        many = {**files, **{f"{n}": "" for n in range(1_200)}}
        self.refused(zipped(many), "has 1,202 files; 1,000 are allowed")
        deeper = "has no card.json at its top, only `aria/card.json`: pack the folder's contents"
        self.refused(zipped(files), deeper)
        self.refused(zipped({"x": "y"}), "has no card.json at its top")
        good = bytearray(zipped({"card.json": json.dumps(OLD)}))
        good[6] |= 1
        good[good.index(b"PK\1\2") + 8] |= 1
        self.refused(bytes(good), "is encrypted")
        self.refused(zipped({"card.json": " " * 40_000_000}), "unpacks to more than")
        self.refused(zipped({"card.json": "{}"})[:-30], "is damaged")

    def test_behind_a_picture(self):
        """RisuAI's JPEG with a zip behind it."""
        files = {"card.json": json.dumps(OLD), "assets/a.png": "x"}
        contents = read(zipped(files, b"\xff\xd8\xff" + b"\0" * 897))
        self.assertEqual((contents.value, contents.form), (OLD, "charx"))
        self.assertEqual(contents.notes, ("1 other file is not taken",))
        [note] = read(zipped({"card.json": "[]", "a": "", "b": ""})).notes
        self.assertTrue(note.startswith("2 other files are "))
        self.assertEqual(read(zipped({"card.json": "[]"})).notes, ())
