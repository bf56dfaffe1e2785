"""The Mem0 store, on the real Mem0 with an embedded Qdrant in a temporary folder.

What every back end must do stands in `test_memory_backends`.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from twisted.internet.defer import Deferred

from evennia_ai.errors import StoreError
from evennia_ai.rag_memory import Mem0Backend, mem0
from tests.stand_ins import HashingEmbedder
from tests.store_case import StoreCase, item
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
POINTS = "qdrant/collection/evennia_ai/storage.sqlite"
SECRET = "xylophone"
ADDING = """
import sys
from tests.store_case import HashingEmbedder, Mem0Backend, item, wait_for
store = Mem0Backend(sys.argv[1], embedder=HashingEmbedder())
for n in range(1000):
    wait_for(store.add('aria', [item(f'j{n}', f'fact {n}')]))
    print(n, flush=True)
"""

DELETING = """
import os, sys
from tests.store_case import HashingEmbedder, Mem0Backend, wait_for
store = Mem0Backend(sys.argv[1], embedder=HashingEmbedder())
print(wait_for(store.delete('aria', ['j1'])), flush=True)
os._exit(0)
"""


def run(program, folder, **env):
    """What a program in a process of its own prints, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


class TestSearch(StoreCase):
    def test_only_what_is_near_or_shares_a_word(self):
        """Of two memories the one without a word of the query is left out, if it is not near."""
        self.add(item("j1", "the silver key"), item("j2", "a brown dog"))
        self.assertEqual(self.texts("where is the key"), ["the silver key"])
        for embedder, least in ((None, mem0.NEAR), (HashingEmbedder(), mem0.NEAR_OTHERS)):
            self.assertEqual(Mem0Backend(self.folder, embedder=embedder)._near, least)

    def test_a_crowd_hides_nothing(self):
        """Hundreds of better hits of others do not push out the one that may be seen."""
        self.add(*(item(f"c{n}", "silver silver", "private:bob") for n in range(90)))
        self.add(item("own", "silver spoon of hers", "private:alice"))
        found = self.texts("silver", limit=1, audience="private:alice")
        self.assertEqual(found, ["silver spoon of hers"])


class TestDelete(StoreCase):
    def grep(self):
        paths = [path for path in self.folder.rglob("*") if path.is_file()]
        return [path.name for path in paths if SECRET.encode() in path.read_bytes()]

    def test_no_file_holds_what_was_deleted_or_replaced(self):
        """Nor what Mem0 kept beside it; others stay."""
        self.add(*(item(f"j{n}", f"{SECRET} number {n}") for n in range(30)), item("k", "harmless"))
        self.assertTrue(self.grep())
        self.assertEqual(self.delete(*(f"j{n}" for n in range(1, 30)), "unknown"), 29)
        self.add(item("j0", "another thing"))
        self.delete("unknown")
        self.assertEqual(self.grep(), [])
        self.reopened()
        self.assertEqual(self.ids(), {"j0", "k"})
        self.assertEqual(self.texts("harmless")[0], "harmless")

    def test_what_is_stored_already(self):
        """It is left as it is; another text, time or audience takes its place."""
        self.add(item("j1", "a silver key"), item("j2", "a brown dog"))
        rows = {row["id"] for row in self.store._rows("aria")}
        self.add(item("j1", "a silver key"))
        self.assertEqual({row["id"] for row in self.store._rows("aria")}, rows)
        self.add(item("j1", "a silver key", "private:alice"), item("j2", "a brown cat"))
        self.assertTrue(rows.isdisjoint(row["id"] for row in self.store._rows("aria")))
        self.assertEqual(self.ids(), {"j1", "j2"})

    def test_whatever_pages_were_split(self):
        """Texts of any length, added in any order: SQLite copies rows between its pages."""
        for seed in range(3):
            rng = random.Random(seed)
            ids = rng.sample(range(10_000), 60)
            said = [item(f"{n:x}", f"{SECRET} " * rng.randint(1, 300)) for n in ids]
            self.add(*said[:30])
            self.add(*(item(f"k{n}", "ale " * rng.randint(1, 80)) for n in ids[:20]))
            self.add(*said[30:])
            self.assertEqual(self.delete(*(each.id for each in said)), 60)
            self.assertEqual(self.grep(), [], seed)

    def test_when_the_file_is_rewritten(self):
        """By the first deletion after one was deleted or replaced, also in an earlier process."""
        self.add(item("j1", "a silver key"), item("j2", "a brown dog"))
        done = []

        def watched():
            for file in wait_for(self.store._run(self.store._files)):
                file.set_trace_callback(done.append)

        for work, count in (
            (lambda: self.delete("unknown"), 0),
            (lambda: self.add(item("j1", "a golden key")), 0),
            (self.reopened, 0),
            (lambda: self.delete("unknown"), 1),
            (lambda: self.delete("j2"), 1),
            (lambda: self.delete("j2"), 0),
        ):
            done.clear()
            watched()
            work()
            self.assertEqual(done.count("VACUUM"), count)

    def test_killed_between_deleting_and_rewriting(self):
        """What is asked for again is taken out of the file, though the store holds it no more."""
        self.add(*(item(f"j{n}", f"{SECRET} " * 50) for n in range(9)), item("j9", "harmless"))
        ids = [f"j{n}" for n in range(9)]
        with patch.object(Mem0Backend, "_rewrite", side_effect=OSError("killed")):
            self.assertRaises(StoreError, self.delete, *ids)
        self.assertEqual(self.delete(*ids), 0)
        self.assertEqual(self.grep(), [])

    def test_killed_behind_a_deletion(self):
        """A process that ends at once leaves nothing of what a former one had stored."""
        self.add(item("j1", f"{SECRET} " * 50), item("j2", "harmless"))
        wait_for(self.store.close())
        self.assertEqual(run(DELETING, self.folder), 1)
        self.assertEqual(self.grep(), [])
        self.store = self.opened()
        self.assertEqual(self.ids(), {"j2"})


class TestFiles(StoreCase):
    def test_closed(self):
        """The folder is free for another, and the closed store refuses."""
        self.add(item("j1", "text"))
        second = self.opened()
        with self.assertRaisesRegex(StoreError, "already accessed"):
            wait_for(second.ids("aria"))
        self.assertFalse(wait_for(second.status())["ok"])
        wait_for(self.store.close())
        self.assertEqual(wait_for(second.ids("aria"), 60), {"j1"})
        with self.assertRaisesRegex(StoreError, "closed"):
            self.add(item("j1", "text"))

    def test_killed_while_adding(self):
        """A process killed in the middle leaves a sound store, and nothing is doubled."""
        command = [sys.executable, "-c", ADDING, str(self.folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as child:
            for line in child.stdout:
                if int(line) == 20:
                    child.kill()
                    break
        self.assertLessEqual({f"j{n}" for n in range(21)}, self.ids())
        self.add(*(item(f"j{n}", f"fact {n}") for n in range(40)))
        self.assertEqual(len(self.texts("fact", limit=100)), 40)

    def assert_begins_anew(self, why):
        """The first use says what happened, the next ones work, and the status still says it."""
        with self.assertRaisesRegex(StoreError, f"{why}.*aimemory/rebuild"):
            self.ids()
        self.add(item("j2", "blue door"))
        self.assertEqual(self.ids(), {"j2"})
        status = self.status()
        self.assertTrue(status["ok"])
        self.assertRegex(status["detail"], why)

    def test_deleted_while_open(self):
        """Whatever of its files is gone."""
        for part in ("", "qdrant", POINTS):
            with self.subTest(part):
                self.reopened()
                self.add(item("j1", "red door"))
                gone = self.folder / part
                gone.unlink() if gone.is_file() else shutil.rmtree(gone)
                self.assert_begins_anew("was deleted")
                self.delete("j1", "j2")

    def test_damaged(self):
        """Whichever file holds nonsense."""
        for part in ("qdrant/meta.json", POINTS):
            with self.subTest(part):
                self.reopened()
                self.add(item("j1", "red door"))
                wait_for(self.store.close())
                (self.folder / part).write_bytes(b"nonsense" * 500)
                self.store = self.opened()
                self.assert_begins_anew("was damaged")

    def test_what_cannot_be_opened_is_not_damaged(self):
        """A database that cannot even be read is left where it is."""
        self.add(item("j1", "text"))
        wait_for(self.store.close())
        points = self.folder / POINTS
        kept = points.rename(self.folder / "kept")
        points.mkdir()
        self.store = self.opened()
        self.assertIn("OperationalError", self.status()["detail"])
        points.rmdir()
        kept.rename(points)
        self.assertEqual(self.ids(), {"j1"})


class TestConfiguration(StoreCase):
    def test_own_vector_store(self):
        """A vector store of the owner's takes the place of the embedded one."""
        where = self.folder / "elsewhere"
        store = {"provider": "qdrant", "config": {"path": str(where)}}
        self.reopened(config={"vector_store": store})
        self.add(item("j1", "text"))
        self.assertTrue(where.exists())
        self.assertFalse((self.folder / "qdrant").exists())
        self.assertEqual(self.delete("j1"), 1)

    def test_own_embedder(self):
        """An embedder of the owner's is left as Mem0 builds it; what is billed is known."""
        embedder = {"provider": "openai", "config": {"api_key": "none", "embedding_dims": 8}}
        self.reopened(config={"embedder": embedder}, embedder=None)
        self.assertTrue(self.status()["ok"])
        memory = self.store._memory
        self.assertEqual(type(memory.embedding_model).__name__, "OpenAIEmbedding")
        made = memory.vector_store.client.get_collection(memory.collection_name)
        self.assertEqual(made.config.params.vectors.size, 8)
        for named, billed in (
            (embedder, mem0.OPENAI_EMBEDDER),
            ({"provider": "gemini", "config": {"model": "m"}}, "gemini/m"),
            ({"provider": "ollama"}, ""),
        ):
            store = Mem0Backend(self.folder, {"embedder": named})
            self.assertEqual(store.billed_embedder, billed)

    def test_invalid(self):
        """A configuration Mem0 does not accept is named by its setting."""
        for wrong in ({"provider": "a drawer"}, "qdrant"):
            self.reopened(config={"vector_store": wrong})
            with self.assertRaisesRegex(StoreError, "EVENNIA_AI_MEM0_CONFIG"):
                self.ids()

    def test_slow_server(self):
        """Each call fails in words after its time, so that no night waits for ever."""
        silent = SimpleNamespace(submit=lambda *args: Deferred())
        with patch.object(mem0, "STORE_TIMEOUT_S", 0.05):
            memory = Mem0Backend(self.folder)
            memory._worker = silent
            for done in (memory.search("aria", "bees"), memory.ids("aria")):
                with self.assertRaisesRegex(StoreError, "did not answer"):
                    wait_for(done)


class TestQuiet(unittest.TestCase):
    """What Mem0 does unasked elsewhere."""

    def test_nothing_outside_the_folder_and_no_threads(self):
        """No files in the home folder, no reporting threads, no key, no network."""
        program = (
            "import sys, json, os, socket, threading\n"
            "[os.environ.pop(key) for key in list(os.environ) if key.endswith('_API_KEY')]\n"
            "def refuse(*args): raise OSError('no network in this test')\n"
            "socket.getaddrinfo = socket.socket.connect = refuse\n"
            "from tests.store_case import Mem0Backend, item, wait_for\n"
            "store = Mem0Backend(sys.argv[1])\n"
            "items = [item('j1', 'Alice raises honeybees.'), item('j2', 'The door is locked.')]\n"
            "wait_for(store.add('aria', items), 60)\n"
            "found = wait_for(store.search('aria', 'has Alice a beehive', limit=1), 60)\n"
            "names = sorted(thread.name for thread in threading.enumerate())\n"
            "print(json.dumps([names, [hit.text for hit in found]]))\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            home.mkdir()
            threads, found = run(program, Path(folder) / "memory", HOME=str(home))
            self.assertEqual(list(home.iterdir()), [])
        # The embedder's progress bars have an idle thread; Mem0's reporters would be more.
        self.assertLessEqual(set(threads), {"MainThread", "evennia-ai-memory", "tqdm_monitor"})
        self.assertEqual(found, ["Alice raises honeybees."])

    def test_missing(self):
        """A game without `mem0ai` gets one sentence that tells what to install."""
        program = (
            "import sys, json; sys.modules['mem0'] = None;"
            "from tests.store_case import HashingEmbedder, Mem0Backend, wait_for;"
            "store = Mem0Backend(sys.argv[1], embedder=HashingEmbedder());"
            "print(json.dumps(wait_for(store.status())))"
        )
        with tempfile.TemporaryDirectory() as folder:
            status = run(program, folder)
        self.assertFalse(status["ok"])
        self.assertIn("pip install mem0ai", status["detail"])
