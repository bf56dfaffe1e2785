"""The recall index's arrays in files: crashes, lost files, several users, full disks."""

import errno
import os
import random
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.errors import StoreError
from evennia_ai.history.audience import STAFF, private
from evennia_ai.recall import RecallIndex, Turn
from evennia_ai.recall import features as feature_module
from evennia_ai.recall import index as index_module
from evennia_ai.recall import turnwords as turnwords_module
from evennia_ai.recall.growing import Growing
from evennia_ai.recall.turnwords import TurnWords
from evennia_ai.recall.vectors import likely_cosines, quantised, signs_of
from tests.recall.test_recall_large import chatter

QUERIES = ("Who is Odile?", "warm ale", "cold smoke over the hill", "What did Ann say of the mill?")
SECRET = "xyzzyplugh"


def small_blocks(test, smallest=4, largest=16):
    """Let arrays be written to files after a few turns already."""
    for module, name, value in (
        (turnwords_module, "SMALLEST", smallest),
        (turnwords_module, "LARGEST", largest),
        (index_module, "SMALLEST", smallest),
        (index_module, "_MOST_UNWRITTEN", smallest),
    ):
        patch = mock.patch.object(module, name, value)
        patch.start()
        test.addCleanup(patch.stop)


def answers(index, scope="aria", viewers=(None, "public")):
    """Hits of all queries for some viewers."""
    return [index.search(scope, query, 20, viewer) for query in QUERIES for viewer in viewers]


def answers_anew(turns):
    """What an index answers that holds these turns alone."""
    index = RecallIndex(":memory:")
    try:
        index.add("aria", turns)
        return answers(index)
    finally:
        index.close()


class FileCase(unittest.TestCase):
    def setUp(self):
        small_blocks(self)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "recall.sqlite"
        self.arrays = Path(f"{self.path}.arrays")
        self.turns = chatter(60)

    def opened(self, **options):
        index = RecallIndex(self.path, **options)
        self.addCleanup(index.close)
        return index

    def filled(self, turns=None):
        index = self.opened()
        index.add("aria", self.turns if turns is None else turns)
        index.search("aria", "warm ale")
        return index

    def bytes(self):
        return [file.read_bytes() for file in self.path.parent.rglob("*") if file.is_file()]


class TestFiles(FileCase):
    def test_opened_again(self):
        """What is mapped from files answers as what was read, and only the rest is read."""
        index = self.filled()
        before = answers(index)
        index.close()
        self.assertTrue(any(self.arrays.glob("*/words-*")))
        again = self.opened()
        self.assertEqual(answers(again), before)
        self.assertEqual(before, answers_anew(self.turns))
        self.assertLess(again._views[1].memory, 50_000)

    def test_lost_and_broken_files_are_made_anew(self):
        """Arrays that are missing, cut, or of another file are made anew from the database."""
        self.filled().close()
        expected = answers_anew(self.turns)
        for harm in (
            lambda file: file.unlink(),
            lambda file: os.truncate(file, 7),
            lambda file: file.write_bytes(b""),
        ):
            for name in ("times", "vectors", "numbers", "words-0-16"):
                [file] = self.arrays.glob(f"*/{name}")
                if name.startswith("words") and file.stat().st_size:
                    file.unlink()
                else:
                    harm(file)
                index = self.opened()
                self.assertEqual(answers(index), expected, name)
                index.close()

    def test_a_new_database_does_not_take_old_arrays(self):
        """Arrays of a database that was deleted are not those of the next one."""
        self.filled().close()
        for file in self.path.parent.glob("recall.sqlite*"):
            if file.is_file():
                file.unlink()
        index = self.filled([Turn("only", "Eve", "Odile is here.", 5.0)])
        self.assertEqual([hit.turn_id for hit in index.search("aria", "Odile")], ["only"])
        index.add("aria", self.turns)
        self.assertEqual(len(list(self.arrays.glob("*/times"))), 1)

    def test_two_at_once(self):
        """A second index of one file reads it into memory, and both see what the other does."""
        first = self.filled()
        second = self.opened()
        self.assertEqual(answers(second), answers(first))
        said = Turn("s", "Eve", f"{SECRET} is what Odile said", 99.0)
        second.add("aria", [said])
        self.assertIn("s", [hit.turn_id for hit in first.search("aria", SECRET, 5) if hit.matches])
        first.add("aria", [Turn(f"m{n}", "Ann", "the mill again", 9_000.0 + n) for n in range(9)])
        self.assertEqual(answers(second), answers(first))
        second.remove("aria", ["s", self.turns[3].id])
        self.assertEqual(answers(second), answers(first))
        self.assertFalse(any(SECRET.encode() in each for each in self.bytes()))
        first.close()
        self.assertEqual(answers(second), answers(self.opened()))

    def test_cleared(self):
        """A cleared scope has no files; filled again, it answers as before."""
        index = self.filled()
        before = answers(index)
        self.assertEqual(index.clear("aria"), len(self.turns))
        self.assertEqual(answers(index), [[]] * len(before))
        self.assertFalse(any(self.arrays.glob("*/times")))
        index.add("aria", self.turns)
        self.assertEqual(answers(index), before)

    def test_memory_is_bounded(self):
        """Beyond the bound only what was asked for last stays, and answers are the same."""
        index = self.opened(memory_mb=0)
        for scope in ("aria", "borg", "cora"):
            index.add(scope, self.turns)
            for viewer in (None, "public", STAFF):
                index.search(scope, "warm ale", 5, viewer)
        self.assertEqual(list(index._views), [3])
        self.assertEqual(list(index._views[3]._visible), [STAFF])
        self.assertEqual(answers(index), answers_anew(self.turns))


class TestRemoval(FileCase):
    @settings(max_examples=30, deadline=None)
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

        Each turn has a word of its own, which leaves all files with it.
        """
        with tempfile.TemporaryDirectory() as folder:
            self.path = Path(folder) / "recall.sqlite"
            self._live(deeds, rng)

    def _live(self, deeds, rng):
        index, left, gone = RecallIndex(self.path), {}, set()
        for step, (deed, numbers) in enumerate(deeds):
            turns = []
            for number in sorted(numbers):
                # Long ones fill pages of their own.
                said = " ".join(
                    [f"zq{step}x{number}q", *rng.choices(QUERIES, k=rng.choice([1, 90]))]
                )
                audience = rng.choice(["public", STAFF, private(["o1"])])
                turns.append(Turn(f"t{number}", "Ann", said, 60.0 * number, None, audience))
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
        index.close()
        kept = b"".join(self.bytes())
        self.assertEqual([word for word in gone if f"{word}".encode() in kept], [])

    def test_a_crash_in_a_removal(self):
        """A removal that a crash cut short is finished by the next start."""
        secret = Turn("s", "Eve Nightshade", f"{SECRET} sings of Odile", 99.0)
        for step in ("remove", "write_to"):
            with self.subTest(step=step):
                index = self.filled([*self.turns[:30], secret, *self.turns[30:]])
                view = index._views[1]
                with (
                    mock.patch.object(view, step, side_effect=KeyboardInterrupt),
                    self.assertRaises(KeyboardInterrupt),
                ):
                    index.remove("aria", ["s"])
                index.close()
                again = self.opened()
                self.assertEqual(answers(again), answers_anew(self.turns))
                again.close()
                for word in (SECRET, "Nightshade"):
                    self.assertFalse(any(word.encode() in each for each in self.bytes()), word)

    def test_what_stays_of_a_word(self):
        """A word or a name that another turn has stays known; one that none has leaves the file."""
        index = self.filled([Turn("a", "Eve", "Odile sings", 1.0), *self.turns])
        index.add("aria", [Turn("b", "Eve", "Odile snores", 99.0)])
        index.remove("aria", ["a"])
        found = [hit.turn_id for hit in index.search("aria", "Odile", 5) if hit.matches]
        self.assertEqual(found, ["b"])
        names = index._store.names(1)
        self.assertIn("odile", names["word"].values())
        self.assertIn("Eve", names["speaker"].values())
        self.assertNotIn("sings", names["word"].values())
        index.remove("aria", ["b"])
        self.assertNotIn("Eve", index._store.names(1)["speaker"].values())


class TestFullDisk(FileCase):
    def test_arrays_stay_in_memory(self):
        """Where the disk has no room for arrays, they stay in memory and are written later."""
        full = mock.patch("os.posix_fallocate", side_effect=OSError(errno.ENOSPC, "no space"))
        with full:
            index = self.filled()
            self.assertEqual(answers(index), answers_anew(self.turns))
            self.assertIsNone(index._views[1].folder)
        more = [*self.turns, *[replace(turn, id=f"m{turn.id}") for turn in self.turns]]
        index.add("aria", more)
        self.assertIsNotNone(index._views[1].folder)
        with full:  # also once they are in files
            for number in range(3_000):
                more.append(Turn(f"n{number}", "Ann", "ale", 1e5 + number))
            index.add("aria", more)
            self.assertEqual(answers(index), answers_anew(more))
        index.add("aria", [Turn("end", "Ann", "warm", 2e5), Turn("e", "Ann", "so cold", 2e5)])
        index.add("aria", [Turn(f"o{n}", "Ann", "the end", 3e5) for n in range(5)])
        before = answers(index)
        index.close()
        self.assertEqual(answers(self.opened()), before)

    def test_a_removal_that_cannot_be_written_fails(self):
        """What cannot be removed from a file is no removed turn; it is, once there is room."""
        index = self.filled([*self.turns[:5], Turn("s", "Eve", SECRET, 99.0), *self.turns[5:]])
        with (
            mock.patch.object(
                turnwords_module, "write_durably", side_effect=OSError(errno.ENOSPC, "no space")
            ),
            self.assertRaises(StoreError),
        ):
            index.remove("aria", ["s"])
        self.assertEqual(answers(index), answers_anew(self.turns))
        self.assertFalse(any(SECRET.encode() in each for each in self.bytes()))


class TestGrowing(FileCase):
    def test_a_file_of_another_length(self):
        """Fewer rows than are wanted are an error; what follows them is not looked at."""
        column, file = Growing(np.int32), self.path
        column.extend(range(10))
        column.write_to(file)
        short, cut = Growing(np.int32), Growing(np.int32)
        cut.read_from(file, 6)
        cut.extend([7])
        self.assertEqual(cut.values.tolist(), [0, 1, 2, 3, 4, 5, 7])
        with self.assertRaises(ValueError):
            short.read_from(file, 99)

    def test_without_fallocate(self):
        """Where the system cannot reserve bytes, they are written."""
        column = Growing(np.int32, 3)
        column.extend(np.ones((5, 3)))
        with mock.patch.object(os, "posix_fallocate", create=True):
            del os.posix_fallocate
            column.write_to(self.path)
            column.extend(np.full((2_000, 3), 2))
        self.assertEqual(column.values.sum(), 15 + 2 * 6_000)


class TestTurnWords(unittest.TestCase):
    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(st.lists(st.integers(1, 12), unique=True, max_size=5), max_size=70),
        st.sets(st.integers(0, 69), max_size=20),
        st.integers(1, 30),
    )
    def test_like_lists(self, turns, gone, at_a_time):
        """Blocks answer as a search through all lists, also after turns were removed."""
        small_blocks(self)
        some = TurnWords()
        for start in range(0, len(turns), at_a_time):
            some.extend(turns[start : start + at_a_time])
        gone = {turn for turn in gone if turn < len(turns)}
        left = [[] if n in gone else said for n, said in enumerate(turns)]
        held = {word for said in left for word in said}
        unheld = {word for n in gone for word in turns[n]} - held
        self.assertEqual(some.remove(np.array(sorted(gone), dtype=np.int64)), sorted(unheld))
        found = [each.tolist() for each in some.of(range(14))]
        expected = [[n for n, said in enumerate(left) if word in said] for word in range(14)]
        self.assertEqual(found, expected)
        self.assertEqual(set(some.held()) - {0}, held)


class TestManyTurns(unittest.TestCase):
    """As in scopes of more than 20,000 turns, where cosines are estimated at first."""

    def setUp(self):
        for name, value in (("EXACT", 800), ("POOL", 500)):
            patch = mock.patch.object(feature_module, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.turns = chatter(1_500)
        self.turns.insert(
            700, Turn("needle", "Ann", "My aunt Odile keeps the lighthouse.", 42_000.5)
        )

    def index(self, turns):
        index = RecallIndex(":memory:")
        self.addCleanup(index.close)
        index.add("aria", turns)
        return index

    def test_needle(self):
        """One telling turn among many comes first, by its words or by their meaning."""
        index = self.index(self.turns)
        for query in ("Who is Odile?", "Who tends the beacon tower?"):
            self.assertEqual(index.search("aria", query, 1)[0].turn_id, "needle", query)

    def test_what_is_hidden_has_no_influence(self):
        """Hits for an audience are those of an index without the hidden turns."""
        rng = random.Random(3)
        turns = [replace(t, audience=rng.choice(["public", STAFF])) for t in self.turns]
        shown = self.index([turn for turn in turns if turn.audience == "public"])
        whole = self.index(turns)
        for query in QUERIES:
            expected = shown.search("aria", query, 30, "public")
            self.assertEqual(whole.search("aria", query, 30, "public"), expected)

    def test_estimates(self):
        """Signs tell cosines roughly, and the nearer of two vectors counts."""
        rng = np.random.default_rng(2)
        vectors = rng.normal(size=(400, 256))
        asked = vectors[:2] + rng.normal(size=(2, 256))
        columns = signs_of(quantised(vectors)).T
        found = likely_cosines(list(columns), asked, 256)
        norms = np.linalg.norm(vectors, axis=1)
        exact = (asked @ vectors.T / norms / np.linalg.norm(asked, axis=1)[:, None]).max(axis=0)
        self.assertLess(np.abs(found - exact).max(), 0.35)
        self.assertGreater(np.corrcoef(found, exact)[0, 1], 0.5)


class TestParts(unittest.TestCase):
    def test_a_long_talk_has_parts(self):
        """What is said of a talk as a whole is said of a part of a long one; neighbours stay."""
        index = RecallIndex(":memory:")
        self.addCleanup(index.close)
        index.add("aria", chatter(300))
        turns = index._view(1).seen_by(None)
        self.assertEqual(np.bincount(turns.sessions).tolist(), [300])
        self.assertEqual(np.bincount(turns.parts).tolist(), [128, 128, 44])
        self.assertEqual(turns.of_parts(np.array([130, 299])).tolist(), list(range(128, 300)))
        self.assertEqual(turns.places(np.array([0, 130])).tolist(), [0, 130])

    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(
            st.tuples(
                st.integers(0, 90),
                st.sampled_from(["message", "journal"]),
                st.sampled_from([None, "a", "b"]),
            ),
            min_size=1,
            max_size=20,
        ),
        st.sets(st.integers(0, 19), max_size=4),
    )
    def test_one_by_one_or_at_once(self, said, gone):
        """Turns seen one after the other stand in the same talks as those read at once."""
        turns = [
            Turn(f"t{n}", "Ann", "ale", 1_000.0 * minute, session, None, kind)
            for n, (minute, kind, session) in enumerate(said)
        ]
        first, second = RecallIndex(":memory:"), RecallIndex(":memory:")
        self.addCleanup(first.close)
        self.addCleanup(second.close)
        for turn in turns:
            first.add("aria", [turn])
            first.search("aria", "ale")
        first.remove("aria", [f"t{n}" for n in gone])
        second.add("aria", turns)
        second.remove("aria", [f"t{n}" for n in gone])
        one, other = first._view(1).seen_by(None), second._view(1).seen_by(None)
        self.assertEqual(one.base.tolist(), other.base.tolist())
        self.assertEqual(one.sessions.tolist(), other.sessions.tolist())
