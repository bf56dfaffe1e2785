"""The doctor: each check on a healthy and on a broken installation."""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

from django.db import DatabaseError, OperationalError, connection
from django.test import TestCase, override_settings
from evennia.server.models import ServerConfig
from twisted.internet.defer import Deferred, fail, succeed

from evennia_ai import services
from evennia_ai.errors import ModelError
from evennia_ai.models import Event
from evennia_ai.processes import is_alive, pid_file
from evennia_ai.staff import doctor
from evennia_ai.staff.doctor import Check, run_checks, verdict
from evennia_ai.turns.tools import Tool
from tests.local_servers import LM_STUDIO, OLLAMA, hang, serving
from tests.memories import MemorySemanticStore
from tests.models import ScriptedModel
from tests.waiting import pump_until, wait_for

BROKEN_TOOLS = (
    *(f"{__name__}.{name}" for name in ("Nothing", "Report", "Unfinished", "Shapeless")),
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


class Down(ScriptedModel):
    """A model that cannot be reached."""

    def complete(self, request):
        """Fails with what it was given."""
        return fail(self.default)


class Locked(MemorySemanticStore):
    """A memory store that cannot be opened."""

    def status(self):
        """Says so."""
        return succeed({"ok": False, "detail": "The folder is locked."})


class DoctorCase(TestCase):
    def setUp(self):
        services.use(model=ScriptedModel(), memories=MemorySemanticStore())
        self.addCleanup(services.reset)
        self.enterContext(serving())  # none of this machine

    def outcome(self, check, in_game=True, **options):
        """What one check finds, under these settings."""
        with override_settings(**{f"EVENNIA_AI_{name}": value for name, value in options.items()}):
            (found,) = wait_for(run_checks(in_game, [check]))
        return found

    def assert_bad(self, found, *words):
        """It is a fault whose line has these words, and there is a remedy."""
        self.assertIs(found.ok, False)
        for word in words:
            self.assertIn(word, found.line())
        self.assertTrue(found.remedy)


class TestChecks(DoctorCase):
    def test_bad_settings_are_named_with_their_remedy(self):
        """The worst problem is shown with its number and hint."""
        found = self.outcome(doctor.check_settings, LLM_MODEL=5, WRONG=1)
        self.assert_bad(found, "E001", "1 more")

    def test_keys_and_passwords_are_masked(self):
        """Neither the key nor a password in the address is shown."""
        address = {"LLM_API_BASE": "http://me:hidden1@127.0.0.1/v1", "LLM_API_KEY": "sk-hidden2"}
        found = self.outcome(doctor.check_settings, LLM_MODEL="openai/x", **address)
        self.assertIs(found.ok, True)
        self.assertNotIn("hidden", found.detail)

    def test_the_wiring_of_a_game_without_our_commands_is_bad(self):
        """Evennia's own command set lacks ours, and the remedy is the line itself."""
        with override_settings(
            CMDSET_CHARACTER="evennia.commands.default.cmdset_character.CharacterCmdSet"
        ):
            found = self.outcome(doctor.check_wiring)
        self.assert_bad(found, "self.add(evennia_ai.commands.AssistantCmdSet)")

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
        self.assert_bad(found)
        self.assertRegex(found.detail, "read-?only")

    def test_answers_by_the_offline_model(self):
        """Their share of the last hour and day; from a tenth on a fault, and nothing is well."""

        def answered(by_offline, others, hours_ago=0.1):
            for fell_back in (*[True] * by_offline, *[False] * others):
                text = json.dumps({"purpose": "awake", "fell_back": fell_back})
                at = time.time() - 3600 * hours_ago
                Event(at=at, assistant="Aria", kind="call", text=text).save()

        answered(9, 0, hours_ago=30)
        answered(0, 20)
        self.assertIs(self.outcome(doctor.check_answers).ok, True)
        answered(1, 79, hours_ago=5)
        found = self.outcome(doctor.check_answers)
        self.assertIsNone(found.ok)
        self.assertIn("gave 1% of the last day's answers", found.detail)
        answered(10, 0)
        found = self.outcome(doctor.check_answers)
        self.assert_bad(found, "33% of the last hour, 10% of the last day's answers")
        self.assertNotIn("well", verdict([found]))

    def test_when_the_suite_was_run(self):
        """Never is worth a note, as is a note that cannot be read; what failed is named."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "suite.json"
            for text, ok, words in (
                (None, None, "never tried"),
                ("{", None, "never tried"),
                ('{"at": 0, "failed": [], "add": []}', True, "1970-01-01"),
                (
                    '{"at": 0, "failed": ["test_hears_say"], "add": ["EVENNIA_AI_X = 1"]}',
                    False,
                    "test_hears_say -> Add: EVENNIA_AI_X = 1. Then run `evennia test",
                ),
            ):
                with self.subTest(text):
                    if text:
                        path.write_text(text)
                    found = self.outcome(doctor.check_suite, DATA_DIR=folder)
                    self.assertIs(found.ok, ok)
                    self.assertIn(words, found.line())

    def test_a_sound_database(self):
        """Nothing of the trial write stays; that there is no assistant yet is worth a note."""
        self.assertIs(self.outcome(doctor.check_database).ok, True)
        self.assertFalse(ServerConfig.objects.filter(db_key="evennia_ai_doctor").exists())
        found = self.outcome(doctor.check_assistants)
        self.assertIsNone(found.ok)
        self.assertIn("there is none yet", found.detail)

    def test_tools_are_loaded(self):
        """A tool that cannot be used is named with its reason; sound ones are counted."""
        self.assertIs(self.outcome(doctor.check_tools).ok, True)
        for path in BROKEN_TOOLS:
            with self.subTest(path=path):
                found = self.outcome(doctor.check_tools, TOOLS=[path])
                self.assert_bad(found, path)

    def test_the_tokenizer_and_the_embedder_are_real(self):
        """Tokens are counted, not estimated, and a text becomes a vector."""
        checks = [doctor.check_tokenizer, doctor.check_embedder]
        counter, embedder = wait_for(run_checks(True, checks))
        self.assertEqual((counter.ok, embedder.ok), (True, True))
        self.assertRegex(embedder.detail, r"\d+ dimensions")

    def test_a_memory_store(self):
        """Its own sentence or the setting is shown; one made for the check is closed again."""
        services.use(memories=Locked())
        self.assert_bad(self.outcome(doctor.check_memory), "The folder is locked")
        wrong = "no_such_module.Backend"
        found = self.outcome(doctor.check_memory, in_game=False, MEMORY_BACKEND=wrong)
        self.assert_bad(found, "EVENNIA_AI_MEMORY_BACKEND")
        folder = self.enterContext(tempfile.TemporaryDirectory())
        for _ in range(2):
            found = self.outcome(doctor.check_memory, in_game=False, DATA_DIR=folder)
            self.assertIs(found.ok, True)

    def test_an_unreachable_model_is_bad_with_a_remedy_of_its_kind(self):
        """A refused key and a dead server have different remedies."""
        remedies = set()
        for kind in ("auth", "connection", "not_found", "something new"):
            services.use(model=Down(default=ModelError("no", kind=kind)))
            found = self.outcome(doctor.check_model)
            self.assert_bad(found)
            remedies.add(found.remedy)
        self.assertEqual(len(remedies), 4)

    def test_a_refused_key_is_named_by_its_place(self):
        """Which variable or setting holds it is said, and the key itself never."""
        services.use(model=Down(default=ModelError("no", kind="auth")))
        ours, usual = "EVENNIA_AI_LLM_API_KEY", "OPENAI_API_KEY"
        for environ, setting, words in (
            ({ours: "hidden1"}, "hidden2", f"`{ours}` in the environment"),
            ({usual: "hidden1"}, "hidden2", f"`{ours}` in the game's settings"),
            ({usual: "hidden1"}, None, f"comes from `{usual}` in the environment"),
            ({}, None, f"No key is set: set `{ours}`"),
        ):
            with self.subTest(words), patch.dict(os.environ, environ):
                options = {"LLM_MODEL": "openai/x", "LLM_API_KEY": setting}
                found = self.outcome(doctor.check_model, **options)
                self.assert_bad(found, words)
                self.assertNotIn("hidden", found.line())

    def test_the_game_itself(self):
        """What does not run is said, and what changed since it started."""
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(override_settings(GAME_DIR=str(folder)))
        (folder / "server" / "conf").mkdir(parents=True)
        conf_file = folder / "server" / "conf" / "secret_settings.py"
        conf_file.touch()
        os.utime(conf_file, (0, 0))
        self.assertIn("evennia start", self.outcome(doctor.check_game, in_game=False).remedy)
        process = self.enterContext(
            subprocess.Popen(["twistd", "60"], executable="/bin/sleep", env={})
        )
        self.addCleanup(process.kill)
        pump_until(lambda: is_alive(process.pid))
        pid_file(folder, "portal").write_text(str(process.pid))
        self.assert_bad(self.outcome(doctor.check_game, in_game=False), "Server does not run")
        pid_file(folder, "server").write_text(str(process.pid))
        self.assertIs(self.outcome(doctor.check_game, in_game=False).ok, True)
        if Path("/proc/self/environ").exists():
            with patch.dict(os.environ, EVENNIA_AI_LLM_MODEL="openai/x"):
                found = self.outcome(doctor.check_game, in_game=False)
            self.assertIsNone(found.ok)
            self.assertIn("other values of EVENNIA_AI_LLM_MODEL than", found.detail)
        os.utime(conf_file)
        os.utime(pid_file(folder, "server"), (1, 1))
        found = self.outcome(doctor.check_game, in_game=False)
        self.assertIsNone(found.ok)
        self.assertIn("secret_settings.py changed", found.detail)

    def test_a_model(self):
        """Its name stands there once; that it is offered no tools is said."""
        self.assertIsNone(self.outcome(doctor.check_model).ok)  # the offline model, with a note
        found = self.outcome(doctor.check_model, LLM_MODEL="openai/x")
        self.assertEqual((found.ok, found.detail), (True, "`openai/x` answered in 0.0 s"))
        services.use(model=Down(default=ModelError("`openai/x` refused", kind="connection")))
        found = self.outcome(doctor.check_model, LLM_MODEL="openai/x")
        self.assertEqual(found.line().count("openai/x"), 1)
        services.use(model=ScriptedModel(calls_tools=False))
        found = self.outcome(doctor.check_model, LLM_MODEL="ollama/qwen2.5:0.5b")
        self.assertTrue(found.ok)
        self.assertIn("offered no tools", found.detail)

    def test_models_of_servers_on_this_machine(self):
        """Where the offline model speaks, or the model is not reached, their settings are shown.

        One that hangs is not waited for on the reactor.
        """
        empty = {"/v1/models": {"data": None}}
        with serving(OLLAMA, empty, LM_STUDIO, {"/v1/models": hang}) as servers:
            ports = [server.server_port for server in servers]
            checked = doctor.check_model(True)
            self.assertFalse(checked.called)
            found = wait_for(checked)
            self.assertIn(
                "Ollama on this machine: set EVENNIA_AI_LLM_MODEL = 'ollama_chat/qwen2.5:1.5b' and "
                f"EVENNIA_AI_LLM_API_BASE = 'http://127.0.0.1:{ports[0]}' in "
                "server/conf/secret_settings.py, then restart (other models: "
                "ollama_chat/llama3.2:latest). llama.cpp's server on this machine has no model yet."
                " LM Studio on this machine: set",
                found.remedy,
            )
            self.assertNotIn("vLLM", found.remedy)
            services.use(model=Down(default=ModelError("no", kind="connection")))
            lost = self.outcome(doctor.check_model, LLM_MODEL="openai/x")
            self.assert_bad(lost, f"'http://127.0.0.1:{ports[2]}/v1'")
            services.use(model=ScriptedModel())
            asked = len(servers[0].requests)
            self.assertNotIn("Ollama", self.outcome(doctor.check_model, LLM_MODEL="o/x").line())
            self.assertEqual(len(servers[0].requests), asked)


class TestRunChecks(DoctorCase):
    def found(self, error):
        """What a check finds that breaks so, and what the check after it finds."""

        def check_broken(in_game):
            raise error

        return wait_for(run_checks(True, [check_broken, doctor.check_settings]))

    def test_a_database_that_breaks(self):
        """One without tables is answered with what to type; one that is damaged needs a backup."""
        without, _ = self.found(OperationalError("no such table: scripts_scriptdb"))
        self.assertIn("evennia migrate", without.remedy)
        self.assertNotIn("OperationalError", without.line())
        damaged, _ = self.found(DatabaseError("database disk image is malformed"))
        self.assertIn("damaged", damaged.detail)
        self.assertIn("backup", damaged.remedy)
        self.assertNotIn("migrate", damaged.remedy)

    def test_a_check_that_breaks_is_a_finding(self):
        """An exception becomes a line that shows no key, and the checks after it run."""
        with override_settings(EVENNIA_AI_LLM_API_KEY="sk-hidden"):
            found = self.found(OSError("no such disk sk-hidden"))
        self.assertEqual([check.name for check in found], ["broken", "settings"])
        self.assertIn("no such disk", found[0].detail)
        self.assertNotIn("sk-hidden", found[0].detail)

    def test_each_finding_is_shown_as_it_is_made(self):
        """The first is shown while the second check still works."""
        shown, waiting = [], Deferred()

        def check_slow(in_game):
            return waiting

        done = run_checks(True, [doctor.check_settings, check_slow], shown.append)
        self.assertEqual([found.name for found in shown], ["settings"])
        waiting.callback(Check(True, "done"))
        self.assertEqual(wait_for(done), shown)
        self.assertEqual(shown[1].name, "slow")

    def test_every_finding_is_one_line_and_the_last_sums_up(self):
        """Line breaks in a detail do not break the list."""
        findings = [Check(True, "x\ny", name="a"), Check(False, "z", "Do it.", "b")]
        self.assertEqual(findings[0].line(), "ok   a: x y")
        self.assertEqual(findings[1].line(), "BAD  b: z -> Do it.")
        self.assertIn("1 of 2", verdict(findings))
        self.assertEqual(verdict(findings[:1]), "All is well.")
