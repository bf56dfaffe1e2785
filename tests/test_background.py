import asyncio
import gc
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref
from pathlib import Path

from twisted.internet.defer import CancelledError
from twisted.internet.selectreactor import SelectReactor
from twisted.internet.task import Clock

from evennia_ai import background
from evennia_ai.background import AsyncioThread, DaemonExecutor, Worker, breathe, in_turn
from tests.waiting import pump_until, started_reactor, wait_for


class TestWorker(unittest.TestCase):
    def setUp(self):
        self.worker = Worker("test-worker")

    def test_results_come_back_on_the_reactor_thread(self):
        """A function runs elsewhere, on a daemon thread, and its result arrives here."""
        threads = []
        work = self.worker.submit(threading.current_thread)
        work.addCallback(lambda made: threads.extend((made, threading.current_thread())))
        wait_for(work)
        self.assertEqual(threads[0].name, "test-worker")
        self.assertTrue(threads[0].daemon)
        self.assertIs(threads[1], threading.main_thread())

    def test_errors_come_back(self):
        """What a function raises is what its Deferred fails with, and the thread lives on."""
        with self.assertRaises(ZeroDivisionError):
            wait_for(self.worker.submit(lambda: 1 // 0))
        self.assertEqual(wait_for(self.worker.submit(max, 1, 2)), 2)

    def test_one_after_the_other(self):
        """Jobs run in the order they were given, never two at once."""
        order = []
        jobs = [self.worker.submit(order.append, number) for number in range(50)]
        for job in jobs:
            wait_for(job)
        self.assertEqual(order, list(range(50)))

    def test_later_jobs_wait_for_all_others(self):
        """What may wait runs behind what was submitted after it, in its own order."""
        order, begin = [], threading.Event()
        first = self.worker.submit(begin.wait, 10)
        later = [self.worker.submit_later(order.append, each) for each in ("later", "last")]
        soon = self.worker.submit(order.append, "soon")
        begin.set()
        for job in (first, soon, *later):
            wait_for(job)
        self.assertEqual(order, ["soon", "later", "last"])

    def test_others_have_their_turn_between_two_results(self):
        """Results that come together are handed over one in a turn of the reactor."""
        order = []
        started_reactor().callLater(0, self.note_turns, order)
        jobs = [self.worker.submit(int) for _ in range(5)]
        for job in jobs:
            job.addCallback(lambda _: order.append("result"))
        ended = threading.Event()
        self.worker.submit(ended.set)
        ended.wait(10)  # all results wait for the reactor now
        pump_until(lambda: order.count("result") == 5)
        self.assertNotIn(("result", "result"), list(zip(order, order[1:], strict=False)))

    def test_others_have_their_turn_between_two_steps(self):
        """Of the steps of long work one is done in a turn of the reactor, whosever they are."""
        order = []
        started_reactor().callLater(0, self.note_turns, order)
        for _ in range(5):
            breathe(started_reactor()).addCallback(lambda _: order.append("result"))
        stopped = breathe()
        stopped.addErrback(lambda failure: failure.trap(CancelledError))
        stopped.cancel()
        pump_until(lambda: order.count("result") == 5)
        self.assertEqual(order[:2], ["turn", "result"])
        self.assertNotIn(("result", "result"), list(zip(order, order[1:], strict=False)))

    def test_what_is_written_is_sent_before_the_next_step(self):
        """A step gives way to data that waits to be sent, once."""
        reactor, sent = started_reactor(), []
        ours, theirs = socket.socketpair()
        self.addCleanup(theirs.close)
        self.addCleanup(ours.close)

        class Writer:
            """A transport with something to send, as the reactor sees it."""

            disconnected = connected = True
            fileno = staticmethod(ours.fileno)

            def doWrite(self):
                """Called when it may send."""
                sent.append("written")

            def connectionLost(self, reason):
                """Called when the other side is gone."""

            def logPrefix(self):
                """Its name in logs."""
                return "writer"

        writer = Writer()
        in_turn(lambda: reactor.addWriter(writer))
        in_turn(lambda: sent.append("step"))
        in_turn(lambda: sent.append("step"))
        self.addCleanup(reactor.removeWriter, writer)  # which always has more to send
        pump_until(lambda: sent.count("step") == 2)
        self.assertEqual(sent[:6], ["written", "written", "step"] * 2)

    def note_turns(self, order):
        """Note each turn of the reactor until all results are there."""
        order.append("turn")
        if order.count("result") < 5:
            started_reactor().callLater(0, self.note_turns, order)

    def test_cancelled_job_is_skipped(self):
        """A job cancelled before its turn never runs."""
        gate, ran = threading.Event(), []
        first = self.worker.submit(gate.wait, 10)
        second = self.worker.submit(ran.append, 1)
        second.addErrback(lambda failure: failure.trap(CancelledError))
        second.cancel()
        gate.set()
        wait_for(first)
        wait_for(self.worker.submit(int))
        self.assertEqual(ran, [])


class _SetBack(SelectReactor):
    """A reactor on a machine whose clock is set back by `back_s` seconds."""

    back_s = 0

    def seconds(self):
        """The time of day."""
        return time.time() - self.back_s


class TestSteadyClock(unittest.TestCase):
    def test_timers_do_not_wait_for_a_clock_that_is_set_back(self):
        """What was planned before, and what is planned after, is due when its time has passed."""
        reactor, due = _SetBack(), []
        reactor.callLater(0.01, due.append, "planned before")
        background.install_steady_clock(reactor)
        reactor.back_s = 3600
        reactor.callLater(0.01, due.append, "planned after")
        background.install_steady_clock(reactor)
        time.sleep(0.02)
        reactor.runUntilCurrent()
        self.assertEqual(due, ["planned before", "planned after"])


class TestQuietCollector(unittest.TestCase):
    """Garbage is collected when nobody would notice."""

    def setUp(self):
        self.addCleanup(gc.set_threshold, *gc.get_threshold())
        self.quiet, self.clock = False, Clock()
        self.collector = background.QuietCollector(lambda: self.quiet)
        self.loop = self.collector.start(self.clock)
        self.addCleanup(self.loop.stop)

    def litter(self):
        """Make something that only a full collection removes; returns a weak reference to it."""
        knot = Knot()
        knot.itself = knot
        gc.collect(1)
        for _ in range(40):
            gc.collect(1)
        return weakref.ref(knot)

    def test_it_waits_for_quiet(self):
        """While somebody plays it does not collect; as soon as it is quiet it does."""
        left = self.litter()
        self.clock.advance(background.COLLECT_EVERY_S)
        self.assertIsNotNone(left())
        self.quiet = True
        self.clock.advance(background.COLLECT_EVERY_S)
        self.assertIsNone(left())

    def test_it_does_not_wait_for_ever(self):
        """Where it is never quiet, it collects in the end."""
        left = self.litter()
        for _ in range(background.MOST_OVERDUE):
            self.assertIsNotNone(left())
            self.clock.advance(background.COLLECT_EVERY_S)
        self.assertIsNone(left())

    def test_not_without_cause(self):
        """Where nothing new has been made, quiet is no reason to collect."""
        self.quiet = True
        gc.collect()
        self.assertFalse(self.collector.look())


class Knot:
    """Something that holds itself."""


class TestAsyncioThread(unittest.TestCase):
    def setUp(self):
        self.thread = AsyncioThread("test-loop")

    def test_many_at_a_time(self):
        """A hundred waits take as long as one."""
        began = time.monotonic()
        for work in [self.thread.submit(asyncio.sleep(0.2, number)) for number in range(100)]:
            wait_for(work)
        self.assertLess(time.monotonic() - began, 2)

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

    def test_errors_come_back(self):
        """What a coroutine raises is what its Deferred fails with."""

        async def fail():
            raise KeyError("x")

        with self.assertRaises(KeyError):
            wait_for(self.thread.submit(fail()))

    def test_notify_runs_on_the_reactor_thread(self):
        """A coroutine can have a function called on the reactor thread."""
        called = []

        async def tell():
            self.thread.notify(lambda: called.append(threading.current_thread()))

        wait_for(self.thread.submit(tell()))
        pump_until(lambda: called)
        self.assertIs(called[0], threading.main_thread())

    def test_helper_threads_are_daemons(self):
        """Blocking pieces of asyncio libraries run on daemon threads as well."""

        async def where():
            return await asyncio.to_thread(threading.current_thread)

        self.assertTrue(wait_for(self.thread.submit(where())).daemon)

    def test_names_are_looked_up(self):
        """The loop resolves names, on daemon threads of their own."""

        async def look_up():
            return await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 80)

        self.assertEqual(wait_for(self.thread.submit(look_up()))[0][4], ("127.0.0.1", 80))


class TestDaemonExecutor(unittest.TestCase):
    def test_work_and_errors(self):
        """Results and errors reach the futures."""
        pool = DaemonExecutor("test-pool")
        self.assertEqual(pool.submit(pow, 2, 5).result(5), 32)
        self.assertIsInstance(pool.submit(int, "x").exception(5), ValueError)

    def test_no_more_threads_than_allowed(self):
        """Work beyond the number of threads waits its turn."""
        pool, gate, running = DaemonExecutor("test-pool", max_workers=2), threading.Event(), []

        def work():
            running.append(1)
            gate.wait(5)

        futures = [pool.submit(work) for _ in range(6)]
        time.sleep(0.1)
        self.assertEqual(len(running), 2)
        gate.set()
        for future in futures:
            future.result(5)
        self.assertEqual(len(running), 6)

    def test_idle_threads_end_and_come_back(self):
        """A thread without work ends; later work gets a new one."""
        pool = DaemonExecutor("test-idle", idle_s=0.05)
        first = pool.submit(threading.current_thread).result(5)
        first.join(5)
        self.assertFalse(first.is_alive())
        self.assertIsNot(pool.submit(threading.current_thread).result(5), first)

    def test_cancelled_work_is_skipped(self):
        """A future cancelled while it waits never runs."""
        pool, gate, ran = DaemonExecutor("test-pool", max_workers=1), threading.Event(), []
        first, second = pool.submit(gate.wait, 5), pool.submit(ran.append, 1)
        self.assertTrue(second.cancel())
        gate.set()
        first.result(5)
        pool.submit(int).result(5)
        self.assertEqual(ran, [])

    def test_shut_down(self):
        """After `shutdown` work is refused, and nobody waited for what runs."""
        pool, gate = DaemonExecutor("test-pool"), threading.Event()
        pool.submit(gate.wait, 5)
        began = time.monotonic()
        pool.shutdown(wait=True)
        self.assertLess(time.monotonic() - began, 1)
        with self.assertRaises(RuntimeError):
            pool.submit(int)
        gate.set()


ROOT = Path(__file__).parents[1]
HANGING = """
import asyncio, time
from evennia_ai import background
from evennia_ai.background import AsyncioThread, Worker, install_import_gate
install_import_gate()
loop, worker = AsyncioThread("loop"), Worker("worker")
async def block():
    await asyncio.to_thread(time.sleep, 60)
for _ in range(5):
    loop.submit(block())
    loop.submit(asyncio.sleep(60))
worker.submit(time.sleep, 60)
time.sleep(0.5)
print("leaving", flush=True)
"""


IMPORTING = """
import sys
from twisted.internet import reactor
from evennia_ai.background import Worker, install_import_gate
install_import_gate()
folder = sys.argv[1]
sys.path.insert(0, folder)
worker = Worker("importer")
def look():
    if "endless_1" in sys.modules:
        return reactor.stop()
    reactor.callLater(0.01, look)
worker.submit(__import__, "endless_0").addErrback(lambda failed: None)
look()
reactor.run()
print("stopped", flush=True)
"""


class TestImportsAtTheEnd(unittest.TestCase):
    def test_an_import_under_way_is_broken_off(self):
        """A process that ends while a daemon thread imports for seconds ends at once."""
        with tempfile.TemporaryDirectory() as folder:
            for number in range(400):
                body = f"import time\ntime.sleep(0.05)\nimport endless_{number + 1}\n"
                Path(folder, f"endless_{number}.py").write_text(body)
            command = [sys.executable, "-B", "-c", IMPORTING, folder]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
            with process:
                self.assertEqual(process.stdout.readline().strip(), "stopped")
                began = time.monotonic()
                self.assertEqual(process.wait(30), 0)
                self.assertLess(time.monotonic() - began, 3)

    def test_only_our_threads_are_kept_from_importing(self):
        """The gate lets everyone pass until the end, and other threads even then."""
        gate = background._ImportGate
        self.assertIsNone(gate.find_spec("anything"))
        background._ending.set()
        self.addCleanup(background._ending.clear)
        self.assertIsNone(gate.find_spec("anything"))
        with self.assertRaises(SystemExit):
            wait_for(Worker("test-gate").submit(gate.find_spec, "anything"))

    def test_waiting_has_an_end(self):
        """A module that never finishes holds up the end for the stated time only."""
        self.addCleanup(background._ending.clear)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "never_done.py").write_text("import time\ntime.sleep(1)\n")
            sys.path.insert(0, folder)
            self.addCleanup(sys.path.remove, folder)
            work = Worker("test-slow").submit(__import__, "never_done")
            pump_until(lambda: "never_done" in sys.modules)
            self.assertFalse(background.end_imports(grace_s=0.1))
            self.assertTrue(background.end_imports(grace_s=5))
            wait_for(work)


class TestProcessEnd(unittest.TestCase):
    def test_hanging_work_does_not_hold_up_the_exit(self):
        """A process whose threads all hang ends at once when its main thread does."""
        process = subprocess.Popen(
            [sys.executable, "-c", HANGING], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        with process:
            self.assertEqual(process.stdout.readline().strip(), "leaving")
            began = time.monotonic()
            self.assertEqual(process.wait(20), 0)
        self.assertLess(time.monotonic() - began, 3)
