"""What a database keeps of deleted rows, and what rewriting leaves of them."""

import sqlite3
import unittest
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from django.core.management import call_command
from django.db import connection
from django.test import TestCase, TransactionTestCase
from evennia.comms.models import Msg
from evennia.typeclasses.attributes import Attribute

from evennia_ai.models import Event
from evennia_ai.privacy import secure_erase as free_pages
from evennia_ai.privacy.secure_erase import erase_free_pages
from tests import postgres
from tests.waiting import wait_for

SECRET = "the moth is under the third stone"


@unittest.skipUnless(connection.vendor == "sqlite", "the tests run on another database")
class TestSQLite(TestCase):
    def test_a_file_is_rewritten(self):
        """Of a game in a SQLite file nothing deleted is left; staff learn that it was rewritten."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "evennia.db3"
            with closing(sqlite3.connect(path)) as database, database:
                database.execute("PRAGMA secure_delete = OFF")
                database.execute("CREATE TABLE lines (words)")
                database.execute("INSERT INTO lines VALUES ('stays')")
                rows = [(f"{SECRET}{n}",) for n in range(1000)]
                database.executemany("INSERT INTO lines VALUES (?)", rows)
            with closing(sqlite3.connect(path)) as database, database:
                database.execute("PRAGMA secure_delete = OFF")
                database.execute("DELETE FROM lines WHERE words != 'stays'")
            self.assertIn(SECRET.encode(), path.read_bytes())
            with patch.dict(connection.settings_dict, NAME=str(path)):
                self.assertEqual(wait_for(erase_free_pages()), free_pages.SQLITE)
            self.assertNotIn(SECRET.encode(), path.read_bytes())
            with closing(sqlite3.connect(path)) as database:
                [row] = database.execute("SELECT words FROM lines")
            self.assertEqual(row, ("stays",))

    def test_in_memory(self):
        """What has no file is left to its administrator."""
        self.assertEqual(wait_for(erase_free_pages()), free_pages.ELSEWHERE)


@unittest.skipUnless(connection.vendor == "postgresql", "run it by `make test-postgres`")
class TestPostgreSQL(TransactionTestCase):
    def setUp(self):
        """A server of its own: a transaction in any of a server's databases keeps deleted rows."""
        server = postgres.Server()
        self.addCleanup(server.stop)
        place = {"HOST": str(server.folder), "NAME": postgres.USER}
        self.enterContext(patch.dict(connection.settings_dict, place))
        connection.close()
        self.addCleanup(connection.close)
        call_command("migrate", run_syncdb=True, verbosity=0)

    def test_tables_are_rewritten(self):
        """No file of the tables holds a deleted row; the report names log and backups."""
        Attribute.objects.create(db_key="stays", db_strvalue="stays")
        for number in range(50):
            Attribute.objects.create(db_key=f"k{number}", db_strvalue=f"{SECRET} {number}")
            Msg.objects.create(db_message=f"{SECRET} {number}")
            Event.objects.create(at=0, text=f"{SECRET} {number}")
        Attribute.objects.exclude(db_key="stays").delete()
        Msg.objects.all().delete()
        Event.objects.all().delete()
        self.assertTrue(self.files_with_secret())
        self.assertEqual(wait_for(erase_free_pages()), free_pages.POSTGRESQL)
        self.assertEqual(self.files_with_secret(), [])
        self.assertEqual(Attribute.objects.get().db_strvalue, "stays")

    def files_with_secret(self):
        """Files of the server's databases in which deleted words stand."""
        with connection.cursor() as cursor:
            cursor.execute("CHECKPOINT")
            cursor.execute("SHOW data_directory")
            [folder] = cursor.fetchone()
        files = [path for path in Path(folder, "base").rglob("*") if path.is_file()]
        return [path for path in files if SECRET.encode() in path.read_bytes()]


@unittest.skipUnless(connection.vendor == "postgresql", "run it by `make test-postgres`")
class TestOpenTransaction(TestCase):
    def test_nothing_waits_for_ever(self):
        """In a transaction of the game's own nothing is rewritten, and that is what is said."""
        self.assertEqual(wait_for(erase_free_pages()), free_pages.ELSEWHERE)
