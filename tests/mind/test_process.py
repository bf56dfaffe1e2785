"""The mind's process: every request, and what happens when something dies."""

import fcntl
import json
import os
import pickle
import signal
import socket
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from unittest import mock

from evennia_ai.errors import AssistantError, ModelError, StoreError
from evennia_ai.llm_interaction.budget import packed
from evennia_ai.llm_interaction.facts import covered, source_facts
from evennia_ai.llm_interaction.summary import Task, finished
from evennia_ai.llm_interaction.tokens import TokenCounter, count_tokens
from evennia_ai.llm_interaction.values import ModelReply, probe_request
from evennia_ai.mind.remote import code_stamp
from evennia_ai.mind.wire import is_work, socket_path
from evennia_ai.recall.embedding import dimensions
from evennia_ai.recall.values import Hit, Query, Turn
from tests.loopback import HANG, failure, slow, text
from tests.mind.case import KEY, MindTest, is_alive, pump, request
from tests.waiting import pump_until, wait_for

COUNT = TokenCounter("gpt-4")


class TestRequests(MindTest):
    """Every request of the three ports goes there and back."""

    def test_recall(self):
        """Turns are indexed, found, corrected and removed."""
        recall = self.mind().recall
        turns = [Turn(f"t{n}", "Bob", f"I keep {n} bees", 1_700_000_000.0 + n) for n in range(5)]
        self.assertEqual(wait_for(recall.add("a", turns)), 5)
        (hit, *_) = wait_for(recall.search("a", Query("bees", exclude={"t0"})))
        self.assertEqual((hit.speaker, hit.audience), ("Bob", "public"))
        changed = Turn("t1", "Bob", "I keep goats", 1_700_000_001.0)
        self.assertEqual(wait_for(recall.add("a", [changed, turns[2]])), 1)
        self.assertEqual(wait_for(recall.remove("a", ["t4"])), 1)
        self.assertEqual(wait_for(recall.count("a", {"t1", "t4", "t9"})), 1)
        self.assertEqual(wait_for(recall.count("a")), 4)
        other = Hit("v1", 0.5, "", "The bees of old", None, "memory")
        found = wait_for(recall.search("a", Query("bees"), [other]))
        self.assertIn("v1", [hit.turn_id for hit in found])
        self.assertEqual(wait_for(recall.remove("a", ("t0",))), 1)
        self.assertEqual(wait_for(recall.clear("a")), 3)
        self.assertEqual(recall.replaced, (0, 0))

    def test_memories(self):
        """Memories are stored, found and deleted in the game's back end."""
        memories = self.mind().memories
        told = Turn("j1", "", "Elin keeps bees.", "2026-01-02", None, "public", "journal")
        wait_for(memories.add("a", [told]))
        (found,) = wait_for(memories.search("a", "bees", 10, "public"))
        self.assertEqual((found.turn_id, found.text, found.at), ("j1", told.text, told.at))
        self.assertEqual(wait_for(memories.ids("a")), {"j1"})
        self.assertTrue(wait_for(memories.status())["ok"])
        self.assertEqual(wait_for(memories.delete("a", {"j1"})), 1)
        self.assertEqual(memories.billed_embedder, "")
        with self.assertRaisesRegex(StoreError, "needs"):
            wait_for(memories.add("a", [Turn("", "", "", 0)]))

    def test_model(self):
        """A reply, an error, a probe, and what LiteLLM lists of models."""
        mind = self.mind(models=("gpt-4o",))
        model = mind.model
        self.server.script(text("Good evening."))
        reply = wait_for(model.complete(request()))
        self.assertEqual((reply.content, reply.model), ("Good evening.", "loopback"))
        self.assertTrue(wait_for(model.complete(probe_request("loopback"))).content)
        self.assertEqual(wait_for(model.trial("loopback")).attempts, 3)
        wait_for(mind.warm_up("loopback"))
        self.assertEqual(mind.model.facts("gpt-4o").window.tokens, 128_000)
        self.assertGreater(mind.model.facts("gpt-4o").price[1], 0)
        self.assertIsNone(mind.model.facts("nobody/knows").window)
        self.assertEqual(mind.model.facts("offline/extractive").price, (0.0, 0.0))
        said = "it exceeds the available context size"
        error = {"type": "exceed_context_size_error", "message": said, "n_ctx": 4000}
        self.server.script(failure(400, raw=json.dumps({"error": error})))
        overflow = model.complete(request()).addErrback(lambda _: model.facts("loopback").window)
        self.assertEqual(wait_for(overflow).tokens, 4000)
        self.server.script(failure(401))
        with self.assertRaisesRegex(ModelError, "no model answered") as caught:
            wait_for(model.complete(request()))
        self.assertEqual((caught.exception.kind, caught.exception.retryable), ("auth", False))

    def test_work(self):
        """Listed functions run in the process and give what they give here."""
        mind = self.mind()
        lost = source_facts("So Elin paid 12 crowns in Oakhaven.")
        reply = ModelReply(content="Elin came.")
        task = Task("Summarise.", "Elin came to Oakhaven.", 100, 50, "Elin came to Oakhaven.")
        for function, args in (
            (count_tokens, ("bees " * 50_000, COUNT)),
            (packed, (["one two", "three"], 3, COUNT)),
            (finished, (reply, task, ["Elin"], COUNT, False)),
            (dimensions, ()),
            (source_facts, ("Elin in Oakhaven", ["Elin"])),
            (covered, (lost, "Elin", [], 100, COUNT)),
        ):
            with self.subTest(function.__name__):
                self.assertTrue(is_work(function))
                there = wait_for(mind.work(function, *args))
                here = function(*args)
                self.assertEqual(json.dumps(there, default=repr), json.dumps(here, default=repr))
        with self.assertRaisesRegex(ModelError, "not shorter"):
            wait_for(mind.work(finished, reply, replace(task, tokens=1), [], COUNT, False))

    def test_other_work(self):
        """A function that is not listed runs here, and is not sent; no request fails by itself."""
        mind = self.mind()
        self.assertEqual(wait_for(mind.work(lambda: os.getpid())), os.getpid())
        for function in (os.getpid, socket_path):
            with self.assertRaisesRegex(StoreError, "cannot be sent"):
                wait_for(mind.ask("work", function))
        with self.assertRaisesRegex(AssistantError, "AttributeError"):
            wait_for(mind.ask("model.nothing"))

    def test_large_frames(self):
        """A prompt of megabytes goes through; one beyond the bound is refused by itself."""
        mind = self.mind()
        words = "word " * 400_000
        waiting = mind.work(count_tokens, words, COUNT)
        with self.assertRaisesRegex(ModelError, "too large"):
            wait_for(mind.model.complete(request("x" * 65 * 2**20)))
        with self.assertRaisesRegex(StoreError, "cannot be sent"):
            wait_for(mind.memories.add("a", [{"text": print}]))
        self.assertGreater(wait_for(waiting), 300_000)


class TestSafety(MindTest):
    """What does not belong there gets nothing, and hurts nobody."""

    def test_garbage(self):
        """It ends the connection; what was asked is asked again on a new one."""
        mind = self.mind()
        pid = self.reach(mind)
        for garbage in (b"garbage", pickle.dumps(os.getpid), pickle.dumps(7)):
            mind._wire.send(garbage)
            self.assertEqual(wait_for(mind.recall.count("a")), 0)
        mind._wire.transport.write(b"\xff" * 64)
        self.assertEqual(wait_for(mind.recall.count("a")), 0)
        self.assertEqual(mind.facts["pid"], pid)

    def test_only_the_user_may_connect(self):
        """The folder and the socket are the user's alone."""
        self.reach(self.mind())
        folder = self.base / "game" / "server" / "mind"
        for path, mode in ((folder, 0o700), (folder / "socket", 0o600)):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), mode)

    def test_keys_stand_nowhere(self):
        """Not in the arguments, the log, a file or a `repr`."""
        mind = self.mind()
        pid = self.reach(mind)
        self.assertNotIn(KEY, Path(f"/proc/{pid}/cmdline").read_text())
        for file in (self.base / "game" / "server").rglob("*"):
            if file.is_file():
                self.assertNotIn(KEY.encode(), file.read_bytes(), file)

    def test_a_stale_socket(self):
        """What a crash left behind is replaced."""
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(socket_path(self.base / "stale" / "server" / "mind"))
        stale.close()
        mind = self.mind("stale")
        self.reach(mind)
        mind.end()
        mind.close()


class TestDeaths(MindTest):
    """Processes and connections that end in mid-call."""

    def setUp(self):
        """Processes that ended are started again at once."""
        self.enterContext(mock.patch("evennia_ai.mind.remote.PAUSE_S", 0.0))

    def test_kill_in_mid_call(self):
        """Calls of a model and a count are asked again and answered; twice dead, a call fails."""
        asked, before = [], len(self.server.requests)

        def respond(body):
            asked.append(body["messages"][0]["content"])
            return text("Here I am.") if asked[-1] == "once" and asked.count("once") > 1 else HANG

        self.enterContext(mock.patch.object(self.server, "respond", respond))
        mind = self.mind("killed")
        pid = self.reach(mind)
        once, twice = (mind.model.complete(request(said)) for said in ("once", "twice"))
        self.asked(before + 2)
        os.kill(pid, signal.SIGSTOP)
        counted = mind.work(count_tokens, "one two three", COUNT)
        pump(0.2)
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(wait_for(counted), 3)
        self.assertEqual(wait_for(once).content, "Here I am.")
        new = self.reach(mind)
        self.assertNotEqual(new, pid)
        self.assertEqual(mind.restarts, 1)
        self.assertEqual(mind.recall.replaced, (1, 0))
        self.asked(before + 4)
        os.kill(new, signal.SIGKILL)
        with self.assertRaisesRegex(ModelError, "2 times") as caught:
            wait_for(twice)
        self.assertEqual((caught.exception.retryable, caught.exception.kind), (True, "connection"))

    def test_a_deadly_request(self):
        """What kills the process twice fails; other requests go on."""
        mind = self.mind("deadly", MEMORY_BACKEND="tests.mind.case.DeadlyBackend")
        self.reach(mind)
        with self.assertRaisesRegex(StoreError, "2 times"):
            wait_for(mind.memories.search("a", "bees"))
        self.reach(mind)
        self.assertEqual(mind.restarts, 2)
        self.assertEqual(mind.trouble, "")

    def test_a_process_that_does_not_start(self):
        """What waits for it fails once it has ended; then another one is started and reached."""
        with mock.patch("evennia_ai.mind.remote.sys.executable", "/bin/false"):
            mind = self.mind("weak")
            call = mind.model.complete(request())
            for asked, error in ((call, ModelError), (mind.recall.count("nobody"), StoreError)):
                with self.assertRaisesRegex(error, "ended|cannot be started"):
                    wait_for(asked, 20.0)
            self.assertIn("mind's process", mind.trouble)
        pump_until(lambda: not mind.trouble)
        self.reach(mind)

    def test_another_process_serves(self):
        """Nothing fails because one ends for another, which does not answer yet, or has ended."""
        folder = self.base / "locked" / "server" / "mind"
        folder.mkdir(parents=True)
        with open(folder / "lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            mind = self.mind("locked")
            counted = mind.work(count_tokens, "one two", COUNT)
            log = self.base / "locked" / "server" / "logs" / "mind.log"
            pump_until(lambda: log.exists() and log.read_text().count("another process") > 1)
        self.assertEqual(wait_for(counted), 2)
        self.assertEqual(mind.trouble, "")
        self.reach(mind)

    def test_a_process_that_hangs(self):
        """It is killed, and what was asked is asked of the next one."""
        with mock.patch("evennia_ai.mind.remote.HANG_S", 3.0):
            mind = self.mind("hung")
            pid = self.reach(mind)
            pump(4.0)  # it says that it lives
            self.assertEqual(self.reach(mind), pid)
            time.sleep(3.5)  # the Server is stopped: what the process said is still to be read
            pump(1.0)
            self.assertEqual(self.reach(mind), pid)
            os.kill(pid, signal.SIGSTOP)
            self.assertEqual(wait_for(mind.work(count_tokens, "one two", COUNT)), 2)
        self.assertFalse(is_alive(pid))

    def test_a_connection_lost(self):
        """The call goes on; its reply comes on the next connection, paid once."""
        mind = self.mind()
        self.reach(mind)
        before = len(self.server.requests)
        call = self.ask_model(mind, slow(0.5, "I am back."))
        mind._wire.transport.abortConnection()
        self.assertEqual(wait_for(call).content, "I am back.")
        self.assertEqual(len(self.server.requests), before + 1)

    def test_a_new_server_gets_the_reply(self):
        """The same key gets the reply of the call in flight; another key a call of its own."""
        before = len(self.server.requests)
        for wait_s in (0.0, 1.0):  # in flight, and answered while nobody was there
            with self.subTest(wait_s=wait_s):
                old = self.mind()
                self.reach(old)
                first = slow(0.7, f"First {wait_s}.")
                self.ask_model(old, first, text("Second."), key="aria m1")
                old.leave()
                pump(wait_s)
                new = self.mind()
                other = new.model.complete(request(key="aria m2"))
                reply = wait_for(new.model.complete(request("again", key="aria m1")))
                self.assertEqual(reply.content, f"First {wait_s}.")
                other = wait_for(other)
                self.assertEqual(other.content, "Second.")

                again = wait_for(new.model.complete(request(key="aria m1")))
                self.assertNotEqual(again.content, reply.content)
        self.assertEqual(len(self.server.requests), before + 6)

    def test_cancelled_calls_end(self):
        """The HTTP call is closed; the process has nothing in flight."""
        mind = self.mind()
        self.reach(mind)
        asked = self.ask_model(mind, HANG).addErrback(lambda failure: None)
        self.assertRegex(mind.status(), "1 requests")
        asked.cancel()
        self.assertRegex(mind.status(), "0 requests")
        self.assertEqual(wait_for(mind.recall.count("a")), 0)
        pump_until(lambda: self.server.requests[-1].client_left)

    def test_a_new_game_replaces_the_process(self):
        """One with an old key, or of other code of the package, does not go on."""
        mind = self.mind("changed")
        pid = self.reach(mind)
        for code in (code_stamp(), "other"):
            mind.leave()
            with mock.patch("evennia_ai.mind.remote.code_stamp", lambda code=code: code):
                mind = self.mind("changed", LLM_API_KEY="sk-other")
            former, pid = pid, self.reach(mind)
            self.assertNotEqual(pid, former, code)
            self.wait_for_end(former)
        mind.leave()

    def test_changed_code(self):
        """A file that is written, added or removed marks other code; nothing else does."""
        folder = self.base / "code"
        module = folder / "part" / "module.py"
        module.parent.mkdir(parents=True)
        (folder / "__init__.py").touch()
        module.touch()
        first = code_stamp(folder)
        (folder / "part" / "module.pyc").touch()
        self.assertEqual(code_stamp(folder), first)
        os.utime(module, (1, 1))
        second = code_stamp(folder)
        module.unlink()
        self.assertEqual(len({first, second, code_stamp(folder)}), 3)

    def test_it_ends_without_a_server(self):
        """Not at once, as another one may come; and when it is told to."""
        waiting, ended = self.mind("reloaded"), self.mind("ended")
        waiting_pid, ended_pid = self.reach(waiting), self.reach(ended)
        waiting.leave()
        ended.end()
        self.wait_for_end(ended_pid)
        self.assertIn("the process ends", self.log("ended"))
        self.assertEqual(self.reach(self.mind("reloaded")), waiting_pid)

    def test_it_ends_alone(self):
        """A game that was killed leaves no process for ever."""
        folder = self.base / "alone"
        settings = {"DATA_DIR": str(folder), "LLM_MODEL": "loopback"}
        told = json.dumps({"settings": settings, "log": str(folder / "mind.log")})
        folder.mkdir()
        code = "from evennia_ai.mind import process; process.KEEP_S = 1.0; process.main()"
        command = [sys.executable, "-c", code, str(folder)]
        done = subprocess.run(command, input=told, text=True, timeout=60, check=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn("the process ends", (folder / "mind.log").read_text())
