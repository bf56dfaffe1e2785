"""The Mem0 store, on the real Mem0 with an embedded Qdrant in a temporary folder."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from twisted.internet.defer import Deferred

from evennia_ai import rag_memory
from evennia_ai.errors import StoreError
from evennia_ai.history.audience import STAFF, private
from evennia_ai.rag_memory import Mem0Backend
from evennia_ai.rag_memory.mem0_backend import backend, engine, files, setup
from tests.stand_ins import HashingEmbedder
from tests.store_case import StoreCase, item
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]


class TestAddAndSearch(StoreCase):
    """Storing and finding."""

    def test_finds_what_was_stored(self):
        """The memory that shares most words with the query comes first, with its metadata."""
        ids = self.add(
            item("j1", "Alice keeps bees behind the mill", importance=7, tags=["bees"]),
            item("j2", "The cellar door is locked at night"),
        )
        best = self.search("who keeps bees")[0]
        self.assertEqual(best["id"], ids[0])
        self.assertEqual(best["text"], "Alice keeps bees behind the mill")
        self.assertEqual(best["metadata"]["source_id"], "j1")
        self.assertEqual(best["metadata"]["importance"], 7)
        self.assertEqual(best["metadata"]["tags"], ["bees"])
        self.assertGreater(best["score"], 0)

    def test_adding_twice_stores_once(self):
        """The same sources added again, also after a restart, keep their memories."""
        first = self.add(item("j1", "red door"), item("j2", "blue door"))
        again = self.add(item("j2", "blue door"), item("j1", "changed"), item("j1", "red door"))
        self.reopened()
        later = self.add(item("j1", "red door"), item("j2", "blue door"))
        self.assertEqual(again, [first[1], first[0], first[0]])
        self.assertEqual(later, first)
        self.assertEqual(wait_for(self.store.ids("aria")), set(first))

    def test_the_source_of_one(self):
        """One memory's source is told by its id, in its own scope only."""
        (kept,) = self.add(item("j1", "red door"))
        found = [self.store.source_of(scope, each) for scope, each in (("aria", kept), ("b", kept))]
        self.assertEqual([wait_for(done) for done in found], ["j1", None])
        for unknown in ("m0", "00000000-0000-4000-8000-000000000000"):
            self.assertIsNone(wait_for(self.store.source_of("aria", unknown)))

    def test_more_items_than_a_batch_keep_their_order(self):
        """A long list is stored in pieces and answered in one order."""
        items = [item(f"j{n}", f"fact number {n}") for n in range(60)]
        ids = self.add(*items)
        sources = wait_for(self.store.sources("aria"))
        self.assertEqual(ids, [sources[f"j{n}"] for n in range(60)])

    def test_scopes_are_apart(self):
        """One assistant never finds, lists or deletes another's memory; spaces are no trap."""
        self.add(item("j1", "the silver key"), scope="a b")
        other = self.add(item("j1", "the silver key"), scope="a%20b")
        self.assertEqual(len(self.search("silver key", scope="a b")), 1)
        self.assertEqual(self.search("silver key", scope="ab"), [])
        self.assertEqual(wait_for(self.store.delete("a b", other)), 0)
        self.assertEqual(wait_for(self.store.ids("a%20b")), set(other))

    def test_empty_query_or_limit_finds_nothing(self):
        """Nothing asked for is nothing found, and no error."""
        self.add(item("j1", "the silver key"))
        self.assertEqual(self.search("   "), [])
        self.assertEqual(self.search("key", limit=0), [])

    def test_how_near_depends_on_the_embedder(self):
        """Cosines of the packaged embedder begin higher than those of an owner's."""
        self.assertEqual(Mem0Backend(self.folder).near, backend.NEAR)
        owners = Mem0Backend(self.folder, {"embedder": {"provider": "openai"}})
        self.assertEqual((owners.near, self.store.near), (backend.NEAR_MEMORY, backend.NEAR_MEMORY))

    def test_text_without_known_words_is_near_to_nothing(self):
        """A query whose vector is zero finds nothing rather than everything."""

        class Mute(HashingEmbedder):
            def embed(self, texts):
                rows = super().embed(texts)
                rows[[text == "zzz" for text in texts]] = 0
                return rows

        self.reopened(embedder=Mute())
        self.add(item("j1", "the silver key"), item("j2", "zzz"))
        self.assertEqual(self.search("zzz"), [])
        self.assertEqual(self.texts("silver"), ["the silver key"])

    def test_refuses_an_item_without_text_or_source(self):
        """What could never be found or told apart is refused by name."""
        for broken in (item("", "text"), item("j1", "  ")):
            with self.assertRaisesRegex(StoreError, "source_id"):
                self.add(broken)

    def test_refuses_an_empty_scope(self):
        """A memory belongs to somebody."""
        with self.assertRaisesRegex(StoreError, "scope"):
            self.add(item("j1", "text"), scope="")


class TestAudience(StoreCase):
    """Who may find what."""

    def setUp(self):
        super().setUp()
        self.add(
            item("p", "gold under the oak", "public"),
            item("a", "gold under the bed", private(["alice"])),
            item("ab", "gold under the bridge", private(["alice", "bob"])),
            item("b", "gold under the stairs", private(["bob"])),
            item("s", "gold under the throne", STAFF),
        )

    def seen(self, audience, **kwargs):
        found = self.search("gold under the", audience=audience, **kwargs)
        return {memory["metadata"]["source_id"] for memory in found}

    def test_each_viewer_sees_their_own(self):
        """Public sees public, a private circle what all of it knows, staff everything."""
        self.assertEqual(self.seen(None), {"p"})
        self.assertEqual(self.seen("public"), {"p"})
        self.assertEqual(self.seen(private(["alice"])), {"p", "a", "ab"})
        self.assertEqual(self.seen(private(["alice", "bob"])), {"p", "ab"})
        self.assertEqual(self.seen(private(["carol"])), {"p"})
        self.assertEqual(self.seen(STAFF), {"p", "a", "ab", "b", "s"})
        for nobody_known in ("", "alice", "Public", "everyone", "private:"):
            self.assertEqual(self.seen(nobody_known), {"p"})

    def test_the_limit_counts_only_what_may_be_seen(self):
        """A crowd of better hits of others does not push out the one that may be seen."""
        crowd = [item(f"c{n}", "silver silver silver", private(["bob"])) for n in range(90)]
        self.add(*crowd, item("own", "silver spoon of hers", private(["alice"])))
        found = self.search("silver", limit=1, audience=private(["alice"]))
        self.assertEqual([memory["metadata"]["source_id"] for memory in found], ["own"])

    def test_a_public_search_is_not_crowded_out_either(self):
        """The same for a public turn."""
        crowd = [item(f"c{n}", "silver silver", private(["bob"])) for n in range(30)]
        self.add(*crowd, item("own", "silver spoon of theirs"))
        self.assertEqual(self.texts("silver", limit=1), ["silver spoon of theirs"])


class TestDelete(StoreCase):
    """Forgetting for good."""

    def grep(self, text):
        """Every file under the folder that holds a text."""
        wanted = text.encode()
        paths = [path for path in self.folder.rglob("*") if path.is_file()]
        return [path.name for path in paths if wanted in path.read_bytes()]

    def history_rows(self):
        with closing(sqlite3.connect(self.folder / "history.db")) as database:
            history = database.execute("SELECT old_memory, new_memory FROM history").fetchall()
            messages = database.execute("SELECT content FROM messages").fetchall()
        return [cell for row in [*history, *messages] for cell in row if cell]

    def test_deleted_text_is_in_no_table_and_no_file(self):
        """After a deletion the words stand nowhere under the folder, and others stay."""
        gone, kept = self.add(item("j1", "xylophone secret"), item("j2", "harmless remark"))
        self.assertTrue(self.grep("xylophone"))
        self.assertEqual(wait_for(self.store.delete("aria", [gone])), 1)
        self.assertEqual(self.grep("xylophone"), [])
        self.assertEqual(self.history_rows(), ["harmless remark"])
        self.assertEqual(wait_for(self.store.ids("aria")), {kept})
        self.reopened()
        self.assertEqual(self.texts("xylophone secret"), [])
        self.assertEqual(self.texts("harmless"), ["harmless remark"])

    def test_messages_of_the_scope_go_too(self):
        """Texts Mem0 keeps for extraction cannot be told apart, so those of the scope go."""
        gone = self.add(item("j1", "xylophone secret"), scope="a b")
        with closing(sqlite3.connect(self.folder / "history.db")) as database, database:
            rows = [("1", "agent_id=a%2520b", "xylophone"), ("2", "agent_id=other", "theirs")]
            database.executemany(
                "INSERT INTO messages (id, session_scope, content) VALUES (?, ?, ?)", rows
            )
        wait_for(self.store.delete("a b", gone))
        self.assertEqual(self.history_rows(), ["theirs"])

    def test_unknown_ids_do_not_count(self):
        """Deleting what is not there is no error."""
        self.add(item("j1", "text"))
        unknown = ["nonsense", "00000000-0000-4000-8000-000000000000"]
        self.assertEqual(wait_for(self.store.delete("aria", unknown)), 0)

    def test_a_deletion_cut_short_is_finished_at_the_next_start(self):
        """Rows that Mem0 wrote about a deletion before a crash are gone after a restart."""
        (gone,) = self.add(item("j1", "xylophone secret"))
        memory = self.store._engine._memory
        wait_for(self.store._run(memory.delete, gone))
        self.assertIn("xylophone secret", self.history_rows())
        self.reopened()
        wait_for(self.store.status(), 60)
        self.assertEqual(self.history_rows(), [])

    def test_damaged_copies_go_with_the_first_deletion(self):
        """A store that was moved aside may hold what is to be forgotten, so it does not stay."""
        self.add(item("j1", "xylophone secret"))
        wait_for(self.store.close())
        (self.folder / "qdrant" / "meta.json").write_bytes(b"{nonsense")
        (self.folder / "history.db").write_bytes(b"xylophone" * 500)
        self.store = self.opened()
        wait_for(self.store.status(), 60)
        self.assertTrue(self.grep("xylophone"))
        self.assertEqual(wait_for(self.store.delete("aria", [])), 0)
        self.assertEqual(self.grep("xylophone"), [])
        self.assertIn("forgotten", wait_for(self.store.status())["detail"])

    def test_scrub_rewrites_where_sqlite_does_not_erase(self):
        """On a SQLite that leaves deleted text in the file, a rewrite takes it out."""
        path = self.folder / "plain.sqlite"
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA secure_delete = OFF")
            with database:
                database.execute("CREATE TABLE points (text TEXT)")
                database.execute("INSERT INTO points VALUES ('xylophone secret')")
            with database:
                database.execute("DELETE FROM points")
        self.assertTrue(self.grep("xylophone"))
        self.assertEqual(files.scrub([path], erases_by_itself=True), 0)
        self.assertEqual(files.scrub([path], erases_by_itself=False), 1)
        self.assertEqual(self.grep("xylophone"), [])


class TestFiles(StoreCase):
    """Locks, damage, closing."""

    def test_everything_is_under_the_folder(self):
        """Vectors, history and Mem0's own configuration file are all in the folder."""
        self.add(item("j1", "text"))
        names = {path.name for path in self.folder.iterdir()}
        self.assertLessEqual({"qdrant", "history.db"}, names)

    def test_status_counts(self):
        """A sound store says so, with its count and folder."""
        self.add(item("j1", "one"), item("j2", "two"))
        self.add(item("j1", "one"), scope="other")
        status = wait_for(self.store.status())
        self.assertTrue(status["ok"])
        self.assertEqual(status["count"], 3)
        self.assertEqual(status["path"], str(self.folder))

    def test_after_close_another_instance_can_open(self):
        """Closing releases the lock, and the memories are still there."""
        ids = self.add(item("j1", "text"))
        self.reopened()
        self.assertEqual(wait_for(self.store.ids("aria"), 60), set(ids))

    def test_a_closed_store_refuses(self):
        """A call after closing fails with a plain sentence instead of locking again."""
        wait_for(self.store.close())
        with self.assertRaisesRegex(StoreError, "closed"):
            self.add(item("j1", "text"))

    def test_a_locked_folder_is_said_and_waited_out(self):
        """A second instance is told that the folder is in use, and works once it is free."""
        ids = self.add(item("j1", "text"))
        second = self.opened()
        with self.assertRaisesRegex(StoreError, "in use by another process"):
            wait_for(second.ids("aria"), 60)
        status = wait_for(second.status(), 60)
        self.assertFalse(status["ok"])
        self.assertIn("in use", status["detail"])
        wait_for(self.store.close())
        self.assertEqual(wait_for(second.ids("aria"), 60), set(ids))

    def test_another_process_can_open_after_close(self):
        """The lock is free for a new process too."""
        self.add(item("j1", "text"))
        wait_for(self.store.close())
        program = (
            "import sys; from evennia_ai.rag_memory.mem0_backend.engine import Engine;"
            "from tests.stand_ins import HashingEmbedder;"
            "engine = Engine(sys.argv[1], None, HashingEmbedder());"
            "print(len(engine.ids('aria'))); engine.close()"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(self.folder)],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=ROOT,
        )
        self.assertEqual(done.stdout.strip(), "1", done.stderr)

    def test_killed_while_adding(self):
        """A process killed in the middle leaves a sound store, and nothing is doubled."""
        program = (
            "import sys; from evennia_ai.rag_memory.mem0_backend.engine import Engine;"
            "from tests.stand_ins import HashingEmbedder;"
            "engine = Engine(sys.argv[1], None, HashingEmbedder());\n"
            "for n in range(1000):\n"
            "    item = {'source_id': f'j{n}', 'text': f'fact number {n}'}\n"
            "    engine.add('aria', [item]); print(n, flush=True)\n"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", program, str(self.folder)], stdout=subprocess.PIPE, cwd=ROOT
        )
        with child:
            for line in child.stdout:
                if int(line) == 20:
                    child.kill()
                    break
        held = wait_for(self.store.sources("aria"), 60)
        self.assertLessEqual({f"j{n}" for n in range(21)}, set(held))
        ids = self.add(*(item(f"j{n}", f"fact number {n}") for n in range(40)))
        status = wait_for(self.store.status())
        self.assertEqual(status["count"], len(set(ids) | set(held.values())))
        self.assertNotIn("damaged", status["detail"])

    def test_two_damages_in_one_second_keep_both(self):
        """A name that is taken is not overwritten."""
        for _ in range(2):
            path = self.folder / "history.db"
            path.write_text("x")
            files.move_aside(path, now=0.0)
        names = sorted(path.name for path in self.folder.iterdir())
        first = "history.db.damaged-19700101T000000Z"
        self.assertEqual(names, [first, f"{first}-2"])
        self.assertEqual(files.forget_rows(self.folder / "none.db", ["x"], "agent_id=x"), 0)

    def test_a_store_that_is_not_to_blame_is_put_back(self):
        """If an empty store cannot be opened either, the old one is left as it was."""
        ids = self.add(item("j1", "text"))
        meta = self.folder / "qdrant" / "meta.json"
        good = meta.read_bytes()
        wait_for(self.store.close())
        config = {"llm": {"provider": "ollama", "config": {"no_such_option": 1}}}
        self.store = self.opened(config=config)
        status = wait_for(self.store.status(), 60)
        self.assertFalse(status["ok"])
        self.assertEqual(meta.read_bytes(), good)
        self.assertEqual(list(self.folder.glob("*.damaged-*")), [])
        self.reopened()
        self.assertEqual(wait_for(self.store.ids("aria"), 60), set(ids))

    def test_what_cannot_be_opened_is_an_error_not_damage(self):
        """A database that cannot even be read is left where it is."""
        self.add(item("j1", "text"))
        (points,) = (self.folder / "qdrant").rglob("storage.sqlite")
        for path in (points, self.folder / "history.db"):
            wait_for(self.store.close())
            path.unlink()
            path.mkdir()
            self.store = self.opened()
            status = wait_for(self.store.status(), 60)
            self.assertFalse(status["ok"])
            self.assertIn("OperationalError", status["detail"])
            self.assertEqual(list(self.folder.glob("*.damaged-*")), [])
            shutil.rmtree(path)

    def broken(self, path, content):
        """Write nonsense into a file of a closed store and open the store again."""
        self.add(item("j1", "text"))
        wait_for(self.store.close())
        path.write_bytes(content)
        self.store = self.opened()
        return wait_for(self.store.status(), 60)

    def assert_rebuilt_empty(self, status, name):
        self.assertTrue(status["ok"], status)
        self.assertIn("damaged", status["detail"])
        moved = [path.name for path in self.folder.iterdir() if f"{name}.damaged-" in path.name]
        self.assertEqual(len(moved), 1)
        ids = self.add(item("j1", "text"))
        self.assertEqual(wait_for(self.store.ids("aria")), set(ids))

    def test_damaged_meta_file(self):
        """A store whose description is nonsense is moved aside and made anew."""
        status = self.broken(self.folder / "qdrant" / "meta.json", b"{nonsense")
        self.assert_rebuilt_empty(status, "qdrant")

    def test_damaged_points_file(self):
        """The same for the file of the points."""
        self.add(item("j0", "text"))
        (path,) = (self.folder / "qdrant").rglob("storage.sqlite")
        status = self.broken(path, b"not a database" * 500)
        self.assert_rebuilt_empty(status, "qdrant")

    def test_damaged_history_file(self):
        """A broken history is moved aside; the vectors stay."""
        status = self.broken(self.folder / "history.db", b"not a database" * 500)
        self.assertIn("history.db.damaged-", status["detail"])
        self.assertEqual(status["count"], 1)

    def test_files_deleted_under_an_open_store(self):
        """Whatever is deleted, the next use says so, and the one after it works on a new store."""
        for name in ("", "qdrant", "history.db"):
            for use in ("search", "sources", "add"):
                with self.subTest(deleted=name or "all", use=use):
                    self.add(item("j1", "red door"))
                    gone = self.folder / name
                    gone.unlink() if gone.is_file() else shutil.rmtree(gone)
                    asked = {
                        "search": lambda: self.search("red door"),
                        "sources": lambda: wait_for(self.store.sources("aria")),
                        "add": lambda: self.add(item("j2", "blue door")),
                    }
                    with self.assertRaisesRegex(StoreError, "deleted.*aimemory/rebuild"):
                        asked[use]()
                    self.add(item("j1", "red door"), item("j2", "blue door"))
                    self.assertEqual(set(wait_for(self.store.sources("aria"))), {"j1", "j2"})
                    self.assertIn("deleted", wait_for(self.store.status())["detail"])

    def test_vectors_of_another_length_are_moved_aside(self):
        """A store made with another embedder cannot be searched; it is rebuilt."""
        self.add(item("j1", "text"))
        self.reopened(embedder=HashingEmbedder(dims=32))
        status = wait_for(self.store.status(), 60)
        self.assertIn("64 numbers, not 32", status["detail"])
        self.assertEqual(status["count"], 0)
        self.add(item("j1", "text"))
        self.assertEqual(self.texts("text"), ["text"])

    def test_thrown_away_store_starts_empty(self):
        """Without its folder the store is empty and works."""
        self.add(item("j1", "text"))
        wait_for(self.store.close())
        shutil.rmtree(self.folder)
        self.store = self.opened()
        self.assertEqual(wait_for(self.store.ids("aria"), 60), set())

    def test_a_folder_that_cannot_be_made(self):
        """A path that is a file is reported, not raised raw."""
        blocker = self.folder / "file"
        blocker.write_text("x")
        store = Mem0Backend(blocker / "memory", embedder=HashingEmbedder())
        status = wait_for(store.status(), 60)
        self.assertFalse(status["ok"])
        self.assertIn("memory store at", status["detail"])


class TestConfiguration(StoreCase):
    """The owner's Mem0 configuration."""

    def test_own_vector_store(self):
        """A vector store of the owner's takes the place of the embedded one."""
        where = self.folder / "elsewhere"
        config = {"vector_store": {"provider": "qdrant", "config": {"path": str(where)}}}
        self.reopened(config=config)
        self.add(item("j1", "text"))
        self.assertTrue(where.exists())
        self.assertFalse((self.folder / "qdrant").exists())
        self.assertEqual(wait_for(self.store.status())["count"], 1)
        self.assertEqual(len(engine._databases(self.store._engine._memory)), 1)

    def test_own_embedder(self):
        """An embedder of the owner's is left as Mem0 builds it, and ours is not even loaded."""
        embedder = {"provider": "openai", "config": {"api_key": "none", "embedding_dims": 8}}
        self.reopened(config={"embedder": embedder}, embedder=None)
        self.assertTrue(wait_for(self.store.status(), 60)["ok"])
        memory = self.store._engine._memory
        self.assertEqual(type(memory.embedding_model).__name__, "OpenAIEmbedding")
        made = memory.vector_store.client.get_collection(memory.collection_name)
        self.assertEqual(made.config.params.vectors.size, 8)

    def test_a_server_has_no_files_to_scrub(self):
        """Of any other store nothing is rewritten, and its rows are counted by listing."""

        class Rows:
            def list(self, filters=None, top_k=100):
                return [["one", "two"]]

        memory = SimpleNamespace(vector_store=Rows(), collection_name="x", close=lambda: None)
        self.assertEqual(engine._databases(memory), [])
        self.assertEqual(engine._count(memory), 2)
        engine._close(memory)

    def test_a_model_is_never_asked(self):
        """The model that stands in for Mem0's refuses with the setting's name."""
        with self.assertRaisesRegex(StoreError, "EVENNIA_AI_MEM0_CONFIG"):
            setup.CapturingLlm().generate_response([])

    def test_invalid_configuration(self):
        """A configuration Mem0 does not accept is named by its setting."""
        for wrong in ({"provider": "a drawer"}, "qdrant"):
            self.reopened(config={"vector_store": wrong})
            with self.assertRaisesRegex(StoreError, "EVENNIA_AI_MEM0_CONFIG"):
                wait_for(self.store.ids("aria"), 60)

    def test_passwords_are_not_shown(self):
        """An address in an error's text loses its user and password."""
        shown = setup.first_line(ValueError("no answer from postgres://me:pass@host/db"))
        self.assertEqual(shown, "ValueError: no answer from postgres://***@host/db")
        self.assertEqual(setup.first_line(KeyError()), "KeyError")

    def test_unreachable_server(self):
        """A server that does not answer is a plain sentence, and the next call tries again."""
        config = {"vector_store": {"provider": "qdrant", "config": {"host": "127.0.0.1"}}}
        config["vector_store"]["config"]["port"] = 9
        self.reopened(config=config)
        for _ in range(2):
            with self.assertRaisesRegex(StoreError, "memory store at"):
                wait_for(self.store.ids("aria"), 60)


class TestMissingMem0(unittest.TestCase):
    """Without the package."""

    def test_is_said_in_words(self):
        """A game without `mem0ai` gets one sentence that tells what to install."""
        program = (
            "import sys, json; sys.modules['mem0'] = None;"
            "from evennia_ai.rag_memory import Mem0Backend;"
            "from tests.waiting import wait_for; from tests.stand_ins import HashingEmbedder;"
            "store = Mem0Backend(sys.argv[1], embedder=HashingEmbedder());"
            "print(json.dumps(wait_for(store.status())))"
        )
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-c", program, folder],
                capture_output=True,
                text=True,
                timeout=120,
                cwd=ROOT,
            )
        status = json.loads(done.stdout)
        self.assertFalse(status["ok"])
        self.assertIn("pip install mem0ai", status["detail"])


class TestSlowServer(unittest.TestCase):
    """A store on another machine that does not answer."""

    def test_is_given_up(self):
        """Each call fails in words after its time, so that no night waits for ever."""
        silent = SimpleNamespace(submit=lambda *args: Deferred())
        with (
            tempfile.TemporaryDirectory() as folder,
            patch.object(backend, "STORE_TIMEOUT_S", 0.05),
        ):
            memory = Mem0Backend(folder, worker=silent)
            for done in (memory.sources("aria"), memory.search("aria", "bees"), memory.ids("aria")):
                with self.assertRaisesRegex(StoreError, "did not answer"):
                    wait_for(done)


class TestQuiet(unittest.TestCase):
    """What Mem0 does unasked elsewhere."""

    def test_nothing_outside_the_folder_and_no_threads(self):
        """No files in the home folder, no reporting threads, no key, no network."""
        program = (
            "import sys, json, socket, threading\n"
            "def refuse(*args): raise OSError('no network in this test')\n"
            "socket.getaddrinfo = socket.socket.connect = refuse\n"
            "from evennia_ai.rag_memory import Mem0Backend\n"
            "from tests.waiting import wait_for\n"
            "store = Mem0Backend(sys.argv[1])\n"
            "items = [{'source_id': 'j1', 'text': 'Alice raises honeybees.'},\n"
            "         {'source_id': 'j2', 'text': 'The cellar door is locked.'}]\n"
            "wait_for(store.add('aria', items), 60)\n"
            "found = wait_for(store.search('aria', 'who has a beehive', limit=1), 60)\n"
            "names = sorted(thread.name for thread in threading.enumerate())\n"
            "print(json.dumps([names, [memory['text'] for memory in found]]))\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            home.mkdir()
            kept = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
            done = subprocess.run(
                [sys.executable, "-c", program, str(Path(folder) / "memory")],
                capture_output=True,
                text=True,
                timeout=120,
                cwd=ROOT,
                env={**kept, "HOME": str(home)},
            )
            left = [path.name for path in home.iterdir()]
        threads, found = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(left, [])
        # The embedder's progress bars have an idle thread; Mem0's reporters would be more.
        own = {"MainThread", "evennia-ai-memory", "tqdm_monitor"}
        self.assertLessEqual(set(threads), own, done.stderr)
        self.assertEqual(found, ["Alice raises honeybees."])


class TestImport(unittest.TestCase):
    """What importing costs."""

    def test_nothing_heavy_is_imported(self):
        """Importing the package loads neither Mem0 nor Qdrant nor numpy."""
        program = (
            "import sys; import evennia_ai.rag_memory;"
            "heavy = {'mem0', 'qdrant_client', 'numpy', 'litellm', 'evennia', 'django'};"
            "print(sorted(heavy & set(sys.modules)))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.assertEqual(done.stdout.strip(), "[]", done.stderr)

    def test_unknown_names_are_refused(self):
        """A name that is nowhere is an `AttributeError`, as of any module."""
        with self.assertRaisesRegex(AttributeError, "no_such_name"):
            _ = rag_memory.no_such_name

    def test_sleeping_functions_are_here_too(self):
        """The functions of consolidation are importable from here."""
        from evennia_ai.sleep import consolidation

        self.assertIs(
            rag_memory.consolidate_memories_to_semantic,
            consolidation.consolidate_memories_to_semantic,
        )
        self.assertIn("run_sleep_tick", dir(rag_memory))
