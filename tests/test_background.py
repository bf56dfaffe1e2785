"""Work on daemon threads."""

import asyncio
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from itertools import pairwise
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.defer import CancelledError, inlineCallbacks

from evennia_ai.background import AsyncioThread, Worker, pause, wait_for_imports
from tests.waiting import pump_until, wait_for

ROOT = Path(__file__).parents[1]


class TestPause(unittest.TestCase):
    def test_one_step_a_turn(self):
        """Of work that goes on at once one step runs in a turn of the reactor, in its order."""
        done, turns = [], []

        def turn():
            turns.append(len(done))
            if len(done) < 20:
                reactor.callLater(0, turn)

        @inlineCallbacks
        def work(name):
            for step in range(5):
                yield pause()
                done.append((step, name))

        others = [work(name) for name in range(4)]
        pause().addErrback(lambda failure: failure.trap(CancelledError)).cancel()
        turn()
        for other in others:
            wait_for(other)
        self.assertEqual(done, [(step, name) for step in range(5) for name in range(4)])
        self.assertLessEqual(max(b - a for a, b in pairwise(turns)), 1)


class TestWorker(unittest.TestCase):
    def setUp(self):
        self.worker = Worker("test-worker")

    def test_results_come_back_on_the_reactor_thread(self):
        """A function runs elsewhere, on a daemon thread, and its result arrives here."""
        threads = []
        work = self.worker.submit(threading.current_thread)
        work.addCallback(lambda thread: threads.extend((thread, threading.current_thread())))
        wait_for(work)
        self.assertEqual((threads[0].name, threads[0].daemon), ("test-worker", True))
        self.assertIs(threads[1], threading.main_thread())

    def test_errors_come_back(self):
        """What a function raises is what its Deferred fails with, and the thread lives on."""
        with self.assertRaises(ZeroDivisionError):
            wait_for(self.worker.submit(lambda: 1 // 0))
        self.assertEqual(wait_for(self.worker.submit(max, 1, 2)), 2)

    def test_one_after_the_other(self):
        """Jobs run in their order, never two at once; later ones when no other waits."""
        order, begin = [], threading.Event()
        jobs = [self.worker.submit(begin.wait, 10)]
        jobs += [self.worker.submit_later(order.append, each) for each in (20, 21)]
        jobs += [self.worker.submit(order.append, number) for number in range(20)]
        begin.set()
        for job in jobs:
            wait_for(job)
        self.assertEqual(order, list(range(22)))

    def test_cancelled_job_is_skipped(self):
        """A job cancelled before its turn never runs."""
        gate, ran = threading.Event(), []
        first, second = self.worker.submit(gate.wait, 10), self.worker.submit(ran.append, 1)
        second.addErrback(lambda failure: failure.trap(CancelledError))
        second.cancel()
        gate.set()
        wait_for(first)
        wait_for(self.worker.submit(int))
        self.assertEqual(ran, [])

    def test_some_threads(self):
        """As many jobs run side by side as there are threads."""
        worker, gate, running = Worker("test-pool", threads=2), threading.Event(), []

        def work():
            running.append(1)
            gate.wait(10)

        jobs = [worker.submit(work) for _ in range(6)]
        pump_until(lambda: len(running) == 2)
        time.sleep(0.1)
        self.assertEqual(len(running), 2)
        gate.set()
        for job in jobs:
            wait_for(job)


class TestAsyncioThread(unittest.TestCase):
    def setUp(self):
        self.thread = AsyncioThread("test-loop")

    def test_many_at_a_time(self):
        """A hundred wait side by side, each for the others."""
        barrier = asyncio.Barrier(100)
        for work in [self.thread.submit(barrier.wait()) for _ in range(100)]:
            wait_for(work)

    def test_cancelling_reaches_the_coroutine(self):
        """Cancelling the Deferred cancels the coroutine and fails with `CancelledError`."""
        seen = threading.Event()

        async def hang():
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                seen.set()
                raise

        work = self.thread.submit(hang())
        wait_for(self.thread.submit(asyncio.sleep(0)))
        work.cancel()
        with self.assertRaises(CancelledError):
            wait_for(work)
        self.assertTrue(seen.wait(5))

    def test_notify_runs_on_the_reactor_thread(self):
        """A coroutine can have a function called on the reactor thread."""
        called = []

        async def tell():
            self.thread.notify(lambda: called.append(threading.current_thread()))

        wait_for(self.thread.submit(tell()))
        pump_until(lambda: called)
        self.assertIs(called[0], threading.main_thread())


HANGING = """
import asyncio, time
from evennia_ai.background import AsyncioThread, Worker
loop, worker = AsyncioThread("loop"), Worker("worker")
async def block():
    await asyncio.to_thread(time.sleep, 60)
for _ in range(5):
    loop.submit(block())
    loop.submit(asyncio.sleep(60))
worker.submit(time.sleep, 60)
time.sleep(0.5)
"""
IMPORTING = """
import sys
from evennia_ai.background import Worker
sys.path.insert(0, sys.argv[1])
Worker("importer").submit(__import__, "slow_to_import")
while "slow_to_import" not in sys.modules:
    pass
print("leaving", flush=True)
"""


class TestProcessEnd(unittest.TestCase):
    def end(self, source, *args):
        """What a process prints, which ends long before what hangs in it would."""
        command = [sys.executable, "-B", "-c", source, *args]
        return subprocess.check_output(command, text=True, cwd=ROOT, timeout=50)

    def test_hanging_work_does_not_hold_up_the_exit(self):
        """A process whose threads all hang ends at once when its main thread does."""
        self.end(HANGING)

    def test_an_import_is_waited_for(self):
        """Python would freeze its thread with the locks that other imports need."""
        with tempfile.TemporaryDirectory() as folder:
            body = "import time\ntime.sleep(1)\nprint('imported', flush=True)\n"
            Path(folder, "slow_to_import.py").write_text(body)
            self.assertEqual(self.end(IMPORTING, folder), "leaving\nimported\n")

    def test_waiting_has_an_end(self):
        """A module that never finishes holds up the end for the stated time only."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "never_done.py").write_text("import time\ntime.sleep(1)\n")
            sys.path.insert(0, folder)
            self.addCleanup(sys.path.remove, folder)
            work = Worker("test-slow").submit(__import__, "never_done")
            pump_until(lambda: "never_done" in sys.modules)
            self.assertFalse(wait_for_imports(grace_s=0.1))
            self.assertTrue(wait_for_imports(grace_s=30))
            wait_for(work)
