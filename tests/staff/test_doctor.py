"""The doctor: each check on a healthy and on a broken installation."""

import shutil
import tempfile

from django.db import DatabaseError, OperationalError, connection
from django.test import TestCase, override_settings
from evennia.server.models import ServerConfig
from evennia.utils.create import create_script
from twisted.internet.defer import fail, succeed

from evennia_ai import services
from evennia_ai.assistant_script import AssistantScript
from evennia_ai.errors import ModelError
from evennia_ai.staff import doctor
from evennia_ai.staff.doctor import Check, Patient, report, run_checks
from evennia_ai.testing import InlineWorker, MemorySemanticStore, ScriptedModel
from evennia_ai.turns.tools import Tool
from tests.waiting import wait_for

BROKEN_TOOLS = (
    "tests.staff.test_doctor.Nothing",
    "tests.staff.test_doctor.Report",
    "tests.staff.test_doctor.Unfinished",
    "tests.staff.test_doctor.Shapeless",
    "tests.broken_tools.Anything",
)


class Unfinished(Tool):
    """A tool that cannot run."""

    name = "unfinished"


class Shapeless(Tool):
    """A tool whose parameters are none."""

    name = "shapeless"
    parameters = {"at": 5}

    def run(self, ctx, **arguments):
        """Nothing."""


class OwnScript(AssistantScript):
    """A game's own."""


class Down(ScriptedModel):
    """A model that cannot be reached."""

    def probe(self, model):
        """Fails with what it was given."""
        return fail(self.default)


class Locked(MemorySemanticStore):
    """A memory store that cannot be opened."""

    def status(self):
        """Says so."""
        return succeed({"ok": False, "detail": "The folder is locked."})


class DoctorCase(TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def patient(self, client=None, store=None):
        """An installation with this model and store, or with some that work."""
        parts = client or ScriptedModel(), store or MemorySemanticStore()
        return Patient(self.folder, *parts, worker=InlineWorker())

    def outcome(self, check, patient=None):
        """What one check finds."""
        (found,) = self.outcomes([check], patient)
        return found

    def outcomes(self, which, patient=None):
        """What checks find, which must be there at once."""
        results = []
        run_checks(patient or self.patient(), which).addCallback(results.extend)
        return results


class TestChecks(DoctorCase):
    def test_bad_settings_are_named_with_their_remedy(self):
        """The worst problem is shown with its number and hint."""
        with override_settings(EVENNIA_AI_LLM_MODEL=5, EVENNIA_AI_WRONG=1):
            found = self.outcome(doctor.check_settings)
        self.assertIs(found.ok, False)
        self.assertIn("E001", found.detail)
        self.assertIn("1 more", found.detail)
        self.assertTrue(found.remedy)

    def test_keys_and_passwords_are_masked(self):
        """Neither the key nor a password in the address is shown."""
        with override_settings(
            EVENNIA_AI_LLM_MODEL="openai/x",
            EVENNIA_AI_LLM_API_BASE="http://me:hidden1@127.0.0.1/v1",
            EVENNIA_AI_LLM_API_KEY="sk-hidden2",
        ):
            found = self.outcome(doctor.check_settings)
        self.assertIs(found.ok, True)
        self.assertNotIn("hidden", found.detail)

    def test_the_wiring_of_a_game_without_our_commands_is_bad(self):
        """Evennia's own command set lacks ours, and the remedy is the line itself."""
        with override_settings(
            CMDSET_CHARACTER="evennia.commands.default.cmdset_character.CharacterCmdSet"
        ):
            found = self.outcome(doctor.check_wiring)
        self.assertIs(found.ok, False)
        self.assertIn("self.add(evennia_ai.commands.AssistantCmdSet)", found.remedy)

    def test_a_database_without_assistants_is_worth_a_note(self):
        """Tables are there, nobody lives in them yet; nothing of the trial write stays."""
        found = self.outcome(doctor.check_database)
        self.assertIsNone(found.ok)
        self.assertIn("no assistant", found.detail)
        self.assertFalse(ServerConfig.objects.filter(db_key="evennia_ai_doctor").exists())

    def test_a_database_that_takes_no_writes(self):
        """A read-only database is a fault that says so, though everything can be read."""
        on, off = "PRAGMA query_only=ON", "PRAGMA query_only=OFF"
        if connection.vendor == "postgresql":
            on, off = "SAVEPOINT sound; SET transaction_read_only=on", "ROLLBACK TO sound"
        with connection.cursor() as cursor:
            cursor.execute(on)
            try:
                found = self.outcome(doctor.check_database)
            finally:
                cursor.execute(off)
        self.assertIs(found.ok, False)
        self.assertRegex(found.detail, "read-?only")

    def test_scripts_of_a_games_own_class_are_counted(self):
        """A class derived from the assistant's script counts, others do not."""
        create_script("tests.staff.test_doctor.OwnScript", key="Own")
        create_script("evennia.scripts.scripts.DefaultScript", key="Other")
        found = self.outcome(doctor.check_database)
        self.assertIs(found.ok, True)
        self.assertIn("1 assistant", found.detail)

    def test_tools_are_loaded(self):
        """A tool that cannot be used is named with its reason; sound ones are counted."""
        self.assertIs(self.outcome(doctor.check_tools).ok, True)
        for path in BROKEN_TOOLS:
            with self.subTest(path=path), override_settings(EVENNIA_AI_TOOLS=[path]):
                found = self.outcome(doctor.check_tools)
                self.assertIs(found.ok, False)
                self.assertIn(path, found.detail)
                self.assertTrue(found.remedy)

    def test_the_tokenizer_and_the_embedder_are_real(self):
        """Tokens are counted, not estimated, and a text becomes a vector."""
        checks = [doctor.check_tokenizer, doctor.check_embedder]
        counter, embedder = wait_for(run_checks(self.patient(), checks))
        self.assertEqual((counter.ok, embedder.ok), (True, True))
        self.assertRegex(embedder.detail, r"\d+ dimensions")

    def test_a_store_that_cannot_be_opened_is_bad(self):
        """Its own sentence is shown."""
        found = self.outcome(doctor.check_memory, self.patient(store=Locked()))
        self.assertIs(found.ok, False)
        self.assertIn("The folder is locked", found.detail)

    def test_a_back_end_that_cannot_be_made_is_bad(self):
        """The line names the setting, also while the game runs."""
        patient = Patient(self.folder)
        with override_settings(EVENNIA_AI_MEMORY_BACKEND="no_such_module.Backend"):
            found = self.outcome(doctor.check_memory, patient)
        self.assertIs(found.ok, False)
        self.assertIn("EVENNIA_AI_MEMORY_BACKEND", found.detail + found.remedy)

    def test_a_store_made_for_the_check_is_opened_and_closed(self):
        """Without a given store, one is opened on the game's folder, twice in a row."""
        patient = Patient(self.folder, worker=InlineWorker())
        with override_settings(EVENNIA_AI_DATA_DIR=self.folder):
            for _ in range(2):
                self.assertIs(self.outcome(doctor.check_memory, patient).ok, True)

    def test_an_unreachable_model_is_bad_with_a_remedy_of_its_kind(self):
        """A refused key and a dead server have different remedies."""
        remedies = set()
        for kind in ("auth", "connection", "not_found", "something new"):
            patient = self.patient(Down(default=ModelError("no", kind=kind)))
            found = self.outcome(doctor.check_model, patient)
            self.assertIs(found.ok, False)
            remedies.add(found.remedy)
        self.assertEqual(len(remedies), 4)

    def test_the_offline_model_is_said_to_be_one(self):
        """With no model set it works, and the note says what it is."""
        self.assertIsNone(self.outcome(doctor.check_model).ok)
        with override_settings(EVENNIA_AI_LLM_MODEL="openai/x"):
            self.assertIs(self.outcome(doctor.check_model).ok, True)

    def test_the_model_is_named_once(self):
        """A line holds the model's name once; without a client, the game's own asks."""
        with override_settings(EVENNIA_AI_LLM_MODEL="openai/x"):
            refused = ModelError("`openai/x` refused", kind="connection")
            patient = self.patient(Down(default=refused))
            self.assertEqual(self.outcome(doctor.check_model, patient).line().count("openai/x"), 1)
            services.use(model=ScriptedModel())
            self.addCleanup(services.close)
            found = self.outcome(doctor.check_model, Patient(self.folder))
        self.assertEqual((found.ok, found.detail), (True, "`openai/x` answered in 0.0 s"))


class TestRunChecks(DoctorCase):
    def test_before_the_migration(self):
        """A database without tables is answered with what to type."""

        def check_broken(patient):
            raise OperationalError("no such table: scripts_scriptdb")

        found = self.outcome(check_broken)
        self.assertIn("evennia migrate", found.remedy)
        self.assertNotIn("OperationalError", found.line())

    def test_a_damaged_database(self):
        """Migrations do not help it, a backup does."""

        def check_broken(patient):
            raise DatabaseError("database disk image is malformed")

        found = self.outcome(check_broken)
        self.assertIn("damaged", found.detail)
        self.assertIn("backup", found.remedy)
        self.assertNotIn("migrate", found.remedy)

    def test_a_check_that_breaks_is_a_finding(self):
        """An exception becomes a line that shows no key, and the checks after it run."""

        def check_broken(patient):
            raise OSError("no such disk sk-hidden")

        with override_settings(EVENNIA_AI_LLM_API_KEY="sk-hidden"):
            found = self.outcomes([check_broken, doctor.check_settings])
        self.assertEqual([check.name for check in found], ["broken", "settings"])
        self.assertIn("no such disk", found[0].detail)
        self.assertNotIn("sk-hidden", found[0].detail)


class TestReport(DoctorCase):
    def test_every_check_is_one_line_and_the_last_sums_up(self):
        """Line breaks in a detail do not break the list."""
        text = report([Check(True, "x\ny", name="a"), Check(False, "z", "Do it.", "b")])
        self.assertEqual(len(text.splitlines()), 3)
        self.assertIn("BAD  b: z -> Do it.", text)
        self.assertIn("1 of 2", text)
