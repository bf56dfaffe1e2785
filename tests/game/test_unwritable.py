"""A database that cannot be written: nothing heard is lost, staff are told, the log stays short."""

import unittest
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from django.db import InterfaceError, OperationalError, connection, transaction
from twisted.python.failure import Failure

from evennia_ai.assistant_script import write_events
from evennia_ai.models import Event
from evennia_ai.turns.runtime import REPEATED_S
from tests.base import AssistantTest, events
from tests.steps import verify_history
from tests.waiting import wait_for

FAILURE = "attempt to write a readonly database"
# As SQLite and PostgreSQL say it.
READ_ONLY = "read-?only (database|transaction)"


@contextmanager
def unwritable():
    """The database refuses writes, as on a full or read-only disk, or a standby server."""
    if connection.vendor == "postgresql":
        point = transaction.savepoint()  # going back to it ends the read-only mode
        connection.cursor().execute("SET TRANSACTION READ ONLY")
        try:
            yield
        finally:
            transaction.savepoint_rollback(point)
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only=ON")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA query_only=OFF")


@contextmanager
def breaking_off(test):
    """Nothing can be stored from the model's next answer on."""
    store = type(test.script.history.store)
    broken = patch.object(store, "set", side_effect=OperationalError(FAILURE))
    with ExitStack() as stack:

        def answer(request):
            stack.enter_context(broken)
            return "A fine name."

        test.model.answers = [answer]
        yield


# On PostgreSQL a failed statement spoils the transaction that a test runs in; a game has none.
@unittest.skipUnless(connection.vendor == "sqlite", "it needs SQLite's way to refuse writes")
class TestUnwritable(AssistantTest):
    """An admin and a player are there while nothing can be stored."""

    default = "A fine name."

    def setUp(self):
        super().setUp()
        self.account.permissions.add("Developer")
        self.account.db_is_connected = True
        self.account.save()
        self.told, self.shown = self.lines_of(self.account), self.lines_of(self.char1)

    def test_what_is_said_is_answered_later(self):
        """It stays queued, who asked is shown that something is wrong, and it is answered later."""
        with unwritable():
            self.say("Aria, my boat is called Petrel.")
            self.assertEqual(self.tick(), "error")
            self.assertEqual(self.script.history.messages(), ())
            self.assertTrue(self.script.runtime.pending())
        self.assertIn("words would not come", " ".join(self.shown))
        self.assertEqual(self.tick(), "turn")
        said = [message.content for message in self.script.history.messages()]
        self.assertIn("Petrel", said[0])
        self.assertFalse(self.script.runtime.pending())

    def test_staff_are_told_once(self):
        """One alert when it begins, naming the fault; one line when it is over."""
        self.account.db_is_connected = True
        self.account.save()
        with unwritable():
            self.say("Aria, hello.")
            for _ in range(5):
                self.tick()
                self.script._follow_up("idle")  # a tick that stores nothing shows nothing
        [alert] = self.told
        self.assertIn(FAILURE, alert)
        self.tick()
        self.tick()
        _, over = self.told
        self.assertIn("can be written again", over)

    def test_the_log_stays_short(self):
        """The same error is counted each time, and logged with its traceback once."""
        logged = []
        with unwritable():
            self.say("Aria, hello.")
            note = {name: lambda text: logged.append(str(text)) for name in ("log_err", "log_warn")}
            with patch.multiple("evennia.utils.logger", **note):
                for _ in range(5):
                    self.tick()
        self.assertEqual(sum("Traceback" in line for line in logged), 1)
        self.assertEqual(sum(line.count("tick: OperationalError") for line in logged), 1)
        self.assertGreaterEqual(self.script.runtime.counts["errors"], 5)

    def test_an_error_is_news_again_after_a_while(self):
        """Another error is logged at once, the same one after some minutes."""
        runtime, logged = self.script.runtime, []
        with patch("evennia.utils.logger.log_err", logged.append):
            for what, passed_s in (("a", 0), ("a", 9), ("b", 0), ("a", REPEATED_S)):
                runtime.logged = {error: at - passed_s for error, at in runtime.logged.items()}
                self.script.log_error(what, ValueError("odd"))
        self.assertEqual([line.split(": ")[1] for line in logged], ["a", "b", "a"])

    def test_in_the_middle_of_a_turn(self):
        """What cannot be stored of a turn keeps the question: staff know, it is answered later."""
        self.say("Aria, my boat is called Petrel.")
        with breaking_off(self):
            self.assertEqual(self.tick(), "error")
            self.assertNotEqual(self.tick(), "turn")
        self.assertEqual(len([each for each in self.told if FAILURE in each]), 1)
        self.assertEqual(sum("words would not come" in each for each in self.shown), 1)
        self.assertEqual([each for each in self.shown if "A fine name" in each], [])
        later = self.script.now() + 60
        self.script.now = lambda: later
        self.assertEqual(self.tick(), "turn")
        self.assertEqual(len([each for each in self.shown if "A fine name" in each]), 1)

    def test_a_broken_connection_is_dropped(self):
        """After an error of the database the game connects again; not in an open transaction."""
        self.script._tick_failed(Failure(OperationalError("server closed")))
        self.assertIsNotNone(connection.connection)
        with patch("evennia_ai.assistant_script.connection", in_atomic_block=False) as broken:
            self.script._tick_failed(Failure(OperationalError("server closed")))
        broken.close_if_unusable_or_obsolete.assert_called_once()


class FailingWrite:
    """Fails the n-th statement that writes, as a database whose file is locked, once."""

    def __init__(self, number):
        self.left = number

    def __call__(self, execute, sql, params, many, context):
        """Called by Django in place of each statement."""
        if not sql.lstrip().upper().startswith("SELECT"):
            self.left -= 1
            if self.left == 0:
                raise OperationalError("database is locked")
        return execute(sql, params, many, context)


@unittest.skipUnless(connection.vendor == "sqlite", "a failed statement spoils the test there")
class TestEachStatement(AssistantTest):
    """Whichever statement of a turn fails, the lock is free, and what was said is answered."""

    def setUp(self):
        super().setUp()
        self.clock = self.script.now()
        self.script.now = lambda: self.clock
        self.model.default = lambda request: f"A fine name. {len(self.model.requests)}"
        self.configure(llm_offline_fallback=False, stale_after_s=600)

    def ask(self, number):
        """Ask while the n-th write fails; returns whether that many were made."""
        failing = FailingWrite(number)
        question = f"Aria, what of boat {number}?"
        self.say(question)
        with connection.execute_wrapper(failing):
            self.tick()
        connection.needs_rollback = False  # it concerns the transaction of the test alone
        self.assertIsNone(self.script.runtime.lock.running)
        self.assertEqual(wait_for(self.script.run_exclusive(lambda: "free")), "free")
        for _ in range(3):
            self.clock += 30.0
            self.tick()
        contents = [content for _, content in self.contents()]
        self.assertEqual(contents.count(question), 1, contents)
        at = contents.index(question)
        answers = [line for line in contents[at + 1 :] if line.startswith("A fine name.")]
        self.assertTrue(answers, (number, contents))
        self.assertFalse(self.script.runtime.pending())
        self.assertEqual(verify_history(self.script), ())
        return failing.left <= 0

    def test_in_a_tick(self):
        """All statements of hearing, thinking, storing and what follows the turn."""
        number = 1
        while self.ask(number):
            number += 1
        self.assertGreater(number, 3)

    def test_for_a_long_time(self):
        """However long nothing can be stored, the question is answered when it can."""
        self.say("Aria, what of my boat?")
        with breaking_off(self):
            for _ in range(20):
                self.tick()
                self.clock += 20.0
        self.clock += 60.0
        self.assertEqual(self.tick(), "turn")
        self.assertFalse(self.script.runtime.pending())

    def test_reading(self):
        """The configuration cannot be read as the tick ends."""
        self.say("Aria, what of my boat?")
        with patch.object(type(self.script.store), "stamps", side_effect=OperationalError("gone")):
            self.tick()
        self.assertIsNone(self.script.runtime.lock.running)
        self.clock += 30.0
        self.assertEqual(self.tick(), "turn")


class TestAuditLog(AssistantTest):
    """What happened, in the game's database."""

    def test_bounded(self):
        """The newest are kept."""
        with patch("evennia_ai.models.MOST_EVENTS", 5):
            for number in range(20):
                self.script.audit("odd", number=number)
                if number % 3 == 0:
                    write_events()
            write_events()
        kept = [event.facts.get("number") for event in events()]
        self.assertEqual(kept, [15, 16, 17, 18, 19])

    def test_no_room(self):
        """What cannot be stored waits, and that is said in the server log."""
        self.script.audit("odd", number=1)
        with unwritable(), patch("evennia.utils.logger.log_err") as log:
            write_events()
        self.assertRegex(log.call_args[0][0], READ_ONLY)
        self.script.audit("odd", number=2)
        self.assertEqual([event.facts["number"] for event in events("odd")], [1, 2])

    def test_lost_connection(self):
        """It raises what is no `DatabaseError`; the newest wait, also where rows were begun."""
        write_events()
        for number in range(5):
            self.script.audit("odd", number=number)
        delete, error = "django.db.models.query.QuerySet.delete", InterfaceError("closed")
        with patch(delete, side_effect=error), patch("evennia_ai.assistant_script.MOST_WAITING", 3):
            write_events()
        self.assertEqual(Event.objects.filter(kind="odd").count(), 0)
        self.assertEqual([event.facts["number"] for event in events("odd")], [2, 3, 4])
