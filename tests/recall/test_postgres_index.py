"""The recall index on PostgreSQL: the tests of the one in a file, and what is its own."""

import subprocess
import sys
import threading
import unittest
from contextlib import ExitStack
from itertools import count
from unittest.mock import patch

from evennia_ai.errors import StoreError
from evennia_ai.history.audience import STAFF, private
from evennia_ai.recall import RecallIndex, Turn
from tests import postgres
from tests.recall import test_index as index_tests
from tests.recall import test_recall_large as large_tests
from tests.recall import test_recall_latest as latest_tests
from tests.recall.test_index import TALK, FailingEmbedder, ids, talk
from tests.stand_ins import HashingEmbedder


def add_for_ever(url):
    """A server that adds talk to its own scope until it is killed."""
    from evennia_ai.recall.postgres import PostgresIndex

    index = PostgresIndex(url)
    for number in count():
        index.add("borg", talk(f"b{number}-", start=number * 10_000.0))
        print(number, flush=True)


class OnPostgres(unittest.TestCase):
    """`RecallIndex(...)` in the tests of the file's index makes one on PostgreSQL."""

    urls, open = {}, []

    @classmethod
    def setUpClass(cls):
        if why := postgres.why_no_vector():
            raise unittest.SkipTest(why)
        patches = cls.enterClassContext(ExitStack())
        for module in (index_tests, large_tests, latest_tests):
            patches.enter_context(patch.object(module, "RecallIndex", cls.opened))
        super().setUpClass()

    @classmethod
    def opened(cls, path=":memory:", embedder=None, model=None):
        """An index in a schema of its own, or in that of the path, as a file would be."""
        from evennia_ai.recall.postgres import PostgresIndex

        if path == ":memory:" or path not in cls.urls:
            cls.urls[path] = postgres.new_schema()
        index = PostgresIndex(cls.urls[path], embedder, model)
        # A connection that is needed again is made again.
        cls.open.append(index)
        while len(cls.open) > 8:
            cls.open.pop(0).close()
        cls.addClassCleanup(index.close)
        return index


class TestAddAndSearch(OnPostgres, index_tests.TestAddAndSearch):
    pass


class TestQueries(OnPostgres, index_tests.TestQueries):
    pass


class TestAudience(OnPostgres, index_tests.TestAudience):
    pass


class TestThreads(OnPostgres, index_tests.TestThreads):
    pass


class TestLargeScope(OnPostgres, large_tests.TestLargeScope):
    # These are about what only the file's index does.
    test_same_again = test_limit_above_what_is_looked_at = None


class TestLatest(OnPostgres, latest_tests.TestSearch):
    pass


class TestRemove(OnPostgres):
    def setUp(self):
        self.index = self.opened()
        self.index.add("aria", [*talk(), Turn("x", "Eve", "A zorblax sings.", 9_000.0)])

    def texts(self):
        """All that the tables hold, as one text."""
        tables = ["turns_1", "words", "vocabulary", "audiences", "scopes"]
        with self.index._at_work() as db:
            rows = [db.execute(f"SELECT * FROM recall_{table}").fetchall() for table in tables]
        return repr(rows)

    def test_removed_is_in_no_table(self):
        """Words that only a removed turn had go from the statistics and the vocabulary too."""
        self.assertIn("zorblax", self.texts())
        self.assertEqual(self.index.remove("aria", ["x", "nothing"]), 1)
        self.assertNotIn("zorblax", self.texts())
        self.assertNotIn("Eve", self.texts())
        self.assertEqual(self.index.count("aria"), len(TALK))

    def test_replaced_text_does_not_stay_either(self):
        """Nor do words of an earlier text of a turn."""
        self.index.add("aria", [Turn("x", "Eve", "A sparrow sings.", 9_000.0)])
        self.assertNotIn("zorblax", self.texts())

    def test_cleared(self):
        """Nothing is left of a scope, and others keep their words."""
        self.index.add("borg", talk())
        self.assertEqual(self.index.clear("aria", 3), len(TALK) + 1)
        self.assertEqual(self.index.clear("aria", 3), 0)
        self.assertNotIn("zorblax", self.texts())
        self.assertEqual(ids(self.index.search("borg", "broke arm mill", 1)), ["t7"])
        self.assertEqual(self.index.clear("nobody"), 0)

    def test_a_word_that_another_scope_has_stays(self):
        """A word goes only with the last turn of any scope that holds it."""
        self.index.add("borg", [Turn("x", "Eve", "A zorblax sings.", 9_000.0)])
        self.index.remove("aria", ["x"])
        self.assertIn("zorblax", self.texts())
        self.index.remove("borg", ["x"])
        self.assertNotIn("zorblax", self.texts())


class TestLikeTheFile(OnPostgres):
    def test_the_same_hits(self):
        """Up to 700 turns an audience's search gives what the index in a file gives."""
        turns = [*talk(), *talk("w", private(["o1"]), 900.0), *talk("s", STAFF, 4_000.0)]
        file, index = RecallIndex(":memory:"), self.opened()
        for each in (file, index):
            each.add("aria", turns)
        for asker in ("public", private(["o1"]), STAFF, None):
            for query in ("What is the raven called?", "Who broke an arm?", "Alice"):
                found = index.search("aria", query, 50, asker)
                self.assertEqual(found, file.search("aria", query, 50, asker))

    def test_common_words(self):
        """A turn with two words that thousands of turns have each is found by both."""
        said = [
            Turn(f"c{n}", "Ann", ("The ale is warm.", "The mill is far.")[n % 2], 60.0 * n)
            for n in range(9_000)
        ]
        said.insert(4_000, Turn("both", "Ben", "They drink ale at the mill.", 240_030.0))
        index = self.opened()
        index.add("aria", said)
        for query in ("ale at the mill", "What does Ben say of ale?"):
            self.assertIn("both", ids(index.search("aria", query, 1_000)), query)

    def test_filling(self):
        """The note stays, for each scope."""
        index = self.opened("filling")
        index.set_filling("aria", True)
        self.assertTrue(self.opened("filling").is_filling("aria"))
        self.assertFalse(index.is_filling("borg"))
        index.set_filling("aria", False)
        self.assertFalse(index.is_filling("aria"))


class TestServer(OnPostgres):
    def test_two_servers(self):
        """What one adds the other finds; two that add to the same scope at once lose nothing."""
        first, second = self.opened("shared"), self.opened("shared")
        first.add("aria", talk())
        self.assertEqual(ids(second.search("aria", "broke arm mill", 1)), ["t7"])

        def add(index, prefix):
            for turn in talk(prefix):
                index.add("aria", [turn])
                index.add(f"own {prefix}", [turn])

        pairs = ((first, "a"), (second, "b"))
        threads = [threading.Thread(target=add, args=pair) for pair in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(first.count("aria"), 3 * len(TALK))
        self.assertEqual(second.get("own a", ["b1"]), ())

    def test_one_server_is_killed(self):
        """Another goes on, what the killed one had begun is whole or absent, and stays its own."""
        index = self.opened("killed")
        index.add("aria", talk())
        script = "import sys; from tests.recall.test_postgres_index import add_for_ever; "
        script += "add_for_ever(sys.argv[1])"
        command = [sys.executable, "-c", script, self.urls["killed"]]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            for _ in range(3):
                self.assertTrue(child.stdout.readline())
                self.assertEqual(ids(index.search("aria", "broke arm mill", 1)), ["t7"])
            child.kill()
        index.add("aria", talk("after"))
        self.assertEqual(index.count("aria"), 2 * len(TALK))
        self.assertEqual(index.get("aria", ["b0-0"]), ())
        self.assertEqual(index.get("borg", ["t0"]), ())
        self.assertGreaterEqual(index.count("borg"), 3 * len(TALK))
        self.assertEqual(index.count("borg") % len(TALK), 0)
        self.assertEqual(len(index.get("borg", [f"b0-{n}" for n in range(10)])), len(TALK))

    def test_a_crash_of_the_database(self):
        """A call fails with a reason while it is down; later all is there again."""
        server = postgres.Server(["fsync=on", "synchronous_commit=on"])
        self.addCleanup(server.stop)
        self.urls["crash"] = server.url()
        index = self.opened("crash")
        index.add("aria", talk())
        server.kill()
        with self.assertRaisesRegex(StoreError, "recall index on PostgreSQL"):
            index.search("aria", "raven")
        server.start()
        self.assertIn("t4", ids(index.search("aria", "raven")))

    def test_no_address(self):
        """An address that is none is refused without being shown."""
        from evennia_ai.recall.postgres import PostgresIndex

        for url in ("postgresql://aria:sesame@[host", "postgresql://x?sesame=1"):
            with self.assertRaises(StoreError) as caught:
                PostgresIndex(url)
            self.assertNotIn("sesame", str(caught.exception))

    def test_tables_of_another_version(self):
        """Tables that do not fit are made anew, empty."""
        self.opened("version").add("aria", talk())
        index = self.opened("version", HashingEmbedder())
        self.assertEqual(index.count("aria"), 0)
        index.add("aria", talk())
        self.assertEqual(ids(index.search("aria", "broke arm mill", 1)), ["t7"])

    def test_a_failed_add(self):
        """After an add that fails nothing of it is stored."""
        embedder = FailingEmbedder()
        index = self.opened("failing", embedder)
        index.add("aria", talk())
        embedder.fails = True
        with self.assertRaises(MemoryError):
            index.add("aria", [Turn("t7", "Bram", "I sold a horse.", 420.0)])
        embedder.fails = False
        self.assertEqual(index.get("aria", ["t7"])[0].text, TALK[7][1])
        self.assertEqual(index.count("aria"), len(TALK))
