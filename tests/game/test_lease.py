"""Two servers on one PostgreSQL database: an assistant lives in one of them."""

import unittest
from unittest.mock import patch

from django.db import OperationalError, connection
from evennia.typeclasses.attributes import Attribute
from twisted.python.failure import Failure

from evennia_ai.game import lease as residence
from evennia_ai.game.evennia_internals import pickled
from evennia_ai.game.lease import RETRY_S, Residences, lock_of, reconnect
from evennia_ai.staff import doctor
from evennia_ai.staff.status import status_lines
from tests.base import AssistantTest
from tests.waiting import pump_until, wait_for


class TestOneServer(AssistantTest):
    def test_lives_here(self):
        """Where nobody else has it, an assistant lives here and says nothing of it."""
        self.assertTrue(residence.lives_here(self.script))
        self.assertFalse(residence.is_elsewhere(self.script))
        self.assertNotIn("another server", "\n".join(status_lines(self.script)))

    def test_a_broken_connection_is_dropped(self):
        """After an error of the database the game connects again; not in an open transaction."""
        reconnect()
        self.assertIsNotNone(connection.connection)
        with (
            patch.object(residence.connection, "in_atomic_block", False),
            patch.object(residence.connection, "close_if_unusable_or_obsolete") as close,
        ):
            self.script._tick_failed(Failure(OperationalError("server closed")))
        close.assert_called_once()


@unittest.skipUnless(connection.vendor == "postgresql", "run it by `make test-postgres`")
class TestTwoServers(AssistantTest):
    """`self.other` is another server's connection, which has Aria's lock."""

    answers = ("Good evening.",)

    def setUp(self):
        super().setUp()
        import psycopg

        here = patch.object(residence, "_here", Residences())
        here.start()
        self.addCleanup(here.stop)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock_all()")
        settings = connection.get_connection_params()
        for name in ("cursor_factory", "context", "prepare_threshold"):
            settings.pop(name, None)
        self.other = psycopg.connect(**settings, autocommit=True)
        self.addCleanup(self.other.close)
        self.other.execute("SELECT pg_advisory_lock(%s, %s)", lock_of(self.script.scope))
        self.clock = 1_000_000.0
        now = patch.object(type(self.script), "now", lambda script: self.clock)
        now.start()
        self.addCleanup(now.stop)

    def other_ends(self):
        """The other server's connection ends, which the database notices in a moment."""
        self.other.close()
        query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = %s"

        def is_free():
            with connection.cursor() as cursor:
                cursor.execute(query, [residence.LOCKS])
                return cursor.fetchone()[0] == 0

        pump_until(is_free)

    def test_neither_hears_nor_ticks(self):
        """While it lives elsewhere nothing is heard, thought or stored here, and staff are told."""
        self.assertEqual(wait_for(self.script.at_tick()), "elsewhere")
        self.say("Aria, hello.")
        self.assertEqual(wait_for(self.script.at_tick()), "elsewhere")
        self.script.at_server_reload()
        self.assertEqual(list(self.script.runtime.pending()), [])
        self.assertEqual(self.script.history.messages(), ())
        self.assertEqual(self.model.requests, [])
        self.assertIn("lives in another server", "\n".join(status_lines(self.script)))
        found = wait_for(doctor.check_assistants(doctor.Patient(self.folder.name, store=self)))
        self.assertIn("lives in another server", found.detail)

    def test_takes_over(self):
        """Once the other is gone it lives here, with what was stored meanwhile."""
        self.assertEqual(wait_for(self.script.at_tick()), "elsewhere")
        self.script.attributes.add("persona", "A thief.")
        self.assertEqual(self.script.config.persona, "A thief.")
        # The other server has changed it: nothing in this one's memory knows.
        stored = Attribute.objects.filter(db_key="persona", scriptdb=self.script)
        stored.update(db_value=pickled("A queen."))
        self.assertEqual(self.script.config.persona, "A thief.")
        self.other_ends()
        self.assertEqual(wait_for(self.script.at_tick()), "elsewhere")  # asked just now
        self.clock += RETRY_S
        self.assertNotEqual(wait_for(self.script.at_tick()), "elsewhere")
        self.assertFalse(residence.is_elsewhere(self.script))
        self.assertEqual(self.script.config.persona, "A queen.")
        self.script.state.set_mode("awake")
        self.say("Aria, hello.")
        self.assertEqual(self.tick(), "turn")

    def test_a_lost_connection_loses_the_lock(self):
        """Of another connection nothing is held, and the lock is asked for again."""
        self.other_ends()
        here = residence._here
        self.assertTrue(here.is_here("aria", 0.0))
        here._session = object()
        self.assertTrue(here.is_here("aria", 0.0))
        self.assertEqual(here._held, {"aria"})
