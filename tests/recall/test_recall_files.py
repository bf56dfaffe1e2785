"""The recall index's file: crashes, damage, several users, what is removed."""

import multiprocessing
import os
import random
import signal
import sqlite3
import tempfile
import unittest
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.errors import StoreError
from evennia_ai.history.audience import STAFF, private
from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.recall.embedding import default_embedder
from tests.recall.test_index import TALK, talk, turns_in
from tests.recall.test_recall_large import chatter

QUERIES = ("Who is Odile?", "warm ale", "cold smoke over the hill", "What did Ann say of the mill?")
SECRET = "xyzzyplugh"


def answers(index, scope="aria", viewers=(None, "public")):
    """Hits of all queries for some viewers."""
    return [index.search(scope, query, 20, viewer) for query in QUERIES for viewer in viewers]


def answers_anew(turns):
    """What an index answers that holds these turns alone."""
    with closing(RecallIndex(":memory:")) as index:
        index.add("aria", turns)
        return answers(index)


def add_until_killed(path, started):
    """Add and replace turns for ever, in a process of its own."""
    index, number = RecallIndex(path), 0
    while True:
        index.add("aria", [Turn(f"t{n}", "Ann", f"ale {number}", 60.0 * n) for n in range(40)])
        index.remove("aria", ["t3"])
        number += 1
        started.set()


class FailingEmbedder:
    """The packaged embedder, until it fails."""

    fails = False

    def __init__(self):
        self.dims = default_embedder().dims

    def embed(self, texts):
        if self.fails:
            raise MemoryError
        return default_embedder().embed(texts)


class FileCase(unittest.TestCase):
    def setUp(self):
        self.path = Path(self.enterContext(tempfile.TemporaryDirectory()), "recall.sqlite3")
        self.turns = chatter(200)

    def opened(self):
        index = RecallIndex(self.path)
        self.addCleanup(index.close)
        return index

    def filled(self, turns=None):
        index = self.opened()
        index.add("aria", self.turns if turns is None else turns)
        return index

    def bytes(self):
        return b"".join(f.read_bytes() for f in self.path.parent.rglob("*") if f.is_file())


class TestFile(FileCase):
    def test_an_older_file_is_emptied(self):
        """A file of another version keeps nothing of what it held."""
        self.filled([Turn("s", "Eve", SECRET, 99.0)]).close()
        with closing(sqlite3.connect(self.path)) as db:
            db.execute("PRAGMA user_version=3")
        index = self.opened()
        self.assertEqual(index.count("aria"), 0)
        self.assertNotIn(SECRET.encode(), self.bytes())
        index.add("aria", self.turns)
        self.assertEqual(answers(index), answers_anew(self.turns))

    def test_killed(self):
        """After a SIGKILL at any time the file holds whole batches, and can be searched."""
        context = multiprocessing.get_context("spawn")
        for wait_s in (0.0, 0.05, 0.2):
            started = context.Event()
            process = context.Process(target=add_until_killed, args=(self.path, started))
            process.start()
            self.assertTrue(started.wait(60))
            process.join(wait_s)
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            index = self.opened()
            self.assertIn(index.count("aria"), (39, 40))
            held = turns_in(index, "aria", [f"t{n}" for n in range(40)])
            self.assertEqual(answers(index), answers_anew(held))
            for number in range(int(held[0].text.split()[1])):
                self.assertNotIn(f"ale {number}\0".encode(), self.bytes())
            index.close()

    def test_replacing_is_all_or_nothing(self):
        """Where new turns cannot be stored, what they would have replaced is still there."""
        embedder = FailingEmbedder()
        index = RecallIndex(self.path, embedder)
        self.addCleanup(index.close)
        index.add("aria", talk())
        embedder.fails = True
        with self.assertRaises(MemoryError):
            index.add("aria", [replace(talk()[7], text="I sold a horse.")])
        embedder.fails = False
        self.assertEqual(turns_in(index, "aria", ["t7"])[0].text, TALK[7][1])
        self.assertEqual(index.search("aria", "broke arm mill", 1)[0].turn_id, "t7")

    def test_a_failed_add_holds_no_lock(self):
        """After an add that fails, nothing of it is stored and another connection may write."""
        first, second = self.opened(), self.opened()
        for scope, turns in (("aria", [*talk(), None]), (None, talk()), ("\ud800", talk())):
            with self.assertRaises((AttributeError, sqlite3.IntegrityError, UnicodeEncodeError)):
                first.add(scope, turns)
        self.assertEqual(first.count("aria"), 0)
        second.add("bo", talk())
        self.assertEqual(first.count("bo"), len(TALK))

    def test_not_a_database(self):
        """A file that is no database is an error that names it and says what to do."""
        self.path.write_bytes(b"not a database at all" * 100)
        with self.assertRaisesRegex(StoreError, "delete the file"):
            RecallIndex(self.path)


class TestRemoval(FileCase):
    def test_what_is_replaced(self):
        """A turn whose text changed leaves no word of the former one in a file that is closed."""
        index = self.filled()
        index.add("aria", [Turn("m1", "Bob", f"the {SECRET} is under the stairs", 1.0)])
        index.add("aria", [Turn("m1", "Bob", "the cat is under the stairs", 1.0)])
        index.close()
        self.assertNotIn(SECRET.encode(), self.bytes())

    @settings(max_examples=30)
    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["add", "remove", "replace", "search", "reopen", "clear"]),
                st.sets(st.integers(0, 39), min_size=1, max_size=14),
            ),
            max_size=9,
        ),
        st.randoms(use_true_random=False),
    )
    def test_any_life_in_files(self, deeds, rng):
        """However turns came and went, it answers as a new index of those left, and keeps no more.

        Each turn has a word of its own, which leaves the file with it.
        """
        with tempfile.TemporaryDirectory() as folder:
            self.path = Path(folder) / "recall.sqlite3"
            self._live(deeds, rng)

    def _live(self, deeds, rng):
        index, left, gone = RecallIndex(self.path), {}, set()
        for step, (deed, numbers) in enumerate(deeds):
            turns = []
            for number in sorted(numbers):
                # Long ones fill pages of their own.
                words = [f"zq{step}x{number}q", *rng.choices(QUERIES, k=rng.choice([1, 90]))]
                audience = rng.choice(["public", STAFF, private(["o1"])])
                said = Turn(f"t{number}", "Ann", " ".join(words), 60.0 * number, None, audience)
                turns.append(said)
            if deed == "remove":
                index.remove("aria", [turn.id for turn in turns])
                gone |= {left.pop(turn.id).text.split()[0] for turn in turns if turn.id in left}
            elif deed in ("add", "replace"):
                index.add("aria", turns)
                index.add("borg", [replace(turn, text="the ale") for turn in turns])
                gone |= {left.pop(turn.id).text.split()[0] for turn in turns if turn.id in left}
                left |= {turn.id: turn for turn in turns}
            elif deed == "search":
                answers(index)
            elif deed == "clear":
                index.clear("aria")
                gone |= {turn.text.split()[0] for turn in left.values()}
                left = {}
            else:
                index.close()
                index = RecallIndex(self.path)
        self.assertEqual(answers(index), answers_anew(left.values()))
        index.erase()
        index.close()
        stored = self.bytes()
        self.assertEqual([word for word in gone if word.encode() in stored], [])

    def test_whatever_pages_were_split(self):
        """Of someone who talked among others for long, nothing is left in the file.

        SQLite copies rows when it splits a page, and `secure_delete` overlooks the copies.
        """
        for seed in range(30):
            rng, said = random.Random(seed), list[Turn]()
            index = self.opened()
            for _ in range(rng.randint(10, 60)):
                turns = [self.said(len(said) + n, rng) for n in range(rng.randint(1, 6))]
                index.add("aria", turns)
                said += turns
                changed = rng.sample(said, min(3, len(said))) if rng.random() < 0.3 else []
                for turn in changed:
                    index.add("aria", [replace(turn, text=f"{turn.text} more")])
            index.remove("aria", [turn.id for turn in said if SECRET in turn.text])
            index.erase()
            index.close()
            self.assertEqual(self.bytes().count(SECRET.encode()), 0, seed)
            self.path.unlink()

    def said(self, number, rng):
        """A turn of random length; some have the word."""
        words = (f"w{rng.randrange(500)}" for _ in range(rng.randint(2, 40)))
        word = SECRET if rng.random() < 0.3 else "ale"
        return Turn(f"m{number:x}", "Eve", f"{word}{number} {' '.join(words)}", 60.0 * number)

    def test_opened_where_nothing_can_be_rewritten(self):
        """A full disk keeps nobody from searching; what was removed goes the next time."""
        index = self.filled([*self.turns[:30], Turn("s", "Eve", SECRET, 99.0)])
        index.remove("aria", ["s"])
        full = sqlite3.OperationalError("database or disk is full")
        with mock.patch.object(RecallIndex, "_clean_up", side_effect=full):
            index.close()
            index = self.opened()
            self.assertEqual(index.count("aria"), 30)
            with self.assertRaises(sqlite3.OperationalError):
                index.erase()
        index.erase()
        self.assertEqual(self.bytes().count(SECRET.encode()), 0)

    def test_closed_after_a_removal(self):
        """A file that was closed holds nothing of what was removed."""
        index = self.filled([*self.turns[:30], Turn("s", "Eve", SECRET, 99.0)])
        index.remove("aria", ["s"])
        index.close()
        self.assertEqual(self.bytes().count(SECRET.encode()), 0)

    def test_while_another_process_reads(self):
        """It is not called erased, and is as soon as nobody reads what stood there before."""
        index = self.filled([*self.turns[:30], Turn("s", "Eve", SECRET, 99.0)])
        index._db.execute("PRAGMA busy_timeout=10")
        with closing(sqlite3.connect(self.path)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM turns").fetchone()
            index.remove("aria", ["s"])
            with self.assertRaises(sqlite3.OperationalError):
                index.erase()
            reader.rollback()
        index.erase()
        self.assertEqual(self.bytes().count(SECRET.encode()), 0)

    def test_a_removal_that_was_cut_short(self):
        """What a crash or a full disk left of a removed turn goes at the next start or erasing."""
        secret = Turn("s", "Eve Nightshade", f"{SECRET} sings of Odile", 99.0)
        full = sqlite3.OperationalError("database or disk is full")
        for again in (RecallIndex.close, RecallIndex.erase):
            index = self.filled([*self.turns[:30], secret, *self.turns[30:]])
            with (
                mock.patch.object(RecallIndex, "_clean_up", side_effect=full),
                self.assertRaises(sqlite3.OperationalError),
            ):
                index.remove("aria", ["s"])
                index.erase()
            self.assertEqual(answers(index), answers_anew(self.turns))
            again(index)
            answers(self.opened())
            for word in (SECRET, "Nightshade", "sings"):
                self.assertNotIn(word.encode(), self.bytes())
